"""Matrices by stalks: diagonal blocks, their inverse square roots, products in blocks."""

from typing import Any

import numpy as np
import scipy.sparse

from sheafcoarsen._support import eps_of, zero_level

Matrix = Any
"""A sparse array, csr or bsr."""


def inverse_roots(A: Matrix, dims: np.ndarray, *, power: float = -0.5) -> scipy.sparse.csr_array:
    """Return D^{-1/2}, or another power, of D = the diagonal blocks of A on stalks ``dims``.

    What it leaves out, directions in which D is zero to working accuracy, A leaves out too: it is
    semidefinite.
    """
    A = scipy.sparse.csr_array(A)
    n, starts = len(dims), np.concatenate([[0], np.cumsum(dims)])
    eps = eps_of(A.dtype)
    stalk = np.repeat(np.arange(n), dims)
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    inside = np.flatnonzero(stalk[row] == stalk[A.indices])
    row, column, data = row[inside], A.indices[inside], A.data[inside]
    at = stalk[row]
    rows, columns, entries = [], [], []
    for d in np.unique(dims[dims > 0]).tolist():  # one batch for each dimension
        vertices = np.flatnonzero(dims == d)
        place = np.full(n, -1)
        place[vertices] = np.arange(len(vertices))
        mine = np.flatnonzero(place[at] >= 0)
        blocks = np.zeros((len(vertices), d, d), A.dtype)
        of = at[mine]
        blocks[place[of], row[mine] - starts[of], column[mine] - starts[of]] = data[mine]
        values, vectors = np.linalg.eigh(blocks)
        seen = values > zero_level(d, eps, values[:, -1:])
        roots = np.where(seen, np.where(seen, values, 1) ** power, 0)
        inverse = (vectors * roots[:, None, :]) @ vectors.conj().swapaxes(1, 2)
        base, inner = starts[vertices][:, None, None], np.arange(d)
        rows.append(np.broadcast_to(base + inner[:, None], inverse.shape).ravel())
        columns.append(np.broadcast_to(base + inner, inverse.shape).ravel())
        entries.append(inverse.ravel())
    if not rows:
        return scipy.sparse.csr_array(A.shape, dtype=A.dtype)
    places = (np.concatenate(rows), np.concatenate(columns))
    return scipy.sparse.csr_array((np.concatenate(entries), places), shape=A.shape)


def block_size(dims: np.ndarray) -> int | None:
    """Return the one dimension of all stalks, None where they differ."""
    return int(dims[0]) if len(dims) and dims.min() == dims.max() and dims[0] > 0 else None


def in_blocks(A: Matrix, row_dims: np.ndarray, column_dims: np.ndarray) -> Matrix:
    """Return a matrix as bsr where its stalks allow it, which multiplies faster; else as csr."""
    rows, columns = block_size(row_dims), block_size(column_dims)
    if rows is None or columns is None or rows * columns == 1:
        return scipy.sparse.csr_array(A)
    return scipy.sparse.csr_array(A).tobsr((rows, columns))


def adjoint(A: Matrix) -> Matrix:
    """Return A*, in the format of A."""
    B = A.conj().T
    if A.format == "bsr":
        return B.tobsr(A.blocksize[::-1])
    return scipy.sparse.csr_array(B)


def largest_eigenvalue(A: Matrix, steps: int = 8) -> float:
    """Return an estimate, rather from above, of the largest eigenvalue of a semidefinite matrix."""
    x = np.random.default_rng(0).standard_normal(A.shape[0]).astype(A.dtype)
    size = 1.0
    for _ in range(steps):
        x = A @ x
        size = float(np.linalg.norm(x))
        if size == 0:
            return 0.0
        x /= size
    return 1.05 * size
