"""What the checks of a coarsening are made of: operators computed a second time, norms of blocks, ratios in units of rounding.

Sparse products of the coboundary and R stand in for the library's own block by block assembly.
"""

import warnings
from functools import cached_property

import numpy as np
import scipy.sparse

from sheafcoarsen._support import eps_of, offsets, ranges, residual_ratio, zero_level
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.exceptions import SingularDegreeWarning
from sheafcoarsen.ledger import EnergyLedger, energy_ledger, isometry_defect
from sheafcoarsen.modes import LocalModes
from sheafcoarsen.operators import coboundary, laplacian, normalize
from sheafcoarsen.partition import edge_clusters
from sheafcoarsen.verification.norms import norms_by, scaled_norms, worst

DENSE_BUDGET = 3e10
"""Sum of N_a^3 up to which the modes of *every* cluster are checked against a dense solver (seconds); else a sample."""


SAMPLE = 16
"""Clusters on which statements that need all of a cluster's eigenvectors are checked."""


class Workbench:
    """What several checks need, computed once from the coarsening's fields."""

    def __init__(self, C: Coarsening, seed: int):
        self.C, self.seed = C, seed
        self.eps = eps_of(np.result_type(C.fine.dtype, C.prolongation.dtype))
        self.K = C.partition.n_clusters
        self.row_cluster = np.repeat(C.partition.labels, C.fine.vertex_dims)
        self.column_cluster = np.repeat(np.arange(self.K), C.ranks)
        self.dims = C.clusters.dims
        self.n = np.maximum(self.dims, C.ranks)
        self.edge_cluster = edge_clusters(C.fine, C.partition)
        self.c1_cluster = np.repeat(self.edge_cluster, C.fine.edge_dims)  # -1: crossing

    @cached_property
    def R(self):
        return self.C.prolongation

    @cached_property
    def delta(self):
        return coboundary(self.C.fine)

    @cached_property
    def L(self):
        return laplacian(self.C.fine)

    @cached_property
    def galerkin(self):
        return scipy.sparse.csr_array(self.R.conj().T @ (self.L @ self.R))

    @cached_property
    def delta_R(self):
        return scipy.sparse.csr_array(self.delta @ self.R)

    @cached_property
    def internal_delta_R(self):
        return self.delta_R[np.flatnonzero(self.c1_cluster >= 0)]

    @cached_property
    def retained(self):
        """blockdiag(R_a* L_a R_a), from the fine sheaf."""
        Y = self.internal_delta_R
        return scipy.sparse.csr_array(Y.conj().T @ Y)

    @cached_property
    def coarse_delta(self):
        return coboundary(self.C.sheaf)

    @cached_property
    def crossing_delta(self):
        """The coarse crossing coboundary delta_x, from the coarse sheaf."""
        crossing = self.C.sheaf.edges[:, 0] != self.C.sheaf.edges[:, 1]
        return self.coarse_delta[np.flatnonzero(np.repeat(crossing, self.C.sheaf.edge_dims))]

    @cached_property
    def R_norms(self):
        """norm(R_a)_F, shape (K,)."""
        return norms_by(self.R, self.row_cluster, None, self.K)

    @cached_property
    def principal_norms(self):
        """norm(L[C_a, C_a])_F, shape (K,)."""
        return norms_by(self.L, self.row_cluster, self.row_cluster, self.K)

    @cached_property
    def internal_laplacian(self):
        """blockdiag(L_a) in double precision, the reference for the modes."""
        inner = self.delta[np.flatnonzero(self.c1_cluster >= 0)]
        inner = inner.astype(np.result_type(inner.dtype, np.float64))
        return scipy.sparse.csr_array(inner.conj().T @ inner)

    @cached_property
    def internal_norms(self):
        """norm(L_a)_F, shape (K,)."""
        return norms_by(self.internal_laplacian, self.row_cluster, self.row_cluster, self.K)

    @cached_property
    def internal_delta_norms(self):
        """norm(delta_a)_F, shape (K,)."""
        inner = np.flatnonzero(self.c1_cluster >= 0)
        return norms_by(self.delta[inner], self.c1_cluster[inner], None, self.K)

    @cached_property
    def cluster_rows(self):
        """Rows of C^0 by cluster, and where each cluster's begin."""
        return np.argsort(self.row_cluster, kind="stable"), offsets(self.dims)

    def rows(self, a: int) -> np.ndarray:
        order, starts = self.cluster_rows
        return order[starts[a] : starts[a + 1]]

    @cached_property
    def sample(self) -> np.ndarray:
        """A few clusters: the largest, one that truncates most, and random ones, never too large for dense work."""
        fits = np.flatnonzero(
            (self.dims > 0) & (self.dims.astype(float) ** 3 <= DENSE_BUDGET / SAMPLE)
        )
        if len(fits) <= SAMPLE:
            return fits
        chosen = np.random.default_rng(self.seed).choice(fits, SAMPLE - 1, replace=False)
        return np.union1d(chosen, fits[[np.argmax(self.dims[fits])]])

    @cached_property
    def internal_rows_ratio(self):
        """norm(delta_a R_a) in units of rounding, shape (K,): small exactly where im R_a lies in ker L_a."""
        inner = np.flatnonzero(self.c1_cluster >= 0)
        size = norms_by(self.internal_delta_R, self.c1_cluster[inner], None, self.K)
        return residual_ratio(size, self.n, self.eps, self.internal_delta_norms, self.R_norms)

    def dense_blocks(self, clusters: np.ndarray, size: int, operator=None) -> np.ndarray:
        """Return the dense blocks of clusters of one size, L_a unless told otherwise, shape (len(clusters), size, size)."""
        order, starts = self.cluster_rows
        rows = order[ranges(starts[clusters], np.full(len(clusters), size))]
        local = np.zeros(self.C.fine.dim_c0, np.int64)
        local[rows] = np.tile(np.arange(size), len(clusters))
        part = scipy.sparse.coo_array(
            (self.internal_laplacian if operator is None else operator)[rows]
        )
        out = np.zeros((len(clusters), size, size), part.dtype)
        out[part.coords[0] // size, part.coords[0] % size, local[part.coords[1]]] = part.data
        return out

    def dense(self, a: int) -> tuple[np.ndarray, np.ndarray]:
        """Return (R_a, L_a) of one cluster, dense, in double precision."""
        return self.C.block(a).astype(self.internal_laplacian.dtype), self.dense_blocks(
            np.array([a]), int(self.dims[a])
        )[0]

    @cached_property
    def double(self):
        """Double precision, real or complex: that of the reference computations."""
        return np.result_type(self.C.fine.dtype, self.R.dtype, np.float64)

    @property
    def modes(self) -> LocalModes:
        """The modes, for statements that apply to spectral ones alone."""
        assert self.C.modes is not None
        return self.C.modes

    @cached_property
    def scores(self) -> np.ndarray:
        """All retained eigenvalues in double precision."""
        return self.modes.scores.astype(np.float64)

    @cached_property
    def score_matrix(self):
        """diag(lambda) over all clusters."""
        return scipy.sparse.diags_array(self.scores, shape=(len(self.scores),) * 2, format="csr")

    def eigenvalues(self, a: int) -> np.ndarray:
        """Return the retained eigenvalues of cluster ``a``."""
        return self.modes.eigenvalues(a)

    @cached_property
    def all_clusters_dense(self) -> bool:
        """Whether there is time for a dense solver on every cluster."""
        return bool((self.dims.astype(np.float64) ** 3).sum() <= DENSE_BUDGET)

    @cached_property
    def local_operator(self):
        """The operator whose modes were taken, block diagonal in double precision, and norm(.)_F of its blocks."""
        if self.modes.local_operator == "internal":
            return self.internal_laplacian, self.internal_norms
        whole = scipy.sparse.coo_array(
            self.delta.astype(self.double).conj().T @ self.delta.astype(self.double)
        )
        inside = self.row_cluster[whole.coords[0]] == self.row_cluster[whole.coords[1]]
        coords = tuple(axis[inside] for axis in whole.coords)
        blocks = scipy.sparse.csr_array((whole.data[inside], coords), shape=whole.shape)
        return blocks, norms_by(blocks, self.row_cluster, self.row_cluster, self.K)

    @cached_property
    def ties(self) -> np.ndarray:
        """Where the cut splits a multiple eigenvalue, by the modes' own eigenvalues and norms, shape (K,)."""
        modes, ranks = self.modes, self.modes.ranks
        last = np.zeros(self.K)
        last[ranks > 0] = self.scores[modes.rank_offsets[1:][ranks > 0] - 1]
        gap = modes.next_eigenvalues.astype(np.float64) - last
        near = gap <= np.sqrt(self.eps) * modes.operator_norms.astype(np.float64)
        doubtful = np.abs(gap - np.sqrt(self.eps) * modes.operator_norms) <= 1e-3 * np.abs(gap)
        cut = (ranks > 0) & (ranks < self.dims)
        return np.where(cut & ~doubtful, near, modes.tied & cut)

    @cached_property
    def worst_eigenvalue(self) -> float:
        """Worst ratio between retained and first discarded eigenvalues and numpy's, on all clusters or a sample."""
        modes, ratio = self.modes, 0.0
        operator, norms = self.local_operator
        checked = np.flatnonzero(self.dims > 0) if self.all_clusters_dense else self.sample
        for size in np.unique(self.dims[checked]).tolist():  # one batch per size of cluster
            members = checked[self.dims[checked] == size]
            for part in np.array_split(members, -(-len(members) * size**2 // 2_000_000)):
                exact = np.linalg.eigvalsh(self.dense_blocks(part, size, operator)).clip(min=0)
                ranks = modes.ranks[part]
                ours = np.full((len(part), size + 1), np.inf)
                kept = np.arange(size) < ranks[:, None]
                ours[:, :size][kept] = self.scores[ranges(modes.rank_offsets[:-1][part], ranks)]
                ours[np.arange(len(part)), ranks] = modes.next_eigenvalues[part]
                known = np.arange(size) <= ranks[:, None]
                error = np.abs(np.where(known, ours[:, :size], exact) - exact).max(axis=1)
                ratio = max(ratio, worst(residual_ratio(error, size, self.eps, norms[part])))
        return ratio

    def global_sections(self) -> tuple[np.ndarray, float]:
        """Return an orthonormal basis of ker delta, by a dense singular value decomposition, and the smallest nonzero singular value."""
        delta, largest = (
            self.delta.astype(self.double),
            float(np.abs(self.delta.data).max(initial=0)),
        )
        m, n = delta.shape
        if n == 0 or largest == 0:
            return np.eye(n, dtype=self.double), 0.0
        triangle = np.zeros((0, n), self.double)
        for lo in range(
            0, m, 4 * n
        ):  # QR of a few rows at a time: there may be far more of them than columns
            rows = delta[lo : lo + 4 * n].toarray() / largest
            triangle = np.linalg.qr(np.concatenate([triangle, rows]), mode="r")  # type: ignore[assignment]
        _, sigma, vh = np.linalg.svd(triangle)
        rank = int((sigma > max(delta.shape) * self.eps * sigma[0]).sum())
        return vh[rank:].conj().T, float(sigma[rank - 1]) * largest

    @cached_property
    def normalized(self):
        """normalize(F), and D^{-1/2} from the dense diagonal blocks of L."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SingularDegreeWarning)
            sheaf = normalize(self.C.fine)
        dims, starts = self.C.fine.vertex_dims, self.C.fine.vertex_offsets
        vertex = np.repeat(np.arange(len(dims)), dims)
        L = scipy.sparse.coo_array(self.L)
        inside = vertex[L.coords[0]] == vertex[L.coords[1]]
        i, j, value = L.coords[0][inside], L.coords[1][inside], L.data[inside]
        rows, columns, data = [], [], []
        for d in np.unique(dims[dims > 0]).tolist():  # one batch per dimension
            members = np.flatnonzero(dims == d)
            number = np.zeros(len(dims), np.int64)
            number[members] = np.arange(len(members))
            here = dims[vertex[i]] == d
            blocks = np.zeros((len(members), d, d), self.double)
            blocks[
                number[vertex[i[here]]],
                i[here] - starts[vertex[i[here]]],
                j[here] - starts[vertex[i[here]]],
            ] = value[here]
            top = np.abs(blocks).max(axis=(1, 2), keepdims=True)
            top = np.where(top > 0, top, 1.0)
            w, V = np.linalg.eigh(blocks / top)
            zero = w <= zero_level(d, self.eps, w[:, -1:])
            root = (
                V * np.where(zero, 0, 1 / np.sqrt(np.where(zero, 1, w)))[:, None, :]
            ) @ V.conj().swapaxes(1, 2)
            where = starts[members][:, None] + np.arange(d)
            rows.append(np.repeat(where, d, axis=1).reshape(-1))
            columns.append(np.tile(where, (1, d)).reshape(-1))
            data.append((root / np.sqrt(top)).reshape(-1))
        empty = np.zeros(0, np.int64)
        coords = tuple(np.concatenate(axis) if axis else empty for axis in (rows, columns))
        values = np.concatenate(data) if data else np.zeros(0)
        return sheaf, scipy.sparse.csr_array((values, coords), shape=self.L.shape)

    @cached_property
    def internal_energy(self) -> np.ndarray:
        """norm(delta_a x)^2 of the probes on each cluster, shape (K, number of probes)."""
        inner = np.flatnonzero(self.c1_cluster >= 0)
        y = np.abs(self.delta[inner] @ self.probes)
        return (
            np.stack(
                [scaled_norms(column, self.c1_cluster[inner], self.K) for column in y.T], axis=1
            )
            ** 2
        )

    @cached_property
    def probe_norms2(self) -> np.ndarray:
        """norm(x)^2 of the probes on each cluster, shape (K, number of probes)."""
        return (
            np.stack(
                [scaled_norms(np.abs(x), self.row_cluster, self.K) for x in self.probes.T], axis=1
            )
            ** 2
        )

    def worst_block(self, difference) -> float:
        """Worst ratio over the blocks (a, b) of a coarse matrix that ought to vanish, each against its own factors."""
        D = scipy.sparse.coo_array(difference)
        keep = D.data != 0
        if not keep.any():
            return 0.0
        a, b = (self.column_cluster[axis[keep]] for axis in D.coords)
        pairs, which = np.unique(a * self.K + b, return_inverse=True)
        a, b = pairs // self.K, pairs % self.K
        sizes = scaled_norms(np.abs(D.data[keep]), which, len(pairs))
        return worst(residual_ratio(
            sizes, np.maximum(self.n[a], self.n[b]), self.eps, self.R_norms[a], self.R_norms[b],
            np.sqrt(self.principal_norms[a]), np.sqrt(self.principal_norms[b]),
        ))  # fmt: skip

    @cached_property
    def crossing(self) -> np.ndarray:
        """Which edges of the coarse sheaf are crossing edges."""
        return np.flatnonzero(self.C.sheaf.edges[:, 0] != self.C.sheaf.edges[:, 1])

    def worst_crossing_edge(self) -> float:
        """Worst ratio between delta_x and delta R one coarse edge at a time: row by row, or by Gram matrices where compressed."""
        C = self.C
        edge = np.repeat(np.arange(len(self.crossing)), C.sheaf.edge_dims[self.crossing])
        a, b = C.sheaf.edges[self.crossing].T
        if C.crossing_rows is None:
            rows, fine_edge = self.fine_crossing_rows
            if (fine_edge < 0).any():
                return np.inf
            D = self.edge_grams(self.crossing_delta, edge) - self.edge_grams(
                self.delta_R[rows], fine_edge
            )
            starts = offsets(C.ranks[a] + C.ranks[b])
            edge = np.repeat(np.arange(len(self.crossing)), np.diff(starts))
            powers = 2
        else:
            if len(C.crossing_rows) != self.crossing_delta.shape[0]:
                return np.inf
            rows, fine_edge, powers = C.crossing_rows, edge, 1
            D = self.crossing_delta - self.delta_R[rows]
        D = scipy.sparse.coo_array(D)
        keep = D.data != 0
        sizes = scaled_norms(np.abs(D.data[keep]), edge[D.coords[0][keep]], len(self.crossing))
        fine = norms_by(self.delta[rows], fine_edge, None, len(self.crossing))
        factors = (fine, np.maximum(self.R_norms[a], self.R_norms[b])) * powers
        return worst(residual_ratio(sizes, np.maximum(self.n[a], self.n[b]), self.eps, *factors))

    @cached_property
    def fine_crossing_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of C^1(fine) that cross, and the place of their coarse edge among the crossing ones, -1 where there is none."""
        rows = np.flatnonzero(self.c1_cluster < 0)
        ends = np.sort(self.C.partition.labels[self.C.fine.edges], axis=1)
        wanted = np.repeat(ends[:, 0] * self.K + ends[:, 1], self.C.fine.edge_dims)[rows]
        ends = np.sort(self.C.sheaf.edges[self.crossing], axis=1)
        keys = ends[:, 0] * self.K + ends[:, 1]
        order = np.argsort(keys, kind="stable")
        place = np.searchsorted(keys[order], wanted)
        if not len(keys):
            return rows, np.full(len(rows), -1)
        place = order[np.minimum(place, len(keys) - 1)]
        return rows, np.where(keys[place] == wanted, place, -1)

    def edge_grams(self, matrix, edge) -> scipy.sparse.csr_array:
        """Return blockdiag(X* X) over crossing edges, X the rows of one of them in the coordinates of its two ends."""
        M = scipy.sparse.coo_array(matrix)
        ends = self.C.sheaf.edges[self.crossing]
        ranks, starts = self.C.ranks[ends], self.C.sheaf.vertex_offsets[:-1][ends]
        row, column = M.coords
        e = edge[row]
        at_second = (self.column_cluster[column] == ends[e, 1]).astype(np.int64)
        begin = offsets(ranks.sum(axis=1))
        own = begin[:-1][e] + at_second * ranks[e, 0] + column - starts[e, at_second]
        X = scipy.sparse.csr_array((M.data, (row, own)), shape=(M.shape[0], int(begin[-1])))
        return scipy.sparse.csr_array(X.conj().T @ X)

    @cached_property
    def isometry(self) -> float:
        """Worst norm(R_a* R_a - I) in units of rounding."""
        return worst(isometry_defect(self.C))

    @cached_property
    def ledger(self) -> EnergyLedger:
        """The ledger of the probes; R must be an isometry."""
        return energy_ledger(self.C, self.probes)

    @cached_property
    def probes(self) -> np.ndarray:
        """Random fine cochains; the second one is smooth, so that small energies are seen as well."""
        rng = np.random.default_rng(self.seed)
        x = rng.standard_normal((self.C.fine.dim_c0, 2))
        if self.R.dtype.kind == "c":
            x = x + 1j * rng.standard_normal(x.shape)
        x[:, 1] = self.R @ (self.R.conj().T @ x[:, 1]) + 0.1 * x[:, 1]
        return x.astype(self.R.dtype)
