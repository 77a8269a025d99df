"""The lowest eigenpairs of A x = t B x by LOBPCG, locally optimal block conjugate gradients.

Knyazev's method (SIAM J. Sci. Comput. 23, 2001) with soft locking: converged columns stay in the
basis, the others get a preconditioned residual W and the direction P of their last step. Of the
Gram matrices only the blocks of W are computed in each step; the others are updated by small
matrices, and recomputed every few steps. Tall matrices are processed in blocks of rows that fit in
the cache.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

FRESH = 10
"""Number of steps after which the Gram matrices are recomputed."""

Parts = tuple[np.ndarray, ...]  # blocks of columns such as X, P, W


class Pairs(NamedTuple):
    """Ritz pairs in m columns, of which the first ``wanted`` were requested."""

    values: np.ndarray  # shape (m,)
    vectors: np.ndarray  # shape (n, m)
    residuals: np.ndarray  # shape (m,): norm(A x - t B x) / norm(x)
    steps: int


def lowest_pairs(
    apply: Callable,
    precondition: Callable,
    X: np.ndarray,
    wanted: int,
    target: Callable[[np.ndarray], np.ndarray],
    *,
    mass: Any = None,
    steps: tuple[int, int] = (0, 60),
    stalled: tuple[int, float] = (8, 0.7),
) -> Pairs:
    """Return the lowest Ritz pairs, iterated until ``wanted`` of them meet their targets.

    X holds m start vectors in C order and is overwritten; columns that become nearly dependent are
    dropped, so there may be fewer than m pairs. ``target`` is a function of the Ritz values that
    returns the largest residual allowed for each. ``mass`` is B, the identity by default. ``steps``
    are the minimum number of steps, unless all m columns converge earlier, and the maximum. With
    ``stalled`` = (s, f), the iteration ends if the largest ratio of a residual to its target does
    not fall below f times its value in s steps. After an early end, residuals may exceed targets.
    """
    weigh = (lambda Y: Y) if mass is None else (lambda Y: mass @ Y)
    ritz: Callable = rayleigh_ritz if mass is None else graded_ritz
    values, X = _fresh(apply, weigh, X, X, ritz)
    m = X.shape[1]
    P, known = X[:, :0], _unit(values, X.dtype)
    best, mark, since, step = np.inf, np.inf, 0, 0
    kept = Pairs(values, X, np.full(m, np.inf), 0)
    while True:
        R, BX = apply(X), weigh(X)
        squares = np.zeros(len(values))
        for rows in _pieces(len(R)):  # R becomes A X - B X diag(values)
            np.subtract(R[rows], BX[rows] * values, out=R[rows])
            squares += np.einsum("ij,ij->j", R[rows].conj(), R[rows]).real
        residuals = np.sqrt(squares)
        if mass is not None:
            residuals /= np.linalg.norm(X, axis=0)
        sizes = residuals / target(values)
        worst = float(sizes[:wanted].max(initial=0.0))
        since += 1
        if worst < stalled[1] * mark:
            mark, since = worst, 0
        if worst < best:  # keep the best: near rounding level, residuals may grow again
            best, kept = worst, Pairs(values, X.copy(), residuals, step)
        active = np.flatnonzero(sizes > 1)
        done = worst <= 1 and (step >= steps[0] or not active.size)
        if done or step == steps[1] or since > stalled[0]:
            # smaller ratios are normal while Ritz values still decrease
            pairs = kept if worst > 100 * best else Pairs(values, X, residuals, step)
            return pairs._replace(steps=step)
        if len(active) < m:
            R = np.ascontiguousarray(R[:, active])
        W = precondition(R)
        del R, BX
        G = _gram((X, P, W), apply(W), weigh(W), known)
        Q = np.eye(len(G[1]), dtype=G.dtype)  # orthogonalizes P and W against X
        Q[:m, m:] = -G[1, :m, m:]
        values, C = ritz(*(Q.conj().T @ G @ Q), m)
        C = Q @ C
        step += 1
        if C.shape[1] < m:  # the basis lost rank: restart from X
            values, X = _fresh(apply, weigh, X, X.copy(), ritz)
            P, known, m = X[:, :0], _unit(values, X.dtype), X.shape[1]
            continue
        # the steps of active columns, orthogonal to the new X and normalized
        D = C[:, active]
        D[: C.shape[1]] = 0
        D = D - C @ (C.conj().T @ (G[1] @ D))
        squares = np.einsum("ij,ij->j", D.conj(), G[1] @ D).real
        D /= np.sqrt(np.where(squares > 0, squares, 1))
        E = np.hstack([C, D])
        P = _combined((X, P, W), E, X)
        if step % FRESH == 0:
            values, X = _fresh(apply, weigh, X, X, ritz)
            m = X.shape[1]
            known = _gram((X, P), apply(P), weigh(P), _unit(values, X.dtype))
        else:
            known = _hermitian(E.conj().T @ G @ E)
            known[:, :m, :m] = _unit(values, X.dtype)


def _pieces(n: int) -> Iterator[slice]:
    """Yield slices of rows that fit in the cache."""
    return (slice(row, row + 1024) for row in range(0, n, 1024))


def _unit(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return X* A X and X* B X, shape (2, m, m), for B-orthonormal Ritz vectors X."""
    return np.stack([np.diag(values), np.eye(len(values))]).astype(dtype)


def _inner(X: Parts, Y: Parts) -> np.ndarray:
    """Return X* Y for concatenated blocks of columns."""
    p, q = (sum(part.shape[1] for part in parts) for parts in (X, Y))
    total = np.zeros((p, q), X[0].dtype)
    for rows in _pieces(len(X[0])):
        total += _concatenated(X, rows).conj().T @ _concatenated(Y, rows)
    return total


def _concatenated(parts: Parts, rows: slice) -> np.ndarray:
    """Return rows of the concatenated blocks."""
    return np.hstack([part[rows] for part in parts]) if parts[1:] else parts[0][rows]


def _fresh(
    apply: Callable, weigh: Callable, X: np.ndarray, out: np.ndarray, ritz: Callable
) -> tuple[np.ndarray, np.ndarray]:
    """Return Ritz values and vectors of span X; the vectors are in ``out`` unless some are lost."""
    GA, GB = (_hermitian(_inner((X,), (product(X),))) for product in (apply, weigh))
    values, C = ritz(GA, GB, X.shape[1])
    if C.shape[1] < X.shape[1]:
        out = np.empty((len(X), C.shape[1]), X.dtype)
    _combined((X,), C, out)
    return values, out


def _gram(S: Parts, AW: np.ndarray, BW: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return S* A S and S* B S, stacked, for S = [X P W], given these matrices for [X P]."""
    new = np.stack(np.hsplit(_inner(S, (AW, BW)), 2))
    side, corner = np.split(new, [known.shape[1]], axis=1)
    return np.block([[known, side], [side.conj().swapaxes(1, 2), _hermitian(corner)]])


def _combined(S: Parts, E: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Set X to the first columns of S E, with S such as [X P W], and return the other columns."""
    n, m = X.shape
    width = E.shape[1] - m
    P = S[1] if S[1:] and S[1].shape[1] == width else np.empty((n, width), X.dtype)
    for rows in _pieces(n):
        both = _concatenated(S, rows) @ E
        X[rows], P[rows] = both[:, :m], both[:, m:]
    return P


def _hermitian(G: np.ndarray) -> np.ndarray:
    return (G + G.conj().swapaxes(-1, -2)) / 2


def rayleigh_ritz(GA: np.ndarray, GB: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the m lowest t of GA c = t GB c, or fewer if GB lacks rank, and C with C* GB C = I."""
    scale = np.diag(GB).real
    scale = 1 / np.sqrt(np.where(scale > 0, scale, 1))
    GA, GB = (_hermitian(G * scale[:, None] * scale) for G in (GA, GB))
    if not GB.any():
        return np.zeros(0), np.zeros((len(GB), 0), GB.dtype)
    # Relative eigenvalue of GB at or below which a direction is dropped. With 1e-10 instead, at
    # tol = 1e-12, a tenth of the multiplets cut by the number of pairs had spurious Ritz values
    dependent = 1e-6
    try:  # a triangular T with T* GB T = I does not mix small columns with large ones
        T = scipy.linalg.solve_triangular(np.linalg.cholesky(GB), np.eye(len(GB)), lower=True)
        T = T.conj().T
        # the smallest eigenvalue is at least 1 / norm(T)^2, the largest at most the trace len(GB)
        is_regular = bool(np.linalg.norm(T) ** 2 * len(GB) < 1 / dependent)
    except np.linalg.LinAlgError:
        is_regular = False
    if not is_regular:
        spectrum, V = np.linalg.eigh(GB)
        kept = spectrum > dependent * spectrum[-1]
        T = V[:, kept] / np.sqrt(spectrum[kept])
    values, C = np.linalg.eigh(_hermitian(T.conj().T @ GA @ T))
    return values[:m], scale[:, None] * (T @ C[:, :m])


def graded_ritz(GA: np.ndarray, GB: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of ``rayleigh_ritz``, from the largest s of GB c = s (GA + shift GB) c.

    ``shift`` is the median Rayleigh quotient of the first m columns. Errors of the lowest t are
    small relative to t + shift even if other eigenvalues are 1e16 times as large.
    """
    shift = float(np.median(np.diag(GA).real[:m] / np.diag(GB).real[:m].clip(1e-300))) or 1.0
    inverses, C = rayleigh_ritz(-GB, GA + shift * GB, m)
    found = inverses < 0  # others are rounding errors: as if GB lacked rank
    inverses = -inverses[found]
    return 1 / inverses - shift, C[:, found] / np.sqrt(inverses)
