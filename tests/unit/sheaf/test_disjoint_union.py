"""Disjoint union of sheaves, and its inverse."""

import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.sheaf import trusted_sheaf
from tests.unit.sheaf.test_cellular_sheaf import QUARTER_TURN, heads, mixed_sheaf, tails


def test_split_keeps_edge_order_and_vertex_names():
    G = nx.Graph()
    G.add_nodes_from("abcd")
    G.add_edge("c", "d", turn=QUARTER_TURN)
    G.add_edge("a", "b", turn=-QUARTER_TURN)
    F = CellularSheaf.connection(G, "turn")
    F = CellularSheaf(F.edges[::-1], tails(F)[::-1], heads(F)[::-1])
    assert F.edges.tolist() == [[2, 3], [0, 1]]
    first, none, second = sc.split(F, [0, 2, 2, 4])
    assert (first.n_vertices, none.n_vertices, second.n_vertices) == (2, 0, 2)
    assert first.head_map(0).tolist() == (-QUARTER_TURN).tolist()
    assert second.head_map(0).tolist() == QUARTER_TURN.tolist()
    assert second.edges.tolist() == [[0, 1]]
    first, second = sc.split(CellularSheaf.connection(G, "turn"), [0, 2, 4])
    assert (first.vertex_labels, second.vertex_labels) == (("a", "b"), ("c", "d"))


def test_union_and_split_return_read_only_copies():
    F = mixed_sheaf()
    union, starts, _ = sc.disjoint_union([F, F])
    for G in (union, *sc.split(union, starts)):
        assert not np.shares_memory(G.tail_data, F.tail_data)
        for array in (G.edges, G.vertex_dims, G.edge_dims, G.tail_data, G.head_data):
            assert not array.flags.writeable


def test_union_accepts_coarse_sheaves_with_tiny_maps():
    """The lower limit applies only to user-supplied maps (docs/conventions.md, section 1)."""
    one = np.ones(1, np.int64)
    tiny = trusted_sheaf(np.array([[0, 0]]), one, one.copy(), np.array([1e-200]), np.array([0.0]))
    assert sc.disjoint_union([tiny, tiny])[0].tail_data.tolist() == [1e-200, 1e-200]


def test_union_rejects_other_objects():
    with pytest.raises(TypeError, match=re.escape("`sheaves[1]` must be a CellularSheaf, got int")):
        sc.disjoint_union([mixed_sheaf(), 3])


def test_union_rejects_sparse_matrices():
    matrix = scipy.sparse.bsr_array(np.eye(2))
    with pytest.raises(TypeError, match="`sheaves` must be a sequence of sheaves, got bsr_array"):
        sc.disjoint_union(matrix)
    with pytest.raises(TypeError, match="`levels` must be a sequence of coarsenings, got bsr_arra"):
        sc.Hierarchy(mixed_sheaf(), matrix)
