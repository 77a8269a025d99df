"""Patches: clusters with some of their neighbours, on which oversampled modes are found."""

import numpy as np

from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.dense import workspace
from sheafcoarsen._kernels.modes import PatchIndex, PatchRoom
from sheafcoarsen._kernels.partition import neighbours, strengths
from sheafcoarsen._support import offsets, run_ranges
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf

SERIAL_BELOW = 1e5
"""Vertices and edges below which one thread grows all patches."""


class Patches:
    """The patch T of every cluster C: ``rings`` rings of neighbours, cut to dim T <= 2 dim C, the most strongly coupled first.

    The sheaf is in double precision. The coupling of two vertices is norm(F_{u->e}* F_{v->e})_F,
    summed over the edges between them.
    """

    def __init__(self, sheaf: CellularSheaf, clusters: Clusters, rings: int):
        n, m, K = sheaf.n_vertices, sheaf.n_edges, clusters.n_clusters
        f = sheaf.arrays
        couplings = np.empty(m)
        strengths(f, 1 / max(sheaf.largest_entry, np.finfo(float).tiny), couplings)
        starts, ends, weights = (
            np.empty(n + 1, np.int64),
            np.empty(2 * m, np.int32),
            np.empty(2 * m),
        )
        neighbours(sheaf.edges, couplings, starts, ends, weights)
        # a ring vertex has a stalk, and the stalks of all of them fit into N_a
        member_starts = offsets(np.diff(clusters.member_ptr) + clusters.dims)
        members = np.zeros(int(member_starts[-1]), np.int64)
        counts, dims = np.empty(K, np.int64), np.empty(K, np.int64)
        run_ranges(
            lambda lo, hi: kernels.grow_patches(
                lo,
                hi,
                f,
                clusters,
                starts,
                ends,
                weights,
                rings,
                members,
                member_starts,
                counts,
                dims,
            ),
            np.diff(member_starts) + 1,
            serial_below=SERIAL_BELOW,
        )
        degrees = np.bincount(sheaf.edges.reshape(-1), minlength=n)
        low_end = np.where(
            degrees[sheaf.edges[:, 0]] <= degrees[sheaf.edges[:, 1]],
            sheaf.edges[:, 0],
            sheaf.edges[:, 1],
        )
        low_counts = np.bincount(low_end, minlength=n)
        diagonal = np.empty(sheaf.dim_c0)
        kernels.diagonal(f, diagonal)
        self.arrays = kernels.Patches(
            members,
            member_starts[:-1],
            counts,
            dims,
            offsets(low_counts),
            np.argsort(low_end, kind="stable"),
            diagonal,
        )
        reach = np.concatenate([[0], np.cumsum(low_counts[members] if n else low_counts)])
        last = member_starts[:-1] + counts
        self.edge_bounds = reach[last] - reach[member_starts[:-1]]
        self.dims, self.dtype, self.n_vertices = dims, sheaf.dtype, n
        self.cluster_dims = clusters.dims

    def room(self, lo: int, hi: int, map_size: int, wanted: np.ndarray, reduction: bool):
        """Allocate work space for the patches of clusters lo .. hi: that of the patches, and LAPACK's for the clusters."""
        N, n = int(self.dims[lo:hi].max()), int(self.cluster_dims[lo:hi].max())
        index = PatchIndex(
            np.zeros(1, np.int64),
            np.empty(int(self.edge_bounds[lo:hi].max()), np.int64),
            np.zeros(2, np.int64),
            np.full(self.n_vertices, -1, np.int64),
        )
        own = PatchRoom(
            index,
            np.empty(N * N, self.dtype),
            np.empty(N * N, self.dtype),
            np.empty(n * N, self.dtype),
            np.empty(2 * n * N, self.dtype),
            np.empty(map_size, self.dtype),
            np.zeros(2, np.int64),
        )
        most = int(wanted[lo:hi].max())
        return own, workspace(n, most, self.dtype, map_size, reduction=reduction)
