"""Cochains: shapes, common scalar types, and entries whose squares stay finite."""

import re

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen import CellularSheaf
from sheafcoarsen._support import check_range, cochain, range_limits, right_side

PATH = CellularSheaf.constant(nx.path_graph(3), dim=2)


def refuses(message):
    return pytest.raises(ValueError, match=re.escape(message))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_squares_are_safe_within_the_range_but_not_far_beyond_it(dtype):
    low, high = range_limits(dtype)
    info = np.finfo(dtype)
    real = info.dtype.type
    assert np.isfinite(real(high) ** 2 * real(1e6))
    assert real(low) ** 2 >= info.tiny * 1e6
    check_range("maps", low, dtype)
    check_range("maps", high, dtype)
    check_range("maps", 0.0, dtype)
    for outside in (low * 0.999, high * 1.001):
        with refuses(f"squares in {np.dtype(dtype)} are safe: rescale the maps"):
            check_range("maps", outside, dtype)


def test_cochain_returns_the_common_scalar_type_in_c_order():
    assert cochain(PATH, np.arange(6)).dtype == np.float64
    assert cochain(PATH, np.ones(6, np.complex64)).dtype == np.complex128
    x = cochain(PATH, np.asfortranarray(np.arange(12.0).reshape(6, 2)))
    assert x.flags.c_contiguous
    assert x.tolist() == np.arange(12.0).reshape(6, 2).tolist()


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((5,), ""),
        ((6, 1, 1), "; y.reshape(-1) stacks the stalks of one cochain"),
        ((3, 2), "; y.reshape(-1) stacks the stalks of one cochain"),
        ((3, 4), "; y.reshape(6, -1) converts features of equal stalks, one row per vertex"),
        ((3, 2, 5), "; y.reshape(6, -1) converts features of equal stalks, one row per vertex"),
        ((3, 3), ""),
    ],
    ids=str,
)
def test_wrong_shape_raises_error_with_a_hint_on_reshaping(shape, hint):
    with refuses(f"with dim_c0 = 6 of the fine sheaf, got shape {shape}{hint}") as raised:
        cochain(PATH, np.zeros(shape), "y", " of the fine sheaf")
    assert str(raised.value).endswith(f"got shape {shape}{hint}")


def test_error_names_the_row_of_the_first_non_finite_entry():
    x = np.zeros((6, 2))
    x[4, 1] = x[5, 0] = -np.inf
    with refuses("`x` must be finite, got -inf in row 4"):
        cochain(PATH, x)
    with refuses("`x` must be finite, got nan in row 2"):
        cochain(PATH, np.where(np.arange(6) == 2, np.nan, 0))


def test_entries_whose_energy_overflows_raise():
    high = range_limits(np.float64)[1]
    assert np.isfinite(cochain(PATH, np.full(6, 99 * high))).all()
    with refuses("energies would overflow in float64: rescale `x`"):
        cochain(PATH, np.full(6, 101 * high))
    large = CellularSheaf([[0, 1]], np.full((1, 1, 1), 1e3), np.ones((1, 1, 1)))
    with refuses("the maps up to 1e+03, so energies"):
        cochain(large, np.full(2, high))
    small = CellularSheaf([[0, 1]], np.full((1, 1, 1), 1e-100), np.ones((1, 1, 1)) * 1e-100)
    with refuses(
        "the maps up to 1e-100, so energies"
    ):  # squares of cochains alone must be finite, too
        cochain(small, np.full(2, 1e160))


def test_right_hand_sides_may_be_as_large_as_the_laplacian():
    large = CellularSheaf([[0, 1]], np.full((1, 1, 1), 1e100), np.ones((1, 1, 1)))
    assert right_side(large, [1e200, -1e200]).tolist() == [1e200, -1e200]
    with refuses("`b` has entries up to 1e+305, so its norm may overflow in float64: rescale `b`"):
        right_side(large, [0.0, 1e305])
    with refuses("`b` must be finite, got inf in row 1"):
        right_side(large, [0.0, np.inf])
