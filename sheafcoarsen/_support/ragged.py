"""Ragged data as one flat array and offsets: block k is ``data[offsets[k]:offsets[k+1]]``."""

import numpy as np

from sheafcoarsen._kernels.arrays import concatenate_ranges


def offsets(lengths) -> np.ndarray:
    """Return the int64 offsets (length n + 1) of blocks of the given lengths."""
    out = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=out[1:])
    return out


def ranges(starts, lengths) -> np.ndarray:
    """Concatenate ``arange(start, start + length)`` over all blocks."""
    starts, lengths = np.asarray(starts, dtype=np.int64), np.asarray(lengths, dtype=np.int64)
    out = np.empty(int(lengths.sum()), np.int64)
    concatenate_ranges(starts, lengths, out)
    return out


def read_only(array: np.ndarray) -> np.ndarray:
    """Freeze an array that belongs to us and return it."""
    array.setflags(write=False)
    return array
