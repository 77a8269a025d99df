"""Sparse factorization of a shifted Hermitian matrix, in a fill-reducing order."""

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu

from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen._kernels.operators import solve_factored
from sheafcoarsen._support import by_real_columns, interruptible
from sheafcoarsen.operators._coboundary import as_columns
from sheafcoarsen.operators.ordering import Order, elimination_order

OWN_ORDER_ABOVE = 20_000
"""Dimension above which this package's elimination order replaces SuperLU's minimum degree, with
which factorizations of 3-D grids take 2 to 3 times as long.
"""

LANES = (16, 4, 1), (4, 1)
"""Numbers of right-hand sides that kernels process at a time, for real and for complex scalars."""


class Factors:
    """Factorization A + shift I = L U without pivoting, in a fill-reducing or given order.

    Though U = D L* in exact arithmetic, both are needed: next to small pivots, errors of L D L* are
    hundreds of times as large as those of L U.

    Attributes
    ----------
    pivots : ndarray, shape (n,)
        The diagonal of U, in the order of elimination.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a pivot is zero.
    """

    def __init__(self, A: scipy.sparse.csr_array, shift: float, order: Order | None = None) -> None:
        n = A.shape[0]
        shifted = scipy.sparse.csr_array(A + shift * scipy.sparse.eye_array(n))
        if order is None and n > OWN_ORDER_ABOVE:
            order = elimination_order(shifted)
        if order is not None:
            shifted = shifted[order.rows][:, order.rows]
        # SuperLU's default panel size, 20, takes 25 % less time on 3-D grids, which need at least
        # 7e4 operations per row, but 10 to 40 % longer on pose graphs
        few = order is not None and order.operations <= 2e4 * n
        rows, self._lower, self._upper = interruptible(
            _factored,
            scipy.sparse.csc_array(shifted),
            permc_spec="MMD_AT_PLUS_A" if order is None else "NATURAL",
            panel_size=2 if few else None,
        )
        self._rows = rows if order is None else order.rows[rows]
        self.pivots = self._upper.diagonal()

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return (A + shift I)^{-1} b for one right-hand side or several columns."""
        if b.dtype.kind == "c" and self.pivots.dtype.kind != "c":
            return by_real_columns(self.solve, b)
        y = np.ascontiguousarray(b[self._rows], np.result_type(b, self.pivots))
        if JIT_IS_OFF and len(y) > 50:  # as plain Python, the kernel would take minutes
            x = np.empty_like(y)
            for factor in (self._lower, self._upper):
                y = splu(factor.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0.0).solve(y)
            x[self._rows] = y
            return x
        factors = [(A.indptr, A.indices, A.data) for A in (self._lower, self._upper)]
        inverses = 1 / self.pivots
        columns = as_columns(y)
        begin, h = 0, columns.shape[1]
        for width in LANES[y.dtype.kind == "c"]:
            part = (begin, h - (h - begin) % width)
            lanes = (y.dtype.type(0),) * width
            if part[0] < part[1]:
                solve_factored(*factors, inverses, part, lanes, columns)
            begin = part[1]
        x = np.empty_like(y)
        x[self._rows] = y
        return x

    def count_negative(self) -> int:
        """Return the number of eigenvalues of A below -shift, by Sylvester's law of inertia."""
        return int((self.pivots.real < 0).sum())


def _factored(
    A: scipy.sparse.csc_array, **options: Any
) -> tuple[np.ndarray, scipy.sparse.csc_array, scipy.sparse.csr_array]:
    """Return the order of elimination, L and U of A = L U.

    SuperLU's own object must not outlive this call: scipy loses its memory if another thread
    deletes it, and from version 1.19 on frees it when the thread ends.
    """
    try:
        # with larger supernodes, a pose graph of 100,000 vertices takes ten times as long
        factors = splu(
            A, diag_pivot_thresh=0.0, relax=1, options={"SymmetricMode": True}, **options
        )
    except RuntimeError as error:
        raise np.linalg.LinAlgError(f"the factorization failed: {error}") from None
    columns, rows = factors.perm_c, factors.perm_r
    L, U = factors.L, scipy.sparse.csr_array(factors.U)
    del factors  # a traceback would keep it
    if not np.array_equal(rows, columns):
        raise np.linalg.LinAlgError("the factorization failed: a pivot is zero")
    return np.argsort(columns), L, U
