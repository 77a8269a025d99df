"""The orthogonal projection on the global sections."""

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import cochain, eps_of, flag
from sheafcoarsen.operators import as_columns, coboundary
from sheafcoarsen.sections.normal_equations import NormalEquations, column_units
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, unit_sheaf


def nearest_section(
    sheaf: CellularSheaf, x: npt.ArrayLike, *, progress: bool = False
) -> np.ndarray:
    """Return the orthogonal projection of x on the global sections, (I - delta^+ delta) x.

    No basis of the sections is formed, however many there are.

    Parameters
    ----------
    sheaf : CellularSheaf
    x : array_like, shape (dim_c0,) or (dim_c0, h)
    progress : bool
        Show a bar of the digits reached.

    Returns
    -------
    section : ndarray, shape of x
        In the common scalar type of x and the sheaf.

    Raises
    ------
    numpy.linalg.LinAlgError
        Where the iteration does not converge.

    Notes
    -----
    Method and precision are those of :func:`harmonic_extension`, on a delta whose rows are first
    scaled to the same size, which changes no section. A unit cochain u with norm(delta u) <=
    max(delta.shape) eps norm(delta) counts as a section, eps being that of the sheaf. One with
    norm(delta u) = sigma beyond that is removed with a relative error of about eps norm(delta) /
    sigma.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(3))
    >>> sc.nearest_section(F, [3.0, 0.0, 0.0]).round(12)
    array([1., 1., 1.])
    """
    x = cochain(check_sheaf(sheaf), x)
    progress = flag("progress", progress)
    work = as_columns(x).astype(np.result_type(x.dtype, np.float64))
    delta, eps = coboundary(unit_sheaf(sheaf)[0]), eps_of(sheaf.dtype)
    units = column_units(work)
    work = work / units
    solver = NormalEquations(_equal_rows(delta, eps), eps, progress)
    section = solver.kernel_part(work)
    return (section * units).astype(x.dtype).reshape(x.shape)


def _equal_rows(delta: scipy.sparse.csr_array, eps: float) -> scipy.sparse.csr_array:
    """Return delta with rows scaled by powers of two to entries of the size of 1.

    Rows of rounding size stay, so that they do not begin to count.
    """
    if 0 in delta.shape:
        return delta
    largest = abs(delta).max(axis=1).toarray().reshape(-1)
    scale = np.where(
        largest > eps * largest.max(initial=0.0), np.ldexp(1.0, -np.frexp(largest)[1]), 1.0
    )
    return scipy.sparse.csr_array(scipy.sparse.diags_array(scale) @ delta)
