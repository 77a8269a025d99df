"""A coarsening a few clusters at a time, so that checking it takes little memory.

A piece is a coarsening in small: the fine edges that touch its clusters, the rows of R at their
ends, and the coarse edges that touch its clusters. Rows and columns of L and of R* L R that belong
to the clusters of the piece are whole there; they come first.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from sheafcoarsen._support import blocks, offsets, range_of_blocks
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf

PIECE = 60_000
"""Coordinates of C^0 and C^1 in a piece, enough that calls cost little beside products."""


class EdgeIndex:
    """Edges by the clusters that they touch, from the clusters of their ends, shape (m, 2)."""

    def __init__(self, ends: np.ndarray, n_clusters: int) -> None:
        self.first, last = ends.min(axis=1), ends.max(axis=1)
        self.by_first = np.argsort(self.first, kind="stable")
        self.first_starts = offsets(np.bincount(self.first, minlength=n_clusters))
        crossing = np.flatnonzero(self.first != last)
        self.by_last = crossing[np.argsort(last[crossing], kind="stable")]
        self.last_starts = offsets(np.bincount(last[crossing], minlength=n_clusters))

    def touching(self, lo: int, hi: int) -> np.ndarray:
        """Return the edges with an end in clusters lo .. hi - 1, ascending."""
        here = self.by_first[self.first_starts[lo] : self.first_starts[hi]]
        from_below = self.by_last[self.last_starts[lo] : self.last_starts[hi]]
        return np.sort(np.concatenate([here, from_below[self.first[from_below] < lo]]))


class Pieces:
    """All pieces of a coarsening, one after the other."""

    def __init__(self, C: Coarsening) -> None:
        self.C = C
        self.n_clusters = C.partition.n_clusters
        self.fine_edges = EdgeIndex(C.partition.labels[C.fine.edges], self.n_clusters)
        self.coarse_edges = EdgeIndex(C.sheaf.edges, self.n_clusters)
        # scratch: the place in a piece of a vertex, of a cluster and of a column of R
        self.vertex_place = np.zeros(C.fine.n_vertices, np.int64)
        self.cluster_place = np.zeros(self.n_clusters, np.int64)
        self.column_place = np.zeros(C.sheaf.dim_c0, np.int64)

    def __iter__(self) -> Iterator["Piece"]:
        C, first = self.C, self.fine_edges.first
        size = np.bincount(C.partition.labels, C.fine.vertex_dims, minlength=self.n_clusters)
        size += np.bincount(first, C.fine.edge_dims, minlength=self.n_clusters)
        number = (np.cumsum(size) / PIECE).astype(np.int64)
        ends = [*(np.flatnonzero(np.diff(number)) + 1).tolist(), self.n_clusters]
        lo = 0
        for hi in ends:
            if hi > lo:
                yield Piece(self, lo, hi)
            lo = hi


def part_of(
    F: CellularSheaf, edges: np.ndarray, vertices: np.ndarray, place: np.ndarray, dtype: Any = None
) -> CellularSheaf:
    """Return some edges of a sheaf on some vertices, which ``place`` numbers anew."""
    dtype = F.dtype if dtype is None else dtype
    place[vertices] = np.arange(len(vertices))
    return trusted_sheaf(
        place[F.edges[edges]],
        F.vertex_dims[vertices],
        F.edge_dims[edges],
        blocks(F.tail_data, F.tail_offsets, edges).astype(dtype, copy=False),
        blocks(F.head_data, F.head_offsets, edges).astype(dtype, copy=False),
    )


def outside(values: np.ndarray, lo: int, hi: int) -> np.ndarray:
    """Return the values that are not in lo .. hi - 1, ascending, each once."""
    return np.unique(values[(values < lo) | (values >= hi)])


class Piece:
    """Clusters lo .. hi - 1 and what touches them; their own rows and columns come first."""

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
        self.clusters = np.concatenate([np.arange(lo, hi), outside(far, lo, hi)])
        whole.cluster_place[self.clusters] = np.arange(len(self.clusters))
        self.sheaf = part_of(C.fine, self.edges, self.vertices, whole.vertex_place)
        self.internal = np.flatnonzero(away[:, 0] == away[:, 1])  # edges of the piece
        self.internal_cluster = away[self.internal, 0] - lo
        self.coarse = part_of(C.sheaf, self.coarse_edges, self.clusters, whole.cluster_place)
        dims = C.fine.vertex_dims
        self.coordinates = range_of_blocks(C.fine.vertex_offsets, self.vertices)
        self.n_rows = int(dims[self.own].sum())  # of C^0, in the clusters
        self.row_cluster = np.repeat(labels[self.own] - lo, dims[self.own])
        self.row_vertex = np.repeat(np.arange(len(self.own)), dims[self.own])
        ranks = C.sheaf.vertex_dims[self.clusters]
        self.column_cluster = np.repeat(np.arange(len(self.clusters)), ranks)
        self.n_columns = int(ranks[: hi - lo].sum())
        self.column_place = whole.column_place
        self.labels = whole.cluster_place[labels[self.vertices]]

    @cached_property
    def R(self) -> scipy.sparse.csr_array:
        """The rows of R, with their columns numbered as in the piece."""
        C, place = self.C, self.column_place
        columns = range_of_blocks(C.sheaf.vertex_offsets, self.clusters)
        place[columns] = np.arange(len(columns))
        R = C.prolongation[self.coordinates]
        row = np.repeat(C.partition.labels[self.vertices], C.fine.vertex_dims[self.vertices])
        of_row = np.repeat(row, np.diff(R.indptr))
        starts = C.sheaf.vertex_offsets
        astray = (R.indices < starts[of_row]) | (R.indices >= starts[of_row + 1])
        if astray.any():
            a = int(of_row[np.argmax(astray)])
            raise ValueError(
                "`C` does not fit together: R must hold nothing outside of its diagonal blocks, "
                f"but rows of cluster {a} have entries in columns of another one"
            )
        shape = (len(self.coordinates), len(self.column_cluster))
        return scipy.sparse.csr_array((R.data, place[R.indices], R.indptr), shape=shape)

    @cached_property
    def edge_rows(self) -> np.ndarray:
        """Where the rows of C^1 of each edge begin in the piece, shape (number of edges + 1,)."""
        return offsets(self.sheaf.edge_dims)

    @cached_property
    def internal_rows(self) -> np.ndarray:
        """Rows of C^1 in the piece of edges inside one of its clusters."""
        return range_of_blocks(self.edge_rows, self.internal)

    @cached_property
    def internal_row_cluster(self) -> np.ndarray:
        """The cluster of each of `internal_rows`."""
        return np.repeat(self.internal_cluster, self.sheaf.edge_dims[self.internal])

    @cached_property
    def delta(self) -> scipy.sparse.csr_array:
        """The coboundary of the fine edges."""
        return coboundary(self.sheaf)

    @cached_property
    def L(self) -> scipy.sparse.csr_array:
        """The rows of L that belong to the clusters."""
        return laplacian(self.sheaf)[: self.n_rows]

    @cached_property
    def own_R(self) -> scipy.sparse.csr_array:
        """blockdiag(R_a)."""
        return self.R[: self.n_rows, : self.n_columns]

    @cached_property
    def galerkin(self) -> scipy.sparse.csr_array:
        """The rows of R* L R that belong to the clusters."""
        return adjoint_product(self.own_R, self.L @ self.R)

    @cached_property
    def delta_R(self) -> scipy.sparse.csr_array:
        """The coboundary of lifted coarse cochains."""
        return scipy.sparse.csr_array(self.delta @ self.R)

    @cached_property
    def internal_delta_R(self) -> scipy.sparse.csr_array:
        """Its rows of edges inside a cluster, of which the columns outside are empty."""
        return self.delta_R[self.internal_rows]

    @cached_property
    def retained(self) -> scipy.sparse.csr_array:
        """blockdiag(R_a* L_a R_a), from the fine sheaf."""
        return self.gram(self.internal_delta_R)

    def gram(self, X: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return the rows of X* X that belong to the clusters."""
        # rows of the transpose, which are one slice, for the columns of X
        own = X.conj(copy=False).T.tocsr()[: self.n_columns]
        return scipy.sparse.csr_array(own @ X)

    @cached_property
    def coarse_delta(self) -> scipy.sparse.csr_array:
        """The coboundary of the coarse edges."""
        return coboundary(self.coarse)

    @cached_property
    def coarse_crossing(self) -> np.ndarray:
        """Which coarse edges of the piece are crossing edges."""
        return np.flatnonzero(self.coarse.edges[:, 0] != self.coarse.edges[:, 1])

    @cached_property
    def crossing_delta(self) -> scipy.sparse.csr_array:
        """The coarse crossing coboundary delta_x, from the coarse sheaf."""
        rows = range_of_blocks(self.coarse.edge_offsets, self.coarse_crossing)
        return self.coarse_delta[rows]

    @cached_property
    def internal_laplacian(self) -> scipy.sparse.csr_array:
        """blockdiag(L_a) in double precision, the reference for the modes."""
        place = np.zeros(len(self.vertices), np.int64)
        vertices = np.arange(len(self.own))
        return laplacian(part_of(self.sheaf, self.internal, vertices, place, self.double))

    @cached_property
    def principal_laplacian(self) -> scipy.sparse.csr_array:
        """blockdiag(L[C_a, C_a]) in double precision."""
        place = np.zeros(len(self.vertices), np.int64)
        every = np.arange(len(self.edges)), np.arange(len(self.vertices))
        L = scipy.sparse.coo_array(laplacian(part_of(self.sheaf, *every, place, self.double)))
        row, column = L.coords
        own = (row < self.n_rows) & (column < self.n_rows)
        row, column, data = row[own], column[own], L.data[own]
        same = self.row_cluster[row] == self.row_cluster[column]
        shape = (self.n_rows, self.n_rows)
        return scipy.sparse.csr_array((data[same], (row[same], column[same])), shape=shape)


def adjoint_product(A: scipy.sparse.csr_array, B: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return A* B."""
    return scipy.sparse.csr_array(A.conj(copy=False).T @ B)
