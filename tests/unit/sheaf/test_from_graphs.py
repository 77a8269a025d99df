"""Sheaves made from graphs and values on their edges."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given

from sheafcoarsen import CellularSheaf
from tests.support.errors import raises
from tests.support.strategies import multigraphs
from tests.unit.sheaf.test_cellular_sheaf import (
    NO_EDGES,
    PATH,
    QUARTER_TURN,
    assert_same_sheaf,
    heads,
    tails,
)

# ---------------------------------------------------------------- sheaves from graphs


def named_graph():
    """Nodes neither sorted nor numbered.

    networkx reports ("c", "a") and ("a", 3), added the other way round.
    """
    G = nx.Graph()
    G.add_nodes_from(["c", ("x", 1), "a", 3])
    G.add_edge(3, "a", weight=4.0, turn=QUARTER_TURN, sign=-1, ends=[2.0, 3.0])
    G.add_edge("a", "c", weight=9.0, turn=-QUARTER_TURN, sign=1, ends=[5.0, 7.0])
    return G


@pytest.mark.parametrize(
    "transports", ["turn", [-QUARTER_TURN, QUARTER_TURN]], ids=["by name", "array"]
)
def test_connection_on_a_networkx_graph_keeps_order_and_orientation(transports):
    F = CellularSheaf.connection(named_graph(), transports)
    assert F.vertex_labels == ("c", ("x", 1), "a", 3)
    assert F.edges.tolist() == [[0, 2], [2, 3]]
    assert F.vertex_dims.tolist() == [2, 2, 2, 2]
    assert [M.tolist() for M in tails(F)] == [[[3, 0], [0, 3]], [[2, 0], [0, 2]]]
    assert [M.tolist() for M in heads(F)] == [[[0, 3], [-3, 0]], [[0, -2], [2, 0]]]


def test_connection_on_an_adjacency_takes_its_entries_as_weights():
    A = scipy.sparse.csr_array(np.array([[0, 4.0, 0], [4.0, 0, 9.0], [0, 9.0, 16.0]]))
    F = CellularSheaf.connection(A, [QUARTER_TURN, -QUARTER_TURN, np.eye(2)])
    assert F.edges.tolist() == [[0, 1], [1, 2], [2, 2]]
    assert [M[0, 0] for M in tails(F)] == [2, 3, 4]
    assert [M[1, 0] for M in heads(F)] == [2, -3, 0]


def test_connection_accepts_transports_orthogonal_up_to_sqrt_eps():
    near = QUARTER_TURN * (1 + 1e-9)
    assert CellularSheaf.connection([[0, 1]], near[None]).head_map(0).tolist() == near.tolist()
    single = (QUARTER_TURN * (1 + 1e-5)).astype(np.float32)
    assert CellularSheaf.connection([[0, 1]], single[None]).dtype == np.float32


@given(multigraphs())
def test_networkx_and_edge_array_give_the_same_constant_sheaf(G):
    number = {v: i for i, v in enumerate(G.nodes)}
    edges = np.array([[number[u], number[v]] for u, v in G.edges()]).reshape(-1, 2).astype(int)
    weights = [1 if w is None else w for _, _, w in G.edges(data="weight")]
    F = CellularSheaf.constant(edges, dim=2, weight=weights, n_vertices=len(number))
    assert_same_sheaf(F, CellularSheaf.constant(G, dim=2))


def test_weights_keep_single_precision():
    F = CellularSheaf.constant([[0, 1]], weight=np.array([4.0], np.float32))
    assert F.dtype == np.float32
    F = CellularSheaf.connection([[0, 1]], QUARTER_TURN[None].astype(np.complex64))
    assert F.dtype == np.complex64


def test_signed_takes_the_signs_of_an_adjacency_from_its_entries():
    A = scipy.sparse.csr_array(np.array([[0, -4.0, 9.0], [-4.0, 0, 0], [9.0, 0, -1.0]]))
    F = CellularSheaf.signed(A)
    assert F.edges.tolist() == [[0, 1], [0, 2], [2, 2]]
    assert F.tail_data.tolist() == [2, 3, 1]
    assert F.head_data.tolist() == [-2, 3, -1]
    F = CellularSheaf.signed(A, weight=None)
    assert (F.tail_data.tolist(), F.head_data.tolist()) == ([1, 1, 1], [-1, 1, -1])
    F = CellularSheaf.signed(A, weight=[16.0, 1.0, 1.0])
    assert F.head_data.tolist() == [-4, 1, -1]


def test_signed_takes_the_signs_of_weights_without_a_sign_attribute():
    G = nx.MultiGraph()
    G.add_weighted_edges_from([("a", "b", -4.0), ("c", "b", 9.0), ("c", "c", -1.0)])
    G.add_edge("a", "c")
    for F in (
        CellularSheaf.signed(G),
        CellularSheaf.signed(G, weight=[w for *_, w in G.edges(data="weight", default=1.0)]),
        CellularSheaf.signed([[0, 1], [0, 2], [1, 2], [2, 2]], weight=[-4.0, 1.0, 9.0, -1.0]),
    ):
        assert F.tail_data.tolist() == [2, 1, 3, 1]
        assert F.head_data.tolist() == [-2, 1, 3, -1]
    for *_, data in G.edges(data=True):
        data["charge"] = -16.0
    assert CellularSheaf.signed(G, weight="charge").head_data.tolist() == [-4, -4, -4, -4]
    assert CellularSheaf.signed(G, weight=None).head_data.tolist() == [-1, 1, 1, -1]
    with pytest.raises(TypeError, match="`weight` must be real, got dtype complex128"):
        CellularSheaf.signed(G, weight=[1j, 1, 1, 1])


def test_diagonal_maps_have_the_given_diagonals():
    F = CellularSheaf.diagonal([[1, 0], [2, 0]], [[1, 2], [3, 4]], [[5, 6], [7, 8]], n_vertices=4)
    assert F.edges.tolist() == [[1, 0], [2, 0]]
    assert F.vertex_dims.tolist() == [2, 2, 2, 2]
    assert [M.tolist() for M in tails(F)] == [[[1, 0], [0, 2]], [[3, 0], [0, 4]]]
    assert [M.tolist() for M in heads(F)] == [[[5, 0], [0, 6]], [[7, 0], [0, 8]]]


def test_diagonal_takes_attributes_of_a_networkx_graph():
    F = CellularSheaf.diagonal(named_graph(), "ends", [[1.0, 1.0], [1.0, 2.0]])
    assert F.vertex_labels == ("c", ("x", 1), "a", 3)
    assert [np.diag(M).tolist() for M in tails(F)] == [[5, 7], [2, 3]]
    assert [np.diag(M).tolist() for M in heads(F)] == [[1, 1], [1, 2]]


@pytest.mark.parametrize(
    ("build", "d"),
    [
        (lambda: CellularSheaf.constant(NO_EDGES, dim=3, n_vertices=2), 3),
        (lambda: CellularSheaf.connection(NO_EDGES, np.zeros((0, 3, 3)), n_vertices=2), 3),
        (
            lambda: CellularSheaf.diagonal(
                NO_EDGES, np.zeros((0, 3)), np.zeros((0, 3)), n_vertices=2
            ),
            3,
        ),
        (lambda: CellularSheaf.signed(NO_EDGES, sign=[], n_vertices=2), 1),
        (lambda: CellularSheaf.connection(nx.empty_graph(2), "turn"), 1),
        (lambda: CellularSheaf.signed(nx.empty_graph(2)), 1),
        (lambda: CellularSheaf.constant(scipy.sparse.csr_array((2, 2)), dim=4), 4),
        (lambda: CellularSheaf.random(nx.empty_graph(2), 5, 1), 5),
        (lambda: CellularSheaf.random(NO_EDGES, [2, 2], 1, kind="orthogonal"), 2),
    ],
)
def test_graphs_without_edges_are_allowed(build, d):
    F = build()
    assert (F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1) == (2, 0, 2 * d, 0)


@pytest.mark.parametrize(
    "graph",
    [nx.Graph(), NO_EDGES, scipy.sparse.csr_array((0, 0))],
    ids=["nx", "edges", "adjacency"],
)
@pytest.mark.parametrize(
    "build",
    [
        CellularSheaf.constant,
        lambda g: CellularSheaf.connection(g, np.zeros((0, 2, 2))),
        lambda g: CellularSheaf.diagonal(g, np.zeros((0, 2)), np.zeros((0, 2))),
        lambda g: CellularSheaf.signed(g, sign=[]),
        *[
            lambda g, kind=kind: CellularSheaf.random(g, 2, 3, kind)
            for kind in ("general", "orthogonal", "diagonal")
        ],
    ],
)
def test_graphs_without_vertices_are_allowed(build, graph):
    F = build(graph)
    assert (F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1) == (0, 0, 0, 0)


# ---------------------------------------------------------------- what is refused


BAD_ARGUMENTS = {
    "ValueError: (edge (1, 2)) must be orthogonal or unitary, but an entry of U* U - I is "
    "0.25": lambda: CellularSheaf.connection(PATH, [np.eye(2), [[1.0, 0.25], [0.0, 1.0]]]),
    "ValueError: an entry of U* U - I is 2e-06, above 1e-08": lambda: CellularSheaf.connection(
        [[0, 1]], [(1 + 1e-6) * np.eye(2)]
    ),
    "ValueError: must be orthogonal or unitary, but an entry of U* U - I is nan": lambda: (
        CellularSheaf.connection([[0, 1]], 1e200 * np.array([[[1 + 1j, 1 - 1j], [1 - 2j, 2 + 1j]]]))
    ),
    "ValueError: must be orthogonal or unitary, but an entry of U* U - I is 2.83": lambda: (
        CellularSheaf.connection([[0, 1]], [[[np.sqrt(2), 1j], [-1j, np.sqrt(2)]]])
    ),
    "ValueError: `transports` must be square, got shape (1, 2, 3)": lambda: (
        CellularSheaf.connection([[0, 1]], np.ones((1, 2, 3)))
    ),
    "ValueError: `transports` must be finite": lambda: CellularSheaf.connection(
        [[0, 1]], np.full((1, 2, 2), np.nan)
    ),
    "ValueError: `transports` must hold an array of shape (d, d) for each of the 2 edges, got "
    "shape (1, 2, 2)": lambda: CellularSheaf.connection(PATH, np.eye(2)[None]),
    "ValueError: `transports` must hold an array of shape (d, d) for each of the 2 edges, got "
    "shape (2, 2)": lambda: CellularSheaf.connection(PATH, np.eye(2)),
    "ValueError: `transports` = 'turn' names an edge attribute that no edge of the graph "
    "has": lambda: CellularSheaf.connection(nx.path_graph(3), "turn"),
    "ValueError: `weight` must not be negative, got -1.0 for edge 1 (1, 2)": lambda: (
        CellularSheaf.constant(PATH, weight=[1.0, -1.0])
    ),
    "ValueError: `weight` must not be negative": lambda: CellularSheaf.connection(
        [[0, 1]], [np.eye(2)], weight=[-1]
    ),
    "ValueError: got -2.0 for edge 0 ('a', 'b'); CellularSheaf.signed reads negative "
    "weights": lambda: CellularSheaf.constant(nx.Graph([("a", "b", {"weight": -2})])),
    "ValueError: `dim` must be at least 0, got -1": lambda: CellularSheaf.constant(PATH, dim=-1),
    "TypeError: `dim` must be an integer, got 1.0": lambda: CellularSheaf.constant(PATH, dim=1.0),
    "TypeError: `dim` must be an integer, got [1, 2, 1]": lambda: CellularSheaf.constant(
        PATH, dim=[1, 2, 1]
    ),
    "ValueError: `sign` must be 1 or -1, got 0.0 for edge 1 (1, 2)": lambda: CellularSheaf.signed(
        PATH, sign=[1, 0]
    ),
    "ValueError: `sign` must be 1 or -1, got 1j for edge 1 (1, 2)": lambda: CellularSheaf.signed(
        PATH, sign=[1, 1j]
    ),
    "ValueError: `sign` = 'sign' names an edge attribute that no edge of the graph has": lambda: (
        CellularSheaf.signed(PATH)
    ),
    "ValueError: `sign` = 'polarity' names an edge attribute that no edge of the graph "
    "has": lambda: CellularSheaf.signed(nx.Graph([(0, 1, {"weight": -2.0})]), sign="polarity"),
    "ValueError: edge 1 (1, 2) has no attribute 'sign' for `sign`": lambda: CellularSheaf.signed(
        nx.Graph([(0, 1, {"sign": 1}), (1, 2)])
    ),
    "ValueError: `tail` and `head` must have the same shape, got (2, 2) and (2, 3)": lambda: (
        CellularSheaf.diagonal(PATH, np.ones((2, 2)), np.ones((2, 3)))
    ),
    "ValueError: `head` must hold an array of shape (d) for each of the 2 edges, got shape "
    "(1, 2)": lambda: CellularSheaf.diagonal(PATH, np.ones((2, 2)), np.ones((1, 2))),
    "ValueError: `kind` must be one of 'general', 'orthogonal', 'diagonal', got "
    "'gaussian'": lambda: CellularSheaf.random(PATH, 1, 1, kind="gaussian"),
    "ValueError: `vertex_dims` must have one entry per vertex, 3 in all, got 2": lambda: (
        CellularSheaf.random(PATH, [1, 1], 1)
    ),
    "ValueError: `vertex_dims` must have one entry per vertex, 3 in all, got 4": lambda: (
        CellularSheaf.random(nx.path_graph(3), [1] * 4, 1)
    ),
    "ValueError: `edge_dims` must have one entry per edge, 2 in all, got 1": lambda: (
        CellularSheaf.random(PATH, 1, [1])
    ),
}


@pytest.mark.parametrize(("message", "build"), BAD_ARGUMENTS.items(), ids=BAD_ARGUMENTS)
def test_invalid_graphs_and_values_raise(build, message):
    with raises(message):
        build()
