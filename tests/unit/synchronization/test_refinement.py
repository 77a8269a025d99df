"""Gauss-Newton."""

import dataclasses

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.synchronization import refinement
from tests.unit.synchronization.conftest import (
    cost_by_hand,
    pose_graph,
    random_rotations,
    ring_with_chords,
)


def test_the_cost_never_rises_and_ends_at_a_stationary_point(dim):
    G, (R, t) = pose_graph(dim, ring_with_chords(30, 30), noise=0.2)
    S = sc.synchronize(G, refine=True)
    assert S.converged
    assert (np.diff(S.costs) <= 0).all()
    assert S.costs[-1] < S.costs[0]
    assert S.cost == pytest.approx(S.costs[-1], rel=1e-12)
    assert S.cost < cost_by_hand(G, R, t)
    again = sc.synchronize(G, refine=True, start=S.rotations)
    assert again.cost == pytest.approx(S.cost, rel=1e-8)


def test_bad_starts_do_not_raise_it_either(dim):
    G, _ = pose_graph(dim, ring_with_chords(30, 30), noise=0.3)
    for seed in range(3):
        start = random_rotations(30, dim, np.random.default_rng(seed))
        S = sc.synchronize(G, refine=True, start=start)
        assert (np.diff(S.costs) <= 0).all()
        assert S.cost < S.costs[0]


def test_steps_are_halved_where_they_would_raise_the_cost(monkeypatch, dim):
    """Without halving, a step from a bad start goes too far."""
    G, _ = pose_graph(dim, ring_with_chords(30, 30), noise=0.3)
    start = random_rotations(30, dim, np.random.default_rng(1))
    free = sc.synchronize(G, refine=True, start=start)
    monkeypatch.setattr(refinement, "HALVINGS", 1)
    assert len(sc.synchronize(G, refine=True, start=start).costs) == 1 < len(free.costs)


def test_unfinished_refinement_says_so(monkeypatch, dim):
    G, _ = pose_graph(dim, ring_with_chords(30, 30), noise=0.3)
    monkeypatch.setattr(refinement, "MOST_STEPS", 1)
    S = sc.synchronize(G, refine=True)
    assert len(S.costs) == 2
    assert not S.converged


@pytest.mark.parametrize("weight", [1e12, 1e14, 1e15, 1e16, 1e18])
def test_a_pendant_edge_of_great_weight_does_not_stop_the_others(dim, weight):
    """Rounding of its residual is larger than the residuals of the ring."""
    G, (R, _) = pose_graph(dim, ring_with_chords(20, 0), noise=0.3)
    F = sc.CellularSheaf.connection(
        np.concatenate([G.edges, [[19, 20]]]),
        np.concatenate([G.rotations, R[:1]]),
        weight=np.append(np.ones(20), weight),
    )
    S = sc.synchronize(F, refine=True, start=np.concatenate([R, R[19:]]))
    assert (np.diff(S.costs) <= 0).all()
    if weight < 1e16:  # above, it may end before
        best = sc.synchronize(F, refine=True).cost
        assert S.cost == pytest.approx(best, rel=1e-3)


def test_the_roots_stay(dim):
    G, _ = pose_graph(dim, [[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], noise=0.2)
    S = sc.synchronize(G, refine=True)
    for root in (0, 3):
        np.testing.assert_array_equal(S.translations[root], 0)
        assert abs(S.rotations[root] - np.eye(dim)).max() < 1e-15


@pytest.mark.parametrize("unit", [1e-100, 1e-8, 1e8, 1e60])
def test_units_of_length_do_not_matter(dim, unit):
    """Turns and moves are solved for together; in other units their sizes are far apart."""
    G, _ = pose_graph(dim, ring_with_chords(30, 30), noise=0.2)
    sightings = sc.Sightings([[0, 0], [3, 0]], np.ones((2, dim)), [1.0, 2.0])
    G = dataclasses.replace(G, sightings=sightings)
    scaled = dataclasses.replace(
        G,
        translations=unit * G.translations,
        tau=G.tau / unit**2,
        sightings=sc.Sightings(sightings.edges, unit * sightings.points, sightings.tau / unit**2),
    )
    S, other = (sc.synchronize(graph, refine=True) for graph in (G, scaled))
    assert len(other.costs) == len(S.costs)
    np.testing.assert_allclose(other.costs, S.costs, rtol=1e-10)
    change = other.translations / unit - S.translations
    assert np.linalg.norm(change) <= 1e-9 * np.linalg.norm(S.translations)
