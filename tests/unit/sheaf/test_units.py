"""The sheaf with maps of the size of 1 is the given one, exactly."""

import numpy as np
import pytest
from hypothesis import given

import sheafcoarsen as sc
from sheafcoarsen.sheaf import unit_sheaf
from tests.support.strategies import sheaves


@given(sheaves())
def test_maps_are_divided_by_the_power_of_two_just_above_the_largest_entry(F):
    G, unit = unit_sheaf(F)
    assert np.frexp(unit)[0] == 0.5
    assert G.dtype == np.result_type(F.dtype, np.float64)
    for mine, given_maps in ((G.tail_data, F.tail_data), (G.head_data, F.head_data)):
        np.testing.assert_array_equal(mine * unit, given_maps)
    assert G.largest_entry < 1
    assert G.largest_entry >= 0.5 or F.largest_entry == 0
    for name in ("edges", "vertex_dims", "edge_dims", "vertex_offsets", "tail_offsets"):
        np.testing.assert_array_equal(getattr(G, name), getattr(F, name))


@pytest.mark.parametrize("scale", [1e-149, 1e149, 1e149j])
def test_far_from_one(scale):
    F = sc.CellularSheaf([[0, 1]], [[[0.0, 3.0 * scale]]], [[[scale]]])
    G, unit = unit_sheaf(F)
    assert 0.5 <= abs(G.tail_data[1]) < 1
    assert G.tail_data[1] * unit == F.tail_data[1]


def test_zero_maps_and_no_maps_have_the_unit_one():
    for F in (sc.CellularSheaf([[0, 1]], [[[0.0]]], [[[0.0]]]), sc.CellularSheaf([], [], [], [])):
        assert unit_sheaf(F)[1] == 1


def test_offsets_that_are_known_are_shared_and_the_labels_are_kept():
    F = sc.CellularSheaf([[0, 1]], [[[2.0]]], [[[2.0]]])
    starts = F.tail_offsets
    assert unit_sheaf(F)[0].tail_offsets is starts
