"""Linear systems with L + shift I, set up once and solved for many right-hand sides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from sheafcoarsen._support import CochainLike, Vertices, checks, labels, linalg, ragged, threads
from sheafcoarsen.elimination import Elimination, dim_of_few_edges, eliminate
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import Factors, as_columns, fills_little, laplacian
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import (
    CellularSheaf,
    check_same_topology,
    check_sheaf,
    same_topology,
    trusted_sheaf,
    unit_sheaf,
)
from sheafcoarsen.solve.block_matrix import Matrix, adjoint, scaled, unit_roots
from sheafcoarsen.solve.conjugate_gradients import (
    column_norms,
    conjugate_gradients,
    orthogonal_part,
    refined_kernel,
    relative_measure,
)
from sheafcoarsen.solve.multigrid import NEAR_SINGULAR, Multigrid

Method = Literal["auto", "direct", "multigrid", "jacobi"]

DIRECT_BELOW = 2000
"""Dimension up to which "auto" uses factors without estimating the fill-in."""

LEAST_REMOVED = 0.1
"""Leaves and chains are eliminated first if they hold at least this fraction of the dimension."""


class Solver:
    """Solver of (L + shift I) x = b for one sheaf and many right-hand sides b.

    A preconditioner of conjugate gradients is set up once, so that ``solve(b, tol=1e-8)`` reaches
    the residual tol: a sparse factorization ("direct"), multigrid by the sheaf's own coarsening
    ("multigrid"), or the inverse diagonal blocks ("jacobi"). In a singular system b must be in the
    range of L; the solution of least norm is returned, with ker L by :func:`global_sections`.

    Parameters
    ----------
    sheaf : CellularSheaf
    method : {"auto", "direct", "multigrid", "jacobi"}
        "auto" factors if the dimension is small or factors stay sparse, and uses multigrid
        otherwise. "jacobi" is fastest for well conditioned sheaves, such as random maps.
        "multigrid" may raise NotConverged if clusters have many more sections than dimensions.
    shift : float
        At least 0, in the units of L.
    fixed : array_like of int or bool, or sequence of names, optional
        Vertices at which x is 0 and b is ignored: L is restricted to the others. Integers alone are
        indices.
    progress : bool
        Show a progress bar.

    Attributes
    ----------
    method : str
        The method in use: the one passed, or the one that "auto" chose.
    iterations : int
        Number of iterations of the last call.
    residual : float
        The larger of norm(r) / norm(b) and norm(S* r) / norm(S* b) in the last call, maximized over
        the columns. With A = L + shift I at the free vertices, r = b - A x is recomputed, and S S*
        holds the inverse diagonal blocks of A. If A is singular, b is projected onto its range
        first; for a column b = 0, the norms of r and S* r are not divided.
    levels : tuple of int
        Dimension of every level, the finest first.

    Raises
    ------
    ValueError, TypeError
        If the shift is negative, vertices are out of range, or the method is unknown.

    Warns
    -----
    SingularProblemWarning
        If rounding errors may have determined the number of sections.

    Examples
    --------
    Potentials on a path of three vertices, the last one grounded, for a unit current into the
    first:

    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]])
    >>> solve = sc.Solver(F, fixed=[2])
    >>> solve([1.0, 0.0, 0.0]).round(12)
    array([2., 1., 0.])
    """

    def __init__(
        self,
        sheaf: CellularSheaf,
        method: Method = "auto",
        shift: float = 0.0,
        fixed: Vertices | None = None,
        progress: bool = False,
    ) -> None:
        check_sheaf(sheaf)
        checks.choice("method", method, get_args(Method))
        self._asked = method
        self.shift = checks.real_number("shift", shift)
        if not 0 <= self.shift < np.inf:
            raise ValueError(f"`shift` must be at least 0 and finite, got {self.shift:g}")
        self._progress = checks.flag("progress", progress)
        mask = labels.vertex_mask("fixed", () if fixed is None else fixed, sheaf)
        self.fixed = ragged.read_only(mask)
        self.iterations, self.residual = 0, 0.0
        with threads.single_threaded_blas():
            self._set_up(sheaf)

    def _set_up(self, sheaf: CellularSheaf, like: Multigrid | None = None) -> None:
        self.sheaf = sheaf
        free = grounded(sheaf, self.fixed) if self.fixed.any() else sheaf
        self._free = np.repeat(~self.fixed, sheaf.vertex_dims)
        self._unit_sheaf, self._unit = unit_sheaf(free)
        shift = self.shift / self._unit / self._unit
        L = laplacian(self._unit_sheaf)
        self._eps = linalg.eps_of(L.dtype)
        if shift:
            L = scipy.sparse.csr_array(L + shift * scipy.sparse.eye_array(*L.shape, format="csr"))
        self._L = L
        self._norm = linalg.inf_norm(L)
        blocks, roots = unit_roots(L, free.vertex_dims)[:2]
        self._scaling = adjoint(roots)
        # eliminate leaves and chains, so that the methods solve on the remaining sheaf only
        reduced = without_leaves(self._unit_sheaf) if shift == 0 else None
        left = self._unit_sheaf if reduced is None else reduced.sheaf
        A = L if reduced is None else laplacian(left)
        size = linalg.inf_norm(A)
        self.method: str = self._asked
        if self._asked == "auto":
            is_cheap = A.shape[0] <= DIRECT_BELOW or fills_little(A)
            self.method = "direct" if is_cheap else "multigrid"
        if reduced is not None and self.method != "multigrid":
            blocks, roots = unit_roots(A, left.vertex_dims)[:2]
        self.levels: tuple[int, ...] = (A.shape[0],)
        self._multigrid: Multigrid | None = None
        self._kernel: Any = None
        self._approximate: Callable[[np.ndarray], np.ndarray]
        if size == 0:  # the solution is 0: no unknown remains, or L = 0
            self._approximate, lowest = np.zeros_like, 0.0
        elif self.method == "direct":
            rounding = max(left.n_vertices, 10) * self._eps
            self._approximate, lowest = _factored(blocks, roots, rounding)
        elif self.method == "multigrid":
            if like is not None and not same_topology(like.sheaf, left):
                like = None
            self._multigrid = Multigrid(left, A, like, self._progress, skip_kernel=shift == 0)
            self._approximate = self._multigrid.cycle
            self.levels = tuple(self._multigrid.dims)
            lowest = self._multigrid.lowest
        else:
            inverse = scipy.sparse.csr_array(roots @ adjoint(roots))
            self._approximate, lowest = inverse.__matmul__, 0.0
        if reduced is not None:
            on_left = self._approximate
            self._approximate = lambda X: reduced.solution_from(X, on_left)
            self.levels = (L.shape[0], *self.levels)
            lowest *= min(size / (self._norm or 1.0), 1.0) * reduced.is_determined
        self._exact = reduced is not None and (self.method == "direct" or size == 0)
        # the coarsest level looks regular if clusters have discarded zero modes of L
        sees_all = self._multigrid is None or self._multigrid.holds_kernel
        if shift == 0 and (lowest <= NEAR_SINGULAR or not (sees_all or self._is_regular())):
            basis = self._multigrid.kernel() if self._multigrid and reduced is None else None
            if basis is None:
                basis = global_sections(self._unit_sheaf).basis
            if free.dtype != self._unit_sheaf.dtype:
                # include sections of maps rounded to single precision
                rounded = global_sections(free).basis
                if rounded.shape[1] > basis.shape[1]:
                    near = self._approximate
                    if self.method == "direct":  # factors of L would amplify errors of the basis
                        near = _factored(L, adjoint(self._scaling), np.sqrt(self._eps))[0]
                    basis = refined_kernel(L.__matmul__, near, rounded.astype(L.dtype))
            self._kernel = basis if basis.shape[1] else None

    def _is_regular(self) -> bool:
        """Return whether the iteration for L x = 0, from a random start, finds no kernel vector."""
        x = np.random.default_rng(0).standard_normal((self._L.shape[0], 1)).astype(self._L.dtype)
        target = NEAR_SINGULAR / 100 * column_norms(self._L @ x)
        found = conjugate_gradients(self._L.__matmul__, self._approximate, 0 * x, x, target)
        energy = float(np.vdot(found.x, self._L @ found.x).real)
        least = NEAR_SINGULAR * self._norm * float(np.vdot(found.x, found.x).real)
        return bool(found.residuals[0] <= target[0]) and energy > least

    def _precondition(self, X: np.ndarray) -> np.ndarray:
        return orthogonal_part(self._approximate(X), self._kernel)

    def __call__(
        self, b: CochainLike, tol: float = 1e-8, x0: CochainLike | None = None
    ) -> np.ndarray:
        """Return x with norm(b - (L + shift I) x) <= tol norm(b), column by column.

        The same bound holds after scaling every stalk (see ``residual``), so that one sheaf may
        have maps of very different norms.

        Parameters
        ----------
        b : array_like, shape (dim_c0,) or (dim_c0, h)
            Its entries at fixed vertices are ignored.
        tol : float
            A residual at the level of rounding counts as converged.
        x0 : array_like, optional
            Initial guess, of the shape of b.

        Returns
        -------
        ndarray, of the shape of b
            0 at fixed vertices; of least norm if the system is singular.

        Raises
        ------
        ValueError
            If b is not in the range of L, has the wrong shape or has entries that are not finite.
        NotConverged
            If the residual does not reach ``tol``; ``result`` of the error is the best x.
        """
        rounding = max(linalg.eps_of(x.dtype) for x in (checks.scalar_array("b", b), self.sheaf))
        return self._solved(self._checked("b", b), tol, x0, 1e3 * rounding)

    def _checked(self, name: str, x: CochainLike) -> np.ndarray:
        """Check b or x0, whose entries at fixed vertices become 0."""
        values = checks.scalar_array(name, x)
        if values.shape[:1] == self._free.shape:
            values = np.where(self._free.reshape(-1, *[1] * (values.ndim - 1)), values, 0)
        return checks.cochain(self.sheaf, values, name, right_side=True)

    def _solved(
        self, given: np.ndarray, tol: float, x0: CochainLike | None, outside: float
    ) -> np.ndarray:
        """Solve for b, whose part in ker L may have a relative norm up to max(tol, outside)."""
        tol = tolerance("tol", tol, self._eps)
        columns = as_columns(given).astype(np.result_type(given, self._L.dtype))
        B = np.ascontiguousarray(columns[self._free])
        sizes = column_norms(B)
        scales = np.where(sizes > 0, sizes, 1)
        B = B / scales
        if self._kernel is not None:
            in_kernel = column_norms(np.asarray(self._kernel.conj().T @ B))
            worst = int(in_kernel.argmax()) if in_kernel.size else 0
            if in_kernel.size and in_kernel[worst] > max(tol, outside):
                which = f" (column {worst})" if given.ndim == 2 else ""
                part = abs(B[:, worst] - orthogonal_part(B[:, worst], self._kernel))
                # entries up to 1e-6 times the largest one count as rounding errors
                first = np.flatnonzero(self._free)[(part > 1e-6 * part.max()).argmax()]
                kernel = f"ker L (dimension {self._kernel.shape[1]})"
                remedy = "subtract nearest_section(sheaf, b), fix vertices,"
                if self.fixed.any():
                    kernel += (
                        ", the kernel at free vertices: sections that vanish at the fixed ones"
                    )
                    remedy = "subtract the part of b in this kernel, fix more vertices,"
                raise ValueError(
                    f"`b`{which} must lie in the range of L, but a fraction of "
                    f"{in_kernel[worst]:.3g} of its norm lies in {kernel}, first at vertex "
                    f"{vertex_at(self.sheaf, first)}: {remedy} or pass a positive `shift`"
                )
            B = orthogonal_part(B, self._kernel)
        start = self._precondition(B) if self._exact and x0 is None else np.zeros_like(B)
        if x0 is not None:
            guess = self._checked("x0", x0)
            if guess.shape != given.shape:
                raise ValueError(
                    f"`x0` must have the shape of `b`, {given.shape}, got {guess.shape}"
                )
            if guess.dtype.kind == "c" and given.dtype.kind != "c":
                raise TypeError(
                    "`x0` is complex, but `b` and the sheaf are real, and so is x: pass x0.real"
                )
            guess = as_columns(guess)[self._free] / scales * self._unit * self._unit
            guess = guess * (sizes > 0)  # where b = 0, start from the solution 0
            start = orthogonal_part(guess.astype(B.dtype), self._kernel)
        L, measure = self._L, relative_measure(self._scaling, B)
        target = np.where(sizes > 0, tol, 0.0)
        with threads.single_threaded_blas():
            found = conjugate_gradients(
                L.__matmul__, self._precondition, B, start, target, self._progress, measure
            )
            terms = int(np.diff(L.indptr).max(initial=0)) + 1
            sums = terms * (abs(L) @ abs(found.x) + abs(B))
            attainable = linalg.RESIDUAL_LIMIT * self._eps * measure(sums)
        residuals = found.residuals
        X = orthogonal_part(found.x, self._kernel) * sizes / self._unit / self._unit
        out = np.zeros((len(given), columns.shape[1]), X.dtype)
        out[self._free] = X
        out = out.reshape(given.shape).astype(np.result_type(given.dtype, self.sheaf.dtype))
        self.iterations = found.steps
        self.residual = float(residuals.max(initial=0.0))
        missed = np.flatnonzero(~(residuals <= tol + np.minimum(attainable, 0.1)))
        if missed.size:
            near = "L + shift I is singular up to rounding; " if np.any(attainable > 0.1) else ""
            raise NotConverged(
                f"{len(sizes) - missed.size} of {len(sizes)} right-hand sides reached `tol` = "
                f"{tol:g} in {found.steps} iterations of method {self.method!r}; the largest "
                f"residual is {self.residual:.2g}: {near}use a larger `tol` or another `method`",
                out,
            )
        return out

    def update(self, sheaf: CellularSheaf) -> None:
        """Replace the maps on the same graph, and set up the preconditioner again.

        Multigrid reuses its partitions, ranks and index structures; factors are recomputed.

        Parameters
        ----------
        sheaf : CellularSheaf
            On the same graph, with stalks of the same dimensions.

        Raises
        ------
        ValueError
            If the graph or the stalks differ.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]])
        >>> solve = sc.Solver(F, fixed=[2])
        >>> solve.update(F.with_maps(2 * F.tail_data, 2 * F.head_data))
        >>> solve([1.0, 0.0, 0.0]).round(12)
        array([0.5 , 0.25, 0.  ])
        """
        check_sheaf(sheaf)
        check_same_topology(
            self.sheaf,
            sheaf,
            "the graph and the stalks of the Solver's sheaf",
            "construct a new Solver for another graph or other stalks",
        )
        fresh = object.__new__(Solver)  # a new object: an interrupt leaves the old state intact
        vars(fresh).update(vars(self))
        with threads.single_threaded_blas():
            fresh._set_up(sheaf, self._multigrid)
        vars(self).update(vars(fresh))

    def __getstate__(self) -> dict[str, Any]:
        """Return arguments and last results; factors cannot be pickled and are recomputed."""
        names = ("_asked", "shift", "_progress", "fixed", "iterations", "residual", "sheaf")
        return {name: vars(self)[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        with threads.single_threaded_blas():
            self._set_up(self.sheaf)

    def as_preconditioner(self) -> LinearOperator:
        """Return an approximate inverse of L + shift I as a scipy operator, for cg or lobpcg.

        It is zero at fixed vertices and on ker L, and Hermitian up to single precision, or to a few
        percent if clusters have many more sections than stalks have dimensions. It follows
        :meth:`update`, except for its ``dtype``.

        Returns
        -------
        LinearOperator, shape (dim_c0, dim_c0)

        Examples
        --------
        >>> import networkx as nx
        >>> import numpy as np
        >>> import scipy.sparse.linalg
        >>> import sheafcoarsen as sc
        >>> F = sc.gallery.bundle(nx.grid_2d_graph(20, 20), dim=2, noise=0.1, seed=0)
        >>> M = sc.Solver(F, method="multigrid").as_preconditioner()
        >>> x, status = scipy.sparse.linalg.cg(sc.laplacian(F), np.ones(800), M=M)
        >>> status
        0
        """
        shape, apply = (len(self._free),) * 2, self._apply_inverse
        return LinearOperator(shape, apply, apply, apply, self._L.dtype, apply)

    def _apply_inverse(self, X: np.ndarray) -> np.ndarray:
        columns = as_columns(np.asarray(X))
        Y = np.zeros(columns.shape, np.result_type(columns, self._L.dtype))
        inside = np.ascontiguousarray(columns[self._free]).astype(Y.dtype)
        with threads.single_threaded_blas():
            Z = self._precondition(orthogonal_part(inside, self._kernel))
        Y[self._free] = Z / self._unit / self._unit
        return Y.reshape(X.shape)

    def __repr__(self) -> str:
        levels = " -> ".join(map(str, self.levels))
        return f"Solver({self.method}: {levels} unknowns, shift={self.shift:g})"


def grounded(sheaf: CellularSheaf, fixed: np.ndarray) -> CellularSheaf:
    """Return the sheaf on the free vertices, whose Laplacian is the corresponding block of L.

    An edge to a fixed vertex becomes a loop at its other end with head map 0; edges between fixed
    vertices are removed.
    """
    edges = np.flatnonzero(~fixed[sheaf.edges].all(axis=1))
    ends, dims = sheaf.edges[edges], sheaf.vertex_dims[~fixed]
    at_tail, at_head = fixed[ends].T
    ends = (np.cumsum(~fixed) - 1)[np.where(fixed[ends], ends[:, ::-1], ends)]
    data = np.concatenate([sheaf.tail_data, sheaf.head_data])
    tails, heads = sheaf.tail_offsets[edges], len(sheaf.tail_data) + sheaf.head_offsets[edges]
    sizes = sheaf.edge_dims[edges] * dims[ends].T
    tail = data[ragged.ranges(np.where(at_tail, heads, tails), sizes[0])]
    head = data[ragged.ranges(np.where(at_head, tails, heads), sizes[1])]
    head[np.repeat(at_tail | at_head, sizes[1])] = 0
    return trusted_sheaf(ends, dims, sheaf.edge_dims[edges], tail, head)


def solve_in_range(solve: Solver, b: np.ndarray, tol: float) -> np.ndarray:
    """Return the solution for the projection of b onto the range of L, as for least squares."""
    return solve._solved(b, tol, None, np.inf)


def without_leaves(sheaf: CellularSheaf) -> Elimination | None:
    """Return the elimination of leaves and chains; None if they are few or amplify rounding."""
    if sheaf.dim_c0 <= DIRECT_BELOW or dim_of_few_edges(sheaf) < LEAST_REMOVED * sheaf.dim_c0:
        return None
    K = eliminate(sheaf)
    return K if K.growth < 1e8 else None  # half of the digits then remain


def _factored(
    A: Matrix, roots: Matrix, rounding: float
) -> tuple[Callable[[np.ndarray], np.ndarray], float]:
    """Return a function X -> A^{-1} X, and the ratio of the smallest to the largest pivot.

    The factored matrix S* A S, with ``roots`` S, has unit diagonal blocks, which allows maps of
    very different norms. A shift of the size of rounding keeps the factors of a singular matrix
    finite. The ratio is 0 if inverse iteration finds an eigenvalue at the level of the rounding
    errors of A, scaled by S, which pivots need not show.
    """
    unit = scipy.sparse.csr_array(scaled(roots, A, roots))
    norm = linalg.inf_norm(unit)
    try:
        factors = Factors(unit, rounding * norm)
    except np.linalg.LinAlgError:  # a pivot cancelled to exactly 0: shift it further
        factors = Factors(unit, 8 * rounding * norm)
    pivots, roots_adjoint = np.abs(factors.pivots), adjoint(roots)
    sums = abs(roots_adjoint) @ (abs(A) @ (abs(roots) @ np.ones(A.shape[0])))
    level = rounding * float(sums.max())  # above the shift if S amplifies the rounding errors of A
    x = np.random.default_rng(0).standard_normal((A.shape[0], 1)).astype(unit.dtype)
    for _ in range(2):
        x = factors.solve(x / np.linalg.norm(x))
    is_singular = np.linalg.norm(x) * 100 * level >= 1
    lowest = 0.0 if is_singular else float(pivots.min() / pivots.max())
    return lambda X: roots @ factors.solve(roots_adjoint @ X), lowest


def vertex_at(sheaf: CellularSheaf, coordinate: int) -> str:
    """Return the name (or index, if unnamed) of the vertex that a coordinate of C^0 belongs to."""
    v = int(np.searchsorted(sheaf.vertex_offsets, coordinate, side="right")) - 1
    return str(v) if sheaf.vertex_labels is None else repr(sheaf.vertex_labels[v])


def tolerance(name: str, value: float, eps: float) -> float:
    """Check that a tolerance is at least 10 eps and below 1, and return it."""
    tol, least = checks.real_number(name, value), f"{10 * eps:.1g}, the level of rounding,"
    if not 10 * eps <= tol < 1:
        raise ValueError(f"`{name}` must be at least {least} and below 1, got {tol:g}")
    return tol
