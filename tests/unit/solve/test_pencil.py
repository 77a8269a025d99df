"""The pencil (L, M) and its solvers."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.solve import EigenProblem, Pencil
from sheafcoarsen.solve import eigensolver as spectrum_module
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
    monkeypatch.setattr(spectrum_module, "COUNTED_UP_TO", 100)
    counted = []
    real = pencil_module.elimination_order
    monkeypatch.setattr(
        pencil_module, "elimination_order", lambda *args: counted.append(args) or real(*args)
    )
    for graph, method, looks in (
        (nx.grid_2d_graph(30, 30), "multilevel", 0),
        (nx.path_graph(900), "direct", 1),
    ):
        F = sc.CellularSheaf.constant(nx.convert_node_labels_to_integers(graph))
        problem = EigenProblem(Pencil(sc.sheaf.unit_sheaf(F)[0]), 3, 1e-8)
        assert problem.chosen() == method
        assert len(counted) == looks


@pytest.mark.parametrize("m", [2, 5, 8])
@pytest.mark.parametrize("dtype", [float, complex])
def test_resolved_pairs_are_correct_if_delta_has_fewer_rows_than_columns(dtype, m):
    """The coboundary has 3 rows and 8 columns; the first m pairs are given in another basis."""
    delta = np.random.default_rng(0).standard_normal((2, 3, 8)) * [1, 0.1, 1e-4, 1, 1, 1, 1, 1]
    delta = delta[0] + 1j * delta[1] if dtype is complex else delta[0]
    values, X = np.linalg.eigh(delta.conj().T @ delta)
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((m, m)))[0]
    found, Y = pencil_module.resolved(delta, values, np.hstack([X[:, :m] @ Q, X[:, m:]]), m)
    assert (np.diff(found[:m]) >= 0).all()
    assert abs(np.linalg.norm(delta @ Y, axis=0) ** 2 - found).max() <= 1e-13 * values[-1]
    assert abs(found - values).max() <= 1e-13 * values[-1]
