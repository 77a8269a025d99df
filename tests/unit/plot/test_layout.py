"""Places in the plane: finite, distinct, repeatable, and a grid looks like one."""

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen.plot.layout import graph_layout

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_places_are_finite_distinct_and_repeatable():
    pieces = [
        nx.gnp_random_graph(40, 0.1, seed=2),
        nx.star_graph(9),
        nx.path_graph(7),
        nx.path_graph(2),
        nx.empty_graph(30),
    ]
    G = nx.disjoint_union_all(pieces)
    edges = np.array(G.edges)
    pos = graph_layout(edges, len(G))
    assert np.isfinite(pos).all()
    assert len(np.unique(pos.round(6), axis=0)) == len(G)
    np.testing.assert_array_equal(graph_layout(edges, len(G)), pos)
    inside = np.linalg.norm(pos[edges[:, 0]] - pos[edges[:, 1]], axis=1).max()
    width, height = np.ptp(pos, axis=0)
    assert inside < max(width, height) / 2
    assert 0.5 < width / height < 2


@pytest.mark.parametrize("side", [15, 40])
def test_a_grid_looks_like_a_grid(side):
    """Distances in the plane follow those in the graph.

    Below the size limit of stress and above it.
    """
    G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    pos = graph_layout(np.array(G.edges), len(G))
    distances = nx.single_source_shortest_path_length(G, 0)
    steps = np.array([distances[v] for v in range(len(G))])
    lengths = np.linalg.norm(pos - pos[0], axis=1)
    assert np.corrcoef(steps, lengths)[0, 1] > 0.95


def test_a_panel_is_not_left_empty_above_a_flat_graph():
    """Stretched, but not beyond what shows that it is long; a path stays a line."""
    for sides, most in (((20, 60), 1.7), ((10, 100), 5.2)):
        G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(*sides))
        width, height = np.ptp(graph_layout(np.array(G.edges), len(G)), axis=0)
        assert 1.5 < width / height < most
    width, height = np.ptp(graph_layout(np.array(nx.path_graph(700).edges), 700), axis=0)
    assert height < 1e-3 * width
