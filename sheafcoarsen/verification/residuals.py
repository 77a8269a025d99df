"""Residuals of a coarsening, and the norms to which they are compared by `verify`.

All residuals are computed independently of the coarsening kernels, by sparse products of the
coboundary and R instead of block by block. The coarsening is processed in batches of clusters; only
one number per cluster, per block of R* L R and per edge is stored.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._support import (
    RESIDUAL_LIMIT,
    eps_of,
    norm,
    offsets,
    range_of_blocks,
    residual_ratio,
)
from sheafcoarsen.coarsening import Coarsening, EnergyLedger, energy_ledger
from sheafcoarsen.modes import LocalModes, Oversampled
from sheafcoarsen.operators import laplacian
from sheafcoarsen.verification.cluster_batches import Piece, Pieces, adjoint_product
from sheafcoarsen.verification.dense import worst_eigenvalue, worst_response
from sheafcoarsen.verification.normalization import Degrees, Normalized
from sheafcoarsen.verification.relative_residual import (
    FAILED,
    ZERO,
    RelativeResidual,
    block_norms,
    norms_by,
    relative_residual,
    scaled_norms,
)

DENSE_BUDGET = 1e9
"""Sum of N_a^3 up to which a dense solver checks the modes of all clusters, not of a sample."""


class Measured(NamedTuple):
    """Results of one batch that are combined with those of the other batches."""

    factors: tuple[RelativeResidual, float]
    delta_norm: float
    loopless: bool
    edges_missing: bool
    worst_eigenvalue: RelativeResidual


class Evidence:
    """Residuals and norms that several checks need, computed once.

    Attributes that end in ``_norms`` have one entry per cluster. ``block_errors[name]`` has one
    entry per cluster and one per pair of clusters, the norms of the diagonal and off-diagonal
    blocks of a coarse matrix that should vanish.
    """

    def __init__(self, C: Coarsening, seed: int) -> None:
        self.C, self.seed = C, seed
        self.eps = eps_of(np.result_type(C.fine.dtype, C.prolongation.dtype))
        self.K = K = C.partition.n_clusters
        self.dims = np.bincount(C.partition.labels, C.fine.vertex_dims, minlength=K).astype(
            np.int64
        )
        self.n = np.maximum(self.dims, C.ranks)
        self.double = np.result_type(C.fine.dtype, C.prolongation.dtype, np.float64)
        self.pieces = Pieces(C)
        # keys a K + b, ascending, of pairs of clusters a < b joined by a fine or a coarse edge
        both = (C.partition.labels[C.fine.edges], C.sheaf.edges)
        pairs = np.union1d(*(ends.min(axis=1) * K + ends.max(axis=1) for ends in both))
        self.pairs = pairs[pairs // max(K, 1) != pairs % max(K, 1)]
        self.R_norms, self.isometry_errors = np.zeros(K), np.zeros(K)
        self.principal_norms = np.zeros(K)
        self.internal_delta_norms, self.internal_row_errors = np.zeros(K), np.zeros(K)
        self.block_errors = {
            name: np.zeros(K + len(self.pairs))
            for name in ("identity", "decomposition", "realization", "laplacian", "loopless")
        }
        n_crossing = len(self.crossing)
        self.edge_errors, self.edge_norms = np.full(n_crossing, np.inf), np.zeros(n_crossing)
        self.mode_errors, self.mode_residuals = np.zeros(K), np.zeros(K)
        self.mode_norms = np.zeros(K)
        self.internal_energy = np.zeros((K, self.probes.shape[1]))
        if self.spectral:
            self.block_errors["spectral"] = np.zeros(K + len(self.pairs))
        self.degrees = Degrees(C, self.eps, self.double)
        # compute cached properties before several threads read them
        _ = self.probes, self.crossing_starts, self.degrees.terms
        if C.modes is not None:
            _ = self.same_graph, self.scores, self.checked
        found = self.pieces.each(self._measure)
        del self.degrees.factors
        self.degrees.factor_errors = [one.factors[0] for one in found]
        self.degrees.row_norms = [one.factors[1] for one in found]
        self.delta_norms = [one.delta_norm for one in found]
        self.loopless = all(one.loopless for one in found)
        self.edges_missing = any(one.edges_missing for one in found)
        self.worst_eigenvalue = max((one.worst_eigenvalue for one in found), default=ZERO)

    def _measure(self, piece: Piece) -> "Measured":
        """Store the residuals of clusters, pairs and edges of a batch; return the other results."""
        factors = self.degrees.measure(piece)
        delta_norm = self._measure_sizes(piece)
        loopless = bool((self.internal_rows_ratio(piece.lo, piece.hi) < RESIDUAL_LIMIT).all())
        self._measure_blocks(piece, loopless)
        piece.forget("retained", "internal_delta_R")
        edges_missing = self._measure_crossing_edges(piece)
        piece.forget("delta", "delta_R", "coarse_delta")
        return Measured(factors, delta_norm, loopless, edges_missing, self._measure_modes(piece))

    def _measure_sizes(self, piece: Piece) -> float:
        """Store norms of R, L and internal rows of delta and delta R; return norm(delta)."""
        k, here = piece.hi - piece.lo, slice(piece.lo, piece.hi)
        rows, columns = piece.row_cluster, piece.column_cluster
        own = piece.own_R
        self.R_norms[here] = norms_by(own, rows, None, k)
        defect = adjoint_product(own, own) - scipy.sparse.eye_array(own.shape[1], dtype=own.dtype)
        self.isometry_errors[here] = norms_by(defect, columns[: own.shape[1]], None, k)
        every = np.concatenate([rows, np.full(len(piece.coordinates) - len(rows), -1)])
        self.principal_norms[here] = norms_by(piece.L, rows, every, k)
        inside = np.repeat(piece.internal_cluster, piece.sheaf.edge_dims[piece.internal])
        internal = piece.delta[piece.internal_rows]
        self.internal_delta_norms[here] = norms_by(internal, inside, None, k)
        self.internal_row_errors[here] = norms_by(piece.internal_delta_R, inside, None, k)
        columns = (internal @ self.probes[piece.coordinates]).T
        energies = [scaled_norms(np.abs(y), inside, k) for y in columns]
        self.internal_energy[here] = np.stack(energies, axis=1) ** 2
        return norm(piece.delta.data)

    def _measure_blocks(self, piece: Piece, loopless: bool) -> None:
        """Store the differences between R* L R and all matrices that it should equal."""
        G = piece.galerkin
        piece.forget("L", "galerkin")
        self._put("identity", piece, G - piece.lifted)
        crossing = piece.gram(piece.coarse_rows(loops=False))
        self._put("decomposition", piece, G - (crossing + piece.retained))
        if self.C.loops or loopless:
            loops = piece.gram(piece.coarse_rows(loops=True))
            self._put("realization", piece, G - (crossing + loops))
            self._put("laplacian", piece, G - laplacian(piece.coarse)[: piece.n_columns])
        if loopless:
            self._put("loopless", piece, G - crossing)
        if self.spectral:
            lo, hi = self.C.sheaf.vertex_offsets[[piece.lo, piece.hi]]
            scores = scipy.sparse.diags_array(self.scores[lo:hi], format="csr")
            self._put("spectral", piece, piece.retained[:, : hi - lo] - scores)

    def _put(self, name: str, piece: Piece, difference: Any) -> None:
        """Store the norms of blocks on and above the diagonal of a difference of matrices."""
        width = len(piece.clusters)
        own = piece.column_cluster[: piece.n_columns]
        a, b, sizes = block_norms(difference, own, piece.column_cluster, width)
        a, b = piece.clusters[a], piece.clusters[b]
        out, diagonal, above = self.block_errors[name], a == b, a < b
        out[a[diagonal]] = sizes[diagonal]
        at = np.searchsorted(self.pairs, a[above] * self.K + b[above])
        out[self.K + at] = sizes[above]

    def worst_block(self, name: str) -> RelativeResidual:
        """Return the largest relative residual over the blocks in ``block_errors[name]``."""
        every = np.arange(self.K)
        a = np.concatenate([every, self.pairs // max(self.K, 1)])
        b = np.concatenate([every, self.pairs % max(self.K, 1)])
        return relative_residual(
            self.block_errors[name],
            np.maximum(self.n[a], self.n[b]),
            self.eps,
            self.R_norms[a],
            self.R_norms[b],
            np.sqrt(self.principal_norms[a]),
            np.sqrt(self.principal_norms[b]),
            blocks=("cluster", a, b),
        )

    def _measure_crossing_edges(self, piece: Piece) -> bool:
        """Compare delta_x with delta R edge by edge; return whether a crossing edge is missing."""
        ends = piece.clusters[piece.coarse.edges[piece.coarse_crossing]]
        mine = ends.min(axis=1) >= piece.lo  # other edges belong to the batch of their lower end
        edges = piece.coarse_crossing[mine]  # indices in the batch
        numbers = np.searchsorted(self.crossing, piece.coarse_edges[edges])
        coarse_rows = range_of_blocks(piece.coarse.edge_offsets, edges)
        coarse = piece.coarse_delta[coarse_rows]
        of_row = np.repeat(np.arange(len(edges)), piece.coarse.edge_dims[edges])
        missing = False
        if self.C.crossing_rows is None:
            rows, of_fine_row, missing = self._fine_rows(piece, edges)
            grams = [
                edge_grams(piece, edges, *part)
                for part in ((coarse, of_row), (piece.delta_R[rows], of_fine_row))
            ]
            difference, of_row = grams[0][0] - grams[1][0], grams[0][1]
        else:
            named = self._named_rows(piece, numbers)
            if named is None:  # wrong rows: the errors of these edges remain infinite
                return False
            rows, of_fine_row = named, of_row
            difference = coarse - piece.delta_R[rows]
        self.edge_errors[numbers] = norms_by(difference, of_row, None, len(edges))
        self.edge_norms[numbers] = norms_by(piece.delta[rows], of_fine_row, None, len(edges))
        return missing

    def _named_rows(self, piece: Piece, numbers: np.ndarray) -> np.ndarray | None:
        """Return the rows in the batch that ``crossing_rows`` lists, or None if one is missing."""
        starts = self.crossing_starts
        wanted = range_of_blocks(starts, numbers)
        named = self.C.crossing_rows
        assert named is not None
        if len(named) != starts[-1]:
            return None
        wanted = named[wanted]
        there = range_of_blocks(self.C.fine.edge_offsets, piece.edges)
        at = np.minimum(np.searchsorted(there, wanted), max(len(there) - 1, 0))
        if len(wanted) and (not len(there) or (there[at] != wanted).any()):
            return None
        return at

    def _fine_rows(self, piece: Piece, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return fine crossing rows, their coarse edges, and whether a coarse edge is missing."""
        labels = piece.labels[piece.sheaf.edges]
        ends = np.sort(piece.clusters[labels], axis=1)
        crossing = np.flatnonzero((labels[:, 0] != labels[:, 1]) & (ends[:, 0] >= piece.lo))
        wanted = ends[crossing, 0] * self.K + ends[crossing, 1]
        ends = np.sort(piece.clusters[piece.coarse.edges[edges]], axis=1)
        keys = ends[:, 0] * self.K + ends[:, 1]
        order = np.argsort(keys, kind="stable")
        at = np.searchsorted(keys[order], wanted)
        found = np.zeros(len(wanted), bool)
        if len(keys):
            at = order[np.minimum(at, len(keys) - 1)]
            found = keys[at] == wanted
        rows = range_of_blocks(piece.sheaf.edge_offsets, crossing[found])
        place = np.repeat(at[found], piece.sheaf.edge_dims[crossing[found]])
        return rows, place, not bool(found.all())

    def worst_crossing_edge(self) -> RelativeResidual:
        """Return the largest relative residual over coarse crossing edges."""
        a, b = np.sort(self.C.sheaf.edges[self.crossing], axis=1).T
        if self.edges_missing:
            return FAILED
        powers = 2 if self.C.crossing_rows is None else 1
        factors = (self.edge_norms, np.maximum(self.R_norms[a], self.R_norms[b])) * powers
        n = np.maximum(self.n[a], self.n[b])
        blocks = ("coarse edge", self.crossing)
        return relative_residual(self.edge_errors, n, self.eps, *factors, blocks=blocks)

    def _measure_modes(self, piece: Piece) -> RelativeResidual:
        """Store residuals of modes and their distance to R; return the largest eigenvalue error."""
        modes, here = self.C.modes, slice(piece.lo, piece.hi)
        if modes is None or not self.same_graph:
            return ZERO
        if modes.prolongation is not self.C.prolongation:
            rows = piece.coordinates[: piece.n_rows]
            difference = self.C.prolongation[rows] - modes.prolongation[rows]
            self.mode_errors[here] = norms_by(
                difference, piece.row_cluster, None, piece.hi - piece.lo
            )
        if isinstance(modes.operator, Oversampled):
            return ZERO
        internal = modes.operator.spectral
        operator = piece.internal_laplacian if internal else piece.principal_laplacian
        rows, k = piece.row_cluster, piece.hi - piece.lo
        self.mode_norms[here] = norms_by(operator, rows, rows, k)
        lo, hi = self.C.sheaf.vertex_offsets[[piece.lo, piece.hi]]
        scores = scipy.sparse.diags_array(self.scores[lo:hi], shape=(hi - lo, hi - lo))
        residual = operator @ piece.own_R - piece.own_R @ scores
        self.mode_residuals[here] = norms_by(residual, rows, None, k)
        checked = self.checked[(self.checked >= piece.lo) & (self.checked < piece.hi)]
        return worst_eigenvalue(
            piece, operator, modes, checked - piece.lo, self.mode_norms, self.eps
        )

    @cached_property
    def worst_response(self) -> RelativeResidual:
        """Largest error of the scores of oversampled modes, on sampled clusters."""
        return worst_response(self.C, self.sample, self.eps)

    @cached_property
    def same_graph(self) -> bool:
        """Whether the sheaf of the modes has the graph and stalk dimensions of the fine sheaf."""
        mine, fine = self.modes.sheaf, self.C.fine
        return all(
            np.array_equal(getattr(mine, name), getattr(fine, name))
            for name in ("edges", "vertex_dims")
        )

    @property
    def isometry(self) -> RelativeResidual:
        """Largest norm(R_a* R_a - I), relative to rounding."""
        ranks = np.maximum(self.C.ranks, 1)
        eps = eps_of(self.C.prolongation.dtype)
        return relative_residual(self.isometry_errors, self.n, eps, ranks, blocks=("cluster",))

    def internal_rows_ratio(self, lo: int, hi: int) -> np.ndarray:
        """Return norm(delta_a R_a) relative to rounding errors; it is small if L_a R_a = 0."""
        sides = self.internal_delta_norms, self.R_norms, self.internal_row_errors, self.n
        delta, R, errors, n = (side[lo:hi] for side in sides)
        return residual_ratio(errors, n, self.eps, delta, R)

    @property
    def internal_rows(self) -> RelativeResidual:
        """Largest norm(delta_a R_a), relative to rounding."""
        factors = (self.internal_delta_norms, self.R_norms)
        errors, blocks = self.internal_row_errors, ("cluster",)
        return relative_residual(errors, self.n, self.eps, *factors, blocks=blocks)

    @property
    def delta_norm(self) -> float:
        """norm(delta)_F, in which crossing edges between batches count twice."""
        return norm(np.array(self.delta_norms))

    @cached_property
    def crossing(self) -> np.ndarray:
        """Indices of the crossing edges of the coarse sheaf."""
        return np.flatnonzero(self.C.sheaf.edges[:, 0] != self.C.sheaf.edges[:, 1])

    @cached_property
    def crossing_starts(self) -> np.ndarray:
        """Start of each coarse crossing edge in the stacked rows of all coarse crossing edges."""
        return offsets(self.C.sheaf.edge_dims[self.crossing])

    @property
    def modes(self) -> LocalModes:
        """The modes of the coarsening, which must not have a basis passed by the user."""
        assert self.C.modes is not None
        return self.C.modes

    @property
    def spectral(self) -> bool:
        """Whether the modes are those of the internal operator."""
        return self.C.modes is not None and self.C.modes.operator.spectral

    @cached_property
    def scores(self) -> np.ndarray:
        """All retained eigenvalues in double precision."""
        return self.modes.scores.astype(np.float64)

    @cached_property
    def all_clusters_dense(self) -> bool:
        """Whether all clusters are small enough for a dense solver."""
        return bool((self.dims.astype(np.float64) ** 3).sum() <= DENSE_BUDGET)

    @cached_property
    def sample(self) -> np.ndarray:
        """A sample of clusters small enough for dense matrices, including the largest of them."""
        small = self.dims.astype(float) ** 3 <= DENSE_BUDGET
        fits = np.flatnonzero((self.dims > 0) & small)
        if len(fits) <= 16:
            return fits
        chosen = np.random.default_rng(self.seed).choice(fits, 15, replace=False)
        return np.union1d(chosen, fits[[np.argmax(self.dims[fits])]])

    @cached_property
    def checked(self) -> np.ndarray:
        """Clusters whose eigenvalues are compared with those of a dense solver, ascending."""
        return np.flatnonzero(self.dims > 0) if self.all_clusters_dense else self.sample

    @cached_property
    def ties(self) -> np.ndarray:
        """Whether the stored eigenvalues are tied at the cut, shape (K,)."""
        modes, ranks = self.modes, self.modes.ranks
        last = np.zeros(self.K)
        last[ranks > 0] = self.scores[modes.rank_offsets[1:][ranks > 0] - 1]
        gap = modes.next_eigenvalues.astype(np.float64) - last
        near = gap <= np.sqrt(self.eps) * modes.operator_norms.astype(np.float64)
        doubtful = np.abs(gap - np.sqrt(self.eps) * modes.operator_norms) <= 1e-3 * np.abs(gap)
        cut = (ranks > 0) & (ranks < self.dims)
        return np.where(cut & ~doubtful, near, modes.tied & cut)

    @cached_property
    def row_cluster(self) -> np.ndarray:
        """Cluster index of each row of C^0."""
        return np.repeat(self.C.partition.labels, self.C.fine.vertex_dims)

    def rows(self, a: int) -> np.ndarray:
        """Return the rows of C^0 that belong to a cluster."""
        return range_of_blocks(self.C.fine.vertex_offsets, self.C.partition.cluster(a))

    def dense(self, a: int) -> tuple[np.ndarray, np.ndarray]:
        """Return R_a and L_a of one cluster as dense matrices in double precision."""
        piece = Piece(self.pieces, a, a + 1)
        return piece.own_R.toarray().astype(self.double), piece.internal_laplacian.toarray()

    @cached_property
    def probes(self) -> np.ndarray:
        """Random fine cochains; the second one is smooth, to test small energies as well."""
        rng = np.random.default_rng(self.seed)
        R = self.C.prolongation
        x = rng.standard_normal((self.C.fine.dim_c0, 2))
        if R.dtype.kind == "c":
            x = x + 1j * rng.standard_normal(x.shape)
        x[:, 1] = R @ pooled(R, x[:, 1]) + 0.1 * x[:, 1]
        return x.astype(R.dtype)

    @cached_property
    def probe_norms2(self) -> np.ndarray:
        """norm(x)^2 of the probes on each cluster, shape (K, number of probes)."""
        norms = [scaled_norms(np.abs(x), self.row_cluster, self.K) for x in self.probes.T]
        return np.stack(norms, axis=1) ** 2

    @cached_property
    def normalized(self) -> Normalized:
        """Comparison of ``normalize(F)`` with D^{-1/2} L D^{-1/2}."""
        return Normalized(self.degrees, self.pieces, self.probes)

    @cached_property
    def ledger(self) -> EnergyLedger:
        """Energy ledger of the probes, which requires that R is an isometry."""
        return energy_ledger(self.C, self.probes)


def pooled(R: scipy.sparse.csr_array, x: np.ndarray) -> np.ndarray:
    """Return R* x without forming R*, which would copy a complex R."""
    return (R.T @ x.conj()).conj()


def edge_grams(
    piece: Piece, edges: np.ndarray, X: scipy.sparse.csr_array, edge: np.ndarray
) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return blockdiag(X_e* X_e) and the coarse edge e of each row; X_e are the rows of e in X."""
    ends = piece.coarse.edges[edges]
    ranks = piece.coarse.vertex_dims[ends]
    starts = piece.coarse.vertex_offsets[:-1][ends]
    e = np.repeat(edge, np.diff(X.indptr))
    second = (piece.column_cluster[X.indices] == ends[e, 1]).astype(np.int64)
    begin = offsets(ranks.sum(axis=1))
    column = begin[:-1][e] + second * ranks[e, 0] + X.indices - starts[e, second]
    placed = scipy.sparse.csr_array((X.data, column, X.indptr), (X.shape[0], int(begin[-1])))
    return adjoint_product(placed, placed), np.repeat(np.arange(len(edges)), np.diff(begin))
