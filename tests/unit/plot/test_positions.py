"""Discs of clusters find places apart from each other."""

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen.plot.positions import _apart, _strongest


@pytest.mark.parametrize("n", [2, 40])
def test_discs_are_pushed_apart(n):
    rng = np.random.default_rng(12)
    radii = rng.uniform(1, 5, n)
    centres = _apart(0.1 * rng.random((n, 2)), radii, np.zeros((0, 2), dtype=int))
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=2) + 100 * np.eye(n)
    overlap = radii[:, None] + radii[None] - distances
    assert overlap.max() < 0.1


def test_linked_discs_are_near():
    pairs = np.array([[0, 1], [1, 2]])
    centres = _apart(np.array([[0.0, 0], [1, 0], [2, 0]]), np.array([3.0, 5, 1]), pairs)
    between = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    assert (between > [8, 6]).all()
    assert (between < [20, 20]).all()


def test_the_strongest_links_are_kept():
    """Three of each cluster, and a tree that joins all: no weaker ones."""
    pairs = np.array([(a, b) for a in range(12) for b in range(a + 1, 12)])
    strength = np.random.default_rng(0).uniform(1, 10, len(pairs))
    strength[pairs[:, 0] == 0] = 1e-3  # among the strongest of none
    total = np.array([strength[(pairs == a).any(axis=1)].sum() for a in range(12)])
    relative = strength / np.sqrt(total[pairs].prod(axis=1))
    wanted = np.zeros(len(pairs), bool)
    for a in range(12):
        mine = np.flatnonzero((pairs == a).any(axis=1))
        wanted[mine[np.argsort(relative[mine])[-3:]]] = True
    tree = nx.maximum_spanning_edges(
        nx.Graph((a, b, {"weight": w}) for (a, b), w in zip(pairs.tolist(), relative, strict=True))
    )
    for a, b, _ in tree:
        wanted |= (pairs == sorted((a, b))).all(axis=1)
    assert np.array_equal(_strongest(pairs, strength, 12), wanted)


def test_many_discs_in_one_place_come_apart():
    """Also beside one that is far larger than the others."""
    n = 3000
    radii = np.ones(n)
    radii[0] = 60.0
    centres = _apart(np.random.default_rng(2).random((n, 2)), radii, np.zeros((0, 2), dtype=int))
    nearest = np.sort(np.linalg.norm(centres[1:200, None] - centres[None, 1:], axis=2), axis=1)
    assert np.median(nearest[:, 1]) > 1.4
