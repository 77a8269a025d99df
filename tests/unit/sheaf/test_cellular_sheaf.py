"""The class: contents, immutability, new maps and names, comparison, input; parts and unions."""

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
from sheafcoarsen._support import checks
from sheafcoarsen.sheaf import checked_sheaf, component_count, unit_sheaf
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
            lambda: CellularSheaf.from_flat(edges, eye.ravel(), turn.ravel(), twos, twos[:2]),
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
    double = (data.astype(float) for data in (single.tail_data, single.head_data))
    assert not RANDOM.allclose(RANDOM.with_maps(*double))
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
        what = r"`head_(maps|data)` must (hold|be) .*, got (dtype|an object)"
        with pytest.raises(TypeError, match=what):
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
        message = rf"the largest entry of .* is .*squares in {np.dtype(dtype)} are safe: rescale"
        with pytest.raises(ValueError, match=message):
            build(outside)
        with pytest.raises(ValueError, match="rescale the maps"):
            build(1.01 * low).with_maps(*[np.array([outside, 0], dtype)] * 2)
        with pytest.raises(ValueError, match="rescale the maps"):
            CellularSheaf.from_flat([[0, 1]], *[np.array([outside], dtype)] * 2, [1, 1], 1)


def test_stored_maps_may_exceed_the_range_but_must_be_finite():
    G = checked_sheaf([[0, 1]], [1e-200], [0.0], [1, 1], [1], ("a", "b"))
    assert (G.tail_data.tolist(), G.vertex_labels) == ([1e-200], ("a", "b"))
    for bad in (np.inf, np.nan):
        with pytest.raises(ValueError, match=re.escape("`tail_maps[0]` (edge 0 -> 1) must be fin")):
            checked_sheaf([[0, 1]], [bad], [0.0], [1, 1], [1])
    with pytest.raises(ValueError, match="out of range for 1 vert"):
        checked_sheaf([[0, 1]], [1.0], [0.0], [1], [1])


ONE, TWO = np.ones((1, 1, 1)), np.ones((2, 1, 1))


def nan_at(e, value=np.nan):
    maps = np.ones((2, 2, 2))
    maps[e, 1, 0] = value
    return maps


FINITE, TALL, EYE = nan_at(0, 1.0), np.ones((2, 1)), np.eye(1)

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


# ---------------------------------------------------------------- parts, names, components, units
LETTERS = ["a", "b", "c", "d"]
BY_LETTERS, NUMBERED = MIXED.with_labels(LETTERS), MIXED.with_labels([0, 2, 30, 7])


class Column:
    """What a pandas Series of objects looks like to numpy."""

    def __init__(self, *items):
        self.items = items

    def __array__(self, dtype=None, copy=None):
        return np.array(self.items, dtype=object)


@given(sheaves(), st.data())
def test_subsheaf_has_the_edges_between_its_vertices(F, data):
    chosen = data.draw(st.lists(st.integers(0, 9), unique=True))
    chosen = [v for v in chosen if v < F.n_vertices]
    G = F.subsheaf(chosen)
    mask = np.isin(np.arange(F.n_vertices), chosen)
    vertices = np.flatnonzero(mask).tolist()
    inside = [e for e, ends in enumerate(F.edges.tolist()) if set(ends) <= set(vertices)]
    rows = [k for e in inside for k in reference.edge_coordinates(F, e)]
    columns = [k for v in vertices for k in reference.vertex_coordinates(F, v)]
    part = reference.coboundary(F)[np.ix_(rows, columns)]
    np.testing.assert_array_equal(reference.coboundary(G), part, strict=True)
    ends = [[vertices[v] for v in edge] for edge in G.edges.tolist()]
    assert ends == F.edges[inside].tolist()
    for mine, theirs in ((tails(G), tails(F)), (heads(G), heads(F))):
        for e, f in enumerate(inside):
            np.testing.assert_array_equal(mine[e], theirs[f], strict=True)
    assert G.equals(F.subsheaf(mask))


def test_subsheaf_keeps_names_and_order():
    G = BY_LETTERS.subsheaf([3, 1, 0])
    assert (G.vertex_labels, G.vertex_dims.tolist()) == (("a", "b", "d"), [2, 1, 3])
    assert G.edges.tolist() == [[0, 0], [0, 1], [1, 0]]
    assert not G.tail_data.flags.writeable
    assert BY_LETTERS.subsheaf([]).n_vertices == 0
    assert BY_LETTERS.subsheaf(np.ones(4, bool)).equals(BY_LETTERS)
    assert NUMBERED.subsheaf([2, 1]).vertex_labels == (2, 30)
    assert BY_LETTERS.subsheaf(Column("d", "b")).vertex_labels == ("b", "d")
    by_floats = BY_LETTERS.with_labels([2.0, 0.0, 1.0, 3.5])
    for names in ([2.0, 0.0], np.array([2.0, 0.0])):
        assert by_floats.subsheaf(names).vertex_labels == (2.0, 0.0)
        assert NUMBERED.subsheaf(names).equals(NUMBERED.subsheaf([0, 2]))  # indices, not names


BAD_VERTICES = """
MIXED.subsheaf([0, 4]) -> `vertices[1]` = 4 is out of range for 4 vertices (0 .. 3)
MIXED.subsheaf([-1]) -> `vertices[0]` = -1 is out of range for 4 vertices (0 .. 3)
MIXED.subsheaf([2, 1, 2]) -> repeat a vertex, got vertex 2 at indices 0 and 2
MIXED.subsheaf([True, False]) -> `vertices`, a mask, must have shape (4,), got (2,)
MIXED.subsheaf(["a"]) -> TypeError: dtype <U1: the vertices have no names
MIXED.subsheaf([0.5]) -> `vertices` must hold whole numbers, got 0.5 at index 0
MIXED.subsheaf(None) -> `vertices` must be 1-dimensional, got None
MIXED.subsheaf(3) -> `vertices` must be 1-dimensional, got 3: pass [3]
MIXED.subsheaf({1, 2}) -> 1-dimensional, got a set: pass list(...) of it
MIXED.subsheaf({1: 2}) -> got a dict: pass a list of its keys, or of its values
MIXED.subsheaf(v for v in [1]) -> got a generator: pass list(...) of it
MIXED.subsheaf("abc") -> got 'abc': the vertices have no names
NUMBERED.subsheaf([4])
        -> `vertices[0]` = 4 is out of range for 4 vertices (0 .. 3); vertices are named 0 .. 7
BY_LETTERS.subsheaf(["a", 1]) -> `vertices[1]` = 1 is not the name
BY_LETTERS.subsheaf(["b", "b"]) -> repeat a vertex, got vertex 1 at indices 0 and 1
BY_LETTERS.subsheaf("b") -> TypeError: got the name 'b': pass ['b']
BY_LETTERS.vertices_of(["a", "x"]) -> `names[1]` = 'x' is not the name of a vertex
BY_LETTERS.vertices_of([0]) -> `names[0]` = 0 is not the name of a vertex
BY_LETTERS.vertices_of("ab") -> `names` must be 1-dimensional, got 'ab': pass a list
BY_LETTERS.vertices_of([["a"]]) -> TypeError: `names[0]` must be the name of a vertex, got ['a']
MIXED.vertices_of(["a"]) -> `names[0]` = 'a' is not the name of a vertex
"""


@pytest.mark.parametrize(("call", "error"), rows(BAD_SHEAVES) + rows(BAD_VERTICES))
def test_inconsistent_sheaves_and_invalid_vertices_raise(call, error):
    with raises(error):
        eval(call)


@pytest.mark.parametrize(
    ("labels", "names", "expected"),
    [
        (None, [3, 1], [3, 1]),
        (LETTERS, ["d", "b"], [3, 1]),
        (LETTERS, np.array(["d", "b"]), [3, 1]),
        ([(0, 0), (0, 1), (1, 0), (1, 1)], [(1, 1), (0, 1)], [3, 1]),
        ([10, 20, 30, 40], [40, 20], [3, 1]),
        ([1, 2, 3, 0], np.array([0, 2]), [3, 1]),
    ],
)
def test_vertices_of_returns_indices_of_names(labels, names, expected):
    found = MIXED.with_labels(labels).vertices_of(names)
    assert (found.dtype, found.tolist()) == (np.int64, expected)


VALUES = [[1.0, 2.0], [3.0, 4.0]]
NAMED = CellularSheaf.random(nx.path_graph(list("dcbae")), 2, 2, seed=1)


@pytest.mark.parametrize(
    "call",
    [
        lambda v: sc.Solver(NAMED, fixed=v)(np.arange(10.0)),
        lambda v: sc.diffuse(NAMED, np.arange(10.0), 1.0, fixed=v),
        lambda v: sc.eliminate(NAMED, keep=v).kept,
        lambda v: sc.harmonic_extension(NAMED, v, VALUES),
        lambda v: sc.least_squares(NAMED, np.arange(8.0), vertices=v, values=VALUES).x,
    ],
    ids=["Solver", "diffuse", "eliminate", "harmonic_extension", "least_squares"],
)
def test_all_vertex_arguments_accept_names(call):
    expected = call([3, 1])
    np.testing.assert_array_equal(call(["a", "c"]), expected)
    assert not np.array_equal(call(["a", "d"]), expected)


def test_coarse_vertices_have_names_from_their_clusters():
    P = sc.Partition([1, 0, 0, 1, 0])
    C = sc.coarsen(NAMED, P, sc.ranks.kernel())
    assert C.sheaf.vertex_labels == (("c", "b", "e"), ("d", "a"))
    assert C.recoarsen(NAMED).sheaf.vertex_labels == C.sheaf.vertex_labels
    assert C.sheaf.vertices_of([("d", "a")]).tolist() == [1]
    assert sc.coarsen(NAMED.with_labels(None), P, 10).sheaf.vertex_labels is None


@given(sheaves())
def test_components_equal_those_of_networkx(F):
    """They are numbered by their first vertices; edges with zero maps connect vertices, too."""
    graph = nx.empty_graph(F.n_vertices)
    graph.add_edges_from(F.edges.tolist())
    expected = np.zeros(F.n_vertices, np.int64)
    for c, part in enumerate(sorted(nx.connected_components(graph), key=min)):
        expected[list(part)] = c
    np.testing.assert_array_equal(sc.components(F), expected, strict=True)
    assert component_count(F) == expected.max(initial=-1) + 1
    zero = F.with_maps(0 * F.tail_data, 0 * F.head_data)
    np.testing.assert_array_equal(sc.components(zero), expected, strict=True)


def test_split_keeps_vertex_names():
    F = CellularSheaf.constant(nx.Graph([("a", "b"), ("c", "d")]))
    parts = sc.split(F, [0, 2, 2, 4])
    assert [part.n_vertices for part in parts] == [2, 0, 2]
    assert [parts[0].vertex_labels, parts[2].vertex_labels] == [("a", "b"), ("c", "d")]


def test_union_and_split_return_read_only_copies():
    union, starts, _ = sc.disjoint_union([MIXED, MIXED])
    for G in (union, *sc.split(union, starts)):
        assert not np.shares_memory(G.tail_data, TAIL)
        for array in (G.edges, G.vertex_dims, G.edge_dims, G.tail_data, G.head_data):
            assert not array.flags.writeable


@given(sheaves())
def test_unit_is_the_power_of_two_above_the_largest_entry(F):
    G, unit = unit_sheaf(F)
    assert np.frexp(unit)[0] == 0.5
    assert G.dtype == np.result_type(F.dtype, np.float64)
    for mine, given_maps in ((G.tail_data, F.tail_data), (G.head_data, F.head_data)):
        np.testing.assert_array_equal(mine * unit, given_maps)
    assert G.largest_entry < 1
    assert G.largest_entry >= 0.5 or F.largest_entry == 0
    assert G.vertex_labels == F.vertex_labels
    for name in ("edges", "vertex_dims", "edge_dims", "vertex_offsets", "tail_offsets"):
        assert getattr(G, name) is getattr(F, name)


def test_unit_is_one_for_zero_or_no_maps_and_right_for_extreme_entries():
    for F in (CellularSheaf([[0, 1]], [[[0.0]]], [[[0.0]]]), CellularSheaf([], [], [], [])):
        assert unit_sheaf(F)[1] == 1
    for scale in (1e-149, 1e149, 1e149j):
        F = CellularSheaf([[0, 1]], [[[0.0, 3.0 * scale]]], [[[scale]]])
        G, unit = unit_sheaf(F)
        assert 0.5 <= abs(G.tail_data[1]) < 1
        assert G.tail_data[1] * unit == F.tail_data[1]


@pytest.mark.parametrize(("size", "beyond"), [(1e149, 1e152), (1e-149, 1e-152)])
def test_new_maps_and_unions_allow_the_range_of_a_coarse_sheaf(size, beyond):
    """Its maps may exceed the range of user-supplied maps; new maps may exceed it as far."""
    F = CellularSheaf.constant([[0, 1]])
    F = F.with_maps(size * F.tail_data, size * F.head_data)
    factor = beyond / size
    G = sc.coarsen(F, sc.Partition([0, 1]), basis=[[[factor]], [[factor]]]).sheaf
    assert G.with_maps(G.tail_data, G.head_data).equals(G)
    assert sc.disjoint_union([G, G])[0].tail_data.tolist() == [G.tail_data[0]] * 2
    with pytest.raises(ValueError, match="where squares in float64 are safe"):
        G.with_maps(factor * G.tail_data, factor * G.head_data)
    single = np.full(1, beyond ** (1 / 6), np.float32)  # in range in double precision only
    with pytest.raises(ValueError, match="where squares in float32 are safe"):
        G.with_maps(single, single)


P = sc.Partition([0, 0, 1])
PATTERN = ("the topology of the pattern", "make a new LaplacianPattern for another one")
COARSENED = ("the graph and the stalks of the sheaf that was coarsened", "use coarsen for another")
ORIGINAL = ("the graph and the stalks of the original sheaf", "use eliminate for another graph")

CALLS = {
    "pattern": (sc.LaplacianPattern(RANDOM).fill, *PATTERN),
    "bsr pattern": (sc.LaplacianPattern(RANDOM, "bsr").fill, *PATTERN),
    "modes": (sc.coarsen(RANDOM, P, 2).recoarsen, *COARSENED),
    "basis": (sc.coarsen(RANDOM, P, basis=[np.eye(4, 2), np.eye(2)]).recoarsen, *COARSENED),
    "elimination": (sc.eliminate(RANDOM).refresh, *ORIGINAL),
}

TOPOLOGIES = [
    ([[0, 1], [2, 1]], 2, 3, "edges differ, first at index 1, with [2, 1] instead of [1, 2]"),
    ([[0, 1], [1, 2], [0, 2]], 2, 3, "edges differ, there are 3 of them, not 2"),
    ([[0, 1], [1, 2]], [2, 2, 1], 3, "vertex_dims differ, first at index 2, with 1 instead of 2"),
    ([[0, 1], [1, 2]], [2] * 4, 3, "vertex_dims differ, there are 4 of them, not 3"),
    ([[0, 1], [1, 2]], 2, [3, 2], "edge_dims differ, first at index 1, with 2 instead of 3"),
]


@pytest.mark.parametrize(("edges", "vertex_dims", "edge_dims", "what"), TOPOLOGIES)
@pytest.mark.parametrize("call", CALLS)
def test_error_names_the_first_difference_of_topologies(call, edges, vertex_dims, edge_dims, what):
    refresh, wanted, remedy = CALLS[call]
    other = CellularSheaf.random(edges, vertex_dims, edge_dims, seed=11)
    with raises(f"ValueError: `sheaf` must have {wanted}, but its {what}: {remedy}"):
        refresh(other)
