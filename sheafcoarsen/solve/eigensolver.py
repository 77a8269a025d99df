"""Eigensolver: the lowest pairs of L x = t M x, L the Laplacian of a sheaf, by three methods.

The pencil (L, M) sets up solvers for L. Both methods for large problems run LOBPCG.
``shift_invert`` preconditions it by factors of L and counts the eigenvalues by inertia;
``multilevel`` preconditions it by the multigrid cycle and starts from eigenvectors of the coarsest
level and random columns. ``dense`` computes all pairs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import checks, linalg
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import (
    PER_OPERATION,
    Factors,
    Order,
    Pairs,
    coboundary,
    elimination_order,
    laplacian,
    lowest_pairs,
)
from sheafcoarsen.sections import global_sections, singular_pairs
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve.block_matrix import BlockMatrix, Matrix, block_size, norms, unit_roots
from sheafcoarsen.solve.complex_structure import complex_line
from sheafcoarsen.solve.conjugate_gradients import (
    Basis,
    deflated,
    independent,
    orthonormal,
    orthonormal_complement,
    refined_kernel,
    weighted,
)
from sheafcoarsen.solve.multigrid import NEAR_SINGULAR, Multigrid, padded

Method = Literal["auto", "dense", "direct", "multilevel"]

DENSE_BELOW = 800
"""Dimension up to which "auto" uses "dense"."""

SETTING_UP, PER_PAIR = 5e-6, 1e-6
"""Measured seconds of "multilevel": setup, per dimension; and iteration, per dimension and pair."""

GUARDS = 3
"""Minimum number of columns iterated in addition to the wanted ones."""

ROUNDS = 4
"""Maximum number of LOBPCG runs."""

SLOW = 8, 0.1
"""The columns are doubled once if this number of steps does not reduce residuals by this factor.

Slow convergence usually means that the columns split a multiplet.
"""


class Pencil:
    """Matrices L and M of a sheaf with maps of norm about 1; L's solvers are set up at first use.

    ``weights`` are the masses of the vertices, 1 by default. ``single`` says that the maps were
    given in single precision; the kernel then consists of sections in single precision.

    If all maps are scaled rotations of planes, L and M are complex matrices of half the size. Each
    of their eigenpairs then represents ``copies`` = 2 real eigenpairs.
    """

    def __init__(
        self,
        sheaf: CellularSheaf,
        weights: np.ndarray | None = None,
        single: bool = False,
        progress: bool = False,
    ):
        line = complex_line(sheaf)
        self.line, self.copies = line, 1 if line is None else 2
        self.sheaf = sheaf if line is None else line.sheaf
        self.single, self.progress = single, progress
        self.mass = None if weights is None else np.repeat(weights, self.sheaf.vertex_dims)
        d = block_size(self.sheaf.vertex_dims)
        self.L: Matrix = laplacian(self.sheaf, "csr" if d in (None, 1) else "bsr")
        self.n = self.L.shape[0]
        self._order: Order | None = None  # order of elimination, if it was computed
        # norm(L, inf) of the real sheaf
        self.norm = linalg.inf_norm(self.L if line is None else abs(self.L.real) + abs(self.L.imag))

    def expand(self, X: Any) -> Any:
        """Return cochains of the real sheaf, ``copies`` for each column of X."""
        return X if self.line is None else self.line.expand(X)

    def contract(self, X: np.ndarray) -> np.ndarray:
        """Return a basis of the span of cochains of the real sheaf."""
        return X if self.line is None else independent(self.line.contract(X))

    @cached_property
    def delta(self) -> scipy.sparse.csr_array:
        """The coboundary."""
        return coboundary(self.sheaf)

    @cached_property
    def apply(self) -> Callable[[np.ndarray], np.ndarray]:
        """The function X -> L X."""
        return BlockMatrix(self.L).__matmul__

    def residuals(self, values: np.ndarray, X: np.ndarray) -> np.ndarray:
        """Return norm(L x - t M x) for every pair."""
        return norms(self.apply(X) - weighted(self.mass, X) * values)

    def squares(self, X: np.ndarray) -> np.ndarray:
        """Return norm(x)^2 for columns that are orthonormal in M."""
        return np.ones(X.shape[1]) if self.mass is None else norms(X) ** 2

    @property
    def zero(self) -> float:
        """Threshold, from rounding of the maps, up to which singular values of delta are zero."""
        size, n = np.sqrt(self.norm), max(self.sheaf.dim_c0, self.sheaf.dim_c1)
        computed = linalg.zero_level(n, linalg.eps_of(np.float64), size)
        if not self.single:
            return computed
        # agrees with global_sections
        return max(computed, linalg.zero_level(1, linalg.eps_of(np.float32), size))

    def kernel(self, method: str) -> Basis:
        """Return a basis Q of ker L with Q* Q = I for any M; ``method`` may select the solver.

        Zeros are decided by singular values of delta, which eigenvalues of L do not resolve.
        """
        F = self.sheaf
        if not self.single:
            held = self.cycle.kernel() if method == "multilevel" else None
            return global_sections(F).basis if held is None else held
        dtype = np.complex64 if F.dtype.kind == "c" else np.float32
        rounded = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
        basis = global_sections(rounded).basis.astype(self.L.dtype)
        inverse = self.cycle.cycle if method == "multilevel" else self.factors.solve
        return refined_kernel(self.apply, inverse, basis)

    def looks_singular(self, method: str) -> bool:
        """Return whether the kernel must be computed before the iteration."""
        if method == "direct":
            pivots = np.abs(self.factors.pivots)
            return bool(pivots.min() <= NEAR_SINGULAR * pivots.max())
        return self.cycle.lowest <= NEAR_SINGULAR

    @cached_property
    def cycle(self) -> Multigrid:
        """The multigrid cycle from the sheaf's own coarsening."""
        cycle = Multigrid(self.sheaf, L=self.L, progress=self.progress)
        cycle.forget()
        return cycle

    @cached_property
    def factors(self) -> Factors:
        """Factors of L + 1e-12 norm(L, inf) I, which exist for a singular L too."""
        return Factors(scipy.sparse.csr_array(self.L), 1e-12 * self.norm, self._order)

    def is_factored_within(self, seconds: float, k: int) -> bool:
        """Return whether "direct" is expected to take at most this time; if so, store the order."""
        order = elimination_order(scipy.sparse.csr_array(self.L), seconds / PER_OPERATION)
        # two factorizations, and about ten solves for each iterated column
        needed = 2 * order.seconds + 10 * (k + GUARDS) * order.solve_seconds
        if needed <= seconds:
            self._order = order
        return needed <= seconds


@dataclass(frozen=True)
class EigenProblem:
    """Problem of the k lowest eigenpairs, or the k lowest that are orthogonal to the kernel."""

    pencil: Pencil
    k: int
    tol: float  # bound on the residuals norm(L x - t M x), relative to norm(L, inf) norm(x)
    positive: bool = False  # whether only pairs orthogonal to the kernel count among the k
    targets: Callable[[np.ndarray], np.ndarray] | None = None  # Ritz values -> residual targets
    seed: Any = 0

    def wanted(self, h0: int) -> int:
        """Return the number of pairs to find in the complement of h0 sections."""
        return self.k if self.positive else max(self.k - h0, 1)

    def is_small(self, h0: int = 0) -> bool:
        """Return whether the complement of h0 sections is too small for an iteration."""
        columns = self.wanted(h0) + GUARDS
        return self.pencil.norm == 0 or 4 * columns >= self.pencil.n - h0

    def chosen(self) -> str:
        """Return the method that "auto" uses."""
        pencil = self.pencil
        if pencil.copies * pencil.n <= DENSE_BELOW or self.is_small():
            return "dense"
        vertices = pencil.sheaf.n_vertices
        # With many vertices and more than 4.5 blocks per row of L, factors have too much fill, and
        # just estimating their cost takes a sixth of the time that "multilevel" needs
        if vertices > 20_000 and pencil.L.nnz * vertices > 4.5 * pencil.n**2:
            return "multilevel"
        seconds = pencil.n * (SETTING_UP + PER_PAIR * self.k)
        return "direct" if pencil.is_factored_within(seconds, self.k) else "multilevel"

    @property
    def target(self) -> float:
        """Residual at which the iteration stops."""
        return 0.8 * self.tol * self.pencil.norm

    def count_near(self, values: np.ndarray, X: np.ndarray) -> int:
        """Return how many of the ascending eigenvalues may be zero, for any M."""
        near = max(self.tol, 1e-10) * self.pencil.norm * self.pencil.squares(X)
        return int(np.cumprod(values <= near).sum())

    def residual_targets(self, values: np.ndarray, wanted: int) -> np.ndarray:
        """Return the residual targets of the wanted pairs and of the pairs after them."""
        targets = self.targets(values) if self.targets else np.full(len(values), self.target)
        if self.pencil.mass is None:  # accurate enough to decide whether k splits a multiplet
            apart = (values[wanted:] - values[wanted - 1 : wanted]) / 100
            targets[wanted:] = np.maximum(targets[wanted:], apart)
        return targets


@dataclass(frozen=True)
class Eigenpairs:
    """Lowest pairs orthogonal to ``sections``, at least one more than wanted if they exist."""

    values: np.ndarray
    vectors: np.ndarray
    sections: Basis
    completeness: str
    method: str
    iterations: int = 0


def lowest_eigenpairs(
    problem: EigenProblem,
    method: str,
    start: np.ndarray | None = None,
    sections: Basis | None = None,
) -> Eigenpairs | None:
    """Return the lowest pairs, with a basis of the kernel unless L is clearly regular.

    ``sections`` is that basis if it is known. If the complement of the kernel is too small for an
    iteration, a dense decomposition is used; with ``positive`` None is returned instead.
    """
    pencil, rng = problem.pencil, np.random.default_rng(problem.seed)
    if method == "dense" or (not problem.positive and problem.is_small()):
        return dense(problem)
    solve = shift_invert if method == "direct" else multilevel
    none = np.zeros((pencil.n, 0), pencil.L.dtype)
    start = none if start is None else start
    given = start.shape[1]
    if method == "multilevel":
        # a given start may miss eigenvectors, so add those of the coarsest level, except those of
        # stalk vectors that all maps send to 0, which are prolonged to 0
        width, cycle = _width(problem.k), pencil.cycle
        m = min(width - (width - problem.k) // 2, pencil.n // 4)
        lifted = cycle.lift(scipy.linalg.eigh(cycle.operators[-1].toarray())[1][:, :m])
        start = np.hstack([start, lifted[:, norms(lifted) > 0]])
    if sections is None and pencil.looks_singular(method):
        sections = _kernel(problem, method)
    steps = 0
    if sections is None:
        if problem.is_small():
            return None
        found = solve(problem, none, start, rng, given)
        if not problem.count_near(found.values[:1], found.vectors[:, :1]):
            return found
        steps, start, sections = found.iterations, found.vectors, _kernel(problem, method)
    h0 = sections.shape[1]
    if h0 > problem.k and not problem.positive:
        return Eigenpairs(np.zeros(0), none, sections, "probe", method, steps)
    if problem.is_small(h0):
        return None if problem.positive else dense(problem)
    found = solve(problem, sections, start, rng, given)
    return replace(found, iterations=found.iterations + steps)


def _kernel(problem: EigenProblem, method: str) -> Basis:
    """Return an M-orthonormal basis of the kernel; unless ``positive``, at most k + 1 columns."""
    basis, mass = problem.pencil.kernel(method), problem.pencil.mass
    if problem.positive:
        return basis
    basis = basis[:, : problem.k + 1]
    basis = basis if isinstance(basis, np.ndarray) else basis.toarray()
    return basis if mass is None else orthonormal(basis, mass)


def dense(problem: EigenProblem) -> Eigenpairs:
    """Return pairs from a dense decomposition; the mass does not affect the number of zeros."""
    pencil, k = problem.pencil, problem.k
    A = pencil.L.toarray()
    values, X = scipy.linalg.eigh(A)
    low = 0.1  # up to this eigenvalue, relative to norm(L, inf), rounding may mix in the kernel
    m = int((values <= low * pencil.norm).sum())
    values, X = resolved(pencil.delta, values, X, m)
    zeros = int((values[:m] <= pencil.zero**2).sum())
    sections, values, X = X[:, :zeros], values[zeros:], X[:, zeros:]
    if pencil.mass is not None:
        roots, sections = np.sqrt(pencil.mass)[:, None], orthonormal(sections, pencil.mass)
        A = A / roots / roots.T
        values, X = scipy.linalg.eigh(A)
        m = int((values <= low * abs(A).sum(axis=1).max()).sum())
        C = scipy.linalg.qr(X[:, :m].conj().T @ (roots * sections))[0][:, zeros:]
        values, X = values[zeros:], np.hstack([X[:, :m] @ C, X[:, m:]]) / roots
        values, X = resolved(pencil.delta, values, X, m - zeros)
    return Eigenpairs(values[: k + 1], X[:, : k + 1], sections, "dense", "dense")


def shift_invert(
    problem: EigenProblem, sections: Basis, start: np.ndarray, rng: np.random.Generator, given: int
) -> Eigenpairs:
    """Return pairs from LOBPCG with factors of L, checked by inertia, or else by random columns."""
    pencil, steps, h0, least = problem.pencil, 0, sections.shape[1], 0
    for _ in range(ROUNDS):
        found = _iterated(problem, pencil.factors.solve, sections, start, rng, least)
        cut, shift, below = _counted(problem, found, h0)
        steps += found.steps
        if below == cut or (least and below < 0):
            completeness = "inertia" if below == cut else "probe"
            X = found.vectors
            return Eigenpairs(found.values, X, sections, completeness, "direct", steps)
        if 0 <= below < cut:
            break  # give up: rounding has duplicated a pair, or the count is wrong
        # pairs are missing, or inertia is not available: search with random columns
        more = linalg.normal(rng, (pencil.n, max(below - cut, 0) + GUARDS), pencil.L.dtype)
        start, least = np.hstack([found.vectors, more]), given + 1
    raise NotConverged(
        f"method 'direct' found {cut} eigenvalues below {shift:g}, but inertia counts "
        f'{below}: use method="multilevel"'
    )


def _counted(problem: EigenProblem, found: Pairs, h0: int) -> tuple[int, float, int]:
    """Return the number of computed values below a shift, the shift, and the count by inertia.

    The shift is below the multiplet of the last wanted value. The h0 zeros count, too. The last
    number is -1 if factors do not exist.
    """
    pencil, values = problem.pencil, found.values[: problem.wanted(h0)]
    scale = float(pencil.squares(found.vectors[:, len(values) - 1 : len(values)])[0])
    error = max(4 * problem.tol, np.sqrt(linalg.eps_of(pencil.L.dtype))) * pencil.norm * scale
    shift = float(values[-1]) - error
    cut = int((values < shift).sum()) + (h0 if shift > 0 else 0)
    A, added = scipy.sparse.csr_array(pencil.L), -shift  # A + added I = L - shift M
    if pencil.mass is not None:
        M = scipy.sparse.diags_array(pencil.mass, format="csr")
        A, added = scipy.sparse.csr_array(A - shift * M), 0.0
    try:
        return cut, shift, Factors(A, added, pencil._order).count_negative()
    except np.linalg.LinAlgError:
        return cut, shift, -1  # no inertia: a pivot is zero


def multilevel(
    problem: EigenProblem, sections: Basis, start: np.ndarray, rng: np.random.Generator, given: int
) -> Eigenpairs:
    """Return pairs from LOBPCG with the multigrid cycle and random columns.

    More than the ``given`` start columns must converge, because these may miss eigenvectors.
    """
    pencil = problem.pencil
    if pencil.cycle.unseen:  # add random vectors in the kernels of L's diagonal blocks
        S, T = unit_roots(pencil.L, pencil.sheaf.vertex_dims)
        columns = min(pencil.cycle.unseen, problem.k + 1)
        Y = linalg.normal(rng, (pencil.n, columns), pencil.L.dtype)
        Y = Y - T @ (S @ Y)
        start = np.hstack([Y[:, norms(Y) > 0], start])
    found = _iterated(problem, pencil.cycle.cycle, sections, start, rng, given + 1)
    vectors = found.vectors
    return Eigenpairs(found.values, vectors, sections, "probe", "multilevel", found.steps)


def _width(wanted: int) -> int:
    """Return the number of columns to iterate for a number of wanted pairs."""
    return padded(wanted + max(GUARDS, wanted // 5))


def _iterated(
    problem: EigenProblem,
    inverse: Callable,
    sections: Basis,
    X: np.ndarray,
    rng: np.random.Generator,
    least: int,
) -> Pairs:
    """Return the lowest pairs orthogonal to the sections, and one more to detect multiplets.

    If ``least`` is positive, the iteration takes at least 8 steps and ends when ``least`` pairs
    have converged, so that missed pairs appear.
    """
    pencil, wanted = problem.pencil, problem.wanted(sections.shape[1])
    dtype, mass, steps, slow = pencil.L.dtype, pencil.mass, 0, {"stalled": SLOW}
    weights = None if mass is None else scipy.sparse.diags_array(mass)
    more = max(_width(wanted) - X.shape[1], 1)
    for _ in range(ROUNDS):
        X = np.hstack([X, linalg.normal(rng, (pencil.n, more), dtype)])
        X = orthonormal_complement(X, sections, mass)
        found = lowest_pairs(
            pencil.apply,
            deflated(inverse, sections, mass),
            X,
            max(wanted + 1, least),
            lambda values: problem.residual_targets(values, wanted),
            mass=weights,
            steps=(8 if least else 0, 60),
            **slow,
        )
        steps += found.steps
        lost = max(wanted + 1 - len(found.values), 0)
        allowed = np.maximum(problem.residual_targets(found.values, wanted), problem.target)
        if not (lost or (found.residuals > allowed)[:wanted].any()):
            break
        more = lost + (_width(wanted) if slow else 2)
        X, slow = found.vectors, {}
    return found._replace(steps=steps)


def resolved(
    delta: scipy.sparse.csr_array, values: np.ndarray, X: np.ndarray, m: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenpairs of L, the first m of them recomputed by ``singular_pairs`` of delta."""
    if m == 0:
        return values, X
    sigma, Y = singular_pairs(delta, X[:, :m])
    return np.append(sigma**2, values[m:]), np.hstack([Y, X[:, m:]])


def unit_mass(sheaf: CellularSheaf, mass: npt.ArrayLike | None) -> tuple[np.ndarray | None, float]:
    """Return the masses divided by a power of 4 near the largest one, and that power."""
    if mass is None:
        return None, 1.0
    if scipy.sparse.issparse(mass):
        raise TypeError(
            "`mass` must hold one real number for each vertex, got a sparse matrix: use "
            "scipy.sparse.linalg.eigsh(laplacian(F), M=mass, sigma=...) for other masses"
        )
    weights = checks.scalar_array("mass", mass)
    if weights.shape != (sheaf.n_vertices,) or weights.dtype.kind == "c":
        raise ValueError(
            f"`mass` must hold one real number for each of {sheaf.n_vertices} vertices, got shape "
            f"{weights.shape} of {weights.dtype}"
        )
    if (bad := checks.first_true(~((weights > 0) & (weights < np.inf)))) is not None:
        first = weights[bad]
        hint = "; areas are 0 at vertices of no face, which must be removed" if first == 0 else ""
        raise ValueError(f"`mass` must be positive and finite, got {first:g} at vertex {bad}{hint}")
    weights = weights.astype(np.float64)
    largest = float(weights.max(initial=0))
    if (light := checks.first_true(weights < 1e-20 * largest)) is not None:
        raise ValueError(
            f"`mass` must not differ by more than a factor of 1e+20, got "
            f"{weights[light]:g} at vertex {light} and {largest:g} at vertex "
            f"{weights.argmax()}: increase the smallest masses, whose modes are the highest"
        )
    unit = 4.0 ** ((math.frexp(largest)[1] - 1) // 2)
    return weights / unit, unit
