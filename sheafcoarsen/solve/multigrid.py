"""Multigrid from the sheaf's own coarsening: smoothed aggregation with local modes.

On each level the sheaf is normalized, so that every diagonal block of its Laplacian is I; small
clusters retain their lowest local modes (:func:`sheafcoarsen.local_modes`); one Jacobi step smooths
the prolongation, P = (I - 4 / (3 rho) A) P_0 (Vanek, Mandel, Brezina 1996); and P* A P is scaled to
unit diagonal blocks again. The modes of the next level are those of the *unsmoothed* coarse sheaf
with its loops. The cycle runs in single precision; its callers iterate in double precision.
"""

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import linalg, threads, warned
from sheafcoarsen.coarsening import Coarsening, coarsen, refresh_coarsening
from sheafcoarsen.modes import local_modes
from sheafcoarsen.operators import Factors, apply_coboundary, change_stalks, laplacian
from sheafcoarsen.partition import Partition, find_clusters
from sheafcoarsen.ranks import below
from sheafcoarsen.sheaf import CellularSheaf, same_topology
from sheafcoarsen.solve.block_matrix import (
    LANES,
    BlockMatrix,
    Matrix,
    adjoint,
    block_size,
    complex_columns,
    in_blocks,
    largest_eigenvalue,
    norms,
    real_columns,
    real_form,
    scaled,
    unit_roots,
)

MISSED = 10
"""Approximation error of smooth vectors by d modes per cluster, relative to their energy, above
which more modes are retained. The error is 4 to 8 on grids and meshes, with 10 to 25 iterations. It
is 12 to 40 on corridors with few loops: 40 to 240 iterations, or 13 to 30 with more modes."""

COARSEST, LARGEST_DENSE = 400, 3000
"""Dimensions at or below which a level is not coarsened, and is inverted if coarsening stalls."""

NEAR_SINGULAR = 1e-6
"""The kernel is computed before the iteration if the smallest pivot, or the smallest eigenvalue of
the coarsest level, is at most this fraction of the largest."""

LEAST_DISCARDED = 1e-6
"""Eigenvalue up to which a discarded mode of a normalized sheaf may belong to the kernel."""


class Multigrid:
    """Approximate inverse of L, Hermitian positive definite up to single precision.

    The sheaf has maps of norm about 1, in double precision; L may include a shift. Partitions and
    ranks are those of ``like``, the multigrid of a sheaf on the same graph, if it is given. With
    ``skip_kernel`` the coarsest level maps ker L to 0, for callers that project the result
    orthogonally to ker L; the approximate inverse is then only semidefinite.
    ``operators`` are A_l with unit diagonal blocks, A_0 = roots* L roots, and ``prolongations``
    P_l, both in double precision.
    """

    def __init__(
        self,
        sheaf: CellularSheaf,
        L: Matrix | None = None,
        like: "Multigrid | None" = None,
        progress: bool = False,
        *,
        skip_kernel: bool = False,
    ):
        L = laplacian(sheaf) if L is None else L
        self.sheaf = sheaf
        self._norm = linalg.inf_norm(L)
        L, self.roots = unit_roots(L, sheaf.vertex_dims)[:2]
        A = scaled(self.roots, L, self.roots)
        # dimension of the space of stalk vectors that all maps, and hence the cycle, send to 0:
        # diagonal blocks of A are projections along them
        self.unseen = round(A.shape[0] - float(A.diagonal().real.sum()))
        h = change_stalks(sheaf, self.roots.data.reshape(-1))
        self.operators, self.prolongations, self.coarsenings = [], [], []
        self._products, self._tops = [], []  # with upper bounds on the spectra
        # whether every cluster retained all its modes of zero energy; then ker L is in the range
        # of the prolongations, and the coarsest operator has as many zero eigenvalues as L
        self.holds_kernel = True
        # no warnings about ties, since any choice among them is valid
        with threads.bar(0, "multigrid levels", progress) as shown, warned.collected():
            while True:
                self.operators.append(A)
                self._products.append(BlockMatrix(A, np.float32))
                self._tops.append(largest_eigenvalue(A) or 1.0)
                C = self._coarsened(h, like) if A.shape[0] > COARSEST else None
                if C is None:
                    break
                A, P, S = _next_level(A, self._tops[-1], C)
                h = change_stalks(C.sheaf, S.data.reshape(-1))
                self.prolongations.append(P)
                self.coarsenings.append(C)
                if C.modes is not None:
                    self.holds_kernel &= bool((C.modes.next_eigenvalues > LEAST_DISCARDED).all())
                shown.update(1)
        self.dims = [A.shape[0] for A in self.operators]
        self._roots = BlockMatrix(self.roots), BlockMatrix(adjoint(self.roots))
        self._transfers = [
            (BlockMatrix(P, np.float32), BlockMatrix(adjoint(P), np.float32))
            for P in self.prolongations
        ]
        self._set_up_coarsest(skip_kernel)

    def _set_up_coarsest(self, skip_kernel: bool) -> None:
        """Invert the coarsest operator by an eigendecomposition, or factor it if it is large."""
        A = scipy.sparse.csr_array(self.operators[-1])
        self._factors = None
        # Lower bound imposed on the coarsest eigenvalues, relative to the largest. It keeps the
        # cycle positive definite, and limits the growth of rounding errors in the kernel to 1 /
        # ``floor``. An eigenvalue at or below it may be zero.
        floor = 1e-6
        self.lowest = 0.0  # smallest eigenvalue over the largest, if known
        if A.shape[0] > LARGEST_DENSE:  # too large to invert densely: coarsening stalled
            self._factors = Factors(A, floor * self._tops[-1])
            self.holds_kernel = False
            return
        with threads.single_threaded_blas():
            values, vectors = scipy.linalg.eigh(A.toarray(), driver="evd")
        largest = max(float(values[-1]), floor)
        zero = values <= floor * largest
        self._zeros = vectors[:, zero]
        self.lowest = max(float(values[0]), 0.0) / largest
        divisors = np.maximum(values, floor * largest)
        if skip_kernel and zero.any():
            F = self.sheaf
            seen = norms(apply_coboundary(F, self.lift(self._zeros)))
            level = linalg.zero_level(max(F.dim_c0, F.dim_c1), linalg.eps_of(seen.dtype), 1.0)
            divisors[np.flatnonzero(zero)[seen <= level]] = np.inf
        inverse = (vectors / divisors) @ vectors.conj().T
        self._inverse = (real_form(inverse) if A.dtype.kind == "c" else inverse).astype(np.float32)

    def kernel(self) -> np.ndarray | None:
        """Return an orthonormal basis of ker L, or None if coarsening does not determine it."""
        if not self.holds_kernel:
            return None
        X = np.linalg.qr(self.lift(self._zeros))[0]
        F, norm = self.sheaf, float(np.sqrt(self._norm))
        level = linalg.zero_level(max(F.dim_c0, F.dim_c1), linalg.eps_of(X.dtype), norm)
        return X if (norms(apply_coboundary(F, X)) <= level).all() else None

    def lift(self, X: np.ndarray) -> np.ndarray:
        """Prolong columns from the coarsest level to cochains of the sheaf."""
        for P in reversed(self.prolongations):
            X = P @ X
        return self.roots @ X

    def _coarsened(self, h: CellularSheaf, like: "Multigrid | None") -> Coarsening | None:
        """Return the coarsening to the next level, or None if there is no next level."""
        level = len(self.coarsenings)
        if like is not None:
            if level == len(like.coarsenings):
                return None
            C = like.coarsenings[level]  # other maps may need other loops on coarse levels
            return refresh_coarsening(C, h, new_loops=not same_topology(C.fine, h))
        count = round(h.n_vertices / (8 if level else 10))
        if count < 2:
            return None
        P = Partition(find_clusters(h, count, "balls")[1])
        d = block_size(h.vertex_dims)
        if d is None:
            modes = local_modes(h, P, local_modes(h, P, below(0.25)).ranks.clip(max=8))
        else:
            modes = local_modes(h, P, d)
            has_all_zeros = (modes.next_eigenvalues > LEAST_DISCARDED).all()
            if has_all_zeros and self._missed(modes.prolongation) > MISSED:
                P = Partition(find_clusters(h, count, "balls", "sheaf")[1])  # along strong edges
                modes = local_modes(h, P, local_modes(h, P, below(0.1)).ranks.clip(d, 6 * d))
        return coarsen(h, P, modes, compress=True)

    def _missed(self, P: scipy.sparse.csr_array) -> float:
        """Return ``top`` sum norm(x - P P* x)^2 / sum <x, A x>, summed over smooth vectors x.

        It is small if the weak approximation property of algebraic multigrid holds. ``top`` bounds
        the spectrum of A. The x are four random vectors after ten Jacobi steps.
        """
        A, top = self._products[-1], self._tops[-1]
        X = np.random.default_rng(0).standard_normal((A.shape[0], 4)).astype(np.float32)
        Y = np.empty_like(X)
        for _ in range(10):
            X, Y = A.combine(X, Y, -1 / top, ((1.0, X),)), X
        energy = float(np.vdot(X, A.combine(X, Y)).real)
        X = complex_columns(X) if P.dtype.kind == "c" else X
        missed = norms(X - P @ (P.conj().T @ X))
        return float(missed @ missed) * top / energy if energy > 0 else 0.0

    def cycle(self, X: np.ndarray) -> np.ndarray:
        """Return an approximation of L^{-1} X, X of shape (dim, h), by one V-cycle."""
        is_complex = X.dtype.kind == "c"
        if is_complex and self.operators[-1].dtype.kind != "c":
            return linalg.by_real_columns(self.cycle, X)
        X = real_columns(X) if is_complex else np.ascontiguousarray(X)
        sizes = norms(X)
        sizes[sizes == 0] = 1
        B = np.zeros((len(X), padded(X.shape[1])), np.float32)
        roots, adjoint_roots = self._roots
        Y = self.descend(0, adjoint_roots.combine(X, B, 1 / sizes))
        X = roots.combine(Y, np.empty_like(X), sizes)
        return complex_columns(X) if is_complex else X

    def descend(self, level: int, B: np.ndarray) -> np.ndarray:
        """Return the V-cycle's approximation of A_level^{-1} B, in single precision.

        B has ``padded(h)`` columns; for complex operators they are ``real_columns``.
        """
        if level < len(self._transfers):
            A, top = self._products[level], self._tops[level]
            prolongation, restriction = self._transfers[level]
            X, spare = _smooth(A, top, B, None)
            R = A.combine(X, spare, -1.0, ((1.0, B),))
            coarse = np.empty((restriction.shape[0], B.shape[1]), B.dtype)
            coarse = self.descend(level + 1, restriction.combine(R, coarse))
            prolongation.combine(coarse, X, 1.0, ((1.0, X),))
            return _smooth(A, top, B, X, R)[0]
        if self._factors is None:
            return self._inverse @ B
        is_complex = self.operators[-1].dtype.kind == "c"
        X = self._factors.solve(complex_columns(B) if is_complex else B.astype(np.float64))
        return (real_columns(X) if is_complex else X).astype(B.dtype)


def padded(h: int) -> int:
    """Return h if it is at most 1, else h rounded up to a multiple of ``LANES[0]`` columns."""
    return h if h <= 1 else -(-h // LANES[0]) * LANES[0]


def _next_level(A: Matrix, top: float, C: Coarsening) -> tuple[Matrix, Matrix, Matrix]:
    """Return the next level's operator, its prolongation, and the scaling of its sheaf."""
    fine_dims, dims = C.fine.vertex_dims, C.sheaf.vertex_dims
    P = in_blocks(C.prolongation, fine_dims, dims)
    smoothed = in_blocks(P - (4 / (3 * top)) * (A @ P), fine_dims, dims)
    width = np.diff(smoothed.indptr).astype(float)
    if smoothed.format == "bsr":
        width = np.repeat(width * smoothed.blocksize[1], smoothed.blocksize[0])
    # no smoothing if, near hubs, P* A P would take more than 30 operations per entry of A
    if (width**2).sum() <= 30 * A.nnz:
        P = smoothed
    # P* A P has a relative accuracy of 1e-13: directions with less energy, which P maps near the
    # kernel of L, are dropped from the next level
    product, S = unit_roots(adjoint(P) @ (A @ P), dims, 1e-13)[:2]
    return scaled(S, product, S), scaled(None, P, S), S


def _smooth(
    A: BlockMatrix, top: float, B: np.ndarray, X: np.ndarray | None, spare: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Damp the upper part of the spectrum by two Chebyshev steps, from X or from zero.

    Comments give the step numbers of algorithm 12.1 in Saad, Iterative Methods for Sparse Linear
    Systems. Its update d is the difference of the last two iterates, so that each iterate costs one
    pass over the matrix. Returns the iterate and a free array; X and ``spare`` are overwritten.
    """
    high = 1.05 * top
    low = high / 6
    theta, delta = (high + low) / 2, (high - low) / 2  # step 1
    sigma = theta / delta
    rho = 1 / sigma
    next_rho = 1 / (2 * sigma - rho)  # step 6
    keep, step = next_rho * rho, 2 * next_rho / delta
    spare = np.empty_like(B) if spare is None else spare
    if X is None:  # steps 2 and 4
        first = np.multiply(B, B.dtype.type(1 / theta), out=spare)
        return A.combine(first, np.empty_like(B), -step, ((step, B), (1 + keep, first))), first
    first = A.combine(X, spare, -1 / theta, ((1.0, X), (1 / theta, B)))
    terms = ((step, B), (1 + keep, first), (-keep, X))  # steps 5 and 7
    return A.combine(first, X, -step, terms), first
