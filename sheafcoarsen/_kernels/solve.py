"""Kernels of :mod:`sheafcoarsen.solve`: scaling and factors of blocks, frames, and products."""

import math

import numpy as np

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.simd import ONE, add_block, add_multiple, put, read, zero


@kernel
def triangular_roots(blocks, least, roots, inverses, failed):
    """Write the upper triangular S with S* D S = I, and S^{-1}, for every block D, d x d.

    ``failed`` is set if a pivot is at most ``least`` times the largest diagonal entry of D, and S
    is not written. ``roots`` and ``inverses`` are zeros on entry.
    """
    d = blocks.shape[1]
    for k in range(blocks.shape[0]):
        largest = 0.0
        for i in range(d):
            largest = max(largest, float(blocks[k, i, i].real))
        failed[k] = largest == 0
        for j in range(d):  # Cholesky factorization D = C C*; C* is the inverse of S
            pivot = float(blocks[k, j, j].real)
            for c in range(j):
                pivot -= float(abs(inverses[k, c, j])) ** 2
            if not pivot > least * largest:
                failed[k] = True
                break
            pivot = np.sqrt(pivot)
            inverses[k, j, j] = pivot
            for i in range(j + 1, d):
                total = blocks[k, j, i]
                for c in range(j):
                    total -= np.conj(inverses[k, c, j]) * inverses[k, c, i]
                inverses[k, j, i] = total / pivot
        if failed[k]:
            continue
        for j in range(d):  # S by back substitution, column by column
            roots[k, j, j] = 1 / inverses[k, j, j]
            for i in range(j - 1, -1, -1):
                total = inverses[k, i, j] * roots[k, j, j]
                for c in range(i + 1, j):
                    total += inverses[k, i, c] * roots[k, c, j]
                roots[k, i, j] = -total / inverses[k, i, i]


@kernel
def carry_frames(order, parents, transports, frames, exponents):
    """Write transports[v] frames[parents[v]] to frames[v] for each v in ``order``, parents first.

    ``transports`` and ``frames`` have shape (n, d, d); roots have a negative parent and keep their
    frames. A frame is frames[v] 2^exponents[v], so that products neither over- nor underflow.
    """
    d = frames.shape[1]
    for k in range(order.size):
        v = order[k]
        u = parents[v]
        if u < 0:
            continue
        largest = 0.0
        for i in range(d):
            for j in range(d):
                total = frames[v, i, j] * 0
                for m in range(d):
                    total += transports[v, i, m] * frames[u, m, j]
                frames[v, i, j] = total
                largest = max(largest, float(abs(total)))
        scale = power_of_two(largest)
        exponents[v] = exponents[u] + math.frexp(scale)[1] - 1
        for i in range(d):
            for j in range(d):
                frames[v, i, j] /= scale


@kernel
def combine_blocks(lo, hi, matrix, shape, y, by, terms, out):
    """Write (A y) diag(by) plus the sum of x T over three pairs (x, T), in block rows lo .. hi.

    ``matrix`` are indptr, indices and flat blocks of the real A. ``shape`` are three tuples of
    zeros: the lanes, of the type of A and at most as many as there are columns, the rows of a
    block, and its columns. y and ``out`` may have different numbers of columns; each T has the
    shape of ``out``. ``out`` may be one of T if the lanes divide the number of columns, but ``out``
    must not be y.
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
