"""New maps for a result require the edges and stalks of its sheaf."""

import numpy as np
import pytest

import sheafcoarsen as sc
from tests.support.errors import raises

F = sc.CellularSheaf.random([[0, 1], [1, 2]], 2, 3, seed=11)
P = sc.Partition([0, 0, 1])
PATTERN = ("the topology of the pattern", "make a new LaplacianPattern for another one")
COARSENED = (
    "the graph and the stalks of the sheaf that was coarsened",
    "use coarsen for another g",
)
ORIGINAL = ("the graph and the stalks of the original sheaf", "use eliminate for another graph")

CALLS = {
    "pattern": (sc.LaplacianPattern(F).fill, *PATTERN),
    "bsr pattern": (sc.LaplacianPattern(F, "bsr").fill, *PATTERN),
    "modes": (sc.coarsen(F, P, 2).recoarsen, *COARSENED),
    "basis": (sc.coarsen(F, P, basis=[np.eye(4, 2), np.eye(2)]).recoarsen, *COARSENED),
    "elimination": (sc.eliminate(F).refresh, *ORIGINAL),
}

OTHERS = [
    ([[0, 1], [2, 1]], 2, 3, "edges differ, first at index 1, with [2, 1] instead of [1, 2]"),
    ([[0, 1], [1, 2], [0, 2]], 2, 3, "edges differ, there are 3 of them, not 2"),
    ([[0, 1], [1, 2]], [2, 2, 1], 3, "vertex_dims differ, first at index 2, with 1 instead of 2"),
    ([[0, 1], [1, 2]], [2] * 4, 3, "vertex_dims differ, there are 4 of them, not 3"),
    ([[0, 1], [1, 2]], 2, [3, 2], "edge_dims differ, first at index 1, with 2 instead of 3"),
]


@pytest.mark.parametrize(("edges", "vertex_dims", "edge_dims", "what"), OTHERS)
@pytest.mark.parametrize("call", CALLS)
def test_error_names_the_first_difference_of_topologies(call, edges, vertex_dims, edge_dims, what):
    refresh, wanted, remedy = CALLS[call]
    other = sc.CellularSheaf.random(edges, vertex_dims, edge_dims, seed=11)
    with raises(f"ValueError: `sheaf` must have {wanted}, but its {what}: {remedy}"):
        refresh(other)
