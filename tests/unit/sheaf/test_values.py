import re

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen.sheaf import edge_weights, graph_arrays
from sheafcoarsen.sheaf.values import edge_values


def named_graph():
    """Nodes neither sorted nor numbered; ("c", "a") and ("a", 3) were added the other way round."""
    G = nx.Graph()
    G.add_nodes_from(["c", ("x", 1), "a", 3])
    G.add_edge(3, "a", weight=2.0, sign=-1)
    G.add_edge("a", "c", weight=4.0, sign=1)
    return G


def test_edge_values_by_name_by_list_and_by_array():
    arrays = graph_arrays(named_graph())
    expected = np.array([4.0, 2.0])
    for value in ("weight", [4.0, 2.0], (4, 2), expected):
        assert edge_values(arrays, value, "weight").tolist() == [4.0, 2.0]
    assert edge_values(arrays, expected.astype(np.float32), "weight").dtype == np.float32


def test_a_missing_attribute_is_one_where_a_default_is_given():
    G = named_graph()
    del G.edges["a", 3]["weight"]
    arrays = graph_arrays(G)
    assert edge_weights(arrays, "weight").tolist() == [4.0, 1.0]
    assert edge_weights(arrays, "no such attribute").tolist() == [1.0, 1.0]
    assert edge_weights(arrays, None).tolist() == [1.0, 1.0]
    assert edge_weights(graph_arrays([[0, 1]]), "weight").tolist() == [1.0]
    with pytest.raises(
        ValueError,
        match="`weight` = 'length' names an edge attribute that no edge of the graph has",
    ):
        edge_weights(graph_arrays([[0, 1]]), "length")


@pytest.mark.parametrize("m_and_shape", [(0, (0, 3, 3)), (0, (0, 2, 5))])
def test_the_shape_of_values_on_no_edges_is_kept(m_and_shape):
    _, shape = m_and_shape
    arrays = graph_arrays(np.zeros((0, 2), int))
    values = edge_values(arrays, np.zeros(shape, np.float32), "transports", shape=(-1, -1))
    assert values.shape == shape
    assert values.dtype == np.float32


TRIANGLE = [[0, 1], [1, 2], [2, 0]]
BAD_VALUES = {
    "too few": ([1.0], (), "`x` must hold a number for each of the 2 edges, got shape (1,)"),
    "too deep": ([[1.0], [2.0]], (), "got shape (2, 1)"),
    "wrong matrix": (
        np.ones((2, 3, 4)),
        (3, 3),
        "`x` must hold an array of shape (3, 3) for each of the 2 edges",
    ),
    "no matrix": (
        np.ones(2),
        (-1, -1),
        "`x` must hold an array of shape (d, d) for each of the 2 edges",
    ),
    "ragged": ([np.eye(2), np.eye(3)], (-1, -1), "rectangular array of numbers"),
    "nan": ([1.0, np.nan], (), "`x` must be finite, got nan for edge 1 (2, 3)"),
    "no such attribute": ("colour", (), "names an edge attribute that no edge of the graph has"),
    "absent attribute": ("only one", (), "edge 0 (0, 2) has no attribute 'only one' for `x`"),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_bad_values_on_edges(case):
    value, shape, message = BAD_VALUES[case]
    G = named_graph()
    G.edges["a", 3]["only one"] = 1.0
    with pytest.raises(ValueError, match=re.escape(message)):
        edge_values(graph_arrays(G), value, "x", shape=shape)


BAD_WEIGHTS = {
    "negative": (
        [1.0, -2.0],
        ValueError,
        "must not be negative, because its root is taken, got -2.0 for edge 1 (2, 3)",
    ),
    "complex": ([1j, 1j], TypeError, "`weight` must be real, got dtype complex128"),
    "bool": ([True, False], TypeError, "got dtype bool"),
    "text": (["a", "b"], TypeError, "got dtype <U1"),
    "infinite": ([1.0, np.inf], ValueError, "must be finite, got inf"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights(case):
    weight, error, message = BAD_WEIGHTS[case]
    with pytest.raises(error, match="`weight`.*" + re.escape(message.removeprefix("`weight`"))):
        edge_weights(graph_arrays(named_graph()), weight)
