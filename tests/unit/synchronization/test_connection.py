"""Sheaves read as connections, and those that are none."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.synchronization.connection import read_connection
from tests.support.helpers import assert_residual


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
def test_transports_and_weights_come_back(dtype):
    rng = np.random.default_rng(3)
    edges = [[0, 1], [2, 1], [2, 2]]
    A = rng.standard_normal((3, 3, 3)) + (
        1j if dtype == np.complex128 else 0
    ) * rng.standard_normal((3, 3, 3))
    U = np.linalg.qr(A)[0].astype(dtype)
    weights = np.array([1e-3, 7.0, 2.0], np.float32)
    connection = read_connection(sc.CellularSheaf.connection(edges, U, weight=weights))
    assert_residual(connection.transports - U, U, n=3, eps=np.finfo(dtype).eps)
    assert_residual(connection.weights / weights - 1, n=3, eps=np.finfo(np.float32).eps)
    assert connection.component.tolist() == [0, 0, 0]


def test_a_change_of_basis_at_both_ends_is_undone():
    rng = np.random.default_rng(4)
    P, Q = np.linalg.qr(rng.standard_normal((2, 3, 3)))[0]
    F = sc.CellularSheaf([[0, 1]], [3 * P], [3 * Q])
    connection = read_connection(F)
    assert_residual(connection.transports[0] - P.T @ Q, n=3)
    assert_residual(connection.weights[0] - 9, 9.0, n=3)


def test_edges_without_weight_join_nothing():
    F = sc.CellularSheaf.connection([[0, 1], [1, 2]], [np.eye(2)] * 2, weight=[0.0, 1.0])
    connection = read_connection(F)
    assert connection.component.tolist() == [0, 1, 1]
    assert connection.roots.tolist() == [0, 1]


def test_reflections_are_told_by_component():
    F = sc.CellularSheaf.signed([[0, 1], [2, 3]], sign=[1, -1])
    assert read_connection(F).turns_only.tolist() == [True, False]


@pytest.mark.parametrize(
    ("tail", "head"),
    [(np.eye(2), np.diag([1.0, 2.0])), (np.eye(2), 2 * np.eye(2)), (np.ones((2, 2)), np.eye(2))],
    ids=["stretched", "two multiples", "singular"],
)
def test_the_edge_that_is_no_rotation_is_named(tail, head):
    maps = np.tile(np.eye(2), (3, 1, 1))
    tails, heads = maps.copy(), maps.copy()
    tails[1], heads[1] = tail, head
    F = sc.CellularSheaf([[0, 1], [2, 1], [0, 2]], tails, heads)
    with pytest.raises(
        ValueError, match=r"`F` must be a connection, but edge 1 \(2 -> 1\) is not one"
    ):
        sc.synchronize(F)


def test_stalks_of_several_sizes_are_named():
    F = sc.CellularSheaf.random(nx.path_graph(3), [2, 3, 2], 2, seed=0)
    with pytest.raises(ValueError, match="vertex 1 has dimension 3 and vertex 0 has 2"):
        sc.synchronize(F)
    F = sc.CellularSheaf.random(nx.path_graph(3), 2, [2, 1], seed=0)
    with pytest.raises(ValueError, match="edge 1 has dimension 1 and vertex 0 has 2"):
        sc.synchronize(F)
    with pytest.raises(ValueError, match=r"must have vertices .*, got CellularSheaf\(n_vertices=0"):
        sc.synchronize(sc.CellularSheaf(np.zeros((0, 2), int), [], []))


@pytest.mark.parametrize("path", ["intel.g2o", Path("intel.g2o")])
def test_a_file_is_to_be_opened_first(path):
    with pytest.raises(
        TypeError, match=r"`F` must be .*: read_g2o\(path, poses=True\) opens a file"
    ):
        sc.synchronize(path)
