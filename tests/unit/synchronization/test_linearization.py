"""The pose sheaf: derivatives, and steps."""

import dataclasses

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.synchronization.connection import connection_from, read_connection
from sheafcoarsen.synchronization.linearization import PoseSheaf
from tests.support.helpers import assert_residual
from tests.unit.synchronization.conftest import cost_by_hand, pose_graph, random_rotations

EDGES = [[0, 1], [2, 1], [2, 3], [3, 0], [0, 2], [1, 1]]
SEEN = [[0, 0], [3, 0], [1, 1]]


def problem(dim, landmarks):
    G, _ = pose_graph(dim, EDGES, noise=0.4)
    rng = np.random.default_rng(11)
    if landmarks:
        points = rng.standard_normal((3, dim))
        G = dataclasses.replace(G, sightings=sc.Sightings(SEEN, points, [1.0, 2.0, 3.0]))
    sheaf = PoseSheaf(connection_from(G))
    places = rng.standard_normal((6 if landmarks else 4, dim))
    return G, sheaf, random_rotations(4, dim, rng), places


@pytest.mark.parametrize("landmarks", [False, True])
def test_the_squared_residuals_are_the_cost(dim, landmarks):
    G, poses, R, t = problem(dim, landmarks)
    r = poses.at(R, t)[1]
    wanted = cost_by_hand(G, R, t)
    if landmarks:
        for (i, k), z, tau in zip(SEEN, G.sightings.points, G.sightings.tau, strict=True):
            wanted += tau * np.linalg.norm(t[4 + k] - t[i] - R[i] @ z) ** 2
    assert_residual(r @ r - wanted, wanted, n=len(r))


@pytest.mark.parametrize("landmarks", [False, True])
def test_the_coboundary_is_the_derivative(dim, landmarks):
    _, poses, R, t = problem(dim, landmarks)
    sheaf, r = poses.at(R, t)
    stalks = [3 if dim == 2 else 6] * 4 + [dim] * (2 * landmarks)
    assert sheaf.vertex_dims.tolist() == stalks
    x = np.random.default_rng(3).standard_normal(sheaf.dim_c0)
    slope = sc.coboundary(sheaf) @ x
    h = 1e-5
    ahead, behind = (poses.at(*poses.after(R, t, s * h * x))[1] for s in (1, -1))
    assert abs(-(ahead - behind) / (2 * h) - slope).max() < 1e-7 * (1 + abs(slope).max())
    assert_residual(poses.at(*poses.after(R, t, 0 * x))[1] - r, r, n=len(r))


def test_rotations_alone(dim):
    G, _ = pose_graph(dim, EDGES, noise=0.4)
    poses = PoseSheaf(read_connection(G.sheaf))
    R = random_rotations(4, dim, np.random.default_rng(1))
    sheaf, r = poses.at(R, None)
    assert set(sheaf.vertex_dims.tolist()) == {1 if dim == 2 else 3}
    assert_residual(r @ r - sc.synchronize(G.sheaf, start=R).cost, r @ r, n=len(r))


def test_the_topology_is_kept(dim):
    _, poses, R, t = problem(dim, False)
    first = poses.at(R, t)[0]
    second = poses.at(R, 2 * t)[0]
    assert first.edges is second.edges
    assert abs(first.tail_data - second.tail_data).max() > 0
