"""Checks of maps and cochains, including limits on entries that keep their squares finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from sheafcoarsen._kernels.arrays import scan
from sheafcoarsen._support.arrays import scalar_array


class HasArray(Protocol):
    """An array, or what numpy converts into one."""

    def __array__(self) -> np.ndarray[Any, Any]:
        """Return the array."""


Number: TypeAlias = complex | HasArray

CochainLike: TypeAlias = HasArray | Sequence[Number | Sequence[Number]]
"""One or several columns of numbers. Unlike numpy's ``ArrayLike``, the type excludes text."""


def range_limits(dtype: npt.DTypeLike) -> tuple[float, float]:
    """Return the allowed range of a sheaf's largest entry (docs/conventions.md, section 1)."""
    info = np.finfo(dtype)
    return float(np.sqrt(info.tiny)) * 1e4, float(np.sqrt(info.max)) / 1e4


def check_range(name: str, largest: float, dtype: npt.DTypeLike) -> None:
    """Raise an error if squares of map entries would overflow or underflow."""
    low, high = range_limits(dtype)
    if largest > high or 0 < largest < low:
        raise ValueError(
            f"the largest entry of `{name}` is {largest:.3g}, outside {low:.2g} .. {high:.2g}, "
            f"where squares in {np.dtype(dtype)} are safe: rescale the maps (L scales with the "
            f"square of the factor)"
        )


def check_squares(name: str, largest: float, dtype: npt.DTypeLike) -> None:
    """Raise an error if squares of stored entries overflow; entries may exceed `range_limits`."""
    if largest > 1e3 * range_limits(dtype)[1]:
        raise ValueError(
            f"{name} have entries up to {largest:.3g}, whose squares overflow in {np.dtype(dtype)}"
        )


class Stalks(Protocol):
    """Part of a sheaf's interface that the checks of a 0-cochain need."""

    @property
    def dtype(self) -> np.dtype:
        """Scalar type of the maps."""

    @property
    def dim_c0(self) -> int:
        """Length of a 0-cochain."""

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""

    @property
    def largest_entry(self) -> float:
        """Largest absolute value of a map entry."""


def cochain(sheaf: Stalks, x: CochainLike, name: str = "x", what: str = "") -> np.ndarray:
    """Check a 0-cochain and return it in the common scalar type; errors include ``what``."""
    array, size = _columns(sheaf, x, name, what)
    if size * max(sheaf.largest_entry, 1.0) > 100 * range_limits(array.dtype)[1]:
        raise ValueError(
            f"`{name}` has entries up to {size:.3g} and the maps up to {sheaf.largest_entry:.3g}, "
            f"so energies would overflow in {array.dtype}: rescale `{name}`"
        )
    return array


def right_side(sheaf: Stalks, b: CochainLike, name: str = "b", what: str = "") -> np.ndarray:
    """Check a right-hand side of L x = b; its entries may be larger than `cochain` allows."""
    array, size = _columns(sheaf, b, name, what)
    if size > np.finfo(array.dtype).max / 1e4:
        raise ValueError(
            f"`{name}` has entries up to {size:.3g}, so its norm may overflow in {array.dtype}: "
            f"rescale `{name}`"
        )
    return array


def _columns(sheaf: Stalks, x: CochainLike, name: str, what: str) -> tuple[np.ndarray, float]:
    """Return one or several checked cochains, and their largest absolute value."""
    array = scalar_array(name, x)
    if array.ndim not in (1, 2) or array.shape[0] != sheaf.dim_c0:
        raise ValueError(
            f"`{name}` must have shape (dim_c0,) or (dim_c0, h) with dim_c0 = "
            f"{sheaf.dim_c0}{what}, got shape {array.shape}{_reshaping(sheaf, array, name)}"
        )
    array = np.ascontiguousarray(array, dtype=np.result_type(array.dtype, sheaf.dtype))
    bad, size = scan(array.reshape(-1))
    if bad >= 0:
        row = bad // (array.shape[1] if array.ndim == 2 else 1)
        raise ValueError(f"`{name}` must be finite, got {array.reshape(-1)[bad]} in row {row}")
    return array, size


def _reshaping(sheaf: Stalks, array: np.ndarray, name: str) -> str:
    """Return a hint if reshaping makes an array valid, otherwise an empty string."""
    if array.ndim not in (2, 3):
        return ""
    if array.size == sheaf.dim_c0:
        return f"; {name}.reshape(-1) stacks the stalks of one cochain"
    if sheaf.dim_c0 and array.shape[0] == sheaf.n_vertices and array.size % sheaf.dim_c0 == 0:
        lifted = f"{name}.reshape({sheaf.dim_c0}, -1)"
        return f"; {lifted} converts features of equal stalks, one row per vertex"
    return ""
