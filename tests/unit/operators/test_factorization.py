import threading

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from scipy.sparse.linalg import splu

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._kernels.operators import nested_dissection
from sheafcoarsen.operators import factorization
from tests.support.helpers import assert_residual, covering
from tests.support.strategies import graphs

GRAPHS = {
    "grid": nx.grid_2d_graph(25, 25),
    "star": nx.star_graph(100),
    "complete": nx.complete_graph(50),
    "path": nx.path_graph(200),
    "two components": nx.disjoint_union(nx.path_graph(50), nx.grid_2d_graph(9, 9)),
    "random": nx.random_regular_graph(4, 200, seed=1),
    "no edges": nx.empty_graph(70),
    "tree": nx.random_labeled_tree(300, seed=1),
}


def adjacency(G):
    n = G.number_of_nodes()
    return (
        scipy.sparse.csr_array(nx.to_scipy_sparse_array(G, format="csr", dtype=float))
        if n
        else scipy.sparse.csr_array((0, 0))
    )


def dissected(A):
    order = nested_dissection(A.indptr.astype(np.int64), A.indices.astype(np.int64))
    np.testing.assert_array_equal(np.sort(order), np.arange(A.shape[0]))
    return order


def fill(A, order):
    """Entries of the triangular factor of a matrix with this pattern."""
    n = A.shape[0]
    dominant = scipy.sparse.diags_array(A.sum(axis=1) + 1.0) - A
    return (
        np.count_nonzero(np.linalg.cholesky(dominant.toarray()[np.ix_(order, order)])) if n else 0
    )


@pytest.mark.parametrize(
    ("graph", "allowed"),
    [("grid", 9600), ("star", 201), ("path", 600), ("no edges", 70), ("tree", 1300)],
)
def test_nested_dissection_keeps_factors_sparse(graph, allowed):
    A = adjacency(GRAPHS[graph])
    found = fill(A, dissected(A))
    assert found <= allowed
    if graph == "grid":  # row by row it has 16,000
        assert found < 0.6 * fill(A, np.arange(625))


@given(graphs(max_vertices=7))
def test_nested_dissection_keeps_the_order_of_small_graphs(graph):
    A = scipy.sparse.coo_array(
        (np.ones(len(graph.edges)), graph.edges.T), shape=(graph.n_vertices,) * 2
    ).tocsr()
    assert dissected(A + A.T).tolist() == list(range(graph.n_vertices))


@pytest.mark.parametrize(
    ("dtype", "graph"), covering([float, complex], [name for name in GRAPHS if name != "no edges"])
)
def test_solves_and_counts_are_correct_in_both_orders(monkeypatch, graph, dtype):
    G = nx.convert_node_labels_to_integers(GRAPHS[graph])
    L = sc.laplacian(CellularSheaf.random(G, 2, 2, seed=1, dtype=dtype))
    values = np.linalg.eigvalsh(L.toarray())
    b = np.random.default_rng(0).standard_normal((L.shape[0], 2)).astype(dtype)
    for above in (0, 10**9):
        monkeypatch.setattr("sheafcoarsen.operators.factorization.OWN_ORDER_ABOVE", above)
        monkeypatch.setattr("sheafcoarsen.operators.factorization.DEGREE_ABOVE", above)
        f = factorization.Factors(L, 0.1)
        x = f.solve(b)
        assert_residual(L @ x + 0.1 * x - b, L, x, n=10)
        y = f.solve(b[:, 0].copy())
        assert_residual(L @ y + 0.1 * y - b[:, 0], L, y, n=10)
        assert f.count_negative() == 0
        for k in (1, 5, len(values) - 1):
            if values[k] - values[k - 1] > 1e-3:
                assert (
                    factorization.Factors(L, -(values[k] + values[k - 1]) / 2).count_negative() == k
                )


def test_matrices_with_unsorted_indices_are_factored_and_not_changed(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.operators.factorization.OWN_ORDER_ABOVE", 0)
    L = sc.laplacian(CellularSheaf.random(nx.grid_2d_graph(6, 7), 2, 2, seed=1))
    back = np.concatenate([np.arange(*L.indptr[i : i + 2])[::-1] for i in range(L.shape[0])])
    A = scipy.sparse.csr_array((L.data[back], L.indices[back], L.indptr), shape=L.shape)
    b = np.random.default_rng(0).standard_normal(L.shape[0])
    factorization.elimination_order(A)
    assert not A.has_sorted_indices
    assert_residual((A - L).toarray(), L, n=1)
    x = factorization.Factors(A, 0.1).solve(b)
    assert_residual(L @ x + 0.1 * x - b, L, x, n=10)


def test_failed_factorization_raises_linalg_error():
    with pytest.raises(np.linalg.LinAlgError, match="the factorization failed: "):
        factorization.Factors(scipy.sparse.csr_array((3, 3)), 0.0)


ZERO_PIVOT = scipy.sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 3.0]])


def test_factorization_with_a_zero_pivot_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match="the factorization failed: a pivot is zero"):
        factorization.Factors(ZERO_PIVOT, 0.0)


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
        factorization.Factors(ZERO_PIVOT, shift)
    except np.linalg.LinAlgError as raised:
        error = raised
    assert (error is None) == (shift > 0)
    assert len(events) == 2
    assert events[0] is events[1]


@pytest.mark.parametrize(
    ("complex_b", "h", "dtype"), covering([False, True], [None, 1, 3, 21], [float, complex])
)
def test_solve_accepts_any_number_of_columns_and_scalar_type(dtype, complex_b, h):
    F = CellularSheaf.random(nx.grid_2d_graph(7, 7), 2, 2, seed=1, dtype=dtype)
    L = sc.laplacian(F)
    f = factorization.Factors(L, 0.1)
    rng = np.random.default_rng(0)
    b = rng.standard_normal((98,) if h is None else (98, h))
    b = b + 1j * rng.standard_normal(b.shape) if complex_b else b
    x = f.solve(np.asfortranarray(b))
    assert x.shape == b.shape
    assert_residual(L @ x + 0.1 * x - b, L, x, n=10)
