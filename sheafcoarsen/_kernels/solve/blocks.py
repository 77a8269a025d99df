"""Blocks by stalks: scaling, products, Cholesky factors, and products of them along a tree."""

import math

import numpy as np

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._kernels.jit import kernel


@kernel
def scale_blocks(indptr, indices, left, data, right, out):
    """Block k in row i and column j becomes left[i]* data[k] right[j]; shapes (n, p, q).

    An empty ``left`` or ``right`` is the identity.
    """
    p, q = data.shape[1], data.shape[2]
    rows, columns = out.shape[1], out.shape[2]
    scaled = np.empty((rows, q), out.dtype)
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            for a in range(rows):
                for b in range(q):
                    if left.shape[0] == 0:
                        scaled[a, b] = data[k, a, b]
                        continue
                    total = left[i, 0, a] * 0
                    for c in range(p):
                        total += np.conj(left[i, c, a]) * data[k, c, b]
                    scaled[a, b] = total
            for a in range(rows):
                for b in range(columns):
                    if right.shape[0] == 0:
                        out[k, a, b] = scaled[a, b]
                        continue
                    total = scaled[a, 0] * 0
                    for c in range(q):
                        total += scaled[a, c] * right[j, c, b]
                    out[k, a, b] = total


@kernel
def count_products(lo, hi, left, right, marks, counts):
    """Count the blocks in the block rows lo .. hi of A B; indptr and indices of A and of B.

    ``marks``, one for each block column of B, are below lo at first.
    """
    indptr, indices = left
    starts, columns = right
    for i in range(lo, hi):
        count = 0
        for k in range(indptr[i], indptr[i + 1]):
            j = np.uint64(indices[np.uint64(k)])  # unsigned: not counted from the end
            for m in range(starts[j], starts[j + np.uint64(1)]):
                column = np.uint64(columns[np.uint64(m)])
                count += marks[column] != i
                marks[column] = i
        counts[i] = count


@kernel
def multiply_blocks(lo, hi, left, right, shape, places, out):
    """Out = A B in the block rows lo .. hi, in the order in which blocks are met.

    The matrices are indptr, indices and data (n, rows, columns). ``shape`` holds tuples of zeros:
    as many as blocks of A have rows and columns, and those of B columns. ``places``, one for each
    block column of B, are -1 at first.
    """
    indptr, indices, data = left
    starts, columns, entries = right
    begins, found, result = out
    zero = result.dtype.type(0)
    rows, inner, across = len(shape[0]), len(shape[1]), len(shape[2])
    for i in range(lo, hi):
        first = following = begins[i]
        for k in range(indptr[i], indptr[i + 1]):
            x = data[np.uint64(k)]
            j = np.uint64(indices[np.uint64(k)])  # unsigned: not counted from the end
            for m in range(starts[j], starts[j + np.uint64(1)]):
                y, column = entries[np.uint64(m)], np.uint64(columns[np.uint64(m)])
                at = places[column]
                is_new = at < first
                if is_new:
                    at = places[column] = following
                    found[np.uint64(at)] = column
                    following += 1
                total = result[np.uint64(at)]
                for a in range(rows):
                    for c in range(across):
                        entry = zero if is_new else total[a, c]
                        for b in range(inner):
                            entry += x[a, b] * y[b, c]
                        total[a, c] = entry


@kernel
def triangular_roots(blocks, least, roots, inverses, failed):
    """S upper triangular with S* D S = I, and S^{-1}, of every block D (n, d, d).

    Where a pivot is not above ``least`` times the largest diagonal entry of its block, ``failed``
    is set and nothing written. roots and inverses are zeros at first.
    """
    d = blocks.shape[1]
    for k in range(blocks.shape[0]):
        largest = 0.0
        for i in range(d):
            largest = max(largest, float(blocks[k, i, i].real))
        failed[k] = largest == 0
        for j in range(d):  # D = C C*; C* goes to the inverse
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
        for j in range(d):  # back substitution, column by column
            roots[k, j, j] = 1 / inverses[k, j, j]
            for i in range(j - 1, -1, -1):
                total = inverses[k, i, j] * roots[k, j, j]
                for c in range(i + 1, j):
                    total += inverses[k, i, c] * roots[k, c, j]
                roots[k, i, j] = -total / inverses[k, i, i]


@kernel
def carry_frames(order, parents, transports, frames, exponents):
    """frames[v] = transports[v] frames[parents[v]] for each v in ``order``, parents first.

    transports and frames have shape (n, d, d); what has no parent (negative) is left alone. A frame
    is frames[v] 2^exponents[v], so that none over- or underflows on its way.
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
