"""Least squares: the cochain whose coboundary is nearest to given data on the edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._support import (
    CochainLike,
    ReadOnly,
    Vertices,
    checks,
    labels,
    linalg,
    ragged,
    tables,
    warned,
)
from sheafcoarsen.exceptions import NotConverged, SingularProblemWarning
from sheafcoarsen.operators import as_columns, coboundary
from sheafcoarsen.sections import given_values
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf
from sheafcoarsen.solve._solver import Method, tolerance
from sheafcoarsen.solve.normal_equations import fit_free_vertices


@dataclass(frozen=True, eq=False, repr=False)
class LeastSquares(ReadOnly):
    """Minimizer x of norm(delta x - b), computed by :func:`least_squares`.

    Attributes
    ----------
    x : ndarray, shape (dim_c0,) or (dim_c0, h)
    edge_residuals : ndarray, shape (m,) or (m, h)
        norm((delta x - b)_e)^2.
    residual : float
        norm(g) / norm(g_given) over the free coordinates, with g = delta* (delta x - b) without its
        part in ker L and g_given the same at the given values, or this ratio after scaling stalks
        as in :class:`Solver` if that is larger. Sections of maps that were rounded to single
        precision count as ker L. It is the maximum over the columns, and 0 at an exact minimum.
    iterations : int
    method : str
        As in :class:`Solver`, or "plain" without a preconditioner, which "auto" tries first if
        there are very many sections.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.least_squares(sc.CellularSheaf.constant([[0, 1]]), [3.0]).x.round(12)
    array([ 1.5, -1.5])
    """

    x: np.ndarray
    edge_residuals: np.ndarray
    residual: float
    iterations: int
    method: str

    def __repr__(self) -> str:
        total = float(self.edge_residuals.sum())
        return (
            f"LeastSquares(x of shape {self.x.shape}, norm(delta x - b)^2 = {total:.4g}, "
            f"residual={self.residual:.2g}, iterations={self.iterations}, method={self.method!r})"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("x", " x ".join(map(str, self.x.shape))),
            ("norm(delta x - b)^2", f"{float(self.edge_residuals.sum()):.4g}"),
            ("largest edge residual", f"{float(self.edge_residuals.max(initial=0.0)):.4g}"),
            ("residual", f"{self.residual:.2g}"),
            ("iterations", self.iterations),
            ("method", self.method),
        ]
        return tables.table(rows, caption="LeastSquares")


def least_squares(
    sheaf: CellularSheaf,
    b: CochainLike,
    *,
    vertices: Vertices | None = None,
    values: Any = None,
    tol: float = 1e-10,
    method: Method = "auto",
    progress: bool = False,
) -> LeastSquares:
    """Return the 0-cochain x of least norm among those that minimize norm(delta x - b).

    Small problems are solved by a QR decomposition of delta, others by conjugate gradients on the
    normal equations L x = delta* b, preconditioned by :class:`Solver`. If values are given at some
    vertices, only the values at the other vertices are computed.

    Parameters
    ----------
    sheaf : CellularSheaf
    b : array_like, shape (dim_c1,) or (dim_c1, h)
        Data on the edges, in the order of C^1.
    vertices, values : optional
        Values given at some vertices, as in :func:`harmonic_extension`.
    tol : float
        Bound on the residual; a residual at the rounding level of products with delta counts as
        converged.
    method : {"auto", "direct", "multigrid", "jacobi"}
        As in :class:`Solver`.
    progress : bool

    Returns
    -------
    LeastSquares

    Raises
    ------
    ValueError, TypeError
        If data have the wrong shape or are not finite, or only one of ``vertices`` and ``values``
        is passed.
    NotConverged
        If the iteration does not reach ``tol``.

    Warns
    -----
    SingularProblemWarning
        If rounding errors may have determined the number of sections.

    Examples
    --------
    Heights from noisy differences, each the height of an edge's tail minus that of its head:

    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [0, 2]])
    >>> R = sc.least_squares(F, [1.0, 1.0, 2.3], vertices=[2], values=[[0.0]])
    >>> R.x.round(12), R.edge_residuals.round(12)
    (array([2.2, 1.1, 0. ]), array([0.01, 0.01, 0.01]))
    """
    check_sheaf(sheaf)
    checks.choice("method", method, get_args(Method))
    progress = checks.flag("progress", progress)
    tol = tolerance("tol", tol, linalg.eps_of(np.float64))
    data = checks.scalar_array("b", b)
    if data.ndim not in (1, 2) or len(data) != sheaf.dim_c1:
        raise ValueError(
            f"`b` must have shape (dim_c1,) or (dim_c1, h) with dim_c1 = {sheaf.dim_c1}, because "
            f"it holds data on edges; got shape {data.shape}"
        )
    if (bad := checks.first_true(~np.isfinite(as_columns(data)).all(axis=1))) is not None:
        raise ValueError(f"`b` must be finite, got {data[bad]} in row {bad}")
    dtype = np.result_type(data, sheaf.dtype)
    data = np.ascontiguousarray(data, dtype)
    largest = float(np.abs(data).max(initial=0.0))
    if largest > 100 * checks.range_limits(dtype)[1]:
        raise ValueError(
            f"`b` has entries up to {largest:.3g}, whose squares overflow {dtype}: rescale `b`"
        )
    if (vertices is None) != (values is None):
        missing = "values" if values is None else "vertices"
        raise ValueError(f"`vertices` and `values` must be passed together: `{missing}` is missing")
    columns = as_columns(data)
    x = np.zeros((sheaf.dim_c0, columns.shape[1]), columns.dtype)
    fixed = np.zeros(sheaf.n_vertices, bool)
    if vertices is not None:
        at = labels.vertex_indices("vertices", vertices, sheaf, once=True)
        fixed[at] = True
        given = given_values(sheaf, at, values)
        if given.ndim == 2 and given.shape[1] != columns.shape[1]:
            raise ValueError(
                f"`values` and `b` must have the same number of columns, got {given.shape[1]} and "
                f"{columns.shape[1]}"
            )
        x = x.astype(np.result_type(x, given))
        x[ragged.ranges(sheaf.vertex_offsets[at], sheaf.vertex_dims[at])] = as_columns(given)
    if x.dtype.kind == "c":
        dtype = np.result_type(dtype, np.complex64)
    real, double = x.real.dtype, np.result_type(x, np.float64)
    x, problem, residual, ratio = fit_free_vertices(
        sheaf, fixed, x.astype(double), columns, method, tol, progress
    )
    if problem.rank_warning is not None:
        warned.warn(problem.rank_warning, SingularProblemWarning)
    difference = coboundary(sheaf) @ x - columns
    sums = np.zeros((sheaf.n_edges, difference.shape[1]), difference.real.dtype)
    kernels.sum_products(sheaf.edge_offsets, difference, difference, sums)
    found = LeastSquares(
        ragged.read_only(x.reshape(len(x), *data.shape[1:]).astype(dtype)),
        ragged.read_only(sums.reshape(len(sums), *data.shape[1:]).astype(real)),
        residual,
        problem.iterations,
        problem.method,
    )
    if not ratio <= 1:
        raise NotConverged(
            f"the residual is {residual:.2g} after {problem.iterations} iterations, with `tol` = "
            f"{tol:g}: use a larger `tol` or another `method`",
            found,
        )
    return found
