"""Checks of single values, with messages of what was expected, what was passed and a remedy."""

import contextlib
import functools
import math
import numbers
import os
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

MAX_DIMENSION = 2**53
"""Largest dimension of C^0 or C^1: far above any memory, and sums of dimensions are exact."""


MAX_VERTICES = 2**31 - 1
"""Largest number of vertices, which kernels label in 32 bits."""


MAX_ENTRIES = 2**40
"""Largest number of map entries of one call: 8 TiB in double precision."""


def whole_number(name: str, value: object, *, at_least: int | None = None) -> int:
    """Return an int; raise an error for floats, bools and numbers that are too small."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"`{name}` must be an integer, got {value!r}")
    if at_least is not None and value < at_least:
        raise ValueError(f"`{name}` must be at least {at_least}, got {int(value)}")
    return int(value)


def real_number(name: str, value: object) -> float:
    """Return a float; raise an error for bools, complex numbers, text and large integers."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"`{name}` must be a real number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"`{name}` must fit into double precision, got a number beyond it"
        ) from None


def fraction(name: str, value: object) -> float:
    """Return a number between 0 and 1, both excluded."""
    number = real_number(name, value)
    if not 0 < number < 1:
        raise ValueError(f"`{name}` must be above 0 and below 1, got {number:g}")
    return number


def flag(name: str, value: object) -> bool:
    """Return True or False; raise an error for other values, such as "no"."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"`{name}` must be True or False, got {value!r}")
    return bool(value)


def choice(name: str, value: object, choices: Iterable[str]) -> str:
    """Return ``value`` if it is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(c) for c in choices)
        several = "one of " * ("," in listed)
        raise ValueError(f"`{name}` must be {several}{listed}, got {value!r}")
    return value


def random_generator(name: str, seed: object) -> np.random.Generator:
    """Return a numpy generator from None, an integer or a generator."""
    if seed is None or isinstance(seed, np.random.Generator):
        return np.random.default_rng(seed)
    if isinstance(seed, bool | np.bool_) or not isinstance(seed, numbers.Integral):
        raise TypeError(
            f"`{name}` must be None, an integer of at least 0 or a numpy Generator, got {seed!r}"
        )
    return np.random.default_rng(whole_number(name, seed, at_least=0))


def vertex_count(name: str, count: int) -> None:
    """Raise an error for more vertices than kernels can number, or memory can hold."""
    if count > MAX_VERTICES:
        wanted = str(count) if count < 10**40 else _amount(count)
        raise ValueError(
            f"`{name}` requires {wanted} vertices, but there may be at most {MAX_VERTICES}"
        )
    size = 16 * count  # bytes of a dimension and an offset for each
    if size > physical_memory():
        raise ValueError(
            f"`{name}` requires {count} vertices, {_gigabytes(size)} and more, which is beyond "
            f"this machine's memory"
        )


@contextlib.contextmanager
def room_for_entries(name: str, entries: float, itemsize: int = 8) -> Iterator[None]:
    """Raise an error for more map entries than memory holds, also if allocation fails inside."""
    size = _gigabytes(entries * itemsize)
    message = f"`{name}` requires {_amount(entries)} map entries, {size}, more than memory holds"
    if entries > MAX_ENTRIES or entries * itemsize > physical_memory():
        raise ValueError(message)
    try:
        yield
    except MemoryError:
        raise ValueError(message) from None


def _amount(number: float) -> str:
    """Format a number with three digits; integers may exceed the range of doubles."""
    return f"{float(number):.3g}" if number < 1e300 else f"1e+{int(math.log10(number))}"


def _gigabytes(size: float) -> str:
    return f"{_amount(size / 1e9 if size < 1e300 else int(size) // 10**9)} GB"


@functools.cache
def physical_memory() -> float:
    """Return the bytes of memory of this machine, or infinity if unknown."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * float(os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def file_path(value: object) -> str:
    """Return a path as text; an integer would refer to an open file of the process."""
    if isinstance(value, bytes) or not isinstance(value, str | os.PathLike):
        raise TypeError(f"`path` must be a path, got {type(value).__name__}")
    path = os.fsdecode(value)
    if not path:
        raise ValueError("`path` must name a file, got an empty path")
    if "\0" in path:
        raise ValueError(f"`path` must not hold a null character, got {path!r}")
    return path


def check_matplotlib() -> None:
    """Raise an error with the install command if matplotlib is missing."""
    try:
        import matplotlib.axes  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise ImportError('plots need matplotlib: pip install "sheafcoarsen[plot]"') from None


Seed: TypeAlias = int | np.random.Generator | None
"""Argument of ``numpy.random.default_rng``; None is not reproducible."""

PathLike: TypeAlias = str | os.PathLike[str]
"""Path of a file."""
