"""The pencil (L, M) of an eigenvalue problem, with solvers for L."""

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import eps_of, first_true, scalar_array, zero_level
from sheafcoarsen.operators import (
    PER_OPERATION,
    Factors,
    Order,
    coboundary,
    elimination_order,
    laplacian,
)
from sheafcoarsen.sections import global_sections, singular_pairs
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve.block_matrix import BlockMatrix, Matrix, block_size, norms
from sheafcoarsen.solve.deflation import Basis, refined_kernel, weighted
from sheafcoarsen.solve.multigrid import NEAR_SINGULAR, Multigrid

GUARDS = 3
"""Minimum number of columns iterated in addition to the wanted ones."""


class Pencil:
    """Matrices L and M of a sheaf with maps of norm about 1; L's solvers are set up at first use.

    ``mass`` is the diagonal of M, the identity by default. ``rounded`` is the sheaf in single
    precision if its maps were given so; its sections are the kernel.
    """

    def __init__(
        self,
        sheaf: CellularSheaf,
        mass: np.ndarray | None = None,
        rounded: CellularSheaf | None = None,
        progress: bool = False,
    ):
        self.sheaf, self.mass, self.rounded, self.progress = sheaf, mass, rounded, progress
        d = block_size(sheaf.vertex_dims)
        self.L: Matrix = laplacian(sheaf, "csr" if d in (None, 1) else "bsr")
        self.n = self.L.shape[0]
        self._order: Order | None = None  # order of elimination, if it was computed
        self.norm = float(abs(self.L).sum(axis=1).max(initial=0.0))

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
        computed = zero_level(n, eps_of(np.float64), size)
        if self.rounded is None:
            return computed
        return max(computed, zero_level(1, eps_of(np.float32), size))  # agrees with global_sections

    def kernel(self, method: str) -> Basis:
        """Return a basis of ker L, orthonormal if M = I, computed with the solver of a method.

        Zeros are decided by singular values of delta, which eigenvalues of L do not resolve.
        """
        held = self.cycle.kernel() if method == "multilevel" and self.rounded is None else None
        if held is not None:
            return held
        if self.rounded is None:
            return global_sections(self.sheaf).basis
        basis = global_sections(self.rounded).basis.astype(self.L.dtype)
        inverse = self.cycle.cycle if method == "multilevel" else self.factors.solve
        return refined_kernel(self.apply, inverse, basis)

    def looks_singular(self, method: str) -> bool:
        """Return whether the kernel must be computed before the iteration."""
        if method == "direct":
            pivots = np.abs(self.factors.pivots)
            return bool(pivots.min() <= NEAR_SINGULAR * pivots.max())
        # ``unseen`` counts stalk vectors that all maps send to 0; the coarsest level omits them
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

    def factors_at(self, t: float) -> Factors:
        """Return factors of L - t M."""
        A = scipy.sparse.csr_array(self.L)
        if self.mass is None:
            return Factors(A, -t, self._order)
        M = scipy.sparse.diags_array(self.mass, format="csr")
        return Factors(scipy.sparse.csr_array(A - t * M), 0.0, self._order)

    def is_factored_within(self, seconds: float, k: int) -> bool:
        """Return whether "direct" finds k pairs in the given time; if so, store the order."""
        order = elimination_order(scipy.sparse.csr_array(self.L), seconds / PER_OPERATION)
        # two factorizations, and about ten solves for each iterated column
        needed = 2 * order.seconds + 10 * (k + GUARDS) * order.solve_seconds
        if needed <= seconds:
            self._order = order
        return needed <= seconds


def resolved(
    delta: scipy.sparse.csr_array, values: np.ndarray, X: np.ndarray, m: int
) -> tuple[np.ndarray, np.ndarray]:
    """Replace the first m eigenpairs of L by ``singular_pairs``."""
    if m == 0:
        return values, X
    sigma, Y = singular_pairs(delta, X[:, :m])
    return np.append(sigma**2, values[m:]), np.hstack([Y, X[:, m:]])


def unit_mass(sheaf: CellularSheaf, mass: npt.ArrayLike | None) -> tuple[np.ndarray | None, float]:
    """Return the masses divided by a power of 4 near the largest one, and that power."""
    if mass is None:
        return None, 1.0
    weights = scalar_array("mass", mass)
    if weights.shape != (sheaf.n_vertices,) or weights.dtype.kind == "c":
        raise ValueError(
            f"`mass` must hold one real number for each of {sheaf.n_vertices} vertices, got shape "
            f"{weights.shape} of {weights.dtype}"
        )
    if (bad := first_true(~((weights > 0) & (weights < np.inf)))) is not None:
        first = weights[bad]
        hint = "; areas are 0 at vertices of no face, which must be removed" if first == 0 else ""
        raise ValueError(f"`mass` must be positive and finite, got {first:g} at vertex {bad}{hint}")
    weights = weights.astype(np.float64)
    largest = float(weights.max())
    if (light := first_true(weights < 1e-20 * largest)) is not None:
        raise ValueError(
            f"`mass` must not differ by more than a factor of 1e+20, got "
            f"{weights[light]:g} at vertex {light} and {largest:g} at vertex "
            f"{weights.argmax()}: increase the smallest masses, whose modes are the highest"
        )
    unit = 4.0 ** ((math.frexp(largest)[1] - 1) // 2)
    return weights / unit, unit
