"""Independent computation of D_v^{-1/2}, and residuals of the normalized sheaf."""

import warnings
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from sheafcoarsen._support import blocks, norm, offsets, range_of_blocks, zero_level
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.exceptions import SingularDegreeWarning
from sheafcoarsen.operators import degree_factors, energy, laplacian, loop_sizes, normalize
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.verification.cluster_batches import Piece, Pieces, part_of
from sheafcoarsen.verification.relative_residual import (
    ZERO,
    RelativeResidual,
    block_norms,
    relative_residual,
    scaled_norms,
)


class Degrees:
    """Diagonal blocks D_v of L and D_v^{-1/2}, from factors R_v* R_v = D_v checked against L."""

    def __init__(self, C: Coarsening, eps: float, dtype: Any) -> None:
        F = C.fine
        self.C, self.eps, self.dtype = C, eps, dtype
        self.starts = offsets(F.vertex_dims**2)
        self.roots = np.zeros(int(self.starts[-1]), dtype)  # all D_v^{-1/2}, flattened
        self.norms = np.zeros(F.n_vertices)  # norm(D_v)_F
        self.factors, self.loop_sizes = degree_factors(F)[1], loop_sizes(F)
        # one entry per batch: the largest residual of the factors of D_v; the norm of the rows of L
        self.factor_errors: list[RelativeResidual] = []
        self.row_norms: list[float] = []

    def measure(self, piece: Piece) -> tuple[RelativeResidual, float]:
        """Compute D_v^{-1/2} in a batch; return the factors' largest residual and norm(L)."""
        L, vertex, worst = piece.L, piece.row_vertex, ZERO
        row = np.repeat(np.arange(piece.n_rows), np.diff(L.indptr))
        every = np.append(vertex, -1)
        inside = vertex[row] == every[np.minimum(L.indices, piece.n_rows)]
        i, j, value = row[inside], L.indices[inside], L.data[inside]
        dims = self.C.fine.vertex_dims[piece.own]
        first = offsets(dims)
        self.norms[piece.own] = scaled_norms(np.abs(value), vertex[i], len(dims))
        of_entry, place = dims[vertex[i]], np.zeros(len(dims), np.int64)
        for d in np.unique(dims[dims > 0]).tolist():  # batch stalks of equal dimension
            members = np.flatnonzero(dims == d)
            place[members] = np.arange(len(members))
            here = of_entry == d
            v = vertex[i[here]]
            D = np.zeros((len(members), d, d), self.dtype)
            D[place[v], i[here] - first[v], j[here] - first[v]] = value[here]
            where = range_of_blocks(self.starts, piece.own[members])
            own = piece.own[members]
            R = self.factors[where].reshape(D.shape)
            error = np.abs(R.conj().swapaxes(1, 2) @ R - D).reshape(-1)
            error = scaled_norms(error, np.repeat(np.arange(len(members)), d * d), len(members))
            n = np.maximum(d, self.terms[own])
            size, blocks = self.norms[own], ("vertex", own)
            worst = max(worst, relative_residual(error, n, self.eps, size, blocks=blocks))
            self.roots[where] = inverse_roots(R, self.eps, self.loop_sizes[own]).reshape(-1)
        return worst, norm(L.data)

    def root_matrix(self, vertices: np.ndarray) -> scipy.sparse.csr_array:
        """Return blockdiag(D_v^{-1/2}) over the vertices passed."""
        dims = self.C.fine.vertex_dims[vertices]
        width = np.repeat(dims, dims)
        first = np.repeat(offsets(dims)[:-1], dims)
        columns = range_of_blocks(np.append(0, np.cumsum(width)), np.arange(len(width)))
        columns += np.repeat(first - np.append(0, np.cumsum(width))[:-1], width)
        data = blocks(self.roots, self.starts, vertices)
        return scipy.sparse.csr_array((data, columns, offsets(width)), (len(width), len(width)))

    @cached_property
    def terms(self) -> np.ndarray:
        """Number of products that are summed in each entry of D_v, shape (n,)."""
        F = self.C.fine
        rows = np.repeat(F.edge_dims, 2)
        return np.bincount(F.edges.reshape(-1), rows, minlength=F.n_vertices)

    @cached_property
    def root_norms(self) -> np.ndarray:
        """norm(D_v^{-1/2})_F of every vertex, shape (n,)."""
        which = np.repeat(np.arange(len(self.norms)), np.diff(self.starts))
        return scaled_norms(np.abs(self.roots), which, len(self.norms))


def inverse_roots(R: np.ndarray, eps: float, sizes: np.ndarray) -> np.ndarray:
    """Return the pseudo-inverse of (R* R)^{1/2}; ``sizes`` are the norms of the maps of loops."""
    _, w, V = np.linalg.svd(R)
    zero = w <= zero_level(R.shape[1], eps, np.maximum(w[:, 0], sizes)[:, None])
    inverse = np.where(zero, 0, 1 / np.where(zero, 1, w))
    return (V.conj().swapaxes(1, 2) * inverse[:, None, :]) @ V


class Normalized:
    """Comparison of ``normalize(F)`` with D^{-1/2} L D^{-1/2}, in blocks and in energies."""

    def __init__(self, degrees: Degrees, pieces: Pieces, probes: np.ndarray) -> None:
        C, self.degrees = degrees.C, degrees
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SingularDegreeWarning)
            sheaf = normalize(C.fine)

        def measure(piece: Piece) -> tuple[RelativeResidual, np.ndarray]:
            roots = degrees.root_matrix(piece.vertices)
            own = roots[: piece.n_rows, : piece.n_rows]
            y = roots @ probes[piece.coordinates]
            energies = np.real(np.sum(np.conj(y[: piece.n_rows]) * (piece.L @ y), axis=0))
            return self._worst_block(piece, own, roots, sheaf), energies

        found = pieces.each(measure)
        self.worst_block = max([ZERO, *degrees.factor_errors, *(block for block, _ in found)])
        exact = np.array([energies for _, energies in found]).sum(axis=0)
        self.energy_errors = np.abs(exact - energy(sheaf, probes))

    def _worst_block(
        self, piece: Piece, own: Any, roots: Any, sheaf: CellularSheaf
    ) -> RelativeResidual:
        degrees, F = self.degrees, self.degrees.C.fine
        change = own @ piece.L
        piece.forget("L", "sheaf", "coarse")
        change = scipy.sparse.csr_array(change @ roots)
        part = part_of(sheaf, piece.edges, piece.vertices)
        column_vertex = np.repeat(np.arange(len(piece.vertices)), F.vertex_dims[piece.vertices])
        difference = change - laplacian(part)[: piece.n_rows]
        del change, part
        width = len(piece.vertices)
        u, v, sizes = block_norms(difference, piece.row_vertex, column_vertex, width)
        u, v = piece.vertices[u], piece.vertices[v]
        roots_of, sizes_of = degrees.root_norms, np.sqrt(degrees.norms)
        n = np.maximum(F.vertex_dims, degrees.terms)
        factors = (roots_of[u], roots_of[v], sizes_of[u], sizes_of[v])
        rounded, blocks = np.maximum(n[u], n[v]), ("vertex", u, v)
        return relative_residual(sizes, rounded, degrees.eps, *factors, blocks=blocks)
