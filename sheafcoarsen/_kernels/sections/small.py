"""Small products and divisions of row-major matrices in flat arrays."""

import numpy as np

from sheafcoarsen._kernels.dense import potrf
from sheafcoarsen._kernels.jit import inlined, kernel

STACKED_ROWS = 64
"""Least number of rows between two factorizations of a QR that takes rows in one by one."""


@inlined
def stack_height(k):
    """Return after how many rows of k entries a stack is factored.

    By k alone: the largest of a range would make results depend on the number of threads.
    """
    return k + max(k, STACKED_ROWS)


@kernel
def put_times(a, at, rows, b, columns, out, to):
    """out[to ...] = A times the first columns of the matrix b, A row-major with so many rows."""
    inner = b.shape[0]
    for row in range(rows):
        for j in range(columns):
            x = out.dtype.type(0)
            for i in range(inner):
                x += a[at + row * inner + i] * b[i, j]
            out[to + row * columns + j] = x


@kernel
def factor_gram(z, n, k, factor, lapack):
    """Fill ``factor`` with the lower Cholesky factor of Z* Z, k x k; return LAPACK's info."""
    for i in range(k * k):
        factor[i] = 0
    for row in range(n):
        for i in range(k):
            x = np.conj(z[row * k + i])
            if x != 0:
                for j in range(i + 1):
                    factor[i * k + j] += x * z[row * k + j]
    return potrf(factor, k, lapack)


@kernel
def divide_by_adjoint(z, n, k, lower):
    """Z <- Z G^{-*} for a lower triangular G with a real diagonal."""
    for row in range(n):
        x = row * k
        for j in range(k):
            y = z[x + j]
            for i in range(j):
                y -= z[x + i] * np.conj(lower[j * k + i])
            z[x + j] = y / lower[j * k + j].real


@kernel
def divide_by_upper(z, n, k, upper):
    """Z <- Z G^{-1} for an upper triangular G."""
    for row in range(n):
        x = row * k
        for j in range(k):
            y = z[x + j]
            for i in range(j):
                y -= z[x + i] * upper[i * k + j]
            z[x + j] = y / upper[j * k + j]
