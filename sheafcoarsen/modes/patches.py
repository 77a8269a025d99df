"""Patches: clusters extended by neighbouring vertices, for oversampled modes."""

import numpy as np

from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.dense import svd_workspace
from sheafcoarsen._support import offsets, read_only, run_ranges
from sheafcoarsen.operators import laplacian
from sheafcoarsen.partition import Clusters, links_of
from sheafcoarsen.sheaf import CellularSheaf


class ClusterPatches:
    """The patch T of every cluster C: C and ``rings`` rings of neighbours, with dim T <= 2 dim C.

    The most strongly coupled neighbours are added first; the coupling of two vertices is
    norm(F_{u->e}* F_{v->e})_F, summed over the edges between them. The sheaf must be in double
    precision.
    """

    def __init__(self, sheaf: CellularSheaf, clusters: Clusters, rings: int):
        n, K, f = sheaf.n_vertices, clusters.n_clusters, sheaf.arrays
        # rings add at most N_a vertices: each has dimension >= 1, all of them at most N_a in total
        starts = offsets(np.diff(clusters.member_ptr) + clusters.dims)
        degrees = np.bincount(sheaf.edges.reshape(-1), minlength=n)
        tails, heads = sheaf.edges.T
        low_end = np.where(degrees[tails] <= degrees[heads], tails, heads)
        low_counts = np.bincount(low_end, minlength=n)
        self.arrays = kernels.Patches(
            members=np.zeros(int(starts[-1]), np.int64),
            starts=starts,
            counts=np.empty(K, np.int64),
            dims=np.empty(K, np.int64),
            low_ptr=offsets(low_counts),
            low_edges=np.argsort(low_end, kind="stable"),
            diagonal=np.ascontiguousarray(laplacian(sheaf).diagonal().real),
        )
        links = links_of(sheaf, weights="sheaf")
        run_ranges(
            lambda lo, hi: kernels.grow_patches(
                lo,
                hi,
                f,
                clusters,
                links,
                rings,
                self.arrays,
                (np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)),
            ),
            np.diff(starts) + 1,
            serial_below=1e5,
        )
        members, counts, self.dims = self.arrays.members, self.arrays.counts, self.arrays.dims
        low_rows = np.bincount(low_end, sheaf.edge_dims, minlength=n).astype(np.int64)
        # upper bounds of the number of edges and of rows of delta_T of every patch
        self.edge_bounds, self.row_bounds = (
            reach[starts[:-1] + counts] - reach[starts[:-1]]
            for reach in (offsets(of_vertex[members]) for of_vertex in (low_counts, low_rows))
        )
        self.dtype, self.n_vertices, self.clusters = sheaf.dtype, n, clusters

    def allocate(self, lo: int, hi: int, map_size: int, reduction: bool) -> kernels.PatchWorkspace:
        """Allocate a workspace for the patches of clusters lo to hi - 1."""
        N, n = int(self.dims[lo:hi].max()), int(self.clusters.dims[lo:hi].max())
        rows = int(self.row_bounds[lo:hi].max())
        index = kernels.PatchIndex(
            dims=np.zeros(1, np.int64),
            internal_edges=np.empty(int(self.edge_bounds[lo:hi].max()), np.int64),
            internal_ptr=np.zeros(2, np.int64),
            local_offsets=np.full(self.n_vertices, -1, np.int64),
        )
        shared = {name: read_only(array[:]) for name, array in index._asdict().items()}
        none = {"half_edges": np.zeros(0, np.int64), "half_ptr": np.zeros(2, np.int64)}
        shared |= {name: read_only(array) for name, array in none.items()}

        def numbers(size: int) -> np.ndarray:
            return np.empty(size, self.dtype)

        return kernels.PatchWorkspace(
            t=index,
            c=self.clusters._replace(**shared),
            s=svd_workspace(max(rows, N), N, self.dtype, map_size, reduction=reduction),
            a=numbers(N * N),
            delta=numbers(max(rows, 2 * n) * N),
            basis=numbers(N * N),
            other=numbers(N * N),
            border=np.empty(N, np.int64),
        )
