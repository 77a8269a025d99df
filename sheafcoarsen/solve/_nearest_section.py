"""The orthogonal projection onto the global sections."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from sheafcoarsen._support import CochainLike, checks, linalg, threads
from sheafcoarsen.operators import as_columns, coboundary
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, unit_sheaf
from sheafcoarsen.solve._least_squares import NormalEquations, column_units, has_many_sections


def nearest_section(sheaf: CellularSheaf, x: CochainLike, *, progress: bool = False) -> np.ndarray:
    """Return the orthogonal projection of x onto the global sections, (I - delta^+ delta) x.

    Parameters
    ----------
    sheaf : CellularSheaf
    x : array_like, shape (dim_c0,) or (dim_c0, h)
    progress : bool
        Show a progress bar.

    Returns
    -------
    section : ndarray, shape of x
        In the common scalar type of x and the sheaf.

    Raises
    ------
    numpy.linalg.LinAlgError
        If neither a basis of the sections can be computed nor the iteration converges.

    Warns
    -----
    SingularProblemWarning
        If rounding may have decided which cochains are sections, as in :func:`global_sections`.

    Notes
    -----
    The basis of :func:`global_sections` is used. If the dimensions imply thousands of sections, or
    the basis cannot be computed, conjugate gradients solve min norm(delta z - delta x) for the z of
    least norm, and x - z is the section. The rows of delta are then scaled to about the same norm,
    which changes no section; a unit cochain u with norm(delta u) <= max(delta.shape) eps
    norm(delta) counts as a section, with eps = 2.2e-16 also for maps in single precision.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]])
    >>> sc.nearest_section(F, [3.0, 0.0, 0.0]).round(12)
    array([1., 1., 1.])
    """
    x = checks.cochain(check_sheaf(sheaf), x)
    progress = checks.flag("progress", progress)
    work = as_columns(x).astype(np.result_type(x.dtype, np.float64))
    units = column_units(work)
    work /= units
    by_basis = not has_many_sections(sheaf)
    with threads.bar(1, "nearest section", progress) as shown, threads.single_threaded_blas():
        try:
            section = _projected(sheaf, work, by_basis)
        except np.linalg.LinAlgError:
            section = _projected(sheaf, work, not by_basis)
        shown.update(1)
    return (section * units).astype(x.dtype).reshape(x.shape)


def _projected(sheaf: CellularSheaf, x: np.ndarray, by_basis: bool) -> np.ndarray:
    """Return the projection of x (dim_c0, h) onto the sections, by a basis or by an iteration."""
    if by_basis:
        S = global_sections(sheaf).basis
        return S @ (S.conj().T @ x)
    delta = coboundary(unit_sheaf(sheaf)[0])
    if 0 not in delta.shape:
        # scale rows by powers of two to maxima in 1/2 .. 1; those of rounding size stay negligible
        largest = abs(delta).max(axis=1).toarray().reshape(-1)
        seen = largest > linalg.eps_of(sheaf.dtype) * largest.max()
        scale = np.where(seen, np.ldexp(1.0, -np.frexp(largest)[1]), 1.0)
        delta = scipy.sparse.csr_array(scipy.sparse.diags_array(scale) @ delta)
    return NormalEquations(delta, sheaf).kernel_part(x)
