"""Residuals of a coarsening, and the norms to which they are compared by `verify`.

All residuals are computed independently of the coarsening kernels, by sparse products of the
coboundary and R instead of block by block. The coarsening is processed in batches of clusters; only
one number per cluster, per block of R* L R and per edge is stored.
"""

from functools import cached_property
from typing import Any

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
from sheafcoarsen.operators import energy, laplacian
from sheafcoarsen.verification.cluster_batches import Piece, Pieces, adjoint_product, renumbered
from sheafcoarsen.verification.dense import eigenvalue_errors, worst_response
from sheafcoarsen.verification.normalization import Normalization
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


class Evidence:
    """Residuals and norms that several checks need, computed once.

    Attributes that end in ``_norms`` have one entry per cluster. ``block_errors[name]`` has the
    norms of ``blocks`` of a coarse matrix that should vanish.
    """

    def __init__(self, C: Coarsening, seed: int) -> None:
        self.C, self.seed = C, seed
        labels, fine_dims, coarse_edges = C.partition.labels, C.fine.vertex_dims, C.sheaf.edges
        self.eps = eps_of(np.result_type(C.fine.dtype, C.prolongation.dtype))
        self.double = np.result_type(C.fine.dtype, C.prolongation.dtype, np.float64)
        self.K = K = C.partition.n_clusters
        self.dims = np.bincount(labels, fine_dims, minlength=K).astype(np.int64)
        self.n = np.maximum(self.dims, C.ranks)
        self.row_cluster = np.repeat(labels, fine_dims)
        self.pieces = Pieces(C)
        self.probes = random_probes(C, seed)
        self.crossing = np.flatnonzero(coarse_edges[:, 0] != coarse_edges[:, 1])
        # start of each coarse crossing edge in the stacked rows of all of them
        self.crossing_starts = offsets(C.sheaf.edge_dims[self.crossing])
        # keys a K + b, ascending, of the blocks of coarse matrices on and above the diagonal:
        # a = b, or a fine or a coarse edge joins clusters a < b
        ends = np.concatenate([labels[C.fine.edges], coarse_edges])
        joined = ends.min(axis=1) * K + ends.max(axis=1)
        self.blocks = np.union1d(np.arange(K) * (K + 1), joined)
        costs = self.dims.astype(float) ** 3
        self.all_clusters_dense = bool(costs.sum() <= DENSE_BUDGET)
        self.sample = sampled(np.flatnonzero((costs > 0) & (costs <= DENSE_BUDGET)), costs, seed)
        if C.modes is not None:
            self.scores = C.modes.scores.astype(np.float64)
            # the clusters whose eigenvalues are compared with those of a dense solver, ascending
            self.checked = np.flatnonzero(self.dims) if self.all_clusters_dense else self.sample
            self.same_graph = all(
                np.array_equal(getattr(C.modes.sheaf, name), getattr(C.fine, name))
                for name in ("edges", "vertex_dims")
            )
        self.R_norms, self.isometry_errors = np.zeros((2, K))
        self.principal_norms = np.zeros(K)
        self.internal_delta_norms, self.internal_row_errors = np.zeros((2, K))
        self.internal_energy = np.zeros((K, self.probes.shape[1]))
        self.mode_norms, self.mode_errors, self.mode_residuals = np.zeros((3, K))
        self.eigenvalue_errors = np.zeros(K)
        names = ("identity", "decomposition", "realization", "laplacian", "loopless", "spectral")
        self.block_errors = {name: np.zeros(len(self.blocks)) for name in names}
        self.edge_errors = np.full(len(self.crossing), np.inf)
        self.edge_norms = np.zeros(len(self.crossing))
        self.edges_missing = False
        self.normalization = Normalization(C, self.eps)
        found = self.pieces.each(self._measure)
        self.worst_factor = max([ZERO, *(factors for factors, *_ in found)])
        self.worst_normalized = max([ZERO, *(worst for _, worst, _ in found)])
        energies = np.sum([energies for *_, energies in found], axis=0)
        exact = energy(self.normalization.sheaf, self.probes)
        self.energy_errors = np.abs(energies - exact)
        self.loopless = bool((self.internal_rows_ratio(0, K) < RESIDUAL_LIMIT).all())

    def _measure(self, piece: Piece) -> tuple[RelativeResidual, RelativeResidual, np.ndarray]:
        """Store the residuals of a batch; return those of its normalization."""
        normalization = self.normalization.measure(piece, self.probes)
        self._measure_sizes(piece)
        self._measure_blocks(piece)
        self._measure_crossing_edges(piece)
        self._measure_modes(piece)
        return normalization

    def _measure_sizes(self, piece: Piece) -> None:
        """Store norms of R, L, and the internal rows of delta and delta R."""
        k, here = piece.hi - piece.lo, slice(piece.lo, piece.hi)
        rows, columns = piece.row_cluster, piece.column_cluster
        own = piece.own_R
        self.R_norms[here] = norms_by(own, rows, None, k)
        defect = adjoint_product(own, own) - scipy.sparse.eye_array(own.shape[1], dtype=own.dtype)
        self.isometry_errors[here] = norms_by(defect, columns[: own.shape[1]], None, k)
        self.principal_norms[here] = norms_by(piece.L[:, : piece.n_rows], rows, rows, k)
        inside = np.repeat(piece.internal_cluster, piece.sheaf.edge_dims[piece.internal])
        internal = piece.delta[piece.internal_rows]
        self.internal_delta_norms[here] = norms_by(internal, inside, None, k)
        self.internal_row_errors[here] = norms_by(piece.internal_delta_R, inside, None, k)
        columns = (internal @ self.probes[piece.coordinates]).T
        energies = [scaled_norms(np.abs(y), inside, k) for y in columns]
        self.internal_energy[here] = np.stack(energies, axis=1) ** 2

    def _measure_blocks(self, piece: Piece) -> None:
        """Store the differences between R* L R and all matrices that it should equal."""
        loopless = (self.internal_rows_ratio(piece.lo, piece.hi) < RESIDUAL_LIMIT).all()
        G = adjoint_product(piece.own_R, piece.L @ piece.R)
        self._put("identity", piece, G - piece.gram(piece.delta_R))
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
        upper = a <= b
        at = np.searchsorted(self.blocks, a[upper] * self.K + b[upper])
        self.block_errors[name][at] = sizes[upper]

    def worst_block(self, name: str) -> RelativeResidual:
        """Return the largest relative residual over the blocks in ``block_errors[name]``."""
        a, b = np.divmod(self.blocks, max(self.K, 1))
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

    def _measure_crossing_edges(self, piece: Piece) -> None:
        """Compare delta_x with delta R edge by edge."""
        a, b = piece.clusters[piece.coarse.edges].T
        # indices in the batch; other edges belong to the batch of their lower end
        edges = np.flatnonzero((a != b) & (np.minimum(a, b) >= piece.lo))
        numbers = np.searchsorted(self.crossing, piece.coarse_edges[edges])
        coarse_rows = range_of_blocks(piece.coarse.edge_offsets, edges)
        coarse = piece.coarse_delta[coarse_rows]
        of_row = np.repeat(np.arange(len(edges)), piece.coarse.edge_dims[edges])
        if self.C.crossing_rows is None:
            rows, of_fine_row = self._fine_rows(piece, edges)
            grams = [
                edge_grams(piece, edges, *part)
                for part in ((coarse, of_row), (piece.delta_R[rows], of_fine_row))
            ]
            difference, of_row = grams[0][0] - grams[1][0], grams[0][1]
        else:
            named = self._named_rows(piece, numbers)
            if named is None:  # wrong rows: the errors of these edges remain infinite
                return
            rows, of_fine_row = named, of_row
            difference = coarse - piece.delta_R[rows]
        self.edge_errors[numbers] = norms_by(difference, of_row, None, len(edges))
        self.edge_norms[numbers] = norms_by(piece.delta[rows], of_fine_row, None, len(edges))

    def _named_rows(self, piece: Piece, numbers: np.ndarray) -> np.ndarray | None:
        """Return the rows in the batch that ``crossing_rows`` lists, or None if one is missing."""
        starts = self.crossing_starts
        wanted = range_of_blocks(starts, numbers)
        named = self.C.crossing_rows
        assert named is not None
        if len(named) != starts[-1]:
            return None
        there = range_of_blocks(self.C.fine.edge_offsets, piece.edges)
        if not np.isin(named[wanted], there).all():
            return None
        return np.searchsorted(there, named[wanted])

    def _fine_rows(self, piece: Piece, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the fine crossing rows of a batch, and the coarse edge that each belongs to."""
        labels = piece.labels[piece.sheaf.edges]
        ends = np.sort(piece.clusters[labels], axis=1)
        crossing = np.flatnonzero((labels[:, 0] != labels[:, 1]) & (ends[:, 0] >= piece.lo))
        wanted = ends[crossing, 0] * self.K + ends[crossing, 1]
        ends = np.sort(piece.clusters[piece.coarse.edges[edges]], axis=1)
        keys = ends[:, 0] * self.K + ends[:, 1]
        found = np.isin(wanted, keys)
        if not found.all():
            self.edges_missing = True
        at = renumbered(wanted[found], keys)
        rows = range_of_blocks(piece.sheaf.edge_offsets, crossing[found])
        return rows, np.repeat(at, piece.sheaf.edge_dims[crossing[found]])

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

    def _measure_modes(self, piece: Piece) -> None:
        """Store residuals of modes, their distance to R, and errors of eigenvalues."""
        modes, here = self.C.modes, slice(piece.lo, piece.hi)
        if modes is None or not self.same_graph:
            return
        rows, k = piece.row_cluster, piece.hi - piece.lo
        if modes.prolongation is not self.C.prolongation:
            own = piece.coordinates[: piece.n_rows]
            difference = self.C.prolongation[own] - modes.prolongation[own]
            self.mode_errors[here] = norms_by(difference, rows, None, k)
        if isinstance(modes.operator, Oversampled):
            return
        internal = modes.operator.spectral
        operator = piece.internal_laplacian if internal else piece.principal_laplacian
        self.mode_norms[here] = norms_by(operator, rows, rows, k)
        lo, hi = self.C.sheaf.vertex_offsets[[piece.lo, piece.hi]]
        scores = scipy.sparse.diags_array(self.scores[lo:hi], shape=(hi - lo, hi - lo))
        residual = operator @ piece.own_R - piece.own_R @ scores
        self.mode_residuals[here] = norms_by(residual, rows, None, k)
        checked = self.checked[(self.checked >= piece.lo) & (self.checked < piece.hi)]
        self.eigenvalue_errors[here] = eigenvalue_errors(piece, operator, modes, checked - piece.lo)

    @property
    def worst_eigenvalue(self) -> RelativeResidual:
        """Largest error of an eigenvalue of the ``checked`` clusters, relative to rounding."""
        return relative_residual(
            self.eigenvalue_errors, self.dims, self.eps, self.mode_norms, blocks=("cluster",)
        )

    @cached_property
    def worst_response(self) -> RelativeResidual:
        """Largest error of the scores of oversampled modes, on sampled clusters."""
        return worst_response(self.C, self.sample, self.eps)

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
    def maps_norm(self) -> float:
        """Norm of all maps, which is that of delta without loops, where maps may cancel."""
        return norm([norm(self.C.fine.tail_data), norm(self.C.fine.head_data)])

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

    def rows(self, a: int) -> np.ndarray:
        """Return the rows of C^0 that belong to a cluster."""
        return range_of_blocks(self.C.fine.vertex_offsets, self.C.partition.cluster(a))

    def dense(self, a: int) -> tuple[np.ndarray, np.ndarray]:
        """Return R_a and L_a of one cluster as dense matrices in double precision."""
        piece = Piece(self.pieces, a, a + 1)
        return piece.own_R.toarray().astype(self.double), piece.internal_laplacian.toarray()

    @cached_property
    def probe_norms2(self) -> np.ndarray:
        """norm(x)^2 of the probes on each cluster, shape (K, number of probes)."""
        norms = [scaled_norms(np.abs(x), self.row_cluster, self.K) for x in self.probes.T]
        return np.stack(norms, axis=1) ** 2

    @cached_property
    def ledger(self) -> EnergyLedger:
        """Energy ledger of the probes, which requires that R is an isometry."""
        return energy_ledger(self.C, self.probes)


def sampled(fits: np.ndarray, costs: np.ndarray, seed: int) -> np.ndarray:
    """Return up to 16 of the clusters ``fits``, ascending, including the one of largest cost."""
    if len(fits) <= 16:
        return fits
    chosen = np.random.default_rng(seed).choice(fits, 15, replace=False)
    return np.union1d(chosen, fits[[np.argmax(costs[fits])]])


def random_probes(C: Coarsening, seed: int) -> np.ndarray:
    """Return random fine cochains; the second one is smooth, to test small energies as well."""
    rng, R = np.random.default_rng(seed), C.prolongation
    x = rng.standard_normal((C.fine.dim_c0, 2))
    if R.dtype.kind == "c":
        x = x + 1j * rng.standard_normal(x.shape)
    x[:, 1] = R @ pooled(R, x[:, 1]) + 0.1 * x[:, 1]
    return x.astype(R.dtype)


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
