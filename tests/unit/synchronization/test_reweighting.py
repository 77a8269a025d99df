"""Edges that fit the others worst."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import sheafcoarsen as sc
from tests.unit.synchronization.conftest import pose_graph, random_rotations, ring_with_chords

PLANTED = 12


def planted(dim, what, seed=0):
    """Return a graph on whose chords random measurements were planted, and those edges."""
    rng = np.random.default_rng(seed)
    G, _ = pose_graph(dim, ring_with_chords(60, 80), noise=0.02)
    bad = 60 + rng.choice(80, PLANTED, replace=False)
    R, t = G.rotations.copy(), G.translations.copy()
    if what != "translations":
        R[bad] = random_rotations(PLANTED, dim, rng)
    if what != "rotations":
        t[bad] = 5 * rng.standard_normal((PLANTED, dim))
    return dataclasses.replace(G, rotations=R, translations=t), bad


@pytest.mark.parametrize("what", ["both", "rotations", "translations"])
def test_planted_outliers_come_first(dim, what):
    G, bad = planted(dim, what)
    S = sc.synchronize(G)
    ranked = S.outliers()
    assert sorted(ranked) == list(range(len(G.edges)))
    assert np.isin(bad, ranked[: PLANTED + 2]).sum() >= PLANTED - 1
    if what == "both":  # where a sheaf has no translations, rotations tell
        assert np.isin(bad, sc.synchronize(G.sheaf).outliers()[: PLANTED + 4]).sum() >= PLANTED - 3


def test_it_is_better_than_the_residuals_of_least_squares(dim):
    found = plain = 0
    for seed in range(3):
        G, bad = planted(dim, "both", seed)
        S = sc.synchronize(G)
        found += np.isin(S.outliers()[:PLANTED], bad).sum()
        plain += np.isin(np.argsort(-S.angles)[:PLANTED], bad).sum()
    assert found > plain


def test_a_wrong_translation_lowers_the_weight_of_its_rotation(dim):
    """Where many chords are wrong, rotations alone would find three quarters of them."""
    found = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        G, _ = pose_graph(dim, ring_with_chords(100, 60), noise=0.1)
        bad = 100 + rng.choice(60, 20, replace=False)
        R, t = G.rotations.copy(), G.translations.copy()
        t[bad] += 2 * t.std() * rng.standard_normal((20, dim))
        turns = Rotation.from_rotvec(np.outer(rng.uniform(0.3, 3, 20), [0, 0, 1])).as_matrix()
        R[bad] = R[bad] @ turns[:, :dim, :dim]
        S = sc.synchronize(dataclasses.replace(G, rotations=R, translations=t))
        found += np.isin(bad, S.outliers()[:20]).sum()
    assert found >= 64


def test_edges_without_outliers_and_without_edges_are_ranked_too():
    G, _ = pose_graph(2, ring_with_chords(5, 0))
    assert len(sc.synchronize(G).outliers()) == 5
    lonely = sc.PoseGraph(
        np.zeros((0, 2), int), np.zeros((0, 2, 2)), np.zeros((0, 2)), n_vertices=3
    )
    assert sc.synchronize(lonely, refine=True).outliers().tolist() == []
