"""The least-squares problem min norm(delta x - b): conjugate gradients, or factors."""

import contextlib

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import connected_components, dijkstra

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import RESIDUAL_LIMIT, bar, eps_of, single_threaded_blas
from sheafcoarsen.operators import Factors, coboundary

EPS = eps_of(np.float64)


DIRECT_UP_TO = 5000
"""Unknowns up to which a factorization is always affordable."""


DIRECT_CYCLES = 1000
"""Independent cycles up to which a graph is nearly a forest, and its factors nearly without fill."""


DIRECT_BEFORE = 20
"""How much is spent on a factorization: with breadth-first levels up to the size w, and this many of them, w^3 operations
against so many times depth nnz(L). Some 4 depth iterations each cost a few nnz(L). Surfaces are factored, space grids from 30^3 iterated on."""


DIRECT_AT_LAST = 30_000
"""Unknowns up to which L is factored, whatever it fills up, where iterating did not get there: minutes and a few gigabytes at most."""


SHIFT = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-10}
"""Of L in units of its norm before it is factored, by the precision of the sheaf.

What counts as zero, (n eps)^2, is far below it:
one step of the iteration then moves such a direction by less than eps."""


WEAK = 4 * EPS**0.5
"""Singular value of delta_I, over its norm, below which L_II, its square, is lost in rounding."""


PATIENCE = 500
"""Iterations without progress, beyond half of all, after which rounding is all that is left."""


ROUNDS = 4
"""Of projections at most; each takes all but 1e-6 of what is too much."""


MOST_STEPS = 20_000
"""Iterations at most."""


PROBES = 2
"""Random cochains by which a singular problem is found out; each shows a kernel with probability 1."""


def unit_coboundary(sheaf) -> scipy.sparse.csr_array:
    """Return delta in double precision, divided by the power of two just above its largest entry."""
    delta = coboundary(sheaf).astype(np.result_type(sheaf.dtype, np.float64))
    unit = power_of_two(sheaf.largest_entry)
    delta.data = (delta.data.view(np.float64) / unit).view(delta.dtype)
    return delta


def column_units(x) -> np.ndarray:
    """Return a power of two for each column by which its largest entry becomes 1/2 .. 1."""
    return np.array([power_of_two(size) for size in np.abs(x).max(axis=0, initial=0.0)])


def square_bound(D) -> float:
    """Return an upper bound of norm(D)^2, the product of the largest row and column sums."""
    moduli = abs(D)
    return float(moduli.sum(axis=0).max(initial=0.0)) * float(moduli.sum(axis=1).max(initial=0.0))


def relative_size(error, size: float, x, ndim: int):
    sizes = size * np.linalg.norm(x, axis=0)
    residual = np.linalg.norm(error, axis=0) / np.where(sizes > 0, sizes, 1.0)
    return float(residual[0]) if ndim == 1 else residual


def _dot(x, y) -> np.ndarray:
    """Return the real parts of the inner products of columns."""
    return np.einsum("ij,ij->j", x.conj(), y).real


class LeastSquares:
    """Solutions of least norm of min norm(D y - r), D of entries up to 1 in double precision."""

    @single_threaded_blas()
    def __init__(self, D: scipy.sparse.csr_array, eps: float, progress: bool):
        self.D, self.adjoint, self.eps, self.progress = (
            D,
            scipy.sparse.csr_array(D.conj().T),
            eps,
            progress,
        )
        self.bound = square_bound(D)
        self.L = scipy.sparse.csr_array(self.adjoint @ D)
        self.shift = SHIFT[np.dtype(np.float32 if eps > 1e-10 else np.float64)] * self.bound
        diagonal = self.L.diagonal().real
        self.scale = 1 / np.where(diagonal > 0, diagonal, 1.0)[:, None]
        self.factors: Factors | None = None
        if self.bound > 0 and _fills_little(self.L):
            with contextlib.suppress(np.linalg.LinAlgError, MemoryError):  # without them, iterate
                self.factors = Factors(self.L, self.shift)

    def precondition(self, g):
        """Return an approximation of L^+ g."""
        return self.scale * g if self.factors is None else self._solve(g)

    def _solve(self, g):
        """Return (L + shift I)^{-1} g."""
        assert self.factors is not None
        if g.dtype.kind == "c" and self.D.dtype.kind != "c":
            return self.factors.solve(g.real) + 1j * self.factors.solve(g.imag)
        return self.factors.solve(g)

    @single_threaded_blas()
    def solve(self, r, *, singular: bool) -> np.ndarray:
        """Return the y of least norm that minimizes norm(D y - r), column by column."""
        try:
            return self._solved(r, singular)
        except np.linalg.LinAlgError:
            # a kernel that the iteration overlooked was not warned of
            if not self._factored_at_last() or (not singular and self.free_coordinates()[0].size):
                raise
        return self._solved(r, singular)

    def _solved(self, r, singular: bool) -> np.ndarray:
        """Return what ``solve`` returns, by the method at hand."""
        y = self._iterate(r, self.precondition)
        y = y + self._iterate(r - self.D @ y, self.precondition)  # what is small beside r itself
        if singular:
            y = y - self.kernel_part(y) if self.factors is None else self._without_kernel(y)
        self._make_sure(r, y)
        return y

    @single_threaded_blas()
    def kernel_part(self, x) -> np.ndarray:
        """Return the orthogonal projection of x on ker D."""
        level = max(self.D.shape) * self.eps * np.sqrt(self.bound) * np.linalg.norm(x, axis=0)
        start = x
        for _ in range(ROUNDS):
            r = self.D @ x
            if self.factors is None:  # a step from zero along D* is orthogonal to the kernel
                x = x - self._iterate(r, lambda g: g / self.bound)
            else:
                x = x - self._without_kernel(self._iterate(r, self._solve))
            if (np.linalg.norm(self.D @ x, axis=0) <= level).all():
                return x
        if self._factored_at_last():
            return self.kernel_part(start)
        raise self._stopped(np.linalg.norm(self.D @ x, axis=0), level)

    def _factored_at_last(self) -> bool:
        """Factor L although it fills up, if that is bearable; tell whether there are factors now that there were not."""
        if self.factors is not None or self.L.shape[0] > DIRECT_AT_LAST:
            return False
        with contextlib.suppress(np.linalg.LinAlgError, MemoryError):
            self.factors = Factors(self.L, self.shift)
        return self.factors is not None

    def _without_kernel(self, y) -> np.ndarray:
        """Take out of y what rounding, amplified by norm(L) / shift in each solve, has put into ker D."""
        for _ in range(ROUNDS):
            z = y
            for _ in range(2):  # (I + L / shift)^{-1} keeps the kernel and little else
                z = self.shift * self._solve(z)
            z = z - self._iterate(self.D @ z, self._solve)
            y = y - z
            if (np.linalg.norm(z, axis=0) <= EPS * np.linalg.norm(y, axis=0)).all():
                break
        return y

    def _iterate(self, r, precondition) -> np.ndarray:
        """Conjugate gradients on D* D y = D* r from 0, preconditioned by M.

        A direction u of singular value sigma has a share of sigma^2 |<r, D u>|^2 / shift in the
        error <g, M g>. It stops where that is due to sigma = 4 eps norm(D), so that what counts as
        zero is never solved for; a few plain steps with a factored M, which do not care about such
        directions, take the others to rounding.
        """
        D, adjoint = self.D, self.adjoint
        y = np.zeros((D.shape[1], r.shape[1]), np.result_type(D.dtype, r.dtype))
        if self.bound == 0 or not r.size:
            return y
        g = adjoint @ r
        best, z = y, precondition(g)
        first = rho = lowest = _dot(g, z)
        reach = 1.0 if self.factors is None else self.bound / self.shift
        tolerance = (4 * self.eps) ** 2 * reach * _dot(r, r)
        p, idle = z, 0
        digits = bar(16, "digits", self.progress)
        for done in range(MOST_STEPS):
            if (lowest <= tolerance).all() or idle > PATIENCE + done // 2:
                break
            q = D @ p
            step = _dot(q, q)
            y = y + np.where(step > 0, rho / np.where(step > 0, step, 1.0), 0.0) * p
            before, g = g, adjoint @ (r - D @ y)
            z = precondition(g)
            old, rho = rho, _dot(g, z)
            p = (
                z
                + np.where(old > 0, (rho - _dot(before, z)) / np.where(old > 0, old, 1.0), 0.0) * p
            )
            best = np.where(rho < lowest, y, best)
            idle = 0 if (rho < lowest / 4)[lowest > tolerance].any() else idle + 1
            lowest = np.minimum(rho, lowest)
            reached = (
                -np.log10(np.maximum(np.max(lowest / np.where(first > 0, first, 1.0)), 1e-32)) / 2
            )
            digits.update(max(reached - digits.n, 0))
        digits.close()
        if self.factors is not None:
            for _ in range(3):
                best = best + precondition(adjoint @ (r - D @ best))
        return best

    def _stopped(self, found, allowed) -> np.linalg.LinAlgError:
        worst = float((found / np.where(allowed > 0, allowed, 1.0)).max())
        return np.linalg.LinAlgError(
            f"the iteration stopped at {worst:.3g} times the residual allowed: the maps are too ill-conditioned"
        )

    def _make_sure(self, r, y) -> None:
        gradient = np.linalg.norm(self.adjoint @ (r - self.D @ y), axis=0)
        size = self.bound * np.linalg.norm(y, axis=0) + np.sqrt(self.bound) * np.linalg.norm(
            r, axis=0
        )
        allowed = RESIDUAL_LIMIT * max(self.D.shape[1], 1) * self.eps * size
        if (gradient > allowed).any():
            raise self._stopped(gradient, allowed)

    @single_threaded_blas()
    def free_coordinates(self) -> tuple[np.ndarray, float]:
        """Return the coordinates that directions of no energy touch, ascending, and the smallest singular value found, over norm(D).

        There are none where D is injective; the singular value is then a bound from above, sharp
        where it is small.
        """
        n = self.D.shape[1]
        if self.bound == 0:
            return np.arange(n), 0.0 if n else 1.0
        V = np.random.default_rng(0).standard_normal((n, min(PROBES, n))).astype(self.D.dtype)
        for _ in range(
            2
        ):  # once more, because the first remainder is as large as D is ill-conditioned
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
        return np.flatnonzero(weight > 1e-6 * weight.max()), float(sigma.min())

    def count_free(self) -> str:
        """Return how many directions have no energy: the negative pivots of L less a tiny shift (Sylvester), where they are cheap."""
        if self.bound == 0:
            return str(self.D.shape[1])
        count = -1 if self.factors is None else Factors(self.L, -1e-3 * self.shift).count_negative()
        return "some" if count < 0 else str(count)


def _fills_little(L) -> bool:
    """Tell whether L can be factored without much fill, by the widths of breadth-first levels and the number of cycles."""
    n = L.shape[0]
    if n <= DIRECT_UP_TO:
        return True
    L = scipy.sparse.csr_array((np.ones(L.nnz), L.indices, L.indptr), shape=L.shape)
    count, labels = connected_components(L, directed=False)
    cycles = (L.nnz - int((L.diagonal() != 0).sum())) // 2 - n + count
    if cycles <= DIRECT_CYCLES:
        return True
    largest = np.flatnonzero(labels == np.bincount(labels).argmax())
    start = largest[0]
    for _ in range(2):  # from an end, so that levels are separators
        depth = dijkstra(L, unweighted=True, indices=start)
        depth[np.isinf(depth)] = -1
        start = int(depth.argmax())
    levels = np.bincount(depth[depth >= 0].astype(np.int64))
    return float(levels.max()) ** 3 <= float(DIRECT_BEFORE) * len(levels) * L.nnz
