"""Comparison of two sheaves, bit for bit or up to rounding."""

import numpy as np
import pytest
from hypothesis import given

import sheafcoarsen as sc
from tests.support.strategies import DTYPES, sheaves

F = sc.CellularSheaf.random([[0, 1], [1, 2]], 2, 3, seed=11)

OTHERS = {
    "edges": sc.CellularSheaf.from_flat([[0, 1], [2, 1]], F.tail_data, F.head_data, 2, 3),
    "one more edge": sc.CellularSheaf.random([[0, 1], [1, 2], [0, 2]], 2, 3, seed=11),
    "one more vertex": sc.CellularSheaf.from_flat(
        F.edges, F.tail_data, F.head_data, [2, 2, 2, 0], 3
    ),
    "names": F.with_labels(["a", "b", "c"]),
}


@given(sheaves())
def test_a_copy_equals_its_original(G):
    copy = sc.CellularSheaf.from_flat(
        G.edges, G.tail_data, G.head_data, G.vertex_dims, G.edge_dims
    ).with_labels(G.vertex_labels)
    assert G.equals(copy)
    assert G.allclose(copy)
    assert G.allclose(copy, rtol=0)


@pytest.mark.parametrize("what", OTHERS)
def test_sheaves_with_other_graphs_or_names_are_not_equal(what):
    for one, other in ((F, OTHERS[what]), (OTHERS[what], F)):
        assert not one.equals(other)
        assert not one.allclose(other)


@pytest.mark.parametrize("end", [0, 1])
def test_equals_compares_every_bit(end):
    data = [F.tail_data.copy(), F.head_data.copy()]
    data[end][-1] = np.nextafter(data[end][-1], 9)
    G = F.with_maps(*data)
    assert not F.equals(G)
    assert F.allclose(G)
    zero = F.with_maps(0 * F.tail_data, 0 * F.head_data)
    assert not zero.equals(zero.with_maps(-zero.tail_data, -zero.head_data))
    assert not F.equals(F.with_maps(*(d.astype(np.float32) for d in data)))
    assert not F.equals("F")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_allclose_is_relative_to_each_map(dtype, unit):
    """An error of rounding size relative to the largest map is not relative to a small one."""
    one, small = dtype(unit), dtype(unit * 1e-3)
    G = sc.CellularSheaf([[0, 1], [1, 2]], [[[one]], [[small]]], [[[one]], [[small]]])
    eps = np.finfo(dtype).eps
    for place in (0, 1):
        for factor, close in ((20, True), (50, False)):
            tail = G.tail_data.copy()
            tail[place] *= dtype(1 + factor * eps)
            assert G.allclose(G.with_maps(tail, G.head_data)) is close
    tail = G.tail_data.copy()
    tail[1] += one * eps * 20
    assert not G.allclose(G.with_maps(tail, G.head_data))
    larger = G.with_maps(G.tail_data * dtype(2), G.head_data)
    for one, other in ((G, larger), (larger, G)):  # an error of half the larger map
        assert one.allclose(other, rtol=0.51)
        assert not one.allclose(other, rtol=0.49)


def test_only_zero_maps_are_close_to_zero_maps():
    zero = F.with_maps(0 * F.tail_data, F.head_data)
    assert zero.allclose(zero)
    assert not zero.allclose(zero.with_maps(1e-200 * F.tail_data, F.head_data))


def test_allclose_accepts_another_precision():
    G = F.with_maps(F.tail_data.astype(np.float32), F.head_data.astype(np.float32))
    assert F.allclose(G)
    assert G.allclose(F)
    assert not F.allclose(G.with_maps(G.tail_data.astype(float), G.head_data.astype(float)))
