"""The lowest eigenpairs of A x = t B x by block preconditioned conjugate gradients.

Knyazev's LOBPCG (SIAM J. Sci. Comput. 23, 2001) with soft locking: converged columns stay in the
basis, the others get a preconditioned residual W and the direction P of their last step. A X and
A W are products every time, never combinations of stored ones; Gram matrices are measured with W
alone, the rest is algebra on small matrices, and everything is measured afresh every few steps.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from sheafcoarsen.solve.stalks import norms

FRESH = 10
"""Steps after which everything is measured afresh."""

HARM = 100
"""Beyond so many times the best residuals, steps have done harm: the best pairs are returned. Up to
that they may grow while values fall, which is no harm.
"""

DEPENDENT = 1e-10
"""Directions of a scaled Gram matrix below this are left out."""


Blocks = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The three parts of the basis: X, W and P."""


class Pairs(NamedTuple):
    """What the iteration returns: m columns, of which the first k were asked for."""

    values: np.ndarray  # (m,)
    vectors: np.ndarray  # (n, m)
    residuals: np.ndarray  # (m,) norm(A x - t B x)
    steps: int


def lowest_pairs(
    apply: Callable,
    precondition: Callable,
    X: np.ndarray,
    wanted: int,
    target: float,
    *,
    mass: Any = None,
    most_steps: int = 60,
    stalled: int = 8,
) -> Pairs:
    """Iterate from X (n, m) until the first ``wanted`` residuals are at or below ``target``.

    Parameters
    ----------
    apply, precondition : callable
        X -> A X, and R -> about A^{-1} R.
    mass : sparse matrix, optional
        B, Hermitian positive definite; the identity where it is not given.
    most_steps, stalled : int
        It ends after so many steps, or so many without the worst residual falling by a factor of
        0.7.
    """
    weigh = (lambda Y: Y) if mass is None else (lambda Y: mass @ Y)
    values, X, AX, BX = _fresh(apply, weigh, X)
    m = X.shape[1]
    P = AP = BP = np.zeros((len(X), 0), X.dtype)
    best, since, step = np.inf, 0, 0
    kept = Pairs(values, X, np.full(m, np.inf), 0)
    while True:
        R = AX - BX * values
        residuals = norms(R)
        worst = float(residuals[:wanted].max(initial=0.0))
        since = 0 if worst < 0.7 * best else since + 1
        if worst < best:  # beyond what rounding allows steps may do harm
            best, kept = worst, Pairs(values, X, residuals, step)
        if worst <= target or step == most_steps or since > stalled:
            if worst > HARM * best:
                return kept._replace(steps=step)
            return Pairs(values, X, residuals, step)
        late = np.flatnonzero(residuals[:wanted] > target).max()
        active = np.flatnonzero(residuals > target)
        active = active[active <= late + m - wanted]
        W = precondition(np.ascontiguousarray(R[:, active]))
        W -= X @ (BX.conj().T @ W)
        sizes = norms(W)
        W /= np.where(sizes > 0, sizes, 1)
        AW, BW = apply(W), weigh(W)
        GA, GB = _gram(values, (X, W, P), (AX, AW, AP), (BX, BW, BP))
        values, C = _beside_first(GA, GB, m)
        if C.shape[1] < m:  # the basis lost its rank: begin afresh with what there is
            values, X, AX, BX = _fresh(apply, weigh, X)
            P = AP = BP = P[:, :0]
            step += 1
            continue
        w = m + len(active)
        Cw, Cp = C[m:w], C[w:]
        own = _mixed(W, Cw, P, Cp)
        X = X @ C[:m]
        X += own
        sizes = norms(own)[active]
        sizes[sizes == 0] = 1
        Cw, Cp = Cw[:, active] / sizes, Cp[:, active] / sizes
        AP = _mixed(AW, Cw, AP, Cp)
        before, P = BP, own[:, active] / sizes
        BP = P if mass is None else _mixed(BW, Cw, before, Cp)
        step += 1
        if step % FRESH == 0:
            values, X, AX, BX = _fresh(apply, weigh, X)
            AP, BP = apply(P), weigh(P)
        else:
            AX, BX = apply(X), weigh(X)


def _mixed(W: np.ndarray, Cw: np.ndarray, P: np.ndarray, Cp: np.ndarray) -> np.ndarray:
    return W @ Cw + P @ Cp if P.shape[1] else W @ Cw


def _fresh(
    apply: Callable, weigh: Callable, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return Ritz values and vectors of span X, and their products."""
    AX, BX = apply(X), weigh(X)
    values, C = rayleigh_ritz(_hermitian(X.conj().T @ AX), _hermitian(X.conj().T @ BX), X.shape[1])
    X = np.ascontiguousarray(X @ C)
    return values, X, apply(X), weigh(X)


def _gram(values: np.ndarray, S: Blocks, AS: Blocks, BS: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """Return S* A S and S* B S for S = [X W P], of which X* A X = diag(values) and X* B X = I."""
    widths = [part.shape[1] for part in S]
    ends = np.cumsum(widths)
    GA, GB = np.zeros((ends[-1],) * 2, S[0].dtype), np.eye(ends[-1], dtype=S[0].dtype)
    GA[: widths[0], : widths[0]] = np.diag(values)
    for i in range(3):
        for j in range(max(i, 1), 3):
            rows, columns = slice(ends[i] - widths[i], ends[i]), slice(ends[j] - widths[j], ends[j])
            for G, parts in ((GA, AS), (GB, BS)):
                G[rows, columns] = S[i].conj().T @ parts[j]
                G[columns, rows] = G[rows, columns].conj().T
    return _hermitian(GA), _hermitian(GB)


def _hermitian(G: np.ndarray) -> np.ndarray:
    return (G + G.conj().T) / 2


def rayleigh_ritz(GA: np.ndarray, GB: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the m lowest eigenvalues of GA c = t GB c, GB perhaps singular, and C, C* GB C = I."""
    scale = np.diag(GB).real
    scale = 1 / np.sqrt(np.where(scale > 0, scale, 1))
    GA, GB = (_hermitian(G * scale[:, None] * scale) for G in (GA, GB))
    if not GB.any():
        return np.zeros(0), np.zeros((len(GB), 0), GB.dtype)
    spectrum, V = scipy.linalg.eigh(GB)
    least = DEPENDENT * max(float(spectrum[-1]), np.finfo(float).tiny)
    if spectrum[0] > least:  # Cholesky keeps what is small beside what is large apart
        factor = scipy.linalg.cholesky(GB, lower=True)
        T = scipy.linalg.solve_triangular(factor, np.eye(len(GB)), lower=True).conj().T
    else:
        kept = spectrum > least
        T = V[:, kept] / np.sqrt(spectrum[kept])
    values, C = scipy.linalg.eigh(_hermitian(T.conj().T @ GA @ T))
    return values[:m], scale[:, None] * (T @ C[:, :m])


def _beside_first(GA: np.ndarray, GB: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ``rayleigh_ritz`` with the first m columns, orthonormal, taken out of the others."""
    Q = np.eye(len(GA), dtype=GA.dtype)
    Q[:m, m:] = -GB[:m, m:]
    values, C = rayleigh_ritz(Q.conj().T @ GA @ Q, Q.conj().T @ GB @ Q, m)
    return values, Q @ C
