"""Sparse factorization of a shifted Hermitian matrix, in an order that keeps the factors sparse."""

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import splu

from sheafcoarsen.operators.ordering import Order, elimination_order

ORDERED_ABOVE = 5000
"""Size beyond which the order is looked for here, stalk by stalk; below, SuperLU has it at once."""

RELAX = 1
"""Columns at the foot of the elimination tree that SuperLU takes together. More cost ten times the
factorization of a pose graph of 100,000 vertices in such an order.
"""


class Factors:
    """A + shift I = L D L*, without pivoting, in a good order or one that is known from before."""

    def __init__(self, A: scipy.sparse.csr_array, shift: float, order: Order | None = None) -> None:
        n = A.shape[0]
        shifted = scipy.sparse.csr_array(A + shift * scipy.sparse.eye_array(n, format="csr"))
        if order is None and n > ORDERED_ABOVE:
            order = elimination_order(shifted)
        self._order = None if order is None else order.rows
        if self._order is not None:
            shifted = shifted[self._order][:, self._order]
        try:
            self._factors = splu(
                scipy.sparse.csc_array(shifted),
                permc_spec="MMD_AT_PLUS_A" if self._order is None else "NATURAL",
                diag_pivot_thresh=0.0,
                relax=RELAX,
                options={"SymmetricMode": True},
            )
        except RuntimeError as error:
            raise np.linalg.LinAlgError(f"the factorization failed: {error}") from None

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return (A + shift I)^{-1} b."""
        if self._order is None:
            return self._factors.solve(b)
        x = np.empty_like(b)
        x[self._order] = self._factors.solve(b[self._order])
        return x

    @property
    def pivots(self) -> np.ndarray:
        """The diagonal of D, in the order of elimination."""
        return self._factors.U.diagonal()

    def count_negative(self) -> int:
        """Return how many eigenvalues of A lie below -shift, by the signs of pivots (Sylvester).

        -1 where it had to pivot.
        """
        if not np.array_equal(self._factors.perm_r, self._factors.perm_c):
            return -1
        return int((self._factors.U.diagonal().real < 0).sum())
