"""Comparison of ``normalize(F)`` with D^{-1/2} L D^{-1/2}, computed independently."""

import warnings

import numpy as np
import scipy.sparse

from sheafcoarsen._support import blocks, offsets, range_of_blocks, ranges, zero_level
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.exceptions import SingularDegreeWarning
from sheafcoarsen.operators import degree_factors, laplacian, loop_sizes, normalize
from sheafcoarsen.verification.cluster_batches import Piece, adjoint_product, part_of
from sheafcoarsen.verification.relative_residual import (
    RelativeResidual,
    block_norms,
    norms_by,
    relative_residual,
)


class Normalization:
    """The normalized sheaf, and D_v^{-1/2} from factors R_v* R_v = D_v checked against L.

    ``root_norms`` has the Frobenius norms of D_v^{-1/2}, ``row_norms`` those of the rows of L at v.
    """

    def __init__(self, C: Coarsening, eps: float) -> None:
        F = C.fine
        self.dims, self.eps = F.vertex_dims, eps
        # number of products that are summed in each entry of D_v, at least its dimension
        rows = np.repeat(F.edge_dims, 2)
        terms = np.bincount(F.edges.reshape(-1), rows, minlength=F.n_vertices)
        self.n = np.maximum(self.dims, terms)
        self.starts, self.factors = degree_factors(F)
        self.loop_sizes = loop_sizes(F)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SingularDegreeWarning)
            self.sheaf = normalize(F)
        self.row_norms, self.root_norms = np.zeros((2, F.n_vertices))

    def measure(
        self, piece: Piece, probes: np.ndarray
    ) -> tuple[RelativeResidual, RelativeResidual, np.ndarray]:
        """Compare both Laplacians in a batch, and store norms.

        Returns the largest residuals of the factors of D_v and of blocks of the normalized
        Laplacian, and the energies of the probes.
        """
        own, vertices, L = piece.own, piece.vertices, piece.L
        k, n = len(own), self.n[vertices]
        column_vertex = np.repeat(np.arange(len(vertices)), self.dims[vertices])
        row_vertex = column_vertex[: piece.n_rows]
        R = self._block_diagonal(vertices, blocks(self.factors, self.starts, vertices))
        roots, D = self.roots(vertices), adjoint_product(R, R)
        sizes, root_sizes = (norms_by(M, column_vertex, None, len(vertices)) for M in (D, roots))
        self.row_norms[own] = norms_by(L, row_vertex, None, k)
        self.root_norms[own] = root_sizes[:k]
        errors = norms_by(D[: piece.n_rows] - L, row_vertex, column_vertex, k)
        factors = relative_residual(errors, n[:k], self.eps, sizes[:k], blocks=("vertex", own))
        normalized = roots[: piece.n_rows, : piece.n_rows] @ L @ roots
        part = part_of(self.sheaf, piece.edges, vertices)
        difference = normalized - laplacian(part)[: piece.n_rows]
        u, v, errors = block_norms(difference, row_vertex, column_vertex, len(vertices))
        norms = root_sizes[u], root_sizes[v], np.sqrt(sizes[u]), np.sqrt(sizes[v])
        where = ("vertex", vertices[u], vertices[v])
        worst = relative_residual(errors, np.maximum(n[u], n[v]), self.eps, *norms, blocks=where)
        y = roots @ probes[piece.coordinates]
        energies = np.real(np.sum(y[: piece.n_rows].conj() * (L @ y), axis=0))
        return factors, worst, energies

    def roots(self, vertices: np.ndarray) -> scipy.sparse.csr_array:
        """Return blockdiag(D_v^{-1/2}) over the vertices passed."""
        dims = self.dims[vertices]
        starts = offsets(dims**2)
        data = np.zeros(int(starts[-1]), self.factors.dtype)
        for d in np.unique(dims[dims > 0]).tolist():  # batch stalks of equal dimension
            at = np.flatnonzero(dims == d)
            factors = blocks(self.factors, self.starts, vertices[at]).reshape(-1, d, d)
            roots = inverse_roots(factors, self.eps, self.loop_sizes[vertices[at]])
            data[range_of_blocks(starts, at)] = roots.reshape(-1)
        return self._block_diagonal(vertices, data)

    def _block_diagonal(self, vertices: np.ndarray, data: np.ndarray) -> scipy.sparse.csr_array:
        dims = self.dims[vertices]
        width = np.repeat(dims, dims)
        columns = ranges(np.repeat(offsets(dims)[:-1], dims), width)
        return scipy.sparse.csr_array((data, columns, offsets(width)), (len(width), len(width)))


def inverse_roots(R: np.ndarray, eps: float, sizes: np.ndarray) -> np.ndarray:
    """Return the pseudo-inverse of (R* R)^{1/2}; ``sizes`` are the norms of the maps of loops."""
    _, w, V = np.linalg.svd(R)
    zero = w <= zero_level(R.shape[1], eps, np.maximum(w[:, 0], sizes)[:, None])
    inverse = np.where(zero, 0, 1 / np.where(zero, 1, w))
    return (V.conj().swapaxes(1, 2) * inverse[:, None, :]) @ V
