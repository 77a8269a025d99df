"""Discs of clusters find places apart from each other."""

import numpy as np
import pytest

from sheafcoarsen.plot.places import _apart, _strongest


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
    pairs = np.array([(a, b) for a in range(12) for b in range(a + 1, 12)])
    strength = np.ones(len(pairs))
    strength[(pairs[:, 1] - pairs[:, 0]) == 1] = 10.0  # a path, in a complete graph
    kept = _strongest(pairs, strength, 12)
    assert kept[strength == 10].all()
    assert kept.sum() < len(pairs)


def test_many_discs_in_one_place_come_apart():
    """Also beside one that is far larger than the others."""
    n = 3000
    radii = np.ones(n)
    radii[0] = 60.0
    centres = _apart(np.random.default_rng(2).random((n, 2)), radii, np.zeros((0, 2), dtype=int))
    nearest = np.sort(np.linalg.norm(centres[1:200, None] - centres[None, 1:], axis=2), axis=1)
    assert np.median(nearest[:, 1]) > 1.4
