"""Products of a matrix in blocks with several columns, and what is added to them, in one pass."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.simd import ONE, add_block, add_multiple, put, read, zero


class Blocks(NamedTuple):
    """Of a matrix, real, row by row."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray  # flat, block after block


@kernel
def combine_blocks(lo, hi, matrix, shape, y, by, terms, out):
    """Out = (A y) diag(by) + the sum of x T over three pairs (x, T), in the block rows lo .. hi.

    ``shape`` holds tuples of zeros: as many as columns are worked on at a time, of the type of A,
    at most as many as there are; as a block has rows; and columns. y and out may have columns that
    the other has not; T are of the shape of out. Where the lanes divide the number of columns, out
    may be one of T; it is not y.
    """
    indptr, indices, data = matrix
    lanes, rows, columns = shape
    (a, A), (b, B), (c, C) = terms
    h, g = y.shape[1], out.shape[1]
    count, w, p, q = min(h, g), len(lanes), len(rows), len(columns)
    y, out, A, B, C = y.reshape(-1), out.reshape(-1), A.reshape(-1), B.reshape(-1), C.reshape(-1)
    for i in range(lo, hi):
        first, last = np.int64(indptr[i]), np.int64(indptr[i + 1])
        for begin in range(0, count, w):
            lane = min(begin, count - w)
            sums = zero(lanes, rows)
            for k in range(first, last):
                at = np.int64(indices[np.uint64(k)]) * q * h + lane
                sums = add_block(sums, 1.0, data, k * p * q, q, read(lanes, columns, y, at, h))
            sums = add_multiple(zero(lanes, rows), read(lanes, ONE, by, lane, h)[0], sums)
            at = i * p * g + lane
            if a != 0:
                sums = add_multiple(sums, a, read(lanes, rows, A, at, g))
            if b != 0:
                sums = add_multiple(sums, b, read(lanes, rows, B, at, g))
            if c != 0:
                sums = add_multiple(sums, c, read(lanes, rows, C, at, g))
            put(out, at, g, sums)
