"""Multigrid from the sheaf's own coarsening: smoothed aggregation that keeps local modes.

Level by level: the sheaf is normalized, so that every diagonal block of its Laplacian is I; small
clusters keep their lowest local modes (:func:`sheafcoarsen.local_modes`); one Jacobi step smooths
the prolongation, P = (I - 4 / (3 rho) A) P_0 (Vanek, Mandel, Brezina 1996); and P* A P is scaled to
unit blocks again. The sheaf of the next level is the *unsmoothed* coarse sheaf with its loops,
which is where its modes come from. The cycle runs in single precision; whoever calls it iterates in
double precision.
"""

import warnings
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import bar
from sheafcoarsen.coarsening import Coarsening, coarsen
from sheafcoarsen.exceptions import SingularDegreeWarning, TiedModesWarning
from sheafcoarsen.modes import local_modes
from sheafcoarsen.operators import Factors, laplacian, normalize
from sheafcoarsen.partition import Partition, find_clusters
from sheafcoarsen.ranks import below
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve.stalks import (
    Matrix,
    adjoint,
    block_size,
    in_blocks,
    inverse_roots,
    largest_eigenvalue,
)

CLUSTERS = (10, 8)
"""Vertices of a cluster on the finest level, and on the others."""

MIXED_BELOW, MIXED_MOST = 0.25, 8
"""Stalks of several dimensions: a cluster keeps the modes below the first (of a normalized sheaf),
at least one and at most the second."""

COARSEST = 800
"""Dimension at or below which a level is solved densely."""

LARGEST_DENSE = 3000
"""Dimension up to which the coarsest level is solved densely where coarsening gets no further."""

SHRINKS = 0.8
"""A level that keeps more than this of its dimension is not worth having."""

THICK = 30
"""P stays unsmoothed where P* A P would cost more than this times the entries of A (hubs)."""

DEGREE, SPREAD = 2, 6.0
"""Of the Chebyshev smoother, and the ratio between the ends of the interval that it smooths."""

NOTHING = 1e-8
"""Below this the coarsest operator, whose unit is that of a normalized sheaf, is zero."""

FLOOR = 1e-6
"""Eigenvalues of the coarsest operator count as this times the largest where they are below it: the
cycle is positive definite whatever the kernel."""


class Level(NamedTuple):
    """One level of the cycle, in single precision, and the way to the next one."""

    operator: scipy.sparse.csr_array
    top: float  # bound of its spectrum
    prolongation: scipy.sparse.csr_array | None  # None on the coarsest
    restriction: scipy.sparse.csr_array | None


class Multigrid:
    """An approximate inverse of L + shift I, Hermitian positive definite up to single precision.

    Parameters
    ----------
    sheaf : CellularSheaf
        Of the size of 1 (``unit_sheaf``), in double precision, with a positive dimension.
    shift : float
    like : Multigrid, optional
        Of a sheaf on the same graph: its partitions and ranks are taken over.

    Attributes
    ----------
    dims : list of int
        Dimension of every level, the finest first.
    unseen : int
        Dimension of what no map sees of the stalks: there the cycle gives 0.
    lowest : float
        The smallest eigenvalue of the coarsest operator over the largest; 0 where it is not known.
    operators, prolongations : list of sparse matrices
        A_l and P_l in double precision, unit diagonal blocks; ``roots`` leads from A_0 to L.
    """

    def __init__(
        self,
        sheaf: CellularSheaf,
        shift: float = 0.0,
        like: "Multigrid | None" = None,
        progress: bool = False,
    ):
        L = laplacian(sheaf)
        if shift:
            L = scipy.sparse.csr_array(L + shift * scipy.sparse.eye_array(*L.shape, format="csr"))
        dims = sheaf.vertex_dims
        self.roots = inverse_roots(L, dims)
        A = in_blocks(self.roots @ L @ self.roots, dims, dims)
        # a normalized block is the projection on what maps see of the stalk
        self.unseen = round(A.shape[0] - float(A.diagonal().real.sum()))
        h = _normalized(sheaf)
        self.operators, self.prolongations, self.coarsenings = [A], [], []
        tops = [largest_eigenvalue(A) or 1.0]
        turn = scipy.sparse.eye_array(A.shape[0], format="csr")
        with bar(0, "multigrid levels", progress) as shown:
            while A.shape[0] > COARSEST:
                C = self._coarsened(h, like)
                if C is None:
                    break
                A, P, turn = _next_level(A, tops[-1], C, turn)
                h = _normalized(C.sheaf)
                self.operators.append(A)
                self.prolongations.append(P)
                self.coarsenings.append(C)
                tops.append(largest_eigenvalue(A) or 1.0)
                shown.update(1)
        self.dims = [A.shape[0] for A in self.operators]
        self._work = (
            np.result_type(A.dtype, np.float32)
            .type(0)
            .astype(np.complex64 if A.dtype.kind == "c" else np.float32)
            .dtype
        )
        self._roots = self.roots.astype(self._work)
        self._levels = [
            Level(
                scipy.sparse.csr_array(A).astype(self._work),
                top,
                None if P is None else scipy.sparse.csr_array(P).astype(self._work),
                None if P is None else scipy.sparse.csr_array(adjoint(P)).astype(self._work),
            )
            for A, top, P in zip(self.operators, tops, [*self.prolongations, None], strict=True)
        ]
        self._set_up_coarsest(tops[-1])

    def _set_up_coarsest(self, top: float) -> None:
        """Invert the coarsest operator, by its eigenvalues, or factor it where it is large."""
        A = scipy.sparse.csr_array(self.operators[-1])
        self._factors = None
        if A.shape[0] > LARGEST_DENSE:  # coarsening got no further
            self._factors = Factors(A, FLOOR * top)
            self.lowest = 0.0
            return
        values, vectors = scipy.linalg.eigh(A.toarray())
        largest = max(float(values[-1]), NOTHING)
        inverse = (vectors / np.maximum(values, FLOOR * largest)) @ vectors.conj().T
        self._inverse = inverse.astype(self._work)
        self.lowest = max(float(values[0]), 0.0) / largest

    def _coarsened(self, h: CellularSheaf, like: "Multigrid | None") -> Coarsening | None:
        """Return the coarsening of the next level's sheaf, None where it is not worth it."""
        with warnings.catch_warnings():  # any of the spaces that a tie leaves will do
            warnings.simplefilter("ignore", TiedModesWarning)
            return self._clusters_kept(h, like)

    def _clusters_kept(self, h: CellularSheaf, like: "Multigrid | None") -> Coarsening | None:
        level = len(self.coarsenings)
        if like is not None:
            return like.coarsenings[level].recoarsen(h) if level < len(like.coarsenings) else None
        count = max(1, round(h.n_vertices / CLUSTERS[min(level, len(CLUSTERS) - 1)]))
        P = Partition(find_clusters(h, count, "balls")[1])
        d = block_size(h.vertex_dims)
        if d is None:
            ranks = local_modes(h, P, below(MIXED_BELOW)).ranks.clip(1, MIXED_MOST)
            modes = local_modes(h, P, ranks)
        else:
            modes = local_modes(h, P, d)
        if modes.ranks.sum() > SHRINKS * h.dim_c0:
            return None
        return coarsen(h, P, modes, compress=True)

    def cycle(self, X: np.ndarray) -> np.ndarray:
        """Return about (L + shift)^{-1} X for X of shape (dim, h), one V-cycle for each column."""
        size = np.linalg.norm(X, axis=0)
        size[size == 0] = 1
        B = np.ascontiguousarray((X / size).astype(self._work))
        Y = self._roots @ self.descend(0, self._roots @ B)
        return Y.astype(X.dtype) * size

    def level_cycle(self, level: int, X: np.ndarray) -> np.ndarray:
        """Return about A_level^{-1} X, one V-cycle that begins at a level."""
        size = np.linalg.norm(X, axis=0)
        size[size == 0] = 1
        B = np.ascontiguousarray((X / size).astype(self._work))
        return self.descend(level, B).astype(X.dtype) * size

    def descend(self, level: int, B: np.ndarray) -> np.ndarray:
        """Return the V-cycle's approximation of A_level^{-1} B, in single precision."""
        here = self._levels[level]
        if here.prolongation is None and self._factors is not None:
            return self._factors.solve(B.astype(self.operators[-1].dtype)).astype(self._work)
        if here.prolongation is None:
            return self._inverse @ B
        X = _smooth(here, B, None)
        below_ = here.restriction @ (B - here.operator @ X)
        X += here.prolongation @ self.descend(level + 1, below_)
        return _smooth(here, B, X)


def _normalized(sheaf: CellularSheaf) -> CellularSheaf:
    """Return the normalized sheaf; directions that no map sees stay such."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularDegreeWarning)
        return normalize(sheaf)


def _next_level(
    A: Matrix, top: float, C: Coarsening, turn: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """Return the operator of the next level, the prolongation to it, and the next ``turn``.

    ``turn`` leads from the coordinates of the normalized sheaf of this level, whose modes C holds,
    to those of A, which was scaled to unit blocks after P had been smoothed.
    """
    coarse, fine_dims = C.sheaf, C.fine.vertex_dims
    dims = coarse.vertex_dims
    R = turn @ C.prolongation @ inverse_roots(laplacian(coarse), dims)
    P = in_blocks(R, fine_dims, dims)
    smoothed = in_blocks(P - (4 / (3 * top)) * (A @ P), fine_dims, dims)
    width = np.diff(smoothed.indptr).astype(float)
    if smoothed.format == "bsr":
        width = np.repeat(width * smoothed.blocksize[1], smoothed.blocksize[0])
    if (width**2).sum() <= THICK * A.nnz:
        P = smoothed
    product = scipy.sparse.csr_array(adjoint(P) @ (A @ P))
    S = in_blocks(inverse_roots(product, dims), dims, dims)
    turn = inverse_roots(product, dims, power=0.5)
    product = in_blocks(product, dims, dims)
    return (
        in_blocks(S @ product @ S, dims, dims),
        in_blocks(P @ S, fine_dims, dims),
        turn,
    )


def _smooth(level: Level, B: np.ndarray, X: np.ndarray | None) -> np.ndarray:
    """Chebyshev iteration on the upper part of the spectrum, from X or from zero.

    Saad, Iterative Methods for Sparse Linear Systems, algorithm 12.1; its step numbers.
    """
    high = 1.05 * level.top
    low = high / SPREAD
    theta, delta = (high + low) / 2, (high - low) / 2  # 1
    sigma = theta / delta
    rho = 1 / sigma
    scalar = B.real.dtype.type
    R = B.copy() if X is None else B - level.operator @ X
    D = R * scalar(1 / theta)  # 2
    X = D.copy() if X is None else X + D  # 4
    for _ in range(DEGREE - 1):
        R = B - level.operator @ X  # 5
        following = 1 / (2 * sigma - rho)  # 6
        D = scalar(following * rho) * D + scalar(2 * following / delta) * R  # 7
        X += D
        rho = following
    return X
