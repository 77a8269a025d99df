"""The k lowest eigenpairs of the whole sheaf."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import (
    choice,
    eps_of,
    flag,
    random_generator,
    read_only,
    scalar_array,
    single_threaded_blas,
    tables,
    whole_number,
    zero_level,
)
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import Factors, coboundary, laplacian
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, trusted_sheaf, unit_sheaf
from sheafcoarsen.solve.block_cg import Pairs, lowest_pairs, rayleigh_ritz
from sheafcoarsen.solve.multigrid import Multigrid
from sheafcoarsen.solve.solver import tolerance

Method = Literal["auto", "dense", "direct", "multilevel"]

METHODS = get_args(Method)

DENSE_BELOW = 800
"""Dimension up to which "auto" takes all eigenpairs."""

DIRECT_BELOW = 20_000
"""Dimension up to which "auto" factors, where factors stay sparse."""

FILL_PER_ROW = 12
"""Entries of L per row up to which they are expected to."""

GUARDS = 4
"""Columns beside the k wanted ones, at least; a fifth of k where that is more."""

BETWEEN = 2
"""Steps on every level between the coarsest and the finest, on the way of the start."""

PROBES, PROBE_STEPS, ROUNDS = 4, 8, 4
"""Random columns beside the result, their steps, and how often a finding is followed up.

Measured: 2 columns of 3 steps missed an eigenvector that the start lacked, 4 of 5 steps did not.
"""

SHIFT = 1e-12
"""Of the factorization of "direct", relative to norm(L, inf)."""

NEAR_SINGULAR = 1e-6
"""A pivot below this times the largest calls for a look at the kernel."""


@dataclass(frozen=True, eq=False, repr=False)
class Eigenmodes:
    """The k lowest eigenpairs of L x = lambda M x; :func:`eigenmodes` computes them.

    Attributes
    ----------
    values : ndarray, shape (k,)
        Ascending.
    vectors : ndarray, shape (dim_c0, k)
        Columns orthonormal in M (I without ``mass``). Of a multiple eigenvalue any basis.
    residuals : ndarray, shape (k,)
        norm(L x - lambda M x) / norm(L, inf), computed afresh.
    n_zero : int
        How many of the k are zero, decided by singular values of delta on their span.
    tied : bool
        Whether k cuts a multiplet: another vector has the k-th value to sqrt(eps).
    method : str
    iterations : int
    completeness : {"dense", "inertia", "probe"}
        How it is known that none is missing: all were computed; a factorization counted them;
        random columns found none below.

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
            ("of them zero", self.n_zero),
            ("largest residual", f"{self.residuals.max(initial=0.0):.2g}"),
            ("cuts a multiplet", self.tied),
            ("method", self.method),
            ("iterations", self.iterations),
            ("known to be complete by", self.completeness),
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
    """Return the k lowest eigenpairs of the sheaf Laplacian, complete and with multiplicities.

    Large sheaves are their own preconditioner: eigenvectors of the coarsest level are lifted and
    improved level by level, the finest one by block conjugate gradients with the multigrid cycle
    of the sheaf's coarsening; random columns then look for what the start did not contain.

    Parameters
    ----------
    sheaf : CellularSheaf
        For the normalized Laplacian, ``normalize(sheaf)``.
    k : int
        1 .. dim_c0.
    tol : float
        Of norm(L x - lambda M x) / norm(L, inf).
    method : {"auto", "dense", "direct", "multilevel"}
        All eigenpairs; shift-invert Lanczos on a factorization, counted by inertia; or the sheaf's
        own coarsening.
    mass : array_like, shape (n,), optional
        Positive weights m_v of the vertices: L x = lambda M x with M = blockdiag(m_v I). The areas
        of a mesh's vertices, say.
    start : array_like, shape (dim_c0, h), optional
        Vectors near the wanted ones, for "multilevel".
    seed : int
        Of the random columns.
    progress : bool

    Returns
    -------
    Eigenmodes

    Raises
    ------
    ValueError, TypeError
        k out of range, a mass that is not positive, a tolerance below rounding.
    NotConverged
        Its ``result`` holds what was found.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> E = sc.eigenmodes(sc.CellularSheaf.constant(nx.cycle_graph(6)), 3)
    >>> E.values.round(12), E.n_zero, E.tied
    (array([0., 1., 1.]), 1, False)
    """
    check_sheaf(sheaf)
    k = whole_number("k", k, at_least=1)
    if k > sheaf.dim_c0:
        raise ValueError(f"`k` must be at most dim_c0 = {sheaf.dim_c0}, got {k}")
    choice("method", method, METHODS)
    progress = flag("progress", progress)
    rng = random_generator("seed", seed)
    tol = tolerance("tol", tol, eps_of(np.float64))
    roots = _mass_roots(sheaf, mass)
    work, unit = unit_sheaf(sheaf)
    work = _weighted(work, roots)
    given = None if start is None else _start(sheaf, start, roots)
    problem = _Problem(work, k, tol)
    how = problem.chosen() if method == "auto" else method
    with single_threaded_blas():
        found = {
            "dense": problem.dense,
            "direct": problem.direct,
            "multilevel": lambda: problem.multilevel(given, rng, progress),
        }[how]()
        result = problem.finished(found, unit, np.repeat(roots, sheaf.vertex_dims), sheaf)
    missed = np.flatnonzero(~(result.residuals <= tol))
    if missed.size:
        raise NotConverged(
            f"{k - missed.size} of {k} pairs reached the residual `tol` = {tol:g} in "
            f"{result.iterations} steps of method {result.method!r}, the worst stands at "
            f"{result.residuals.max():.2g}: ask for a larger `tol`, for fewer pairs, or take "
            f'method="direct"; what was found is in the error\'s `result`',
            result,
        )
    return result


@dataclass
class _Found:
    """Pairs of the unit problem before they are finished: one more than wanted if there is one."""

    values: np.ndarray
    vectors: np.ndarray
    completeness: str
    iterations: int = 0
    method: str = "dense"


class _Problem:
    """The problem with maps of the size of 1 and without a mass."""

    def __init__(self, sheaf: CellularSheaf, k: int, tol: float):
        self.sheaf, self.k, self.tol = sheaf, k, tol
        self.L = laplacian(sheaf)
        self.n = self.L.shape[0]
        self.norm = float(abs(self.L).sum(axis=1).max(initial=0.0))

    def chosen(self) -> str:
        """Return the method that "auto" takes."""
        if self.n <= DENSE_BELOW or self.small():
            return "dense"
        if self.n <= DIRECT_BELOW and self.L.nnz <= FILL_PER_ROW * self.n:
            return "direct"
        return "multilevel"

    def small(self) -> bool:
        """Whether iterating is not worth it, or nothing to iterate on."""
        return 4 * (self.k + GUARDS) >= self.n or self.norm == 0

    def near(self) -> float:
        """Return the level at or below which an eigenvalue may be a zero."""
        return max(self.tol, 1e-10) * self.norm

    def dense(self) -> _Found:
        """Return the pairs from all of them."""
        values, vectors = scipy.linalg.eigh(self.L.toarray())
        m = max(self.k + 1, int((values <= self.near()).sum()))
        return _Found(values[:m], vectors[:, :m], "dense")

    def direct(self) -> _Found:
        """Return the pairs by inverse iteration on factors; the signs of pivots count them."""
        if self.small():
            return self.dense()
        factors = Factors(self.L, SHIFT * self.norm)
        pivots = np.abs(factors.pivots)
        singular = pivots.min() <= NEAR_SINGULAR * pivots.max()
        sections = self.sections() if singular else np.zeros((self.n, 0), self.L.dtype)
        if sections.shape[1] > self.k:
            return self.joined(sections, None, "probe", "direct")
        found = self.iterated(lambda R: factors.solve(np.ascontiguousarray(R)), sections, None)
        values = np.concatenate([np.zeros(sections.shape[1]), found.values])
        last = values[self.k - 1]  # what lies below the multiplet of the last one is counted
        shift = last - max(4 * self.tol, np.sqrt(eps_of(self.L.dtype))) * self.norm
        cut = int((values[: self.k] < shift).sum())
        try:
            below = Factors(self.L, -shift).count_negative() if cut else -1
        except np.linalg.LinAlgError:
            below = -1  # a pivot vanished: no count
        if below >= 0 and below != cut:
            raise NotConverged(
                f"method 'direct' found {cut} eigenvalues below {shift:g} where inertia counts "
                f'{below}: take method="multilevel"'
            )
        how = "probe" if below < 0 else "inertia"
        return self.joined(sections, found, how, "direct")

    def multilevel(
        self, start: np.ndarray | None, rng: np.random.Generator, progress: bool
    ) -> _Found:
        """Return the pairs by block conjugate gradients, and probe for what they lack."""
        if self.small():
            return self.dense()
        cycle = Multigrid(self.sheaf, progress=progress)
        m = min(self.k + max(GUARDS, self.k // 5), self.n // 4)
        X = self._first(cycle, m) if start is None else start
        none = np.zeros((self.n, 0), self.L.dtype)
        found = None
        if not cycle.unseen:  # what no map sees, the cycle does not either
            found = self.iterated(cycle.cycle, none, X, rng)
            if found.values[0] > self.near():
                return self.joined(none, found, "probe", "multilevel")
        sections = self.sections()
        if sections.shape[1] > self.k:
            return self.joined(sections, None, "probe", "multilevel")
        again = self.iterated(cycle.cycle, sections, X if found is None else found.vectors, rng)
        if found is not None:
            again = again._replace(steps=found.steps + again.steps)
        return self.joined(sections, again, "probe", "multilevel")

    def sections(self) -> np.ndarray:
        """Return a basis of ker L, up to k + 1 columns.

        Zeros are decided on singular values, which eigenvalues do not resolve.
        """
        basis = global_sections(self.sheaf).basis[:, : self.k + 1]
        return basis if isinstance(basis, np.ndarray) else basis.toarray()

    def iterated(
        self,
        precondition: Callable,
        sections: np.ndarray,
        X: np.ndarray | None,
        rng: np.random.Generator | None = None,
    ) -> Pairs:
        """Return the lowest pairs beside the sections, with random columns that look for more."""
        rng = np.random.default_rng(0) if rng is None else rng
        wanted = max(self.k - sections.shape[1], 1)
        apply, target = scipy.sparse.csr_array(self.L).__matmul__, self.tol * self.norm / 2
        inside = _beside(precondition, sections)
        width = wanted + max(GUARDS, wanted // 5)
        X = np.zeros((self.n, 0), self.L.dtype) if X is None else X
        if X.shape[1] < width:
            X = np.hstack([X, _random(rng, (self.n, width - X.shape[1]), self.L.dtype)])
        X, steps = _without(X, sections), 0
        for _ in range(ROUNDS):
            found = lowest_pairs(apply, inside, X, wanted, target)
            steps += found.steps
            Q = np.hstack([sections, found.vectors[:, :wanted]])
            Y = _without(_random(rng, (self.n, PROBES), self.L.dtype), Q)
            beside = _beside(precondition, Q)
            probe = lowest_pairs(apply, beside, Y, 1, target, most_steps=PROBE_STEPS)
            late = found.residuals[:wanted].max() > target
            if late or not (probe.values < found.values[wanted - 1] - 4 * target).any():
                break
            X = np.hstack([found.vectors[:, :wanted], probe.vectors, found.vectors[:, wanted:]])
            X = _without(X, sections)
        return found._replace(steps=steps)

    def joined(
        self, sections: np.ndarray, found: Pairs | None, completeness: str, method: str
    ) -> _Found:
        """Return the sections and the pairs beside them."""
        if found is None:
            return _Found(np.zeros(sections.shape[1]), sections, completeness, 0, method)
        values = np.concatenate([np.zeros(sections.shape[1]), found.values])
        vectors = np.hstack([sections, found.vectors])
        return _Found(values, vectors, completeness, found.steps, method)

    def _first(self, cycle: Multigrid, m: int) -> np.ndarray:
        """Return the lowest vectors of the coarsest level, lifted and improved on the way."""
        roots = cycle.roots
        masses = [scipy.sparse.csr_array(roots @ roots)]  # of x* x in the coordinates of each level
        for P in cycle.prolongations:
            P = scipy.sparse.csr_array(P)
            masses.append(scipy.sparse.csr_array(P.conj().T @ (masses[-1] @ P)))
        last = cycle.operators[-1].toarray()
        X = rayleigh_ritz(last, masses[-1].toarray(), min(m, len(last)))[1]
        for level in range(len(cycle.prolongations) - 1, -1, -1):
            X = cycle.prolongations[level] @ X
            if level and X.shape[1]:
                A = scipy.sparse.csr_array(cycle.operators[level])
                X = lowest_pairs(
                    A.__matmul__,
                    lambda R, level=level: cycle.level_cycle(level, R),
                    X,
                    X.shape[1],
                    0.0,
                    mass=masses[level],
                    most_steps=BETWEEN,
                ).vectors
        return np.ascontiguousarray(roots @ X)

    def finished(
        self, found: _Found, unit: float, roots: np.ndarray, sheaf: CellularSheaf
    ) -> Eigenmodes:
        """Return the result in the units and the scalar type of the sheaf."""
        values, X, n_zero = self._zeros_told(found.values.copy(), found.vectors)
        following = values[self.k] if len(values) > self.k else np.inf
        values, X, n_zero = values[: self.k], X[:, : self.k], min(n_zero, self.k)
        residuals = np.linalg.norm(self.L @ X - X * values, axis=0)
        tie = np.sqrt(eps_of(np.float64)) * self.norm
        tied = following - values[-1] <= tie
        # norm(L x - lambda M x) of the weighted problem is at most its own residual times
        # norm(M^1/2)
        dtype = sheaf.dtype
        return Eigenmodes(
            read_only((np.maximum(values, 0) * unit * unit).astype(dtype.type(0).real.dtype)),
            read_only((X / roots[:, None]).astype(dtype)),
            read_only(residuals / (self.norm or 1.0)),
            n_zero,
            bool(tied),
            found.method,
            found.iterations,
            found.completeness,
        )

    def _zeros_told(self, values: np.ndarray, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Turn the lowest vectors into singular vectors of delta, and count its zeros.

        Eigenvalues resolve singular values only to the square root of rounding.
        """
        near = int((values <= self.near()).sum())
        if near == 0:
            return values, X, 0
        delta = coboundary(self.sheaf)
        R = scipy.linalg.qr(delta @ X[:, :near], mode="r")[0][:near]
        singular, V = scipy.linalg.svd(R)[1:]
        singular = np.append(singular, np.zeros(near - len(singular)))[::-1]
        X = np.hstack([X[:, :near] @ V.conj().T[:, ::-1], X[:, near:]])
        values[:near] = singular**2
        level = zero_level(max(delta.shape), eps_of(self.L.dtype), np.sqrt(self.norm))
        n_zero = int((singular <= level).sum())
        values[:n_zero] = 0
        return values, X, n_zero


def _beside(precondition: Callable, Q: np.ndarray) -> Callable:
    """Return a preconditioner on the complement of the columns of Q."""

    def apply(R: np.ndarray) -> np.ndarray:
        W = precondition(R)
        return W - Q @ (Q.conj().T @ W)

    return apply


def _without(X: np.ndarray, Q: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the columns of X beside those of Q."""
    for _ in range(2):
        X = scipy.linalg.qr(X - Q @ (Q.conj().T @ X), mode="economic")[0]
    return X - Q @ (Q.conj().T @ X)


def _random(rng: np.random.Generator, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    X = rng.standard_normal(shape).astype(dtype)
    return X + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else X


def _mass_roots(sheaf: CellularSheaf, mass: npt.ArrayLike | None) -> np.ndarray:
    """Return sqrt(m_v), shape (n,)."""
    if mass is None:
        return np.ones(sheaf.n_vertices)
    weights = scalar_array("mass", mass)
    if weights.shape != (sheaf.n_vertices,) or weights.dtype.kind == "c":
        raise ValueError(
            f"`mass` must hold one real number for each of {sheaf.n_vertices} vertices, got shape "
            f"{weights.shape} of {weights.dtype}"
        )
    bad = np.flatnonzero(~((weights > 0) & (weights < np.inf)))
    if bad.size:
        raise ValueError(
            f"`mass` must be positive and finite, got {weights[bad[0]]:g} at vertex {bad[0]}"
        )
    return np.sqrt(weights.astype(np.float64))


def _weighted(sheaf: CellularSheaf, roots: np.ndarray) -> CellularSheaf:
    """Return the sheaf with maps F_{v->e} / sqrt(m_v), whose Laplacian is M^{-1/2} L M^{-1/2}."""
    if (roots == 1).all():
        return sheaf
    data = [
        flat / np.repeat(roots[sheaf.edges[:, end]], np.diff(starts))
        for end, flat, starts in (
            (0, sheaf.tail_data, sheaf.tail_offsets),
            (1, sheaf.head_data, sheaf.head_offsets),
        )
    ]
    return trusted_sheaf(sheaf.edges, sheaf.vertex_dims, sheaf.edge_dims, *data)


def _start(sheaf: CellularSheaf, start: npt.ArrayLike, roots: np.ndarray) -> np.ndarray:
    """Return the start in the coordinates of the weighted problem, with independent columns."""
    X = scalar_array("start", start)
    if X.ndim != 2 or X.shape[0] != sheaf.dim_c0 or not np.isfinite(X).all():
        raise ValueError(
            f"`start` must hold finite vectors as columns, shape ({sheaf.dim_c0}, h), got {X.shape}"
        )
    X = X.astype(np.result_type(X.dtype, sheaf.dtype, np.float64))
    X = X * np.repeat(roots, sheaf.vertex_dims)[:, None]
    return scipy.linalg.qr(X, mode="economic")[0]
