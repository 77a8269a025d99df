"""Gauss-Newton: the sheaf of linearized residuals, and steps."""

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.synchronization import refinement
from sheafcoarsen.synchronization._pose_graph import connection_from
from sheafcoarsen.synchronization.connection import Poses
from sheafcoarsen.synchronization.refinement import PoseSheaf
from tests.support.helpers import assert_residual
from tests.unit.synchronization.conftest import (
    cost_by_hand,
    pose_graph,
    random_rotations,
    ring_with_chords,
    sighted,
)

EDGES = [[0, 1], [2, 1], [2, 3], [3, 0], [0, 2], [1, 1]]
SEEN = [[0, 0], [3, 0], [1, 1]]


@pytest.mark.parametrize("what", ["rotations", "poses", "landmarks"])
def test_the_coboundary_is_the_derivative_of_residuals_whose_squares_are_the_cost(dim, what):
    G, poses = pose_graph(dim, EDGES, noise=0.4)
    rng = np.random.default_rng(11)
    if what == "landmarks":
        G = sighted(G, poses, rng.standard_normal((2, dim)), SEEN, 0.4, [1.0, 2.0, 3.0])
    R, t = random_rotations(4, dim, rng), rng.standard_normal((6, dim))
    problem = PoseSheaf(connection_from(G.sheaf if what == "rotations" else G))
    here = Poses(R, {"rotations": None, "poses": t[:4], "landmarks": t}[what])
    sheaf, r = problem.at(here)
    stalk = (1 if dim == 2 else 3) + dim * (what != "rotations")
    assert sheaf.vertex_dims.tolist() == [stalk] * 4 + [dim] * (2 * (what == "landmarks"))
    cost = sc.synchronize(G.sheaf, start=R).cost if what == "rotations" else cost_by_hand(G, R, t)
    assert_residual(r @ r - cost, cost, n=len(r))
    x = rng.standard_normal(sheaf.dim_c0)
    slope = sc.coboundary(sheaf) @ x
    h = 1e-5
    ahead, behind = (problem.at(problem.after(here, s * h * x)) for s in (1, -1))
    assert abs(-(ahead[1] - behind[1]) / (2 * h) - slope).max() < 1e-7 * (1 + abs(slope).max())
    assert ahead[0].edges is sheaf.edges
    assert abs(ahead[0].tail_data - sheaf.tail_data).max() > 0
    assert_residual(problem.at(problem.after(here, 0 * x))[1] - r, r, n=len(r))


def test_the_cost_never_rises_and_ends_at_a_stationary_point(dim):
    G, (R, t) = pose_graph(dim, ring_with_chords(30, 30), noise=0.2)
    S = sc.synchronize(G, refine=True)
    assert S.converged
    assert S.cost == pytest.approx(S.costs[-1], rel=1e-12)
    assert S.cost < cost_by_hand(G, R, t)
    again = sc.synchronize(G, refine=True, start=S.rotations)
    assert again.cost == pytest.approx(S.cost, rel=1e-8)
    starts = [random_rotations(30, dim, np.random.default_rng(seed)) for seed in range(3)]
    for result in (S, *(sc.synchronize(G, refine=True, start=start) for start in starts)):
        assert (np.diff(result.costs) <= 0).all()
        assert result.cost < result.costs[0]


def test_steps_are_halved_where_they_would_raise_the_cost_and_limited(monkeypatch, dim):
    """Without halving, a step from a bad start goes too far."""
    G, _ = pose_graph(dim, ring_with_chords(30, 30), noise=0.3)
    start = random_rotations(30, dim, np.random.default_rng(1))
    with monkeypatch.context() as patch:
        patch.setattr(refinement, "HALVINGS", 1)
        assert len(sc.synchronize(G, refine=True, start=start).costs) == 1
    monkeypatch.setattr(refinement, "MOST_STEPS", 1)
    S = sc.synchronize(G, refine=True, start=start)
    assert (len(S.costs), S.converged) == (2, False)


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
