"""The cochain whose coboundary is nearest to data on the edges."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._support import (
    ReadOnly,
    choice,
    flag,
    range_limits,
    ranges,
    read_only,
    scalar_array,
    tables,
)
from sheafcoarsen.operators import as_columns, coboundary
from sheafcoarsen.sections import given_values, given_vertices
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf
from sheafcoarsen.solve.solver import METHODS, Method, Solver, column_norms, solve_in_range


@dataclass(frozen=True, eq=False, repr=False)
class LeastSquares(ReadOnly):
    """The solution of min norm(delta x - b); :func:`least_squares` computes it.

    Attributes
    ----------
    x : ndarray, shape (dim_c0,) or (dim_c0, h)
    edge_residuals : ndarray, shape (m,) or (m, h)
        norm of (delta x - b)_e squared.
    residual : float
        norm(delta* (delta x - b)) / norm(delta* (b - delta x_given)) over the free coordinates, the
        largest over the columns: 0 at the minimum.
    iterations : int
    method : str

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
    b: npt.ArrayLike,
    *,
    vertices: npt.ArrayLike | None = None,
    values: Any = None,
    tol: float = 1e-10,
    method: Method = "auto",
    progress: bool = False,
) -> LeastSquares:
    """Return the 0-cochain x of least norm among those that minimize norm(delta x - b).

    The normal equations L x = delta* b are solved by :class:`Solver`; with values given at some
    vertices, for the others.

    Parameters
    ----------
    sheaf : CellularSheaf
    b : array_like, shape (dim_c1,) or (dim_c1, h)
        Data on the edges, in the order of C^1.
    vertices, values : optional
        Values given at some vertices, as in :func:`harmonic_extension`.
    tol : float
        Of the residual.
    method : {"auto", "direct", "multigrid", "jacobi"}
        As in :class:`Solver`.
    progress : bool

    Returns
    -------
    LeastSquares

    Raises
    ------
    ValueError, TypeError
        Data of another shape or not finite; one of ``vertices`` and ``values`` without the other.
    NotConverged
        Where the iteration does not reach ``tol``.

    Examples
    --------
    Heights from noisy differences, each edge saying how much higher its tail is than its head:

    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [0, 2]])
    >>> R = sc.least_squares(F, [1.0, 1.0, 2.3], vertices=[2], values=[[0.0]])
    >>> R.x.round(12), R.edge_residuals.round(12)
    (array([2.2, 1.1, 0. ]), array([0.01, 0.01, 0.01]))
    """
    check_sheaf(sheaf)
    choice("method", method, METHODS)
    progress = flag("progress", progress)
    data = _edge_data(sheaf, b)
    if (vertices is None) != (values is None):
        missing = "values" if values is None else "vertices"
        raise ValueError(f"`vertices` and `values` go together, but `{missing}` is not given")
    columns = as_columns(data)
    known = np.zeros((sheaf.dim_c0, columns.shape[1]), columns.dtype)
    fixed = None
    if vertices is not None:
        fixed = given_vertices(sheaf, vertices)
        given = given_values(sheaf, fixed, values)
        if given.ndim == 2 and given.shape[1] != columns.shape[1]:
            raise ValueError(
                f"`values` have {given.shape[1]} columns and `b` has {columns.shape[1]}: they must "
                f"agree"
            )
        known = known.astype(np.result_type(known, given))
        at = ranges(sheaf.vertex_offsets[fixed], sheaf.vertex_dims[fixed])
        known[at] = as_columns(given)
    delta = coboundary(sheaf)
    unit = max(sheaf.largest_entry, np.finfo(float).tiny)
    rest = columns - delta @ known
    right = (delta.conj().T / unit) @ rest
    solve = Solver(sheaf, method=method, fixed=fixed, progress=progress)
    free_part, free = solve_in_range(solve, right, tol)
    x = free_part * unit + known
    difference = delta @ x - columns
    gradient = ((delta.conj().T / unit) @ difference)[free]
    sizes = column_norms(right[free])
    relative = column_norms(gradient) / np.where(sizes > 0, sizes, 1)
    sums = np.zeros((sheaf.n_edges, difference.shape[1]), difference.real.dtype)
    kernels.sum_products(sheaf.edge_offsets, difference, difference, sums)
    return LeastSquares(
        read_only(x.reshape(len(x), *data.shape[1:]).astype(np.result_type(data, sheaf.dtype))),
        read_only(sums.reshape(len(sums), *data.shape[1:])),
        float(relative.max(initial=0.0)),
        solve.iterations,
        solve.method,
    )


def _edge_data(sheaf: CellularSheaf, b: npt.ArrayLike) -> np.ndarray:
    data = scalar_array("b", b)
    if data.ndim not in (1, 2) or len(data) != sheaf.dim_c1:
        raise ValueError(
            f"`b` must have shape (dim_c1,) or (dim_c1, h) with dim_c1 = {sheaf.dim_c1}, got shape "
            f"{data.shape}: it holds data on edges"
        )
    bad = np.flatnonzero(~np.isfinite(as_columns(data)).all(axis=1))
    if bad.size:
        raise ValueError(f"`b` must be finite, got {data[bad[0]]} in row {bad[0]}")
    data = np.ascontiguousarray(data, dtype=np.result_type(data.dtype, sheaf.dtype))
    largest = float(np.abs(data).max(initial=0.0))
    if largest > 100 * range_limits(data.dtype)[1]:
        raise ValueError(
            f"`b` has entries up to {largest:.3g}, whose squares overflow {data.dtype}: rescale `b`"
        )
    return data
