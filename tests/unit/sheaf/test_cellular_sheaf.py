"""The class: its contents, immutability, new maps on the same graph."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen import CellularSheaf
from tests.support import reference
from tests.support.errors import raises
from tests.support.helpers import assert_residual, eps_of
from tests.support.strategies import sheaves

NO_EDGES = np.zeros((0, 2), dtype=int)
PATH = [[0, 1], [1, 2]]
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
    """Stalks of dimension 2, 1, 0, 3.

    A loop at 0, two parallel edges 0 -> 1 and 1 -> 0, an isolated vertex 3.
    """
    edges = [[0, 0], [0, 1], [1, 0], [2, 1]]
    tail = [[[1, 2]], [[3, 4], [5, 6]], [[7]], np.zeros((2, 0))]
    head = [[[8, 9]], [[10], [11]], [[12, 13]], [[14], [15]]]
    tail, head = ([np.array(M, dtype) for M in maps] for maps in (tail, head))
    return CellularSheaf(edges, tail, head, vertex_dims=[2, 1, 0, 3])


# ---------------------------------------------------------------- what the container holds


def test_entries_of_a_small_sheaf():
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
def test_sizes_offsets_and_flat_data_agree_with_the_maps(F):
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
    for data, maps in ((F.tail_data, tails(F)), (F.head_data, heads(F))):
        flat = np.concatenate([np.zeros(0, F.dtype), *[M.ravel() for M in maps]])
        np.testing.assert_array_equal(data, flat, strict=True)
    largest = float(np.abs(np.concatenate([F.tail_data, F.head_data])).max(initial=0))
    assert_residual(F.largest_entry - largest, largest, n=1, eps=eps_of(F.dtype))


@given(sheaves())
def test_all_constructors_build_the_same_sheaf(F):
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
def test_uniform_maps_may_be_passed_as_one_array(F):
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


def test_vertex_dims_are_inferred_if_every_vertex_has_an_edge():
    F = CellularSheaf(
        [[2, 0], [0, 1]], [np.ones((2, 3)), np.ones((1, 1))], [np.ones((2, 1)), np.ones((1, 0))]
    )
    assert F.vertex_dims.tolist() == [1, 0, 3]


@pytest.mark.parametrize("maps", [[], (), np.zeros((0, 2, 3)), np.zeros(0)], ids=repr)
def test_sheaf_without_edges(maps):
    F = CellularSheaf(NO_EDGES, maps, maps, vertex_dims=[2, 0, 1])
    assert (F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1) == (3, 0, 3, 0)
    assert reference.coboundary(F).shape == (0, 3)
    nothing = CellularSheaf([], maps, maps)
    assert (nothing.n_vertices, nothing.dim_c0, nothing.dim_c1) == (0, 0, 0)
    assert nothing.edges.shape == (0, 2)


@pytest.mark.parametrize("e", [4, -5])
@pytest.mark.parametrize("end", ["tail_map", "head_map"])
def test_edge_index_out_of_range_raises(e, end):
    with pytest.raises(IndexError, match=f"edge {e} is out of range for 4 edges"):
        getattr(mixed_sheaf(), end)(e)


# ---------------------------------------------------------------- immutability


def built_from_arrays():
    """(name, input arrays, constructor) of every constructor that accepts arrays."""
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
def test_input_arrays_stay_writable_and_are_copied(case):
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


def test_sheaves_compare_by_identity_and_are_hashable():
    F, G = mixed_sheaf(), mixed_sheaf()
    assert F != G
    assert {F: 1, G: 2}[F] == 1


# ---------------------------------------------------------------- new maps


@given(sheaves(spread=False), st.sampled_from(["maps", "flat"]))
def test_with_maps_keeps_the_graph_and_replaces_the_maps(F, form):
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


def test_with_maps_keeps_labels_and_has_the_new_scalar_type():
    F = CellularSheaf.constant(nx.Graph([("b", "a")]))
    G = F.with_maps([[[2j]]], np.array([[[3]]], np.float32))
    assert G.vertex_labels == ("b", "a")
    assert (G.dtype, G.tail_map(0)[0, 0], G.head_map(0)[0, 0]) == (np.complex128, 2j, 3)


# ---------------------------------------------------------------- what is refused


F3 = mixed_sheaf()
GOOD_TAILS, GOOD_HEADS = tails(F3), heads(F3)

BAD_OTHERS = {
    "ValueError: `head_maps[2]` must have shape (1, 2), as in the sheaf it replaces, got (1, "
    "3)": lambda: F3.with_maps(GOOD_TAILS, [*GOOD_HEADS[:2], np.ones((1, 3)), GOOD_HEADS[3]]),
    "ValueError: `tail_maps` must hold one map per edge, 4 in all, got 3": lambda: F3.with_maps(
        GOOD_TAILS[:3], GOOD_HEADS
    ),
    "ValueError: flat `head_maps` must have length 8, got 7": lambda: F3.with_maps(
        F3.tail_data, F3.head_data[:-1]
    ),
    "ValueError: the largest entry of `tail_maps and head_maps` is 1.5e-199, outside "
    "1.5e-150": lambda: F3.with_maps(0 * F3.tail_data, 0 * F3.head_data).with_maps(
        1e-200 * F3.tail_data, 1e-200 * F3.head_data
    ),
    "ValueError: `head_maps[0]` (edge 0 -> 0) must be finite, got nan": lambda: F3.with_maps(
        F3.tail_data, F3.head_data * np.nan
    ),
}


@pytest.mark.parametrize(("message", "build"), BAD_OTHERS.items(), ids=BAD_OTHERS)
def test_invalid_maps_and_indices_raise(build, message):
    with raises(message):
        build()


# ---------------------------------------------------------------- names of the vertices


@given(sheaves())
def test_with_labels_changes_only_labels(F):
    names = [("v", v) for v in range(F.n_vertices)]
    named = F.with_labels(iter(names))
    assert named.vertex_labels == tuple(names)
    assert_same_sheaf(named, F)
    assert np.shares_memory(named.tail_data, F.tail_data) or F.tail_data.size == 0
    assert named.with_maps(F.tail_data, F.head_data).vertex_labels == tuple(names)
    assert named.with_labels(None).vertex_labels is None


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"], "ValueError: must hold one name per vertex, 3 in all, got 1"),
        (["a", "b", "a"], "ValueError: must all differ, got 'a' for the vertices 0 and 2"),
        ([1, True, 2], "ValueError: must all differ, got True for the vertices 0 and 1"),
        (["a", [], "b"], "TypeError: hashable names, got [] for vertex 1"),
        (["a", "b", None], "ValueError: must hold names, got None for vertex 2"),
        ("abc", "TypeError: `vertex_labels` must be a sequence of names, got str"),
        (7, "TypeError: `vertex_labels` must be a sequence of names, got int"),
    ],
)
def test_invalid_vertex_names_raise(labels, message):
    F = CellularSheaf.constant([[0, 1], [1, 2]])
    with raises(message):
        F.with_labels(labels)
