"""The k lowest eigenpairs of the sheaf Laplacian."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import ReadOnly, checks, linalg, ragged, tables, threads
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, unit_sheaf
from sheafcoarsen.solve._solver import tolerance
from sheafcoarsen.solve.block_matrix import norms
from sheafcoarsen.solve.conjugate_gradients import independent, weighted
from sheafcoarsen.solve.eigensolver import (
    Eigenpairs,
    EigenProblem,
    Method,
    Pencil,
    lowest_eigenpairs,
    resolved,
    unit_mass,
)

AFFORDABLE = 30.0
"""Maximum time in seconds for "direct", which "auto" tries if "multilevel" does not converge."""


@dataclass(frozen=True, eq=False, repr=False)
class Eigenmodes(ReadOnly):
    """The k lowest eigenpairs of L x = lambda M x, computed by :func:`eigenmodes`.

    Attributes
    ----------
    values : ndarray, shape (k,)
        Ascending.
    vectors : ndarray, shape (dim_c0, k)
        Columns orthonormal in M (I without ``mass``); for a multiple eigenvalue, any basis.
    residuals : ndarray, shape (k,)
        norm(L x - lambda M x) / norm(L, inf), recomputed in double precision before the pairs are
        rounded to the scalar type. With ``mass`` divide by norm(x) before comparing with ``tol``.
    n_zero : int
        Number of zero eigenvalues among the k, decided by global sections or the singular values of
        delta.
    tied : bool
        Whether k splits a multiplet: the next eigenvalue exceeds the k-th by at most
        sqrt(eps) norm(L, inf), with ``mass`` times norm(x)^2, so that their eigenvectors are hardly
        determined. Strong edges, such as closed switches, make this tolerance large.
    method : str
    iterations : int
    completeness : {"dense", "inertia", "probe"}
        Why no lower pair is missing: all pairs were computed; a factorization counted them
        (Sylvester's law of inertia); or random start vectors found none. If there are more than k
        global sections, all k eigenvalues are zero, and this is "probe" as well. "direct" does not
        count eigenvalues that ``tol`` does not separate from the next; a smaller ``tol`` may.
    sheaf : CellularSheaf
        The input.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.eigenmodes(sc.gallery.cycle(6, 0.0), 2)
    Eigenmodes(k=2, values 0 .. 0, n_zero=2, method='dense', completeness='dense')
    """

    values: np.ndarray
    vectors: np.ndarray
    residuals: np.ndarray
    n_zero: int
    tied: bool
    method: str
    iterations: int
    completeness: str
    sheaf: CellularSheaf

    def __repr__(self) -> str:
        k = len(self.values)
        span = f"{self.values[0]:.4g} .. {self.values[-1]:.4g}" if k else "none"
        return (
            f"Eigenmodes(k={k}, values {span}, n_zero={self.n_zero}, method={self.method!r}, "
            f"completeness={self.completeness!r})"
        )

    def _repr_html_(self) -> str:
        rows = [
            ("values", tables.span(self.values)),
            ("zero eigenvalues", self.n_zero),
            ("largest residual", f"{self.residuals.max(initial=0.0):.2g}"),
            ("splits a multiplet", self.tied),
            ("method", self.method),
            ("iterations", self.iterations),
            ("completeness checked by", self.completeness),
        ]
        return tables.table(rows, caption="Eigenmodes")


def eigenmodes(
    sheaf: CellularSheaf,
    k: int,
    *,
    tol: float = 1e-8,
    method: Method = "auto",
    mass: npt.ArrayLike | None = None,
    start: npt.ArrayLike | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Eigenmodes:
    """Return the k lowest eigenpairs of the sheaf Laplacian, counted with multiplicity.

    For large sheaves, eigenvectors of the coarsest level are lifted to the finest one. Block
    conjugate gradients use the multigrid cycle of the sheaf's own coarsening, and random columns
    search for eigenvectors that the start did not contain.

    Parameters
    ----------
    sheaf : CellularSheaf
        For the normalized Laplacian, pass ``normalize(sheaf)``.
    k : int
        1 .. dim_c0.
    tol : float
        Bound on norm(L x - lambda M x) / norm(x), relative to norm(L, inf); norm(x) = 1 without
        mass.
    method : {"auto", "dense", "direct", "multilevel"}
        "dense" computes all eigenpairs, "direct" uses a factorization and counts by inertia, and
        "multilevel" uses the sheaf's own coarsening; both use "dense" if 4 (k + 3) is at least the
        dimension. "auto" uses "dense" then, and up to dimension 800; otherwise it estimates the
        cost of a factorization, and uses "direct" if that is cheaper, or affordable and
        "multilevel" does not converge.
    mass : array_like, shape (n,), optional
        Positive weights m_v of the vertices: L x = lambda M x with M = blockdiag(m_v I). For
        example, the areas of a mesh's vertices; on fine meshes, take ``tol=1e-10``. Masses may
        differ by up to 20 orders of magnitude; above 16, "dense" may not reach a small ``tol``.
    start : array_like, shape (dim_c0, h), optional
        Approximate eigenvectors; for a real sheaf, real and imaginary parts of complex ones are
        used.
    seed : int
        Seed of the random columns.
    progress : bool

    Returns
    -------
    Eigenmodes

    Raises
    ------
    ValueError, TypeError
        If k is out of range, a mass is not positive or so small or large that results overflow or
        underflow, or the tolerance is below rounding.
    NotConverged
        If pairs do not reach ``tol``; ``result`` of the error holds the computed ones.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> E = sc.eigenmodes(sc.CellularSheaf.constant(nx.cycle_graph(6)), 3)
    >>> E.values.round(12), E.n_zero, E.tied
    (array([0., 1., 1.]), 1, False)
    """
    check_sheaf(sheaf)
    k = checks.whole_number("k", k, at_least=1)
    if k > sheaf.dim_c0:
        raise ValueError(f"`k` must be at most dim_c0 = {sheaf.dim_c0}, got {k}")
    checks.choice("method", method, get_args(Method))
    progress = checks.flag("progress", progress)
    rng = checks.random_generator("seed", seed)
    tol = tolerance("tol", tol, linalg.eps_of(np.float64))
    work, unit = unit_sheaf(sheaf)
    weights, weight_unit = unit_mass(sheaf, mass)
    single = linalg.eps_of(sheaf.dtype) > linalg.eps_of(np.float64)
    pencil = Pencil(work, weights, single, progress)
    given = None if start is None else pencil.contract(_start(sheaf, start))
    problem = EigenProblem(pencil, -(-k // pencil.copies), tol, seed=rng)
    units = unit, weight_unit
    with threads.single_threaded_blas():
        found = lowest_eigenpairs(problem, problem.chosen() if method == "auto" else method, given)
        assert found is not None  # None only if ``positive`` is set, which it is not here
        result, reached = _finished(problem, found, k, units, sheaf)
        if (
            reached < k
            and method == "auto"
            and found.method == "multilevel"
            and pencil.is_factored_within(AFFORDABLE, problem.k)
        ):
            with contextlib.suppress(np.linalg.LinAlgError, MemoryError):
                again = lowest_eigenpairs(problem, "direct", found.vectors)
                assert again is not None
                again = replace(again, iterations=again.iterations + found.iterations)
                result, reached = _finished(problem, again, k, units, sheaf)
    if reached < k:
        other = {"direct": "multilevel", "multilevel": "direct"}.get(result.method)
        raise NotConverged(
            f"{reached} of {k} pairs reached the residual `tol` = {tol:g} in "
            f"{result.iterations} steps of method {result.method!r}; the largest residual is "
            f"{result.residuals.max():.2g}: use a larger `tol` or fewer pairs"
            + (f', or method="{other}"' if other else "")
            + "; the error's `result` holds the computed pairs",
            result,
        )
    return result


def _check_range(what: str, x: np.ndarray, scale: float, dtype: np.dtype) -> None:
    """Raise if the largest entry times 10^scale overflows or underflows in the scalar type."""
    limits, largest = np.finfo(dtype), float(np.abs(x).max(initial=0.0))
    exponent = math.log10(largest) + scale if largest else 0.0
    if exponent > math.log10(limits.max):
        raise ValueError(
            f"`mass` is so small that {what} reach 1e{exponent:.0f}, which overflows "
            f"{limits.dtype}: use masses in a smaller unit"
        )
    if exponent < math.log10(limits.smallest_subnormal):
        raise ValueError(
            f"`mass` is so large that {what} reach only 1e{exponent:.0f}, which underflows "
            f"{limits.dtype}: use masses in a larger unit"
        )


def _finished(
    problem: EigenProblem,
    found: Eigenpairs,
    k: int,
    units: tuple[float, float],
    sheaf: CellularSheaf,
) -> tuple[Eigenmodes, int]:
    """Return the result in the units and dtype of the sheaf, and the number of converged pairs."""
    pencil, n_zero = problem.pencil, found.sections.shape[1]
    values, X = found.values, found.vectors
    if found.method != "dense":
        values, X = resolved(coboundary(pencil.sheaf), values, X, problem.count_near(values, X))
    values, X = np.append(np.zeros(n_zero), values), np.hstack([found.sections, X])
    residuals = norms(pencil.apply(X) - weighted(pencil.mass, X) * values) / (pencil.norm or 1.0)
    squares = norms(X) ** 2
    values, residuals, squares = (
        np.repeat(each, pencil.copies) for each in (values, residuals, squares)
    )
    next_value = values[k] if len(values) > k else np.inf
    values, residuals, squares, X = values[:k], residuals[:k], squares[:k], pencil.expand(X)[:, :k]
    tie = np.sqrt(linalg.eps_of(sheaf.dtype)) * pencil.norm * squares[-1]
    tied = bool(next_value - values[-1] <= tie)
    dtype, (unit, weight_unit) = sheaf.dtype, units
    root = np.sqrt(weight_unit)
    values = np.maximum(values, 0)
    if pencil.mass is not None:
        scale = -math.log10(weight_unit) / 2
        _check_range("eigenvalues", values, 2 * (scale + math.log10(unit)), dtype)
        _check_range("entries of modes", X, scale, dtype)
    values, X = values * unit / root * unit / root, X / root
    result = Eigenmodes(
        ragged.read_only(values.astype(dtype.type(0).real.dtype)),
        ragged.read_only(X.astype(dtype)),
        ragged.read_only(residuals / root),
        min(n_zero * pencil.copies, k),
        tied,
        found.method,
        found.iterations,
        found.completeness,
        sheaf,
    )
    return result, int((residuals <= problem.tol * np.sqrt(squares)).sum())


def _start(sheaf: CellularSheaf, start: npt.ArrayLike) -> np.ndarray:
    """Return an orthonormal basis of the span of the start vectors, real for a real sheaf."""
    X = checks.scalar_array("start", start)
    if X.ndim != 2 or X.shape[0] != sheaf.dim_c0:
        raise ValueError(
            f"`start` must have vectors as columns, shape ({sheaf.dim_c0}, h), got shape {X.shape}"
        )
    bad = np.argwhere(~np.isfinite(X))
    if bad.size:
        row, column = bad[0]
        raise ValueError(f"`start[{row}, {column}]` must be finite, got {X[row, column]}")
    if X.dtype.kind == "c" and sheaf.dtype.kind != "c":  # eigenvectors are real: use both parts
        X = np.hstack([X.real, X.imag])
    return independent(X.astype(np.result_type(X.dtype, sheaf.dtype, np.float64)))
