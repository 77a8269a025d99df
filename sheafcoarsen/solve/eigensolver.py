"""Eigensolver: the lowest pairs of L x = t M x, L the Laplacian of a sheaf, by three methods.

"direct" and "multilevel" run LOBPCG. It is preconditioned by factors of L, which also count the
eigenvalues by inertia, or by the multigrid cycle, which also lifts eigenvectors of the coarsest
level for the start. "dense" computes all pairs.
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

from sheafcoarsen._support import EPS, checks, linalg
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import (
    Factors,
    Order,
    Pairs,
    coboundary,
    elimination_order,
    laplacian,
    lowest_pairs,
)
from sheafcoarsen.sections import global_sections, singular_pairs
from sheafcoarsen.sheaf import CellularSheaf, component_labels, trusted_sheaf
from sheafcoarsen.solve.block_matrix import (
    BlockMatrix,
    Matrix,
    block_size,
    complex_columns,
    norms,
    real_columns,
    unit_roots,
)
from sheafcoarsen.solve.conjugate_gradients import (
    Basis,
    deflated,
    independent,
    orthonormal,
    orthonormal_complement,
    refined_kernel,
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


def complex_line(sheaf: CellularSheaf) -> tuple[CellularSheaf, np.ndarray | None]:
    """Return a complex sheaf of lines that represents a real sheaf, and a mask of its vertices.

    It exists if reflecting some vertex stalks, those in the mask, and some edge stalks turns all
    maps into scaled rotations of planes; otherwise return the sheaf and None. A complex eigenvector
    z gives two real ones, z and i z.
    """
    if sheaf.map_shape != (2, 2) or sheaf.dtype.kind == "c":
        return sheaf, None
    n, ends = sheaf.n_vertices, sheaf.edges.T
    numbers, reflects = [], []
    for data in (sheaf.tail_data, sheaf.head_data):
        (a, b), (c, d) = data.reshape(-1, 2, 2).transpose(1, 2, 0)
        # a map is x -> z x + w conj(x), with z the rotation and w the reflection
        rotation, reflection = (a + d + 1j * (c - b)) / 2, (a - d + 1j * (c + b)) / 2
        sizes = np.sort([abs(rotation), abs(reflection)], axis=0)
        if (sizes[0] > 16 * linalg.eps_of(sheaf.dtype) * sizes[1]).any():
            return sheaf, None
        reflects.append(abs(reflection) > abs(rotation))
        numbers.append(np.where(reflects[-1], reflection, rotation))
    mirrored = np.zeros(n, bool)
    joins = (numbers[0] != 0) & (numbers[1] != 0)
    differ = (reflects[0] != reflects[1])[joins]
    if differ.any():  # consistent if the double cover separates both copies of a vertex
        u, v = ends[:, joins]
        there, back = np.where(differ, v + n, v), np.where(differ, v, v + n)
        cover = np.stack([np.concatenate([u, u + n]), np.concatenate([there, back])], axis=1)
        labels = component_labels(2 * n, cover)
        mirrored = labels[:n] > labels[n:]
        if (labels[:n] == labels[n:]).any():
            return sheaf, None
    maps = [
        np.where(odd ^ mirrored[end], z.conj(), z)
        for z, odd, end in zip(numbers, reflects, ends, strict=True)
    ]
    ones = np.ones_like(sheaf.vertex_dims), np.ones_like(sheaf.edge_dims)
    return trusted_sheaf(sheaf.edges, *ones, *maps), mirrored


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
        self.sheaf, self._mirrored = complex_line(sheaf)
        self.copies = 1 if self._mirrored is None else 2
        self.single, self.progress = single, progress
        self.mass = None if weights is None else np.repeat(weights, self.sheaf.vertex_dims)
        d = block_size(self.sheaf.vertex_dims)
        self.L: Matrix = laplacian(self.sheaf, "csr" if d in (None, 1) else "bsr")
        self.apply = BlockMatrix(self.L).__matmul__  # X -> L X
        self.n = self.L.shape[0]
        self._order: Order | None = None  # order of elimination, if it was computed
        # norm(L, inf) of the real sheaf
        size = self.L if self._mirrored is None else abs(self.L.real) + abs(self.L.imag)
        self.norm = linalg.inf_norm(size)

    def expand(self, Z: Any) -> Any:
        """Return columns as cochains of the real sheaf: Z itself, or those of Z and i Z in turn."""
        if self._mirrored is None:
            return Z
        signs = np.stack([np.ones(self.n), np.where(self._mirrored, -1.0, 1.0)], axis=1).ravel()
        if scipy.sparse.issparse(Z):
            one, i = scipy.sparse.eye_array(2), scipy.sparse.csr_array([[0.0, -1.0], [1.0, 0.0]])
            X = scipy.sparse.kron(Z.real, one) + scipy.sparse.kron(Z.imag, i)
            return scipy.sparse.csr_array(scipy.sparse.diags_array(signs) @ X)
        X = np.stack([real_columns(Z), real_columns(1j * Z)], axis=2)
        return X.reshape(len(X), -1) * signs[:, None]

    def contract(self, X: np.ndarray) -> np.ndarray:
        """Return a basis of the span of cochains of the real sheaf."""
        if self._mirrored is None:
            return X
        Z = complex_columns(X)
        Z[self._mirrored] = Z[self._mirrored].conj()
        return independent(Z)

    @cached_property
    def cycle(self) -> Multigrid:
        """The multigrid cycle from the sheaf's own coarsening."""
        cycle = Multigrid(self.sheaf, L=self.L, progress=self.progress)
        # free half of the memory: the cycle does not need the coarsenings and A_0
        cycle.coarsenings = []
        if len(cycle.operators) > 1:
            cycle.operators[0] = None
        return cycle

    @cached_property
    def factors(self) -> Factors:
        """Factors of L + 1e-12 norm(L, inf) I, which exist for a singular L too."""
        return Factors(scipy.sparse.csr_array(self.L), 1e-12 * self.norm, self._order)

    def is_factored_within(self, seconds: float, k: int) -> bool:
        """Return whether "direct" is expected to take at most this time; if so, store the order."""
        per_operation = 2e-10  # seconds measured on one thread, like 5e-8 and 1e-9 per entry
        order = elimination_order(scipy.sparse.csr_array(self.L), seconds / per_operation)
        # two factorizations, and about ten solves for each iterated column
        needed = 2 * (per_operation * order.operations + 5e-8 * order.entries)
        needed += 10 * (k + GUARDS) * 1e-9 * order.entries
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

    def count_near(self, values: np.ndarray, X: np.ndarray) -> int:
        """Return how many of the ascending eigenvalues may be zero, for any M."""
        near = max(self.tol, 1e-10) * self.pencil.norm * norms(X) ** 2
        return int(np.cumprod(values <= near).sum())

    def residual_targets(self, values: np.ndarray, wanted: int) -> np.ndarray:
        """Return the residual targets of the wanted pairs and of the pairs after them."""
        targets = np.full(len(values), 0.8 * self.tol * self.pencil.norm)
        targets = self.targets(values) if self.targets else targets
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
    if method == "dense" or problem.is_small():
        return None if problem.positive else dense(problem)
    dtype = pencil.L.dtype
    none = np.zeros((pencil.n, 0), dtype)
    start = none if start is None else start
    given, steps = start.shape[1], 0
    if method == "multilevel":
        # a given start may miss eigenvectors, so add those of the coarsest level, except those of
        # stalk vectors that all maps send to 0, which are prolonged to 0
        width, cycle = _width(problem.k), pencil.cycle
        m = min(width - (width - problem.k) // 2, pencil.n // 4)
        lifted = cycle.lift(scipy.linalg.eigh(cycle.operators[-1].toarray())[1][:, :m])
        start = np.hstack([start, lifted[:, norms(lifted) > 0]])
        if cycle.unseen:  # add random vectors in the kernels of L's diagonal blocks
            _, S, T = unit_roots(pencil.L, pencil.sheaf.vertex_dims)
            Y = linalg.normal(rng, (pencil.n, min(cycle.unseen, problem.k + 1)), dtype)
            Y = Y - T @ (S @ Y)
            start = np.hstack([Y[:, norms(Y) > 0], start])
        lowest = cycle.lowest
    else:
        pivots = np.abs(pencil.factors.pivots)
        lowest = float(pivots.min() / pivots.max())
    if sections is None and lowest <= NEAR_SINGULAR:
        sections = _kernel(problem, method)
    if sections is None:
        found = iterative(problem, method, none, start, rng, given)
        if not problem.count_near(found.values[:1], found.vectors[:, :1]):
            return found
        steps, start, sections = found.iterations, found.vectors, _kernel(problem, method)
    h0 = sections.shape[1]
    if h0 > problem.k and not problem.positive:
        return Eigenpairs(np.zeros(0), none, sections, "probe", method, steps)
    if problem.is_small(h0):
        return None if problem.positive else dense(problem)
    found = iterative(problem, method, sections, start, rng, given)
    return replace(found, iterations=found.iterations + steps)


def _kernel(problem: EigenProblem, method: str) -> Basis:
    """Return an M-orthonormal basis of the kernel, of at most k + 1 columns unless ``positive``.

    Zeros are decided by singular values of delta, which eigenvalues of L do not resolve.
    """
    pencil = problem.pencil
    F = pencil.sheaf
    if pencil.single:
        single = np.complex64 if F.dtype.kind == "c" else np.float32
        rounded = F.with_maps(F.tail_data.astype(single), F.head_data.astype(single))
        basis = global_sections(rounded).basis.astype(pencil.L.dtype)
        inverse = pencil.cycle.cycle if method == "multilevel" else pencil.factors.solve
        basis = refined_kernel(pencil.apply, inverse, basis)
    else:
        held = pencil.cycle.kernel() if method == "multilevel" else None
        basis = global_sections(F).basis if held is None else held
    if problem.positive:
        return basis
    basis = basis[:, : problem.k + 1]
    basis = basis if isinstance(basis, np.ndarray) else basis.toarray()
    return basis if pencil.mass is None else orthonormal(basis, pencil.mass)


def dense(problem: EigenProblem) -> Eigenpairs:
    """Return pairs from a dense decomposition; the mass does not affect the number of zeros."""
    pencil, k = problem.pencil, problem.k
    A, delta = pencil.L.toarray(), coboundary(pencil.sheaf)
    values, X = scipy.linalg.eigh(A)
    low = 0.1  # up to this eigenvalue, relative to norm(L, inf), rounding may mix in the kernel
    m = int((values <= low * pencil.norm).sum())
    values, X = resolved(delta, values, X, m)
    # threshold for singular values of delta, from rounding of the maps
    level = linalg.zero_level(max(delta.shape), EPS, np.sqrt(pencil.norm))
    if pencil.single:  # agrees with global_sections
        level = max(level, linalg.zero_level(1, linalg.eps_of(np.float32), np.sqrt(pencil.norm)))
    zeros = int((values[:m] <= level**2).sum())
    sections, values, X = X[:, :zeros], values[zeros:], X[:, zeros:]
    if pencil.mass is not None:
        roots, sections = np.sqrt(pencil.mass)[:, None], orthonormal(sections, pencil.mass)
        A = A / roots / roots.T
        values, X = scipy.linalg.eigh(A)
        m = int((values <= low * abs(A).sum(axis=1).max()).sum())
        C = scipy.linalg.qr(X[:, :m].conj().T @ (roots * sections))[0][:, zeros:]
        values, X = values[zeros:], np.hstack([X[:, :m] @ C, X[:, m:]]) / roots
        values, X = resolved(delta, values, X, m - zeros)
    return Eigenpairs(values[: k + 1], X[:, : k + 1], sections, "dense", "dense")


def iterative(
    problem: EigenProblem,
    method: str,
    sections: Basis,
    start: np.ndarray,
    rng: np.random.Generator,
    given: int,
) -> Eigenpairs:
    """Return pairs from LOBPCG, checked by inertia with "direct", or else by random columns.

    With random columns more than the ``given`` start columns must converge, because these may miss
    eigenvectors.
    """
    pencil, steps, h0 = problem.pencil, 0, sections.shape[1]
    direct = method == "direct"
    inverse, least = (pencil.factors.solve, 0) if direct else (pencil.cycle.cycle, given + 1)
    for _ in range(ROUNDS):
        found = _iterated(problem, inverse, sections, start, rng, least)
        steps += found.steps
        cut, shift, below = _counted(problem, found, h0) if direct else (0, 0.0, -1)
        if below == cut or (least and below < 0):
            by = "inertia" if below == cut else "probe"
            return Eigenpairs(found.values, found.vectors, sections, by, method, steps)
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
    scale = np.linalg.norm(found.vectors[:, len(values) - 1]) ** 2
    error = max(4 * problem.tol, np.sqrt(EPS)) * pencil.norm * scale
    shift = float(values[-1] - error)
    cut = int((values < shift).sum()) + (h0 if shift > 0 else 0)
    A, added = scipy.sparse.csr_array(pencil.L), -shift  # A + added I = L - shift M
    if pencil.mass is not None:
        M = scipy.sparse.diags_array(pencil.mass, format="csr")
        A, added = scipy.sparse.csr_array(A - shift * M), 0.0
    try:
        return cut, shift, Factors(A, added, pencil._order).count_negative()
    except np.linalg.LinAlgError:
        return cut, shift, -1  # no inertia: a pivot is zero


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
        missed = found.residuals > problem.residual_targets(found.values, wanted)
        if not (lost or missed[:wanted].any()):
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
