"""The local eigenproblems of all clusters."""

import numpy as np

from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.dense import svd_workspace, workspace, worth_reducing
from sheafcoarsen._support import eps_of, offsets, read_only, run_ranges, single_threaded_blas
from sheafcoarsen.modes.prolongation import as_matrix, block_layout
from sheafcoarsen.modes.result import LocalModes
from sheafcoarsen.modes.sparse import SPARSE_ABOVE, SPARSE_SHARE, local_sheaf, lowest_sparse
from sheafcoarsen.operators import laplacian
from sheafcoarsen.partition import Partition, clusters_of, crossing_half_edges
from sheafcoarsen.ranks import Rule, Spectra
from sheafcoarsen.sheaf import CellularSheaf

MAX_DENSE = 12_000
"""Largest cluster dimension solved as a dense matrix: five times its square of work space, 5.8 GB in double precision."""


SERIAL_BELOW = 2e6
"""Sum of N_a^3 below which one thread does all."""


class LocalProblems:
    """The local operators of all clusters, solved range by range in private workspaces."""

    def __init__(
        self, sheaf: CellularSheaf, P: Partition, local_operator: str, progress: bool, like=None
    ):
        self.sheaf, self.partition, self.local_operator, self.progress = (
            sheaf,
            P,
            local_operator,
            progress,
        )
        self.like = (
            like  # LocalModes of another sheaf on the same graph, whose index arrays serve here too
        )
        self.clusters = clusters_of(sheaf, P) if like is None else like.clusters
        self.work = sheaf  # in the precision of the work
        self.real = np.zeros(0, sheaf.dtype).real.dtype
        self.eps = eps_of(sheaf.dtype)
        self.map_size = int(
            (np.diff(sheaf.tail_offsets) + np.diff(sheaf.head_offsets)).max(initial=0)
        )
        principal = local_operator == "principal"
        self.half_edges = (
            crossing_half_edges(sheaf, P, self.clusters, principal=principal)
            if like is None
            else like.half_edges
        )

    def check_dense(self, dims: np.ndarray, why: str) -> None:
        """Refuse a cluster that is too large for a dense matrix."""
        if dims.max(initial=0) > MAX_DENSE:
            a = int(dims.argmax())
            raise ValueError(
                f"cluster {a} has dimension {dims[a]}; {why} needs dense matrices, which are limited to dimension {MAX_DENSE}: "
                f"use more clusters, or keep few modes by an integer `rank`"
            )

    def stack_rows(self) -> np.ndarray:
        """Return the number of rows of the matrix G_a with G_a* G_a = local operator, shape (K,)."""
        f, K = self.sheaf, self.clusters.n_clusters
        inner, halves = self.clusters.internal_edges, self.half_edges[1]
        rows = np.bincount(
            self.partition.labels[f.edges[inner, 0]], f.edge_dims[inner], minlength=K
        )
        cluster = self.partition.labels[f.edges[halves >> 1, halves & 1]]
        return (rows + np.bincount(cluster, f.edge_dims[halves >> 1], minlength=K)).astype(np.int64)

    def run(self, what: str, work, dims: np.ndarray, room) -> None:
        """Call ``work(lo, hi, workspace)`` over all clusters with BLAS at one thread; name the cluster where LAPACK failed.

        ``dims`` are the sizes of the dense problems, ``room(lo, hi)`` allocates the workspace of a
        range.
        """
        with single_threaded_blas():
            failed = run_ranges(
                lambda lo, hi: work(lo, hi, room(lo, hi)),
                dims.astype(np.float64) ** 3 + 1e3,
                serial_below=SERIAL_BELOW,
                description=what,
                progress=self.progress,
            )
        for a in failed:
            if a >= 0:
                raise np.linalg.LinAlgError(
                    f"{what}: the problem of cluster {a} (dimension {dims[a]}) did not converge"
                )

    def room(self, dims, wanted):
        """Return a function that allocates work space for a range of clusters."""
        reduction = worth_reducing(dims, wanted)
        return lambda lo, hi: workspace(
            int(dims[lo:hi].max()),
            int(wanted[lo:hi].max()),
            self.sheaf.dtype,
            self.map_size,
            reduction=reduction,
        )

    def svd_room(self, rows):
        """Return the same for singular value decompositions."""
        dims = self.clusters.dims
        return lambda lo, hi: svd_workspace(
            int(rows[lo:hi].max()), int(dims[lo:hi].max()), self.sheaf.dtype, self.map_size
        )

    def spectra(self, rule: Rule) -> Spectra:
        """Return what the rule must be shown."""
        f, c = self.sheaf.arrays, self.clusters
        if rule.needs_scores or rule.needs_kernels:
            self.check_dense(c.dims, "a rule that looks at whole spectra")
        K = c.n_clusters
        starts = offsets(c.dims)
        scores, norms = (
            np.zeros(int(starts[-1]) if rule.needs_scores else 0, self.real),
            np.zeros(K, self.real),
        )
        if rule.needs_scores:
            self.run(
                "local spectra",
                lambda lo, hi, s: kernels.local_spectra(
                    lo, hi, f, c, *self.half_edges, self.eps, s, starts, scores, norms
                ),
                c.dims,
                self.room(c.dims, np.ones(K)),
            )
        dims = np.zeros(K, np.int64)
        if rule.needs_kernels:
            rows = self.stack_rows()
            self.run(
                "local kernels",
                lambda lo, hi, s: kernels.kernel_dims(
                    lo, hi, f, c, *self.half_edges, rows, self.eps, s, dims
                ),
                c.dims,
                self.svd_room(rows),
            )
        ties = np.sqrt(self.eps) * norms.astype(np.float64)
        return Spectra(
            c.dims, starts, scores, dims, np.repeat(ties, c.dims) if rule.needs_scores else ties[:0]
        )

    def modes(self, ranks: np.ndarray, *, singular: bool) -> LocalModes:
        """Compute the lowest modes: eigenvectors, or right singular vectors where kernels must be exact."""
        K = self.clusters.n_clusters
        if self.like is None:
            indptr, indices = block_layout(self.sheaf, self.partition, ranks)
        else:
            indptr, indices = self.like.prolongation.indptr, self.like.prolongation.indices
        starts = offsets(ranks)
        # frozen before kernels see them, which would be compiled for either kind of array
        read_only(ranks)
        read_only(indptr)
        numbers = np.zeros(0, self.work.dtype).real.dtype
        data, scores = np.empty(len(indices), self.work.dtype), np.empty(int(starts[-1]), numbers)
        next_values, norms, tied = np.empty(K, numbers), np.empty(K, numbers), np.zeros(K, np.bool_)
        own = self.compute(
            ranks, singular, (indptr, data, starts, scores, next_values, norms, tied)
        )
        R = as_matrix(indptr, indices, data.astype(self.sheaf.dtype, copy=False), int(starts[-1]))
        scores, next_values, norms = (
            read_only(array.astype(self.real, copy=False)) for array in (scores, next_values, norms)
        )
        modes = LocalModes(
            self.sheaf,
            self.partition,
            self.local_operator,
            ranks,
            scores,
            next_values,
            read_only(tied),
            norms,
            R,
            **own,
        )
        modes.__dict__.update(
            clusters=self.clusters, half_edges=self.half_edges, _made=(R.indptr, R.indices, R.data)
        )
        return modes

    def compute(self, ranks: np.ndarray, singular: bool, out) -> dict:
        """Fill the arrays ``out`` of ``kernels.local_modes``; return the other fields of the result."""
        f, c = self.sheaf.arrays, self.clusters
        if singular:
            rows = self.stack_rows()
            self.run(
                "local modes",
                lambda lo, hi, s: kernels.singular_modes(
                    lo, hi, f, c, *self.half_edges, rows, ranks, self.eps, s, *out
                ),
                c.dims,
                self.svd_room(rows),
            )
            return {"singular": True}
        wanted = np.minimum(ranks + 1, c.dims)
        large = (c.dims > SPARSE_ABOVE) & (SPARSE_SHARE * wanted <= c.dims)
        self.check_dense(np.where(large, 0, c.dims), "keeping so large a share of its modes")
        with single_threaded_blas():
            for a in np.flatnonzero(
                large
            ).tolist():  # each is larger than SPARSE_ABOVE, so they are few
                try:
                    self.large_modes(a, int(ranks[a]), *out)
                except np.linalg.LinAlgError:
                    if c.dims[a] > MAX_DENSE:
                        raise
                    large[a] = False
        dense = np.where(large, 0, c.dims)
        self.run(
            "local modes",
            lambda lo, hi, s: kernels.local_modes(
                lo, hi, f, c, *self.half_edges, ranks, large, self.eps, s, *out
            ),
            dense,
            self.room(dense, wanted),
        )
        return {}

    def large_modes(
        self, a, r, indptr, data, value_starts, values, next_values, norms, tied
    ) -> None:
        """Compute what ``kernels.local_modes`` computes for one cluster that is too large for a dense matrix."""
        halves = self.half_edges[1][self.half_edges[0][a] : self.half_edges[0][a + 1]]
        local, unit = local_sheaf(self.sheaf, self.clusters, a, halves)
        A = laplacian(local)
        top = float(abs(A).sum(axis=1).max())
        if top == 0:  # every vector is an eigenvector
            w, Z = np.zeros(r + 1), np.eye(A.shape[0], r)
        else:
            try:
                w, Z = lowest_sparse(A, r + 1, eps_of(A.dtype))
            except np.linalg.LinAlgError as error:
                raise np.linalg.LinAlgError(
                    f"local modes of cluster {a} (dimension {A.shape[0]}): {error}"
                ) from None
        w = w.clip(min=0)
        values[value_starts[a] : value_starts[a + 1]] = w[:r] / unit / unit
        next_values[a] = w[r] / unit / unit
        norms[a] = top / unit / unit
        tied[a] = r > 0 and w[r] - w[r - 1] <= np.sqrt(self.eps) * top
        rows = np.ascontiguousarray(Z[:, :r].T, dtype=data.dtype)
        kernels.store_rows(
            a, r, self.sheaf.arrays, self.clusters, rows.reshape(-1), self.eps, indptr, data
        )
