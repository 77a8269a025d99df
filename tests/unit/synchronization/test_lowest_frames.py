"""Modes by one factorization and Lanczos, beside the eigensolver for all sheaves."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.synchronization import lowest_frames as module
from sheafcoarsen.synchronization.connection import read_connection
from sheafcoarsen.synchronization.lowest_frames import lowest_frames
from tests.support.helpers import subspace_difference
from tests.unit.synchronization.conftest import pose_graph, ring_with_chords

GRAPHS = {
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(14, 11)),
    "ring with chords": nx.cycle_graph(150),
    "random": nx.connected_watts_strogatz_graph(120, 4, 0.2, seed=2),
}
GRAPHS["ring with chords"].add_edges_from((k, k + 60) for k in range(0, 90, 9))


def connection_on(graph, dim, noise, loops=False):
    edges = np.array(graph.edges)
    if loops:
        edges = np.concatenate([edges, [[3, 3], [7, 7]]])
    F = sc.gallery.bundle(edges, dim=dim, noise=noise, seed=0)
    return F, read_connection(F)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
@pytest.mark.parametrize(("dim", "noise"), [(1, 0), (2, 0.2), (3, 0.0), (3, 0.2)])
def test_it_finds_what_the_eigensolver_finds(graph, dim, noise, monkeypatch):
    F, connection = connection_on(graph, dim, noise)
    monkeypatch.setattr(module, "SMALLEST", 0)
    values, modes = lowest_frames(connection, 0)
    dense, vectors = np.linalg.eigh(sc.laplacian(F).toarray())
    assert values.shape == (dim + 1,)
    rounding = len(dense) * np.finfo(float).eps * dense[-1]
    np.testing.assert_allclose(values, dense[: dim + 1], rtol=1e-4, atol=rounding)
    assert subspace_difference(modes, vectors[:, :dim]) <= module.FRAME_ERROR


def test_loops_are_part_of_the_laplacian(monkeypatch):
    F, connection = connection_on(GRAPHS["grid"], 2, 0.3, loops=True)
    monkeypatch.setattr(module, "SMALLEST", 0)
    values, _ = lowest_frames(connection, 0)
    dense = np.linalg.eigvalsh(sc.laplacian(F).toarray())
    np.testing.assert_allclose(values, dense[:3], rtol=1e-4)


def test_reflections_are_no_complex_numbers(monkeypatch):
    """In the plane turns are; a component with reflections takes the way of all others."""
    F, connection = connection_on(GRAPHS["random"], 2, 0.2)
    head = F.head_data.reshape(-1, 2, 2).copy()
    head[5] = head[5] @ np.diag([1.0, -1.0])
    F = F.with_maps(F.tail_data, head)
    connection = read_connection(F)
    assert not connection.turns_only.all()
    monkeypatch.setattr(module, "SMALLEST", 0)
    values, _ = lowest_frames(connection, 0)
    dense = np.linalg.eigvalsh(sc.laplacian(F).toarray())
    np.testing.assert_allclose(values, dense[:3], rtol=1e-4)


def test_where_it_is_not_the_way(monkeypatch):
    """Small ones, many dimensions, and complex numbers; and steps that lead nowhere."""
    for F in (
        sc.gallery.cycle(6, 0.6),
        sc.gallery.bundle(GRAPHS["random"], dim=4, seed=0),
        sc.CellularSheaf.connection(np.array(GRAPHS["random"].edges), np.full((240, 1, 1), 1j)),
    ):
        assert lowest_frames(read_connection(F), 0) is None
    _, connection = connection_on(GRAPHS["random"], 3, 0.2)
    with monkeypatch.context() as patch:
        patch.setattr(module, "STEPS", 1)
        assert lowest_frames(connection, 0) is None
    monkeypatch.setattr(module, "OPERATIONS", 0)
    assert lowest_frames(connection, 0) is None


def test_rotations_and_gap_do_not_depend_on_the_way(monkeypatch):
    F, _ = connection_on(GRAPHS["random"], 3, 0.1)
    S = sc.synchronize(F)
    monkeypatch.setattr(module, "SMALLEST", 10_000)
    T = sc.synchronize(F)
    assert abs(S.rotations - T.rotations).max() < 1e-5
    assert S.gap == pytest.approx(T.gap, rel=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_gap_where_weights_differ_by_twelve_decades(seed, dim):
    """The mode behind it has parts of large eigenvalues, which the inverse does not show."""
    edges = ring_with_chords(140, 200, seed=seed)
    G, _ = pose_graph(dim, edges, seed=seed, noise=0.01)
    weight = 10 ** np.random.default_rng(seed).uniform(-6, 6, len(edges))
    F = sc.CellularSheaf.connection(edges, G.rotations, weight=weight)
    values = np.linalg.eigvalsh(sc.laplacian(F).toarray())
    assert values[dim] > 1e-12 * values[-1]  # or it says nothing
    found = sc.synchronize(F).eigenvalues
    assert found[dim] == pytest.approx(values[dim], rel=2e-3)
