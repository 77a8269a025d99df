"""The pencil (L, M) and its solvers."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen.sections import singular_pairs
from sheafcoarsen.solve import EigenProblem, Pencil, eigensolver
from tests.support.helpers import assert_residual


def test_the_cost_of_factors_is_not_estimated_for_large_graphs_with_cycles(monkeypatch):
    counted = []
    real = eigensolver.elimination_order
    monkeypatch.setattr(
        eigensolver, "elimination_order", lambda *args: counted.append(args) or real(*args)
    )
    for graph, method, looks in (
        (nx.grid_2d_graph(142, 142), "multilevel", 0),
        (nx.path_graph(20_001), "direct", 1),
    ):
        F = sc.CellularSheaf.constant(nx.convert_node_labels_to_integers(graph))
        problem = EigenProblem(Pencil(sc.sheaf.unit_sheaf(F)[0]), 3, 1e-8)
        assert problem.chosen() == method
        assert len(counted) == looks


@pytest.mark.parametrize("rows", [5, 1024, 1025, 5000])
@pytest.mark.parametrize("dtype", [float, complex])
def test_singular_values_of_tall_matrices_are_resolved_below_the_root_of_eps(rows, dtype):
    """Singular values far below sqrt(eps) are accurate."""
    rng = np.random.default_rng(rows)
    X = np.linalg.qr(rng.standard_normal((40, 7)).astype(dtype))[0]
    D = rng.standard_normal((rows, 40)).astype(dtype)
    if dtype is complex:
        D, X = D + 1j * rng.standard_normal(D.shape), X * 1j
    D = D - (1 - 1e-11) * (D @ X[:, :1]) @ X[:, :1].conj().T
    sigma, V = singular_pairs(scipy.sparse.csr_array(D), X)
    exact = np.linalg.svd(D @ X, compute_uv=False)[::-1]
    exact = np.append(np.zeros(7 - len(exact)), exact)
    assert np.abs(sigma - exact).max() <= 30 * np.finfo(float).eps * exact[-1]
    assert_residual(np.linalg.norm(D @ V, axis=0) - sigma, exact[-1], n=rows)
    assert_residual(V.conj().T @ V - np.eye(7), n=40)
    assert_residual(V - X @ (X.conj().T @ V), n=40)
