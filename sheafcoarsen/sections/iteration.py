"""Preconditioned conjugate gradients on the normal equations of a least-squares problem."""

from collections.abc import Callable

import numpy as np
import scipy.sparse

from sheafcoarsen._support import bar

MOST_STEPS = 20_000
"""Iterations at most."""


PATIENCE = 500
"""Iterations without progress, beyond half of all, after which rounding is all that is left."""


PROGRESS = 4
"""An error so many times smaller is progress."""


def conjugate_gradients(
    D: scipy.sparse.csr_array,
    adjoint: scipy.sparse.csr_array,
    r: np.ndarray,
    precondition: Callable[[np.ndarray], np.ndarray],
    tolerance: np.ndarray,
    progress: bool,
) -> np.ndarray:
    """Return y, column by column, with D* (r - D y) small, from y = 0; ``adjoint`` is D*.

    Of all iterates the one whose <D* (r - D y), M D* (r - D y)> is least, M being the
    preconditioner; that ends it at ``tolerance``. The lines are numbered as in Saad, Iterative
    Methods for Sparse Linear Systems (2003), algorithm 9.7, with two departures that keep what is
    nearly in the kernel of D out of the errors: line 6 takes r - D y anew, and line 9 takes out of
    beta what is not orthogonal to the step before (Notay, Flexible conjugate gradients, 2000).
    """
    y = np.zeros((D.shape[1], r.shape[1]), np.result_type(D.dtype, r.dtype))
    g = adjoint @ r  # 1
    z = precondition(g)  # 1
    first = rho = lowest = inner_products(g, z)
    best, p, idle = y, z, 0  # 1
    digits = bar(16, "digits", progress)
    for done in range(MOST_STEPS):  # 2
        if (lowest <= tolerance).all() or idle > PATIENCE + done // 2:
            break
        w = D @ p  # 3
        alpha = _quotient(rho, inner_products(w, w))  # 4
        y = y + alpha * p  # 5
        before, g = g, adjoint @ (r - D @ y)  # 6, 7
        z = precondition(g)  # 8
        old, rho = rho, inner_products(g, z)
        beta = _quotient(rho - inner_products(before, z), old)  # 9
        p = z + beta * p  # 10
        best = np.where(rho < lowest, y, best)
        idle = 0 if (rho < lowest / PROGRESS)[lowest > tolerance].any() else idle + 1
        lowest = np.minimum(rho, lowest)
        left = np.max(lowest / np.where(first > 0, first, 1.0))
        digits.update(max(-np.log10(np.maximum(left, 1e-32)) / 2 - digits.n, 0))
    digits.close()
    return best


def inner_products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the real parts of the inner products of columns."""
    return np.einsum("ij,ij->j", x.conj(), y).real


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return x / y, and 0 where y is not positive."""
    return np.where(y > 0, x / np.where(y > 0, y, 1.0), 0.0)
