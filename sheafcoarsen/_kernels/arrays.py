"""The arrays of a sheaf as a NamedTuple, a scan for non-finite entries, and copies of blocks."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel, kernel


class SheafArrays(NamedTuple):
    """The arrays of a sheaf, with shapes as in ``CellularSheaf``."""

    edges: np.ndarray
    vertex_dims: np.ndarray
    vertex_offsets: np.ndarray
    edge_dims: np.ndarray
    edge_offsets: np.ndarray
    tail_data: np.ndarray
    tail_offsets: np.ndarray
    head_data: np.ndarray
    head_offsets: np.ndarray


@borrowing_kernel
def scan(data):
    """Return the index of the first entry of non-finite modulus, or -1, and the largest modulus.

    The latter is that of the entries before this index, or of all entries if the index is -1.
    """
    largest = 0.0
    for i in range(data.size):
        size = float(abs(data[i]))
        if not np.isfinite(size):
            return i, largest
        if size > largest:
            largest = size
    return -1, largest


@kernel
def copy_blocks(data, starts, lengths, to, out):
    """Copy blocks, given by starts and lengths, to the positions ``to`` of ``out``."""
    for i in range(starts.size):
        begin, at = starts[i], to[i]
        for k in range(lengths[i]):
            out[at + k] = data[begin + k]
