"""Sheaves read as connections, and residuals of their edges."""

import networkx as nx
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import sheafcoarsen as sc
from sheafcoarsen.synchronization.connection import angles_of, read_connection
from tests.support.helpers import assert_residual
from tests.unit.synchronization.conftest import plane


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_transports_and_weights_come_back(dtype):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((2, 3, 3, 3)) + 1j * rng.standard_normal((2, 3, 3, 3))
    P, Q = np.linalg.qr(A if np.dtype(dtype).kind == "c" else A.real)[0].astype(dtype)
    weights = np.array([1e-3, 7.0, 2.0], np.float32)
    roots = np.sqrt(weights)[:, None, None]
    edges = [[0, 1], [2, 1], [2, 2]]
    connection = read_connection(sc.CellularSheaf(edges, roots * P, roots * Q))
    eps = np.finfo(dtype).eps
    U = P.conj().swapaxes(1, 2) @ Q
    assert_residual(connection.transports - U, U, n=3, eps=eps)
    assert_residual(connection.weights / weights - 1, n=3, eps=np.finfo(np.float32).eps)
    assert connection.component.tolist() == [0, 0, 0]


@pytest.mark.parametrize("angle", [0.0, 1.0])
def test_edges_of_weight_zero_join_nothing_and_have_no_angle(angle):
    """They say nothing, so that poses neither agree nor disagree with them."""
    heads, tails = plane(np.array([0, 0, angle, angle])), np.tile(np.eye(2), (4, 1, 1))
    tails[2:] = heads[2:] = 0
    heads[0] = plane(angle)
    S = sc.synchronize(sc.CellularSheaf([(0, 1), (1, 2), (0, 2), (2, 3)], tails, heads))
    assert np.isnan(S.angles).tolist() == [False, False, True, True]
    assert S.edge_costs[2:].tolist() == [0, 0]
    assert S.component.tolist() == [0, 0, 0, 1]


def test_reflections_count_in_their_component_only():
    F = sc.CellularSheaf.signed([[0, 1], [2, 3]], sign=[1, -1])
    assert read_connection(F).proper.tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("tail", "head"),
    [(np.eye(2), np.diag([1.0, 2.0])), (np.eye(2), 2 * np.eye(2)), (np.ones((2, 2)), np.eye(2))],
    ids=["stretched", "two multiples", "singular"],
)
def test_the_edge_that_is_no_rotation_is_named(tail, head):
    maps = np.tile(np.eye(2), (2, 3, 1, 1))
    maps[:, 1] = tail, head
    F = sc.CellularSheaf([[0, 1], [2, 1], [0, 2]], *maps)
    message = r"`F` must be a connection, but edge 1 \(2 -> 1\) is not one"
    with pytest.raises(ValueError, match=message):
        sc.synchronize(F)


@pytest.mark.parametrize(
    ("F", "message"),
    [
        (
            sc.CellularSheaf.random(nx.path_graph(3), [2, 3, 2], 2, seed=0),
            "vertex 1 has dimension 3 and vertex 0 has 2",
        ),
        (
            sc.CellularSheaf.random(nx.path_graph(3), 2, [2, 1], seed=0),
            "edge 1 has dimension 1 and vertex 0 has 2",
        ),
        (
            sc.CellularSheaf(np.zeros((0, 2), int), [], []),
            r"must have vertices .*, got CellularSheaf\(n_vertices=0",
        ),
    ],
    ids=["vertex", "edge", "none"],
)
def test_stalks_of_several_sizes_are_named(F, message):
    with pytest.raises(ValueError, match=message):
        sc.synchronize(F)


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-8, 0.3, 2.0, np.pi - 1e-9, np.pi])
def test_angles_are_exact_from_zero_to_pi(angle):
    axis = np.array([2.0, -1, 2]) / 3
    turns = Rotation.from_rotvec([angle * axis, -angle * axis]).as_matrix()
    assert_residual(angles_of(turns) - angle, n=3)
    assert_residual(angles_of(plane(np.array([angle, -angle]))) - angle, n=2)


def test_other_groups_have_the_largest_angle():
    block = np.zeros((4, 4))
    block[:2, :2], block[2:, 2:] = plane(0.4), plane(1.1)
    assert_residual(angles_of(block[None]) - 1.1, n=4)
    assert angles_of(np.array([[[1.0]], [[-1.0]]])).tolist() == [0, np.pi]
    assert angles_of(np.diag([1.0, -1])[None]).tolist() == [np.pi]
    assert_residual(angles_of(np.exp([[[0.7j]]])) - 0.7, n=1)
