"""The class: its contents, immutability, new maps and names, comparison of two sheaves."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen import CellularSheaf
from tests.support import reference
from tests.support.errors import raises, rows
from tests.support.helpers import assert_residual, eps_of
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
    assert (F.n_vertices, F.n_edges, F.dim_c0, F.dim_c1) == (4, 4, 6, 6)
    assert F.vertex_offsets.tolist() == [0, 2, 3, 3, 6]
    assert F.edge_offsets.tolist() == [0, 1, 3, 4, 6]
    assert F.edge_dims.tolist() == [1, 2, 1, 2]
    assert F.tail_map(1).tolist() == [[3, 4], [5, 6]]
    assert F.head_map(1).tolist() == [[10], [11]]
    assert F.tail_map(3).shape == (2, 0)
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
    if len({*dims}) <= 1 and len({*F.edge_dims}) <= 1:
        d_v, d_e = int(max(dims, default=0)), int(max(F.edge_dims, default=0))
        arrays = [data.reshape(m, d_e, d_v) for data in flat]
        strided = [np.asfortranarray(A) for A in arrays]
        copies += [CellularSheaf(F.edges, *given_maps, dims) for given_maps in (arrays, strided)]
        copies.append(F.with_maps(*arrays))
        if m and d_v:
            copies.append(CellularSheaf.from_flat(F.edges, *flat, dims, d_e))
            if F.edges.max() + 1 == len({*F.edges.flat}):
                n = CellularSheaf(F.edges, *arrays).n_vertices
                assert n == F.edges.max() + 1
    for copy in copies:
        assert F.equals(copy)
        assert F.allclose(copy, rtol=0)


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
