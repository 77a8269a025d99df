"""The equilibrated sheaf: maps with orthonormal rows, stalks with orthonormal columns."""

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._kernels.dense import svd_workspace
from sheafcoarsen._support import offsets, read_only, run_ranges
from sheafcoarsen.coarsening import SERIAL_BELOW
from sheafcoarsen.partition import Clusters, Partition, clusters_of
from sheafcoarsen.sections.columns import CHUNK, check_status, columns_of, room_for
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


class Stalks(NamedTuple):
    """What equilibration makes of the stalks: blocks d_v x d_v at ``starts``; see ``vertex_bases``."""

    clusters: Clusters
    partition: Partition
    ranks: np.ndarray
    starts: np.ndarray
    W: np.ndarray
    V: np.ndarray
    weights: np.ndarray  # (dim_c0,) tr(D_v) / d_v, for every coordinate of v


def equilibrated(F: CellularSheaf, eps: float) -> tuple[CellularSheaf, Stalks]:
    """Return the sheaf with equilibrated edges and stalks, in double precision, and the bases of the stalks."""
    dtype = np.result_type(F.dtype, np.float64)
    tail, head = np.zeros(len(F.tail_data), dtype), np.zeros(len(F.head_data), dtype)
    f, n = F.arrays, F.n_vertices
    rows = F.edge_dims * F.vertex_dims[F.edges].sum(axis=1) + 1.0
    run_ranges(
        lambda lo, hi: kernels.normalized_edges(lo, hi, f, tail, head),
        rows,
        serial_below=SERIAL_BELOW,
    )
    f = f._replace(tail_data=tail, head_data=head)
    ends = F.edges.reshape(-1)
    halves = np.flatnonzero(
        (np.arange(len(ends)) % 2 == 0) | np.repeat(F.edges[:, 0] != F.edges[:, 1], 2)
    )
    halves = halves[np.argsort(ends[halves], kind="stable")]
    ptr = offsets(np.bincount(ends[halves], minlength=n))
    dims = F.vertex_dims
    starts = offsets(dims**2)
    W, V = np.zeros(int(starts[-1]), dtype), np.zeros(int(starts[-1]), dtype)
    ranks, sizes = np.zeros(n, np.int64), np.zeros(n)

    def work(lo, hi):
        d = int(dims[lo:hi].max())
        room = room_for(d, d, d + CHUNK, dtype)
        return kernels.vertex_bases(
            lo,
            hi,
            f,
            ptr,
            halves,
            eps,
            svd_workspace(d, d, dtype, 0),
            room,
            starts,
            W,
            V,
            ranks,
            sizes,
        )

    cost = dims**2 * (dims + np.bincount(ends, np.repeat(F.edge_dims, 2), minlength=n)) + 1.0
    check_status(run_ranges(work, cost, serial_below=SERIAL_BELOW), "the maps at vertex")
    read_only(ranks)
    partition = Partition(np.arange(n))
    stalks = Stalks(
        clusters_of(F, partition),
        partition,
        ranks,
        starts,
        W,
        V,
        np.repeat(sizes / np.maximum(dims, 1), dims),
    )
    tail_starts = offsets(F.edge_dims * ranks[F.edges[:, 0]])
    head_starts = offsets(F.edge_dims * ranks[F.edges[:, 1]])
    tail, head = np.zeros(int(tail_starts[-1]), dtype), np.zeros(int(head_starts[-1]), dtype)

    def change(lo, hi):
        kernels.changed_maps(lo, hi, f, starts, W, ranks, tail_starts, head_starts, tail, head)

    run_ranges(change, rows, serial_below=SERIAL_BELOW)
    return trusted_sheaf(F.edges, ranks, F.edge_dims, tail, head), stalks


def stalk_columns(
    F: CellularSheaf, stalks: Stalks, blocks, first, counts
) -> scipy.sparse.csr_array:
    """Return the block-diagonal matrix of columns first .. first + counts of the stalks' blocks."""
    R = columns_of(F, stalks.clusters, F.vertex_dims, stalks.starts, blocks, first, counts)
    return R.matrix
