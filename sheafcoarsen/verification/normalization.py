"""Independent computation of D_v^{-1/2}, and residuals of the normalized sheaf."""

import warnings
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from sheafcoarsen._support import blocks, offsets, range_of_blocks, ranges, zero_level
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.exceptions import SingularDegreeWarning
from sheafcoarsen.operators import degree_factors, energy, laplacian, loop_sizes, normalize
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.verification.cluster_batches import Piece, Pieces, adjoint_product, part_of
from sheafcoarsen.verification.relative_residual import (
    RelativeResidual,
    block_norms,
    norms_by,
    relative_residual,
    scaled_norms,
)


class Degrees:
    """Diagonal blocks D_v of L and D_v^{-1/2}, from factors R_v* R_v = D_v checked against L.

    ``norms`` and ``root_norms`` have the Frobenius norms of D_v and D_v^{-1/2}, ``row_norms`` those
    of the rows of L.
    """

    def __init__(self, C: Coarsening, eps: float) -> None:
        F = C.fine
        self.dims, self.eps = F.vertex_dims, eps
        # number of products that are summed in each entry of D_v, at least its dimension
        rows = np.repeat(F.edge_dims, 2)
        terms = np.bincount(F.edges.reshape(-1), rows, minlength=F.n_vertices)
        self.n = np.maximum(self.dims, terms)
        self.starts, self.factors = degree_factors(F)
        self.roots = np.zeros_like(self.factors)  # all D_v^{-1/2}, flattened
        self.loop_sizes = loop_sizes(F)
        self.norms, self.row_norms, self.factor_errors = np.zeros((3, F.n_vertices))

    def measure(self, piece: Piece) -> None:
        """Compute D_v^{-1/2} in a batch, and store norms and the errors of the factors."""
        own, vertex = piece.own, piece.row_vertex
        L, R = piece.L[:, : piece.n_rows], self.block_diagonal(self.factors, own)
        self.row_norms[own] = norms_by(piece.L, vertex, None, len(own))
        self.norms[own] = norms_by(L, vertex, vertex, len(own))
        self.factor_errors[own] = norms_by(adjoint_product(R, R) - L, vertex, vertex, len(own))
        dims = self.dims[own]
        for d in np.unique(dims[dims > 0]).tolist():  # batch stalks of equal dimension
            members = own[dims == d]
            where = range_of_blocks(self.starts, members)
            factors = self.factors[where].reshape(-1, d, d)
            roots = inverse_roots(factors, self.eps, self.loop_sizes[members])
            self.roots[where] = roots.reshape(-1)

    @property
    def worst_factor(self) -> RelativeResidual:
        """Largest norm(R_v* R_v - D_v), relative to rounding."""
        return relative_residual(
            self.factor_errors, self.n, self.eps, self.norms, blocks=("vertex",)
        )

    def block_diagonal(self, data: np.ndarray, vertices: np.ndarray) -> scipy.sparse.csr_array:
        """Return the blocks in ``data`` of the vertices passed as a block diagonal matrix."""
        dims = self.dims[vertices]
        width = np.repeat(dims, dims)
        columns = ranges(np.repeat(offsets(dims)[:-1], dims), width)
        entries = blocks(data, self.starts, vertices), columns, offsets(width)
        return scipy.sparse.csr_array(entries, (len(width), len(width)))

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
        F, self.degrees = pieces.C.fine, degrees
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SingularDegreeWarning)
            sheaf = normalize(F)

        def measure(piece: Piece) -> tuple[RelativeResidual, np.ndarray]:
            roots = degrees.block_diagonal(degrees.roots, piece.vertices)
            own = roots[: piece.n_rows, : piece.n_rows]
            y = roots @ probes[piece.coordinates]
            energies = np.real(np.sum(np.conj(y[: piece.n_rows]) * (piece.L @ y), axis=0))
            return self._worst_block(piece, own, roots, sheaf), energies

        found = pieces.each(measure)
        self.worst_block = max([degrees.worst_factor, *(block for block, _ in found)])
        exact = np.array([energies for _, energies in found]).sum(axis=0)
        self.energy_errors = np.abs(exact - energy(sheaf, probes))

    def _worst_block(
        self, piece: Piece, own: Any, roots: Any, sheaf: CellularSheaf
    ) -> RelativeResidual:
        degrees, dims = self.degrees, self.degrees.dims
        change = own @ piece.L
        piece.forget("L", "sheaf", "coarse")
        change = scipy.sparse.csr_array(change @ roots)
        part = part_of(sheaf, piece.edges, piece.vertices)
        column_vertex = np.repeat(np.arange(len(piece.vertices)), dims[piece.vertices])
        difference = change - laplacian(part)[: piece.n_rows]
        del change, part
        width = len(piece.vertices)
        u, v, sizes = block_norms(difference, piece.row_vertex, column_vertex, width)
        u, v = piece.vertices[u], piece.vertices[v]
        roots_of, sizes_of = degrees.root_norms, np.sqrt(degrees.norms)
        factors = (roots_of[u], roots_of[v], sizes_of[u], sizes_of[v])
        n, blocks = np.maximum(degrees.n[u], degrees.n[v]), ("vertex", u, v)
        return relative_residual(sizes, n, degrees.eps, *factors, blocks=blocks)
