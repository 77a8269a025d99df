"""Casts and checks input once, with messages that say what was expected, what came and what to do."""

import numbers
import os

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels.arrays import scan

MAX_DIMENSION = 2**53
"""Largest dimension of C^0 or C^1: far beyond any memory, and sums of dimensions stay exact."""


MAX_VERTICES = 2**31 - 1
"""Most vertices: kernels label them in 32 bits."""


MAX_ENTRIES = 2**40
"""Most map entries that one call may ask for: 8 TiB in double precision."""


SCALARS = (np.float32, np.float64, np.complex64, np.complex128)


def scalar_array(name: str, value) -> np.ndarray:
    """Cast to an array of one of the four scalar types; integers become float64, anything else is a TypeError."""
    if scipy.sparse.issparse(value):
        raise TypeError(f"`{name}` must be a dense array, got a sparse one: use .toarray()")
    try:
        array = np.asarray(value)
    except ValueError as error:  # a ragged nested list
        raise ValueError(f"`{name}` must be a rectangular array of numbers: {error}") from None
    if array.dtype.type in SCALARS and array.dtype.isnative:
        return array
    if array.dtype.kind in "fc" and array.dtype.newbyteorder("=").type in SCALARS:
        return array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "iu":
        return array.astype(np.float64)
    raise TypeError(
        f"`{name}` must hold float32, float64, complex64, complex128 or integers, got dtype {array.dtype}"
    )


def scalar_type(name: str, value) -> np.dtype:
    """Return one of the four scalar types, in native byte order."""
    try:
        dtype = np.dtype(value).newbyteorder("=")
    except (TypeError, ValueError, SyntaxError):
        dtype = np.dtype(object)
    if dtype.type not in SCALARS:
        raise TypeError(
            f"`{name}` must be float32, float64, complex64 or complex128, got {value!r}"
        )
    return dtype


def integer_array(name: str, value, *, ndim: int = 1, names: bool = False) -> np.ndarray:
    """Cast to int64; whole floats are accepted, other numbers name the first offender.

    ``names`` says that text may be meant as names, so that the message tells how to number them.
    """
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ValueError(f"`{name}` must be a rectangular array of integers: {error}") from None
    if array.size == 0 and array.dtype.kind in "fiu":
        array = array.astype(np.int64)
    if array.ndim != ndim:
        raise ValueError(f"`{name}` must be {ndim}-dimensional, got shape {array.shape}")
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            bad = np.flatnonzero(
                ~np.isfinite(array.ravel()) | (array.ravel() != np.floor(array.ravel()))
            )
        if bad.size:
            where = np.unravel_index(bad[0], array.shape)
            raise ValueError(
                f"`{name}` must hold whole numbers, got {array[where]} at {_place(where)}"
            )
        bad = np.flatnonzero(np.abs(array.ravel().astype(np.float64)) >= 2.0**62)
        if bad.size:
            where = np.unravel_index(bad[0], array.shape)
            raise ValueError(
                f"`{name}` must hold 64-bit integers, got {array[where]} at {_place(where)}"
            )
    elif array.dtype.kind == "u" and array.dtype.itemsize == 8:
        bad = np.flatnonzero(array.ravel() >= 2**62)
        if bad.size:
            where = np.unravel_index(bad[0], array.shape)
            raise ValueError(
                f"`{name}` must hold 64-bit integers, got {array[where]} at {_place(where)}"
            )
    elif array.dtype.kind not in "iu":
        for i, item in enumerate(array.ravel().tolist() if array.dtype == object else []):
            if isinstance(item, int) and not -(2**62) <= item < 2**62:
                place = _place(np.unravel_index(i, array.shape))
                raise ValueError(f"`{name}` must hold 64-bit integers, got {item} at {place}")
        hint = (
            f": numpy.unique({name}, return_inverse=True)[1] numbers names"
            if names and array.dtype.kind == "U"
            else ""
        )
        raise TypeError(f"`{name}` must hold integers, got dtype {array.dtype}{hint}")
    return array.astype(np.int64)


def _place(where) -> str:
    return "index " + (str(int(where[0])) if len(where) == 1 else str(tuple(int(i) for i in where)))


def whole_number(name: str, value, *, at_least: int | None = None) -> int:
    """Return an int, refusing floats, bools and numbers that are too small."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"`{name}` must be an integer, got {value!r}")
    if at_least is not None and value < at_least:
        raise ValueError(f"`{name}` must be at least {at_least}, got {int(value)}")
    return int(value)


def real_number(name: str, value) -> float:
    """Return a float, refusing bools, complex numbers, text and integers beyond the range of doubles."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a real number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"`{name}` must fit into double precision, got a number beyond it"
        ) from None


def flag(name: str, value) -> bool:
    """Return True or False; other values that count as true, like "no", are refused."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {value!r}")
    return bool(value)


def random_generator(name: str, seed) -> np.random.Generator:
    """Return a numpy generator from None, an integer or a generator."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    if isinstance(seed, bool | np.bool_) or not isinstance(seed, numbers.Integral):
        raise TypeError(
            f"`{name}` must be None, an integer of at least 0 or a numpy Generator, got {seed!r}"
        )
    return np.random.default_rng(whole_number(name, seed, at_least=0))


def vertex_count(name: str, count: int) -> None:
    """Refuse more vertices than kernels can number."""
    if count > MAX_VERTICES:
        raise ValueError(
            f"`{name}` asks for {count} vertices, but there may be at most {MAX_VERTICES}"
        )


def entry_count(name: str, entries: float) -> None:
    """Refuse more map entries than memory holds before they are allocated."""
    if entries > MAX_ENTRIES:
        raise ValueError(
            f"`{name}` asks for {float(entries):.3g} map entries, more than memory holds"
        )


def file_path(value) -> str:
    """Return a path as text; an integer would name an open file of the process."""
    if isinstance(value, bytes) or not isinstance(value, str | os.PathLike):
        raise TypeError(f"`path` must be a path, got {type(value).__name__}")
    path = os.fsdecode(value)
    if not path:
        raise ValueError("`path` must name a file, got an empty path")
    if "\0" in path:
        raise ValueError(f"`path` must not hold a null character, got {path!r}")
    return path


def is_scalar(name: str, value) -> bool:
    """Tell a single value from a sequence, also a ragged one."""
    try:
        return np.ndim(value) == 0
    except ValueError as error:
        raise ValueError(f"`{name}` must be a rectangular array: {error}") from None


def dimensions(name: str, value, count: int, what: str) -> np.ndarray:
    """Return int64 stalk dimensions, one for each of ``count`` vertices or edges; a single integer serves for all."""
    if is_scalar(name, value):
        one = whole_number(name, value[()] if isinstance(value, np.ndarray) else value, at_least=0)
        value = np.full(count, min(one, MAX_DIMENSION + 1), dtype=np.int64)
    dims = integer_array(name, value)
    if len(dims) != count:
        raise ValueError(
            f"`{name}` must have one entry per {what}, {count} in all, got {len(dims)}"
        )
    negative = np.flatnonzero(dims < 0)
    if negative.size:
        raise ValueError(
            f"`{name}` must not be negative, got {dims[negative[0]]} at index {negative[0]}"
        )
    if dims.sum(dtype=np.float64) > MAX_DIMENSION:
        raise ValueError(
            f"`{name}` must sum to at most {MAX_DIMENSION}, got {dims.sum(dtype=np.float64):.3g}"
        )
    return dims


def choice(name: str, value, choices) -> str:
    """Return ``value`` when it is one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(c) for c in choices)
        raise ValueError(f"`{name}` must be one of {listed}, got {value!r}")
    return value


def range_limits(dtype) -> tuple[float, float]:
    """Return the smallest and largest allowed size of a sheaf's largest entry: L squares the maps (docs/conventions.md, section 1)."""
    info = np.finfo(dtype)
    return float(np.sqrt(info.tiny)) * 1e4, float(np.sqrt(info.max)) / 1e4


def check_range(name: str, largest: float, dtype) -> None:
    """Refuse maps whose squares would over- or underflow."""
    low, high = range_limits(dtype)
    if largest > high or 0 < largest < low:
        raise ValueError(
            f"the largest entry of `{name}` is {largest:.3g}, outside {low:.2g} .. {high:.2g}, where squares of "
            f"{np.dtype(dtype)} are safe: rescale the maps (L scales with the square)"
        )


def cochain(sheaf, x, name: str = "x", what: str = "") -> np.ndarray:
    """Return a 0-cochain as a C-ordered array of shape (dim_c0,) or (dim_c0, h), finite, in the common scalar type."""
    array = scalar_array(name, x)
    if array.ndim not in (1, 2) or array.shape[0] != sheaf.dim_c0:
        hint = ""
        if array.ndim == 2 and array.size == sheaf.dim_c0:
            hint = f"; {name}.reshape(-1) stacks the stalks of one cochain"
        elif (
            array.ndim == 2
            and sheaf.dim_c0
            and array.shape[0] == sheaf.n_vertices
            and array.size % sheaf.dim_c0 == 0
        ):
            hint = f"; {name}.reshape({sheaf.dim_c0}, -1) lifts features of equal stalks, one row per vertex"
        raise ValueError(
            f"`{name}` must have shape (dim_c0,) or (dim_c0, h) with dim_c0 = {sheaf.dim_c0}{what}, got shape "
            f"{array.shape}{hint}"
        )
    array = np.ascontiguousarray(array, dtype=np.result_type(array.dtype, sheaf.dtype))
    bad, size = scan(array.reshape(-1))
    limit = 100 * range_limits(array.dtype)[1]
    if size * max(sheaf.largest_entry, 1.0) > limit and bad < 0:
        raise ValueError(
            f"`{name}` has entries up to {size:.3g}: with maps up to {sheaf.largest_entry:.3g} energies of {array.dtype} would "
            f"overflow: rescale `{name}`"
        )
    if bad >= 0:
        row = bad // (array.shape[1] if array.ndim == 2 else 1)
        raise ValueError(f"`{name}` must be finite, got {array.reshape(-1)[bad]} in row {row}")
    return array


def check_matplotlib() -> None:
    """Say what to install where matplotlib is missing."""
    try:
        import matplotlib.axes  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise ImportError('pictures need matplotlib: pip install "sheafcoarsen[plot]"') from None
