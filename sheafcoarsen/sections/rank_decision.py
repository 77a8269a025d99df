"""Step (d): decomposing the last sheaf densely, and deciding which singular values are zero.

If coarsening is slow, a Cholesky factorization checks whether the coboundary clearly has full rank;
then its singular values are not needed.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh, splu

from sheafcoarsen._kernels.sections import ZERO_ROUNDING
from sheafcoarsen._support import EPS, linalg, ragged
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sheaf import (
    CellularSheaf,
    both_ends,
    component_labels,
    spanning_forest,
    unit_sheaf,
)

LARGEST = 10_000
"""Maximum dimension of delta delta* or delta* delta for which it is factored densely."""


class FullRank(NamedTuple):
    """Kernel of a coboundary of full rank, as the orthogonal complement of its row space.

    If there are more rows than coordinates, only the shape of ``adjoint`` matters.
    """

    adjoint: scipy.sparse.csr_array  # rows of delta scaled to norm 1, as columns
    smallest: float  # estimate of the smallest singular value of delta, usually from below

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a basis of ker delta."""
        n, k = self.adjoint.shape
        return n, n - k

    def basis(self, change: scipy.sparse.csr_array | None = None) -> np.ndarray:
        """Return an orthonormal basis of ker delta, or of C (ker delta) for a ``change`` C."""
        n, h = self.shape
        if h == 0:
            return np.zeros((n, 0), self.adjoint.dtype)
        A = self.adjoint.toarray(order="F")
        if change is not None:
            A = splu(scipy.sparse.csc_array(change.conj().T)).solve(A)
        last = np.eye(n, h, h - n, dtype=A.dtype, order="F")  # unit vectors
        X = scipy.linalg.qr_multiply(A, last, "left", overwrite_a=True, overwrite_c=True)[0]
        return np.ascontiguousarray(X)


def singular_pairs(
    D: scipy.sparse.csr_array, X: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the singular values of D on span X, ascending, and their right singular vectors.

    X must have orthonormal columns; by default, it is the identity. Square roots of the eigenvalues
    of D* D would be accurate only to sqrt(eps).
    """
    Y = D if X is None else D @ X
    m = Y.shape[1]
    rows = max(1000, 2 * m)  # so that the dense block has at most a few times m^2 entries
    triangle = np.zeros((0, m), Y.dtype)
    for lo in range(0, D.shape[0], rows):
        block = Y[lo : lo + rows]
        triangle = np.concatenate([triangle, block.toarray() if X is None else block])
        if len(triangle) > m:
            triangle = np.asarray(np.linalg.qr(triangle, mode="r"))
    _, found, adjoint = np.linalg.svd(triangle, full_matrices=True)
    sigma, V = np.zeros(m), adjoint[::-1].conj().T
    sigma[: len(found)] = found
    return sigma[::-1], np.ascontiguousarray(V if X is None else X @ V)


def zero_threshold(n: int, eps: float, dropped: float) -> float:
    """Return the largest singular value that counts as zero, in dimension n.

    Elimination divides rounding errors by singular values of at least ``dropped``.
    """
    return ZERO_ROUNDING * max(eps, n * EPS) / dropped


def doubt(
    zero: float, nonzero: float, threshold: float, weight: float, dtype: np.dtype, rows: int
) -> str | None:
    """Return the reason why rounding may have determined the rank, or None if the rank is clear.

    ``rows`` is the number of rows of delta on the finest level. Ill-conditioned maps amplify
    rounding errors of zeros by the factor ``weight``.
    """
    # Size in units of eps up to which a singular value is clearly zero. Larger ones are doubtful,
    # unless many rows explain them by rounding, eps sqrt(rows), or the threshold is far above
    large_zero = 100
    rounding = max(large_zero * linalg.eps_of(dtype), EPS * np.sqrt(rows))
    # Minimum ratio of the threshold to values that are clearly zero, and of the smallest nonzero
    # value to the largest zero
    small_gap = 1e3
    largest = max(rounding, threshold / small_gap) * weight
    # Ratio to the threshold at which a singular value is clearly positive. It is smaller for single
    # precision: only the maps are rounded to it, and the effect is better known than in double.
    clear = 1e3 if np.finfo(dtype).bits == 64 else 3.0
    smallest = max(clear * threshold, small_gap * zero)
    if zero <= largest and nonzero >= smallest:
        return None
    other = "" if nonzero == np.inf else f" and the smallest nonzero one is {nonzero:.2g}"
    return (
        f"with edges and stalks scaled to 1 (see global_sections), the largest singular value "
        f"counted as zero is {zero:.2g}{other}; the decision would be clear without singular "
        f"values between {largest:.2g} and {smallest:.2g}"
    )


def section_bound(F: CellularSheaf) -> int:
    """Return an upper bound on h0 from the ranks of individual maps, not of products along paths.

    Since F_{v->e} x_v = F_{u->e} x_u, a section is determined by its values at the roots of a
    spanning forest and by its components in the kernels of the maps F_{v->e} at the ends v of tree
    edges that are farther from the root. Doubtful zeros count as zeros.
    """
    labels = component_labels(F.n_vertices, F.edges)
    by_dimension = np.lexsort((F.vertex_dims, labels))
    roots = by_dimension[np.diff(labels[by_dimension], prepend=-1) > 0]
    parent_edges = spanning_forest(F.n_vertices, F.edges, roots)[2]
    children = np.flatnonzero(parent_edges >= 0)
    edges = parent_edges[children]
    bound = int(F.vertex_dims[roots].sum())
    for vertices, data, starts in both_ends(unit_sheaf(F)[0]):
        own = edges[vertices[edges] == children]
        shapes = np.stack([F.edge_dims[own], F.vertex_dims[vertices[own]]], axis=1)
        bound += int(shapes[:, 1].sum())
        for _, maps in ragged.stacks(ragged.blocks(data, starts, own), shapes):
            sigma = np.linalg.svd(maps, compute_uv=False)
            relative = ZERO_ROUNDING * max(maps.shape[1:]) * linalg.eps_of(F.dtype)
            level = relative * sigma.max(axis=1, keepdims=True, initial=0.0)
            bound -= int((sigma > level).sum())
    return bound


def sections_of_full_rank(sheaf: CellularSheaf) -> FullRank | None:
    """Return the sections if delta clearly has independent rows or columns, else None."""
    D = coboundary(sheaf)
    rows, columns = D.shape
    if 0 in D.shape or min(rows, columns) > LARGEST:
        return None
    A = D if rows <= columns else scipy.sparse.csr_array(D.conj().T)
    sizes = np.sqrt((abs(A) ** 2).sum(axis=1))
    if sizes.min() == 0:
        return None
    A = scipy.sparse.csr_array(scipy.sparse.diags_array(1 / sizes) @ A)
    adjoint = scipy.sparse.csr_array(A.conj().T)
    K = scipy.sparse.csr_array(A @ adjoint)
    # Above this dimension, a factorization may take seconds, and a rough estimate 0.1 seconds
    estimated_above = 2000
    if K.shape[0] > estimated_above:
        x = np.random.default_rng(0).standard_normal(K.shape[0]).astype(K.dtype)
        try:  # Lanczos with 20 restarts
            lowest = eigsh(K, 1, which="SA", tol=0.1, v0=x, maxiter=20, return_eigenvectors=False)
        except ArpackNoConvergence:
            return None
        if not lowest[0] > 1e-5:
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
    if rows > columns:  # there are no sections
        adjoint = A[:, :columns]
    return FullRank(adjoint, smallest * float(sizes.min()))
