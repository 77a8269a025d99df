"""User-supplied maps: scalar types, the range of entries, and invalid input."""

import re

import numpy as np
import pytest

from sheafcoarsen import CellularSheaf
from sheafcoarsen._support import checks
from sheafcoarsen.sheaf import checked_sheaf
from tests.support.errors import raises, rows
from tests.support.helpers import Tensor
from tests.support.strategies import DTYPES
from tests.unit.sheaf.test_cellular_sheaf import PATH


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


def test_weights_outside_the_range_raise():
    assert CellularSheaf.constant([[0, 1]], weight=[1e-200]).tail_data == pytest.approx(1e-100)
    with pytest.raises(ValueError, match="rescale the maps"):
        CellularSheaf.constant([[0, 1]], weight=[1e-302])


def test_stored_maps_may_exceed_the_range_but_must_be_finite():
    with pytest.raises(ValueError, match="rescale the maps"):
        CellularSheaf.from_flat([[0, 1]], [1e-200], [0.0], 1, 1)
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
CellularSheaf(PATH, TWO, [EYE] * 3) -> `head_maps` must hold one map per edge, 2 in all, got
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
CellularSheaf(PATH, TWO, TWO.astype(str)) -> TypeError: `head_maps` must hold float32, float64
CellularSheaf(PATH, TWO, [EYE, [[None]]]) -> TypeError: `head_maps[1]` must hold float32
CellularSheaf(PATH, [EYE, [[True]]], TWO) -> TypeError: `tail_maps[1]` must hold float32
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
