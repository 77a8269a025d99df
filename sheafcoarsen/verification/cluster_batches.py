"""Batches of clusters, in which a coarsening is checked with little memory.

A batch (`Piece`) consists of the fine edges with an end in its clusters, the rows of R at both ends
of these edges, and the coarse edges with an end in its clusters. The rows and columns of L and of
R* L R that belong to its clusters are complete and come first.
"""

import contextlib
import itertools
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from sheafcoarsen._support import blocks, offsets, range_of_blocks, run_ranges, thread_limit
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf

PIECE = 60_000
"""Number of coordinates of C^0 and C^1 per batch, large enough to make overhead negligible."""


class FoundOnce(cached_property):
    """A cached property without the lock that Python 3.11 shares between all instances."""

    def __init__(self, find: Callable) -> None:
        super().__init__(find)
        self.lock = contextlib.nullcontext()


class EdgeIndex:
    """Index of edges by the clusters of their two ends; ``ends`` (m, 2) holds these clusters."""

    def __init__(self, ends: np.ndarray, n_clusters: int) -> None:
        self.first, last = ends.min(axis=1), ends.max(axis=1)
        self.by_first = np.argsort(self.first, kind="stable")
        self.first_starts = offsets(np.bincount(self.first, minlength=n_clusters))
        crossing = np.flatnonzero(self.first != last)
        self.by_last = crossing[np.argsort(last[crossing], kind="stable")]
        self.last_starts = offsets(np.bincount(last[crossing], minlength=n_clusters))

    def touching(self, lo: int, hi: int) -> np.ndarray:
        """Return the edges with an end in one of the clusters lo to hi - 1, ascending."""
        here = self.by_first[self.first_starts[lo] : self.first_starts[hi]]
        from_below = self.by_last[self.last_starts[lo] : self.last_starts[hi]]
        return np.sort(np.concatenate([here, from_below[self.first[from_below] < lo]]))


class Pieces:
    """All batches of a coarsening, which threads process in parallel."""

    def __init__(self, C: Coarsening) -> None:
        self.C = C
        self.n_clusters = C.partition.n_clusters
        self.fine_edges = EdgeIndex(C.partition.labels[C.fine.edges], self.n_clusters)
        self.coarse_edges = EdgeIndex(C.sheaf.edges, self.n_clusters)

    @cached_property
    def bounds(self) -> np.ndarray:
        """First cluster of each batch, followed by K."""
        C, first = self.C, self.fine_edges.first
        size = np.bincount(C.partition.labels, C.fine.vertex_dims, minlength=self.n_clusters)
        size += np.bincount(first, C.fine.edge_dims, minlength=self.n_clusters)
        number = (np.cumsum(size) / PIECE).astype(np.int64)
        ends = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), self.n_clusters]
        return np.unique(ends)

    def each(self, measure: Callable[["Piece"], Any]) -> list:
        """Return ``measure(piece)`` for every batch in order; calls may run in parallel."""

        def work(first: int, last: int) -> list:
            # batches already run in parallel, so threads inside a batch would gain nothing
            with thread_limit(1):
                ends = self.bounds[first : last + 1].tolist()
                return [measure(Piece(self, lo, hi)) for lo, hi in itertools.pairwise(ends)]

        found = run_ranges(work, np.ones(len(self.bounds) - 1))
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
        blocks(F.tail_data, F.tail_offsets, edges).astype(dtype, copy=False),
        blocks(F.head_data, F.head_offsets, edges).astype(dtype, copy=False),
    )


class Piece:
    """Clusters lo to hi - 1 with all adjacent edges; rows and columns of the clusters are first."""

    def __init__(self, whole: Pieces, lo: int, hi: int) -> None:
        C = whole.C
        self.C, self.lo, self.hi = C, lo, hi
        self.double = np.result_type(C.fine.dtype, C.prolongation.dtype, np.float64)
        labels, starts = C.partition.labels, C.partition.cluster_offsets
        self.edges = whole.fine_edges.touching(lo, hi)
        self.own = C.partition.members[starts[lo] : starts[hi]]
        ends = C.fine.edges[self.edges]
        away = labels[ends]
        others = np.unique(ends[(away < lo) | (away >= hi)])
        self.vertices = np.concatenate([self.own, others])
        self.coarse_edges = whole.coarse_edges.touching(lo, hi)
        far = np.concatenate([labels[others], C.sheaf.edges[self.coarse_edges].reshape(-1)])
        beyond = np.unique(far[(far < lo) | (far >= hi)])
        self.clusters = np.concatenate([np.arange(lo, hi), beyond])
        self.sheaf = part_of(C.fine, self.edges, self.vertices)
        self.internal = np.flatnonzero(away[:, 0] == away[:, 1])  # indices in the batch
        self.internal_cluster = away[self.internal, 0] - lo
        self.coarse = part_of(C.sheaf, self.coarse_edges, self.clusters)
        dims = C.fine.vertex_dims
        self.coordinates = range_of_blocks(C.fine.vertex_offsets, self.vertices)
        self.n_rows = int(dims[self.own].sum())  # rows of C^0 on the clusters
        self.row_cluster = np.repeat(labels[self.own] - lo, dims[self.own])
        self.row_vertex = np.repeat(np.arange(len(self.own)), dims[self.own])
        ranks = C.sheaf.vertex_dims[self.clusters]
        self.column_cluster = np.repeat(np.arange(len(self.clusters)), ranks)
        self.n_columns = int(ranks[: hi - lo].sum())
        self.labels = renumbered(labels[self.vertices], self.clusters)

    def forget(self, *names: str) -> None:
        """Delete cached matrices that are no longer needed."""
        for name in names:
            self.__dict__.pop(name, None)

    @FoundOnce
    def R(self) -> scipy.sparse.csr_array:
        """The rows of R in the batch, with columns numbered as in the batch."""
        C = self.C
        columns = range_of_blocks(C.sheaf.vertex_offsets, self.clusters)
        R = C.prolongation[self.coordinates]
        row = np.repeat(C.partition.labels[self.vertices], C.fine.vertex_dims[self.vertices])
        of_row = np.repeat(row, np.diff(R.indptr))
        starts = C.sheaf.vertex_offsets
        astray = (R.indices < starts[of_row]) | (R.indices >= starts[of_row + 1])
        if astray.any():
            a = int(of_row[np.argmax(astray)])
            raise ValueError(
                "`C` is inconsistent: R must be zero outside its diagonal blocks, "
                f"but rows of cluster {a} have entries in columns of another cluster"
            )
        shape = (len(self.coordinates), len(self.column_cluster))
        return scipy.sparse.csr_array(
            (R.data, renumbered(R.indices, columns), R.indptr), shape=shape
        )

    @FoundOnce
    def internal_rows(self) -> np.ndarray:
        """Rows of C^1 in the batch that belong to edges inside a cluster."""
        return range_of_blocks(self.sheaf.edge_offsets, self.internal)

    @property
    def crossing_rows(self) -> np.ndarray:
        """Rows of C^1 in the batch that belong to crossing edges."""
        crossing = np.delete(np.arange(len(self.edges)), self.internal)
        return range_of_blocks(self.sheaf.edge_offsets, crossing)

    @FoundOnce
    def delta(self) -> scipy.sparse.csr_array:
        """The coboundary on the fine edges of the batch."""
        return coboundary(self.sheaf)

    @FoundOnce
    def L(self) -> scipy.sparse.csr_array:
        """The rows of L that belong to the clusters of the batch."""
        return laplacian(self.sheaf)[: self.n_rows]

    @FoundOnce
    def own_R(self) -> scipy.sparse.csr_array:
        """blockdiag(R_a) over the clusters of the batch."""
        return self.R[: self.n_rows, : self.n_columns]

    @FoundOnce
    def galerkin(self) -> scipy.sparse.csr_array:
        """The rows of R* L R that belong to the clusters."""
        return adjoint_product(self.own_R, self.L @ self.R)

    @FoundOnce
    def delta_R(self) -> scipy.sparse.csr_array:
        """The product delta R on the fine edges of the batch."""
        return scipy.sparse.csr_array(self.delta @ self.R)

    @FoundOnce
    def internal_delta_R(self) -> scipy.sparse.csr_array:
        """Rows of delta R for edges inside a cluster; columns of other clusters are zero."""
        return self.delta_R[self.internal_rows]

    @property
    def lifted(self) -> scipy.sparse.csr_array:
        """The rows of (delta R)* (delta R) that belong to the clusters."""
        return self.gram(self.delta_R[self.crossing_rows]) + self.retained

    @FoundOnce
    def retained(self) -> scipy.sparse.csr_array:
        """blockdiag(R_a* L_a R_a), computed from the fine sheaf."""
        return self.gram(self.internal_delta_R)

    def gram(self, X: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return the rows of X* X that belong to the clusters."""
        # select rows of X* before the product, which would compute all rows
        own = X.conj(copy=False).T.tocsr()[: self.n_columns]
        return scipy.sparse.csr_array(own @ X)

    @FoundOnce
    def coarse_delta(self) -> scipy.sparse.csr_array:
        """The coboundary on the coarse edges of the batch."""
        return coboundary(self.coarse)

    @FoundOnce
    def coarse_crossing(self) -> np.ndarray:
        """Indices in the batch of the coarse edges that are crossing edges."""
        return np.flatnonzero(self.coarse.edges[:, 0] != self.coarse.edges[:, 1])

    def coarse_rows(self, loops: bool) -> scipy.sparse.csr_array:
        """Return the rows of the coarse coboundary for loops, or for crossing edges (delta_x)."""
        edges = np.flatnonzero((self.coarse.edges[:, 0] == self.coarse.edges[:, 1]) == loops)
        return self.coarse_delta[range_of_blocks(self.coarse.edge_offsets, edges)]

    @FoundOnce
    def internal_laplacian(self) -> scipy.sparse.csr_array:
        """blockdiag(L_a) in double precision, the reference for internal modes."""
        vertices = np.arange(len(self.own))
        return laplacian(part_of(self.sheaf, self.internal, vertices, self.double))

    @FoundOnce
    def principal_laplacian(self) -> scipy.sparse.csr_array:
        """blockdiag(L[C_a, C_a]) in double precision, the reference for principal modes."""
        every = np.arange(len(self.edges)), np.arange(len(self.vertices))
        L = laplacian(part_of(self.sheaf, *every, self.double))
        own = scipy.sparse.coo_array(L[: self.n_rows, : self.n_rows])
        row, column = own.coords
        same = self.row_cluster[row] == self.row_cluster[column]
        return scipy.sparse.csr_array((own.data[same], (row[same], column[same])), shape=own.shape)


def adjoint_product(A: scipy.sparse.csr_array, B: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return the product A* B."""
    return scipy.sparse.csr_array(A.conj(copy=False).T @ B)
