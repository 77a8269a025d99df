"""The pencil (L, M) and its solvers."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen.solve import EigenProblem, Pencil, singular_pairs
from sheafcoarsen.solve import pencil as pencil_module
from tests.support.helpers import assert_residual
from tests.unit.solve.problems import SHEAVES


@pytest.mark.parametrize("name", ["noisy bundle", "complex mixed stalks"])
def test_factors_count_the_eigenvalues_below_a_shift(name):
    F = sc.sheaf.unit_sheaf(SHEAVES[name])[0]
    L = sc.laplacian(F).toarray()
    mass = np.random.default_rng(1).uniform(0.5, 2, len(L))
    for M in (None, mass):
        roots = 1 / np.sqrt(np.ones(len(L)) if M is None else M)
        values = np.linalg.eigvalsh(L * roots * roots[:, None])
        shift = (values[11] + values[12]) / 2
        assert Pencil(F, M).factors_at(shift).count_negative() == 12


def test_residuals_and_squares_match_dense_products():
    F = sc.sheaf.unit_sheaf(SHEAVES["noisy bundle"])[0]
    L = sc.laplacian(F).toarray()
    mass = np.random.default_rng(1).uniform(0.5, 2, len(L))
    X = np.random.default_rng(2).standard_normal((len(L), 3))
    values = np.array([0.5, 1.0, 2.0])
    for M in (None, mass):
        weighed = X if M is None else M[:, None] * X
        found = Pencil(F, M).residuals(values, X)
        assert_residual(found - np.linalg.norm(L @ X - weighed * values, axis=0), L, X, n=len(L))
    np.testing.assert_allclose(Pencil(F, mass).squares(X), np.linalg.norm(X, axis=0) ** 2)


def test_the_cost_of_factors_is_not_estimated_for_large_graphs_with_cycles(monkeypatch):
    counted = []
    real = pencil_module.elimination_order
    monkeypatch.setattr(
        pencil_module, "elimination_order", lambda *args: counted.append(args) or real(*args)
    )
    for graph, method, looks in (
        (nx.grid_2d_graph(142, 142), "multilevel", 0),
        (nx.path_graph(20_001), "direct", 1),
    ):
        F = sc.CellularSheaf.constant(nx.convert_node_labels_to_integers(graph))
        problem = EigenProblem(Pencil(sc.sheaf.unit_sheaf(F)[0]), 3, 1e-8)
        assert problem.chosen() == method
        assert len(counted) == looks


EPS = np.finfo(float).eps


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
    assert np.abs(sigma - exact).max() <= 30 * EPS * exact[-1]
    assert_residual(np.linalg.norm(D @ V, axis=0) - sigma, exact[-1], n=rows)
    assert_residual(V.conj().T @ V - np.eye(7), n=40)
    assert_residual(V - X @ (X.conj().T @ V), n=40)
