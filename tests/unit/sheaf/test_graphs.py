import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given

import sheafcoarsen as sc
from sheafcoarsen.sheaf import edge_weights, graph_arrays
from tests.support.errors import raises
from tests.support.helpers import covering
from tests.support.strategies import graphs, multigraphs


@given(multigraphs())
def test_multigraph_edges_are_in_networkx_order(G):
    arrays = graph_arrays(G)
    names = arrays.labels
    assert names == tuple(G.nodes)
    assert arrays.n_vertices == G.number_of_nodes()
    assert arrays.edges.shape == (G.number_of_edges(), 2)
    assert [(names[u], names[v]) for u, v in arrays.edges.tolist()] == list(G.edges())
    weights = [1 if w is None else w for _, _, w in G.edges(data="weight")]
    assert edge_weights(arrays, "weight").tolist() == weights


# ---------------------------------------------------------------- scipy adjacency

ADJACENCY = np.array([[5, 0, 2, 0], [0, 0, 3, 7], [2, 3, 0, 0], [0, 7, 0, 9]])


@pytest.mark.parametrize(
    ("dtype", "form", "kind"),
    covering(
        [np.int8, np.uint8, np.int64, np.float32, np.float64, bool],
        ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"],
        ["array", "matrix"],
    ),
)
def test_adjacency_is_read_as_its_upper_triangle_row_by_row(form, kind, dtype):
    A = getattr(scipy.sparse, f"{form}_{kind}")(ADJACENCY.astype(dtype))
    arrays = graph_arrays(A)
    assert arrays.n_vertices == 4
    assert arrays.labels is None
    assert arrays.edges.tolist() == [[0, 0], [0, 2], [1, 2], [1, 3], [3, 3]]
    wanted = [1.0] * 5 if dtype is bool else [5, 2, 3, 7, 9]
    assert edge_weights(arrays, "weight").tolist() == wanted


def test_adjacency_sums_duplicates_and_sorts_indices():
    A = scipy.sparse.coo_array(
        ([1.0, 2.0, 4.0, 2.0, 5.0], ([0, 0, 0, 1, 2], [2, 1, 2, 0, 0])), shape=(3, 3)
    )
    for form in (A, A.tocsr(copy=True)):
        arrays = graph_arrays(form)
        assert arrays.edges.tolist() == [[0, 1], [0, 2]]
        assert arrays.attribute("weight").tolist() == [2.0, 5.0]
    assert A.nnz == 5  # the caller's own matrix stays as it was

    unsorted = scipy.sparse.csr_array(
        (np.array([5.0, 2.0, 2.0, 5.0]), np.array([2, 1, 0, 0]), np.array([0, 2, 3, 4])),
        shape=(3, 3),
    )
    arrays = graph_arrays(unsorted)
    assert arrays.edges.tolist() == [[0, 1], [0, 2]]
    assert arrays.attribute("weight").tolist() == [2.0, 5.0]
    assert unsorted.indices.tolist() == [2, 1, 0, 0]


def test_adjacency_must_be_symmetric_up_to_rounding():
    A = ADJACENCY.astype(float)
    A[2, 0] = np.nextafter(2.0, 3.0)
    assert graph_arrays(scipy.sparse.csr_array(A)).attribute("weight").tolist() == [5, 2, 3, 7, 9]
    A[2, 0] = 2.0 + 3e-14
    with raises("ValueError: got 2.0 at (0, 2) and 2.00000000000003 at (2, 0)"):
        graph_arrays(scipy.sparse.csr_array(A))


# ---------------------------------------------------------------- edge arrays


@given(graphs())
def test_edge_arrays_keep_order_and_orientation(graph):
    n, edges = graph
    for given_edges in (edges, edges.tolist(), edges.astype(np.uint16)):
        arrays = graph_arrays(given_edges, n_vertices=n)
        assert arrays.edges.tolist() == edges.tolist()
        assert arrays.edges.dtype == np.int64
        assert not np.shares_memory(arrays.edges, edges)
        assert arrays.n_vertices == n
        assert arrays.labels is None
    assert graph_arrays(edges).n_vertices == edges.max(initial=-1) + 1


# ---------------------------------------------------------------- what is refused

TRIANGLE = [[0, 1], [1, 2], [2, 0]]
NAN_ADJACENCY = scipy.sparse.csr_array(np.array([[0, np.nan], [np.nan, 0]]))

BAD_GRAPHS = [
    (nx.DiGraph([(0, 1)]), None, "ValueError: `graph` must be undirected"),
    (nx.MultiDiGraph([(0, 1)]), None, "ValueError: to_undirected()"),
    (
        scipy.sparse.csr_array([[0, 1], [2, 0]]),
        None,
        "ValueError: `graph` must be a symmetric adjacency, got 1 at (0, 1) and 2 at (1, 0)",
    ),
    (
        scipy.sparse.csr_array(np.array([[0, 1], [2, 0]], np.uint8)),
        None,
        "ValueError: got 1 at (0, 1) and 2 at (1, 0)",
    ),
    (
        scipy.sparse.csr_array([[0, 1.5], [0, 0]]),
        None,
        "ValueError: got 1.5 at (0, 1) and 0.0 at (1, 0)",
    ),
    (NAN_ADJACENCY, None, "ValueError: must be finite, got nan at (0, 1)"),
    (
        scipy.sparse.csr_array([[np.inf, 0], [0, 1]]),
        None,
        "ValueError: must be finite, got inf at (0, 0)",
    ),
    (
        scipy.sparse.csr_array(np.ones((2, 3))),
        None,
        "ValueError: `graph` must be a square adjacency, got shape (2, 3)",
    ),
    (scipy.sparse.csr_array([[1j]]), None, "TypeError: real adjacency"),
    ([[0, 1], [1, -2]], None, "ValueError: `graph[1]` = (1, -2) has a negative"),
    ([[0, 1], [1, 1.5]], None, "ValueError: whole numbers, got 1.5 at index (1, 1)"),
    ([[0, 1, 2]], None, "ValueError: `graph` must have shape (m, 2), got (1, 3)"),
    ([0, 1], None, "ValueError: `graph` must be 2-dimensional, got shape (2,)"),
    ([[0, 1], [2]], None, "ValueError: `graph` must be a rectangular array"),
    ("karate", None, "TypeError: `graph` must be a networkx graph, a scipy adjacency or"),
    (None, None, "TypeError: `graph` must be a networkx graph, a scipy adjacency or"),
    (np.array([[True, False]]), None, "TypeError: integers, got dtype bool"),
    (
        [["a", "b"]],
        None,
        "TypeError: `graph` must hold integers, got dtype <U1: numpy.unique(graph, "
        "return_inverse=True)[1].reshape(-1, 2) converts",
    ),
    (
        np.array([["a", "b"]], object),
        None,
        "TypeError: `graph` must hold integers, got dtype object: numpy.unique(graph, ",
    ),
    (np.array([[0, None]]), None, "TypeError: `graph` must hold integers, got dtype object"),
    (TRIANGLE, 2, "ValueError: `graph[1]` = (1, 2) has a vertex beyond `n_vertices` = 2"),
    (TRIANGLE, -1, "ValueError: `n_vertices` must be at least 0, got -1"),
    (TRIANGLE, 3.0, "TypeError: `n_vertices` must be an integer, got 3.0"),
    (nx.path_graph(3), 3, "ValueError: has a list of nodes"),
    (scipy.sparse.csr_array(np.ones((2, 2))), 2, "ValueError: has a size"),
]


@pytest.mark.parametrize(
    ("graph", "n_vertices", "message"), BAD_GRAPHS, ids=[row[-1] for row in BAD_GRAPHS]
)
def test_invalid_graphs_raise(graph, n_vertices, message):
    with raises(message):
        graph_arrays(graph, n_vertices)


def test_a_dense_symmetric_matrix_holds_edges():
    assert graph_arrays(np.array([[0, 3], [3, 0]])).edges.tolist() == [[0, 3], [3, 0]]


def test_names_in_an_array_are_converted_as_the_message_says():
    names = np.array([["b", "a"], ["c", "b"]], object)
    with pytest.raises(TypeError, match=r"with_labels\(numpy.unique\(graph\).tolist\(\)\) names"):
        sc.CellularSheaf.constant(names)
    edges = np.unique(names, return_inverse=True)[1].reshape(-1, 2)
    F = sc.CellularSheaf.constant(edges).with_labels(np.unique(names).tolist())
    assert [[F.vertex_labels[v] for v in edge] for edge in edges] == names.tolist()
