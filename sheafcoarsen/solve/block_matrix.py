"""Block-sparse matrices on stalks: scaling to identity diagonal blocks; block products."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._kernels import solve as kernels
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen._support import linalg, ragged, threads

Matrix = Any
"""A sparse array, csr or bsr."""

LANES = (8, 4, 1)
"""Numbers of columns that the kernels can multiply at once."""

SERIAL_BELOW = 1e6
"""Number of multiplications below which a single thread is used."""

COMPILED_ABOVE = 5000
"""Number of entries above which a kernel, compiled for the shape of the blocks, replaces scipy.

Calling a kernel takes longer than a product of a smaller matrix, and a compilation takes .4 s.
"""


class BlockMatrix:
    """Block-sparse matrix that multiplies C-ordered columns and adds other terms in one pass.

    A complex matrix is stored as a real matrix with a 2 x 2 block for each entry.
    """

    def __init__(self, A: Matrix, dtype: npt.DTypeLike = np.float64):
        indptr, indices, data = blocks_of(A)
        doubled = 1 + (data.dtype.kind == "c")
        # kernels are compiled for each shape of blocks, which takes long if these are large
        if data[:1].size * doubled**2 > 64:
            indptr, indices, data = blocks_of(scipy.sparse.csr_array(A))
        self.shape = (A.shape[0] * doubled, A.shape[1] * doubled)
        if doubled == 2:
            data = real_form(data)
        self._block = data.shape[1:]
        flat = np.ascontiguousarray(data, dtype).reshape(-1)
        self._arrays = indptr, indices, flat

    def combine(
        self,
        Y: np.ndarray,
        out: np.ndarray,
        by: npt.ArrayLike = 1.0,
        plus: tuple[tuple[float, np.ndarray], ...] = (),
    ) -> np.ndarray:
        """Set out = A Y diag(by) + sum of x T over at most three pairs (x, T) in ``plus``.

        Y and ``out`` are in C order, float32 or float64; columns that only one of them has are
        ignored. One T may be ``out`` itself if the number of columns is 1 or a multiple of 8.
        """
        (indptr, indices, data), (p, q) = self._arrays, self._block
        h = min(Y.shape[1], out.shape[1])
        if h == 0:
            return out
        dtype = data.dtype
        if JIT_IS_OFF or data.size <= COMPILED_ABOVE:
            A = scipy.sparse.bsr_array((data.reshape(-1, p, q), indices, indptr), self.shape)
            out[:, :h] = A @ Y[:, :h].astype(dtype) * by + sum(x * T[:, :h] for x, T in plus)
            return out
        lanes = next(count for count in LANES if count <= h)
        shape = (dtype.type(0),) * lanes, (0,) * p, (0,) * q
        factors = np.empty(h, dtype)
        factors[:] = by
        terms = tuple((float(x), T) for x, T in (*plus, *((0.0, out),) * (3 - len(plus))))
        threads.run_ranges(
            lambda lo, hi: kernels.combine_blocks(
                lo, hi, self._arrays, shape, Y, factors, terms, out
            ),
            indptr,
            cumulative=True,
            serial_below=SERIAL_BELOW / (p * q * h),
        )
        return out

    def __matmul__(self, X: np.ndarray) -> np.ndarray:
        Y = np.ascontiguousarray(X) if X.dtype.kind != "c" else real_columns(X)
        out = self.combine(Y, np.empty((self.shape[0], Y.shape[1]), Y.dtype))
        return out if X.dtype.kind != "c" else complex_columns(out)


def real_form(blocks: np.ndarray) -> np.ndarray:
    """Return complex blocks (..., p, q) as real blocks (..., 2 p, 2 q) that act on real columns."""
    *before, p, q = blocks.shape
    out = np.empty((*before, 2 * p, 2 * q), blocks.real.dtype)
    out[..., ::2, ::2] = out[..., 1::2, 1::2] = blocks.real
    out[..., 1::2, ::2] = blocks.imag
    out[..., ::2, 1::2] = -blocks.imag
    return out


def real_columns(X: np.ndarray) -> np.ndarray:
    """Return complex columns (n, h) as real columns (2 n, h), alternating Re and Im."""
    out = np.empty((2 * len(X), X.shape[1]), X.real.dtype)
    out[::2], out[1::2] = X.real, X.imag
    return out


def complex_columns(X: np.ndarray) -> np.ndarray:
    """Return real columns (2 n, h), which alternate Re and Im, as complex columns (n, h)."""
    out = np.empty((len(X) // 2, X.shape[1]), np.result_type(X, np.complex64))
    out.real, out.imag = X[::2], X[1::2]
    return out


def block_size(dims: np.ndarray) -> int | None:
    """Return the common positive dimension of all stalks, or None if there is none."""
    return int(dims[0]) if len(dims) and dims.min() == dims.max() and dims[0] > 0 else None


def in_blocks(A: Matrix, row_dims: np.ndarray, column_dims: np.ndarray) -> Matrix:
    """Return a matrix as bsr if its blocks all have one shape other than 1 x 1, else as csr."""
    rows, columns = block_size(row_dims), block_size(column_dims)
    if rows is None or columns is None or rows * columns == 1:
        return scipy.sparse.csr_array(A)
    return A.tobsr((rows, columns))


def block_roots(blocks: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray]:
    """Return S with S* D S = I for each Hermitian block D, shape (n, d, d), and S^{-1}.

    S is triangular if D is well conditioned, else D^{-1/2}. Eigenvectors of D with eigenvalues
    that are zero to working accuracy or at most ``least`` are mapped to 0.
    """
    roots, inverses = np.zeros_like(blocks), np.zeros_like(blocks)
    failed = np.zeros(len(blocks), bool)
    # Ratio of a pivot to its block's largest entry below which eigenvalues determine the rank
    nearly_singular = 1e-10
    kernels.triangular_roots(blocks, nearly_singular, roots, inverses, failed)
    pivots = np.diagonal(inverses, axis1=1, axis2=2).real ** 2
    failed |= pivots.min(axis=1) <= least / nearly_singular
    values, vectors = np.linalg.eigh(blocks[failed])
    level = linalg.zero_level(blocks.shape[1], linalg.eps_of(blocks.dtype), values[:, -1:])
    seen = values > np.maximum(level, least)
    powers = np.where(seen, values, 1) ** 0.5
    for out, power in ((roots, 1 / powers), (inverses, powers)):
        scaled_vectors = vectors * np.where(seen, power, 0)[:, None, :]
        out[failed] = scaled_vectors @ vectors.conj().swapaxes(1, 2)
    return roots, inverses


def unit_roots(A: Matrix, dims: np.ndarray, least: float = 0.0) -> tuple[Matrix, Matrix, Matrix]:
    """Return A in the format of ``in_blocks``, and block diagonal S and T = S^{-1}.

    S* A S has unit diagonal blocks. If a diagonal block D of A has eigenvalues that are zero to
    working accuracy or at most ``least``, S* D S and T S are the projection onto the other
    eigenvectors.
    """
    A = in_blocks(A, dims, dims)
    starts, at = ragged.offsets(dims), ragged.offsets(dims**2)
    D, S, T = np.zeros((3, int(at[-1])), A.dtype)  # block after block
    if A.format == "bsr":
        row = np.repeat(np.arange(len(dims)), np.diff(A.indptr))
        inside = np.flatnonzero(row == A.indices)
        D.reshape(-1, *A.blocksize)[row[inside]] = A.data[inside]
    else:
        stalk = np.repeat(np.arange(len(dims)), dims)
        row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
        inside = np.flatnonzero(stalk[row] == stalk[A.indices])
        v, row, column = stalk[row[inside]], row[inside], A.indices[inside]
        D[at[v] + (row - starts[v]) * dims[v] + column - starts[v]] = A.data[inside]
    for d in np.unique(dims[dims > 0]).tolist():  # one batch for each dimension
        here = at[:-1][dims == d][:, None] + np.arange(d * d)
        for out, blocks in zip((S, T), block_roots(D[here].reshape(-1, d, d), least), strict=True):
            out[here] = blocks.reshape(here.shape)
    of_row = np.repeat(dims, dims)
    layout = ragged.ranges(np.repeat(starts[:-1], dims), of_row), ragged.offsets(of_row)
    indices, indptr = (each.astype(A.indptr.dtype) for each in layout)
    S, T = (
        in_blocks(scipy.sparse.csr_array((out, indices, indptr), A.shape), dims, dims)
        for out in (S, T)
    )
    return A, S, T


def scaled(left: Matrix | None, A: Matrix, right: Matrix) -> Matrix:
    """Return left* A right for matrices ``in_blocks`` and block diagonal factors; None means I."""
    if A.format == "csr" and right.nnz != right.shape[0]:  # stalks of different dimensions
        return scipy.sparse.csr_array((A if left is None else left.conj().T @ A) @ right)
    indptr, indices, data = blocks_of(A)
    columns = A.shape[1] // data.shape[2]
    if left is not None:
        row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        data = blocks_of(left)[2].conj().swapaxes(1, 2)[row] @ data
    data = data @ blocks_of(right)[2][indices]
    shape = (len(indptr) - 1) * data.shape[1], columns * data.shape[2]
    if data.shape[1:] == (1, 1):
        return scipy.sparse.csr_array((data.reshape(-1), indices, indptr), shape=shape)
    return scipy.sparse.bsr_array((data, indices, indptr), shape=shape)


def blocks_of(A: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return indptr, indices and data (n, p, q) of a block-sparse matrix; p = q = 1 for csr."""
    data = A.data if A.format == "bsr" else A.data.reshape(-1, 1, 1)
    return A.indptr, A.indices, data


def adjoint(A: Matrix) -> Matrix:
    """Return A*, in the format of A."""
    B = A.conj().T
    return B if A.format == "bsr" else scipy.sparse.csr_array(B)


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
