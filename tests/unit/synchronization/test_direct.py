"""Problems with fixed roots by one factorization, beside dense least squares."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.synchronization import direct
from sheafcoarsen.synchronization.direct import factored_laplacian, least_energy
from tests.support.helpers import assert_residual
from tests.unit.synchronization.conftest import pose_graph, random_rotations, ring_with_chords


def dense_delta(n, edges, transports, weights):
    """Return the rows sqrt(w) (x_i - U x_j)."""
    d = transports.shape[1]
    delta = np.zeros((len(edges), d, n, d))
    for e, (i, j) in enumerate(edges):
        delta[e, :, i] += np.sqrt(weights[e]) * np.eye(d)
        delta[e, :, j] -= np.sqrt(weights[e]) * transports[e]
    return delta.reshape(len(edges) * d, n * d)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("with_data", [False, True])
def test_it_is_least_squares(d, with_data):
    """Two components, a loop, parallel edges, and an edge between two roots."""
    rng = np.random.default_rng(0)
    ring = np.array(nx.cycle_graph(9).edges)
    edges = np.concatenate([ring, [[0, 4], [4, 0], [3, 3], [0, 0], [0, 5]], ring + 9])
    n, m = 18, len(edges)
    transports = random_rotations(m, d, rng) if d > 1 else rng.choice([-1.0, 1.0], (m, 1, 1))
    weights = rng.uniform(0.5, 2, m)
    roots, at_roots = np.array([0, 5, 9]), rng.standard_normal((3, d, 2))
    data = rng.standard_normal((m, d, 2)) if with_data else None
    x = least_energy(n, edges, transports, weights, roots, at_roots, data)
    np.testing.assert_array_equal(x[roots], at_roots)
    delta = dense_delta(n, edges, transports, weights)
    f = np.zeros((m, d, 2)) if data is None else data
    rest = delta @ x.reshape(n * d, 2) - (np.sqrt(weights)[:, None, None] * f).reshape(m * d, 2)
    free = np.repeat(~np.isin(np.arange(n), roots), d)
    assert_residual(delta.T[free] @ rest, delta, delta, x, n=n * d)


def test_loops_count_on_the_diagonal():
    turn = np.array([[[0.0, -1.0], [1.0, 0.0]]])
    edges = np.array([[0, 1], [1, 1]])
    transports = np.concatenate([turn, turn])
    factors = factored_laplacian(2, edges, transports, np.array([1.0, 3.0]), extra=np.ones(2))
    delta = dense_delta(2, edges, transports, np.array([1.0, 3.0]))
    x = factors.solve(np.eye(4))
    assert_residual((delta.T @ delta + np.eye(4)) @ x - np.eye(4), x, n=4)


def test_where_factors_are_too_large_iterating_takes_over(dim, monkeypatch):
    G, (R, t) = pose_graph(dim, ring_with_chords(30, 20))
    direct_one = sc.synchronize(G, "anchored")
    monkeypatch.setattr(direct, "OPERATIONS", 0)
    edges, transports = np.asarray(G.edges), np.asarray(G.rotations)
    assert factored_laplacian(30, edges, transports, np.ones(len(edges))) is None
    S = sc.synchronize(G, "anchored")
    assert abs(S.rotations - R).max() < 1e-6
    assert abs(S.translations - t).max() < 1e-5
    assert abs(S.translations - direct_one.translations).max() < 1e-5
