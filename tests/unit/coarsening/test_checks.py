"""Consistency of arguments and of the parts of a coarsening."""

import dataclasses

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from sheafcoarsen.modes import Internal, Oversampled, Principal

F = CellularSheaf.random(nx.path_graph(6), 2, 3, seed=3)
P = Partition([0, 0, 0, 1, 1, 1])


def test_a_local_operator_that_contradicts_precomputed_modes_raises():
    M = sc.local_modes(F, P, 2, Oversampled(rings=2, target=0.5))
    for operator in ("internal", "oversampled", Internal(), M.operator):
        assert sc.coarsen(F, P, M, local_operator=operator).modes is M
    for operator in ("principal", Principal(), Oversampled(rings=3)):
        with pytest.raises(ValueError, match="contradicts the LocalModes in `rank`, which are 'o"):
            sc.coarsen(F, P, M, local_operator=operator)


def test_a_local_operator_with_a_basis_raises():
    given = {"principal": "principal", Principal(): "principal", Oversampled(): "oversampled"}
    for operator, name in given.items():
        message = f"`local_operator` = '{name}' selects modes, but `basis` replaces them: omit"
        with pytest.raises(ValueError, match=message):
            sc.coarsen(F, P, basis=[np.eye(6, 2)] * 2, local_operator=operator)


def test_a_coarsening_can_be_constructed_from_consistent_parts():
    C = sc.coarsen(F, P, 2)
    D = sc.Coarsening(F, P, None, C.prolongation, C.sheaf, C.crossing_rows)
    assert D.prolongation is C.prolongation
    assert sc.verify(D).passed
    np.testing.assert_array_equal(D.block(1), C.block(1))


def test_a_writeable_prolongation_is_copied():
    C = sc.coarsen(F, P, 2)
    R = C.prolongation.copy()
    D = dataclasses.replace(C, prolongation=R)
    R.data[:] = np.nan
    np.testing.assert_array_equal(D.prolongation.data, C.prolongation.data)
    np.testing.assert_array_equal(D.block(1), C.block(1))
    assert not D.prolongation.data.flags.writeable


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"fine": P}, TypeError, "must be a CellularSheaf, got Partition"),
        ({"sheaf": None}, TypeError, "must be a CellularSheaf, got NoneType"),
        ({"partition": None}, TypeError, "`P` must be a Partition, got NoneType"),
        ({"partition": Partition([0, 1])}, ValueError, "`P` must label the sheaf's 6 vertices"),
        ({"sheaf": F}, ValueError, "has 2 clusters, but the coarse sheaf has 6 vertices"),
        ({"modes": 3}, TypeError, "`modes` must be LocalModes or None, got int"),
        ({"modes": sc.local_modes(F, P, 3)}, ValueError, "ranks of its modes do not match"),
        (
            {"modes": sc.local_modes(F, Partition([0, 1, 1, 1, 1, 1]), 2)},
            ValueError,
            "its modes belong to another partition",
        ),
        ({"prolongation": np.eye(12, 4)}, TypeError, "R must be a csr_array"),
        ({"prolongation": sc.coarsen(F, P, 3).prolongation}, ValueError, "R must hold a full bloc"),
        ({"loops": "no"}, TypeError, "`loops` must be True or False, got 'no'"),
    ],
)
def test_inconsistent_parts_raise(fields, error, message):
    with pytest.raises(error, match=message):
        dataclasses.replace(sc.coarsen(F, P, 2), **fields)
