"""The lowest singular values of a coboundary: how many are zero, and the first positive ones.

Zeros are counted, and where they are many also computed, first: Lanczos would have to find every
one of them before the first positive value.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import eps_of, single_threaded_blas
from sheafcoarsen.modes import MAX_DENSE, SPARSE_ABOVE, SPARSE_SHARE, lowest_sparse
from sheafcoarsen.operators import Factors

EPS = eps_of(np.float64)

CONVERGED = 1e-4
"""Residual of a positive eigenpair, in units of its eigenvalue, beyond which it has not converged.

Its eigenvalue is off by about the square of this.
"""

WHOLE = 20_000_000
"""Entries of a dense coboundary up to which all singular vectors are computed."""

MANY_ZEROS = 32
"""Zero eigenvalues beyond which they are computed on their own, in time that is linear in them."""


ROOM = 4
"""Dimensions beside a known kernel, per pair wanted, that Lanczos needs."""


HOLES = 2
"""How often a spectrum with a hole is computed anew, with twice as many pairs."""


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


@single_threaded_blas()
def low_pairs(
    D: scipy.sparse.csr_array,
    k: int,
    accuracy: float,
    eps: float,
    size: float | None = None,
    kernel_of: Callable[[], np.ndarray | scipy.sparse.csr_array] | None = None,
) -> LowPairs:
    """Return the first k positive singular values of D, or more: to the end of the last multiplet.

    ``accuracy`` times ``size``, by default a bound of norm(D), is the level of zero. ``kernel_of``
    computes an orthonormal basis of ker D where that is worth it.
    """
    n = D.shape[1]
    A = scipy.sparse.csr_array(D.conj().T @ D)
    bound = float(abs(A).sum(axis=1).max(initial=0.0))
    size = float(np.sqrt(bound)) if size is None else size
    if bound == 0:
        return LowPairs(np.zeros(0), np.zeros((n, 0), A.dtype), 0, n, 0.0, size)
    level = max(accuracy, max(D.shape) * EPS) * size
    m = n if n <= SPARSE_ABOVE and n * D.shape[0] <= WHOLE else min(n, k + k // 4 + 8)
    Z = None
    if kernel_of is not None and _is_sparse(n, m):
        below = Factors(A, -max(4 * n * EPS * bound, level * level)).count_negative()
        Z = _kernel(D, kernel_of(), level) if MANY_ZEROS < below <= n - ROOM * m else None
    known, zero = (0, 0.0) if Z is None else (Z.shape[1], _largest_column(D @ Z))
    left = n - known  # dimensions beside the known kernel
    holes = 0
    while True:
        if Z is not None and (not _is_sparse(n, m) or ROOM * m > left):
            return low_pairs(D, k, accuracy, eps, size)
        sparse = _is_sparse(n, m)
        sigma, X = _rayleigh_ritz(D, A, m, sparse, Z)
        zeros = int((sigma <= level).sum())
        values = sigma**2
        tie = np.sqrt(EPS) * values[1:] + 4 * eps * size * size
        ends = np.flatnonzero(np.diff(values) > tie) + 1
        ends = ends[ends >= min(zeros + k, left)]
        end = int(ends[0]) if ends.size else left
        if m == left:
            break
        if ends.size:
            there = _count_below(A, values, X, range(zeros, end), sparse)
            if there is None or there == known + end:
                break
            if holes == HOLES or not _is_sparse(n, 2 * m):
                raise np.linalg.LinAlgError(
                    f"found {known + end} eigenvalues where the inertia counts {there}: "
                    "some did not converge"
                )
            holes += 1
        m = min(left, 2 * m)
    zero = max(zero, float(sigma[:zeros].max(initial=0.0)))
    return LowPairs(sigma[zeros:], X[:, zeros:], end - zeros, known + zeros, zero, size)


def _is_sparse(n: int, m: int) -> bool:
    """Whether m of n pairs are found by the sparse method."""
    return n > SPARSE_ABOVE and (m * SPARSE_SHARE <= n or n > MAX_DENSE)


def _kernel(D: scipy.sparse.csr_array, Z: Any, level: float) -> Any:
    """Return a basis of ker D, or None where rounding makes it none."""
    return Z if Z.shape[1] and _largest_column(D @ Z) <= level else None


def _largest_column(Y: Any) -> float:
    squares = abs(Y).power(2) if scipy.sparse.issparse(Y) else np.abs(Y) ** 2
    return float(np.sqrt(squares.sum(axis=0).max(initial=0.0)))


def _rayleigh_ritz(
    D: np.ndarray, A: scipy.sparse.csr_array, m: int, sparse: bool, Z: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the m lowest singular values of D, ascending, and right singular vectors, beside Z.

    The eigenvectors of A = D* D span the space, the singular values are those of D on it: squaring
    would resolve them only to sqrt(eps).
    """
    n = A.shape[0]
    if sparse and m * SPARSE_SHARE > n:
        raise np.linalg.LinAlgError(
            "k, the zero eigenvalues and the multiple ones together need more than "
            f"{n // SPARSE_SHARE} of {n} eigenpairs, beyond what the sparse method is for: "
            "ask for a smaller k"
        )
    if sparse:
        X = lowest_sparse(A, m, EPS, beside=Z)[1]
    else:
        X = scipy.linalg.eigh(A.toarray(), subset_by_index=[0, m - 1])[1]
    Y = D @ X
    if Y.shape[0] < m:  # so that there are m singular values
        Y = np.vstack([Y, np.zeros((m - Y.shape[0], m), Y.dtype)])
    _, sigma, V = np.linalg.svd(Y, full_matrices=False)
    return sigma[::-1], np.ascontiguousarray(X @ V.conj().T[:, ::-1])


def _count_below(
    A: scipy.sparse.csr_array, values: np.ndarray, X: np.ndarray, positive: range, sparse: bool
) -> int | None:
    """Refuse pairs that have not converged, and count the eigenvalues up to the last of them.

    They are counted by the inertia of A - s I, s above the last: of a multiplet of many more than
    were wanted, Lanczos may have found a part. None where a dense solver found them.
    """
    some = slice(positive.start, positive.stop)
    U = X[:, some]
    residuals = np.linalg.norm(A @ U - U * values[some], axis=0)
    worst = float((residuals / values[some]).max(initial=0.0))
    if worst > CONVERGED:
        raise np.linalg.LinAlgError(
            f"an eigenpair has not converged: residual {worst:.3g} times its eigenvalue; "
            "the low spectrum is too near zero"
        )
    if not sparse:
        return None
    shift = (values[positive.stop - 1] + values[positive.stop]) / 2
    return Factors(A, -shift).count_negative()
