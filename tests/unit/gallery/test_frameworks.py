"""Bar frameworks: rigid motions, and additional motions if a bar is missing."""

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen import gallery
from tests.support.helpers import assert_residual
from tests.unit.gallery.test_bundles import h0


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


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e308])
def test_bar_directions_are_accurate_at_every_scale(scale):
    points = np.array([[-scale, 0.0], [0.0, scale], [0.5, 0.0]])
    F = gallery.bar_framework([[0, 1]], points)
    assert_residual(F.head_map(0) - np.sqrt([[0.5, 0.5]]), F.head_map(0), n=2)


def test_a_distant_point_does_not_change_the_direction_of_a_short_bar():
    F = gallery.bar_framework([[0, 1]], [[0.0, 0.0], [3e-20, 4e-20], [1e304, 0.0]])
    assert_residual(F.tail_map(0) - [[0.6, 0.8]], F.tail_map(0), n=2)


def test_bars_far_from_the_origin_have_accurate_directions():
    eps = np.finfo(float).eps
    F = gallery.bar_framework([[0, 1]], [[1.0, 1.0], [1.0 + 4 * eps, 1.0 + 3 * eps]])
    assert_residual(F.tail_map(0) - [[0.8, 0.6]], F.tail_map(0), n=2)
