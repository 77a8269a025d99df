"""User-supplied maps: scalar types, the range of entries, and invalid input."""

import re

import numpy as np
import pytest

from sheafcoarsen import CellularSheaf
from sheafcoarsen._support import checks
from sheafcoarsen.sheaf import checked_sheaf
from tests.support.errors import raises
from tests.support.helpers import Tensor
from tests.support.strategies import DTYPES
from tests.unit.sheaf.test_cellular_sheaf import PATH

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


def test_both_ends_have_the_common_scalar_type():
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
def test_unsupported_scalar_types_raise(dtype, n_edges, form):
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


# ---------------------------------------------------------------- range


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


# ---------------------------------------------------------------- what is refused

ONE = np.ones((1, 1, 1))
TWO = np.ones((2, 1, 1))
NO_ROWS = np.zeros((0, 1))
SEQUENCE = "sequence of 2-D arrays, got"


def nan_at(e, value=np.nan):
    maps = np.ones((2, 2, 2))
    maps[e, 1, 0] = value
    return maps


FINITE = nan_at(0, 1.0)

BAD_SHEAVES = [
    ((PATH, TWO, TWO, [1, 1]), "`edges[1]` = (1, 2) is out of range for 2 vertices (0"),
    (([[0, -1]], ONE, ONE), "`edges[0]` = (0, -1) has a negative endpoint"),
    ((None, ONE, ONE), "TypeError: `edges` must be"),
    # shapes of maps
    (
        (PATH, [np.eye(1), np.ones((2, 1))], [np.eye(1), np.eye(1)]),
        "`tail_maps[1]` has 2 rows and `head_maps[1]` has 1",
    ),
    (
        (PATH, [np.eye(1), np.ones((1, 3))], [np.ones((1, 2)), np.eye(1)]),
        "`tail_maps[1]` has 3 columns, but vertex 1 has dimension 2 in its first map",
    ),
    (
        (PATH, TWO, TWO, [1, 1, 2]),
        "`head_maps[1]` has 1 columns, but vertex 2 has dimension 2 in `vertex_dims`",
    ),
    (
        ([[0, 0]], [np.ones((1, 2))], [np.ones((1, 3))]),
        "`head_maps[0]` has 3 columns, but vertex 0 has dimension 2",
    ),
    ((PATH, ONE, TWO), "`tail_maps` must hold one map per edge, 2 in all, got 1"),
    ((PATH, TWO, [ONE[0]] * 3), "`head_maps` must hold one map per edge, 2 in all, got"),
    ((PATH, TWO, TWO[0]), "`head_maps` must have shape (m, d_e, d_v), got (1, 1)"),
    ((PATH, [[1.0], [1.0]], TWO), "`tail_maps[0]` must be 2-D, got shape (1,)"),
    ((PATH, [[[1.0], [1.0, 2.0]], ONE[0]], TWO), "`tail_maps[0]` must be a rectangular"),
    # dimensions of vertex stalks
    (
        ([[0, 2]], ONE, ONE),
        "vertex 1 has no edges, so the maps do not determine its dimension: pass `vertex_dims`",
    ),
    (([[0, 10**15]], ONE, ONE), "vertex 1 has no edges"),
    (([[0, 1]], ONE, ONE, [1, 1, -2]), "`vertex_dims` must not be negative, got -2 at index 2"),
    (([[0, 1]], ONE, ONE, 1), "`vertex_dims` must be 1-dimensional, got 1: pass [1]"),
    (
        ([[0, 1]], ONE, ONE, ["1", "1"]),
        "TypeError: `vertex_dims` must hold integers, got dtype <U1",
    ),
    # entries of maps
    ((PATH, nan_at(1), FINITE), "`tail_maps[1]` (edge 1 -> 2) must be finite, got nan"),
    ((PATH, FINITE, nan_at(0, -np.inf)), "`head_maps[0]` (edge 0 -> 1) must be finite, got -inf"),
    (
        (PATH, [np.ones((2, 1)), NO_ROWS], [np.array([[1.0], [np.nan]]), NO_ROWS]),
        "`head_maps[0]` (edge 0 -> 1) must be finite, got nan",
    ),
    ((PATH, TWO, [[[1.0]], [[complex(0, np.nan)]]]), "`head_maps[1]` (edge 1 -> 2) must be finite"),
    ((PATH, TWO, 1e151 * TWO), "is 1e+151, outside"),
    ((PATH, 1e-151 * TWO, 0 * TWO), "is 1e-151, outside"),
    # types of maps
    (
        (PATH, TWO.astype(object), TWO),
        "TypeError: `tail_maps` must be an (m, d_e, d_v) array or a list",
    ),
    ((PATH, TWO, TWO.astype(str)), "TypeError: `head_maps` must hold float32, float64"),
    ((PATH, TWO, [[[1.0]], [[None]]]), "TypeError: `head_maps[1]` must hold float32"),
    ((PATH, [[[1.0]], [[True]]], TWO), "TypeError: `tail_maps[1]` must hold float32"),
    (
        (PATH, None, TWO),
        f"TypeError: `tail_maps` must be an (m, d_e, d_v) array or a {SEQUENCE} NoneType",
    ),
    ((PATH, "ab", TWO), f"TypeError: {SEQUENCE} str"),
    ((PATH, TWO, (M for M in TWO)), f"TypeError: {SEQUENCE} generator"),
]

BAD_FLAT = [
    (
        ([[0, 1]], [1.0], [1.0, 2.0], [1, 1], 1),
        "`head_data` must have shape (1,), the sum of d_e d_v, got (2,)",
    ),
    (
        ([[0, 1]], [[1.0]], [1.0], [1, 1], 1),
        "`tail_data` must have shape (1,), the sum of d_e d_v, got (1, 1)",
    ),
    (
        (PATH, [1.0], [1.0], [1, 1, 1], [1]),
        "`edge_dims` must have one entry per edge, 2 in all, got 1",
    ),
    (
        (PATH, [1.0, 1.0], [1.0, 1.0], [1, 1], 1),
        "`edges[1]` = (1, 2) is out of range for 2 vertices",
    ),
    (
        (PATH, [1.0, 1.0], [1.0, 1.0], 1, [1, -1]),
        "`edge_dims` must not be negative, got -1 at index 1",
    ),
    ((PATH, [1.0, np.nan], [1.0, 1.0], 1, 1), "`tail_maps[1]` (edge 1 -> 2) must be finite"),
]


@pytest.mark.parametrize(
    ("build", "arguments", "error"),
    [
        *((CellularSheaf, *row) for row in BAD_SHEAVES),
        *((CellularSheaf.from_flat, *row) for row in BAD_FLAT),
    ],
    ids=[row[-1] for row in BAD_SHEAVES + BAD_FLAT],
)
def test_inconsistent_sheaves_raise(build, arguments, error):
    with raises(error if error.startswith("TypeError: ") else f"ValueError: {error}"):
        build(*arguments)


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
