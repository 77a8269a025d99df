"""Checks of single values; errors say what was expected, what was passed and what to do."""

import contextlib
import functools
import importlib
import math
import numbers
import os
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

MAX_DIMENSION = 2**53
"""Maximum dimension of C^0 or C^1. Doubles represent integers exactly up to this number."""


MAX_VERTICES = 2**31 - 1
"""Maximum number of vertices. Kernels use signed 32-bit vertex indices."""


MAX_ENTRIES = 2**40
"""Maximum number of map entries in one call: 8 TiB in double precision."""


def whole_number(name: str, value: object, *, at_least: int | None = None) -> int:
    """Check that a value is an integer and at least ``at_least``, and return it as an int."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"`{name}` must be an integer, got {value!r}")
    if at_least is not None and value < at_least:
        raise ValueError(f"`{name}` must be at least {at_least}, got {int(value)}")
    return int(value)


def item_index(kind: str, i: object, count: int) -> int:
    """Check the index of one of ``count`` items and return it; negative ones count from the end."""
    if isinstance(i, bool) or not isinstance(i, int | np.integer):
        raise TypeError(f"the index of a {kind} must be an integer, got {i!r}")
    if not -count <= i < count:
        raise IndexError(f"{kind} {i} is out of range for {count} {kind}s")
    return int(i) % count


def real_number(name: str, value: object) -> float:
    """Return a real number, inf or NaN as a float; raise an error beyond the range of doubles."""
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
    """Return the numpy generator of a seed, which is None, an integer or a generator."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    if isinstance(seed, bool | np.bool_) or not isinstance(seed, numbers.Integral):
        raise TypeError(
            f"`{name}` must be None, a non-negative integer or a numpy Generator, got {seed!r}"
        )
    return np.random.default_rng(whole_number(name, seed, at_least=0))


def vertex_count(name: str, count: int) -> None:
    """Raise an error for more vertices than kernels can index or memory can hold."""
    if count > MAX_VERTICES:
        wanted = str(count) if count < 10**40 else _amount(count)
        raise ValueError(
            f"`{name}` requires {wanted} vertices, but there may be at most {MAX_VERTICES}"
        )
    size = 16 * count  # 8 bytes each for the dimension and the offset of a vertex
    if size > physical_memory():
        raise ValueError(
            f"`{name}` requires {count} vertices, at least {_gigabytes(size)}, which exceeds this "
            f"machine's memory"
        )


@contextlib.contextmanager
def memory_for_entries(name: str, entries: float, itemsize: int = 8) -> Iterator[None]:
    """Raise a ValueError if map entries exceed memory, or if the ``with`` block runs out of it."""
    size = _gigabytes(entries * itemsize)
    message = f"`{name}` requires {_amount(entries)} map entries ({size}), more than fits in memory"
    if entries > MAX_ENTRIES or entries * itemsize > physical_memory():
        raise ValueError(message)
    try:
        yield
    except MemoryError:
        raise ValueError(message) from None


def _amount(number: float) -> str:
    """Format a number with three digits; from 1e300 on, as a power of ten."""
    return f"{float(number):.3g}" if number < 1e300 else f"1e+{int(math.log10(number))}"


def _gigabytes(size: float) -> str:
    return f"{_amount(size / 1e9 if size < 1e300 else int(size) // 10**9)} GB"


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
        importlib.import_module(package)
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
