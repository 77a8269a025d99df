"""Sheaves made from graphs and values on their edges, from Laplacians, and random sheaves."""

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support import reference
from tests.support.errors import raises, rows
from tests.support.helpers import assert_residual, covering, dense_rank, eps_of, normal
from tests.support.strategies import DTYPES, graphs, multigraphs, sheaves
from tests.unit.sheaf.test_cellular_sheaf import NO_EDGES, QUARTER_TURN, heads, tails

MAP_KINDS = ("general", "orthogonal", "diagonal")


def named_graph():
    """Return a graph with nodes neither sorted nor numbered; networkx turns both edges round."""
    G = nx.Graph()
    G.add_nodes_from(["c", ("x", 1), "a", 3])
    G.add_edge(3, "a", weight=4.0, turn=QUARTER_TURN, sign=-1, ends=[2.0, 3.0])
    G.add_edge("a", "c", weight=9.0, turn=-QUARTER_TURN, sign=1, ends=[5.0, 7.0])
    return G


# ---------------------------------------------------------------- graphs
@given(multigraphs())
def test_networkx_and_edge_arrays_give_the_same_constant_sheaf(G):
    F, names = CellularSheaf.constant(G, dim=2), list(G.nodes)
    assert F.vertex_labels == tuple(names)
    assert [(names[u], names[v]) for u, v in F.edges.tolist()] == list(G.edges())
    weights = [1 if w is None else w for _, _, w in G.edges(data="weight")]
    maps = np.sqrt(np.array(weights, float))[:, None, None] * np.eye(2)
    np.testing.assert_array_equal(F.tail_data, maps.ravel())
    for edges in (F.edges, F.edges.tolist(), F.edges.astype(np.uint16)):
        E = CellularSheaf.constant(edges, dim=2, weight=weights, n_vertices=len(names))
        assert E.equals(F.with_labels(None))
    assert CellularSheaf.constant(F.edges).n_vertices == F.edges.max(initial=-1) + 1


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
    F = CellularSheaf.constant(A)
    assert F.n_vertices == 4
    assert F.vertex_labels is None
    assert F.edges.tolist() == [[0, 0], [0, 2], [1, 2], [1, 3], [3, 3]]
    weights = [1.0] * 5 if dtype is bool else [5, 2, 3, 7, 9]
    np.testing.assert_array_equal(F.tail_data, np.sqrt(np.array(weights, F.dtype)))


def test_a_dense_symmetric_matrix_holds_edges():
    assert CellularSheaf.constant(np.array([[0, 3], [3, 0]])).edges.tolist() == [[0, 3], [3, 0]]


def test_adjacency_sums_duplicates_and_sorts_indices():
    entries = [1.0, 2.0, 4.0, 2.0, 5.0], ([0, 0, 0, 1, 2], [2, 1, 2, 0, 0])
    A = scipy.sparse.coo_array(entries, shape=(3, 3))
    arrays = np.array([5.0, 2.0, 2.0, 5.0]), np.array([2, 1, 0, 0]), np.array([0, 2, 3, 4])
    unsorted = scipy.sparse.csr_array(arrays, shape=(3, 3))
    for form in (A, A.tocsr(copy=True), unsorted):
        F = CellularSheaf.constant(form)
        assert F.edges.tolist() == [[0, 1], [0, 2]]
        assert F.tail_data.tolist() == np.sqrt([2.0, 5.0]).tolist()
    assert A.nnz == 5  # the caller's own matrix stays as it was
    assert unsorted.indices.tolist() == [2, 1, 0, 0]


def test_adjacency_must_be_symmetric_up_to_rounding():
    A = ADJACENCY.astype(float)
    A[2, 0] = np.nextafter(2.0, 3.0)
    F = CellularSheaf.constant(scipy.sparse.csr_array(A))
    assert F.tail_data.tolist() == np.sqrt([5, 2, 3, 7, 9]).tolist()
    A[2, 0] = 2.0 + 3e-14
    with raises("ValueError: got 2.0 at (0, 2) and 2.00000000000003 at (2, 0)"):
        CellularSheaf.constant(scipy.sparse.csr_array(A))


def test_names_in_an_array_are_converted_as_the_message_says():
    names = np.array([["b", "a"], ["c", "b"]], object)
    with raises("TypeError: and F.with_labels(numpy.unique(graph).tolist()) names the vertices"):
        CellularSheaf.constant(names)
    edges = np.unique(names, return_inverse=True)[1].reshape(-1, 2)
    F = CellularSheaf.constant(edges).with_labels(np.unique(names).tolist())
    assert [[F.vertex_labels[v] for v in edge] for edge in edges] == names.tolist()


@pytest.mark.parametrize("n", [0, 2])
@pytest.mark.parametrize("form", ["networkx", "edges", "adjacency"])
@pytest.mark.parametrize(
    ("method", "arguments", "d"),
    [
        ("constant", [3], 3),
        ("connection", [np.zeros((0, 3, 3))], 3),
        ("connection", ["turn"], 1),
        ("diagonal", [np.zeros((0, 3))] * 2, 3),
        ("signed", [[]], 1),
        ("signed", ["sign"], 1),
        *(("random", [3, kind], 2) for kind in MAP_KINDS),
    ],
)
def test_graphs_without_edges_or_vertices_are_allowed(method, arguments, d, form, n):
    graphs = {"networkx": nx.empty_graph(n), "adjacency": scipy.sparse.csr_array((n, n))}
    options = {"n_vertices": n} if form == "edges" and method != "random" else {}
    arguments = [[2] * n, *arguments] if method == "random" else arguments
    F = getattr(CellularSheaf, method)(graphs.get(form, NO_EDGES), *arguments, **options)
    assert (F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1) == (n, 0, n * d, 0)


# ---------------------------------------------------------------- values on edges
def test_weights_may_be_names_lists_or_arrays_and_are_1_where_missing():
    G = named_graph()
    for weight in ("weight", [9.0, 4.0], (9, 4), np.array([9.0, 4.0])):
        assert CellularSheaf.constant(G, weight=weight).tail_data.tolist() == [3.0, 2.0]
    del G.edges["a", 3]["weight"]
    for weight, expected in (("weight", [3.0, 1.0]), ("no such", [1.0, 1.0]), (None, [1.0, 1.0])):
        assert CellularSheaf.constant(G, weight=weight).tail_data.tolist() == expected
    assert CellularSheaf.constant([[0, 1]], weight="weight").tail_data.tolist() == [1.0]
    # only maps must be in range
    assert CellularSheaf.constant([[0, 1]], weight=[1e-200]).tail_data == pytest.approx(1e-100)


def test_values_keep_single_precision():
    two = np.array([2], np.float32)
    assert CellularSheaf.constant([[0, 1]], weight=two).dtype == np.float32
    for edges, dtype in (([[0, 1]], np.complex64), (NO_EDGES, np.float32)):
        transports = np.tile(QUARTER_TURN.astype(dtype), (len(edges), 1, 1))
        assert CellularSheaf.connection(edges, transports).dtype == dtype
    F = CellularSheaf.connection([[0, 1]], [np.eye(2)], weight=two)
    np.testing.assert_array_equal(F.tail_map(0), np.sqrt(2.0) * np.eye(2))
    A = scipy.sparse.coo_array((np.append(-two, -two), ([0, 1], [1, 0])), shape=(2, 2))
    F = CellularSheaf.signed(A)
    assert (F.dtype, F.head_data.tolist()) == (np.float32, [-np.sqrt(two[0])])


def test_networkx_graphs_keep_order_orientation_and_names():
    graph, array = named_graph(), [-QUARTER_TURN, QUARTER_TURN]
    F, same = (CellularSheaf.connection(graph, transports) for transports in ("turn", array))
    assert F.equals(same)
    for G in (F, CellularSheaf.random(graph, [2] * 4, 2, seed=6)):
        assert G.vertex_labels == ("c", ("x", 1), "a", 3)
        assert G.edges.tolist() == [[0, 2], [2, 3]]
        assert G.vertex_dims.tolist() == [2, 2, 2, 2]
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


def test_signed_takes_the_signs_of_an_adjacency_from_its_entries():
    A = scipy.sparse.csr_array(np.array([[0, -4.0, 9.0], [-4.0, 0, 0], [9.0, 0, -1.0]]))
    for options, tail, head in (
        ({}, [2, 3, 1], [-2, 3, -1]),
        ({"weight": None}, [1, 1, 1], [-1, 1, -1]),
        ({"weight": [16.0, 1.0, 1.0]}, [4, 1, 1], [-4, 1, -1]),
    ):
        F = CellularSheaf.signed(A, **options)
        assert F.edges.tolist() == [[0, 1], [0, 2], [2, 2]]
        assert (F.tail_data.tolist(), F.head_data.tolist()) == (tail, head)


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


def test_diagonal_maps_have_the_given_diagonals():
    F = CellularSheaf.diagonal([[1, 0], [2, 0]], [[1, 2], [3, 4]], [[5, 6], [7, 8]], n_vertices=4)
    assert (F.edges.tolist(), F.vertex_dims.tolist()) == ([[1, 0], [2, 0]], [2, 2, 2, 2])
    assert [M.tolist() for M in tails(F)] == [[[1, 0], [0, 2]], [[3, 0], [0, 4]]]
    assert [M.tolist() for M in heads(F)] == [[[5, 0], [0, 6]], [[7, 0], [0, 8]]]
    F = CellularSheaf.diagonal(named_graph(), "ends", [[1.0, 1.0], [1.0, 2.0]])
    assert F.vertex_labels == ("c", ("x", 1), "a", 3)
    assert [np.diag(M).tolist() for M in tails(F)] == [[5, 7], [2, 3]]
    assert [np.diag(M).tolist() for M in heads(F)] == [[1, 1], [1, 2]]


# ---------------------------------------------------------------- random sheaves
@given(graphs(), st.sampled_from(MAP_KINDS), st.sampled_from(DTYPES), st.integers(0, 999))
def test_random_sheaves_have_the_given_dimensions(graph, kind, dtype, seed):
    n, edges = graph
    rng = np.random.default_rng(seed)
    vertex_dims, edge_dims = rng.integers(0, 7, n), rng.integers(0, 7, len(edges))
    F = CellularSheaf.random(edges, vertex_dims, edge_dims, kind, seed=seed, dtype=dtype)
    assert F.dtype == dtype
    assert F.vertex_labels is None
    assert F.edges.tolist() == edges.tolist()
    assert F.vertex_dims.tolist() == vertex_dims.tolist()
    assert F.edge_dims.tolist() == edge_dims.tolist()
    for M in tails(F) + heads(F):
        k = min(M.shape)
        if kind == "orthogonal":  # orthonormal rows or columns, whichever are fewer
            gram = M @ M.conj().T if M.shape[0] == k else M.conj().T @ M
            assert_residual(gram - np.eye(k), n=max(*M.shape, 1), eps=eps_of(dtype))
        elif kind == "diagonal":
            assert (M * np.eye(*M.shape) == M).all()
            assert (M.diagonal() != 0).all()
        else:
            assert (M != 0).all()
        if F.dtype.kind == "c" and k:
            assert M.imag.any()


@pytest.mark.parametrize("kind", MAP_KINDS)
def test_random_sheaves_are_determined_by_the_seed(kind):
    edges = [[0, 1], [0, 1], [1, 2]]
    seeds = (4217, 4217, np.random.default_rng(4217), 4218, None, None)
    made = [CellularSheaf.random(edges, 3, 3, kind, seed=seed) for seed in seeds]
    F, same, generator, other, *with_entropy = made
    assert F.equals(same)
    assert F.equals(generator)
    assert not np.array_equal(F.tail_data, other.tail_data)
    assert not np.array_equal(F.tail_data, F.head_data)
    assert not np.array_equal(F.tail_map(0), F.tail_map(1))
    assert not np.array_equal(with_entropy[0].tail_data, with_entropy[1].tail_data)


def test_random_orthogonal_maps_cover_both_components_of_the_group():
    """QR without correcting the signs would favour one component."""
    F = CellularSheaf.random(np.zeros((400, 2), int), 2, 2, "orthogonal", seed=90013)
    maps = F.tail_data.reshape(-1, 2, 2)
    for signs in (np.linalg.det(maps), maps[:, 0, 0]):
        assert 140 < (signs > 0).sum() < 260


def test_random_general_entries_are_standard_normal():
    F = CellularSheaf.random([[0, 1]], 100, 100, seed=90017)
    assert max(abs(F.tail_data.mean()), abs(F.tail_data.std() - 1)) < 0.05
    assert dense_rank(F.tail_map(0)) == 100


# ---------------------------------------------------------------- Laplacians
GRAPH = nx.random_regular_graph(4, 20, seed=3)


def assert_comes_back(L, dims):
    """Assert that the sheaf of L has the Laplacian L, and return it."""
    F = sc.CellularSheaf.from_laplacian(L, dims)
    dense = L.toarray() if scipy.sparse.issparse(L) else np.asarray(L)
    assert F.dim_c0 == len(dense)
    error = reference.coboundary(F).conj().T @ reference.coboundary(F) - dense
    assert_residual(error, dense, n=F.dim_c0, eps=eps_of(F.dtype))
    return F


def rotations(m, d, dtype, seed):
    return np.linalg.qr(normal(np.random.default_rng(seed), (m, d, d), dtype))[0]


@pytest.mark.parametrize(("unit", "dtype", "d"), covering([1e-12, 1.0, 1e12], DTYPES, [1, 2, 3]))
def test_connections_are_recovered_from_their_laplacians(dtype, d, unit):
    weights = np.random.default_rng(d).uniform(0.1, 9, GRAPH.number_of_edges())
    weights = (unit * weights).astype(np.dtype(dtype).type(0).real.dtype)
    edges = np.sort(np.array(GRAPH.edges), axis=1)
    edges = edges[np.lexsort(edges.T[::-1])]
    F = sc.CellularSheaf.connection(edges, rotations(len(edges), d, dtype, d), weights)
    G = assert_comes_back(sc.laplacian(F), d)
    assert G.dtype == F.dtype
    assert G.allclose(F)  # not the Laplacian alone: sqrt(w) I and sqrt(w) U, and no loop


@given(sheaves(dims=(0, 1)))
def test_every_laplacian_of_one_dimensional_stalks_gives_a_sheaf(F):
    """What is left over goes to loops; nothing but rounding is refused."""
    L = sc.laplacian(F)
    try:
        G = assert_comes_back(L, F.vertex_dims)
        assert G.n_edges > 0 or not L.data.any()
        assert L.data.any() or G.n_edges == 0
    except ValueError as error:
        assert "is too small for the balanced maps" in str(error)
        dense = np.abs(L.toarray())  # maps that differ by 1e12 leave rests below rounding
        filled = dense[dense > 0]
        assert filled.min() < 1e-9 * filled.max()


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.float64])
def test_laplacians_of_single_edges_with_rounding_errors_are_accepted(dtype):
    """The diagonal blocks times one another are the square of the other block but for rounding."""
    for seed in range(40):
        F = sc.CellularSheaf.random(nx.path_graph(2), 1, 1, seed=seed, dtype=dtype)
        assert_comes_back(sc.laplacian(F), 1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounding_errors_of_many_edges_give_no_loop(dtype):
    weights = np.full(20000, np.float32(0.1), float)  # rounding errors of their sum add up
    L = sc.laplacian(sc.CellularSheaf.constant(nx.star_graph(20000), weight=weights)).astype(dtype)
    assert sc.CellularSheaf.from_laplacian(L, 1).n_edges == 20000


@pytest.mark.parametrize("d", [1, 2])
def test_loops_contain_the_remainder_of_diagonal_blocks(d):
    F = sc.CellularSheaf.constant(GRAPH, d)
    L = sc.laplacian(F).toarray()
    L[[0, 5 * d], [0, 5 * d]] += 2.0, 3.0
    G = assert_comes_back(L, d)
    assert G.edges[F.n_edges :].tolist() == [[0, 0], [5, 5]]
    assert G.edge_dims[F.n_edges :].tolist() == [1, 1]
    assert not G.head_map(F.n_edges).any()


def test_stalks_may_have_different_dimensions():
    A, dims = np.random.default_rng(3).standard_normal((8, 8)), [2, 0, 1, 3, 2]
    A = (A + A.T) / 2
    L = A + np.diag(np.abs(A).sum(axis=1) + 1)
    F = assert_comes_back(L, dims)
    assert F.edges[:6].tolist() == [[0, 2], [0, 3], [0, 4], [2, 3], [2, 4], [3, 4]]
    assert F.edge_dims[:6].tolist() == [1, 2, 2, 1, 1, 2]
    assert_comes_back(scipy.sparse.csc_matrix(L), dims)


@pytest.mark.parametrize("d", [1, 3])
def test_normalized_laplacians_give_sheaves(d):
    """With hubs, equal singular values at both ends would exceed the small diagonal blocks."""
    F = sc.CellularSheaf.connection(nx.karate_club_graph(), rotations(78, d, float, 9))
    G = assert_comes_back(sc.laplacian(sc.normalize(F)), d)
    assert (G.edges[:, 0] < G.edges[:, 1]).all()


def test_light_edges_between_parts_do_not_prevent_a_sheaf():
    """They make a second eigenvalue of the normalized Laplacian that is far below sqrt(eps)."""
    F = sc.CellularSheaf.constant(nx.path_graph(6), weight=[1.0, 2.0, 1e-9, 3.0, 1.0])
    assert_comes_back(sc.laplacian(sc.normalize(F)), 1)


def test_one_edge_with_differently_scaled_ends():
    F = assert_comes_back([[4, -2], [-2, 1]], 1)
    np.testing.assert_allclose(np.abs([F.tail_data[0], F.head_data[0]]), [2, 1], rtol=1e-7)


# ---------------------------------------------------------------- what is refused
PATH, TRIANGLE = [[0, 1], [1, 2]], [[0, 1], [1, 2], [2, 0]]
EYE, ONES, NAMED = np.eye(2), np.ones((2, 2)), named_graph()
NEGATIVE = nx.Graph([("a", "b", {"weight": -2})])
SIGNED = nx.Graph([("a", "b", {"sign": 1}), ("b", "c")])


def adjacency(A):
    return scipy.sparse.csr_array(np.array(A))


BAD_ARGUMENTS = """
constant(nx.DiGraph([(0, 1)])) -> `graph` must be undirected
constant(nx.MultiDiGraph([(0, 1)])) -> to_undirected()
constant(adjacency([[0, 1], [2, 0]]))
        -> a symmetric adjacency, got 1 at (0, 1) and 2 at (1, 0)
constant(adjacency([[0, 1.5], [0, 0]])) -> got 1.5 at (0, 1) and 0.0 at (1, 0)
constant(adjacency([[0, np.nan], [np.nan, 0]])) -> must be finite, got nan at (0, 1)
constant(adjacency([[np.inf, 0], [0, 1]])) -> must be finite, got inf at (0, 0)
constant(adjacency(np.ones((2, 3)))) -> `graph` must be a square adjacency, got shape (2, 3)
constant(adjacency([[1j]])) -> TypeError: real adjacency
constant([[0, 1], [1, -2]]) -> `graph[1]` = (1, -2) has a negative
constant([[0, 1], [1, 1.5]]) -> whole numbers, got 1.5 at index (1, 1)
constant([[0, 1, 2]]) -> `graph` must have shape (m, 2), got (1, 3)
constant([0, 1]) -> `graph` must be 2-dimensional, got shape (2,)
constant([[0, 1], [2]]) -> `graph` must be a rectangular array
constant("karate") -> TypeError: `graph` must be a networkx graph, a scipy adjacency or
constant(None) -> TypeError: `graph` must be a networkx graph, a scipy adjacency or
constant(np.array([[True, False]])) -> TypeError: integers, got dtype bool
constant([["a", "b"]]) -> TypeError: `graph` must hold integers, got dtype <U1:
        numpy.unique(graph, return_inverse=True)[1].reshape(-1, 2) converts
constant(np.array([["a", "b"]], object))
        -> TypeError: `graph` must hold integers, got dtype object: numpy.unique(graph,
constant(TRIANGLE, n_vertices=2) -> `graph[1]` = (1, 2) has a vertex beyond `n_vertices` = 2
constant(TRIANGLE, n_vertices=-1) -> `n_vertices` must be at least 0, got -1
constant(TRIANGLE, n_vertices=3.0) -> TypeError: `n_vertices` must be an integer, got 3.0
constant(nx.path_graph(3), n_vertices=3) -> has a list of nodes
constant(adjacency(ONES), n_vertices=2) -> has a size
constant(PATH, -1) -> `dim` must be at least 0, got -1
constant(PATH, 1.0) -> TypeError: `dim` must be an integer, got 1.0
constant(PATH, weight=[1, -1.0]) -> `weight` must not be negative, got -1.0 for edge 1 (1, 2)
constant([[0, 1]], weight=[1e-302]) -> rescale the maps
constant(NEGATIVE, weight="weight")
        -> got -2.0 for edge 0 ('a', 'b'); CellularSheaf.signed reads negative weights
constant(NAMED, weight=[1.0]) -> `weight` must hold a number for each of the 2 edges, got shape (1
constant(NAMED, weight=[[1.0], [2.0]]) -> got shape (2, 1)
constant(NAMED, weight=[1.0, np.inf]) -> `weight` must be finite, got inf for edge 1 ('a', 3)
constant(PATH, weight="length")
        -> `weight` = 'length' names an edge attribute that no edge of the graph has
constant(NAMED, weight=[1j, 1j]) -> TypeError: `weight` must be real, got dtype complex128
constant(NAMED, weight=[True, False]) -> TypeError: got dtype bool
connection(PATH, [EYE, [[1.0, 0.25], [0.0, 1.0]]])
        -> (edge (1, 2)) must be orthogonal or unitary, but an entry of U* U - I is 0.25
connection([[0, 1]], [(1 + 1e-6) * EYE]) -> an entry of U* U - I is 2e-06, above 1e-08
connection([[0, 1]], 1e200 * np.array([[[1 + 1j, 1 - 1j], [1 - 2j, 2 + 1j]]]))
        -> must be orthogonal or unitary, but an entry of U* U - I is nan
connection([[0, 1]], [[[np.sqrt(2), 1j], [-1j, np.sqrt(2)]]])
        -> must be orthogonal or unitary, but an entry of U* U - I is 2.83
connection([[0, 1]], np.ones((1, 2, 3))) -> `transports` must be square, got shape (1, 2, 3)
connection([[0, 1]], np.full((1, 2, 2), np.nan)) -> `transports` must be finite
connection(PATH, EYE[None]) -> `transports` must hold an array of shape (d, d) for each of the 2
        edges, got shape (1, 2, 2)
connection(PATH, EYE) -> for each of the 2 edges, got shape (2, 2)
connection(PATH, [EYE, np.eye(3)]) -> `transports` must be a rectangular array of numbers
connection(nx.path_graph(3), "turn")
        -> `transports` = 'turn' names an edge attribute that no edge of the graph has
connection([[0, 1]], [EYE], [-1]) -> `weight` must not be negative
signed(PATH, [1, 0]) -> `sign` must be 1 or -1, got 0.0 for edge 1 (1, 2)
signed(PATH, [1, 1j]) -> `sign` must be 1 or -1, got 1j for edge 1 (1, 2)
signed(PATH, "sign") -> `sign` = 'sign' names an edge attribute that no edge of the graph has
signed(NEGATIVE, "polarity")
        -> `sign` = 'polarity' names an edge attribute that no edge of the graph has
signed(SIGNED, "sign") -> edge 1 ('b', 'c') has no attribute 'sign' for `sign`
signed(NEGATIVE, "sign", [1j]) -> TypeError: `weight` must be real, got dtype complex128
diagonal(PATH, ONES, np.ones((2, 3)))
        -> `tail` and `head` must have the same shape, got (2, 2) and (2, 3)
diagonal(PATH, ONES, np.ones((1, 2)))
        -> `head` must hold an array of shape (d) for each of the 2 edges, got shape (1, 2)
random(PATH, 1, 1, "gaussian")
        -> `kind` must be one of 'general', 'orthogonal', 'diagonal', got 'gaussian'
random(PATH, [1, 1], 1) -> `vertex_dims` must have one entry per vertex, 3 in all, got 2
random(nx.path_graph(3), [1] * 4, 1) -> `vertex_dims` must have one entry per vertex, 3 in all, got
random(PATH, 1, [1]) -> `edge_dims` must have one entry per edge, 2 in all, got 1
"""


@pytest.mark.parametrize(("call", "error"), rows(BAD_ARGUMENTS))
def test_invalid_graphs_and_values_raise(call, error):
    with raises(error):
        eval(f"CellularSheaf.{call}")
