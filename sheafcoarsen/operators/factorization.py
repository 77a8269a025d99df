"""Sparse factorization of a shifted Hermitian matrix, in a fill-reducing order."""

from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu

from sheafcoarsen._kernels.operators import solve_factored
from sheafcoarsen._support import by_real_columns, interruptible
from sheafcoarsen.operators.ordering import Order, elimination_order

OWN_SOLVE_ABOVE, OWN_ORDER_ABOVE = 5000, 20_000
"""OWN_SOLVE_ABOVE: dimension above which this package's triangular solve, 3 times as fast for 16
columns, replaces SuperLU's. OWN_ORDER_ABOVE: dimension above which its elimination order replaces
SuperLU's minimum degree, with which factorizations of 3-D grids take 2 to 3 times as long.
"""

LANES = (16, 4, 1), (4, 1)
"""Numbers of right-hand sides that kernels process at a time, for real and for complex scalars."""


class Factors:
    """Factorization A + shift I = L D L* without pivoting, in a fill-reducing or given order."""

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
        try:
            factors = interruptible(
                splu,
                scipy.sparse.csc_array(shifted),
                permc_spec="MMD_AT_PLUS_A" if order is None else "NATURAL",
                diag_pivot_thresh=0.0,
                # larger supernodes: ten times as long for a pose graph of 100,000 vertices
                relax=1,
                panel_size=2 if few else None,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:
            raise np.linalg.LinAlgError(f"the factorization failed: {error}") from None
        self._dtype = shifted.dtype
        self._has_pivoted = not np.array_equal(factors.perm_r, factors.perm_c)
        self._rows = None if order is None else order.rows
        self._factors: Any = factors
        self._lower: Any = None
        if n > OWN_SOLVE_ABOVE and not self._has_pivoted:
            rows = np.argsort(factors.perm_c)
            self._rows = rows if order is None else order.rows[rows]
            self._lower, self._pivots = factors.L, factors.U.diagonal()
            self._factors = None  # free U, which equals D L*

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return (A + shift I)^{-1} b for one right-hand side or several columns."""
        if b.dtype.kind == "c" and self._dtype.kind != "c":
            return by_real_columns(self.solve, b)
        if self._rows is None:
            return self._factors.solve(np.ascontiguousarray(b))
        y = np.ascontiguousarray(b[self._rows])
        y = self._factors.solve(y) if self._lower is None else self._solve_triangular(y)
        x = np.empty_like(y)
        x[self._rows] = y
        return x

    def _solve_triangular(self, y: np.ndarray) -> np.ndarray:
        """Solve L D L* x = y in the order of elimination; ``y`` may be overwritten."""
        L = self._lower
        y = y.astype(np.result_type(y, L.dtype), copy=False)
        columns = y.reshape(len(y), -1)
        begin, h, inverses = 0, columns.shape[1], 1 / self._pivots
        for width in LANES[columns.dtype.kind == "c"]:
            part = (begin, h - (h - begin) % width)
            lanes = (columns.dtype.type(0),) * width
            if part[0] < part[1]:
                solve_factored(L.indptr, L.indices, L.data, inverses, part, lanes, columns)
            begin = part[1]
        return y

    @property
    def pivots(self) -> np.ndarray:
        """The diagonal of D, in the order of elimination."""
        return self._factors.U.diagonal() if self._lower is None else self._pivots

    def count_negative(self) -> int:
        """Return the number of eigenvalues of A below -shift, by Sylvester's law of inertia.

        The result is -1 if the factorization pivoted.
        """
        return -1 if self._has_pivoted else int((self.pivots.real < 0).sum())
