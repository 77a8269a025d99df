"""The sheaf that is left: order of its edges, merged bundles, loops."""

import networkx as nx
import numpy as np

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf


def test_edges_are_sorted_and_then_loops():
    G = nx.MultiGraph(nx.complete_graph(6))
    G.add_edges_from([(3, 3), (1, 1), (4, 2), (5, 0)])
    F = CellularSheaf.random(np.random.default_rng(3).permutation(list(G.edges())), 2, 1, seed=3)
    K = sc.eliminate(F)
    edges = K.sheaf.edges
    crossing = edges[edges[:, 0] != edges[:, 1]]
    assert (crossing[:, 0] < crossing[:, 1]).all()
    assert crossing.tolist() == sorted(crossing.tolist())
    assert len(crossing) == 15  # a pair once
    assert edges[15:].tolist() == [[1, 1], [3, 3]]
    difference = sc.laplacian(K.sheaf) - sc.laplacian(F)
    assert abs(difference).max() < 1e-13


def test_loops_that_cancel_are_left_out():
    maps = np.array([[[0.1 + 0.2]], [[1.0]]]), np.array([[[0.3]], [[0.5]]])
    F = CellularSheaf([[0, 0], [1, 1]], *maps)
    K = sc.eliminate(F, keep=[0, 1])
    assert K.sheaf.edges.tolist() == [[1, 1]]
    assert K.sheaf.tail_map(0) == -K.sheaf.head_map(0) == 0.25


def test_a_constant_sheaf_leaves_a_constant_one():
    F = CellularSheaf.constant(nx.karate_club_graph(), dim=2)
    K = sc.eliminate(F)
    assert K.sheaf.map_shape == (2, 2)
    error = K.sheaf.tail_data - K.sheaf.head_data
    assert np.abs(error).max() < 1e-15 * 100


def test_rows_begin_with_a_real_positive_number():
    """Each row that was made: its first entry of half the size of the largest, or more."""
    F = CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=3, dtype=complex)
    K = sc.eliminate(F, keep=[0, 2, 4])
    for e in range(K.sheaf.n_edges):
        for row in np.hstack([K.sheaf.tail_map(e), -K.sheaf.head_map(e)]):
            parts = np.maximum(abs(row.real), abs(row.imag))
            first = row[np.argmax(parts >= 0.5 * parts.max())]
            assert first.real > 0
            assert abs(first.imag) < 1e-15 * abs(first)
