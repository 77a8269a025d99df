"""Least squares accurate to rounding: by QR, or by refined conjugate gradients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import (
    EPS,
    CochainLike,
    ReadOnly,
    Vertices,
    checks,
    labels,
    linalg,
    ragged,
    tables,
    threads,
    warned,
)
from sheafcoarsen.exceptions import NotConverged, SingularProblemWarning
from sheafcoarsen.operators import as_columns, coboundary
from sheafcoarsen.sections import given_values
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, component_labels, unit_sheaf
from sheafcoarsen.solve._solver import Method, Solver, grounded, tolerance
from sheafcoarsen.solve.conjugate_gradients import (
    column_norms,
    conjugate_gradients,
    orthogonal_part,
    relative_measure,
)

DENSE_BELOW = 100_000
"""Number of entries of D up to which a dense QR replaces the iteration; it takes up to 0.1 s."""

ROUNDS = 8
"""Maximum number of refinement rounds."""

DIRECT_AT_LAST = 30_000
"""Number of unknowns up to which L is factored, whatever the fill-in, if the iteration fails.

This takes at most a few minutes and a few gigabytes.
"""


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


def column_units(x: np.ndarray) -> np.ndarray:
    """Return a power of two per column; dividing by it brings the column's maximum to 1/2 .. 1."""
    return np.array([power_of_two(size) for size in np.abs(x).max(axis=0, initial=0.0)])


def is_small(method: str, rows: int, columns: int) -> bool:
    """Return whether a problem with this method and a D of this shape is solved by QR."""
    return method == "direct" and rows * columns <= DENSE_BELOW


def has_many_sections(sheaf: CellularSheaf) -> bool:
    """Return whether the dimensions of the components imply too many sections for a basis."""
    labels = component_labels(sheaf.n_vertices, sheaf.edges)
    dims = np.bincount(labels, sheaf.vertex_dims)
    surplus = dims - np.bincount(labels[sheaf.edges[:, 0]], sheaf.edge_dims, len(dims))
    largest = dims.max(initial=0)
    # no basis is computed if delta has at least 2000 more columns than rows, or a tenth of the
    # columns if that is more; of several components, if their bases would have as many entries
    return bool(dims @ surplus.clip(0) >= max(2000, largest // 10) * max(2000, largest))


class NormalEquations:
    """Solver for the y of least norm that minimizes norm(D y - r), D a multiple of a coboundary.

    A :class:`Solver` of the sheaf is the preconditioner. Products are computed as D* (D y), whose
    rounding preserves small singular values of D. If there are very many sections, or no ``method``
    is passed, the iteration has no preconditioner: it starts at zero and needs no kernel.
    """

    def __init__(
        self,
        D: scipy.sparse.csr_array,
        sheaf: CellularSheaf,
        progress: bool = False,
        method: Method | None = None,
    ):
        self.D, self.adjoint = D, scipy.sparse.csr_array(D.conj().T)
        self.sheaf, self.progress = sheaf, progress
        self.bound = linalg.inf_norm(D.T) * linalg.inf_norm(D)  # at least norm(D)^2
        self.method, self.iterations = "plain", 0
        self.kernel: Any = None  # orthonormal basis of ker D, shape (n, h0)
        self.rank_warning: str | None = None  # says that rounding may affect dim ker D
        self._inverse: Callable[[np.ndarray], np.ndarray] = lambda X: X / (self.bound or 1.0)
        self._scaling: Any = None
        if (
            method is not None
            and sheaf.dim_c0
            and (method != "auto" or not has_many_sections(sheaf))
        ):
            with (
                warned.collected() as said,
                # without a preconditioner if the kernel or the factors cannot be computed
                contextlib.suppress(np.linalg.LinAlgError),
            ):
                solve = Solver(sheaf, method=method, progress=progress)
                self._inverse, self.kernel = solve._approximate, solve._kernel
                self.method, self._scaling = solve.method, solve._scaling
            self.rank_warning = str(said[0]) if said else None

    def gradient(self, r: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return D* (r - D y), projected orthogonally to ker D."""
        return orthogonal_part(self.adjoint @ (r - self.D @ y), self.kernel)

    def solve(self, r: np.ndarray, tol: float = 0.0) -> tuple[np.ndarray, float, float]:
        """Return the y of least norm that minimizes norm(D y - r), and how accurate it is.

        The second result is the largest gradient relative to the one at y = 0, by
        ``relative_measure``; the third its ratio to the sum of ``tol`` and its rounding errors, at
        most 1 if the iteration converged.

        Small problems are solved by QR. Otherwise the refinement of a column ends when neither its
        residual nor its step is halved, when its step is at rounding level, or after ``ROUNDS``
        rounds; without factors, also when its residual is ``tol``. Steps may still decrease when
        the gradient, dominated by strong edges, is at rounding level.
        """
        D, adjoint = self.D, self.adjoint
        y = np.zeros((D.shape[1], r.shape[1]), np.result_type(D.dtype, r.dtype))
        if self.bound == 0 or not r.size:
            return y, 0.0, 0.0
        g = self.gradient(r, y)
        measure = relative_measure(self._scaling, g)
        if is_small(self.method, *D.shape):
            dense = D.toarray()
            if linalg.eps_of(self.sheaf.dtype) > EPS:  # sections of rounded maps count as ker D
                dense = orthogonal_part(dense.conj().T, self.kernel).conj().T
            y = fit_densely(dense, r, self.kernel)
        else:
            residuals, sizes = measure(g), np.full(r.shape[1], np.inf)
            active = residuals > 0
            for _ in range(ROUNDS):
                if not active.any():
                    break
                step, before = np.zeros_like(y), sizes
                step[:, active] = self.correction(g[:, active], tol / 2 or 1e-9)
                after, sizes = self.gradient(r, y + step), column_norms(step)
                new, halved = measure(after), sizes < before / 2
                improved = active & ((new < residuals) | halved)
                active = improved & ((new < residuals / 2) | halved)
                y, g = np.where(improved, y + step, y), np.where(improved, after, g)
                residuals = np.where(improved, new, residuals)
                active &= sizes > EPS * column_norms(y)
                active &= (residuals > tol) | (self.method == "direct")
        y = orthogonal_part(y, self.kernel)
        residuals = measure(self.gradient(r, y))
        terms = max(int(np.diff(A.indptr).max(initial=0)) for A in (D, adjoint))
        sums = abs(adjoint) @ (abs(D) @ abs(y) + abs(r))
        allowed = tol + linalg.RESIDUAL_LIMIT * terms * EPS * measure(sums)
        ratios = residuals / np.where(allowed > 0, allowed, 1)
        return y, float(residuals.max()), float(ratios.max())

    @threads.single_threaded_blas()
    def correction(self, g: np.ndarray, tol: float = 1e-9) -> np.ndarray:
        """Return (D* D)^+ g to a relative residual of ``tol``, unless the iteration stagnates."""
        sizes = column_norms(g)
        found = conjugate_gradients(
            lambda X: orthogonal_part(self.adjoint @ (self.D @ X), self.kernel),
            lambda X: orthogonal_part(self._inverse(X), self.kernel),
            np.ascontiguousarray(g / np.where(sizes > 0, sizes, 1)),
            np.zeros_like(g),
            np.full(len(sizes), tol),
            self.progress,
        )
        self.iterations += found.steps
        return orthogonal_part(found.x, self.kernel) * sizes

    def smallest(self) -> float:
        """Return an estimate of the smallest positive singular value of D, relative to norm(D).

        For large problems it comes from one step of inverse iteration, which is accurate if the
        value is far below the others. Without a preconditioner it is 1.
        """
        if self.bound == 0 or self.method == "plain":
            return 1.0
        if is_small(self.method, *self.D.shape):
            values = np.linalg.svd(self.D.toarray(), compute_uv=False)
            rank = self.D.shape[1] - (0 if self.kernel is None else self.kernel.shape[1])
            return float(values[rank - 1] / values[0]) if 0 < rank <= len(values) else 1.0
        g = np.random.default_rng(0).standard_normal((self.D.shape[1], 1)).astype(self.D.dtype)
        # only the order of magnitude is needed
        z = self.correction(orthogonal_part(g, self.kernel), 1e-2)
        size = float(np.linalg.norm(z))
        return float(np.linalg.norm(self.D @ z)) / size / np.sqrt(self.bound) if size else 1.0

    def kernel_part(self, x: np.ndarray) -> np.ndarray:
        """Return the orthogonal projection of x onto ker D, computed without a basis."""
        level = max(self.D.shape) * EPS * np.sqrt(self.bound) * np.linalg.norm(x, axis=0)
        for _ in range(ROUNDS):
            if (np.linalg.norm(self.D @ x, axis=0) <= level).all():
                return x
            x = x - self.correction(self.adjoint @ (self.D @ x))
        raise NotConverged("the iteration stopped before delta x reached rounding level", x)


def fit_free_vertices(
    sheaf: CellularSheaf,
    fixed: np.ndarray,
    x: np.ndarray,
    b: np.ndarray,
    method: Method,
    tol: float = 0.0,
    progress: bool = False,
) -> tuple[np.ndarray, NormalEquations, float, float]:
    """Return the x of least norm that minimizes norm(delta x - b) at the vertices not ``fixed``.

    The other results are the normal equations, and the residual and ratio of their ``solve``.
    """
    rest = grounded(sheaf, fixed) if fixed.any() else sheaf
    unit = unit_sheaf(rest)[1]
    delta = coboundary(unit_sheaf(sheaf, unit)[0])
    inside = np.repeat(~fixed, sheaf.vertex_dims)
    D = scipy.sparse.csr_array(scipy.sparse.csc_array(delta)[:, np.flatnonzero(inside)])
    # scaled so that y and r stay in range
    units = column_units(np.vstack([b, sheaf.largest_entry * x]))
    right = b / units / unit - delta @ (x / units)
    problem = NormalEquations(D, rest, progress, method)
    y, residual, ratio = problem.solve(right, tol)
    falls_back = method == "auto" and problem.method != "direct" and D.shape[1] <= DIRECT_AT_LAST
    if not ratio <= 1 and falls_back:
        problem = NormalEquations(D, rest, progress, "direct")
        y, residual, ratio = problem.solve(right, tol)
    x = x.astype(np.result_type(x, y))
    x[inside] = y * units
    return x, problem, residual, ratio


def fit_densely(D: np.ndarray, r: np.ndarray, kernel: Any) -> np.ndarray:
    """Return the y of least norm that minimizes norm(D y - r), by QR with column pivoting.

    ``kernel`` is an orthonormal basis of ker D. Before each reflection the largest entry of the
    column is brought to the top, which makes the errors of each row relative to its own entries,
    however different their sizes are (Powell and Reid 1969; Cox and Higham 1998).
    """
    n, rank = D.shape[1], min(D.shape[1] - (0 if kernel is None else kernel.shape[1]), len(D))
    A = np.hstack([D, r])  # becomes [R, Q* r]
    order = np.arange(n)
    for k in range(rank):
        j = k + int(np.linalg.norm(A[k:, k:n], axis=0).argmax())
        A[:, [k, j]], order[[k, j]] = A[:, [j, k]], order[[j, k]]
        i = k + int(np.abs(A[k:, k]).argmax())
        A[[k, i]] = A[[i, k]]
        v = A[k:, k].copy()
        if v[0]:
            v[0] += v[0] / abs(v[0]) * np.linalg.norm(v)
            v /= np.linalg.norm(v)
            A[k:, k:] -= 2 * v[:, None] * (v.conj() @ A[k:, k:])
    y = np.zeros((n, r.shape[1]), A.dtype)
    right = A[:rank, n:]
    y[order[:rank]] = scipy.linalg.solve_triangular(A[:rank, :rank], right) if rank else 0
    return orthogonal_part(y, kernel)
