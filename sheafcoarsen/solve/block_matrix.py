"""Products of a block-sparse matrix with several columns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._kernels import solve as kernels
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen._support import run_ranges
from sheafcoarsen.solve.block_scaling import Matrix, blocks_of

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
        self._arrays = kernels.Blocks(indptr, indices, flat)

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
        arrays, (p, q) = self._arrays, self._block
        h = min(Y.shape[1], out.shape[1])
        if h == 0:
            return out
        dtype = arrays.data.dtype
        if JIT_IS_OFF or arrays.data.size <= COMPILED_ABOVE:
            A = scipy.sparse.bsr_array(
                (arrays.data.reshape(-1, p, q), arrays.indices, arrays.indptr), self.shape
            )
            out[:, :h] = A @ Y[:, :h].astype(dtype) * by + sum(x * T[:, :h] for x, T in plus)
            return out
        lanes = next(count for count in LANES if count <= h)
        shape = (dtype.type(0),) * lanes, (0,) * p, (0,) * q
        factors = np.empty(h, dtype)
        factors[:] = by
        terms = tuple((float(x), T) for x, T in (*plus, *((0.0, out),) * (3 - len(plus))))

        def rows(lo: int, hi: int) -> None:
            kernels.combine_blocks(lo, hi, arrays, shape, Y, factors, terms, out)

        run_ranges(rows, arrays.indptr, cumulative=True, serial_below=SERIAL_BELOW / (p * q * h))
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
