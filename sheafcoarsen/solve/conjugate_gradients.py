"""Preconditioned conjugate gradients for several right-hand sides at once."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import bar

MOST_STEPS = 20_000
"""Maximum number of steps."""


class Iterated(NamedTuple):
    """Result of ``conjugate_gradients``."""

    x: np.ndarray  # shape (n, h)
    residuals: np.ndarray  # shape (h,): norm(b - A x), recomputed from x
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
    """Solve A x = b column by column until norm(b - A x) <= target or the residual stagnates.

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
    with bar(0, "conjugate gradients", progress) as shown:
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


def _dots(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return Re <x_j, y_j> column by column."""
    return np.einsum("ij,ij->j", x.conj(), y).real
