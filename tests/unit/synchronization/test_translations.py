"""Places of poses and landmarks."""

import dataclasses

import numpy as np

import sheafcoarsen as sc
from sheafcoarsen.synchronization.translations import measured_points, place_roots, places
from tests.unit.synchronization.conftest import pose_graph, ring_with_chords


def test_true_places_come_back(dim):
    G, (R, t) = pose_graph(dim, ring_with_chords(20, 10))
    assert abs(places(G, R, np.array([0])) - t).max() < 1e-8


def test_it_is_the_minimum_over_places(dim):
    G, (R, _) = pose_graph(dim, ring_with_chords(12, 8), noise=0.3)
    t = places(G, R, np.array([0]))
    ends, points, tau = measured_points(G)

    def cost(t):
        off = t[ends[:, 1]] - t[ends[:, 0]] - np.einsum("eij,ej->ei", R[ends[:, 0]], points)
        return (tau * (off**2).sum(axis=1)).sum()

    least = cost(t)
    rng = np.random.default_rng(1)
    for _ in range(5):
        step = 1e-3 * rng.standard_normal(t.shape)
        assert cost(t + step) > least


def test_trust_multiplies_tau(dim):
    G, (R, _) = pose_graph(dim, ring_with_chords(12, 8), noise=0.3)
    trust = np.random.default_rng(0).uniform(0.1, 1, len(G.edges))
    H = dataclasses.replace(G, tau=G.tau * trust)
    roots = np.array([0])
    assert abs(places(G, R, roots, trust) - places(H, R, roots)).max() < 1e-9
    assert abs(places(G, R, roots) - places(H, R, roots)).max() > 1e-3


def test_landmarks_join_components_and_are_placed(dim):
    G, (R, t) = pose_graph(dim, [[0, 1], [2, 3]])
    mark = np.arange(1.0, dim + 1)
    sees = [0, 1, 2]
    points = np.array([R[i].T @ (mark - t[i]) for i in sees])
    H = dataclasses.replace(G, sightings=sc.Sightings([[i, 0] for i in sees], points, 2.0))
    assert place_roots(G).tolist() == [0, 2]
    assert place_roots(H).tolist() == [0]
    found = places(H, R, place_roots(H))
    assert found.shape == (5, dim)
    assert abs(found - np.vstack([t, mark])).max() < 1e-8
