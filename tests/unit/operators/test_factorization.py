"""Elimination orders, their cost, and the factors computed with them."""

import itertools
import threading

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from scipy.sparse.linalg import splu

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.operators import Factors, Order, elimination_order, factorization, fills_little
from tests.support.helpers import assert_residual, covering, normal
from tests.support.strategies import sheaves

GRAPHS = {
    "grid": nx.grid_2d_graph(25, 25),
    "wheel": nx.wheel_graph(200),
    "star": nx.star_graph(100),
    "complete": nx.complete_graph(50),
    "path": nx.path_graph(200),
    "two components": nx.disjoint_union(nx.path_graph(50), nx.grid_2d_graph(9, 9)),
    "random": nx.random_regular_graph(4, 200, seed=1),
    "no edges": nx.empty_graph(70),
    "tree": nx.random_labeled_tree(300, seed=1),
}


def assert_cost_is_correct(L):
    """Assert that an order contains every row, and that its cost is that of a dense factor."""
    order, n = elimination_order(L), L.shape[0]
    np.testing.assert_array_equal(np.sort(order.rows), np.arange(n))
    L = scipy.sparse.csr_array((np.ones(L.nnz), L.indices, L.indptr), shape=L.shape)
    weights = np.random.default_rng(0).uniform(1, 2, (n, n))  # so that nothing cancels
    dense = np.where(L.toarray() != 0, weights + weights.T, 0)[np.ix_(order.rows, order.rows)]
    dense += np.diag(dense.sum(axis=0))
    lengths = (np.linalg.cholesky(dense) != 0).sum(axis=0)
    assert (order.operations, order.entries) == ((lengths**2).sum(), lengths.sum())
    return order


@given(sheaves())
def test_cost_of_an_order_matches_a_dense_factorization(F):
    assert_cost_is_correct(sc.laplacian(F))


# the grid has 16,000 row by row
ENTRIES = {"grid": 8700, "wheel": 800, "star": 201, "path": 400, "two components": 720}
ENTRIES |= {"random": 5200, "no edges": 70, "tree": 720}


@pytest.mark.parametrize(("graph", "entries"), ENTRIES.items())
def test_orders_keep_factors_sparse_and_their_cost_is_correct(monkeypatch, graph, entries):
    """Tested with nested dissection alone, and with minimum degree."""
    L = sc.laplacian(CellularSheaf.constant(GRAPHS[graph]))
    dims = np.random.default_rng(0).integers(1, 4, L.shape[0])
    ragged = sc.laplacian(CellularSheaf.random(GRAPHS[graph], dims, 2, seed=0))
    for worth, share in ((np.inf, 1.0), (0, 0.8 if graph in ("grid", "random") else 1.0)):
        monkeypatch.setattr(factorization, "DEGREE_ABOVE", worth)
        order = assert_cost_is_correct(L)
        assert order.entries <= share * entries
        assert Factors(L, 1.0, order)._lower.nnz == order.entries
        assert_cost_is_correct(ragged)


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


def test_order_is_as_good_as_that_of_superlu_and_counting_stops_at_the_limit():
    L = sc.laplacian(CellularSheaf.constant(nx.random_regular_graph(3, 300, seed=1)))
    everything = elimination_order(L).operations
    assert everything <= 1.02 * (np.diff(Factors(L, 1.0)._lower.indptr) ** 2.0).sum()
    assert elimination_order(L, 1e9).operations == everything
    assert 100 < elimination_order(L, 100).operations < everything


def test_rows_of_a_stalk_are_grouped_and_empty_rows_are_not():
    F = CellularSheaf.random([[0, 1], [2, 2], [1, 4]], [2, 3, 2, 2, 1], 2, seed=0)
    rows = elimination_order(sc.laplacian(F)).rows.tolist()
    assert sorted(rows) == list(range(10))
    for start, end in itertools.pairwise(F.vertex_offsets.tolist()):
        first = rows.index(start)
        assert rows[first : first + end - start] == list(range(start, end))
    empty = elimination_order(scipy.sparse.csr_array((3, 3)))
    assert (empty.operations, empty.entries) == (3, 3)
    assert elimination_order(scipy.sparse.csr_array((0, 0))).rows.shape == (0,)


def chords(n, count, seed=0):
    """Return a path with random chords, which has wide breadth-first levels but little fill."""
    rng = np.random.default_rng(seed)
    path = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    closures = rng.integers(0, n, (count, 2))
    return np.concatenate([path, closures[closures[:, 0] != closures[:, 1]]])


def test_wide_levels_with_little_fill_are_factored(monkeypatch):
    """Levels alone would select an iterative solver, which does not converge."""
    F = sc.gallery.bundle(chords(1700, 340), 3, noise=0.1, seed=0)
    L = sc.laplacian(F)
    counted = []
    monkeypatch.setattr(
        factorization, "elimination_order", lambda *a: counted.append(a) or elimination_order(*a)
    )
    assert fills_little(L)
    assert counted
    assert sc.Solver(F, fixed=[0]).method == "direct"
    x = sc.harmonic_extension(F, [0], [np.eye(3)])
    assert_residual((L @ x)[3:], L, x, n=10)
    monkeypatch.setattr(factorization, "DIRECT_BEFORE", 0)
    assert fills_little(L)
    monkeypatch.setattr(factorization, "DIRECT_OPERATIONS", 1e4)
    assert not fills_little(L)


def test_levels_of_a_component_are_found_in_it_alone(monkeypatch):
    """Else the time would be proportional to the number of components squared."""
    L = sc.laplacian(CellularSheaf.constant(nx.disjoint_union_all([nx.path_graph(9)] * 30)))
    sizes, dijkstra = [], factorization.dijkstra
    monkeypatch.setattr(
        factorization, "dijkstra", lambda A, **kw: sizes.append(A.shape[0]) or dijkstra(A, **kw)
    )
    dense = scipy.sparse.csr_array(scipy.sparse.kron(L, np.ones((60, 60))))
    assert fills_little(dense)
    assert set(sizes) == {540}


def test_small_matrices_are_factored_regardless_of_fill(monkeypatch):
    for name in ("DIRECT_BEFORE", "DIRECT_OPERATIONS"):
        monkeypatch.setattr(factorization, name, -1)
    for n, little in ((5000, True), (5002, False)):
        L = sc.laplacian(CellularSheaf.constant(nx.random_regular_graph(3, n, seed=1)))
        assert fills_little(L) == little


def test_surfaces_are_factored_because_their_levels_are_narrow(monkeypatch):
    """Operations are not counted, because that would take longer."""
    monkeypatch.setattr(
        factorization, "elimination_order", lambda L, most: Order(np.arange(0), np.inf, 0)
    )
    for graph, little in (
        (nx.grid_2d_graph(80, 80), True),
        (nx.random_regular_graph(4, 6400, seed=1), False),
        (nx.disjoint_union(nx.grid_2d_graph(81, 81), nx.random_regular_graph(4, 6400)), False),
    ):
        L = sc.laplacian(CellularSheaf.constant(graph))
        assert fills_little(L) == little


@pytest.mark.large
def test_small_matrices_with_full_rows_are_not_factored():
    """For 5000 vertices with 200 edges each, factors take 22 s, an iterative solver 1 s."""
    dense = CellularSheaf.constant(np.random.default_rng(0).integers(0, 3000, (150_000, 2)))
    assert not fills_little(sc.laplacian(dense))
    assert sc.Solver(dense).method == "multigrid"
    few = CellularSheaf.constant(np.random.default_rng(0).integers(0, 3000, (30_000, 2)))
    assert fills_little(sc.laplacian(few))


@pytest.mark.parametrize(
    ("graph", "dtype", "complex_b", "h"),
    covering(
        sorted(GRAPHS.keys() - {"no edges"}), [float, complex], [False, True], [None, 1, 3, 21]
    ),
)
def test_solves_and_counts_are_correct_in_both_orders(monkeypatch, graph, dtype, complex_b, h):
    G = nx.convert_node_labels_to_integers(GRAPHS[graph])
    L = sc.laplacian(CellularSheaf.random(G, 2, 2, seed=1, dtype=dtype))
    values = np.linalg.eigvalsh(L.toarray())
    shape = L.shape[:1] if h is None else (L.shape[0], h)
    b = np.asfortranarray(normal(np.random.default_rng(0), shape, complex if complex_b else float))
    for above in (0, 10**9):
        monkeypatch.setattr(factorization, "OWN_ORDER_ABOVE", above)
        monkeypatch.setattr(factorization, "DEGREE_ABOVE", above)
        f = Factors(L, 0.1)
        x = f.solve(b)
        assert x.shape == b.shape
        assert_residual(L @ x + 0.1 * x - b, L, x, n=10)
        assert f.count_negative() == 0
        for k in (1, 5, len(values) - 1):
            if values[k] - values[k - 1] > 1e-3:
                assert Factors(L, -(values[k] + values[k - 1]) / 2).count_negative() == k


def test_matrices_with_unsorted_indices_are_factored_and_not_changed(monkeypatch):
    monkeypatch.setattr(factorization, "OWN_ORDER_ABOVE", 0)
    L = sc.laplacian(CellularSheaf.random(nx.grid_2d_graph(6, 7), 2, 2, seed=1))
    back = np.concatenate([np.arange(*L.indptr[i : i + 2])[::-1] for i in range(L.shape[0])])
    A = scipy.sparse.csr_array((L.data[back], L.indices[back], L.indptr), shape=L.shape)
    b = np.random.default_rng(0).standard_normal(L.shape[0])
    elimination_order(A)
    assert not A.has_sorted_indices
    assert_residual((A - L).toarray(), L, n=1)
    x = Factors(A, 0.1).solve(b)
    assert_residual(L @ x + 0.1 * x - b, L, x, n=10)


ZERO_PIVOT = scipy.sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 3.0]])


@pytest.mark.parametrize(
    ("matrix", "why"), [(scipy.sparse.csr_array((3, 3)), ""), (ZERO_PIVOT, "a pivot is zero")]
)
def test_failed_factorization_raises_linalg_error(matrix, why):
    with pytest.raises(np.linalg.LinAlgError, match=f"the factorization failed: {why}"):
        Factors(matrix, 0.0)


@pytest.mark.parametrize("shift", [0.0, 4.0])
def test_memory_of_superlu_is_freed_by_the_thread_that_took_it(monkeypatch, shift):
    """Otherwise scipy loses it: a loop over ``Solver.update`` took 80 MB for every ten steps."""
    events = []

    class Recorded:
        def __init__(self, factors):
            self.perm_c, self.perm_r, self.L, self.U = (
                getattr(factors, name) for name in ("perm_c", "perm_r", "L", "U")
            )
            events.append(threading.current_thread())

        def __del__(self):
            events.append(threading.current_thread())

    monkeypatch.setattr(factorization, "splu", lambda *a, **k: Recorded(splu(*a, **k)))
    error = None
    try:
        Factors(ZERO_PIVOT, shift)
    except np.linalg.LinAlgError as raised:
        error = raised
    assert (error is None) == (shift > 0)
    assert len(events) == 2
    assert events[0] is events[1]
