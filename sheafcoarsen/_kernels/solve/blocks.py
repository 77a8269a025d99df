"""Blocks of a sparse matrix by stalks: their scaling, and Cholesky factors of the diagonal ones."""

import numpy as np

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
