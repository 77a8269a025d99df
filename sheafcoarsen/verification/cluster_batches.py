"""Batches of clusters, in which a coarsening is checked with little memory.

A batch (`Piece`) consists of the fine edges with an end in its clusters, the rows of R at both ends
of these edges, and the coarse edges with an end in its clusters. The rows and columns of L and of
R* L R that belong to its clusters are complete and come first.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sheafcoarsen._support import ragged, threads
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf

PIECE = 60_000
"""Number of coordinates of C^0 and C^1 per batch, large enough to make overhead negligible."""


def in_batches(C: Coarsening, measure: Callable[["Piece"], Any]) -> list:
    """Return ``measure(piece)`` for every batch in order; calls may run in parallel."""
    labels, K = C.partition.labels, C.partition.n_clusters
    ends = labels[C.fine.edges]
    # indices of the ends of edges, sorted by cluster, and the offset of each cluster
    ends_by_cluster = [
        (np.argsort(sides, axis=None), ragged.offsets(np.bincount(sides.ravel(), minlength=K)))
        for sides in (ends, C.sheaf.edges)
    ]
    size = np.bincount(labels, C.fine.vertex_dims, minlength=K)
    size += np.bincount(ends.min(axis=1), C.fine.edge_dims, minlength=K)
    number = (np.cumsum(size) / PIECE).astype(np.int64)
    # first cluster of each batch, followed by K
    bounds = np.unique([0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), K]).tolist()

    def work(first: int, last: int) -> list:
        found = []
        # batches already run in parallel, so threads inside a batch would gain nothing
        with threads.thread_limit(1):
            for lo, hi in itertools.pairwise(bounds[first : last + 1]):
                edges = (np.unique(own[at[lo] : at[hi]] // 2) for own, at in ends_by_cluster)
                found.append(measure(Piece(C, lo, hi, *edges)))
        return found

    found = threads.run_ranges(work, np.ones(len(bounds) - 1))
    return [one for several in found for one in several]


def renumbered(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the positions of values in ``known``, whose entries are distinct but unsorted."""
    order = np.argsort(known)
    return order[np.searchsorted(known, values, sorter=order)]


def part_of(
    F: CellularSheaf, edges: np.ndarray, vertices: np.ndarray, dtype: Any = None
) -> CellularSheaf:
    """Return the sheaf on some edges and vertices, renumbered in the order passed."""
    dtype = F.dtype if dtype is None else dtype
    return trusted_sheaf(
        renumbered(F.edges[edges], vertices),
        F.vertex_dims[vertices],
        F.edge_dims[edges],
        ragged.blocks(F.tail_data, F.tail_offsets, edges).astype(dtype, copy=False),
        ragged.blocks(F.head_data, F.head_offsets, edges).astype(dtype, copy=False),
    )


class Piece:
    """Clusters lo to hi - 1 and all adjacent fine and coarse edges, in double precision.

    Rows and columns of the clusters are first; the indices of edges are ascending.
    """

    def __init__(
        self, C: Coarsening, lo: int, hi: int, edges: np.ndarray, coarse_edges: np.ndarray
    ) -> None:
        self.lo, self.hi, self.edges, self.coarse_edges = lo, hi, edges, coarse_edges
        double = np.result_type(C.fine.dtype, C.prolongation.dtype, np.float64)
        labels, starts = C.partition.labels, C.partition.cluster_offsets
        self.own = C.partition.members[starts[lo] : starts[hi]]
        ends = C.fine.edges[edges]
        others = np.unique(ends[(labels[ends] < lo) | (labels[ends] >= hi)])
        self.vertices = np.concatenate([self.own, others])
        far = np.concatenate([labels[others], C.sheaf.edges[coarse_edges].reshape(-1)])
        beyond = np.unique(far[(far < lo) | (far >= hi)])
        self.clusters = np.concatenate([np.arange(lo, hi), beyond])
        self.sheaf = part_of(C.fine, edges, self.vertices, double)
        self.coarse = part_of(C.sheaf, coarse_edges, self.clusters, double)
        dims = C.fine.vertex_dims
        self.coordinates = ragged.range_of_blocks(C.fine.vertex_offsets, self.vertices)
        self.n_rows = int(dims[self.own].sum())  # rows of C^0 on the clusters
        self.row_cluster = np.repeat(labels[self.own] - lo, dims[self.own])
        ranks = C.sheaf.vertex_dims[self.clusters]
        self.column_cluster = np.repeat(np.arange(len(self.clusters)), ranks)
        self.n_columns = int(ranks[: hi - lo].sum())
        self.labels = renumbered(labels[self.vertices], self.clusters)
        # edges inside a cluster, as indices in the batch
        self.internal = np.flatnonzero(np.equal(*self.labels[self.sheaf.edges].T))

    def gram(self, X: csr_array) -> csr_array:
        """Return the rows of X* X that belong to the clusters."""
        # select rows of X* before the product, which would otherwise compute all rows
        own = X.conj(copy=False).T.tocsr()[: self.n_columns]
        return csr_array(own @ X)
