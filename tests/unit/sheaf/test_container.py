import dataclasses
import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen._support import range_limits
from sheafcoarsen.sheaf import trusted_sheaf
from tests.support import reference
from tests.support.helpers import assert_residual, dense_rank, eps_of, size
from tests.support.strategies import DTYPES, JUNK, graphs, multigraphs, sheaves

NO_EDGES = np.zeros((0, 2), dtype=int)
QUARTER_TURN = np.array([[0.0, -1.0], [1.0, 0.0]])  # not symmetric: a flipped edge shows


def tails(F):
    return [F.tail_map(e) for e in range(F.n_edges)]


def heads(F):
    return [F.head_map(e) for e in range(F.n_edges)]


def assert_same_sheaf(F, G):
    """Assert the same graph, stalks, scalar type and maps, to the last bit."""
    assert F.n_vertices == G.n_vertices
    assert F.edges.tolist() == G.edges.tolist()
    assert F.vertex_dims.tolist() == G.vertex_dims.tolist()
    assert F.edge_dims.tolist() == G.edge_dims.tolist()
    assert F.dtype == G.dtype
    for A, B in zip(tails(F) + heads(F), tails(G) + heads(G), strict=True):
        np.testing.assert_array_equal(A, B, strict=True)


def mixed_sheaf(dtype=float):
    """Stalks of dimension 2, 1, 0, 3; a loop at 0, two parallel edges 0 -> 1 and 1 -> 0, an isolated vertex 3."""
    edges = [[0, 0], [0, 1], [1, 0], [2, 1]]
    tail = [[[1, 2]], [[3, 4], [5, 6]], [[7]], np.zeros((2, 0))]
    head = [[[8, 9]], [[10], [11]], [[12, 13]], [[14], [15]]]
    tail, head = ([np.array(M, dtype) for M in maps] for maps in (tail, head))
    return CellularSheaf(edges, tail, head, vertex_dims=[2, 1, 0, 3])


# ---------------------------------------------------------------- what the container holds


def test_a_small_sheaf_entry_by_entry():
    F = mixed_sheaf()
    assert (F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1) == (4, 4, 6, 6)
    assert F.vertex_offsets.tolist() == [0, 2, 3, 3, 6]
    assert F.edge_offsets.tolist() == [0, 1, 3, 4, 6]
    assert F.edge_dims.tolist() == [1, 2, 1, 2]
    assert F.tail_map(1).tolist() == [[3, 4], [5, 6]]
    assert F.head_map(1).tolist() == [[10], [11]]
    assert F.tail_map(3).shape == (2, 0)
    assert F.head_map(-1).tolist() == [[14], [15]]
    assert F.vertex_labels is None
    assert repr(F) == "CellularSheaf(n_vertices=4, n_edges=4, dim_c0=6, dim_c1=6, dtype=float64)"
    assert reference.coboundary(F).tolist() == [
        [-7, -7, 0, 0, 0, 0],
        [3, 4, -10, 0, 0, 0],
        [5, 6, -11, 0, 0, 0],
        [-12, -13, 7, 0, 0, 0],
        [0, 0, -14, 0, 0, 0],
        [0, 0, -15, 0, 0, 0],
    ]


@given(sheaves())
def test_sizes_and_offsets_agree_with_the_maps(F):
    delta = reference.coboundary(F)
    assert (F.dim_c1, F.dim_c0) == delta.shape
    assert delta.dtype == F.dtype
    for v in range(F.n_vertices):
        block = reference.vertex_coordinates(F, v)
        assert list(range(*F.vertex_offsets[v : v + 2])) == block
    for e, (u, v) in enumerate(F.edges):
        block = reference.edge_coordinates(F, e)
        assert list(range(*F.edge_offsets[e : e + 2])) == block
        assert F.tail_map(e).shape == (F.edge_dims[e], F.vertex_dims[u])
        assert F.head_map(e).shape == (F.edge_dims[e], F.vertex_dims[v])
    for name in ("edges", "vertex_dims", "edge_dims", "vertex_offsets", "edge_offsets"):
        assert getattr(F, name).dtype == np.int64


@given(sheaves())
def test_flat_data_are_the_maps_one_after_the_other(F):
    for data, maps in ((F.tail_data, tails(F)), (F.head_data, heads(F))):
        flat = np.concatenate([np.zeros(0, F.dtype), *[M.ravel() for M in maps]])
        np.testing.assert_array_equal(data, flat, strict=True)


@given(sheaves())
def test_every_way_to_build_a_sheaf_builds_the_same(F):
    dims = F.vertex_dims
    if F.n_edges:  # an empty list of maps does not say its scalar type
        assert_same_sheaf(CellularSheaf(F.edges, tails(F), heads(F), dims), F)
        assert_same_sheaf(
            CellularSheaf(F.edges.tolist(), tuple(tails(F)), heads(F), dims.tolist()), F
        )
        assert_same_sheaf(F.with_maps(tails(F), heads(F)), F)
    assert_same_sheaf(
        CellularSheaf.from_flat(F.edges, F.tail_data, F.head_data, dims, F.edge_dims), F
    )
    assert_same_sheaf(F.with_maps(F.tail_data, F.head_data), F)


@given(sheaves(uniform=True))
def test_uniform_maps_may_come_as_one_array(F):
    m = F.n_edges
    d_v, d_e = (int(max(dims, default=0)) for dims in (F.vertex_dims, F.edge_dims))
    arrays = [data.reshape(m, d_e, d_v) for data in (F.tail_data, F.head_data)]
    assert_same_sheaf(CellularSheaf(F.edges, *arrays, F.vertex_dims), F)
    assert_same_sheaf(F.with_maps(*arrays), F)
    strided = [np.asfortranarray(A) for A in arrays]
    assert_same_sheaf(CellularSheaf(F.edges, *strided, F.vertex_dims), F)
    if m and d_v:
        assert_same_sheaf(
            CellularSheaf.from_flat(F.edges, F.tail_data, F.head_data, F.vertex_dims, d_e), F
        )
        seen = (
            CellularSheaf(F.edges, *arrays) if F.edges.max() + 1 == len(set(F.edges.flat)) else None
        )
        assert seen is None or seen.n_vertices == F.edges.max() + 1


def test_dimensions_are_read_off_the_maps_where_every_vertex_is_touched():
    F = CellularSheaf(
        [[2, 0], [0, 1]], [np.ones((2, 3)), np.ones((1, 1))], [np.ones((2, 1)), np.ones((1, 0))]
    )
    assert F.vertex_dims.tolist() == [1, 0, 3]


@pytest.mark.parametrize("maps", [[], (), np.zeros((0, 2, 3)), np.zeros(0)], ids=repr)
def test_no_edges(maps):
    F = CellularSheaf(NO_EDGES, maps, maps, vertex_dims=[2, 0, 1])
    assert (F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1) == (3, 0, 3, 0)
    assert reference.coboundary(F).shape == (0, 3)
    nothing = CellularSheaf([], maps, maps)
    assert (nothing.n_vertices, nothing.dim_c0, nothing.dim_c1) == (0, 0, 0)
    assert nothing.edges.shape == (0, 2)


@pytest.mark.parametrize("e", [4, -5])
@pytest.mark.parametrize("end", ["tail_map", "head_map"])
def test_edges_have_bounds(e, end):
    with pytest.raises(IndexError, match=f"edge {e} is out of range for 4 edges"):
        getattr(mixed_sheaf(), end)(e)


@given(sheaves())
def test_largest_entry_by_which_norms_are_scaled(F):
    entries = np.concatenate([F.tail_data, F.head_data])
    eps = eps_of(F.dtype)
    largest = float(np.abs(entries).max(initial=0))
    assert_residual(F.largest_entry - largest, largest, n=1, eps=eps)


# ---------------------------------------------------------------- scalar types


@pytest.mark.parametrize(
    ("given_type", "kept"),
    [
        *[(dtype, dtype) for dtype in DTYPES],
        (np.int8, np.float64),
        (np.int64, np.float64),
        (np.uint16, np.float64),
        (">f8", np.float64),
        (">c8", np.complex64),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["array", "list", "flat"])
def test_scalar_types_are_kept_and_integers_become_double(given_type, kept, form):
    values = np.arange(1, 5).reshape(1, 2, 2)
    maps = values.astype(given_type)
    if form == "flat":
        F = CellularSheaf.from_flat([[0, 1]], maps.ravel(), maps.ravel(), 2, 2)
    else:
        maps = list(maps) if form == "list" else maps
        F = CellularSheaf([[0, 1]], maps, maps)
    assert F.dtype == np.dtype(kept)
    assert F.dtype.isnative
    assert F.tail_map(0).tolist() == values[0].tolist()


def test_both_ends_get_the_common_scalar_type():
    F = CellularSheaf(
        [[0, 1]], np.ones((1, 2, 2), np.float32), np.full((1, 2, 2), 1j, np.complex64)
    )
    assert F.dtype == F.tail_map(0).dtype == F.head_map(0).dtype == np.complex64
    F = CellularSheaf([[0, 1]], np.ones((1, 2, 2), np.float32), np.ones((1, 2, 2), np.int8))
    assert F.dtype == np.float64
    F = CellularSheaf(
        [[0, 1], [1, 2]], [np.eye(1, dtype="f4"), np.eye(1)], np.ones((2, 1, 1), "f4")
    )
    assert F.dtype == np.float64


@pytest.mark.parametrize(
    "dtype", [bool, object, "U1", np.float16, np.longdouble, np.clongdouble, "M8[s]"], ids=str
)
@pytest.mark.parametrize("n_edges", [1, 0])
@pytest.mark.parametrize("form", ["array", "flat", "with_maps"])
def test_other_scalar_types_are_refused(dtype, n_edges, form):
    maps = np.zeros((n_edges, 1, 1)).astype(int).astype(dtype)
    good = np.ones((n_edges, 1, 1))
    edges = np.zeros((n_edges, 2), int)
    build = {
        "array": lambda: CellularSheaf(edges, good, maps, vertex_dims=[1]),
        "flat": lambda: CellularSheaf.from_flat(edges, good.ravel(), maps.ravel(), [1], 1),
        "with_maps": lambda: CellularSheaf(edges, good, good, vertex_dims=[1]).with_maps(
            good, maps
        ),
    }[form]
    with pytest.raises(
        TypeError, match=r"`head_(maps|data)` must (hold|be) .*, got (dtype|an object)"
    ):
        build()


# ---------------------------------------------------------------- immutability


def built_from_arrays():
    """(name, arrays that go in, constructor) of every way that takes arrays."""
    eye = np.stack([np.eye(2), np.eye(2)])
    turn = np.stack([QUARTER_TURN, QUARTER_TURN])
    edges = np.array([[0, 1], [2, 1]])
    twos = np.array([2, 2, 2])
    sparse = scipy.sparse.csr_array(np.array([[0, 4.0], [4.0, 0]]))
    F = CellularSheaf(edges, eye, turn)
    return {
        "array": ([edges, eye, turn, twos], lambda: CellularSheaf(edges, eye, turn, twos)),
        "list": ([edges, eye, turn], lambda: CellularSheaf(edges, list(eye), [turn[0], turn[1]])),
        "one map": ([eye], lambda: CellularSheaf([[0, 1]], [eye[0]], [eye[1]])),
        "from_flat": (
            [edges, eye, turn, twos],
            lambda: CellularSheaf.from_flat(
                edges, eye.reshape(-1), turn.reshape(-1), twos, twos[:2]
            ),
        ),
        "with_maps": ([eye, turn], lambda: F.with_maps(turn, eye)),
        "with_maps, flat": ([eye, turn], lambda: F.with_maps(turn.reshape(-1), eye.reshape(-1))),
        "connection": ([edges, turn], lambda: CellularSheaf.connection(edges, turn)),
        "diagonal": ([edges, eye], lambda: CellularSheaf.diagonal(edges, eye[0], eye[1])),
        "constant": ([edges, twos], lambda: CellularSheaf.constant(edges, weight=twos[:2])),
        "signed": ([edges, eye], lambda: CellularSheaf.signed(edges, sign=eye[0, 0] * 2 - 1)),
        "adjacency": ([sparse.data], lambda: CellularSheaf.constant(sparse)),
        "random": ([edges, twos], lambda: CellularSheaf.random(edges, twos, twos[:2], seed=311)),
    }


@pytest.mark.parametrize("case", built_from_arrays())
def test_the_callers_arrays_are_neither_frozen_nor_kept(case):
    arrays, build = built_from_arrays()[case]
    F, same = build(), build()
    for array in arrays:
        assert array.flags.writeable
        array[...] = 1
    assert_same_sheaf(F, same)
    held = [F.edges, F.vertex_dims, F.edge_dims, F.tail_data, F.head_data]
    assert not any(np.shares_memory(a, b) for a in arrays for b in held)


@pytest.mark.parametrize("case", built_from_arrays())
def test_arrays_are_read_only(case):
    F = built_from_arrays()[case][1]()
    fields = ["edges", "vertex_dims", "edge_dims", "tail_data", "head_data"]
    fields += ["vertex_offsets", "edge_offsets", "tail_offsets", "head_offsets"]
    for array in [*(getattr(F, name) for name in fields), F.tail_map(0), F.head_map(0)]:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for name in ("edges", "tail_data", "vertex_labels"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=name):
            setattr(F, name, None)


def test_maps_are_views_of_the_flat_data():
    F = mixed_sheaf()
    assert np.shares_memory(F.tail_map(1), F.tail_data)
    assert np.shares_memory(F.head_map(1), F.head_data)


def test_sheaves_compare_by_identity_and_can_be_keys():
    F, G = mixed_sheaf(), mixed_sheaf()
    assert F != G
    assert {F: 1, G: 2}[F] == 1


# ---------------------------------------------------------------- new maps


@given(sheaves(spread=False), st.sampled_from(["maps", "flat"]))
def test_with_maps_keeps_the_graph_and_takes_the_maps(F, form):
    new_tails, new_heads = ([2 * M for M in maps] for maps in (heads(F), tails(F)))
    if [M.shape for M in new_tails] != [M.shape for M in tails(F)]:
        new_tails, new_heads = new_heads, new_tails
    if form == "flat" or not F.n_edges:
        empty = np.zeros(0, F.dtype)
        flat = [
            np.concatenate([empty, *[M.ravel() for M in maps]]) for maps in (new_tails, new_heads)
        ]
        G = F.with_maps(*flat)
    else:
        G = F.with_maps(new_tails, new_heads)
    for A, B in zip(tails(G) + heads(G), new_tails + new_heads, strict=True):
        np.testing.assert_array_equal(A, B, strict=True)
    for name in ("edges", "vertex_dims", "edge_dims", "vertex_offsets", "edge_offsets"):
        assert getattr(G, name) is getattr(F, name)


def test_with_maps_keeps_labels_and_takes_the_new_scalar_type():
    F = CellularSheaf.constant(nx.Graph([("b", "a")]))
    G = F.with_maps([[[2j]]], np.array([[[3]]], np.float32))
    assert G.vertex_labels == ("b", "a")
    assert (G.dtype, G.tail_map(0)[0, 0], G.head_map(0)[0, 0]) == (np.complex128, 2j, 3)


# ---------------------------------------------------------------- sheaves from graphs


def named_graph():
    """Nodes neither sorted nor numbered; networkx reports ("c", "a") and ("a", 3), added the other way round."""
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


def test_connection_on_an_edge_array_keeps_order_and_orientation():
    edges = [[3, 0], [1, 2], [0, 3], [2, 2]]
    U = np.stack([QUARTER_TURN, np.eye(2), -QUARTER_TURN, np.diag([1.0, -1.0])])
    F = CellularSheaf.connection(edges, U, weight=[1.0, 4.0, 9.0, 16.0], n_vertices=5)
    assert F.edges.tolist() == edges
    assert F.n_vertices == 5
    for e, w in enumerate([1, 2, 3, 4]):
        assert F.tail_map(e).tolist() == (w * np.eye(2)).tolist()
        assert F.head_map(e).tolist() == (w * U[e]).tolist()


def test_connection_on_an_adjacency_takes_its_entries_as_weights():
    A = scipy.sparse.csr_array(np.array([[0, 4.0, 0], [4.0, 0, 9.0], [0, 9.0, 16.0]]))
    F = CellularSheaf.connection(A, [QUARTER_TURN, -QUARTER_TURN, np.eye(2)])
    assert F.edges.tolist() == [[0, 1], [1, 2], [2, 2]]
    assert [M[0, 0] for M in tails(F)] == [2, 3, 4]
    assert [M[1, 0] for M in heads(F)] == [2, -3, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@given(graph=graphs(), d=st.integers(1, 4), seed=st.integers(0, 999))
def test_connection_laplacian_is_the_degree_minus_the_transports(dtype, graph, d, seed):
    n, edges = graph
    rng = np.random.default_rng(seed)
    m = len(edges)
    U = CellularSheaf.random(edges, d, d, "orthogonal", seed=rng, dtype=dtype).tail_data.reshape(
        m, d, d
    )
    w = rng.uniform(0.5, 2, m).astype(U.real.dtype)
    F = CellularSheaf.connection(edges, U, weight=w, n_vertices=n)
    assert F.dtype == dtype
    expected = np.zeros((n, d, n, d), np.complex128 if F.dtype.kind == "c" else np.float64)
    for (u, v), U_e, w_e in zip(edges, U, w, strict=True):  # eq:app-connection-energy
        expected[u, :, u] += w_e * np.eye(d)
        expected[v, :, v] += w_e * np.eye(d)
        expected[u, :, v] -= w_e * U_e
        expected[v, :, u] -= w_e * U_e.conj().T
    delta = reference.coboundary(F)
    norms = np.sqrt(2 * d * float(w.sum()))
    error = reference.laplacian(F) - expected.reshape(n * d, n * d)
    assert_residual(error, norms, norms, n=max(n * d, 1), eps=eps_of(dtype))
    assert delta.shape == (m * d, n * d)


def test_connection_admits_transports_that_are_orthogonal_to_working_accuracy():
    near = QUARTER_TURN * (1 + 1e-9)
    assert CellularSheaf.connection([[0, 1]], near[None]).head_map(0).tolist() == near.tolist()
    single = (QUARTER_TURN * (1 + 1e-5)).astype(np.float32)
    assert CellularSheaf.connection([[0, 1]], single[None]).dtype == np.float32


@given(multigraphs(), st.sampled_from(["weight", None]), st.integers(0, 3))
def test_the_constant_sheaf_is_the_weighted_graph_laplacian(G, weight, dim):
    F = CellularSheaf.constant(G, dim=dim, weight=weight)
    assert F.vertex_labels == tuple(G.nodes)
    assert F.vertex_dims.tolist() == [dim] * G.number_of_nodes()
    assert F.edge_dims.tolist() == [dim] * G.number_of_edges()
    if G.number_of_nodes():
        L = nx.laplacian_matrix(G, weight=weight).toarray().astype(float)
        norm = size(np.sqrt(np.diag(L)))
        error = reference.laplacian(F) - np.kron(L, np.eye(dim))
        assert_residual(error, norm, norm, max(dim, 1), n=len(L))


@given(multigraphs())
def test_networkx_and_edge_array_give_one_constant_sheaf(G):
    number = {v: i for i, v in enumerate(G.nodes)}
    edges = np.array([[number[u], number[v]] for u, v in G.edges()]).reshape(-1, 2).astype(int)
    weights = [1 if w is None else w for _, _, w in G.edges(data="weight")]
    F = CellularSheaf.constant(edges, dim=2, weight=weights, n_vertices=len(number))
    assert_same_sheaf(F, CellularSheaf.constant(G, dim=2))


def test_constant_on_an_adjacency_has_a_loop_for_each_diagonal_entry():
    A = scipy.sparse.coo_array(np.array([[25, 0, 4], [0, 0, 9], [4, 9, 0]]))
    F = CellularSheaf.constant(A)
    assert F.edges.tolist() == [[0, 0], [0, 2], [1, 2]]
    assert F.tail_data.tolist() == F.head_data.tolist() == [5, 2, 3]
    assert reference.laplacian(F).tolist() == [[4, 0, -4], [0, 9, -9], [-4, -9, 13]]


def test_weights_keep_single_precision():
    F = CellularSheaf.constant([[0, 1]], weight=np.array([4.0], np.float32))
    assert F.dtype == np.float32
    F = CellularSheaf.connection([[0, 1]], QUARTER_TURN[None].astype(np.complex64))
    assert F.dtype == np.complex64


@given(multigraphs(), st.integers(0, 999))
def test_the_signed_sheaf_is_the_signed_graph_laplacian(G, seed):
    rng = np.random.default_rng(seed)
    for *_, data in G.edges(data=True):
        data["sign"] = int(rng.choice([-1, 1]))
    n = G.number_of_nodes()
    number = {v: i for i, v in enumerate(G.nodes)}
    expected = np.zeros((n, n))
    for u, v, data in G.edges(data=True):
        i, j, w, s = number[u], number[v], data.get("weight", 1), data["sign"]
        expected[[i, j], [i, j]] += w if i != j else 0
        if i != j:
            expected[[i, j], [j, i]] -= s * w
        else:
            expected[i, i] += w * (1 - s) ** 2
    for F in (
        CellularSheaf.signed(G),
        CellularSheaf.signed(G, sign=[d["sign"] for *_, d in G.edges(data=True)]),
    ):
        L = reference.laplacian(F)
        norm = size(np.sqrt(np.diag(expected)))
        assert_residual(L - expected, norm, norm, n=max(n, 1))
        assert (F.tail_data >= 0).all()


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


def test_diagonal_maps_stand_on_the_diagonal_of_their_own_end():
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
def test_graphs_without_edges(build, d):
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
def test_graphs_without_vertices(build, graph):
    F = build(graph)
    assert (F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1) == (0, 0, 0, 0)


# ---------------------------------------------------------------- random sheaves


@given(
    graphs(),
    st.sampled_from(["general", "orthogonal", "diagonal"]),
    st.sampled_from(DTYPES),
    st.integers(0, 999),
)
def test_random_sheaves_have_the_dimensions_asked_for(graph, kind, dtype, seed):
    n, edges = graph
    rng = np.random.default_rng(seed)
    vertex_dims, edge_dims = rng.integers(0, 7, n), rng.integers(0, 7, len(edges))
    F = CellularSheaf.random(edges, vertex_dims, edge_dims, kind, seed=seed, dtype=dtype)
    assert F.dtype == dtype
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


@pytest.mark.parametrize("kind", ["general", "orthogonal", "diagonal"])
def test_random_sheaves_repeat_with_their_seed_only(kind):
    edges = [[0, 1], [0, 1], [1, 2]]
    F = CellularSheaf.random(edges, 3, 3, kind, seed=4217)
    assert_same_sheaf(F, CellularSheaf.random(edges, 3, 3, kind, seed=4217))
    assert_same_sheaf(F, CellularSheaf.random(edges, 3, 3, kind, seed=np.random.default_rng(4217)))
    assert not np.array_equal(
        F.tail_data, CellularSheaf.random(edges, 3, 3, kind, seed=4218).tail_data
    )
    assert not np.array_equal(F.tail_data, F.head_data)
    assert not np.array_equal(F.tail_map(0), F.tail_map(1))
    with_entropy = [CellularSheaf.random(edges, 3, 3, kind).tail_data for _ in range(2)]
    assert not np.array_equal(*with_entropy)


def test_random_orthogonal_maps_are_spread_over_both_components():
    """QR alone, without its signs, would favour one."""
    F = CellularSheaf.random(np.zeros((400, 2), int), 2, 2, "orthogonal", seed=90013)
    signs = np.linalg.det(F.tail_data.reshape(-1, 2, 2))
    assert 140 < (signs > 0).sum() < 260
    entries = F.tail_data.reshape(-1, 2, 2)[:, 0, 0]
    assert 140 < (entries > 0).sum() < 260


def test_random_general_entries_are_standard_normal():
    F = CellularSheaf.random([[0, 1]], 100, 100, seed=90017)
    assert abs(F.tail_data.mean()) < 0.05
    assert abs(F.tail_data.std() - 1) < 0.05
    assert dense_rank(F.tail_map(0)) == 100


def test_random_sheaves_on_other_graphs():
    G = named_graph()
    F = CellularSheaf.random(G, [1, 2, 3, 4], 2, seed=6)
    assert F.vertex_labels == tuple(G.nodes)
    assert F.edges.tolist() == [[0, 2], [2, 3]]
    F = CellularSheaf.random([[0, 1]], [1, 2, 3], 2, seed=6)  # a third vertex, isolated
    assert F.vertex_dims.tolist() == [1, 2, 3]
    assert F.vertex_labels is None


# ---------------------------------------------------------------- union and split


@given(st.lists(sheaves(graph=graphs(max_vertices=4, max_edges=5), max_dim=3), max_size=4))
def test_a_union_is_block_diagonal_and_comes_apart_again(parts):
    F, vertex_starts, edge_starts = sc.disjoint_union(parts)
    assert vertex_starts.tolist() == [0, *np.cumsum([part.n_vertices for part in parts], dtype=int)]
    assert edge_starts.tolist() == [0, *np.cumsum([part.n_edges for part in parts], dtype=int)]
    if parts:
        assert F.dtype == np.result_type(*[part.dtype for part in parts])
    pieces = sc.split(F, vertex_starts)
    blocks = [reference.coboundary(piece) for piece in pieces]
    np.testing.assert_array_equal(
        reference.coboundary(F), reference.block_diagonal(blocks, F.dtype)
    )
    for part, piece in zip(parts, pieces, strict=True):
        assert piece.dtype == F.dtype
        assert piece.edges.tolist() == part.edges.tolist()
        assert piece.vertex_dims.tolist() == part.vertex_dims.tolist()
        assert piece.edge_dims.tolist() == part.edge_dims.tolist()
        for A, B in zip(tails(piece) + heads(piece), tails(part) + heads(part), strict=True):
            np.testing.assert_array_equal(A, B)


def test_split_keeps_the_order_of_edges_and_the_names_of_vertices():
    G = nx.Graph()
    G.add_nodes_from("abcd")
    G.add_edge("c", "d", turn=QUARTER_TURN)
    G.add_edge("a", "b", turn=-QUARTER_TURN)
    F = CellularSheaf.connection(G, "turn")
    F = CellularSheaf(F.edges[::-1], tails(F)[::-1], heads(F)[::-1])
    assert F.edges.tolist() == [[2, 3], [0, 1]]
    first, none, second = sc.split(F, [0, 2, 2, 4])
    assert (first.n_vertices, none.n_vertices, second.n_vertices) == (2, 0, 2)
    assert first.head_map(0).tolist() == (-QUARTER_TURN).tolist()
    assert second.head_map(0).tolist() == QUARTER_TURN.tolist()
    assert second.edges.tolist() == [[0, 1]]
    first, second = sc.split(CellularSheaf.connection(G, "turn"), [0, 2, 4])
    assert (first.vertex_labels, second.vertex_labels) == (("a", "b"), ("c", "d"))


def test_union_and_split_are_immutable_and_share_nothing():
    F = mixed_sheaf()
    union, starts, _ = sc.disjoint_union([F, F])
    for G in (union, *sc.split(union, starts)):
        assert not np.shares_memory(G.tail_data, F.tail_data)
        for array in (G.edges, G.vertex_dims, G.edge_dims, G.tail_data, G.head_data):
            assert not array.flags.writeable


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([0, 3], "`vertex_starts` must ascend from 0 to 4"),
        ([1, 4], "`vertex_starts` must ascend from 0 to 4"),
        ([0, 3, 2, 4], "`vertex_starts` must ascend from 0 to 4"),
        ([], "`vertex_starts` must ascend from 0 to 4"),
        ([0, 1, 4], "edge 1 (0, 1) joins parts 0 and 1 of `vertex_starts`"),
        ([0, 0.5, 4], "`vertex_starts` must hold whole numbers"),
    ],
)
def test_split_says_why_not(starts, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        sc.split(mixed_sheaf(), starts)


def test_a_coarse_sheaf_with_maps_of_rounding_size_may_join_a_union():
    """The lower limit is for the caller's own maps (docs/conventions.md, section 1)."""
    one = np.ones(1, np.int64)
    tiny = trusted_sheaf(np.array([[0, 0]]), one, one.copy(), np.array([1e-200]), np.array([0.0]))
    assert sc.disjoint_union([tiny, tiny])[0].tail_data.tolist() == [1e-200, 1e-200]


def test_union_of_something_else():
    with pytest.raises(TypeError, match=re.escape("`sheaves[1]` must be a CellularSheaf, got int")):
        sc.disjoint_union([mixed_sheaf(), 3])


# ---------------------------------------------------------------- range


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("end", ["tail", "head"])
def test_the_range_is_inclusive_and_guards_both_ends(dtype, end):
    low, high = range_limits(dtype)
    info = np.finfo(dtype)
    assert low**2 > float(info.tiny) * 1e7
    assert high**2 < float(info.max) / 1e7

    def build(largest, other=0.0):
        maps = [np.array([[[x, 0]]], dtype) for x in (largest, other)]
        return CellularSheaf([[0, 1]], *(maps if end == "tail" else maps[::-1]))

    for inside in (1.01 * low, 0.99 * high, 0.0):
        build(inside)
    build(0.99 * low, other=1.01 * low)  # only the largest entry counts
    for outside in (0.99 * low, 1.01 * high):
        with pytest.raises(
            ValueError,
            match=rf"the largest entry of .* is .*squares of {np.dtype(dtype)} are safe: rescale",
        ):
            build(outside)
        with pytest.raises(ValueError, match="rescale the maps"):
            build(1.01 * low).with_maps(*[np.array([outside, 0], dtype)] * 2)
        with pytest.raises(ValueError, match="rescale the maps"):
            CellularSheaf.from_flat([[0, 1]], *[np.array([outside], dtype)] * 2, [1, 1], 1)


def test_weights_beyond_the_range_are_refused_and_within_it_kept():
    assert CellularSheaf.constant([[0, 1]], weight=[1e-200]).tail_data == pytest.approx(1e-100)
    with pytest.raises(ValueError, match="rescale the maps"):
        CellularSheaf.constant([[0, 1]], weight=[1e-302])


# ---------------------------------------------------------------- what is refused

ONE = np.ones((1, 1, 1))
TWO = np.ones((2, 1, 1))
PATH = [[0, 1], [1, 2]]


def nan_at(e, value=np.nan):
    maps = np.ones((2, 2, 2))
    maps[e, 1, 0] = value
    return maps


BAD_SHEAVES = {
    "endpoint out of range": (
        (PATH, TWO, TWO, [1, 1]),
        "`edges[1]` = (1, 2) is out of range for 2 vertices (0 .. 1)",
    ),
    "endpoint negative": (([[0, -1]], ONE, ONE), "`edges[0]` = (0, -1) has a negative endpoint"),
    "endpoint a fraction": (
        ([[0, 0.5]], ONE, ONE),
        "`edges` must hold whole numbers, got 0.5 at index (0, 1)",
    ),
    "edges transposed": (
        ([[0, 1, 2], [1, 2, 0]], TWO, TWO),
        "`edges` must have shape (m, 2), got (2, 3)",
    ),
    "rows differ": (
        (PATH, [np.eye(1), np.ones((2, 1))], [np.eye(1), np.eye(1)]),
        "`tail_maps[1]` has 2 rows and `head_maps[1]` has 1",
    ),
    "columns differ between maps": (
        (PATH, [np.eye(1), np.ones((1, 3))], [np.ones((1, 2)), np.eye(1)]),
        "`tail_maps[1]` has 3 columns, but vertex 1 has dimension 2 by the first map that touches it",
    ),
    "columns differ from vertex_dims": (
        (PATH, TWO, TWO, [1, 1, 2]),
        "`head_maps[1]` has 1 columns, but vertex 2 has dimension 2 by `vertex_dims`",
    ),
    "loop with two dimensions": (
        ([[0, 0]], [np.ones((1, 2))], [np.ones((1, 3))]),
        "`head_maps[0]` has 3 columns, but vertex 0 has dimension 2",
    ),
    "untouched vertex": (
        ([[0, 2]], ONE, ONE),
        "vertex 1 touches no edge, so its dimension cannot be read off the maps: pass `vertex_dims`",
    ),
    "untouched vertices before a huge one": (([[0, 10**15]], ONE, ONE), "vertex 1 touches no edge"),
    "vertex_dims negative": (
        ([[0, 1]], ONE, ONE, [1, 1, -2]),
        "`vertex_dims` must not be negative, got -2 at index 2",
    ),
    "vertex_dims a number": (
        ([[0, 1]], ONE, ONE, 1),
        "`vertex_dims` must be 1-dimensional, got shape ()",
    ),
    "vertex_dims a fraction": (
        ([[0, 1]], ONE, ONE, [1, 1.5]),
        "`vertex_dims` must hold whole numbers, got 1.5",
    ),
    "nan at a tail": (
        (PATH, nan_at(1), nan_at(0, 1.0)),
        "`tail_maps[1]` (edge 1 -> 2) must be finite, got nan",
    ),
    "infinity at a head": (
        (PATH, nan_at(0, 1.0), nan_at(0, -np.inf)),
        "`head_maps[0]` (edge 0 -> 1) must be finite, got -inf",
    ),
    "nan in ragged maps": (
        (
            PATH,
            [np.ones((2, 1)), np.zeros((0, 1))],
            [np.array([[1.0], [np.nan]]), np.zeros((0, 1))],
        ),
        "`head_maps[0]` (edge 0 -> 1) must be finite, got nan",
    ),
    "complex nan": (
        (PATH, TWO, [[[1.0]], [[complex(0, np.nan)]]]),
        "`head_maps[1]` (edge 1 -> 2) must be finite",
    ),
    "too big": ((PATH, TWO, 1e151 * TWO), "is 1e+151, outside"),
    "too small": ((PATH, 1e-151 * TWO, 0 * TWO), "is 1e-151, outside"),
    "too few maps": ((PATH, ONE, TWO), "`tail_maps` must hold one map per edge, 2 in all, got 1"),
    "too many maps in a list": (
        (PATH, TWO, [np.eye(1)] * 3),
        "`head_maps` must hold one map per edge, 2 in all, got 3",
    ),
    "maps two-dimensional": (
        (PATH, TWO, np.ones((2, 1))),
        "`head_maps` must have shape (m, d_e, d_v), got (2, 1)",
    ),
    "map a vector": ((PATH, [[1.0], [1.0]], TWO), "`tail_maps[0]` must be 2-D, got shape (1,)"),
    "map ragged": (
        (PATH, [[[1.0], [1.0, 2.0]], [[1.0]]], TWO),
        "`tail_maps[0]` must be a rectangular array",
    ),
}


@pytest.mark.parametrize("case", BAD_SHEAVES)
def test_bad_sheaves(case):
    arguments, message = BAD_SHEAVES[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        CellularSheaf(*arguments)


class Tensor:
    """As much of a tensor as numpy asks for."""

    def __init__(self, array):
        self.array = np.asarray(array)

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __len__(self):
        return len(self.array)


def test_tensors():
    tails, heads = np.float32([[[1], [2]]]), np.float32([[[3, 4], [5, 6]]])
    F = CellularSheaf(Tensor([[1, 0]]), Tensor(tails), Tensor(heads))
    assert F.dtype == np.float32
    np.testing.assert_array_equal(F.tail_map(0), tails[0])
    np.testing.assert_array_equal(F.head_map(0), heads[0])
    G = F.with_maps(Tensor(heads[:, :, :1]), [Tensor(heads[0])])
    np.testing.assert_array_equal(G.tail_map(0), heads[0, :, :1])
    with pytest.raises(
        ValueError, match=re.escape("`tail_maps` must have shape (m, d_e, d_v), got (2, 1)")
    ):
        CellularSheaf([[1, 0]], Tensor(tails[0]), heads)


WRONG_TYPES = {
    "object maps": (
        (PATH, TWO.astype(object), TWO),
        "`tail_maps` must be an (m, d_e, d_v) array or a list",
    ),
    "text maps": ((PATH, TWO, TWO.astype(str)), "`head_maps` must hold float32, float64"),
    "one map of objects": ((PATH, TWO, [[[1.0]], [[None]]]), "`head_maps[1]` must hold float32"),
    "one map of bools": ((PATH, [[[1.0]], [[True]]], TWO), "`tail_maps[1]` must hold float32"),
    "no maps": (
        (PATH, None, TWO),
        "`tail_maps` must be an (m, d_e, d_v) array or a sequence of 2-D arrays, got NoneType",
    ),
    "maps a string": ((PATH, "ab", TWO), "sequence of 2-D arrays, got str"),
    "maps a generator": ((PATH, TWO, (M for M in TWO)), "sequence of 2-D arrays, got generator"),
    "edges of text": (([["0", "1"]], ONE, ONE), "`edges` must hold integers, got dtype <U1"),
    "edges None": ((None, ONE, ONE), "`edges` must be"),
    "vertex_dims of text": (
        ([[0, 1]], ONE, ONE, ["1", "1"]),
        "`vertex_dims` must hold integers, got dtype <U1",
    ),
}


@pytest.mark.parametrize("case", WRONG_TYPES)
def test_wrong_types(case):
    arguments, message = WRONG_TYPES[case]
    with pytest.raises(TypeError, match=re.escape(message)):
        CellularSheaf(*arguments)


F3 = mixed_sheaf()
GOOD_TAILS, GOOD_HEADS = tails(F3), heads(F3)

BAD_OTHERS = {
    "flat too short": (
        lambda: CellularSheaf.from_flat([[0, 1]], [1.0], [1.0, 2.0], [1, 1], 1),
        ValueError,
        "`head_data` must have shape (1,), the sum of d_e d_v, got (2,)",
    ),
    "flat not flat": (
        lambda: CellularSheaf.from_flat([[0, 1]], [[1.0]], [1.0], [1, 1], 1),
        ValueError,
        "`tail_data` must have shape (1,), the sum of d_e d_v, got (1, 1)",
    ),
    "flat, edge_dims too few": (
        lambda: CellularSheaf.from_flat(PATH, [1.0], [1.0], [1, 1, 1], [1]),
        ValueError,
        "`edge_dims` must have one entry per edge, 2 in all, got 1",
    ),
    "flat, endpoint out of range": (
        lambda: CellularSheaf.from_flat(PATH, [1.0, 1.0], [1.0, 1.0], [1, 1], 1),
        ValueError,
        "`edges[1]` = (1, 2) is out of range for 2 vertices",
    ),
    "flat, negative edge_dims": (
        lambda: CellularSheaf.from_flat(PATH, [1.0, 1.0], [1.0, 1.0], 1, [1, -1]),
        ValueError,
        "`edge_dims` must not be negative, got -1 at index 1",
    ),
    "flat, nan": (
        lambda: CellularSheaf.from_flat(PATH, [1.0, np.nan], [1.0, 1.0], 1, 1),
        ValueError,
        "`tail_maps[1]` (edge 1 -> 2) must be finite",
    ),
    "with_maps, wrong shape": (
        lambda: F3.with_maps(GOOD_TAILS, [*GOOD_HEADS[:2], np.ones((1, 3)), GOOD_HEADS[3]]),
        ValueError,
        "`head_maps[2]` must have shape (1, 2), as in the sheaf it replaces, got (1, 3)",
    ),
    "with_maps, too few": (
        lambda: F3.with_maps(GOOD_TAILS[:3], GOOD_HEADS),
        ValueError,
        "`tail_maps` must hold one map per edge, 4 in all, got 3",
    ),
    "with_maps, wrong length": (
        lambda: F3.with_maps(F3.tail_data, F3.head_data[:-1]),
        ValueError,
        "flat `head_maps` must have length 8, got 7",
    ),
    "with_maps, nan": (
        lambda: F3.with_maps(F3.tail_data, F3.head_data * np.nan),
        ValueError,
        "`head_maps[0]` (edge 0 -> 0) must be finite, got nan",
    ),
    "transports not orthogonal": (
        lambda: CellularSheaf.connection(PATH, [np.eye(2), [[1.0, 0.25], [0.0, 1.0]]]),
        ValueError,
        "`transports[1]` (edge (1, 2)) must be orthogonal or unitary: an entry of U* U - I is 0.25",
    ),
    "transports scaled": (
        lambda: CellularSheaf.connection([[0, 1]], [(1 + 1e-6) * np.eye(2)]),
        ValueError,
        "an entry of U* U - I is 2e-06, allowed is 1e-08",
    ),
    "transports a wrong transpose": (  # U^T U = I, but U* U is not
        lambda: CellularSheaf.connection([[0, 1]], [[[np.sqrt(2), 1j], [-1j, np.sqrt(2)]]]),
        ValueError,
        "must be orthogonal or unitary",
    ),
    "transports not square": (
        lambda: CellularSheaf.connection([[0, 1]], np.ones((1, 2, 3))),
        ValueError,
        "`transports` must be square, got shape (1, 2, 3)",
    ),
    "transports nan": (
        lambda: CellularSheaf.connection([[0, 1]], np.full((1, 2, 2), np.nan)),
        ValueError,
        "`transports` must be finite",
    ),
    "transports too few": (
        lambda: CellularSheaf.connection(PATH, np.eye(2)[None]),
        ValueError,
        "`transports` must hold an array of shape (d, d) for each of the 2 edges, got shape (1, 2, 2)",
    ),
    "transports one matrix": (
        lambda: CellularSheaf.connection(PATH, np.eye(2)),
        ValueError,
        "`transports` must hold an array of shape (d, d) for each of the 2 edges, got shape (2, 2)",
    ),
    "transports no attribute": (
        lambda: CellularSheaf.connection(nx.path_graph(3), "turn"),
        ValueError,
        "`transports` = 'turn' names an edge attribute that no edge of the graph has",
    ),
    "negative weight": (
        lambda: CellularSheaf.constant(PATH, weight=[1.0, -1.0]),
        ValueError,
        "`weight` must not be negative, because its root is taken, got -1.0 for edge 1 (1, 2)",
    ),
    "negative weight of a connection": (
        lambda: CellularSheaf.connection([[0, 1]], [np.eye(2)], weight=[-1]),
        ValueError,
        "`weight` must not be negative",
    ),
    "negative weight of a networkx edge": (
        lambda: CellularSheaf.constant(nx.Graph([("a", "b", {"weight": -2})])),
        ValueError,
        "got -2.0 for edge 0 (0, 1); CellularSheaf.signed takes signs",
    ),
    "directed": (
        lambda: CellularSheaf.constant(nx.DiGraph([(0, 1)])),
        ValueError,
        "`graph` must be undirected",
    ),
    "asymmetric": (
        lambda: CellularSheaf.constant(scipy.sparse.csr_array([[0, 1], [0, 0]])),
        ValueError,
        "`graph` must be a symmetric adjacency, got 1 at (0, 1) and 0 at (1, 0)",
    ),
    "n_vertices too few": (
        lambda: CellularSheaf.constant(PATH, n_vertices=2),
        ValueError,
        "`graph[1]` = (1, 2) names a vertex beyond `n_vertices` = 2",
    ),
    "n_vertices with networkx": (
        lambda: CellularSheaf.signed(nx.path_graph(2), sign=[1], n_vertices=2),
        ValueError,
        "`n_vertices` goes with an edge array",
    ),
    "dim negative": (
        lambda: CellularSheaf.constant(PATH, dim=-1),
        ValueError,
        "`dim` must be at least 0, got -1",
    ),
    "dim a fraction": (
        lambda: CellularSheaf.constant(PATH, dim=1.0),
        TypeError,
        "`dim` must be an integer, got 1.0",
    ),
    "dim a list": (
        lambda: CellularSheaf.constant(PATH, dim=[1, 2, 1]),
        TypeError,
        "`dim` must be an integer, got [1, 2, 1]",
    ),
    "sign zero": (
        lambda: CellularSheaf.signed(PATH, sign=[1, 0]),
        ValueError,
        "`sign` must be 1 or -1, got 0.0 for edge 1 (1, 2)",
    ),
    "sign complex": (
        lambda: CellularSheaf.signed(PATH, sign=[1, 1j]),
        ValueError,
        "`sign` must be 1 or -1, got 1j for edge 1 (1, 2)",
    ),
    "sign missing": (
        lambda: CellularSheaf.signed(PATH),
        ValueError,
        "`sign` = 'sign' names an edge attribute that no edge of the graph has",
    ),
    "sign missing on one edge": (
        lambda: CellularSheaf.signed(nx.Graph([(0, 1, {"sign": 1}), (1, 2)])),
        ValueError,
        "edge 1 (1, 2) has no attribute 'sign' for `sign`",
    ),
    "diagonals differ": (
        lambda: CellularSheaf.diagonal(PATH, np.ones((2, 2)), np.ones((2, 3))),
        ValueError,
        "`tail` and `head` must have one shape, got (2, 2) and (2, 3)",
    ),
    "diagonals too few": (
        lambda: CellularSheaf.diagonal(PATH, np.ones((2, 2)), np.ones((1, 2))),
        ValueError,
        "`head` must hold an array of shape (d) for each of the 2 edges, got shape (1, 2)",
    ),
    "random kind": (
        lambda: CellularSheaf.random(PATH, 1, 1, kind="gaussian"),
        ValueError,
        "`kind` must be one of 'general', 'orthogonal', 'diagonal', got 'gaussian'",
    ),
    "random dtype": (
        lambda: CellularSheaf.random(PATH, 1, 1, dtype=np.float16),
        TypeError,
        "`dtype` must be float32, float64, complex64 or complex128, got <class 'numpy.float16'>",
    ),
    "random vertex_dims too few": (
        lambda: CellularSheaf.random(PATH, [1, 1], 1),
        ValueError,
        "`vertex_dims` must have one entry per vertex, 3 in all, got 2",
    ),
    "random vertex_dims too many for a networkx graph": (
        lambda: CellularSheaf.random(nx.path_graph(3), [1] * 4, 1),
        ValueError,
        "`vertex_dims` must have one entry per vertex, 3 in all, got 4",
    ),
    "random edge_dims too few": (
        lambda: CellularSheaf.random(PATH, 1, [1]),
        ValueError,
        "`edge_dims` must have one entry per edge, 2 in all, got 1",
    ),
}


@pytest.mark.parametrize("case", BAD_OTHERS)
def test_other_bad_input(case):
    build, error, message = BAD_OTHERS[case]
    with pytest.raises(error, match=re.escape(message)):
        build()


@given(JUNK, JUNK, JUNK, st.none() | JUNK)
def test_junk_works_or_is_refused(edges, tail_maps, head_maps, vertex_dims):
    try:
        F = CellularSheaf(edges, tail_maps, head_maps, vertex_dims)
    except (ValueError, TypeError):
        return
    assert F.n_edges == len(tail_maps) == len(head_maps)


GOOD = (np.array(PATH), TWO, TWO, np.array([1, 1, 1]))


@given(st.integers(0, 3), JUNK)
def test_one_junk_argument_among_good_ones_works_or_is_refused(place, junk):
    arguments = [*GOOD[:place], junk, *GOOD[place + 1 :]]
    for build in (
        CellularSheaf,
        lambda edges, tail, head, dims: CellularSheaf.from_flat(edges, tail, head, dims, 1),
        lambda edges, tail, head, dims: CellularSheaf(*GOOD).with_maps(tail, head),
    ):
        try:
            F = build(*arguments)
        except (ValueError, TypeError):
            continue
        assert np.isfinite(F.tail_data).all()
        assert F.dim_c0 == F.vertex_dims.sum()


@given(JUNK, JUNK, st.none() | JUNK)
def test_junk_graphs_and_values_work_or_are_refused(graph, values, n_vertices):
    n_vertices = None if isinstance(n_vertices, int) and n_vertices > 1000 else n_vertices
    for build in (
        lambda: CellularSheaf.constant(graph, weight=values, n_vertices=n_vertices),
        lambda: CellularSheaf.connection(graph, values, n_vertices=n_vertices),
        lambda: CellularSheaf.diagonal(graph, values, values, n_vertices=n_vertices),
        lambda: CellularSheaf.signed(graph, values, n_vertices=n_vertices),
        lambda: CellularSheaf.random(graph, values, n_vertices),
    ):
        try:
            F = build()
        except (ValueError, TypeError):
            continue
        assert np.isfinite(F.tail_data).all()
