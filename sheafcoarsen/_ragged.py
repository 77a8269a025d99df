"""Ragged data as one flat array and offsets: block k is ``data[offsets[k]:offsets[k+1]]``."""

import numpy as np


def offsets(lengths) -> np.ndarray:
    """Return the int64 offsets (length n + 1) of blocks of the given lengths."""
    out = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def ranges(starts, lengths) -> np.ndarray:
    """Concatenate ``arange(start, start + length)`` over all blocks."""
    lengths = np.asarray(lengths, dtype=np.int64)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(np.asarray(starts, dtype=np.int64) - (ends - lengths), lengths)


def read_only(array: np.ndarray) -> np.ndarray:
    """Freeze an array that belongs to us and return it."""
    array.setflags(write=False)
    return array
