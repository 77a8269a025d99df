"""Elimination orders: their quality, and the exact count of operations and entries."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._kernels.operators import count_operations
from sheafcoarsen.operators import Factors, elimination_order, factorization


def lengths_of_factor(L, order):
    """Return column lengths of the dense factor of a matrix with this pattern, no cancellation."""
    n = L.shape[0]
    L = scipy.sparse.csr_array((np.ones(L.nnz), L.indices, L.indptr), shape=L.shape)
    weights = np.random.default_rng(0).uniform(1, 2, (n, n))
    dense = np.where(L.toarray() != 0, weights + weights.T, 0)[np.ix_(order, order)]
    dense += np.diag(dense.sum(axis=0))
    return (abs(np.linalg.cholesky(dense)) > 1e-14).sum(axis=0)


@pytest.mark.parametrize("seed", range(5))
def test_operations_match_a_dense_cholesky_factorization(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(30, 45, seed=seed)
    dims = rng.integers(1, 4, 30)
    F = CellularSheaf.random(graph, dims, 2, seed=seed)
    L = scipy.sparse.csr_array(sc.laplacian(F) + scipy.sparse.eye_array(F.dim_c0))
    starts, Q = factorization.quotient(L)
    widths = np.diff(starts)
    place = rng.permutation(len(widths))
    order = np.concatenate([np.arange(*starts[v : v + 2]) for v in np.argsort(place)])
    lengths = lengths_of_factor(L, order)
    counts = np.zeros(2, np.int64)
    arrays = (a.astype(np.int64) for a in (Q.indptr, Q.indices, widths, place))
    count_operations(*arrays, 10**9, counts)
    assert counts.tolist() == [(lengths**2).sum(), lengths.sum()]


@pytest.mark.parametrize(("worth", "share"), [(0, 0.5), (10**9, 0.7)])
def test_order_is_good_and_its_cost_is_correct(monkeypatch, worth, share):
    """Tested with minimum degree, and with nested dissection alone."""
    monkeypatch.setattr(factorization, "DEGREE_ABOVE", worth)
    F = CellularSheaf.random(nx.grid_2d_graph(12, 12), 2, 2, seed=0)
    L = sc.laplacian(F)
    order = elimination_order(L)
    np.testing.assert_array_equal(np.sort(order.rows), np.arange(F.dim_c0))
    lengths = lengths_of_factor(L, order.rows)
    assert (order.operations, order.entries) == ((lengths**2).sum(), lengths.sum())
    assert order.operations < share * (lengths_of_factor(L, np.arange(F.dim_c0)) ** 2).sum()
    assert Factors(L, 1.0, order)._lower.nnz == order.entries


def test_cheaper_of_two_orders_is_returned(monkeypatch):
    """Dissection by levels is poor on a chain with chords, and good on a long band."""
    rng = np.random.default_rng(0)
    near = rng.integers(0, 900, 400)
    path = np.stack([np.arange(999), np.arange(1, 1000)], axis=1)
    chords = np.concatenate([path, np.stack([near, near + rng.integers(2, 90, 400)], axis=1)])
    L = sc.laplacian(CellularSheaf.constant(chords))
    best = elimination_order(L).operations
    assert elimination_order(L, best / 100).operations > best / 100  # dissection is much worse
    monkeypatch.setattr(factorization, "DEGREE_ABOVE", np.inf)
    assert elimination_order(L).operations > 2 * best
    monkeypatch.undo()
    monkeypatch.setattr(factorization, "DEGREE_UP_TO", 0)
    assert elimination_order(L).operations > 2 * best


def test_3d_grids_use_nested_dissection(monkeypatch):
    L = sc.laplacian(CellularSheaf.constant(nx.grid_graph((11, 11, 11))))
    best = elimination_order(L)
    assert best.operations < 0.8 * (np.diff(Factors(L, 1.0)._lower.indptr) ** 2.0).sum()
    monkeypatch.setattr(factorization, "DEGREE_ABOVE", np.inf)
    assert np.array_equal(elimination_order(L).rows, best.rows)


def test_leaves_and_chains_are_eliminated_first():
    """A core of four vertices, a path between each pair, a tree at one of them."""
    G = nx.Graph()
    for u, v in nx.complete_graph(4).edges:
        nx.add_path(G, [u, *((u, v, k) for k in range(50)), v])
    G.add_edges_from((("root", a), ("root", b)) for a, b in nx.balanced_tree(3, 3).edges)
    G = nx.disjoint_union(G, nx.path_graph(40))
    order = elimination_order(sc.laplacian(CellularSheaf.constant(G)))
    assert order.operations <= 9 * len(G)
    assert set(order.rows[-4:]) == {v for v, degree in G.degree() if degree == 3 and v < 304}


def test_counting_stops_at_the_limit():
    L = sc.laplacian(CellularSheaf.constant(nx.random_regular_graph(3, 300, seed=1)))
    everything = elimination_order(L).operations
    assert elimination_order(L, 1e9).operations == everything
    assert 100 < elimination_order(L, 100).operations < everything


def test_order_is_not_worse_than_that_of_superlu():
    L = sc.laplacian(CellularSheaf.constant(nx.random_regular_graph(3, 300, seed=1)))
    lengths = np.diff(Factors(L, 1.0)._lower.indptr)
    assert elimination_order(L).operations <= 1.02 * (lengths.astype(float) ** 2).sum()


def test_empty_matrix_has_an_empty_order():
    assert elimination_order(scipy.sparse.csr_array((0, 0))).rows.shape == (0,)


def test_rows_of_a_stalk_are_grouped_and_empty_rows_are_not():
    F = CellularSheaf.random([[0, 1], [2, 2], [1, 4]], [2, 3, 2, 2, 1], 2, seed=0)
    starts, Q = factorization.quotient(sc.laplacian(F))
    assert starts.tolist() == [0, 2, 5, 7, 9, 10]
    assert Q.shape == (5, 5)
    assert elimination_order(sc.laplacian(F)).rows.size == F.dim_c0
    assert factorization.quotient(scipy.sparse.csr_array((3, 3)))[0].tolist() == [0, 1, 2, 3]
