"""Multigrid from the sheaf's own coarsening: smoothed aggregation with local modes.

On each level the sheaf is normalized, so that every diagonal block of its Laplacian is I; small
clusters retain their lowest local modes (:func:`sheafcoarsen.local_modes`); one Jacobi step smooths
the prolongation, P = (I - 4 / (3 rho) A) P_0 (Vanek, Mandel, Brezina 1996); and P* A P is scaled to
unit diagonal blocks again. The modes of the next level are those of the *unsmoothed* coarse sheaf
with its loops. The cycle runs in single precision; its callers iterate in double precision.
"""

import warnings
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._kernels.operators import multiply_maps
from sheafcoarsen._support import (
    bar,
    by_real_columns,
    eps_of,
    inf_norm,
    offsets,
    single_threaded_blas,
    zero_level,
)
from sheafcoarsen.coarsening import Coarsening, coarsen
from sheafcoarsen.exceptions import TiedModesWarning
from sheafcoarsen.modes import local_modes
from sheafcoarsen.operators import Factors, apply_coboundary, laplacian
from sheafcoarsen.partition import Partition, find_clusters
from sheafcoarsen.ranks import below
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf
from sheafcoarsen.solve.block_matrix import (
    LANES,
    BlockMatrix,
    complex_columns,
    real_columns,
    real_form,
)
from sheafcoarsen.solve.block_scaling import (
    Matrix,
    adjoint,
    block_size,
    in_blocks,
    largest_eigenvalue,
    norms,
    scaled,
    unit_blocks,
    unit_roots,
)

CLUSTERS = (10, 8)
"""Mean number of vertices per cluster on the finest level, and on coarser levels."""


MISSED = 10
"""Approximation error of smooth vectors by d modes per cluster, relative to their energy, above
which more modes are retained. The error is 4 to 8 on grids and meshes, with 10 to 25 iterations. It
is 12 to 40 on corridors with few loops: 40 to 240 iterations, or 13 to 30 with more modes."""

COARSEST = 400
"""Dimension at or below which a level is solved densely."""

LARGEST_DENSE = 3000
"""Dimension up to which the coarsest level is solved densely if coarsening stalls."""


DEGREE, SPREAD = 2, 6.0
"""Degree of the Chebyshev smoother, and ratio of the endpoints of the interval that it damps."""

NEAR_SINGULAR = 1e-6
"""The kernel is computed before the iteration if the smallest pivot, or the smallest eigenvalue of
the coarsest level, is at most this fraction of the largest."""

LEAST_DISCARDED = 1e-6
"""Eigenvalue up to which a discarded mode of a normalized sheaf may belong to the kernel."""


class Level(NamedTuple):
    """One level of the cycle in single precision, with the transfer to the next one."""

    operator: BlockMatrix
    top: float  # upper bound on the operator's spectrum
    transfer: tuple[BlockMatrix, BlockMatrix] | None  # P and P*; None on the coarsest level


class Multigrid:
    """Approximate inverse of L + shift I, Hermitian positive definite up to single precision.

    Parameters
    ----------
    sheaf : CellularSheaf
        With maps of norm about 1 (``unit_sheaf``), in double precision, of positive dimension.
    shift : float
    L : sparse matrix, optional
        L + shift I, if it is known.
    like : Multigrid, optional
        Multigrid of a sheaf on the same graph, whose partitions and ranks are reused.
    skip_kernel : bool
        Whether the coarsest level maps ker L to 0, for callers that project the result orthogonally
        to ker L.

    Attributes
    ----------
    dims : list of int
        Dimension of every level, the finest first.
    unseen : int
        Dimension of the space of stalk vectors that all maps send to 0; the cycle maps it to 0.
    lowest : float
        Ratio of the smallest to the largest eigenvalue of the coarsest operator; 0 if unknown.
    holds_kernel : bool
        Whether every cluster retained all its modes of zero energy. Then ker L is in the range of
        the prolongations, and the coarsest operator has as many zero eigenvalues as L.
    operators, prolongations : list of sparse matrices
        A_l, with unit diagonal blocks, and P_l in double precision; A_0 = roots* L roots.
    """

    def __init__(
        self,
        sheaf: CellularSheaf,
        shift: float = 0.0,
        L: Matrix | None = None,
        like: "Multigrid | None" = None,
        progress: bool = False,
        *,
        skip_kernel: bool = False,
    ):
        if L is None:
            L = laplacian(sheaf)
            if shift:
                L = L + shift * scipy.sparse.eye_array(*L.shape, format="csr")
        self.sheaf = sheaf
        self._norm = inf_norm(L)
        L, self.roots = unit_blocks(L, sheaf.vertex_dims)
        A = scaled(self.roots, L, self.roots)
        # diagonal blocks of A are projections that omit the stalk vectors which all maps send to 0
        self.unseen = round(A.shape[0] - float(A.diagonal().real.sum()))
        h = _in_coordinates(sheaf, self.roots)
        self.operators, self.prolongations, self.coarsenings = [A], [], []
        products = [BlockMatrix(A, np.float32)]
        tops = [largest_eigenvalue(A) or 1.0]
        self.holds_kernel = True
        with bar(0, "multigrid levels", progress) as shown:
            while A.shape[0] > COARSEST:
                C = self._coarsened(h, products[-1], tops[-1], like)
                if C is None:
                    break
                A, P, S = _next_level(A, tops[-1], C)
                h = _in_coordinates(C.sheaf, S)
                self.operators.append(A)
                products.append(BlockMatrix(A, np.float32))
                self.prolongations.append(P)
                self.coarsenings.append(C)
                discarded = C.modes.next_eigenvalues if C.modes is not None else np.zeros(1)
                self.holds_kernel &= bool((discarded > LEAST_DISCARDED).all())
                tops.append(largest_eigenvalue(A) or 1.0)
                shown.update(1)
        self.dims = [A.shape[0] for A in self.operators]
        self._roots = BlockMatrix(self.roots), BlockMatrix(adjoint(self.roots))
        self._levels = [
            Level(
                product,
                top,
                None
                if P is None
                else (BlockMatrix(P, np.float32), BlockMatrix(adjoint(P), np.float32)),
            )
            for product, top, P in zip(products, tops, [*self.prolongations, None], strict=True)
        ]
        self._set_up_coarsest(tops[-1], skip_kernel)

    def _set_up_coarsest(self, top: float, skip_kernel: bool) -> None:
        """Invert the coarsest operator by its eigenvalues, or factor it if it is large."""
        A = scipy.sparse.csr_array(self.operators[-1])
        self._factors = None
        # Lower bound imposed on the coarsest eigenvalues, relative to the largest. It keeps the
        # cycle positive definite, and limits the growth of rounding errors in the kernel to 1 /
        # ``floor``. An eigenvalue at or below it may be zero.
        floor = 1e-6
        if A.shape[0] > LARGEST_DENSE:  # too large to invert densely: coarsening stalled
            self._factors = Factors(A, floor * top)
            self.lowest, self.holds_kernel = 0.0, False
            return
        with single_threaded_blas():
            values, vectors = scipy.linalg.eigh(A.toarray(), driver="evd")
        largest = max(float(values[-1]), floor)
        zero = values <= floor * largest
        self._zeros = vectors[:, zero]
        self.lowest = max(float(values[0]), 0.0) / largest
        divisors = np.maximum(values, floor * largest)
        if skip_kernel and zero.any():
            F = self.sheaf
            seen = norms(apply_coboundary(F, self._lifted_zeros()))
            level = zero_level(max(F.dim_c0, F.dim_c1), eps_of(seen.dtype), 1.0)
            divisors[np.flatnonzero(zero)[seen <= level]] = np.inf
        inverse = (vectors / divisors) @ vectors.conj().T
        self._inverse = (real_form(inverse) if A.dtype.kind == "c" else inverse).astype(np.float32)

    def forget(self) -> None:
        """Free half the memory: the coarsenings and A_0, which the cycle does not need."""
        self.coarsenings = []
        if len(self.operators) > 1:
            self.operators[0] = None

    def kernel(self) -> np.ndarray | None:
        """Return an orthonormal basis of ker L, or None if coarsening does not determine it.

        The coarsest level's kernel is prolonged to the finest level, where delta must vanish on it.
        """
        if not self.holds_kernel:
            return None
        X = np.linalg.qr(self._lifted_zeros())[0]
        F, norm = self.sheaf, float(np.sqrt(self._norm))
        level = zero_level(max(F.dim_c0, F.dim_c1), eps_of(X.dtype), norm)
        return X if (norms(apply_coboundary(F, X)) <= level).all() else None

    def _lifted_zeros(self) -> np.ndarray:
        """Return the kernel of the coarsest operator, prolonged to the finest level."""
        X = self._zeros
        for P in reversed(self.prolongations):
            X = P @ X
        return self.roots @ X

    def _coarsened(
        self, h: CellularSheaf, product: BlockMatrix, top: float, like: "Multigrid | None"
    ) -> Coarsening | None:
        """Return the coarsening to the next level, or None if there is no next level."""
        with warnings.catch_warnings():  # no warning: any choice among ties is valid
            warnings.simplefilter("ignore", TiedModesWarning)
            return self._choose_coarsening(h, product, top, like)

    def _choose_coarsening(
        self, h: CellularSheaf, product: BlockMatrix, top: float, like: "Multigrid | None"
    ) -> Coarsening | None:
        level = len(self.coarsenings)
        if like is not None:
            return like.coarsenings[level].recoarsen(h) if level < len(like.coarsenings) else None
        count = round(h.n_vertices / CLUSTERS[min(level, len(CLUSTERS) - 1)])
        if count < 2:
            return None
        P = Partition(find_clusters(h, count, "balls")[1])
        d = block_size(h.vertex_dims)
        # If stalk dimensions differ, modes of the normalized sheaf with eigenvalues below
        # ``mixed_below`` are retained, at most ``mixed_most`` per cluster
        mixed_below, mixed_most = 0.25, 8
        # If d modes per cluster do not suffice for stalks of dimension d, modes with eigenvalues
        # below ``low_below`` are retained, at least d and at most ``low_most * d`` per cluster, and
        # clusters follow strong edges
        low_below, low_most = 0.1, 6
        if d is None:
            ranks = local_modes(h, P, below(mixed_below)).ranks.clip(max=mixed_most)
            modes = local_modes(h, P, ranks)
        else:
            modes = local_modes(h, P, d)
            has_all_zeros = (modes.next_eigenvalues > LEAST_DISCARDED).all()
            if has_all_zeros and _missed(product, top, modes.prolongation) > MISSED:
                P = Partition(find_clusters(h, count, "balls", "sheaf")[1])
                ranks = local_modes(h, P, below(low_below)).ranks.clip(d, low_most * d)
                modes = local_modes(h, P, ranks)
        return coarsen(h, P, modes, compress=True)

    def cycle(self, X: np.ndarray) -> np.ndarray:
        """Return an approximation of (L + shift I)^{-1} X, X of shape (dim, h), by one V-cycle.

        The columns are scaled to norm 1 for the computation in single precision.
        """
        is_complex = X.dtype.kind == "c"
        if is_complex and self.operators[-1].dtype.kind != "c":
            return by_real_columns(self.cycle, X)
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
        this = self._levels[level]
        if this.transfer is None:
            return self._solve_coarsest(B)
        prolongation, restriction = this.transfer
        X, spare = _smooth(this, B, None)
        R = this.operator.combine(X, spare, -1.0, ((1.0, B),))
        below_ = np.empty((restriction.shape[0], B.shape[1]), B.dtype)
        below_ = self.descend(level + 1, restriction.combine(R, below_))
        prolongation.combine(below_, X, 1.0, ((1.0, X),))
        return _smooth(this, B, X, R)[0]

    def _solve_coarsest(self, B: np.ndarray) -> np.ndarray:
        if self._factors is None:
            return self._inverse @ B
        is_complex = self.operators[-1].dtype.kind == "c"
        X = self._factors.solve(complex_columns(B) if is_complex else B.astype(np.float64))
        return (real_columns(X) if is_complex else X).astype(B.dtype)


def padded(h: int) -> int:
    """Return h rounded up to a multiple of the number of columns that kernels process at once."""
    return h if h <= 1 else -(-h // LANES[0]) * LANES[0]


def _missed(A: BlockMatrix, top: float, P: scipy.sparse.csr_array) -> float:
    """Return top sum norm(x - P P* x)^2 / sum <x, A x>, with both sums over smooth vectors x.

    It is small if the weak approximation property of algebraic multigrid holds. The x are four
    random vectors after ten Jacobi steps.
    """
    X = np.random.default_rng(0).standard_normal((A.shape[0], 4)).astype(np.float32)
    Y = np.empty_like(X)
    for _ in range(10):
        X, Y = A.combine(X, Y, -1 / top, ((1.0, X),)), X
    energy = float(np.vdot(X, A.combine(X, Y)).real)
    X = complex_columns(X) if P.dtype.kind == "c" else X
    missed = norms(X - P @ (P.conj().T @ X))
    return float(missed @ missed) * top / energy if energy > 0 else 0.0


def _in_coordinates(sheaf: CellularSheaf, S: Matrix) -> CellularSheaf:
    """Return the sheaf with maps F_{v->e} S_v, whose Laplacian is S* L S."""
    starts, S_data = offsets(sheaf.vertex_dims**2), S.data.reshape(-1)
    data = np.empty_like(sheaf.tail_data), np.empty_like(sheaf.head_data)
    for end, out in enumerate(data):
        multiply_maps(sheaf.arrays, end, S_data, starts, out)
    return trusted_sheaf(sheaf.edges, sheaf.vertex_dims, sheaf.edge_dims, *data)


def _next_level(A: Matrix, top: float, C: Coarsening) -> tuple[Matrix, Matrix, Matrix]:
    """Return the next level's operator, its prolongation, and the scaling of its sheaf."""
    fine_dims, dims = C.fine.vertex_dims, C.sheaf.vertex_dims
    P = in_blocks(C.prolongation, fine_dims, dims)
    smoothed = in_blocks(P - (4 / (3 * top)) * (A @ P), fine_dims, dims)
    width = np.diff(smoothed.indptr).astype(float)
    if smoothed.format == "bsr":
        width = np.repeat(width * smoothed.blocksize[1], smoothed.blocksize[0])
    # P is not smoothed if P* A P then takes more operations per entry of A than this (near hubs)
    thick = 30
    if (width**2).sum() <= thick * A.nnz:
        P = smoothed
    product = in_blocks(adjoint(P) @ (A @ P), dims, dims)
    # Relative accuracy of P* A P. Directions with less energy, which P maps near the kernel of L,
    # are dropped from the next level.
    rounding = 1e-13
    S = unit_roots(product, dims, rounding)[0]
    return scaled(S, product, S), scaled(None, P, S), S


def _smooth(
    level: Level, B: np.ndarray, X: np.ndarray | None, spare: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Smooth the upper part of the spectrum by Chebyshev iteration, from X or from zero.

    Comments give the step numbers of algorithm 12.1 in Saad, Iterative Methods for Sparse Linear
    Systems. Its update d is the difference of the last two iterates, so that each iterate costs one
    pass over the matrix. Returns the iterate and a free array; X and ``spare`` are overwritten.
    """
    A = level.operator
    high = 1.05 * level.top
    low = high / SPREAD
    theta, delta = (high + low) / 2, (high - low) / 2  # step 1
    sigma = theta / delta
    rho = 1 / sigma
    before = X
    spare = np.empty_like(B) if spare is None else spare
    if before is None:  # steps 2 and 4
        X = np.multiply(B, B.dtype.type(1 / theta), out=spare)
        spare = np.empty_like(B)
    else:
        X = A.combine(before, spare, -1 / theta, ((1.0, before), (1 / theta, B)))
        spare = before
    for _ in range(DEGREE - 1):
        next_rho = 1 / (2 * sigma - rho)  # step 6
        keep, step = next_rho * rho, 2 * next_rho / delta
        last = () if before is None else ((-keep, before),)
        terms = ((step, B), (1 + keep, X), *last)  # steps 5 and 7
        before, X = X, A.combine(X, spare, -step, terms)
        spare = before
        rho = next_rho
    return X, spare
