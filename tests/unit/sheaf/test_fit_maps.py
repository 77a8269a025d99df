"""Sheaves fitted to signals: planted maps are recovered, and the energy is minimal."""

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import sheafcoarsen as sc
from tests.support.helpers import assert_residual, normal

SCALES = {"float32": 1e-30, "float64": 1e200, "complex64": 1e30, "complex128": 1e-300}
EDGES = np.array([[0, 1], [2, 1], [2, 3], [3, 0], [1, 3]])


def signals(F, s, seed=0):
    """Return (1 + 10 L)^{-1} g as an array (n, d, s)."""
    g = np.random.default_rng(seed).standard_normal((F.dim_c0, s))
    L = sc.laplacian(F).toarray()
    return np.linalg.solve(np.eye(len(L)) + 10 * L, g).reshape(F.n_vertices, -1, s)


def planted(dtype, d=3, s=7, noise=0.0):
    """Return orthonormal frames g_v and signals g_v c with noise."""
    rng = np.random.default_rng(3)
    g = np.linalg.qr(normal(rng, (4, d, d), dtype))[0]
    X = g @ normal(rng, (d, s), dtype)
    return g, X + noise * normal(rng, X.shape, dtype)


@pytest.mark.parametrize("dtype", SCALES)
def test_planted_transports_are_recovered_at_any_scale(dtype):
    g, X = planted(dtype)
    scales = np.array([1, SCALES[dtype], 1, SCALES[dtype] ** 0.5], X.real.dtype)
    X = X * scales[:, None, None]
    F = sc.fit_connection(X, EDGES)
    assert (F.dtype, F.edges.tolist()) == (dtype, EDGES.tolist())
    for e, (u, v) in enumerate(EDGES):
        assert_residual(F.tail_map(e) - g[v] @ g[u].conj().T, n=7, eps=np.finfo(dtype).eps)
        np.testing.assert_array_equal(F.head_map(e), np.eye(3))


def test_fitted_connection_minimizes_the_energy_of_noisy_signals():
    _, X = planted(float, noise=0.3)
    F = sc.fit_connection(X, EDGES)
    found = sc.edge_energy(F, X.reshape(12, 7)).sum(axis=1)
    for e, (u, v) in enumerate(EDGES):
        R = scipy.linalg.orthogonal_procrustes(X[u].T, X[v].T)[0].T
        least = np.linalg.norm(R @ X[u] - X[v]) ** 2
        assert abs(found[e] - least) <= 1e-12 * least


@pytest.mark.parametrize("dtype", SCALES)
def test_fitted_maps_have_orthonormal_rows_and_minimum_energy(dtype):
    """Energies below the rounding of Gram matrices, of noise 1e-9, are accurate, too."""
    rng, eps = np.random.default_rng(0), np.finfo(dtype).eps
    mixed = [normal(rng, (d, 9), dtype) * SCALES[dtype] for d in (1, 2, 3, 2)]
    for X, n, scale in ((mixed, 2, SCALES[dtype]), (planted(dtype, noise=1e-9)[1], 3, 1.0)):
        F = sc.fit_maps(X, EDGES, n)
        assert (F.dtype, F.vertex_dims.tolist()) == (dtype, [len(X_v) for X_v in X])
        for e, (u, v) in enumerate(EDGES):
            C = np.hstack([F.tail_map(e), -F.head_map(e)])
            assert_residual(C @ C.conj().T - np.eye(n), n=len(C.T), eps=eps)
            Z = np.vstack([X[u], X[v]]).astype(complex) / scale
            least = np.linalg.norm(np.linalg.svd(Z)[1][-n:])
            assert abs(np.linalg.norm(C @ Z) - least) <= 100 * eps * np.linalg.norm(Z)


def test_signs_of_large_signals_do_not_matter():
    X = [1e200 * abs(x) for x in planted(float)[1]]
    F, G = (sc.fit_maps([sign * x for x in X], EDGES, 2) for sign in (1, -1))
    np.testing.assert_array_equal(F.tail_data, G.tail_data)


def test_kept_edges_have_minimum_total_energy():
    graph = nx.gnm_random_graph(7, 8, seed=4)
    X = signals(sc.gallery.bundle(graph, 3, noise=0.1, seed=0), 100)
    pairs = np.array(list(itertools.combinations(range(7), 2)))
    F = sc.fit_maps(X, pairs, 3, n_edges=8)
    energies = [(np.linalg.svd(np.vstack(X[pair]))[1][3:] ** 2).sum() for pair in pairs]
    choices = np.array(list(itertools.combinations(range(len(pairs)), 8)))
    least = np.array(energies)[choices].sum(axis=1).min()
    assert abs(sc.energy(F, X.reshape(21, 100)).sum() - least) <= 1e-8 * least
    assert F.n_edges == 8
    assert len({*map(tuple, F.edges.tolist())} & {*graph.edges}) >= 6


def test_energies_of_edges_at_different_scales_are_compared():
    """An edge of tiny signals has less energy than one whose large signals nearly agree."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 2, 9))
    X[:2] *= 1e-180
    X[3] = X[2] + 1e-3 * X[3]
    edges = [[4, 5], [2, 3], [0, 1]]
    assert sc.fit_maps(X, edges, 2, n_edges=1).edges.tolist() == [[0, 1]]
    assert sc.fit_maps(X, edges, 2, n_edges=2).edges.tolist() == [[2, 3], [0, 1]]
    for pairs in ([[4, 5], [2, 4]], [[2, 4], [4, 5]]):  # both energies overflow
        wanted = sc.fit_maps(X, pairs, 2, n_edges=1).edges
        assert np.array_equal(sc.fit_maps(6e307 * X, pairs, 2, n_edges=1).edges, wanted)
    X[4] *= 1e-200
    X[5] *= 1e150  # all signals vanish except at vertex 4
    F = sc.fit_maps(X, edges, 2)
    assert_residual(F.tail_map(0) @ F.tail_map(0).T - np.eye(2), n=2, eps=np.finfo(float).eps)
    assert abs(F.head_map(0)).max() < 1e-15


def test_maps_that_are_not_unique_warn():
    _, X = planted(float, s=2)
    with pytest.warns(sc.SingularProblemWarning, match=r"5 edges \(\(0, 1\), \(2, 1\), ...\)"):
        sc.fit_connection(X, EDGES)
    with pytest.warns(sc.SingularProblemWarning, match="with 2 signals, more than 3 rows"):
        sc.fit_maps(X, EDGES, 3)
    sc.fit_maps(X, EDGES, 4)  # all that has no energy
    X = np.eye(4).reshape(2, 2, 4)
    with pytest.warns(sc.TiedModesWarning, match="eigenvalues 1 and 2"):
        sc.fit_maps(X, [[0, 1]], 1)
    sc.fit_maps(X, [[0, 1]], 4)
    more = np.random.default_rng(0).standard_normal((2, 2, 4)) / 100
    sc.fit_maps(np.concatenate([X, more]), [[0, 1], [2, 3]], 1, n_edges=1)  # leaves that edge out
    _, X = planted(float)
    with pytest.warns(sc.TiedModesWarning, match="only one of them is among the 2 kept"):
        sc.fit_maps(X, EDGES, 3, n_edges=2)


def test_no_edges_and_empty_stalks_are_allowed():
    X = np.random.default_rng(0).standard_normal((4, 3, 7))
    assert sc.fit_maps(X, np.zeros((0, 2), int), 2).dim_c1 == 0
    assert sc.fit_connection(X, np.zeros((0, 2), int)).n_vertices == 4
    F = sc.fit_maps([np.zeros((0, 3)), np.eye(3)], [[0, 1]], 3)
    assert F.tail_map(0).shape == (3, 0)
