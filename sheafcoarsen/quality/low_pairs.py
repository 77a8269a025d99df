"""The lowest singular values of a coboundary: how many are zero, and the first positive ones.

Small problems are solved densely. Others are those of a sheaf: global sections are counted and put
aside, and the pairs beside them are iterated.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import eps_of, inf_norm, single_threaded_blas
from sheafcoarsen.modes import MAX_DENSE, SPARSE_ABOVE, SPARSE_SHARE
from sheafcoarsen.quality.small_components import SmallComponents, split_components
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve import Found, LowSpectrum, complex_line

EPS = eps_of(np.float64)

CONVERGED = 1e-4
"""Residual of a positive eigenpair, in units of its eigenvalue, beyond which it has not converged.

Its eigenvalue is off by about the square of this.
"""

ACCURATE, ENOUGH = 1e-6, 1e-5
"""What is aimed at in units of the lowest, and what will do where that is near rounding, ``TINY``.
"""

TOL, TINY = 1e-8, 1e-13
"""Residuals at most, relative to norm(L), and what iterating hardly reaches."""

APART = 8
"""Pairs beyond the k-th are left at a residual of their distance from it over this: it shows that
they are others.
"""

ROWS = 1024
"""Of the pieces that a tall matrix is decomposed in, which stay in the cache."""

AGAIN = 3
"""Further iterations at most for pairs that are not as accurate."""

WHOLE = 20_000_000
"""Entries of a dense coboundary up to which all singular vectors are computed."""

ROOM = 4
"""Dimensions beside a known kernel, per pair wanted, that iterating needs."""

BEYOND = 2
"""Pairs after the k-th that are computed at first, to see where its multiplet ends."""


class LowPairs(NamedTuple):
    """The lowest positive singular values of a coboundary D, ascending, and their right vectors.

    ``end`` of them reach to the end of the multiplet of the k-th; ``kernel`` is the number of
    singular values that count as zero, ``zero`` the largest of these, and ``size`` the norm
    against which they do.
    """

    sigma: np.ndarray
    vectors: np.ndarray
    end: int
    kernel: int
    zero: float
    size: float


class KnownPairs(NamedTuple):
    """Lowest eigenvectors that were found before.

    Among them stand all zeros but ``zeros``; ``whole`` says that the last one ends a multiplet.
    """

    vectors: np.ndarray
    zeros: int
    whole: bool


@single_threaded_blas()
def low_pairs(
    D: scipy.sparse.csr_array,
    k: int,
    accuracy: float,
    eps: float,
    size: float | None = None,
    sheaf_of: Callable[[], CellularSheaf] | None = None,
    kernel_of: Callable[[CellularSheaf], Any] | None = None,
    known: KnownPairs | np.ndarray | None = None,
) -> LowPairs:
    """Return the first k positive singular values of D, or more: to the end of the last multiplet.

    ``accuracy`` times ``size``, by default a bound of norm(D), is the level of zero. ``sheaf_of``
    returns a sheaf with the Laplacian D* D, up to a factor, and ``kernel_of`` an orthonormal basis
    of its global sections; without them all is dense. ``known`` are pairs, or just vectors near
    which they lie.
    """
    n = D.shape[1]
    if size is None:
        size = norm_bound(D.conj().T @ D)
    if not D.data.any():
        return LowPairs(np.zeros(0), np.zeros((n, 0), D.dtype), 0, n, 0.0, size)
    level = max(accuracy, max(D.shape) * EPS) * size
    if isinstance(known, KnownPairs):
        before = _from_known(D, k, level, known, size)
        if before is not None:
            return before
    if sheaf_of is not None and n > SPARSE_ABOVE:
        sheaf = sheaf_of()
        parts = split_components(D, sheaf)
        if parts is not None:
            share = level / size, eps, size
            return _beside_small(D, k, share, parts, kernel_of)
        sheaf_of = lambda: sheaf  # noqa: E731
    all_at_once = n <= SPARSE_ABOVE and n * D.shape[0] <= WHOLE
    m = n if all_at_once else min(n, k + BEYOND)
    iterated = None
    while True:
        kernel, zero = 0, 0.0
        if sheaf_of is not None and _is_sparse(n, m):
            if iterated is None:
                iterated = _Iterated(D, k, level, sheaf_of(), kernel_of)
                if isinstance(known, KnownPairs):
                    iterated.vectors = iterated.contracted(known.vectors)
                else:
                    iterated.start = known
            found = iterated.pairs(m)
            if found is None:
                return low_pairs(D, k, accuracy, eps, size)
            X, kernel, zero = found
        else:
            if n > MAX_DENSE:
                raise np.linalg.LinAlgError(
                    f"k, the zero eigenvalues and the multiple ones together need more than "
                    f"{n // SPARSE_SHARE} of {n} eigenpairs, beyond what a dense solver is for: "
                    "ask for a smaller k"
                )
            A = (D.conj().T @ D).toarray()
            X = scipy.linalg.eigh(A, subset_by_index=[0, m - 1])[1]
        left = n - kernel  # dimensions beside the known kernel
        sigma, X = singular_pairs(D, X)
        zeros = int((sigma <= level).sum())
        values = sigma**2
        end = _multiplet_end(values, zeros + k, 4 * eps * size * size)
        if end is not None or len(sigma) == left:
            break
        m = min(left, 2 * m + zeros)
    end = left if end is None else end
    if m < n:
        _check_converged(D, values[zeros:end], X[:, zeros:end])
    zero = max(zero, float(sigma[:zeros].max(initial=0.0)))
    return LowPairs(sigma[zeros:], X[:, zeros:], end - zeros, kernel + zeros, zero, size)


def _from_known(
    D: scipy.sparse.csr_array,
    k: int,
    level: float,
    known: KnownPairs,
    size: float,
) -> LowPairs | None:
    """Return pairs that were found before; None where there are too few, or they are too rough."""
    sigma, X = singular_pairs(D, known.vectors)
    values, zeros = sigma**2, int((sigma <= level).sum())
    end = _multiplet_end(values, zeros + k, 4 * EPS * size * size)
    if end is None and known.whole and len(values) >= zeros + k:
        end = len(values)
    if end is None or _roughness(D, values[zeros:end], X[:, zeros:end]) > CONVERGED:
        return None
    zero = float(sigma[:zeros].max(initial=0.0))
    return LowPairs(sigma[zeros:], X[:, zeros:], end - zeros, known.zeros + zeros, zero, size)


def _beside_small(
    D: scipy.sparse.csr_array,
    k: int,
    measures: tuple[float, float, float],
    parts: tuple[SmallComponents, np.ndarray, CellularSheaf],
    kernel_of: Callable[[CellularSheaf], Any] | None,
) -> LowPairs:
    """Return the pairs of a sheaf with small components, ``low_pairs`` of the rest among theirs.

    ``measures`` are accuracy, eps and size.
    """
    small, others, rest = parts
    accuracy, eps, size = measures
    level = accuracy * size
    zeros = int((small.sigma <= level).sum())
    R = scipy.sparse.csr_array(scipy.sparse.csc_array(D)[:, np.flatnonzero(others)])
    wanted = k
    while True:
        found = low_pairs(R, wanted, accuracy, eps, size, lambda: rest, kernel_of)
        whole = found.kernel + len(found.sigma) == R.shape[1]
        limit = np.inf if whole else found.sigma[-1]
        own = np.arange(zeros, int(np.searchsorted(small.sigma, limit, side="right")))
        sigma = np.concatenate([found.sigma, small.sigma[own]])
        order = np.argsort(sigma, kind="stable")
        end = _multiplet_end(sigma[order] ** 2, k, 4 * eps * size * size)
        if end is not None or whole:
            break
        wanted *= 2
    end = len(sigma) if end is None else end
    order = order[:end]
    X = np.zeros((D.shape[1], end), found.vectors.dtype)
    first = order < len(found.sigma)
    X[np.ix_(others, first)] = found.vectors[:, order[first]]
    X[:, ~first] = small.vectors(own[order[~first] - len(found.sigma)])
    zero = max(found.zero, float(small.sigma[:zeros].max(initial=0.0)))
    return LowPairs(sigma[order], X, end, found.kernel + zeros, zero, size)


class _Iterated:
    """Pairs of a sheaf beside its global sections, more of them when asked again."""

    def __init__(
        self,
        D: scipy.sparse.csr_array,
        k: int,
        level: float,
        sheaf: CellularSheaf,
        kernel_of: Callable[[CellularSheaf], Any] | None,
    ):
        self.D, self.k, self.level = D, k, level
        self.known, self.zero, self.refused = 0, 0.0, False
        self.line = complex_line(sheaf)
        work = sheaf if self.line is None else self.line.sheaf

        def sections() -> Any:
            none = np.zeros((work.dim_c0, 0))
            return self._judged(kernel_of(work) if kernel_of is not None else none)

        self.spectrum = LowSpectrum(
            work, self._count(k), TOL, positive=True, sections_of=sections, aims=self._aims
        )
        self.vectors: np.ndarray | None = None  # found before
        self.start: np.ndarray | None = None  # the multigrid has a better one

    def _count(self, m: int) -> int:
        """Return how many pairs of what is iterated m pairs of the sheaf are."""
        return m if self.line is None else (m + 1) // 2

    def _expanded(self, X: Any) -> Any:
        """Return columns of the sheaf."""
        return X if self.line is None else self.line.expand(X)

    def _aims(self, values: np.ndarray) -> np.ndarray:
        """Return the residuals to iterate down to for Ritz values, ascending."""
        norm, near = self.spectrum.norm, self.spectrum.near()
        zeros = int((values <= near).sum())
        aims = np.full(len(values), TOL * norm / 2)
        aims[zeros:] = _accurate(values[zeros : zeros + 1], norm).clip(max=aims[zeros:])
        last = zeros + self._count(self.k) - 1
        if last < len(values):
            apart = (values[last + 1 :] - values[last]) / APART
            aims[last + 1 :] = np.maximum(aims[last + 1 :], apart)
        return aims

    def _judged(self, Z: Any) -> Any:
        """Return sections, and count them; none of them where one is no zero."""
        X = self._expanded(Z)
        zero = largest_column(self.D @ X)
        if zero > self.level:  # rounding makes it none
            self.refused = True
            return Z[:, :0]
        self.zero, self.known = zero, X.shape[1]
        return Z

    def pairs(self, m: int) -> tuple[np.ndarray, int, float] | None:
        """Return vectors of the m lowest pairs, and how many zeros are known, the largest one.

        None where these leave little, which is better decomposed densely.
        """
        spectrum = self.spectrum
        spectrum.k = count = self._count(m)
        spectrum.beyond = count - self._count(self.k)
        method = spectrum.chosen()
        start = self.vectors
        if method != "multilevel":
            method = "direct"
            if start is None and self.start is not None:
                start = self.contracted(self.start)
        found = spectrum.pairs(method, start)
        if found is not None and self.known == 0 < found.sections.shape[1]:
            # the multigrid told them
            spectrum.sections = self._judged(found.sections)
            if self.refused:
                found = spectrum.pairs(found.method, found.vectors)
        if found is None or (self.refused and spectrum.n <= MAX_DENSE):
            return None
        for _ in range(AGAIN):
            lowest = self._lowest(found)
            values = np.maximum(found.values[:count], lowest)
            enough = np.maximum(ENOUGH * values, self._aims(found.values)[:count])
            if (spectrum.residuals(found)[:count] <= enough).all():
                break
            if found.method == "multilevel":  # factors, then, which converge on anything
                found = spectrum.pairs("direct", found.vectors)
                if found is None:
                    return None
            else:
                found = spectrum.polished(found, float(_accurate(lowest, spectrum.norm)))
        self.vectors = found.vectors
        return self._expanded(found.vectors)[:, :m], self.known, self.zero

    def contracted(self, X: np.ndarray) -> np.ndarray:
        """Return the columns to begin with for columns of the sheaf."""
        if self.line is None:
            return X
        Q = np.linalg.qr(self.line.contract(X))[0]
        C = np.linalg.eigh(Q.conj().T @ self.spectrum.apply(Q))[1]
        return Q @ C[:, : self._count(X.shape[1])]

    def _lowest(self, found: Found) -> float:
        """Return the lowest positive eigenvalue in units of the sheaf."""
        if found.values[0] > self.spectrum.near():
            return float(found.values[0])
        sigma = singular_pairs(self.D, self._expanded(found.vectors))[0]
        unit = found.values[-1] / sigma[-1] ** 2 if sigma[-1] else 0.0
        return float(unit * (sigma[sigma > self.level][:1] ** 2).sum())


def _accurate(values: Any, norm: float) -> Any:
    """Return the residuals that are aimed at for positive eigenvalues."""
    return np.maximum(ACCURATE * values, np.minimum(TINY * norm, ENOUGH * values))


def _is_sparse(n: int, m: int) -> bool:
    """Whether m of n pairs are found by the sparse method."""
    return n > SPARSE_ABOVE and (m * SPARSE_SHARE <= n or n > MAX_DENSE)


def _multiplet_end(values: np.ndarray, k: int, least: float) -> int | None:
    """Return where the multiplet of the k-th value ends, None where it may go on."""
    tie = np.sqrt(EPS) * values[1:] + least
    ends = np.flatnonzero(np.diff(values) > tie) + 1
    ends = ends[ends >= k]
    return int(ends[0]) if ends.size else None


def largest_column(Y: Any) -> float:
    """Return the largest norm of a column, 0 where there is none."""
    squares = abs(Y).power(2) if scipy.sparse.issparse(Y) else np.abs(Y) ** 2
    return float(np.sqrt(squares.sum(axis=0).max(initial=0.0)))


def singular_pairs(D: scipy.sparse.csr_array, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values of D on span X, ascending, and their right vectors.

    Eigenvalues of D* D would resolve them only to sqrt(eps). X has orthonormal columns.
    """
    Y = D @ X
    m = X.shape[1]
    if Y.shape[0] < m:  # so that there are m singular values
        Y = np.vstack([Y, np.zeros((m - Y.shape[0], m), Y.dtype)])
    pieces = [np.linalg.qr(Y[row : row + ROWS], mode="r") for row in range(0, len(Y), ROWS)]
    _, sigma, V = np.linalg.svd(np.linalg.qr(np.vstack(pieces), mode="r"))
    return sigma[::-1], np.ascontiguousarray(X @ V.conj().T[:, ::-1])


def norm_bound(A: scipy.sparse.csr_array) -> float:
    """Return an upper bound of norm(D), the root of norm(A, inf), for A = D* D."""
    return float(np.sqrt(inf_norm(A)))


def _roughness(D: scipy.sparse.csr_array, values: np.ndarray, U: np.ndarray) -> float:
    """Return the largest residual in units of its eigenvalue."""
    residuals = np.linalg.norm(D.conj().T @ (D @ U) - U * values, axis=0)
    return float((residuals / values).max(initial=0.0))


def _check_converged(D: scipy.sparse.csr_array, values: np.ndarray, U: np.ndarray) -> None:
    """Refuse pairs that have not converged."""
    worst = _roughness(D, values, U)
    if worst > CONVERGED:
        raise np.linalg.LinAlgError(
            f"an eigenpair has not converged: residual {worst:.3g} times its eigenvalue; "
            "the low spectrum is too near zero"
        )
