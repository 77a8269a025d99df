"""Connected components against networkx."""

import networkx as nx
import numpy as np
from hypothesis import given

import sheafcoarsen as sc
from sheafcoarsen.sheaf import component_count, component_labels
from tests.support.strategies import sheaves


@given(sheaves())
def test_components_equal_those_of_networkx(F):
    """Edges with zero maps connect vertices, too."""
    graph = nx.empty_graph(F.n_vertices)
    graph.add_edges_from(F.edges.tolist())
    labels = component_labels(F.n_vertices, F.edges)
    expected = {frozenset(part) for part in nx.connected_components(graph)}
    found = {frozenset(np.flatnonzero(labels == c).tolist()) for c in np.unique(labels)}
    assert found == expected
    assert component_count(F) == len(expected)
    np.testing.assert_array_equal(sc.components(F), labels)
    zero = F.with_maps(0 * F.tail_data, 0 * F.head_data)
    np.testing.assert_array_equal(sc.components(zero), sc.components(F), strict=True)


def test_components_are_numbered_by_their_first_vertices():
    assert component_labels(6, np.array([[5, 0], [3, 1], [3, 3]])).tolist() == [0, 1, 2, 1, 3, 0]


def test_empty_graph_has_no_components():
    assert component_count(sc.CellularSheaf([], [], [], vertex_dims=[])) == 0


def test_parallel_edges_connect_like_one_edge():
    F = sc.CellularSheaf.constant([[0, 1]] * 256)
    assert sc.components(F).tolist() == [0, 0]
