"""Colours tell neighbours apart, and zero from what is above and below."""

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen.plot.colors import cluster_colors, number_colors, palette


@pytest.mark.parametrize(
    ("graph", "most"),
    [
        (nx.complete_graph(30), 30),
        (nx.star_graph(5000), 2),
        (nx.path_graph(5000), 3),
        (nx.grid_2d_graph(70, 70), 5),
        (nx.barabasi_albert_graph(3000, 4, seed=3), 12),
        (nx.empty_graph(4), 1),
    ],
    ids=["complete", "star", "path", "grid", "scale-free", "empty"],
)
def test_few_colors_are_enough(graph, most):
    graph = nx.convert_node_labels_to_integers(graph)
    pairs = np.array(graph.edges, dtype=int).reshape(-1, 2)
    loops = np.repeat(np.arange(3)[:, None], 2, axis=1)
    colors = cluster_colors(np.concatenate([pairs, loops]), len(graph))
    assert len(np.unique(colors, axis=0)) <= max(most, 6)
    differences = np.abs(colors[pairs[:, 0]] - colors[pairs[:, 1]]).max(axis=1)
    assert differences.min(initial=1) > 0.02


def test_the_palette_never_repeats():
    colors = palette(200)
    assert colors.shape == (200, 4)
    distances = np.abs(colors[:, None] - colors[None]).max(axis=2) + np.eye(200)
    assert distances.min() > 0.004
    assert distances[:30, :30].min() > 0.03
    np.testing.assert_array_equal(palette(3), colors[:3])
    assert palette(0).shape == (0, 4)


@pytest.mark.parametrize(("low", "high"), [(-1.0, 3.0), (-5.0, 1e-3), (-1e-300, 1e-300)])
def test_numbers_of_both_signs_have_zero_in_the_middle(low, high):
    cmap, norm = number_colors(np.array([low, high, 0.0, np.nan]))
    assert cmap.name == "RdBu_r"
    assert norm(0.0) == 0.5
    assert min(norm(low), 1 - norm(high)) == 0
    assert norm(low) < 0.5 < norm(high)


@pytest.mark.parametrize("values", [[0.0, 2.0], [3.0, 4.0], [-2.0, -1.0], [-1.0, 0.0]])
def test_other_numbers_have_a_sequential_map(values):
    cmap, norm = number_colors(np.array(values))
    assert cmap.name == "viridis"
    assert [norm(value) for value in values] == [0, 1]
    assert np.isfinite(number_colors(np.array([2.0, 2.0]))[1](2.0))
    assert np.isfinite(number_colors(np.zeros(0))[1](2.0))
