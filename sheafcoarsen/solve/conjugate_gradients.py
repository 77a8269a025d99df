"""Preconditioned conjugate gradients for several right-hand sides; bases and projections."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from sheafcoarsen._support import threads

MOST_STEPS = 20_000
"""Maximum number of steps."""


class Iterated(NamedTuple):
    """Result of ``conjugate_gradients``."""

    x: np.ndarray  # shape (n, h)
    residuals: np.ndarray  # shape (h,): norm or ``measure`` of b - A x, recomputed from x
    steps: int


def conjugate_gradients(
    apply: Callable,
    precondition: Callable,
    b: np.ndarray,
    x: np.ndarray,
    target: np.ndarray,
    progress: bool = False,
    measure: Callable | None = None,
) -> Iterated:
    """Solve A x = b for each column until norm(b - A x) <= target or the residual stagnates.

    This is the flexible variant (Notay, SIAM J. Sci. Comput. 22, 2000), in which beta is computed
    from the difference of residuals, because a cycle in single precision is not exactly linear.

    ``apply`` returns A X for X of shape (n, h), where A is semidefinite and b in its range, and
    ``precondition`` an approximation of A^{-1} X; x is the initial guess. ``measure(R, columns)``
    returns the sizes of the residuals R of these columns, by default their norms.
    """
    measure = measure or (lambda R, columns: np.linalg.norm(R, axis=0))
    x = x.copy()
    r = b - apply(x)
    sizes = measure(r, slice(None))
    active = np.flatnonzero(sizes > target)
    best, computed = sizes.copy(), sizes.copy()
    since = np.zeros(len(sizes), np.int64)
    p = before = np.zeros((len(b), 0), b.dtype)
    inner_before = np.zeros(0)
    steps = 0
    # A column stops if its best residual has not been halved within this number of steps
    stalled = 2000
    with threads.bar(0, "conjugate gradients", progress) as shown:
        while active.size and steps < MOST_STEPS:
            residual = np.ascontiguousarray(r[:, active])
            z = precondition(residual)
            inner = _dots(residual, z)
            if steps == 0:
                p = z
            else:
                beta = (inner - _dots(before, z)) / inner_before
                p = z + p * beta
            q = apply(p)
            curvature = _dots(p, q)
            # update usable columns only: the others contain only rounding errors
            usable = (curvature > 0) & (inner > 0)
            alpha = np.where(usable, inner / np.where(usable, curvature, 1), 0)
            x[:, active] += p * alpha
            before, inner_before = residual, inner
            r[:, active] = residual - q * alpha
            steps += 1
            sizes[active] = measure(r[:, active], active)
            halved = sizes < 0.5 * best
            best[halved], since[halved] = sizes[halved], 0
            since[~halved] += 1
            keep = (sizes[active] > target[active]) & (since[active] < stalled) & usable
            if not keep.all():  # the recursion may have drifted: recompute the residual
                ends = active[~keep]
                p[:, ~keep] = 0  # restart: after a drift, directions are not conjugate
                r[:, ends] = b[:, ends] - apply(np.ascontiguousarray(x[:, ends]))
                sizes[ends] = measure(r[:, ends], ends)
                goes_on = (sizes[ends] > target[ends]) & (sizes[ends] < 0.5 * computed[ends])
                keep[~keep] = goes_on & usable[~keep]
                computed[ends] = sizes[ends]
                p, before, inner_before = p[:, keep], before[:, keep], inner_before[keep]
                active = active[keep]
            shown.update(1)
    if active.size:
        r = b - apply(x)
        sizes = measure(r, slice(None))
    return Iterated(x, sizes, steps)


def column_norms(X: np.ndarray) -> np.ndarray:
    """Return the norms of the columns, scaling internally to avoid overflow."""
    largest = np.abs(X).max(axis=0, initial=0.0)
    safe = np.where(largest > 0, largest, 1)
    return largest * np.linalg.norm(X / safe, axis=0)


def relative_measure(scaling: Any, B: np.ndarray) -> Callable[..., np.ndarray]:
    """Return a function that maps residuals R to their relative sizes, column by column.

    The size is the larger of norm(R) / norm(B) and norm(S R) / norm(S B), with S = ``scaling``
    (the identity if it is None); the divisor is 1 for a zero column of B. R may contain only some
    of the columns of B.
    """
    sizes = column_norms(B), column_norms(B if scaling is None else scaling @ B)
    units, scaled_units = (np.where(each > 0, each, 1) for each in sizes)

    def measure(R: np.ndarray, columns: Any = slice(None)) -> np.ndarray:
        plain = column_norms(R) / units[columns]
        if scaling is None:
            return plain
        return np.maximum(plain, column_norms(scaling @ R) / scaled_units[columns])

    return measure


def _dots(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Re <x_j, y_j> column by column."""
    return np.einsum("ij,ij->j", x.conj(), y).real


Basis = Any
"""Orthonormal columns: a dense array, or a sparse array if there are many columns."""


def deflated(precondition: Callable, Q: Basis, mass: np.ndarray | None = None) -> Callable:
    """Return a preconditioner projected onto the M-orthogonal complement of a basis."""
    if not Q.shape[1]:
        return precondition
    Q_adjoint = Q.conj().T

    def project(X: np.ndarray, dual: bool) -> np.ndarray:
        # residuals (dual) must be orthogonal to Q, columns to M Q
        part = Q @ (Q_adjoint @ (X if dual else weighted(mass, X)))
        return np.ascontiguousarray(X - (weighted(mass, part) if dual else part))

    # project R too, because the preconditioner amplifies rounding errors in the kernel
    return lambda R: project(precondition(project(R, True)), False)


def orthogonal_part(X: np.ndarray, basis: Basis | None) -> np.ndarray:
    """Return the projection of X onto the orthogonal complement of a basis; None means X."""
    return X if basis is None else X - basis @ (basis.conj().T @ X)


def weighted(mass: np.ndarray | None, X: np.ndarray) -> np.ndarray:
    """Return M X for the diagonal of M; None means the identity."""
    return X if mass is None else mass[:, None] * X


def orthonormal(X: np.ndarray, mass: np.ndarray | None) -> np.ndarray:
    """Return an M-orthonormal basis of the column space of X."""
    if mass is None or not X.shape[1]:
        return scipy.linalg.qr(X, mode="economic")[0]
    roots = np.sqrt(mass)[:, None]
    for _ in range(2):  # twice: a single pass loses digits if X is ill-conditioned in M
        R = scipy.linalg.qr(roots * X, mode="r")[0][: X.shape[1]]
        X = scipy.linalg.solve_triangular(R, X.T, trans="T").T
    return X


def refined_kernel(apply: Callable, precondition: Callable, basis: Basis) -> np.ndarray:
    """Return the lowest eigenvectors of A from a basis N that is accurate to single precision.

    With A Z = A N in the complement of N, the error of N - Z is the square of that of N. Inverse
    iteration would amplify the error if N contains sections of maps rounded to single precision.
    """
    N = np.linalg.qr(basis if isinstance(basis, np.ndarray) else basis.toarray())[0]
    inside = deflated(lambda X: X, N)
    right = inside(apply(N))
    target = np.sqrt(np.finfo(right.dtype).eps) * np.linalg.norm(right, axis=0)
    start = np.zeros_like(right)
    found = conjugate_gradients(
        lambda X: inside(apply(X)), lambda X: inside(precondition(X)), right, start, target
    )
    return np.linalg.qr(N - found.x)[0]


def orthonormal_complement(X: np.ndarray, Q: Basis, mass: np.ndarray | None = None) -> np.ndarray:
    """Return an M-orthonormal basis of the column space of X after projecting out span Q."""
    Q_adjoint = Q.conj().T
    for repeat in range(3):
        if Q.shape[1]:
            X = X - Q @ (Q_adjoint @ weighted(mass, X))
        X = X if repeat else independent(X)  # start columns may depend on each other and on Q
        X = orthonormal(X, mass) if repeat < 2 else X
    return np.ascontiguousarray(X)


def independent(X: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the column space of X, dropping directions below sqrt(eps)."""
    Q, R, _ = scipy.linalg.qr(X, mode="economic", pivoting=True)
    sizes = abs(np.diag(R))
    return Q[:, sizes > np.sqrt(np.finfo(X.dtype).eps) * sizes.max(initial=0.0)]
