"""Step (a), equilibration: edges get norm 1, then stacked maps at a vertex become an isometry."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._kernels.dense import svd_workspace
from sheafcoarsen._kernels.modes import Blocks, put_columns
from sheafcoarsen._kernels.operators import multiply_maps
from sheafcoarsen._support import linalg, ragged, threads
from sheafcoarsen.coarsening import SERIAL_BELOW
from sheafcoarsen.modes import Prolongation, block_layout
from sheafcoarsen.operators import degree_factors
from sheafcoarsen.partition import Clusters, Partition, clusters_of
from sheafcoarsen.sheaf import CellularSheaf, both_ends, component_labels, trusted_sheaf


def cluster_workspace(
    n: int, k: int, dtype: np.dtype, map_size: int = 0
) -> kernels.ClusterWorkspace:
    """Allocate a workspace for clusters of dimension at most n that retain at most k directions.

    ``map_size`` is the number of entries of both maps of an edge, needed to assemble operators.
    """
    lapack = svd_workspace(n, n, dtype, map_size)
    n, k = max(n, 1), max(k, 1)
    rows = max(n, 2 * k, k + kernels.STACKED_ROWS)
    sizes = (rows * k, rows, k, k * k, n * k, n * k)
    return kernels.ClusterWorkspace(lapack, *(np.empty(size, dtype) for size in sizes))


def check_status(failed: list[int], what: str) -> None:
    """Raise if LAPACK failed; each status is -1 or the vertex or cluster on which it failed."""
    for a in failed:
        if a >= 0:
            raise np.linalg.LinAlgError(f"LAPACK failed on {what} {a}")


def block_columns(
    sheaf: CellularSheaf,
    clusters: Clusters,
    widths: np.ndarray,
    blocks: kernels.Ragged,
    first: np.ndarray,
    counts: np.ndarray,
) -> Prolongation:
    """Return ``counts[a]`` columns of each N_a x ``widths[a]`` block, starting at ``first[a]``."""
    indptr, indices = block_layout(sheaf, clusters, counts)
    data = np.empty(len(indices), blocks.data.dtype)
    out = Blocks(indptr, data, ragged.read_only(counts))
    put_columns(sheaf.arrays, clusters, blocks.data, blocks.starts[:-1] + first, widths, out)
    return Prolongation(sheaf, clusters, counts, indptr, indices, data)


class Stalks(NamedTuple):
    """Bases and weights of equilibrated stalks.

    ``bases`` is filled by ``_kernels.sections.equilibration.find_vertex_bases``. ``weights``, of
    shape (dim_c0,), holds the squared norm of the scaled maps at v divided by d_v, for every
    coordinate of v; of a loop, both maps and their difference count.
    """

    sheaf: CellularSheaf
    clusters: Clusters
    bases: kernels.StalkBases
    weights: np.ndarray

    def columns(self, blocks: np.ndarray, alone: bool = False) -> scipy.sparse.csr_array:
        """Return the columns of W or V that belong to the equilibrated stalks.

        With ``alone``, return the others; those of V are an orthonormal basis of the sections that
        are supported at single vertices.
        """
        F, ragged, ranks = self.sheaf, kernels.Ragged(self.bases.starts, blocks), self.bases.ranks
        first, counts = (ranks, F.vertex_dims - ranks) if alone else (np.zeros_like(ranks), ranks)
        return block_columns(F, self.clusters, F.vertex_dims, ragged, first, counts).matrix


def vertex_scales(F: CellularSheaf) -> np.ndarray:
    """Return positive scales s of the vertices, by which norms of edges are weighted.

    Dividing edges by their norms makes both ends of each edge similar if weights of edges differ,
    but not if scales of vertices do. In a component where they do, s are the inverse norms of the
    stacked maps at vertices, times a constant; elsewhere they are 1.
    """
    (u, v), m, n = F.edges.T, F.n_edges, F.n_vertices
    a, b = (linalg.ragged_norms(data, starts) for _, data, starts in both_ends(F))
    compared, labels = (a > 0) & (b > 0) & (u != v), component_labels(n, F.edges)

    def largest(values: np.ndarray, component: np.ndarray) -> np.ndarray:
        found = np.zeros(n)
        np.maximum.at(found, component, values)
        return found[labels]

    def stacked(t: np.ndarray) -> np.ndarray:
        D = linalg.scaled_norms(np.concatenate([t * a, t * b]), np.concatenate([u, v]), n)
        return D.clip(min=(1e-100 * largest(D, labels)).clip(min=1e-300))

    def imbalance(s: np.ndarray) -> np.ndarray:
        D = stacked(1 / np.hypot(a * s[u], b * s[v]).clip(min=1e-300))
        logs = np.log2(np.stack([a, b])[:, compared]) - np.log2(D[F.edges[compared]].T)
        return largest(np.abs(logs[0] - logs[1]), labels[u[compared]])

    D = stacked(np.ones(m))
    ones, s = np.ones(n), largest(D, labels) / D
    better = imbalance(s) + 10 < imbalance(ones)  # by a factor of 1000
    return np.where(better, s, ones)


def equilibrate(F: CellularSheaf, eps: float) -> tuple[CellularSheaf, Stalks]:
    """Return the equilibrated sheaf, in double precision, and the bases of its stalks.

    Every [A | -B] is divided by its norm, or that of [A s_u | -B s_v] for the ``vertex_scales`` s.
    Then every map F_{v->e} is multiplied by a matrix W_v such that the stacked maps at v become an
    isometry. Zero can then be decided relative to 1.
    """
    f, dims, n, dtype = F.arrays, F.vertex_dims, F.n_vertices, np.result_type(F.dtype, np.float64)
    scaled = np.zeros(len(F.tail_data), dtype), np.zeros(len(F.head_data), dtype)
    costs = F.edge_dims * dims[F.edges].sum(axis=1) + 1.0
    s = vertex_scales(F)
    threads.run_ranges(
        lambda lo, hi: kernels.scale_edges(lo, hi, f, s, *scaled), costs, serial_below=SERIAL_BELOW
    )
    sheaf = trusted_sheaf(F.edges, dims, F.edge_dims, *scaled)
    begins, factors = degree_factors(sheaf)
    f, blocks = sheaf.arrays, (np.zeros_like(factors), np.zeros_like(factors))
    loops = np.bincount(F.edges[F.edges[:, 0] == F.edges[:, 1], 0], minlength=n) / s**2
    bases = kernels.StalkBases(begins, np.zeros(n, np.int64), *blocks, loops)

    def find(lo: int, hi: int) -> Any:
        d = int(dims[lo:hi].max())
        return kernels.find_vertex_bases(
            lo, hi, dims, factors, eps, svd_workspace(d, d, dtype, 0), bases
        )

    failed = threads.run_ranges(find, dims**3 + 1.0, serial_below=SERIAL_BELOW)
    check_status(failed, "the maps at vertex")
    ranks = ragged.read_only(bases.ranks)
    clusters = clusters_of(F, Partition(np.arange(n)))
    weights = np.repeat(bases.sizes / np.maximum(dims, 1), dims)
    starts = tuple(ragged.offsets(F.edge_dims * ranks[F.edges[:, end]]) for end in range(2))
    maps = np.empty(int(starts[0][-1]), dtype), np.empty(int(starts[1][-1]), dtype)
    W = begins, ranks, bases.W
    threads.run_ranges(
        lambda lo, hi: multiply_maps(lo, hi, f, W, starts, maps), costs, serial_below=SERIAL_BELOW
    )
    equilibrated = trusted_sheaf(F.edges, ranks, F.edge_dims, *maps)
    return equilibrated, Stalks(F, clusters, bases, weights)
