"""Block-sparse matrices on stalks: scaling by inverse square roots of diagonal blocks."""

from typing import Any

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import solve as kernels
from sheafcoarsen._support import eps_of, zero_level

Matrix = Any
"""A sparse array, csr or bsr."""


def block_roots(blocks: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return D^{-1/2} and D^{1/2} of each Hermitian block D, shape (n, d, d).

    Eigenvectors of D with eigenvalues that are zero to working accuracy or at most ``least`` are
    mapped to 0.
    """
    values, vectors = np.linalg.eigh(blocks)
    level = zero_level(blocks.shape[1], eps_of(blocks.dtype), values[:, -1:])
    seen = values > np.maximum(level, least)
    roots = np.where(seen, values, 1) ** 0.5
    adjoints = vectors.conj().swapaxes(1, 2)
    inverse, root = (np.where(seen, power, 0)[:, None, :] for power in (1 / roots, roots))
    return (vectors * inverse) @ adjoints, (vectors * root) @ adjoints


def inverse_roots(
    A: Matrix, dims: np.ndarray, least: float = 0.0
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]:
    """Return ``block_roots`` of the diagonal blocks of A, for stalks of dimensions ``dims``."""
    A = scipy.sparse.csr_array(A)
    n, starts = len(dims), np.concatenate([[0], np.cumsum(dims)])
    stalk = np.repeat(np.arange(n), dims)
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    inside = np.flatnonzero(stalk[row] == stalk[A.indices])
    row, column, data = row[inside], A.indices[inside], A.data[inside]
    at = stalk[row]
    none = np.zeros(0, np.int64)
    rows, columns, entries = [none], [none], [np.zeros((2, 0), A.dtype)]
    for d in np.unique(dims[dims > 0]).tolist():  # one batch for each dimension
        vertices = np.flatnonzero(dims == d)
        place = np.full(n, -1)
        place[vertices] = np.arange(len(vertices))
        mine = np.flatnonzero(place[at] >= 0)
        blocks = np.zeros((len(vertices), d, d), A.dtype)
        of = at[mine]
        blocks[place[of], row[mine] - starts[of], column[mine] - starts[of]] = data[mine]
        base, inner = starts[vertices][:, None, None], np.arange(d)
        rows.append(np.broadcast_to(base + inner[:, None], blocks.shape).ravel())
        columns.append(np.broadcast_to(base + inner, blocks.shape).ravel())
        entries.append(np.reshape(block_roots(blocks, least), (2, -1)))
    places = np.concatenate(rows), np.concatenate(columns)
    inverse, root = np.concatenate(entries, axis=1)
    return (
        scipy.sparse.csr_array((inverse, places), shape=A.shape),
        scipy.sparse.csr_array((root, places), shape=A.shape),
    )


def block_size(dims: np.ndarray) -> int | None:
    """Return the common dimension of all stalks, or None if dimensions differ."""
    return int(dims[0]) if len(dims) and dims.min() == dims.max() and dims[0] > 0 else None


def in_blocks(A: Matrix, row_dims: np.ndarray, column_dims: np.ndarray) -> Matrix:
    """Return a matrix as bsr if all stalks have the same dimension, else as csr."""
    rows, columns = block_size(row_dims), block_size(column_dims)
    if rows is None or columns is None or rows * columns == 1:
        return scipy.sparse.csr_array(A)
    if A.format == "bsr" and A.blocksize == (rows, columns):
        return A
    return scipy.sparse.csr_array(A).tobsr((rows, columns))


def unit_blocks(A: Matrix, dims: np.ndarray) -> tuple[Matrix, Matrix]:
    """Return a matrix as by ``in_blocks``, and its S of ``unit_roots``."""
    blocks = in_blocks(A, dims, dims)
    return blocks, unit_roots(blocks, dims)[0]


def unit_roots(A: Matrix, dims: np.ndarray, least: float = 0.0) -> tuple[Matrix, Matrix]:
    """Return a block diagonal S such that S* A S has unit diagonal blocks, and T = S^{-1}.

    If a diagonal block D has eigenvalues that are zero to working accuracy or at most ``least``,
    S* D S and T S are the projection onto the other eigenvectors. S is triangular if stalks have
    the same dimension and D is well conditioned, else D^{-1/2}.
    """
    d = block_size(dims)
    if d is None:
        return inverse_roots(A, dims, least)
    indptr, indices, data = blocks_of(A)
    n = len(dims)
    blocks = np.zeros((n, d, d), data.dtype)
    inside = np.flatnonzero(np.repeat(np.arange(n), np.diff(indptr)) == indices)
    blocks[indices[inside]] = data[inside]
    roots, inverses, failed = np.zeros_like(blocks), np.zeros_like(blocks), np.zeros(n, bool)
    # Ratio of a pivot to its block's largest entry below which eigenvalues determine the rank
    nearly_singular = 1e-10
    kernels.triangular_roots(blocks, nearly_singular, roots, inverses, failed)
    pivots = np.diagonal(inverses, axis1=1, axis2=2).real ** 2
    failed |= pivots.min(axis=1) <= least / nearly_singular
    roots[failed], inverses[failed] = block_roots(blocks[failed], least)
    places = np.arange(n, dtype=indices.dtype), np.arange(n + 1, dtype=indices.dtype)
    return tuple(from_blocks(out, *places, A.shape) for out in (roots, inverses))


def scaled(left: Matrix | None, A: Matrix, right: Matrix | None) -> Matrix:
    """Return left* A right for block diagonal matrices; None means the identity.

    All are in the format of ``in_blocks``.
    """
    if A.format == "csr" and any(S is not None and S.nnz != S.shape[0] for S in (left, right)):
        A = A if left is None else left.conj().T @ A
        return scipy.sparse.csr_array(A if right is None else A @ right)
    indptr, indices, data = blocks_of(A)
    none = np.zeros((0, 0, 0), data.dtype)
    before, after = (none if S is None else blocks_of(S)[2] for S in (left, right))
    rows = data.shape[1] if left is None else before.shape[2]
    columns = data.shape[2] if right is None else after.shape[2]
    out = np.empty((len(data), rows, columns), data.dtype)
    kernels.scale_blocks(indptr, indices, before, data, after, out)
    shape = (len(indptr) - 1) * rows, A.shape[1] // data.shape[2] * columns
    return from_blocks(out, indices, indptr, shape)


def blocks_of(A: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return indptr, indices and data (n, p, q) of a block-sparse matrix; p = q = 1 for csr."""
    data = A.data if A.format == "bsr" else A.data.reshape(-1, 1, 1)
    return A.indptr, A.indices, data


def from_blocks(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> Matrix:
    """Return the matrix with given blocks, as csr if they are 1 x 1."""
    if data.shape[1] * data.shape[2] == 1:
        return scipy.sparse.csr_array((data.reshape(-1), indices, indptr), shape=shape)
    return scipy.sparse.bsr_array((data, indices, indptr), shape=shape)


def adjoint(A: Matrix) -> Matrix:
    """Return A*, in the format of A."""
    B = A.conj().T
    if A.format == "bsr":
        return B.tobsr(A.blocksize[::-1])
    return scipy.sparse.csr_array(B)


def norms(X: np.ndarray) -> np.ndarray:
    """Return the norms of the columns; their squares must not overflow."""
    total = np.einsum("ij,ij->j", X.real, X.real)
    if np.iscomplexobj(X):
        total = total + np.einsum("ij,ij->j", X.imag, X.imag)
    return np.sqrt(total)


def largest_eigenvalue(A: Matrix) -> float:
    """Return an estimate, usually an upper bound, of the largest eigenvalue of a semidefinite A."""
    x = np.random.default_rng(0).standard_normal(A.shape[0]).astype(A.dtype)
    size = 1.0
    for _ in range(8):
        x = A @ x
        size = float(np.linalg.norm(x))
        if size == 0:
            return 0.0
        x /= size
    return 1.05 * size
