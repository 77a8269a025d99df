"""The energy of a cochain, in total and edge by edge."""

from __future__ import annotations

import numpy as np

from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._support import CochainLike, cochain
from sheafcoarsen.operators._coboundary import apply_coboundary, as_columns
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf


def edge_energy(sheaf: CellularSheaf, x: CochainLike) -> np.ndarray:
    """Return norm((delta x)_e)^2 for every edge, the summands of ``eq:sheaf-energy``.

    Parameters
    ----------
    sheaf : CellularSheaf
    x : array_like, shape (dim_c0,) or (dim_c0, h)

    Returns
    -------
    ndarray, shape (m,) or (m, h)

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.edge_energy(sc.CellularSheaf.constant([[0, 1], [1, 2]]), [0.0, 1.0, 3.0])
    array([1., 4.])
    """
    x = cochain(check_sheaf(sheaf), x)
    y = apply_coboundary(sheaf, as_columns(x))
    out = np.empty((sheaf.n_edges, y.shape[1]), y.real.dtype)
    kernels.sum_products(sheaf.edge_offsets, y, y, out)
    return out.reshape(sheaf.n_edges, *x.shape[1:])


def energy(sheaf: CellularSheaf, x: CochainLike) -> float | np.ndarray:
    """Return the energy x* L x = norm(delta x)^2 (``eq:sheaf-energy``, ``eq:app-sheaf-energy``).

    The Dirichlet energy x* Delta x (``eq:app-dirichlet-energy-single``) is
    ``energy(normalize(sheaf), x)``; every edge counts once, so there is no factor 1/2
    (``eq:app-dirichlet-energy-edge``). Every column of x has its own energy, and the energy of
    several channels is the sum of these (``eq:app-dirichlet-energy-matrix``).

    Parameters
    ----------
    sheaf : CellularSheaf
    x : array_like, shape (dim_c0,) or (dim_c0, h)

    Returns
    -------
    float, or ndarray of shape (h,)

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.energy(sc.CellularSheaf.constant([[0, 1], [1, 2]]), [0.0, 1.0, 3.0])
    5.0
    """
    total = edge_energy(sheaf, x).sum(axis=0)
    return total if total.ndim else float(total)
