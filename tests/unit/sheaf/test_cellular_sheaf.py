"""The class: contents, immutability, new maps and names, comparison, and input of any kind."""

import dataclasses
import re

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen import CellularSheaf
from sheafcoarsen._support import checks
from sheafcoarsen.sheaf import checked_sheaf
from tests.support import reference
from tests.support.errors import raises, rows
from tests.support.helpers import Tensor, assert_residual, eps_of
from tests.support.strategies import DTYPES, sheaves

NO_EDGES = np.zeros((0, 2), dtype=int)
PATH = [[0, 1], [1, 2]]
QUARTER_TURN = np.array([[0.0, -1.0], [1.0, 0.0]])  # not symmetric: a flipped edge shows


def tails(F):
    return [F.tail_map(e) for e in range(F.n_edges)]


def heads(F):
    return [F.head_map(e) for e in range(F.n_edges)]


def mixed_sheaf():
    """Return a sheaf with a loop, two parallel edges, an isolated vertex and an empty stalk."""
    edges = [[0, 0], [0, 1], [1, 0], [2, 1]]
    tail = [[[1, 2]], [[3, 4], [5, 6]], [[7]], np.zeros((2, 0))]
    head = [[[8, 9]], [[10], [11]], [[12, 13]], [[14], [15]]]
    return CellularSheaf(edges, tail, head, vertex_dims=[2, 1, 0, 3])


# ---------------------------------------------------------------- what the container holds


def test_entries_of_a_small_sheaf():
    F = mixed_sheaf()
    assert F.tail_map(1).tolist() == [[3, 4], [5, 6]]
    assert F.head_map(-1).tolist() == [[14], [15]]
    assert F.vertex_labels is None
    assert np.shares_memory(F.tail_map(1), F.tail_data)
    assert np.shares_memory(F.head_map(1), F.head_data)
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
    assert (F.n_vertices, F.n_edges) == (len(F.vertex_dims), len(F.edges))
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


@given(sheaves() | sheaves(uniform=True))
def test_all_constructors_build_the_same_sheaf(F):
    dims, m, flat = F.vertex_dims, F.n_edges, (F.tail_data, F.head_data)
    copies = [F.with_maps(*flat), CellularSheaf.from_flat(F.edges, *flat, dims, F.edge_dims)]
    if m:  # an empty list of maps does not say its scalar type
        lists = F.edges.tolist(), tuple(tails(F)), heads(F), dims.tolist()
        copies += [CellularSheaf(F.edges, tails(F), heads(F), dims), CellularSheaf(*lists)]
        copies.append(F.with_maps(tails(F), heads(F)))
        if len({*F.edges.flat}) == F.n_vertices:
            copies.append(CellularSheaf(F.edges, tails(F), heads(F)))
    if len({*dims}) <= 1 and len({*F.edge_dims}) <= 1:
        d_v, d_e = int(max(dims, default=0)), int(max(F.edge_dims, default=0))
        arrays = [data.reshape(m, d_e, d_v) for data in flat]
        strided = [np.asfortranarray(A) for A in arrays]
        copies += [CellularSheaf(F.edges, *given_maps, dims) for given_maps in (arrays, strided)]
        copies.append(F.with_maps(*arrays))
        if m and d_v:
            copies.append(CellularSheaf.from_flat(F.edges, *flat, dims, d_e))
    for copy in copies:
        assert F.equals(copy)
        assert F.allclose(copy, rtol=0)


@pytest.mark.parametrize("maps", [[], (), np.zeros((0, 2, 3)), np.zeros(0)], ids=repr)
def test_sheaf_without_edges(maps):
    F = CellularSheaf(NO_EDGES, maps, maps, vertex_dims=[2, 0, 1])
    assert (F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1) == (3, 0, 3, 0)
    assert reference.coboundary(F).shape == (0, 3)
    nothing = CellularSheaf([], maps, maps)
    assert (nothing.n_vertices, nothing.dim_c0, nothing.dim_c1) == (0, 0, 0)
    assert nothing.edges.shape == (0, 2)


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
def test_sheaves_hold_read_only_copies_of_writable_input(case):
    arrays, build = built_from_arrays()[case]
    F, same = build(), build()
    for array in arrays:
        assert array.flags.writeable
        array[...] = 1
    assert same.equals(F)
    held = [F.edges, F.vertex_dims, F.edge_dims, F.tail_data, F.head_data]
    assert not any(np.shares_memory(a, b) for a in arrays for b in held)
    views = [F.vertex_offsets, F.edge_offsets, F.tail_offsets, F.head_offsets]
    for array in [*held, *views, F.tail_map(0), F.head_map(0)]:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for name in ("edges", "tail_data", "vertex_labels"):
        with pytest.raises(dataclasses.FrozenInstanceError, match=name):
            setattr(F, name, None)


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
    new = new_tails, new_heads
    if form == "flat" or not F.n_edges:
        new = (np.concatenate([np.zeros(0, F.dtype), *map(np.ravel, maps)]) for maps in new)
    G = F.with_maps(*new)
    for A, B in zip(tails(G) + heads(G), new_tails + new_heads, strict=True):
        np.testing.assert_array_equal(A, B, strict=True)
    for name in ("edges", "vertex_dims", "edge_dims", "vertex_offsets", "edge_offsets"):
        assert getattr(G, name) is getattr(F, name)


MIXED = mixed_sheaf()
TAIL, HEAD = MIXED.tail_data, MIXED.head_data
BAD_MAPS = """
tails(MIXED), [*heads(MIXED)[:2], np.ones((1, 3)), heads(MIXED)[3]]
        -> `head_maps[2]` must have shape (1, 2), as in the sheaf it replaces, got (1, 3)
[np.tile(tails(MIXED)[0], (2, 1)), *tails(MIXED)[1:]], heads(MIXED) -> `tail_maps[0]` must have
tails(MIXED)[:3], heads(MIXED) -> `tail_maps` must hold one map per edge, 4 in all, got 3
TAIL, HEAD[:-1] -> flat `head_maps` must have length 8, got 7
1e-200 * TAIL, 1e-200 * HEAD
        -> the largest entry of `tail_maps and head_maps` is 1.5e-199, outside 1.5e-150
TAIL, HEAD * np.nan -> `head_maps[0]` (edge 0 -> 0) must be finite, got nan
"""


@pytest.mark.parametrize(("maps", "error"), rows(BAD_MAPS))
def test_invalid_new_maps_raise(maps, error):
    for F in (MIXED, MIXED.with_maps(0 * TAIL, 0 * HEAD)):
        with raises(error):
            F.with_maps(*eval(maps))


# ---------------------------------------------------------------- names of the vertices


@given(sheaves())
def test_with_labels_changes_only_labels(F):
    names = tuple(("v", v) for v in range(F.n_vertices))
    named = F.with_labels(iter(names))
    assert named.vertex_labels == names
    assert named.with_labels(None).equals(F)
    if F.n_edges:
        maps = tails(F), heads(F)
        assert CellularSheaf(F.edges, *maps, F.vertex_dims, vertex_labels=names).equals(named)
    assert np.shares_memory(named.tail_data, F.tail_data) or F.tail_data.size == 0
    assert named.with_maps(F.tail_data, F.head_data).vertex_labels == names


# ---------------------------------------------------------------- comparison

RANDOM = CellularSheaf.random(PATH, 2, 3, seed=11)
FLAT = RANDOM.tail_data, RANDOM.head_data

OTHERS = {
    "edges": CellularSheaf.from_flat([[0, 1], [2, 1]], *FLAT, 2, 3),
    "one more edge": CellularSheaf.random([*PATH, [0, 2]], 2, 3, seed=11),
    "one more vertex": CellularSheaf.from_flat(PATH, *FLAT, [2, 2, 2, 0], 3),
    "names": RANDOM.with_labels(["a", "b", "c"]),
}


@pytest.mark.parametrize("what", OTHERS)
def test_sheaves_with_other_graphs_or_names_are_not_equal(what):
    for one, other in ((RANDOM, OTHERS[what]), (OTHERS[what], RANDOM)):
        assert not one.equals(other)
        assert not one.allclose(other)


@pytest.mark.parametrize("end", [0, 1])
def test_equals_compares_every_bit(end):
    data = [flat.copy() for flat in FLAT]
    data[end][-1] = np.nextafter(data[end][-1], 9)
    G = RANDOM.with_maps(*data)
    assert not RANDOM.equals(G)
    assert RANDOM.allclose(G)
    single = RANDOM.with_maps(*(data.astype(np.float32) for data in FLAT))
    assert not RANDOM.equals(single)
    assert RANDOM.allclose(single)
    assert single.allclose(RANDOM)
    assert not RANDOM.allclose(
        RANDOM.with_maps(single.tail_data.astype(float), single.head_data.astype(float))
    )
    zero = RANDOM.with_maps(0 * FLAT[0], 0 * FLAT[1])
    assert not zero.equals(zero.with_maps(-zero.tail_data, -zero.head_data))
    assert not RANDOM.equals("F")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_allclose_is_relative_to_each_map(dtype, unit):
    """An error of rounding size relative to the largest map is not relative to a small one."""
    one, small = dtype(unit), dtype(unit * 1e-3)
    G = CellularSheaf(PATH, [[[one]], [[small]]], [[[one]], [[small]]])
    eps = np.finfo(dtype).eps
    for place in (0, 1):
        for factor, close in ((20, True), (50, False)):
            tail = G.tail_data.copy()
            tail[place] *= dtype(1 + factor * eps)
            assert G.allclose(G.with_maps(tail, G.head_data)) is close
    tail = G.tail_data.copy()
    tail[1] += one * eps * 20
    assert not G.allclose(G.with_maps(tail, G.head_data))
    larger = G.with_maps(G.tail_data * dtype(2), G.head_data)
    for one, other in ((G, larger), (larger, G)):  # an error of half the larger map
        assert one.allclose(other, rtol=0.51)
        assert not one.allclose(other, rtol=0.49)


def test_only_zero_maps_are_close_to_zero_maps():
    zero = RANDOM.with_maps(0 * FLAT[0], FLAT[1])
    assert zero.allclose(zero)
    assert not zero.allclose(zero.with_maps(1e-200 * FLAT[0], FLAT[1]))


# ---------------------------------------------------------------- maps supplied by users


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


def test_both_ends_have_the_common_scalar_type():
    single, double = np.ones((2, 1, 1), np.float32), np.ones((2, 1, 1))
    for tail, head, common in (
        (single, 1j * single, np.complex64),
        (single, single.astype(np.int8), np.float64),
        ([single[0], double[0]], single, np.float64),
        (2j * double, single, np.complex128),
    ):
        F = CellularSheaf(PATH, tail, head)
        for G in (F, CellularSheaf(PATH, double, double).with_maps(tail, head)):
            assert G.dtype == G.tail_map(0).dtype == G.head_map(0).dtype == common
            assert (G.tail_map(0), G.head_map(0)) == (tail[0], head[0])


@pytest.mark.parametrize(
    "dtype", [bool, object, "U1", np.float16, np.longdouble, np.clongdouble, "M8[s]"], ids=str
)
@pytest.mark.parametrize("n_edges", [1, 0])
def test_unsupported_scalar_types_raise(dtype, n_edges):
    maps = np.zeros((n_edges, 1, 1)).astype(int).astype(dtype)
    good = np.ones((n_edges, 1, 1))
    edges = np.zeros((n_edges, 2), int)
    for build in (
        lambda: CellularSheaf(edges, good, maps, [1]),
        lambda: CellularSheaf.from_flat(edges, good.ravel(), maps.ravel(), [1], 1),
        lambda: CellularSheaf(edges, good, good, [1]).with_maps(good, maps),
    ):
        with pytest.raises(
            TypeError, match=r"`head_(maps|data)` must (hold|be) .*, got (dtype|an object)"
        ):
            build()


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("end", ["tail", "head"])
def test_range_of_entries_is_inclusive_at_both_limits(dtype, end):
    low, high = checks.range_limits(dtype)
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
            match=rf"the largest entry of .* is .*squares in {np.dtype(dtype)} are safe: rescale",
        ):
            build(outside)
        with pytest.raises(ValueError, match="rescale the maps"):
            build(1.01 * low).with_maps(*[np.array([outside, 0], dtype)] * 2)
        with pytest.raises(ValueError, match="rescale the maps"):
            CellularSheaf.from_flat([[0, 1]], *[np.array([outside], dtype)] * 2, [1, 1], 1)


def test_stored_maps_may_exceed_the_range_but_must_be_finite():
    G = checked_sheaf([[0, 1]], [1e-200], [0.0], [1, 1], [1], ("a", "b"))
    assert G.tail_data.tolist() == [1e-200]
    assert G.vertex_labels == ("a", "b")
    for bad in (np.inf, np.nan):
        with pytest.raises(ValueError, match=re.escape("`tail_maps[0]` (edge 0 -> 1) must be fin")):
            checked_sheaf([[0, 1]], [bad], [0.0], [1, 1], [1])
    with pytest.raises(ValueError, match="out of range for 1 vert"):
        checked_sheaf([[0, 1]], [1.0], [0.0], [1], [1])


ONE = np.ones((1, 1, 1))
TWO = np.ones((2, 1, 1))


def nan_at(e, value=np.nan):
    maps = np.ones((2, 2, 2))
    maps[e, 1, 0] = value
    return maps


FINITE = nan_at(0, 1.0)

TALL, EYE = np.ones((2, 1)), np.eye(1)

BAD_SHEAVES = """
CellularSheaf(PATH, TWO, TWO, [1, 1]) -> `edges[1]` = (1, 2) is out of range for 2 vertices (0
CellularSheaf([[0, -1]], ONE, ONE) -> `edges[0]` = (0, -1) has a negative endpoint
CellularSheaf(None, ONE, ONE) -> TypeError: `edges` must be
CellularSheaf(PATH, [EYE, TALL], [EYE, EYE]) -> `tail_maps[1]` has 2 rows and `head_maps[1]` has 1
CellularSheaf(PATH, [EYE, np.ones((1, 3))], [TALL.T, EYE])
        -> `tail_maps[1]` has 3 columns, but vertex 1 has dimension 2 in its first map
CellularSheaf(PATH, TWO, TWO, [1, 1, 2])
        -> `head_maps[1]` has 1 columns, but vertex 2 has dimension 2 in `vertex_dims`
CellularSheaf([[0, 0]], [TALL.T], [np.ones((1, 3))])
        -> `head_maps[0]` has 3 columns, but vertex 0 has dimension 2
CellularSheaf(PATH, ONE, TWO) -> `tail_maps` must hold one map per edge, 2 in all, got 1
CellularSheaf(PATH, TWO, EYE) -> `head_maps` must have shape (m, d_e, d_v), got (1, 1)
CellularSheaf(PATH, [[1.0], [1.0]], TWO) -> `tail_maps[0]` must be 2-D, got shape (1,)
CellularSheaf(PATH, [[[1.0], [1.0, 2.0]], EYE], TWO) -> `tail_maps[0]` must be a rectangular
CellularSheaf([[0, 2]], ONE, ONE)
        -> vertex 1 has no edges, so the maps do not determine its dimension: pass `vertex_dims`
CellularSheaf([[0, 10**15]], ONE, ONE) -> vertex 1 has no edges
CellularSheaf([[0, 1]], ONE, ONE, [1, 1, -2])
        -> `vertex_dims` must not be negative, got -2 at index 2
CellularSheaf([[0, 1]], ONE, ONE, 1) -> `vertex_dims` must be 1-dimensional, got 1: pass [1]
CellularSheaf([[0, 1]], ONE, ONE, ["1", "1"])
        -> TypeError: `vertex_dims` must hold integers, got dtype <U1
CellularSheaf(PATH, nan_at(1), FINITE) -> `tail_maps[1]` (edge 1 -> 2) must be finite, got nan
CellularSheaf(PATH, FINITE, nan_at(0, -np.inf))
        -> `head_maps[0]` (edge 0 -> 1) must be finite, got -inf
CellularSheaf(PATH, [TALL, TALL[:0]], [TALL * [[1], [np.nan]], TALL[:0]])
        -> `head_maps[0]` (edge 0 -> 1) must be finite, got nan
CellularSheaf(PATH, TWO, [EYE, [[complex(0, np.nan)]]])
        -> `head_maps[1]` (edge 1 -> 2) must be finite
CellularSheaf(PATH, TWO.astype(object), TWO)
        -> TypeError: `tail_maps` must be an (m, d_e, d_v) array or a list
CellularSheaf(PATH, TWO, [EYE, [[None]]]) -> TypeError: `head_maps[1]` must hold float32
CellularSheaf(PATH, None, TWO) -> TypeError: `tail_maps` must be an (m, d_e, d_v) array or a
        sequence of 2-D arrays, got NoneType
CellularSheaf(PATH, "ab", TWO) -> TypeError: sequence of 2-D arrays, got str
CellularSheaf(PATH, TWO, (M for M in TWO)) -> TypeError: sequence of 2-D arrays, got generator
CellularSheaf.from_flat([[0, 1]], [1.0], [1.0, 2.0], [1, 1], 1)
        -> `head_data` must have shape (1,), the sum of d_e d_v, got (2,)
CellularSheaf.from_flat([[0, 1]], [[1.0]], [1.0], [1, 1], 1)
        -> `tail_data` must have shape (1,), the sum of d_e d_v, got (1, 1)
CellularSheaf.from_flat(PATH, [1.0], [1.0], [1, 1, 1], [1])
        -> `edge_dims` must have one entry per edge, 2 in all, got 1
CellularSheaf.from_flat(PATH, [1.0, 1.0], [1.0, 1.0], [1, 1], 1)
        -> `edges[1]` = (1, 2) is out of range for 2 vertices
CellularSheaf.from_flat(PATH, [1.0, 1.0], [1.0, 1.0], 1, [1, -1])
        -> `edge_dims` must not be negative, got -1 at index 1
CellularSheaf.from_flat(PATH, [1.0, np.nan], [1.0, 1.0], 1, 1)
        -> `tail_maps[1]` (edge 1 -> 2) must be finite
"""


@pytest.mark.parametrize(("call", "error"), rows(BAD_SHEAVES))
def test_inconsistent_sheaves_raise(call, error):
    with raises(error):
        eval(call)


def test_tensors_are_accepted_as_maps():
    tails, heads = np.float32([[[1], [2]]]), np.float32([[[3, 4], [5, 6]]])
    F = CellularSheaf(Tensor([[1, 0]]), Tensor(tails), Tensor(heads))
    assert F.dtype == np.float32
    np.testing.assert_array_equal(F.tail_map(0), tails[0])
    np.testing.assert_array_equal(F.head_map(0), heads[0])
    G = F.with_maps(Tensor(heads[:, :, :1]), [Tensor(heads[0])])
    np.testing.assert_array_equal(G.tail_map(0), heads[0, :, :1])
    with raises("ValueError: `tail_maps` must have shape (m, d_e, d_v), got (2, 1)"):
        CellularSheaf([[1, 0]], Tensor(tails[0]), heads)
