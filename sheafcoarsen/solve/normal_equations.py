"""Least squares to rounding: conjugate gradients on the normal equations, renewed from the maps."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import EPS, RESIDUAL_LIMIT, eps_of, inf_norm, single_threaded_blas
from sheafcoarsen.exceptions import NotConverged, SingularProblemWarning
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve._solver import Method, Solver, approximate_inverse, column_norms
from sheafcoarsen.solve.conjugate_gradients import conjugate_gradients

DIRECT_AT_LAST = 30_000
"""Unknowns up to which L is factored, whatever it fills up, where iterating did not get there.

That takes minutes and a few gigabytes at most.
"""

MANY = 2000
"""Sections, by the numbers of rows and columns, from which on no basis of them is computed."""

ROUNDS = 8
"""Residuals that are taken anew from the maps, at most."""

ROUND = 1e-9
"""What a round takes the residual down to, relatively."""

ROUGH = 1e-2
"""The same, where an order of magnitude is asked for."""


def column_units(x: np.ndarray) -> np.ndarray:
    """Return a power of two for each column by which its largest entry becomes 1/2 .. 1."""
    return np.array([power_of_two(size) for size in np.abs(x).max(axis=0, initial=0.0)])


def square_bound(D: scipy.sparse.csr_array) -> float:
    """Return an upper bound of norm(D)^2, the product of the largest row and column sums."""
    return inf_norm(D.T) * inf_norm(D)


def has_many_sections(sheaf: CellularSheaf) -> bool:
    """Tell whether there must be more sections than a basis is worth."""
    return sheaf.dim_c0 - sheaf.dim_c1 >= max(MANY, sheaf.dim_c0 // 10)


class NormalEquations:
    """Solutions of least norm of min norm(D y - r), D up to a factor the coboundary of a sheaf.

    A :class:`Solver` of the sheaf preconditions; of residuals and products only those are used that
    come as D* (D y), whose rounding leaves small singular values of D what they are. Where there
    are very many sections, and without a ``method``, steps are plain: they begin at zero, and no
    kernel is needed.

    Attributes
    ----------
    kernel : ndarray or sparse array, shape (n, h0), or None
        An orthonormal basis of the directions that D does not see.
    doubt : str or None
        Why rounding may have decided about them.
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
        self.bound = square_bound(D)
        self.method = "plain"
        self.kernel: Any = None
        self.doubt: str | None = None
        self._inverse: Callable[[np.ndarray], np.ndarray] = lambda X: X / (self.bound or 1.0)
        if method is not None and sheaf.dim_c0 and not has_many_sections(sheaf):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                self._set_up(method)
            doubts = [w for w in caught if issubclass(w.category, SingularProblemWarning)]
            self.doubt = str(doubts[0].message) if doubts else None

    def _set_up(self, method: Method) -> None:
        try:
            solve = Solver(self.sheaf, method=method, progress=self.progress)
        except np.linalg.LinAlgError:  # the kernel is not to be had, or the factors
            return
        self._inverse, self.kernel = approximate_inverse(solve)
        if self.sheaf.dtype.itemsize < self.D.dtype.itemsize:
            # zero is decided by the precision of the maps
            basis = global_sections(self.sheaf).basis.astype(self.D.dtype)
            if not scipy.sparse.issparse(basis):
                basis = np.linalg.qr(basis)[0]
            self.kernel = basis if basis.shape[1] else None
        self.method = solve.method

    def beside_kernel(self, X: np.ndarray) -> np.ndarray:
        """Return X without its part in the kernel."""
        for _ in range(2 if self.kernel is not None else 0):
            X = X - self.kernel @ (self.kernel.conj().T @ X)
        return X

    def gradient(self, r: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return D* (r - D y), where there is a kernel beside it."""
        return self.beside_kernel(self.adjoint @ (r - self.D @ y))

    def solve(self, r: np.ndarray) -> np.ndarray:
        """Return the y of least norm that minimizes norm(D y - r), column by column.

        Rounds end where the gradient is rounding or one does not halve it: what is left would be
        divided by small singular values.
        """
        y = np.zeros((self.D.shape[1], r.shape[1]), np.result_type(self.D.dtype, r.dtype))
        if self.bound == 0 or not r.size:
            return y
        g = self.gradient(r, y)
        for _ in range(ROUNDS):
            sizes = column_norms(g)
            wanted = sizes > EPS / 4 * self._scale(r, y)
            if not wanted.any():
                break
            step = np.zeros_like(y)
            step[:, wanted] = self.correction(g[:, wanted], ROUND)
            trial = y + step
            after = self.gradient(r, trial)
            better = column_norms(after) < sizes / 2
            y, g = np.where(better, trial, y), np.where(better, after, g)
            if not better[wanted].any():
                break
        y = self.beside_kernel(y)
        self._check(r, y)
        return y

    @single_threaded_blas()
    def correction(self, g: np.ndarray, share: float) -> np.ndarray:
        """Return about (D* D)^+ g, to a residual of ``share`` times g."""
        sizes = column_norms(g)
        target = share * np.ones_like(sizes)
        unit = np.where(sizes > 0, sizes, 1)
        found = conjugate_gradients(
            lambda X: self.beside_kernel(self.adjoint @ (self.D @ X)),
            lambda X: self.beside_kernel(self._inverse(X)),
            np.ascontiguousarray(g / unit),
            np.zeros_like(g),
            target,
            self.progress,
        )
        return self.beside_kernel(found.x) * sizes

    def smallest(self) -> float:
        """Return the smallest singular value beside the kernel over norm(D), about.

        From above, and sharp where it is far smaller than the others: by a step of inverse
        iteration.
        """
        if self.bound == 0 or self.method == "plain":
            return 1.0
        g = np.random.default_rng(0).standard_normal((self.D.shape[1], 1)).astype(self.D.dtype)
        z = self.correction(self.beside_kernel(g), ROUGH)
        size = float(np.linalg.norm(z))
        return float(np.linalg.norm(self.D @ z)) / size / np.sqrt(self.bound) if size else 1.0

    def kernel_part(self, x: np.ndarray) -> np.ndarray:
        """Return the orthogonal projection of x on ker D by plain steps."""
        level = max(self.D.shape) * EPS * np.sqrt(self.bound) * np.linalg.norm(x, axis=0)
        for _ in range(ROUNDS):
            if (np.linalg.norm(self.D @ x, axis=0) <= level).all():
                return x
            x = x - self.correction(self.adjoint @ (self.D @ x), ROUND)
        raise NotConverged("the iteration stopped before what it left of delta x was rounding", x)

    def _scale(self, r: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self.bound * column_norms(y) + np.sqrt(self.bound) * column_norms(r)

    def _check(self, r: np.ndarray, y: np.ndarray) -> None:
        """Refuse an answer whose normal equations do not hold to rounding."""
        gradient = column_norms(self.adjoint @ (r - self.D @ y))
        eps = eps_of(self.sheaf.dtype)
        allowed = RESIDUAL_LIMIT * max(self.D.shape[1], 1) * eps * self._scale(r, y)
        if (gradient > allowed).any():
            worst = float((gradient / np.where(allowed > 0, allowed, 1.0)).max())
            raise NotConverged(
                f"the iteration stopped at {worst:.3g} times the residual allowed: the maps are "
                "too ill-conditioned",
                y,
            )


def minimize(
    D: scipy.sparse.csr_array, sheaf: CellularSheaf, r: np.ndarray, progress: bool
) -> tuple[np.ndarray, NormalEquations]:
    """Return the y of least norm that minimizes norm(D y - r), and what solved for it.

    By factors where iterating does not get there and they are bearable.
    """
    problem = NormalEquations(D, sheaf, progress, "auto")
    try:
        return problem.solve(r), problem
    except np.linalg.LinAlgError:
        if problem.method == "direct" or D.shape[1] > DIRECT_AT_LAST:
            raise
    problem = NormalEquations(D, sheaf, progress, "direct")
    return problem.solve(r), problem
