"""Nearest neighbours of points, the connection of a sampled manifold, bar frameworks."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import gallery
from tests.support.errors import raises
from tests.support.helpers import assert_residual
from tests.support.strategies import examples
from tests.unit.gallery.test_bundles import h0, transports


def neighbours_one_by_one(points, k):
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    pairs = {tuple(sorted((i, j))) for i in range(len(points)) for j in np.argsort(squared[i])[:k]}
    return [[int(i), int(j)] for i, j in sorted(pairs)]


@pytest.mark.parametrize("scale", [1e-250, 1.0, 1e250])
@given(st.integers(2, 30), st.integers(1, 3), st.integers(0, 2**32), st.data())
@examples(20)
def test_nearest_neighbors_match_sorted_distances(scale, n, d, seed, data):
    k = data.draw(st.integers(1, n - 1))
    points = np.random.default_rng(seed).standard_normal((n, d))
    edges = gallery.nearest_neighbors(scale * points, k)
    assert edges.dtype == np.int64
    assert edges.tolist() == neighbours_one_by_one(points, k)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_coinciding_points_are_neighbours_without_loops(k):
    points = np.repeat([[0.0, 0.0], [10.0, 0.0]], [6, 3], axis=0)
    edges = gallery.nearest_neighbors(points, k)
    assert (edges[:, 0] < edges[:, 1]).all()
    degrees = np.bincount(edges.ravel(), minlength=9)
    assert (degrees >= k).all()
    across = (edges[:, 0] < 6) & (edges[:, 1] >= 6)
    assert across.any() == (k > 2)  # three coinciding points have only two neighbours there


def sphere(n):
    """Return evenly distributed (Fibonacci) points on the sphere, and its tangent planes."""
    i = np.arange(n) + 0.5
    z, phi = 1 - 2 * i / n, np.pi * (1 + np.sqrt(5)) * i
    r = np.sqrt(1 - z**2)
    points = np.stack([r * np.cos(phi), r * np.sin(phi), z], axis=1)
    east = np.stack([-np.sin(phi), np.cos(phi), 0 * z], axis=1)
    return points, np.stack([east, np.cross(points, east)], axis=2)


def torus(n):
    """Return points on the flat torus in four dimensions and its tangent planes."""
    a, b = 2 * np.pi * np.random.default_rng(17).random((2, n))
    o = 0 * a
    points = np.stack([np.cos(a), np.sin(a), np.cos(b), np.sin(b)], axis=1)
    first = np.stack([-np.sin(a), np.cos(a), o, o], axis=1)
    return points, np.stack([first, np.stack([o, o, -np.sin(b), np.cos(b)], axis=1)], axis=2)


def polar(A):
    left, _, right = np.linalg.svd(A)
    return left @ right


@pytest.mark.parametrize(("manifold", "smaller"), [(sphere, 0.45), (torus, 0.55)])
def test_the_connection_of_points_converges_to_that_of_the_manifold(manifold, smaller):
    """Four times as many points halve the distances, and about halve the errors or better."""
    worst = []
    for n in (500, 2000):
        points, planes = manifold(n)
        F, frames = gallery.connection_from_points(points, k=12, dim=2)
        np.testing.assert_array_equal(F.edges, gallery.nearest_neighbors(points, 12))
        assert frames.shape == (n, points.shape[1], 2)
        assert_residual(frames.swapaxes(1, 2) @ frames - np.eye(2), frames, n=2)
        u, v = F.edges.T
        G = polar(planes.swapaxes(1, 2) @ frames)  # from coordinates in frames to those in planes
        true = polar(planes[u].swapaxes(1, 2) @ planes[v])
        error = transports(F) - G[u].swapaxes(1, 2) @ true @ G[v]
        turns = np.abs(error).max(axis=(1, 2))
        outside = frames - planes @ (planes.swapaxes(1, 2) @ frames)
        tilts = np.linalg.norm(outside, ord=2, axis=(1, 2))  # sines of the largest angles
        worst.append((np.median(tilts), np.median(turns)))
    (coarse, coarse_turn), (fine, fine_turn) = worst
    assert fine < smaller * coarse
    assert fine < 0.05
    assert fine_turn < smaller * coarse_turn
    assert fine_turn < 0.01


def test_the_connection_of_full_dimension_is_trivial():
    points = np.random.default_rng(5).standard_normal((40, 3))
    F, frames = gallery.connection_from_points(points, 6, 3)
    assert F.vertex_dims.tolist() == [3] * 40
    x = frames.swapaxes(1, 2) @ np.array([1.0, -2.0, 0.5])  # the same vector at every point
    assert_residual(sc.coboundary(F) @ x.ravel(), x, n=F.dim_c0)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_connection_does_not_depend_on_the_scale(scale):
    points = torus(60)[0]
    F, frames = gallery.connection_from_points(points, 6, 2)
    G, scaled = gallery.connection_from_points(points * scale, 6, 2)
    assert_residual(scaled - frames, frames, 100.0, n=6)
    assert_residual(G.head_data - F.head_data, F.head_data, 100.0, n=6)
    single, frames = gallery.connection_from_points(points.astype(np.float32), 6, 2)
    assert single.dtype == frames.dtype == np.float32


def test_the_chunk_size_does_not_change_the_connection(monkeypatch):
    points = sphere(100)[0]
    F, frames = gallery.connection_from_points(points, 6, 2)
    monkeypatch.setattr("sheafcoarsen.gallery.points.CHUNK", 6 * 3 * 7)
    G, again = gallery.connection_from_points(points, 6, 2)
    np.testing.assert_array_equal(again, frames)
    np.testing.assert_array_equal(G.head_data, F.head_data)


ROUND, LINE = sphere(20)[0], np.arange(12.0)[:, None] * [1.0, 2.0, 3.0]
APART = [*ROUND, *LINE[:6] / 50 + 9]


@pytest.mark.parametrize(
    ("points", "k", "dim", "message"),
    [
        (ROUND, 1, 2, "ValueError: `k` must be at least `dim` = 2"),
        (ROUND, 20, 2, "ValueError: `k` must be below the number of points, 20, got 20"),
        (ROUND, 5, 4, "ValueError: `dim` must be at most 3, the dimension of the points"),
        (ROUND, 5, 0, "ValueError: `dim` must be at least 1, got 0"),
        (ROUND, 5, 2.0, "TypeError: `dim` must be an integer, got 2.0"),
        ([*ROUND, ROUND[7]], 5, 2, "ValueError: `points` 7 and 20 coincide: remove duplicates"),
        (LINE, 4, 2, "ValueError: neighbours of point 0 span 1 of `dim` = 2 dimensions: increase"),
        (APART, 3, 2, "ValueError: the 3 nearest neighbours of point 20 span 1 of"),
        (LINE * [np.nan, 1, 1], 4, 1, "ValueError: `points` must be finite"),
        (LINE * 1j, 4, 1, "TypeError: `points` must be real"),
    ],
)
def test_invalid_arguments_of_connection_from_points_raise(points, k, dim, message):
    with raises(message):
        gallery.connection_from_points(points, k, dim)


# ---------------------------------------------------------------- bar frameworks


@pytest.mark.parametrize("d", [1, 2, 3])
def test_maps_of_a_bar_are_its_unit_direction_from_tail_to_head(d):
    """So rigid motions are sections: velocities whose difference is orthogonal to every bar."""
    points = np.random.default_rng(99).standard_normal((7, d)) + 5
    edges = [[1, 0], [0, 2], [3, 1], [5, 6], [6, 5]]
    F = gallery.bar_framework(edges, points)
    assert F.edges.tolist() == edges
    assert F.vertex_dims.tolist() == [d] * 7
    steps = np.array([points[v] - points[u] for u, v in edges])
    expected = steps / np.linalg.norm(steps, axis=1)[:, None]
    for data in (F.tail_data, F.head_data):
        assert_residual(data.reshape(-1, d) - expected, expected, n=d)


def test_a_missing_diagonal_adds_one_motion_to_a_square():
    square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    sides = [[0, 1], [1, 2], [2, 3], [3, 0]]
    assert h0(gallery.bar_framework(sides, square)) == 4
    assert h0(gallery.bar_framework([*sides, [0, 2]], square)) == 3
    assert h0(gallery.bar_framework([*sides, [0, 2]], [*square, [9.0, 9.0]])) == 5


def test_bar_framework_ignores_weights_and_keeps_names_and_scalar_type():
    graph = nx.Graph()
    graph.add_edge("b", "a", weight=100.0)
    F = gallery.bar_framework(graph, np.array([[0, 0], [2, 0]], dtype=np.float32))
    assert F.vertex_labels == ("b", "a")
    assert F.dtype == np.float32
    assert F.tail_map(0).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("points", "direction"),
    [
        *(([[-x, 0], [0, x], [0.5, 0]], np.sqrt([0.5, 0.5])) for x in (5e-324, 1e-300, 1, 1e308)),
        ([[0, 0], [3e-20, 4e-20], [1e304, 0]], [0.6, 0.8]),  # one point is distant
        ([[1, 1], [1 + 4 * 2**-52, 1 + 3 * 2**-52]], [0.8, 0.6]),
    ],
)
def test_bar_directions_are_accurate_at_every_scale_and_far_from_the_origin(points, direction):
    F = gallery.bar_framework([[0, 1]], np.array(points, float))
    assert_residual(F.head_map(0) - [direction], F.head_map(0), n=2)
