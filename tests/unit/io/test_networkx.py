"""`to_networkx` and `from_networkx`: the round trip is exact, and what a graph lacks is named."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from tests.support.strategies import multigraphs, sheaves
from tests.unit.io.test_save_load import same_sheaf


@given(sheaves(), multigraphs(), st.integers(0, 2))
def test_networkx_round_trip_is_exact_and_keeps_names(unnamed, graph, dim):
    for F in (unnamed, sc.CellularSheaf.constant(graph, dim)):
        G = sc.to_networkx(F)
        assert isinstance(G, nx.MultiDiGraph)
        assert tuple(G.nodes) == (F.vertex_labels or tuple(range(F.n_vertices)))
        assert G.number_of_edges() == F.n_edges
        same_sheaf(F, sc.from_networkx(G))


def test_labels_equal_to_indices_are_kept():
    F = sc.CellularSheaf.constant(nx.path_graph(3))
    assert sc.from_networkx(sc.to_networkx(F)).vertex_labels == (0, 1, 2)
    G = sc.to_networkx(sc.CellularSheaf.constant([[0, 1], [1, 2]]))
    assert sc.from_networkx(G).vertex_labels is None
    G.add_node("new", dim=1)  # no longer only integers
    assert sc.from_networkx(G).vertex_labels == (0, 1, 2, "new")


def own_graph():
    G = nx.MultiDiGraph()
    G.add_edge("b", "a", tail_map=[[1.0, 2.0]], head_map=[[3.0]])
    G.add_edge("a", "b", tail_map=np.float32([[4]]), head_map=np.float32([[5, 6]]))
    return G


def test_graph_built_by_the_user_is_converted():
    F = sc.from_networkx(own_graph())
    assert (F.vertex_labels, F.edges.tolist()) == (("b", "a"), [[0, 1], [1, 0]])
    assert F.vertex_dims.tolist() == [2, 1]
    assert sc.coboundary(F).toarray().tolist() == [[1, 2, -3], [-5, -6, 4]]
    G = own_graph()
    G.edges["b", "a", 0]["index"], G.edges["a", "b", 0]["index"] = 10, -3
    assert sc.from_networkx(G).edges.tolist() == [[1, 0], [0, 1]]


def changed(graph=None, **attributes):
    """Return a graph, the user's own by default, whose edge a -> b has other attributes."""
    graph = own_graph() if graph is None else graph
    graph.edges["a", "b", 0].update(attributes)
    return graph


def with_node(**attributes):
    G = own_graph()
    G.add_node("c", **attributes)
    return G


NO_MAPS = r"edge 0 -> 1 has no attribute 'tail_map'.*CellularSheaf\.constant\(graph\)"
NUMBERED = sc.to_networkx(sc.from_networkx(own_graph()))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.path_graph(3), NO_MAPS),
        (changed(head_map=None), "edge 'a' -> 'b' has no attribute 'head_map'"),
        (nx.Graph(own_graph()), "`graph` must be directed.*MultiDiGraph"),
        (changed(head_map=[5]), r"edge 'a' -> 'b': `head_map` must be 2-D, got shape \(1,\)"),
        (changed(head_map=[[5, np.nan]]), "edge 'a' -> 'b': `head_map` must be finite, got nan"),
        (changed(head_map=[[5], [1, 2]]), "edge 'a' -> 'b': `head_map` must be a rectangular"),
        (changed(head_map=[[5]]), "`head_map` has 1 columns, but node 'b' has dimension 2"),
        (changed(tail_map=[[5, 1]]), "`tail_map` has 2 columns, but node 'a' has dimension 1"),
        (changed(tail_map=[[5], [1]]), "`tail_map` has 2 rows and `head_map` has 1"),
        (changed(tail_map=[[1e200]]), "rescale the maps"),
        (changed(index=4), "edge 'b' -> 'a' has the attribute 'index' = None"),
        (changed(NUMBERED, index=0), "edge 'a' -> 'b' has the attribute 'index' = 0"),
        (changed(index=True), "'index' = "),
        (with_node(), "node 'c' has neither an edge nor an attribute 'dim'"),
        (with_node(dim=-1), "node 'c': `dim` must be a non-negative integer, got -1"),
        (with_node(dim=1.5), "node 'c': `dim` must be a non-negative integer, got 1.5"),
    ],
)
def test_error_names_missing_or_invalid_attributes(graph, message):
    with pytest.raises(ValueError, match=message):
        sc.from_networkx(graph)
