"""Comparison of the low spectra of L and of R* L R."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import ReadOnly, checks, linalg, ragged, tables, threads, warned
from sheafcoarsen.coarsening import Coarsening, check_coarsening, check_isometry, realized
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.quality.smallest_singular_values import (
    SPARSE_ABOVE,
    WIDENED,
    LowPairs,
    low_pairs,
)
from sheafcoarsen.sheaf import unit_sheaf
from sheafcoarsen.solve import Eigenmodes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class SpectralQuality(ReadOnly):
    """Errors of the first k positive eigenpairs of R* L R relative to those of L.

    Attributes
    ----------
    fine, coarse : ndarray, shape (k,)
        The lowest positive eigenvalues of L, and the eigenvalues of R* L R with the same indices,
        ascending. They are inf in ``coarse`` if the coarse space has too few. Coarse eigenvalues
        that replace lost global sections are not compared.
    relative_errors : ndarray, shape (k,)
        (coarse - fine) / fine, which is nonnegative by interlacing (docs/conventions.md, section
        8); values that are negative by rounding are set to 0.
    angles : ndarray, shape (k,)
        Principal angles, in radians, between the span of the fine eigenvectors and the span of the
        lifts R z of the coarse ones, ascending; pi / 2 for missing ones. A multiple coarse
        eigenvalue that k splits is included completely. The last angles are large if the
        eigenvalues k and k + 1 are close: choose another k.
    restricted_similarity : float
        norm(L^{1/2} (I - R R*) U_k Lambda_k^{-1/2}); inf if a global section is lost. For x in the
        span of U_k, norm(delta x) and norm(delta R R* x) differ by at most this fraction of
        norm(delta x): 0 is exact, and from 1 on it says little.
    kernel_fine, kernel_coarse : int
        Number of zero eigenvalues, determined from singular values of delta and of delta R.
    section_residual : float
        Maximum of norm(delta R z) / sqrt(norm(L, inf)) over unit coarse sections z: rounding.
    fine_vectors : ndarray, shape (dim_c0, k)
        Orthonormal eigenvectors of the ``fine`` eigenvalues, if stored.
    tied : bool
        Whether k splits an eigenvalue of L with too many copies to compare them all.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
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
    fine_vectors: np.ndarray | None = None
    tied: bool = False

    def to_frame(self) -> pd.DataFrame:
        """Return the eigenvalues as a pandas table.

        Returns
        -------
        pandas.DataFrame
            A row for each positive eigenvalue, by its number from 1 on with the zeros; the columns
            are fine, coarse, relative_error and angle. The angles are those between the spans,
            ascending, and not those of the eigenvectors in their rows.

        Raises
        ------
        ImportError
            Without pandas: ``pip install "sheafcoarsen[pandas]"``.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
        >>> sc.spectral_quality(C, k=1).to_frame()  # doctest: +SKIP
        """
        numbers = self.kernel_fine + 1 + np.arange(len(self.fine))
        columns = {"fine": self.fine, "coarse": self.coarse}
        columns |= {"relative_error": self.relative_errors, "angle": self.angles}
        return tables.data_frame("eigenvalue", numbers, columns)

    def __repr__(self) -> str:
        shown = {f.name.replace("_", " "): getattr(self, f.name) for f in fields(self)[:7]}
        names = {"fine": "fine, positive", "coarse": "coarse, of R* L R"}
        names["angles"] = "angles of the spans, ascending"
        names["restricted similarity"] = f"restricted similarity ({self._scale})"
        shown = {names.get(name, name): value for name, value in shown.items()}
        if self.kernel_coarse < self.kernel_fine:
            shown["zeros lost, so pairs are shifted"] = self.kernel_fine - self.kernel_coarse
        return "SpectralQuality\n" + tables.number_lines(shown)

    @property
    def _scale(self) -> str:
        """How to read the restricted similarity."""
        large = self.restricted_similarity >= 1
        return "0 is exact, from 1 on it says little" if large else "0 is exact"

    def _repr_html_(self) -> str:
        columns = (self.fine, self.coarse, self.relative_errors)
        rows: list[tuple] = [
            (str(self.kernel_fine + 1 + i), *row)  # the index counts zeros, too
            for i, row in enumerate(zip(*(c[:10].tolist() for c in columns), strict=True))
        ]
        if len(self.fine) > 10:
            rows.append(("…", f"{len(self.fine):,} in all", "", ""))
        head = ("i-th eigenvalue", "fine", "coarse", "relative error")
        rest = [
            ("zero eigenvalues, fine", self.kernel_fine),
            ("zero eigenvalues, coarse", self.kernel_coarse),
            ("restricted similarity", f"{self.restricted_similarity:.4g} ({self._scale})"),
            # ascending, and not those of single eigenvectors: no column of the table above
            ("principal angles between the spans", f"{tables.span(self.angles)} rad"),
        ]
        return tables.table(rows, head=head, caption="SpectralQuality") + tables.table(rest)


def principal_angles(U: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return the principal angles between two column spaces, ascending.

    Small angles are computed from their sines (Bjorck and Golub, Math. Comp. 27, 1973). scipy's
    ``subspace_angles`` uses cosines for some small angles if there are also large ones, which
    causes errors of sqrt(eps).
    """
    U, V = (scipy.linalg.qr(X, mode="economic")[0] for X in (U, V))
    if U.shape[1] < V.shape[1]:
        U, V = V, U
    inner = U.conj().T @ V
    cosines = scipy.linalg.svdvals(inner)
    sines = scipy.linalg.svdvals(V - U @ inner)[::-1]
    small, large = np.arcsin(sines.clip(max=1)), np.arccos(cosines.clip(max=1))
    return np.maximum.accumulate(np.where(cosines**2 >= 0.5, small, large))


def spectral_quality(
    C: Coarsening,
    k: int,
    fine: Eigenmodes | SpectralQuality | None = None,
    *,
    progress: bool = False,
) -> SpectralQuality:
    """Compare the first k positive eigenpairs of L with those of L_Gal = R* L R.

    L_Gal is the operator of ``eq:sheaf_galerkin_operator``. The i-th positive eigenvalue of L is
    compared with the eigenvalue of R* L R with the same index; zero eigenvalues are only counted.
    If k splits a multiple eigenvalue of L, k is increased by less than 100 to include it
    completely; if L has fewer than k positive eigenvalues, all are compared. All pairs have
    converged, or an error is raised: large problems are solved as by :func:`eigenmodes`, which
    searches for missing pairs.

    There is no ``mass``: in L x = lambda M x, the coarse matrix R* M R would not be diagonal, and R
    is orthonormal for M = I only. The eigenvalues of (L, M) are those of the sheaf whose maps at
    every vertex v are divided by sqrt(m_v), so coarsen that sheaf.

    Parameters
    ----------
    C : Coarsening
        A coarsening whose prolongation R is an isometry.
    k : int
        Number of eigenpairs, from 1 to dim C^0 of the coarse sheaf.
    fine : Eigenmodes or SpectralQuality, optional
        Eigenmodes of ``C.fine``, or the quality of another coarsening of ``C.fine``. Their pairs
        are reused, and missing pairs are computed.
    progress : bool
        Show a progress bar.

    Returns
    -------
    SpectralQuality

    Raises
    ------
    ValueError
        If k is out of range, the basis is not orthonormal, or ``fine`` belongs to another sheaf.
    TypeError
        If ``fine`` has another type.
    numpy.linalg.LinAlgError
        If an eigenpair does not converge.

    Warns
    -----
    SingularProblemWarning
        If k splits an eigenvalue of L or of R* L R of larger multiplicity, as on stars. Exactly k
        pairs are then compared, and which of its eigenvectors are included is arbitrary.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(6))
    >>> Q = sc.spectral_quality(sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2), 2)
    >>> abs(Q.relative_errors).round(3), Q.kernel_fine, Q.kernel_coarse
    (array([0.042, 0.   ]), 1, 1)
    """
    k, progress = checks.whole_number("k", k, at_least=1), checks.flag("progress", progress)
    if k > check_coarsening(C).sheaf.dim_c0:
        raise ValueError(
            f"`k` = {k} exceeds the dimension {C.sheaf.dim_c0} of the coarse C^0: use "
            "a smaller `k` or retain more modes"
        )
    check_isometry(C, "spectral quality")
    F, unit = unit_sheaf(C.fine)
    delta = coboundary(F)
    R = C.prolongation.astype(np.result_type(C.prolongation.dtype, delta.dtype))
    eps = linalg.eps_of(C.fine.dtype)
    steps = threads.bar(2, "spectra", progress)
    size = float(np.sqrt(linalg.inf_norm(laplacian(F))))
    solve = partial(low_pairs, eps=eps, size=size)
    coarse_sheaf = None  # a sheaf whose Laplacian is R* L R up to a factor
    if R.shape[1] > SPARSE_ABOVE:
        exact = C.loops and C.fine.dtype == F.dtype
        D = C
        if not exact:
            on_unit = C.R.on(F, C.clusters)
            D = realized(on_unit, C.partition, None, loops=True, compress=False)
        coarse_sheaf = unit_sheaf(D.sheaf)[0]
    of_coarse = partial(solve, scipy.sparse.csr_array(delta @ R), sheaf=coarse_sheaf)
    coarse = of_coarse(k)
    steps.update()
    known = R @ coarse.vectors[:, : coarse.end] if fine is None else _reused(fine, delta, unit)
    pairs = solve(delta, k, sheaf=F, known=known)
    sigma, U = pairs.sigma[: pairs.end], pairs.vectors[:, : pairs.end]
    count, lost = len(sigma), pairs.kernel - coarse.kernel
    first = max(lost, 0)  # skip the positive coarse eigenvalues that replace lost sections
    if coarse.end < count + first:
        coarse = of_coarse(count + first)
    steps.update()
    steps.close()
    cut = next((found for found in (pairs, coarse) if found.is_cut), None)
    if cut is not None:
        value = float(cut.sigma[cut.end - 1] * unit) ** 2
        warned.warn(
            f"`k` = {k} splits the eigenvalue {value:.6g} of {'L' if cut is pairs else 'R* L R'}, "
            f"which has at least {WIDENED} more copies: {k} pairs are compared, and angles and "
            "similarity depend on the choice of eigenvectors",
            SingularProblemWarning,
        )

    values = sigma**2
    rounding = linalg.RESIDUAL_LIMIT * eps * size**2 / values
    nu = np.full(count, np.inf)
    compared = coarse.sigma[first:][:count]
    nu[: len(compared)] = compared**2
    errors = (nu - values) / values
    errors[(errors < 0) & (errors >= -rounding)] = 0  # interlacing rules out negative errors
    angles = np.full(count, np.pi / 2)
    lifted = R @ coarse.vectors[:, first : coarse.end]
    if count and lifted.shape[1]:
        with threads.single_threaded_blas():
            between = principal_angles(U, lifted)
        angles[: len(between)] = between
    similarity = np.inf
    if lost <= 0:
        missed = delta @ ((U - R @ (R.conj().T @ U)) / sigma)
        with threads.single_threaded_blas():
            similarity = float(np.linalg.norm(missed, 2)) if missed.size else 0.0
    return SpectralQuality(
        fine=ragged.read_only(values * unit * unit),
        coarse=ragged.read_only(nu * unit * unit),
        relative_errors=ragged.read_only(errors),
        angles=ragged.read_only(angles),
        restricted_similarity=similarity,
        kernel_fine=pairs.kernel,
        kernel_coarse=coarse.kernel,
        section_residual=coarse.zero / size if size else 0.0,
        fine_vectors=ragged.read_only(U),
        tied=pairs.is_cut,
    )


def _reused(fine: Eigenmodes | SpectralQuality, delta: Any, unit: float) -> LowPairs:
    """Check that pairs are eigenpairs of the fine sheaf; return those of positive eigenvalues.

    ``delta`` is the coboundary of the fine sheaf divided by ``unit``.
    """
    if isinstance(fine, Eigenmodes):
        values, U, zeros = fine.values, fine.vectors, fine.n_zero
    elif isinstance(fine, SpectralQuality) and fine.fine_vectors is not None:
        values, U, zeros = fine.fine, fine.fine_vectors, fine.kernel_fine
    else:
        raise TypeError(
            f"`fine` must be Eigenmodes or a SpectralQuality, got {type(fine).__name__}"
        )
    if len(U) != delta.shape[1]:
        raise ValueError(
            f"`fine` must belong to C.fine, whose C^0 has dimension {delta.shape[1]}, but its "
            f"vectors have {len(U)} entries"
        )
    U = U.astype(np.result_type(U.dtype, delta.dtype))
    scaled = values.astype(np.float64) / unit / unit
    L = scipy.sparse.csr_array(delta.conj().T @ delta)
    errors = np.linalg.norm(L @ U - U * scaled, axis=0)
    bound = linalg.inf_norm(L)
    bad = np.flatnonzero(errors > 1e-5 * bound * np.maximum(np.linalg.norm(U, axis=0), 1))
    if bad.size or abs(U.conj().T @ U - np.eye(U.shape[1])).max(initial=0.0) > 1e-5:
        where = f"pair {bad[0]} is none" if bad.size else "its vectors are not orthonormal"
        raise ValueError(
            f"`fine` must hold eigenpairs of C.fine, computed without mass, but {where}: "
            "use eigenmodes(C.fine, k), with a smaller tol if pairs are none (for masses see "
            "the guide to surfaces)"
        )
    scaled, U = scaled[values > 0], U[:, values > 0]
    return LowPairs(np.sqrt(scaled), U, len(scaled), zeros, 0.0, fine.tied)
