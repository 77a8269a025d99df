"""Angles, offsets and costs of edges."""

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.synchronization.connection import connection_from, read_connection
from sheafcoarsen.synchronization.residuals import (
    angles_of,
    edge_turns,
    rotation_costs,
    squared_distances,
)
from tests.support.helpers import assert_residual
from tests.unit.synchronization.conftest import pose_graph, random_rotations, ring_with_chords


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-8, 0.3, 2.0, np.pi - 1e-9, np.pi])
def test_angles_are_exact_from_zero_to_pi(angle):
    from scipy.spatial.transform import Rotation

    axis = np.array([2.0, -1, 2]) / 3
    turns = Rotation.from_rotvec([angle * axis, -angle * axis]).as_matrix()
    assert_residual(angles_of(turns) - angle, n=3)
    c, s = np.cos(angle), np.sin(angle)
    assert_residual(angles_of(np.array([[[c, -s], [s, c]], [[c, s], [-s, c]]])) - angle, n=2)


def test_other_groups_have_the_largest_angle():
    def plane(a):
        return np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])

    block = np.zeros((4, 4))
    block[:2, :2], block[2:, 2:] = plane(0.4), plane(1.1)
    assert_residual(angles_of(block[None]) - 1.1, n=4)
    assert angles_of(np.array([[[1.0]], [[-1.0]]])).tolist() == [0, np.pi]
    assert angles_of(np.diag([1.0, -1])[None]).tolist() == [np.pi]
    assert_residual(angles_of(np.exp([[[0.7j]]])) - 0.7, n=1)


def test_true_poses_have_none(dim):
    G, (R, t) = pose_graph(dim, ring_with_chords(9, 5))
    connection = read_connection(G.sheaf)
    assert_residual(edge_turns(connection, R) - np.eye(dim), n=dim)
    assert_residual(squared_distances(connection_from(G), R, t) ** 0.5, 10.0, n=dim)
    assert_residual(rotation_costs(connection, R).sum() ** 0.5, 10.0, n=dim)


def test_costs_by_hand(dim):
    G, _ = pose_graph(dim, ring_with_chords(9, 5), noise=0.5)
    R = random_rotations(9, dim, np.random.default_rng(6))
    costs = rotation_costs(read_connection(G.sheaf), R)
    for e, (i, j) in enumerate(G.edges):
        wanted = G.kappa[e] * np.linalg.norm(R[j] - R[i] @ G.rotations[e]) ** 2
        assert_residual(costs[e] - wanted, G.kappa[e], 8.0, n=dim)


@pytest.mark.parametrize("angle", [0.0, 1.0])
def test_an_edge_of_weight_zero_has_no_angle(angle):
    """It says nothing, so that poses neither agree nor disagree with it."""
    turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    maps = np.tile(np.eye(2), (4, 1, 1))
    tails, heads = maps.copy(), maps.copy()
    heads[0] = turn
    tails[2] = heads[2] = 0
    F = sc.CellularSheaf([(0, 1), (1, 2), (0, 2), (2, 3)], tails, heads)
    S = sc.synchronize(F)
    assert np.isnan(S.angles).tolist() == [False, False, True, False]
    assert not S.edge_costs[2]
