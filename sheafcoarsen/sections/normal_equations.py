"""The least-squares problem min norm(D y - r): conjugate gradients, or factors."""

import contextlib
from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import EPS, RESIDUAL_LIMIT, single_threaded_blas
from sheafcoarsen.operators import Factors
from sheafcoarsen.sections.fill import fills_little
from sheafcoarsen.sections.iteration import conjugate_gradients, inner_products

DIRECT_AT_LAST = 30_000
"""Unknowns up to which L is factored, whatever it fills up, where iterating did not get there.

That takes minutes and a few gigabytes at most.
"""


SHIFT = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-10}
"""Of L in units of its norm before it is factored, by the precision of the sheaf.

What counts as zero, (n eps)^2, is far below it: one step of the iteration then moves such a
direction by less than eps.
"""


SINGLE = 1e-10
"""A larger eps is that of single precision."""


WEAK = 4 * EPS**0.5
"""Singular value of delta_I, over its norm, below which L_II, its square, is lost in rounding."""


ROUNDS = 4
"""Projections at most; each takes all but 1e-6 of what is too much."""


PLAIN_STEPS = 3
"""Steps with factors after the iteration, which do not care about directions of rounding size."""


PROBES = 2
"""Random cochains that find a kernel; each shows one with probability 1."""


TOUCHED = 1e-6
"""Coordinates of the kernel below this, relative to the largest, are rounding."""


def column_units(x: np.ndarray) -> np.ndarray:
    """Return a power of two for each column by which its largest entry becomes 1/2 .. 1."""
    return np.array([power_of_two(size) for size in np.abs(x).max(axis=0, initial=0.0)])


def square_bound(D: scipy.sparse.csr_array) -> float:
    """Return an upper bound of norm(D)^2, the product of the largest row and column sums."""
    moduli = abs(D)
    return float(moduli.sum(axis=0).max(initial=0.0)) * float(moduli.sum(axis=1).max(initial=0.0))


class NormalEquations:
    """Solutions of least norm of min norm(D y - r), D of entries up to 1 in double precision.

    L = D* D. The iteration is preconditioned by the factors of L + shift I where they stay small,
    which keep the eigenvectors of L, or by the diagonal of L.
    """

    @single_threaded_blas()
    def __init__(self, D: scipy.sparse.csr_array, eps: float, progress: bool):
        self.D, self.adjoint = D, scipy.sparse.csr_array(D.conj().T)
        self.eps, self.progress = eps, progress
        self.bound = square_bound(D)
        self.L = scipy.sparse.csr_array(self.adjoint @ D)
        self.shift = SHIFT[np.dtype(np.float32 if eps > SINGLE else np.float64)] * self.bound
        diagonal = self.L.diagonal().real
        self.scale = 1 / np.where(diagonal > 0, diagonal, 1.0)[:, None]
        self.factors: Factors | None = None
        if self.bound > 0 and fills_little(self.L):
            self._factor()

    def _factor(self) -> None:
        """Factor L + shift I, or leave it where memory or pivots do not suffice."""
        with contextlib.suppress(np.linalg.LinAlgError, MemoryError):
            self.factors = Factors(self.L, self.shift)

    def _factor_after_all(self) -> bool:
        """Factor L although it fills up, if that is bearable; tell whether factors are new."""
        if self.factors is not None or self.L.shape[0] > DIRECT_AT_LAST:
            return False
        self._factor()
        return self.factors is not None

    def precondition(self, g: np.ndarray) -> np.ndarray:
        """Return an approximation of L^+ g."""
        return self.scale * g if self.factors is None else self._apply_inverse(g)

    def _apply_inverse(self, g: np.ndarray) -> np.ndarray:
        """Return (L + shift I)^{-1} g."""
        assert self.factors is not None
        if g.dtype.kind == "c" and self.D.dtype.kind != "c":
            return self.factors.solve(g.real) + 1j * self.factors.solve(g.imag)
        return self.factors.solve(g)

    @single_threaded_blas()
    def solve(self, r: np.ndarray, *, singular: bool) -> np.ndarray:
        """Return the y of least norm that minimizes norm(D y - r), column by column."""
        try:
            return self._solve(r, singular)
        except np.linalg.LinAlgError:
            # a kernel that the iteration overlooked was not warned of
            if not self._factor_after_all() or (not singular and self.free_coordinates()[0].size):
                raise
        return self._solve(r, singular)

    def _solve(self, r: np.ndarray, singular: bool) -> np.ndarray:
        """Return what ``solve`` returns, by the method at hand."""
        y = self._iterate(r, self.precondition)
        y = y + self._iterate(r - self.D @ y, self.precondition)  # what is small beside r itself
        if singular:
            y = y - self.kernel_part(y) if self.factors is None else self._remove_kernel(y)
        self._check_gradient(r, y)
        return y

    @single_threaded_blas()
    def kernel_part(self, x: np.ndarray) -> np.ndarray:
        """Return the orthogonal projection of x on ker D."""
        level = max(self.D.shape) * self.eps * np.sqrt(self.bound) * np.linalg.norm(x, axis=0)
        start = x
        for _ in range(ROUNDS):
            r = self.D @ x
            if self.factors is None:  # a step from zero along D* is orthogonal to the kernel
                x = x - self._iterate(r, lambda g: g / self.bound)
            else:
                x = x - self._remove_kernel(self._iterate(r, self._apply_inverse))
            if (np.linalg.norm(self.D @ x, axis=0) <= level).all():
                return x
        if self._factor_after_all():
            return self.kernel_part(start)
        raise _no_convergence(np.linalg.norm(self.D @ x, axis=0), level)

    def _remove_kernel(self, y: np.ndarray) -> np.ndarray:
        """Take out of y what rounding has put into ker D.

        Each solve amplifies it by norm(L) / shift.
        """
        for _ in range(ROUNDS):
            z = y
            for _ in range(2):  # (I + L / shift)^{-1} keeps the kernel and little else
                z = self.shift * self._apply_inverse(z)
            z = z - self._iterate(self.D @ z, self._apply_inverse)
            y = y - z
            if (np.linalg.norm(z, axis=0) <= EPS * np.linalg.norm(y, axis=0)).all():
                break
        return y

    def _iterate(
        self, r: np.ndarray, precondition: Callable[[np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Solve D* D y = D* r by conjugate gradients from 0, preconditioned by M.

        A direction u of singular value sigma has a share of sigma^2 |<r, D u>|^2 / shift in the
        error <g, M g>. The iteration stops where that is due to sigma = 4 eps norm(D), so that
        what counts as zero is never solved for; a few plain steps with a factored M, which do not
        care about such directions, take the others to rounding.
        """
        D, adjoint = self.D, self.adjoint
        if self.bound == 0 or not r.size:
            return np.zeros((D.shape[1], r.shape[1]), np.result_type(D.dtype, r.dtype))
        reach = 1.0 if self.factors is None else self.bound / self.shift
        tolerance = (4 * self.eps) ** 2 * reach * inner_products(r, r)
        y = conjugate_gradients(D, adjoint, r, precondition, tolerance, self.progress)
        for _ in range(PLAIN_STEPS if self.factors is not None else 0):
            y = y + precondition(adjoint @ (r - D @ y))
        return y

    def _check_gradient(self, r: np.ndarray, y: np.ndarray) -> None:
        """Refuse an answer whose normal equations do not hold to rounding."""
        gradient = np.linalg.norm(self.adjoint @ (r - self.D @ y), axis=0)
        size = self.bound * np.linalg.norm(y, axis=0)
        size += np.sqrt(self.bound) * np.linalg.norm(r, axis=0)
        allowed = RESIDUAL_LIMIT * max(self.D.shape[1], 1) * self.eps * size
        if (gradient > allowed).any():
            raise _no_convergence(gradient, allowed)

    @single_threaded_blas()
    def free_coordinates(self) -> tuple[np.ndarray, float]:
        """Return the coordinates that directions of no energy touch, and how near others come.

        The coordinates ascend; there are none where D is injective. The number is the smallest
        singular value found, over norm(D): a bound from above, sharp where it is small.
        """
        n = self.D.shape[1]
        if self.bound == 0:
            return np.arange(n), 0.0 if n else 1.0
        V = np.random.default_rng(0).standard_normal((n, min(PROBES, n))).astype(self.D.dtype)
        for _ in range(2):  # the first remainder is as large as D is ill-conditioned
            size = np.linalg.norm(V, axis=0)
            V = V[:, size > 0] / size[size > 0]
            V = V - self._iterate(self.D @ V, self.precondition)
        if not V.any():
            return np.zeros(0, np.int64), 1.0
        V = scipy.linalg.qr(V, mode="economic")[0]
        Y = self.D @ V
        if len(Y) < V.shape[1]:  # so that there are as many singular values
            Y = np.vstack([Y, np.zeros_like(V[: V.shape[1]])])
        _, sigma, turn = np.linalg.svd(Y, full_matrices=False)
        sigma = sigma / np.sqrt(self.bound)
        V = V @ turn.conj().T[:, sigma <= max(self.D.shape) * self.eps]
        weight = np.linalg.norm(V, axis=1)
        return np.flatnonzero(weight > TOUCHED * weight.max()), float(sigma.min())

    def count_free(self) -> str:
        """Return how many directions have no energy, as text, where counting them is cheap.

        They are the negative pivots of L less a tiny shift (Sylvester).
        """
        if self.bound == 0:
            return str(self.D.shape[1])
        count = -1 if self.factors is None else Factors(self.L, -1e-3 * self.shift).count_negative()
        return "some" if count < 0 else str(count)


def _no_convergence(found: np.ndarray, allowed: np.ndarray) -> np.linalg.LinAlgError:
    worst = float((found / np.where(allowed > 0, allowed, 1.0)).max())
    return np.linalg.LinAlgError(
        f"the iteration stopped at {worst:.3g} times the residual allowed: the maps are too "
        "ill-conditioned"
    )
