"""Bar frameworks: rigid motions, and additional motions if a bar is missing."""

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen import gallery
from tests.support import reference
from tests.support.helpers import assert_residual, dense_kernel
from tests.unit.gallery.test_bundles import h0


def test_maps_of_a_bar_are_its_unit_direction_from_tail_to_head():
    F = gallery.bar_framework([[1, 0], [0, 2]], [[0, 0], [3, 4], [0, -2]])
    assert F.edges.tolist() == [[1, 0], [0, 2]]
    assert F.edge_dims.tolist() == [1, 1]
    for e, direction in enumerate([[-0.6, -0.8], [0.0, -1.0]]):
        for given_map in (F.tail_map(e), F.head_map(e)):
            assert_residual(given_map - np.array([direction]), given_map, n=2)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_rigid_motions_are_in_the_kernel_and_a_stretch_is_not(d):
    rng = np.random.default_rng(99)
    points = rng.standard_normal((7, d)) + 5
    F = gallery.bar_framework(nx.complete_graph(7), points)
    delta = reference.coboundary(F)
    A = rng.standard_normal((d, d))
    velocity = (points @ (A - A.T) + rng.standard_normal(d)).reshape(-1)
    assert_residual(delta @ velocity, delta, velocity, n=F.dim_c0)
    assert dense_kernel(delta).shape[1] == d * (d + 1) // 2  # complete graphs are rigid
    lengths = np.linalg.norm(points[F.edges[:, 0]] - points[F.edges[:, 1]], axis=1)
    assert_residual(delta @ points.reshape(-1) + lengths, delta, points, n=F.dim_c0)


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


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e308])
def test_bar_directions_are_accurate_at_every_scale(scale):
    points = np.array([[-scale, 0.0], [0.0, scale], [0.5, 0.0]])
    F = gallery.bar_framework([[0, 1]], points)
    assert_residual(F.head_map(0) - np.sqrt([[0.5, 0.5]]), F.head_map(0), n=2)


def test_bars_far_from_the_origin_have_accurate_directions():
    eps = np.finfo(float).eps
    F = gallery.bar_framework([[0, 1]], [[1.0, 1.0], [1.0 + 4 * eps, 1.0 + 3 * eps]])
    assert_residual(F.tail_map(0) - [[0.8, 0.6]], F.tail_map(0), n=2)
