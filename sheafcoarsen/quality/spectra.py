"""How good a coarse space is: the low spectrum of L beside that of R* L R."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import (
    bar,
    eps_of,
    flag,
    read_only,
    single_threaded_blas,
    tables,
    whole_number,
)
from sheafcoarsen.coarsening import Coarsening, check_coarsening
from sheafcoarsen.ledger import check_isometry
from sheafcoarsen.modes import MAX_DENSE, SPARSE_ABOVE, SPARSE_SHARE, lowest_sparse
from sheafcoarsen.operators import Factors, coboundary

EPS = eps_of(np.float64)


CONVERGED = 1e-4
"""Residual of a positive eigenpair, in units of its eigenvalue, beyond which it has not converged.

Its eigenvalue is off by about the square of this.
"""


WHOLE = 20_000_000
"""Entries of a dense coboundary up to which all singular vectors are computed."""


SHOWN = 10
"""Eigenvalues that a notebook shows."""


@dataclass(frozen=True, eq=False, repr=False)
class SpectralQuality:
    """The first k positive eigenpairs of L beside those of R* L R, and the global sections of both.

    Attributes
    ----------
    fine, coarse : ndarray, shape (k,)
        The lowest positive eigenvalues of L, and those of R* L R of the same numbers i, ascending;
        inf in ``coarse`` where the coarse space has no more. What global sections have become that
        were lost is thus left out.
    relative_errors : ndarray, shape (k,)
        (coarse - fine) / fine, not negative beyond rounding (interlacing, docs/conventions.md,
        section 8).
    angles : ndarray, shape (k,)
        Principal angles between the span of the fine eigenvectors and the lifts R z of these coarse
        ones, ascending, pi / 2 for each that is missing. Where k splits a multiple coarse
        eigenvalue, the whole of it counts.
    restricted_similarity : float
        norm(L^{1/2} (I - R R*) U_k Lambda_k^{-1/2}); inf where a global section is lost.
    kernel_fine, kernel_coarse : int
        Number of zero eigenvalues, decided on singular values of delta and of delta R.
    section_residual : float
        The largest norm(delta R z) of the coarse sections z, in units of norm(delta): rounding.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
    >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
    >>> Q = sc.spectral_quality(C, k=1)
    >>> Q.fine.round(3), Q.coarse.round(3), Q.kernel_fine, Q.kernel_coarse
    (array([0.586]), array([1.]), 1, 1)
    """

    fine: np.ndarray
    coarse: np.ndarray
    relative_errors: np.ndarray
    angles: np.ndarray
    restricted_similarity: float
    kernel_fine: int
    kernel_coarse: int
    section_residual: float

    def __repr__(self) -> str:
        names = (
            "fine",
            "coarse",
            "relative_errors",
            "angles",
            "restricted_similarity",
            "kernel_fine",
            "kernel_coarse",
        )
        return "SpectralQuality\n" + tables.number_lines(
            {name.replace("_", " "): getattr(self, name) for name in names}
        )

    def _repr_html_(self) -> str:
        columns = (self.fine, self.coarse, self.relative_errors, self.angles)
        rows: list[tuple] = [
            (i + 1, *row)
            for i, row in enumerate(zip(*(c[:SHOWN].tolist() for c in columns), strict=True))
        ]
        if len(self.fine) > SHOWN:
            rows.append(("…", f"{len(self.fine):,} in all", "", "", ""))
        head = ("positive eigenvalue", "fine", "coarse", "relative error", "principal angle")
        rest = [
            ("zero eigenvalues, fine", self.kernel_fine),
            ("zero eigenvalues, coarse", self.kernel_coarse),
            ("restricted similarity", self.restricted_similarity),
        ]
        return tables.table(rows, head=head, caption="SpectralQuality") + tables.table(rest)


class _Pairs(NamedTuple):
    """Lowest singular values of a coboundary, ascending, and their right vectors.

    ``kernel`` of them count as zero; ``end`` is where the multiplet of the k-th positive one ends.
    """

    sigma: np.ndarray
    vectors: np.ndarray
    kernel: int
    end: int
    size: float


def spectral_quality(C: Coarsening, k: int, *, progress: bool = False) -> SpectralQuality:
    """Compare the first k positive eigenpairs of L with those of L_Gal = R* L R.

    L_Gal is that of ``eq:sheaf_galerkin_operator``.
    Zero eigenvalues are compared by number, the others one by one: the i-th of L with the i-th of
    R* L R. Where k splits a multiple eigenvalue of L, k is widened to its end; where L has fewer
    positive eigenvalues, all are compared. Every pair is converged, or there is an error: large
    problems are solved by Lanczos, and a factorization counts the eigenvalues so that none is
    missed.

    Parameters
    ----------
    C : Coarsening
        Its R must be an isometry.
    k : int
        At least 1, at most dim C^0 of the coarse sheaf.
    progress : bool
        Show a bar: the eigenpairs of L, then those of R* L R.

    Returns
    -------
    SpectralQuality

    Raises
    ------
    ValueError
        For a k out of range, or a basis that is not orthonormal.
    numpy.linalg.LinAlgError
        Where an eigenpair does not converge.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(6))
    >>> Q = sc.spectral_quality(sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2), 2)
    >>> abs(Q.relative_errors).round(3), Q.kernel_fine, Q.kernel_coarse
    (array([0.042, 0.   ]), 1, 1)
    """
    k, progress = whole_number("k", k, at_least=1), flag("progress", progress)
    if k > check_coarsening(C).sheaf.dim_c0:
        raise ValueError(
            f"`k` = {k} is more than the dimension {C.sheaf.dim_c0} of the coarse C^0: ask for "
            "fewer eigenvalues or keep more modes"
        )
    check_isometry(C, "spectral quality")
    unit = power_of_two(C.fine.largest_entry)
    delta = coboundary(C.fine).astype(np.result_type(C.fine.dtype, np.float64))
    delta.data /= unit
    R = C.prolongation.astype(np.result_type(C.prolongation.dtype, delta.dtype))
    eps, block = eps_of(C.fine.dtype), int(C.clusters.dims.max(initial=0))
    steps = bar(2, "spectra", progress)
    fine = _lowest(delta, k, block * eps, eps)
    steps.update()
    kept = slice(fine.kernel, fine.end)
    sigma, U = fine.sigma[kept], fine.vectors[:, kept]
    count = len(sigma)
    D = scipy.sparse.csr_array(delta @ R)
    coarse = _lowest(D, max(count, 1), block * eps, eps, fine.size)
    lost = fine.kernel - coarse.kernel
    if count and lost > 0:  # the eigenvalue of number i stands farther up
        coarse = _lowest(D, count + lost, block * eps, eps, fine.size)
    first = max(fine.kernel, coarse.kernel)
    steps.update()
    steps.close()

    values = sigma**2
    nu = np.full(count, np.inf)
    found = coarse.sigma[first:][:count]
    nu[: len(found)] = found**2
    angles = np.full(count, np.pi / 2)
    lifted = R @ coarse.vectors[:, first : coarse.end]
    if count and lifted.shape[1]:
        with single_threaded_blas():
            between = scipy.linalg.subspace_angles(U, lifted)[::-1]
        angles[: len(between)] = between
    similarity = np.inf
    if lost <= 0:
        missed = delta @ ((U - R @ (R.conj().T @ U)) / sigma)
        with single_threaded_blas():
            similarity = float(np.linalg.norm(missed, 2)) if missed.size else 0.0
    zero = float(coarse.sigma[: coarse.kernel].max(initial=0.0))
    return SpectralQuality(
        fine=read_only(values * unit * unit),
        coarse=read_only(nu * unit * unit),
        relative_errors=read_only((nu - values) / values),
        angles=read_only(angles),
        restricted_similarity=similarity,
        kernel_fine=fine.kernel,
        kernel_coarse=coarse.kernel,
        section_residual=zero / fine.size if fine.size else 0.0,
    )


@single_threaded_blas()
def _lowest(
    D: scipy.sparse.csr_array, k: int, accuracy: float, eps: float, size: float | None = None
) -> _Pairs:
    """Return the zero singular values of D and the first k positive ones.

    There are more than k where the k-th one's multiplet ends later.

    ``size`` is the norm against which a singular value is zero, by default that of D (a bound of
    it).
    """
    n = D.shape[1]
    A = scipy.sparse.csr_array(D.conj().T @ D)
    bound = float(abs(A).sum(axis=1).max(initial=0.0))
    size = float(np.sqrt(bound)) if size is None else size
    if bound == 0:
        return _Pairs(np.zeros(0), np.zeros((n, 0), A.dtype), n, n, size)
    level = max(accuracy, max(D.shape) * EPS) * size
    m = n if n <= SPARSE_ABOVE and n * D.shape[0] <= WHOLE else min(n, k + k // 4 + 8)
    while True:
        sparse = n > SPARSE_ABOVE and (m * SPARSE_SHARE <= n or n > MAX_DENSE)
        sigma, X = _ritz(D, A, m, sparse)
        kernel = int((sigma <= level).sum())
        values = sigma**2
        tie = np.sqrt(EPS) * values[1:] + 4 * eps * size * size
        ends = np.flatnonzero(np.diff(values) > tie) + 1
        ends = ends[ends >= min(kernel + k, n)]
        if ends.size or m == n:
            end = int(ends[0]) if ends.size else n
            break
        m = min(n, 2 * m)
    if m < n:
        _sure(A, values, X, kernel, end, sparse)
    return _Pairs(sigma, X, kernel, end, size)


def _ritz(D, A, m: int, sparse: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the m lowest singular values of D, ascending, and right singular vectors.

    The eigenvectors of A = D* D span the space, the singular values are those of D on it: squaring
    would resolve them only to sqrt(eps).
    """
    n = A.shape[0]
    if sparse and m * SPARSE_SHARE > n:
        raise np.linalg.LinAlgError(
            "k, the zero eigenvalues and the multiple ones together need more than "
            f"{n // SPARSE_SHARE} of {n} eigenpairs, beyond "
            f"what the sparse method is for: ask for a smaller k"
        )
    X = (
        lowest_sparse(A, m, EPS)[1]
        if sparse
        else scipy.linalg.eigh(A.toarray(), subset_by_index=[0, m - 1])[1]
    )
    Y = D @ X
    if Y.shape[0] < m:  # so that there are m singular values
        Y = np.vstack([Y, np.zeros((m - Y.shape[0], m), Y.dtype)])
    _, sigma, V = np.linalg.svd(Y, full_matrices=False)
    return sigma[::-1], np.ascontiguousarray(X @ V.conj().T[:, ::-1])


def _sure(A, values, X, kernel: int, end: int, sparse: bool) -> None:
    """Refuse pairs that have not converged, and spectra with a hole.

    The inertia of A - s I, s above the last eigenvalue, counts how many there ought to be.
    """
    U = X[:, kernel:end]
    residuals = np.linalg.norm(A @ U - U * values[kernel:end], axis=0)
    worst = float((residuals / values[kernel:end]).max(initial=0.0))
    if worst > CONVERGED:
        raise np.linalg.LinAlgError(
            f"an eigenpair has not converged: residual {worst:.3g} times its eigenvalue; the low "
            "spectrum is too near zero"
        )
    if not sparse:
        return
    shift = (values[end - 1] + values[end]) / 2
    below = Factors(A, -shift).count_negative()
    if below != end:
        raise np.linalg.LinAlgError(
            f"found {end} eigenvalues where the inertia counts {below}: some did not converge"
        )
