"""Ragged data as one flat array and offsets: block k is ``data[offsets[k]:offsets[k+1]]``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse


def offsets(lengths: npt.ArrayLike) -> np.ndarray:
    """Return the n + 1 int64 offsets of n blocks with the given lengths."""
    lengths = np.asarray(lengths)
    out = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def ranges(
    starts: npt.ArrayLike, lengths: npt.ArrayLike, dtype: npt.DTypeLike = np.int64
) -> np.ndarray:
    """Concatenate ``arange(start, start + length)`` over all blocks."""
    starts, lengths = np.asarray(starts, dtype), np.asarray(lengths, dtype)
    if not lengths.all():
        starts, lengths = starts[lengths > 0], lengths[lengths > 0]
    first = offsets(lengths)
    # steps of 1 inside a block, and from the last index of a block to the start of the next: their
    # sum takes a tenth of the time of numpy.repeat
    steps = np.ones(first[-1], dtype)
    steps[:1] = starts[:1]
    steps[first[1:-1]] = starts[1:] - starts[:-1] - lengths[:-1] + 1
    return np.cumsum(steps, dtype=dtype, out=steps)


def range_of_blocks(starts: np.ndarray, chosen: np.ndarray | list[int]) -> np.ndarray:
    """Return the indices of the entries of chosen blocks, in the given order."""
    first = starts[:-1][chosen]
    return ranges(first, starts[1:][chosen] - first)


def blocks(data: np.ndarray, starts: np.ndarray, chosen: np.ndarray | list[int]) -> np.ndarray:
    """Return the chosen blocks as flat data, in the given order."""
    return data[range_of_blocks(starts, chosen)]


def stacks(data: np.ndarray, shapes: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, for each of ``shapes`` (n, 2), the indices of its blocks and the blocks (k, p, q)."""
    starts = offsets(shapes.prod(axis=1))
    for p, q in np.unique(shapes, axis=0).tolist():
        alike = np.flatnonzero((shapes == (p, q)).all(axis=1))
        yield alike, blocks(data, starts, alike).reshape(len(alike), p, q)


def identities(sizes: np.ndarray) -> np.ndarray:
    """Return identity matrices of the given sizes as flat data."""
    starts = offsets(sizes**2)
    data = np.zeros(int(starts[-1]))
    within = ranges(np.zeros_like(sizes), sizes) * np.repeat(sizes + 1, sizes)
    data[np.repeat(starts[:-1], sizes) + within] = 1
    return data


def index_dtype(largest: int) -> Any:
    """Return scipy's index type for values up to ``largest``: int32 if it fits, else int64."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def block_diagonal(data: np.ndarray, sizes: np.ndarray) -> scipy.sparse.csr_array:
    """Return the matrix of square diagonal blocks of the given sizes, each stored row-major."""
    widths = np.repeat(sizes, sizes)
    itype = index_dtype(len(data))
    columns = ranges(np.repeat(offsets(sizes)[:-1], sizes), widths).astype(itype)
    arrays = data, columns, offsets(widths).astype(itype)
    return scipy.sparse.csr_array(arrays, shape=(len(widths), len(widths)))


def read_only(array: np.ndarray) -> np.ndarray:
    """Make an owned array read-only and return it."""
    array.setflags(write=False)
    return array


class ReadOnly:
    """Base class whose copies and pickles have read-only arrays and no cached properties."""

    def __getstate__(self) -> dict[str, Any]:
        kind = type(self)
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            _lock(value)


def _lock(value: Any) -> None:
    """Make an array read-only, or all arrays in a tuple or a sparse matrix."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, tuple):
        for item in value:
            _lock(item)
    elif scipy.sparse.issparse(value):
        _lock(tuple(value.__dict__.values()))
