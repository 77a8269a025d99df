"""Comparison of topologies: sheaves with the same topology differ only in their maps."""

import re

import numpy as np
import pytest
from hypothesis import given

import sheafcoarsen as sc
from sheafcoarsen.sheaf import Topology, check_same_topology, same_array, same_topology
from tests.support.strategies import sheaves

F = sc.CellularSheaf.random([[0, 1], [1, 2]], 2, 3, seed=11)


def topology_of(G):
    return Topology(G.edges, G.vertex_dims, G.edge_dims)


OTHERS = [
    ([[0, 1], [2, 1]], 2, 3, "edges differ, first at index 1, with [2, 1] instead of [1, 2]"),
    ([[0, 1], [1, 2], [0, 2]], 2, 3, "edges differ, there are 3 of them, not 2"),
    ([[0, 1], [1, 2]], [2, 2, 1], 3, "vertex_dims differ, first at index 2, with 1 instead of 2"),
    ([[0, 1], [1, 2]], [2] * 4, 3, "vertex_dims differ, there are 4 of them, not 3"),
    ([[0, 1], [1, 2]], 2, [3, 2], "edge_dims differ, first at index 1, with 2 instead of 3"),
]


@given(sheaves())
def test_new_maps_and_copied_arrays_keep_the_topology(G):
    copied = Topology(G.edges.copy(), G.vertex_dims.copy(), G.edge_dims.copy())
    for same in (G, G.with_maps(2 * G.tail_data, 2 * G.head_data), topology_of(G), copied):
        assert same_topology(G, same)
        assert same_topology(same, G)
    check_same_topology(copied, G, "this", "do that")


@pytest.mark.parametrize(("edges", "vertex_dims", "edge_dims", "what"), OTHERS)
@pytest.mark.parametrize("held", [F, topology_of(F)], ids=["sheaf", "topology"])
def test_error_names_the_first_difference_of_topologies(held, edges, vertex_dims, edge_dims, what):
    other = sc.CellularSheaf.random(edges, vertex_dims, edge_dims, seed=11)
    assert not same_topology(held, other)
    message = f"`sheaf` must have the topology of F, but its {what}: make another F"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        check_same_topology(held, other, "the topology of F", "make another F")


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (lambda a: a, True),
        (lambda a: a.copy(), True),
        (lambda a: a.astype(np.int32), True),
        (lambda a: a + (np.arange(6) == 5), False),
        (lambda a: a[::-1], False),
        (lambda a: a[:-1], False),
        (lambda a: a.reshape(2, 3), False),
    ],
    ids=["itself", "copy", "cast", "changed", "reversed", "shorter", "reshaped"],
)
def test_same_array_compares_contents(other, same):
    array = np.array([0, 1, 3, 4, 9, 11])
    assert same_array(array, other(array)) is same
