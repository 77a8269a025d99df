"""Residuals of a coarsening, and the norms to which they are compared by `verify`.

All residuals are computed independently of the coarsening kernels, by sparse products of the
coboundary and R instead of block by block. The coarsening is processed in batches of clusters; only
a few numbers per cluster, block of R* L R and coarse edge, and D_v^{-1/2}, are stored.
"""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array

from sheafcoarsen._support import linalg, ragged, warned
from sheafcoarsen.coarsening import Coarsening, EnergyLedger, energy_ledger, isometry_errors
from sheafcoarsen.modes import Oversampled
from sheafcoarsen.operators import (
    coboundary,
    degree_factors,
    energy,
    laplacian,
    loop_norms,
    normalize,
)
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.verification.cluster_batches import Piece, in_batches, part_of, renumbered
from sheafcoarsen.verification.relative_residual import (
    FAILED,
    ZERO,
    RelativeResidual,
    block_norms,
    relative_residual,
)

DENSE_BUDGET = 1e9
"""Sum of N_a^3 up to which a dense solver checks the modes of all clusters, not of a sample."""


class Evidence:
    """Residuals and norms that several checks need, computed once.

    Attributes that end in ``_norms`` have one entry per cluster, except ``edge_norms`` with one per
    coarse crossing edge. ``block_errors[name]`` has one entry per cluster and one per pair of
    clusters, the norms of the diagonal and off-diagonal blocks of a coarse matrix that should
    vanish.
    """

    def __init__(self, C: Coarsening, seed: int) -> None:
        self.C, self.seed = C, seed
        self.eps = linalg.eps_of(np.result_type(C.fine.dtype, C.prolongation.dtype))
        self.K = K = C.partition.n_clusters
        self.dims = C.clusters.dims
        self.n = np.maximum(self.dims, C.ranks)
        # where maps of loops cancel, rounding errors are relative to the maps
        self.loop_norms = loop_norms(C.fine, C.partition.labels, C.partition.n_clusters)
        self.loop_energies = self.n * self.eps * self.loop_norms**2
        self.double = np.result_type(C.fine.dtype, C.prolongation.dtype, np.float64)
        self.row_cluster = np.repeat(C.partition.labels, C.fine.vertex_dims)
        self.probes = random_probes(C.prolongation, seed)
        norms = [linalg.scaled_norms(np.abs(x), self.row_cluster, K) for x in self.probes.T]
        self.probe_norms2 = np.stack(norms, axis=1) ** 2  # norm(x)^2 on each cluster, (K, 2)
        # a dense solver checks all clusters, or a sample of those small enough for it
        cubes = self.dims.astype(np.float64) ** 3
        self.all_clusters_dense = bool(cubes.sum() <= DENSE_BUDGET)
        self.sample = np.flatnonzero((self.dims > 0) & (cubes <= DENSE_BUDGET))
        if len(self.sample) > 16:
            chosen = np.random.default_rng(seed).choice(self.sample, 15, replace=False)
            largest = self.sample[np.argmax(self.dims[self.sample])]
            self.sample = np.union1d(chosen, [largest])
        # keys a K + b, ascending, of pairs of clusters a < b joined by a fine or a coarse edge
        both = (C.partition.labels[C.fine.edges], C.sheaf.edges)
        keys = [ends.min(axis=1) * K + ends.max(axis=1) for ends in both]
        pairs = np.union1d(*keys)
        self.pairs = pairs[np.not_equal(*np.divmod(pairs, max(K, 1)))]
        # whether compressed edges omit one between two clusters that a fine edge joins
        self.edges_missing = C.crossing_rows is None and not np.isin(self.pairs, keys[1]).all()
        self.R_norms, self.isometry_errors, self.principal_norms = np.zeros((3, K))
        self.internal_delta_norms, self.internal_row_errors = np.zeros((2, K))
        self.mode_errors, self.mode_residuals, self.mode_norms = np.zeros((3, K))
        self.eigenvalue_errors = np.zeros(K)
        names = "identity", "decomposition", "realization", "laplacian", "loopless", "spectral"
        self.block_errors = {name: np.zeros(K + len(self.pairs)) for name in names}
        # crossing edges of the coarse sheaf, and their first rows among those of all crossing edges
        self.crossing = np.flatnonzero(C.sheaf.edges[:, 0] != C.sheaf.edges[:, 1])
        self.crossing_starts = ragged.offsets(C.sheaf.edge_dims[self.crossing])
        self.edge_norms = np.zeros(len(self.crossing))
        self.edge_errors = np.full(len(self.crossing), np.inf)
        self.internal_energy = np.zeros_like(self.probe_norms2)
        # whether there are modes, of a sheaf with the graph and vertex stalks of the fine sheaf
        self.same_graph = C.modes is not None and all(
            np.array_equal(getattr(C.modes.sheaf, name), getattr(C.fine, name))
            for name in ("edges", "vertex_dims")
        )
        self.modes: Any = C.modes  # None if the basis is the user's own
        if C.modes is not None:
            self.scores = C.modes.scores.astype(np.float64)
        rows = np.array(in_batches(C, self._measure)).reshape(-1, 2)
        # norm(L)_F, and norm(delta)_F, in which crossing edges between batches count twice
        self.L_norm, self.delta_norm = linalg.norm(rows[:, 0]), linalg.norm(rows[:, 1])

    def _measure(self, piece: Piece) -> tuple[float, float]:
        """Store all residuals of a batch; return the norms of its rows of L and delta."""
        k, here, rows = piece.hi - piece.lo, slice(piece.lo, piece.hi), piece.row_cluster
        L, delta = laplacian(piece.sheaf)[: piece.n_rows], coboundary(piece.sheaf)
        # the rows of R in the batch, with columns numbered as in the batch
        R = self.C.prolongation[piece.coordinates]
        columns = ragged.range_of_blocks(self.C.sheaf.vertex_offsets, piece.clusters)
        shape = (len(piece.coordinates), len(columns))
        R = csr_array((R.data, renumbered(R.indices, columns), R.indptr), shape=shape)
        own_R = R[: piece.n_rows, : piece.n_columns]
        delta_R = csr_array(delta @ R)
        self.R_norms[here] = linalg.norms_by(own_R, rows, None, k)
        self.isometry_errors[here] = isometry_errors(own_R, self.C.ranks[here])
        columns = np.repeat(piece.labels, self.C.fine.vertex_dims[piece.vertices])
        self.principal_norms[here] = linalg.norms_by(L, rows, columns, k) + self.loop_energies[here]
        # rows of delta and delta R inside clusters, and the cluster of each
        internal = ragged.range_of_blocks(piece.sheaf.edge_offsets, piece.internal)
        inside = piece.labels[piece.sheaf.edges[piece.internal, 0]]
        inside = np.repeat(inside, piece.sheaf.edge_dims[piece.internal])
        inner = delta[internal]
        own = linalg.norms_by(inner, inside, None, k)
        self.internal_delta_norms[here] = own + self.loop_norms[here]
        self.internal_row_errors[here] = linalg.norms_by(delta_R[internal], inside, None, k)
        differences = (inner @ self.probes[piece.coordinates]).T
        energies = [linalg.scaled_norms(np.abs(y), inside, k) for y in differences]
        self.internal_energy[here] = np.stack(energies, axis=1) ** 2
        norms = linalg.norm(L.data), linalg.norm(delta.data)
        G = csr_array(own_R.conj(copy=False).T @ (L @ R))
        del R, L, inner  # free their memory, because a batch takes most of it
        coarse_delta = coboundary(piece.coarse)
        self._measure_blocks(piece, G, delta_R, internal, coarse_delta)
        del G
        self._measure_crossing_edges(piece, delta, delta_R, coarse_delta)
        del delta, delta_R, coarse_delta
        if self.same_graph:
            self._measure_modes(piece, own_R)
        return norms

    def _measure_blocks(
        self, piece: Piece, G: csr_array, delta_R: csr_array, rows: np.ndarray, coarse: csr_array
    ) -> None:
        """Store norms of blocks of G = R* L R minus each matrix that it should equal.

        With loops, G is the coarse Laplacian (``eq:augmented_exact_realization``); without retained
        internal energy, crossing edges suffice (``eq:loopless_exact_realization``). ``rows`` are
        those of edges inside a cluster.
        """
        # blockdiag(R_a* L_a R_a), computed from the fine sheaf
        retained = piece.gram(delta_R[rows])
        crossing = np.delete(np.arange(delta_R.shape[0]), rows)
        self._put("identity", piece, G - (piece.gram(delta_R[crossing]) + retained))
        is_loop = piece.coarse.edges[:, 0] == piece.coarse.edges[:, 1]
        is_loop = np.repeat(is_loop, piece.coarse.edge_dims)
        crossing_gram = piece.gram(coarse[np.flatnonzero(~is_loop)])
        self._put("decomposition", piece, G - (crossing_gram + retained))
        loops = piece.gram(coarse[np.flatnonzero(is_loop)])
        self._put("realization", piece, G - (crossing_gram + loops))
        self._put("laplacian", piece, G - laplacian(piece.coarse)[: piece.n_columns])
        if (self.internal_rows_ratio(slice(piece.lo, piece.hi)) < linalg.RESIDUAL_LIMIT).all():
            self._put("loopless", piece, G - crossing_gram)
        if self.C.modes is not None and self.C.modes.operator.spectral:
            lo, hi = self.C.sheaf.vertex_offsets[[piece.lo, piece.hi]]
            scores = diags_array(self.scores[lo:hi], format="csr")
            self._put("spectral", piece, retained[:, : piece.n_columns] - scores)

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
        ends = np.divmod(self.pairs, max(self.K, 1))
        a, b = (np.concatenate([np.arange(self.K), end]) for end in ends)
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

    def _measure_crossing_edges(
        self, piece: Piece, delta: csr_array, delta_R: csr_array, coarse_delta: csr_array
    ) -> None:
        """Compare delta_x with delta R edge by edge, unless a crossing edge is missing."""
        if self.edges_missing:
            return
        ends = np.sort(piece.clusters[piece.coarse.edges], axis=1)
        # indices in the batch; edges whose lower end is in another batch belong to that batch
        edges = np.flatnonzero((ends[:, 0] != ends[:, 1]) & (ends[:, 0] >= piece.lo))
        numbers = np.searchsorted(self.crossing, piece.coarse_edges[edges])
        coarse = coarse_delta[ragged.range_of_blocks(piece.coarse.edge_offsets, edges)]
        of_row = np.repeat(np.arange(len(edges)), piece.coarse.edge_dims[edges])
        if self.C.crossing_rows is None:
            fine_ends = np.sort(piece.clusters[piece.labels[piece.sheaf.edges]], axis=1)
            fine = np.flatnonzero(
                (fine_ends[:, 0] != fine_ends[:, 1]) & (fine_ends[:, 0] >= piece.lo)
            )
            rows = ragged.range_of_blocks(piece.sheaf.edge_offsets, fine)
            joined = renumbered(fine_ends[fine] @ [self.K, 1], ends[edges] @ [self.K, 1])
            of_fine_row = np.repeat(joined, piece.sheaf.edge_dims[fine])
            gram, of_column = edge_grams(piece, edges, coarse, of_row)
            difference = gram - edge_grams(piece, edges, delta_R[rows], of_fine_row)[0]
        else:
            named, starts = self.C.crossing_rows, self.crossing_starts
            if len(named) != starts[-1]:  # wrong rows: the errors of these edges remain infinite
                return
            wanted = named[ragged.range_of_blocks(starts, numbers)]
            there = ragged.range_of_blocks(self.C.fine.edge_offsets, piece.edges)
            rows = np.searchsorted(there, wanted)
            if not np.array_equal(there[rows[rows < len(there)]], wanted):  # a row is missing
                return
            of_fine_row = of_column = of_row
            difference = coarse - delta_R[rows]
        self.edge_errors[numbers] = linalg.norms_by(difference, of_column, None, len(edges))
        self.edge_norms[numbers] = linalg.norms_by(delta[rows], of_fine_row, None, len(edges))

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

    def _measure_modes(self, piece: Piece, own_R: csr_array) -> None:
        """Store residuals of modes, their distance to R, and the errors of eigenvalues."""
        modes, here, C = self.modes, slice(piece.lo, piece.hi), self.C
        rows, k = piece.row_cluster, piece.hi - piece.lo
        if modes.prolongation is not C.prolongation:
            own = piece.coordinates[: piece.n_rows]
            difference = C.prolongation[own] - modes.prolongation[own]
            self.mode_errors[here] = linalg.norms_by(difference, rows, None, k)
        if isinstance(modes.operator, Oversampled):
            return
        if modes.operator.spectral:  # blockdiag(L_a)
            operator = laplacian(part_of(piece.sheaf, piece.internal, np.arange(len(piece.own))))
        else:  # blockdiag(L[C_a, C_a])
            L = coo_array(laplacian(piece.sheaf)[: piece.n_rows, : piece.n_rows])
            row, column = L.coords
            same = rows[row] == rows[column]
            operator = csr_array((L.data[same], (row[same], column[same])), shape=L.shape)
        self.mode_norms[here] = linalg.norms_by(operator, rows, rows, k) + self.loop_energies[here]
        lo, hi = C.sheaf.vertex_offsets[[piece.lo, piece.hi]]
        scores = diags_array(self.scores[lo:hi], shape=(hi - lo, hi - lo))
        residual = operator @ own_R - own_R @ scores
        self.mode_residuals[here] = linalg.norms_by(residual, rows, None, k)
        checked = self.dims[here] > 0
        if not self.all_clusters_dense:
            checked &= np.isin(np.arange(piece.lo, piece.hi), self.sample)
        for parts, _, matrices in linalg.diagonal_blocks(operator, rows, rows, checked):
            clusters, size = piece.lo + parts, matrices.shape[1]
            ranks = modes.ranks[clusters]
            exact = np.linalg.eigvalsh(matrices).clip(min=0)
            ours = np.pad(exact, ((0, 0), (0, 1)))  # a column for clusters that retain all modes
            kept = ragged.blocks(modes.scores, modes.rank_offsets, clusters)
            ours[:, :size][np.arange(size) < ranks[:, None]] = kept
            ours[np.arange(len(parts)), ranks] = modes.next_eigenvalues[clusters]
            self.eigenvalue_errors[clusters] = np.abs(ours[:, :size] - exact).max(axis=1)

    def by_cluster(self, errors: np.ndarray, *factors: np.ndarray) -> RelativeResidual:
        """Return the largest residual over clusters, the rows of ``errors`` and of all factors."""
        n = self.n.reshape(-1, *[1] * (errors.ndim - 1))
        return relative_residual(errors, n, self.eps, *factors, blocks=("cluster",))

    @property
    def isometry(self) -> RelativeResidual:
        """Largest norm(R_a* R_a - I), relative to rounding."""
        ranks = np.maximum(self.C.ranks, 1)
        eps = linalg.eps_of(self.C.prolongation.dtype)
        return relative_residual(self.isometry_errors, self.n, eps, ranks, blocks=("cluster",))

    def internal_rows_ratio(self, here: slice = slice(None)) -> np.ndarray:
        """Return norm(delta_a R_a) relative to rounding errors; it is small if L_a R_a = 0."""
        sides = self.internal_row_errors, self.n, self.internal_delta_norms, self.R_norms
        errors, n, *sizes = (side[here] for side in sides)
        return linalg.residual_ratio(errors, n, self.eps, *sizes)

    @cached_property
    def ties(self) -> np.ndarray:
        """Whether the stored eigenvalues are tied at the cut, shape (K,).

        A kernel is not tied, however small the gap, so ``singular`` modes may be marked either way.
        """
        modes, ranks = self.modes, self.modes.ranks
        last = np.zeros(self.K)
        last[ranks > 0] = self.scores[modes.rank_offsets[1:][ranks > 0] - 1]
        gap = modes.next_eigenvalues.astype(np.float64) - last
        near = gap <= np.sqrt(self.eps) * modes.operator_norms.astype(np.float64)
        doubtful = np.abs(gap - np.sqrt(self.eps) * modes.operator_norms) <= 1e-3 * np.abs(gap)
        cut = (ranks > 0) & (ranks < self.dims)
        return np.where(cut & ~doubtful, near & (modes.tied | ~modes.singular), modes.tied & cut)

    def dense(self, a: int) -> tuple[np.ndarray, np.ndarray]:
        """Return R_a and L_a of one cluster as dense matrices in double precision."""
        C, c = self.C, self.C.clusters
        edges = c.internal_edges[c.internal_ptr[a] : c.internal_ptr[a + 1]]
        delta = coboundary(part_of(C.fine, edges, C.partition.cluster(a), self.double))
        return C.block(a).astype(self.double), (delta.conj().T @ delta).toarray()

    @cached_property
    def normalized(self) -> tuple[RelativeResidual, np.ndarray, np.ndarray]:
        """Comparison of the Laplacian of ``normalize(F)`` with D^{-1/2} L D^{-1/2}.

        Largest residual of all blocks and of the factors R_v* R_v = D_v; for each probe x the error
        of its energy, and an upper bound of norm(D^{-1/2} x)^2 that no cancellation makes smaller.
        """
        F, dims, eps = self.C.fine, self.C.fine.vertex_dims, self.eps
        with warned.collected():
            sheaf = normalize(F)
        starts, degrees, roots = degrees_and_roots(F, eps)
        norms, root_norms = linalg.ragged_norms(degrees, starts), linalg.ragged_norms(roots, starts)
        # number of products that are summed in each entry of D_v, at least the dimension of D_v
        terms = np.bincount(F.edges.ravel(), np.repeat(F.edge_dims, 2), minlength=F.n_vertices)
        n = np.maximum(dims, terms)

        def measure(piece: Piece) -> tuple[RelativeResidual, np.ndarray]:
            L, own = laplacian(piece.sheaf)[: piece.n_rows], piece.own
            width = len(piece.vertices)
            sizes = dims[piece.vertices]
            D, roots_here = (
                ragged.block_diagonal(ragged.blocks(data, starts, piece.vertices), sizes)
                for data in (degrees, roots)
            )
            column_vertex = np.repeat(np.arange(width), sizes)
            rows = column_vertex[: piece.n_rows]
            errors = linalg.norms_by(L - D[: piece.n_rows], rows, column_vertex, len(own))
            factor = relative_residual(errors, n[own], eps, norms[own], blocks=("vertex", own))
            y = roots_here @ self.probes[piece.coordinates]
            energies = np.real(np.sum(np.conj(y[: piece.n_rows]) * (L @ y), axis=0))
            change = csr_array(roots_here[: piece.n_rows, : piece.n_rows] @ L @ roots_here)
            del D, L, piece.sheaf, piece.coarse  # to need less memory
            part = laplacian(part_of(sheaf, piece.edges, piece.vertices))[: piece.n_rows]
            u, v, errors = block_norms(change - part, rows, column_vertex, width)
            u, v = piece.vertices[u], piece.vertices[v]
            products = (root_norms[u], root_norms[v], np.sqrt(norms[u]), np.sqrt(norms[v]))
            pairs = ("vertex", u, v)
            block = relative_residual(errors, np.maximum(n[u], n[v]), eps, *products, blocks=pairs)
            return max(factor, block), energies

        found = in_batches(self.C, measure)
        exact = np.array([energies for _, energies in found]).sum(axis=0)
        # use absolute values, because D^{-1/2} x may be small by cancellation
        spread = np.repeat(root_norms, dims)[:, None] * np.abs(self.probes)
        norms2 = np.array([linalg.norm(column) for column in spread.T]) ** 2
        worst = max([ZERO, *(one for one, _ in found)])
        return worst, np.abs(exact - energy(sheaf, self.probes)), norms2

    @cached_property
    def ledger(self) -> EnergyLedger:
        """Energy ledger of the probes, which requires that R is an isometry."""
        return energy_ledger(self.C, self.probes)


def random_probes(R: csr_array, seed: int) -> np.ndarray:
    """Return two random fine cochains; the second one is smooth, to test small energies as well."""
    rng = np.random.default_rng(seed)
    x = linalg.normal(rng, (R.shape[0], 2), np.result_type(R.dtype, np.float64))
    x[:, 1] = R @ pooled(R, x[:, 1]) + 0.1 * x[:, 1]
    return x.astype(R.dtype)


def pooled(R: csr_array, x: np.ndarray) -> np.ndarray:
    """Return R* x without forming R*, which would copy a complex R."""
    return (R.T @ x.conj()).conj()


def edge_grams(
    piece: Piece, edges: np.ndarray, X: csr_array, edge: np.ndarray
) -> tuple[csr_array, np.ndarray]:
    """Return blockdiag(X_e* X_e) and the coarse edge e of each row; X_e are the rows of e in X."""
    ends = piece.coarse.edges[edges]
    ranks = piece.coarse.vertex_dims[ends]
    starts = piece.coarse.vertex_offsets[:-1][ends]
    e = np.repeat(edge, np.diff(X.indptr))
    second = (piece.column_cluster[X.indices] == ends[e, 1]).astype(np.int64)
    begin = ragged.offsets(ranks.sum(axis=1))
    column = begin[:-1][e] + second * ranks[e, 0] + X.indices - starts[e, second]
    placed = csr_array((X.data, column, X.indptr), (X.shape[0], int(begin[-1])))
    grams = csr_array(placed.conj(copy=False).T @ placed)
    return grams, np.repeat(np.arange(len(edges)), np.diff(begin))


def degrees_and_roots(F: CellularSheaf, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the offsets of all D_v, the products R_v* R_v of their factors, and D_v^{-1/2}."""
    (starts, factors), n = degree_factors(F), F.n_vertices
    sizes = loop_norms(F, np.arange(n), n)
    degrees, roots = np.zeros((2, len(factors)), factors.dtype)
    for own, R in ragged.stacks(factors, np.stack([F.vertex_dims, F.vertex_dims], axis=1)):
        where = ragged.range_of_blocks(starts, own)
        degrees[where] = (R.conj().swapaxes(1, 2) @ R).reshape(-1)
        _, w, V = np.linalg.svd(R)
        size = np.maximum(w.max(axis=1, initial=0), sizes[own])  # the maps of a loop may cancel
        zero = w <= linalg.zero_level(R.shape[1], eps, size[:, None])
        inverse = np.where(zero, 0, 1 / np.where(zero, 1, w))
        roots[where] = ((V.conj().swapaxes(1, 2) * inverse[:, None, :]) @ V).reshape(-1)
    return starts, degrees, roots
