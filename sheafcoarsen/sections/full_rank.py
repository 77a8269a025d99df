"""Sections of a sheaf whose coboundary clearly has full rank."""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, splu

from sheafcoarsen.operators import coboundary
from sheafcoarsen.sheaf import CellularSheaf

LARGEST = 10_000
"""Maximum dimension of delta delta* or delta* delta for which it is factored densely."""


class FullRank(NamedTuple):
    """Sections of a coboundary of full rank, as the orthogonal complement of its rows.

    The columns of ``adjoint`` are the rows of delta scaled to norm 1, or as many of them as there
    are coordinates; ``smallest`` is the smallest singular value of delta.
    """

    adjoint: scipy.sparse.csr_array
    smallest: float

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a basis of ker delta."""
        n, k = self.adjoint.shape
        return n, n - k

    def basis(self, change: scipy.sparse.csr_array | None = None) -> np.ndarray:
        """Return an orthonormal basis of ker delta, in coordinates after an invertible change.

        It is the orthogonal complement of ``adjoint``, whose Householder reflections are applied to
        the last unit vectors.
        """
        n, h = self.shape
        if h == 0:
            return np.zeros((n, 0), self.adjoint.dtype)
        A = self.adjoint.toarray(order="F")
        if change is not None:
            A = splu(scipy.sparse.csc_array(change.conj().T)).solve(A)
        k, name = n - h, "unmqr" if A.dtype.kind == "c" else "ormqr"
        factor, multiply = scipy.linalg.get_lapack_funcs(("geqrf", name), (A,))
        # workspaces for 64 reflections at a time
        reflections, tau, _, _ = factor(A, lwork=max(64 * k, 1), overwrite_a=True)
        X = np.zeros((n, h), A.dtype, order="F")
        X[np.arange(k, n), np.arange(h)] = 1
        X, _, _ = multiply("L", "N", reflections, tau, X, max(64 * h, 1), overwrite_c=True)
        return np.ascontiguousarray(X)


def sections_of_full_rank(sheaf: CellularSheaf) -> FullRank | None:
    """Return the sections if delta clearly has independent rows or columns, else None.

    If the rows are independent (H^1 = 0), the sections are their orthogonal complement; if the
    columns are independent, there are none.
    """
    D = coboundary(sheaf)
    rows, columns = D.shape
    if 0 in D.shape or min(rows, columns) > LARGEST:
        return None
    sizes = np.sqrt(np.asarray((abs(D) ** 2).sum(axis=int(rows <= columns))).reshape(-1))
    if sizes.min() == 0:
        return None
    scale = scipy.sparse.diags_array(1 / sizes)
    D = scipy.sparse.csr_array(scale @ D if rows <= columns else D @ scale)
    adjoint = scipy.sparse.csr_array(D.conj().T)
    K = scipy.sparse.csr_array(D @ adjoint if rows <= columns else adjoint @ D)
    # Above this dimension, a factorization may take seconds, and a rough estimate 0.1 seconds
    estimated_above = 2000
    if K.shape[0] > estimated_above and not _looks_regular(K):
        return None
    K = K.toarray(order="F")
    try:
        factor = scipy.linalg.cholesky(K, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    x = np.random.default_rng(0).standard_normal(len(factor)).astype(factor.dtype)
    for _ in range(8):  # inverse iterations estimate the smallest singular value
        x = scipy.linalg.cho_solve((factor, True), x / np.linalg.norm(x), check_finite=False)
    smallest = 1 / np.sqrt(float(np.linalg.norm(x)))
    # Estimated smallest eigenvalue of a unit-diagonal matrix above which it certainly has full
    # rank. The estimate is correct within a factor of 10, and squaring loses singular values below
    # 1e-8.
    clear = 1e-7
    if smallest**2 < clear:
        return None
    return FullRank(adjoint[:, : min(rows, columns)], smallest * float(sizes.min()))


def _looks_regular(K: scipy.sparse.csr_array) -> bool:
    """Return whether Lanczos with 20 restarts finds a smallest eigenvalue that is not near zero."""
    start = np.random.default_rng(0).standard_normal(K.shape[0]).astype(K.dtype)
    try:
        found = eigsh(K, 1, which="SA", tol=0.1, v0=start, maxiter=20, return_eigenvectors=False)
    except ArpackNoConvergence:
        return False
    return bool(found[0] > 1e-5)
