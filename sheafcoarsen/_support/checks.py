"""Checks of arguments: single values, arrays and cochains.

Errors name the expected value, the actual one and a remedy. Arrays are converted to the four
scalar types or to integers. The entries of maps and cochains are limited, so that their squares
are finite.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import numbers
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._kernels.arrays import scan

MAX_DIMENSION = 2**53
"""Maximum dimension of C^0 or C^1. Doubles represent integers exactly up to this number."""


MAX_VERTICES = 2**31 - 1
"""Maximum number of vertices. Kernels use signed 32-bit vertex indices."""


def whole_number(name: str, value: object, *, at_least: int | None = None) -> int:
    """Check that a value is an integer and at least ``at_least``, and return it as an int."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"`{name}` must be an integer, got {value!r}")
    if at_least is not None and value < at_least:
        raise ValueError(f"`{name}` must be at least {at_least}, got {int(value)}")
    return int(value)


def item_index(name: str, i: object, what: str, count: int) -> int:
    """Check the index of one of ``count`` items and return it; negative ones count from the end."""
    if isinstance(i, bool) or not isinstance(i, int | np.integer):
        article = "an" if what[0] in "aeiou" else "a"
        raise TypeError(f"`{name}` must be an integer, the index of {article} {what}, got {i!r}")
    if not -count <= i < count:
        raise IndexError(f"{what} {i} is out of range for {count} {what}s")
    return int(i) % count


def kind(name: str, value: object, *kinds: type) -> None:
    """Raise an error if a value has none of the expected types."""
    if not isinstance(value, kinds):
        articles = ("an" if k.__name__[0] in "AEIO" else "a" for k in kinds)
        names = " or ".join(f"{a} {k.__name__}" for a, k in zip(articles, kinds, strict=True))
        raise TypeError(f"`{name}` must be {names}, got {type(value).__name__}")


def real_number(name: str, value: object) -> float:
    """Return a real number, which may be inf or NaN, as a float; raise an error if it overflows."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        got = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        raise TypeError(f"`{name}` must be a real number, got {got}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"`{name}` must be representable in double precision, got a larger number"
        ) from None


def fraction(name: str, value: object) -> float:
    """Check that a number lies strictly between 0 and 1, and return it."""
    number = real_number(name, value)
    if not 0 < number < 1:
        raise ValueError(f"`{name}` must be above 0 and below 1, got {number:g}")
    return number


def flag(name: str, value: object) -> bool:
    """Check that a value is True or False, and return it as a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {value!r}")
    return bool(value)


def first_true(mask: npt.ArrayLike) -> int | None:
    """Return the index of the first entry of a mask that is True, or None."""
    indices = np.flatnonzero(mask)
    return int(indices[0]) if indices.size else None


def choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Check that a value is one of the choices, and return it."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(c) for c in choices)
        several = "one of " * ("," in listed)
        raise ValueError(f"`{name}` must be {several}{listed}, got {value!r}")
    return value


def random_generator(name: str, seed: object) -> np.random.Generator:
    """Return a numpy Generator for a seed: None, an integer or a Generator."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    if isinstance(seed, bool | np.bool_) or not isinstance(seed, numbers.Integral):
        raise TypeError(
            f"`{name}` must be None, a non-negative integer or a numpy Generator, got {seed!r}"
        )
    return np.random.default_rng(whole_number(name, seed, at_least=0))


def vertex_count(name: str, count: int) -> None:
    """Raise an error for more vertices than kernels can index or memory can hold."""
    size = 16 * count  # 8 bytes each for the dimension and the offset of a vertex
    if count > MAX_VERTICES:
        count = min(count, 10**400)  # Python formats no integers of more than 4300 digits
        excess = f"but there may be at most {MAX_VERTICES}"
    elif size > physical_memory():
        excess = f"at least {size / 1e9:.3g} GB, which exceeds this machine's memory"
    else:
        return
    raise ValueError(f"`{name}` requires {count} vertices, {excess}")


@contextlib.contextmanager
def memory_for_entries(name: str, entries: float, itemsize: int = 8) -> Iterator[None]:
    """Raise a ValueError if map entries exceed memory, or if the ``with`` block runs out of it."""
    entries = min(entries, 1e300)  # integers may exceed the range of floats
    size = f"{entries * itemsize / 1e9:.3g} GB"
    message = f"`{name}` requires {entries:.3g} map entries ({size}), more than fits in memory"
    if entries * itemsize > physical_memory():
        raise ValueError(message)
    try:
        yield
    except MemoryError:
        raise ValueError(message) from None


@functools.cache
def physical_memory() -> float:
    """Return the physical memory of this machine in bytes, or infinity if unknown."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def file_path(value: object) -> str:
    """Check that a value is a path, not a file descriptor, and return it as text."""
    if isinstance(value, bytes) or not isinstance(value, str | os.PathLike):
        raise TypeError(f"`path` must be a path, got {type(value).__name__}")
    path = os.fsdecode(value)
    if not path:
        raise ValueError("`path` must name a file, got an empty path")
    if "\0" in path:
        raise ValueError(f"`path` must not contain a null character, got {path!r}")
    return path


def optional_module(name: str, message: str) -> Any:
    """Import a module of an optional package; if it is missing, raise an error with ``message``."""
    package = name.partition(".")[0]
    try:
        importlib.import_module(package)  # a module of it may be loaded although it is blocked
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (name, package):  # the package is there, but incomplete
            raise
        raise ImportError(message) from None


def check_matplotlib() -> None:
    """Raise an error with the install command if matplotlib is missing."""
    message = 'plots need matplotlib: pip install "sheafcoarsen[plot]"'
    optional_module("matplotlib.axes", message)


Seed: TypeAlias = int | np.random.Generator | None
"""Seed of ``numpy.random.default_rng``; with None, results are not reproducible."""

PathLike: TypeAlias = str | os.PathLike[str]
"""Path of a file."""


SCALARS = (np.float32, np.float64, np.complex64, np.complex128)
"""The four supported scalar types. Results have the scalar type of the input."""


def scalar_array(name: str, value: object) -> np.ndarray:
    """Convert to an array of one of the four scalar types; integers become float64."""
    if scipy.sparse.issparse(value):
        raise TypeError(
            f"`{name}` must be a dense array, got a sparse one: use .toarray(), "
            f"or .diagonal() of a diagonal matrix"
        )
    try:
        array = np.asarray(value)
    except ValueError as error:  # numpy raises it for ragged nested lists
        raise ValueError(f"`{name}` must be a rectangular array of numbers: {error}") from None
    if array.dtype.kind in "iu":
        return array.astype(np.float64)
    if array.dtype.type in SCALARS:
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    got = (
        type(value).__name__ if array.dtype == object and not array.ndim else f"dtype {array.dtype}"
    )
    hint = ": pass a column, such as modes.vectors[:, 0]" if hasattr(value, "vectors") else ""
    raise TypeError(
        f"`{name}` must hold float32, float64, complex64, complex128 or integers, got {got}{hint}"
    )


def real_array(
    name: str, value: npt.ArrayLike, shapes: Sequence | None, what: str, remedy: str = ""
) -> np.ndarray:
    """Check that an array is real, finite and of an allowed shape; ``what`` describes the shapes.

    ``remedy`` ends the message if an entry is not finite.
    """
    array = scalar_array(name, value)
    if array.dtype.kind == "c":
        raise TypeError(
            f"`{name}` must be real, got dtype {array.dtype}: pass its .real, .imag or numpy.abs"
        )
    if shapes is not None and array.shape not in shapes:
        raise ValueError(f"`{name}` must {what}, got shape {array.shape}")
    return finite(f"`{name}`", array, remedy)


def finite(what: str, array: np.ndarray, remedy: str = "") -> np.ndarray:
    """Check that all entries of an array are finite, and return it."""
    return _all(f"{what} must be finite", np.isfinite(array), array, remedy)


def _all(what: str, holds: np.ndarray, array: np.ndarray, remedy: str = "") -> np.ndarray:
    """Return an array, or raise an error that names the first entry violating a condition."""
    if not np.all(holds):
        where = tuple(np.argwhere(~holds)[0].tolist())
        at = f" at index {where[0] if len(where) == 1 else where}" if where else ""
        raise ValueError(f"{what}, got {array[where]}{at}{remedy}")
    return array


def scalar_type(name: str, value: npt.DTypeLike) -> np.dtype:
    """Check that a dtype is one of the four scalar types; return it in native byte order."""
    try:
        dtype = np.dtype(value).newbyteorder("=")
    except (TypeError, ValueError, SyntaxError):
        dtype = np.dtype(object)
    if dtype.type not in SCALARS:
        raise TypeError(
            f"`{name}` must be float32, float64, complex64 or complex128, got {value!r}"
        )
    return dtype


def csr_matrix(name: str, matrix: Any) -> scipy.sparse.csr_array:
    """Return a CSR copy of a sparse matrix, whose index arrays may have been replaced."""
    try:
        if matrix.format in ("csr", "csc", "bsr"):
            matrix = matrix.copy()
            matrix.check_format()
        elif matrix.format == "lil" and [*map(len, matrix.rows)] != [*map(len, matrix.data)]:
            raise ValueError("its `rows` and `data` differ in length")
        else:
            matrix = matrix.tocoo()
            # checks indices, as converting to CSR does not
            matrix = scipy.sparse.coo_array((matrix.data, matrix.coords), shape=matrix.shape)
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(f"`{name}` is a damaged sparse matrix: {error}") from None
    return scipy.sparse.csr_array(matrix)


def integer_array(name: str, value: npt.ArrayLike, *, ndim: int = 1, names: str = "") -> np.ndarray:
    """Convert integers or integral floats to int64; errors for strings or objects add ``names``."""
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"`{name}` must be a rectangular array of integers: {error}") from None
    if array.ndim == 0 and ndim == 1:
        raise ValueError(f"`{name}` must be 1-dimensional, got {_no_sequence(array.item(), names)}")
    if array.ndim != ndim:
        raise ValueError(f"`{name}` must be {ndim}-dimensional, got shape {array.shape}")
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            whole = np.isfinite(array) & (array == np.floor(array))
        _all(f"`{name}` must hold whole numbers", whole, array)
        fits = np.abs(array.astype(np.float64)) < 2.0**62
    elif array.dtype.kind == "u" and array.dtype.itemsize == 8:
        fits = array < 2**62
    elif array.dtype == object:
        inside = [not isinstance(v, int) or -(2**62) <= v < 2**62 for v in array.ravel().tolist()]
        fits = np.array(inside, bool).reshape(array.shape)
    else:
        fits = np.array(True)
    _all(f"`{name}` must hold 64-bit integers", fits, array)
    if array.dtype.kind not in "fiu":
        hint = f": {names}" if names and array.dtype.kind in "UO" else ""
        raise TypeError(f"`{name}` must hold integers, got dtype {array.dtype}{hint}")
    return array.astype(np.int64)


def _no_sequence(value: object, names: str) -> str:
    """Return the part of an error message that describes a value which is not a sequence."""
    if isinstance(value, numbers.Number):
        return f"{value!r}: pass [{value!r}]"
    if isinstance(value, str):
        return f"{value!r}: {names or 'pass integers'}"
    if isinstance(value, Mapping):
        return (
            "a dict: pass a list of its keys, or of its values in the order of the sheaf, "
            "[d[v] for v in F.vertex_labels]"
        )
    if isinstance(value, Iterable):
        return f"a {type(value).__name__}: pass list(...) of it"
    return "None" if value is None else type(value).__name__


def items(name: str, value: object, what: str) -> tuple:
    """Return the items of an iterable as a tuple; reject text and sparse matrices."""
    refused = isinstance(value, str | bytes) or scipy.sparse.issparse(value)
    if refused or not isinstance(value, Iterable):
        raise TypeError(f"`{name}` must be a sequence of {what}, got {type(value).__name__}")
    return tuple(value)


def is_scalar(name: str, value: npt.ArrayLike) -> bool:
    """Return whether a value is a scalar; raise an error for a ragged sequence."""
    try:
        return np.ndim(value) == 0
    except ValueError as error:
        raise ValueError(f"`{name}` must be a rectangular array: {error}") from None


def dimensions(name: str, value: npt.ArrayLike, count: int, what: str) -> np.ndarray:
    """Return ``count`` dimensions, repeating an integer; ``what`` names one item in errors."""
    if is_scalar(name, value):
        one = whole_number(name, value[()] if isinstance(value, np.ndarray) else value, at_least=0)
        value = np.full(count, min(one, MAX_DIMENSION + 1), dtype=np.int64)
    dims = integer_array(name, value)
    if len(dims) != count:
        raise ValueError(
            f"`{name}` must have one entry per {what}, {count} in all, got {len(dims)}"
        )
    if (k := first_true(dims < 0)) is not None:
        raise ValueError(f"`{name}` must not be negative, got {dims[k]} at index {k}")
    if dims.sum(dtype=np.float64) > MAX_DIMENSION:
        raise ValueError(
            f"`{name}` must sum to at most {MAX_DIMENSION}, got {dims.sum(dtype=np.float64):.3g}"
        )
    return dims


# ---------------------------------------------------------------- maps and cochains


class HasArray(Protocol):
    """An array, or an object that numpy converts into one by its ``__array__``."""

    def __array__(self) -> np.ndarray[Any, Any]:
        """Return the array."""


Number: TypeAlias = complex | HasArray

CochainLike: TypeAlias = HasArray | Sequence[Number | Sequence[Number]]
"""One or several columns of numbers. Unlike numpy's ``ArrayLike``, the type excludes text."""


def range_limits(dtype: npt.DTypeLike) -> tuple[float, float]:
    """Return the allowed range of a sheaf's largest entry (docs/conventions.md, section 1)."""
    info = np.finfo(dtype)
    return float(np.sqrt(info.tiny)) * 1e4, float(np.sqrt(info.max)) / 1e4


def check_range(
    name: str,
    largest: float,
    dtype: npt.DTypeLike,
    remedy: str = "rescale the maps (L scales with the square of the factor)",
) -> None:
    """Raise an error if the largest entry is nonzero and outside `range_limits`.

    The ``remedy`` ends the message.
    """
    low, high = range_limits(dtype)
    if largest > high or 0 < largest < low:
        raise ValueError(
            f"the largest entry of `{name}` is {largest:.3g}, outside {low:.2g} .. {high:.2g}, "
            f"where squares in {np.dtype(dtype)} are safe: {remedy}"
        )


def check_squares(name: str, largest: float, dtype: npt.DTypeLike) -> None:
    """Raise an error if entries exceed 1000 times `range_limits`, so that squares may overflow."""
    if largest > 1e3 * range_limits(dtype)[1]:
        raise ValueError(
            f"{name} have entries up to {largest:.3g}, whose squares overflow in {np.dtype(dtype)}"
        )


def cochain(
    sheaf: Any, x: CochainLike, name: str = "x", what: str = "", *, right_side: bool = False
) -> np.ndarray:
    """Check a 0-cochain and return it in the scalar type common to it and the maps.

    It may have several columns. ``what`` follows dim_c0 in the error for a wrong shape. A right
    side of L x = b may have larger entries, whose energies overflow. The sheaf may be stored: only
    ``dtype``, ``dim_c0``, ``n_vertices`` and ``largest_entry`` are used.
    """
    array, n = scalar_array(name, x), sheaf.dim_c0
    if array.ndim not in (1, 2) or array.shape[0] != n:
        hint = ""
        if array.ndim in (2, 3) and array.size == n:
            hint = f"; {name}.reshape(-1) stacks the stalks of one cochain"
        elif array.ndim in (2, 3) and n and len(array) == sheaf.n_vertices and array.size % n == 0:
            lifted = f"{name}.reshape({n}, -1)"
            hint = f"; {lifted} converts features of equal stalks, one row per vertex"
        raise ValueError(
            f"`{name}` must have shape (dim_c0,) or (dim_c0, h) with dim_c0 = {n}{what}, got "
            f"shape {array.shape}{hint}"
        )
    array = np.ascontiguousarray(array, dtype=np.result_type(array.dtype, sheaf.dtype))
    bad, size = scan(array.reshape(-1))
    if bad >= 0:
        row = bad // (array.shape[1] if array.ndim == 2 else 1)
        raise ValueError(f"`{name}` must be finite, got {array.reshape(-1)[bad]} in row {row}")
    if right_side:
        if size > np.finfo(array.dtype).max / 1e4:
            raise ValueError(
                f"`{name}` has entries up to {size:.3g}, so its norm may overflow in "
                f"{array.dtype}: rescale `{name}`"
            )
    elif size * max(sheaf.largest_entry, 1.0) > 100 * range_limits(array.dtype)[1]:
        raise ValueError(
            f"`{name}` has entries up to {size:.3g} and the maps up to {sheaf.largest_entry:.3g}, "
            f"so energies would overflow in {array.dtype}: rescale `{name}`"
        )
    return array
