"""Cholesky factorization of symmetric matrices of d x d blocks on a graph."""

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels.dense import front_room
from sheafcoarsen._kernels.operators import (
    LANES,
    factor_fronts,
    find_fronts,
    plan_elimination,
    solve_fronts,
    write_fronts,
)
from sheafcoarsen.operators.ordering import order_of_graph

WORTH = 200_000
"""Operations for each vertex beyond which a better order is looked for: LAPACK is quick with less.
"""


class BlockCholesky:
    """A = L L^T, with an order of elimination that is found once, on the graph of the blocks.

    Parameters
    ----------
    n_vertices : int
    edges : ndarray of int, shape (m, 2)
        Pairs of different vertices, as often as they come.
    dim : int
        d, of every block.

    Notes
    -----
    The analysis takes no values: ``operations`` says what ``factor`` will cost.
    """

    def __init__(self, n_vertices: int, edges: np.ndarray, dim: int) -> None:
        self._edges, self._dim = np.array(edges, np.int64), dim
        n = n_vertices
        i, j = self._edges.T
        ends = (np.concatenate([i, j]), np.concatenate([j, i]))
        adjacency = scipy.sparse.csr_array((np.ones(len(ends[0]), bool), ends), shape=(n, n))
        indptr, indices = adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int64)
        order = order_of_graph((indptr, indices), np.full(n, dim), WORTH).rows
        self._graph = indptr, indices, order, np.empty(n, np.int64)
        parent, counts = np.empty(n, np.int64), np.empty(n, np.int64)
        plan_elimination(self._graph, parent, counts)
        first = np.empty(n + 1, np.int64)
        first = first[: find_fronts(parent, counts, first) + 1].copy()
        below = counts[first[1:] - 1]
        row_start = np.concatenate([[0], below.cumsum()])
        widths = np.diff(first)
        sizes = (widths + below) * widths * dim**2
        value_start = np.concatenate([[0], sizes.cumsum()])
        rows = np.empty(row_start[-1], np.int64)
        children = np.empty(len(widths), np.int64)
        self._fronts = first, row_start, rows, children, value_start
        self._most, self._highest = write_fronts(self._graph, self._fronts)
        self.operations = float(np.square(counts + 1.0).sum()) * dim**3
        self._values = np.zeros(0)

    def factor(self, diagonal: np.ndarray, couplings: np.ndarray) -> None:
        """Factor the matrix with these blocks: (n, d, d), and (m, d, d) in row u and column v.

        Raises LinAlgError where it is not positive definite.
        """
        d, n = self._dim, len(diagonal)
        position = self._graph[3]
        column = position[self._edges].min(axis=1)
        start = np.concatenate([[0], np.bincount(column, minlength=n).cumsum()])
        blocks = diagonal, couplings, self._edges, start, np.argsort(column, kind="stable")
        self._values = np.empty(self._fronts[4][-1])
        stack = np.empty(self._highest * d * d)
        room = front_room(self._most * d)
        if not factor_fronts(self._graph, self._fronts, blocks, self._values, stack, room):
            raise np.linalg.LinAlgError("the matrix is not positive definite")

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return A^{-1} b for b of shape (n d, k)."""
        d, order, position = self._dim, self._graph[2], self._graph[3]
        k = b.shape[1]
        room = np.empty(self._most * d * LANES)
        by_vertex = np.ascontiguousarray(b).reshape(-1, d, k)
        x = np.empty_like(by_vertex)
        for lo in range(0, k, LANES):
            hi = min(lo + LANES, k)
            if hi - lo == LANES == k:
                lanes = by_vertex[order]
            else:
                lanes = np.zeros((len(order), d, LANES))
                lanes[:, :, : hi - lo] = by_vertex[order, :, lo:hi]
            solve_fronts(self._fronts, self._values, d, lanes.reshape(-1), room)
            if hi - lo == LANES == k:
                x = lanes[position]
            else:
                x[:, :, lo:hi] = lanes[position, :, : hi - lo]
        return x.reshape(b.shape)
