"""Fill-reducing orders, and the cost of factorizations compared with iterative solvers."""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import spilu

from sheafcoarsen._kernels.operators import (
    count_operations,
    mark_stalks,
    nested_dissection,
    order_chains,
)
from sheafcoarsen._support import offsets, ranges

DEGREE_ABOVE = 100
"""Number of operations per vertex with nested dissection above which minimum degree is tried too.

Operations with minimum degree, relative to nested dissection: 1/3 to 1 on pose graphs, 1/9 on a
chain of poses with chords, and 2 on 3-D grids.
"""

DEGREE_UP_TO = 2e11
"""Minimum degree is skipped if nested dissection needs more operations than this (for stalks of
dimension 1), because finding the minimum degree order would take a second.
"""

PER_OPERATION, PER_ENTRY, PER_SOLVE = 2e-10, 5e-8, 1e-9
"""Measured seconds on one thread. PER_OPERATION and PER_ENTRY: per operation and per entry of a
factorization. PER_SOLVE: per entry of the factors and column of a solve.
"""


DIRECT_BEFORE = 20
"""Maximum number of operations of a factorization, relative to nnz(L) times the number of
breadth-first levels.

An iterative solver needs about 4 iterations per level, each of a few nnz(L) operations. Surfaces
are factored; 3-D grids are solved iteratively from 30^3 vertices on.
"""


DIRECT_OPERATIONS = 1e9
"""Number of operations up to which L is always factored; they take a third of a second.

Iterative solvers may fail to converge because of the maps. An example is a pose graph of 6000
poses and 1000 chords with one anchored frame, where a factorization takes 5e8 operations.
"""


class Order(NamedTuple):
    """Rows in the order of elimination, with the operations and entries of the factorization."""

    rows: np.ndarray
    operations: float
    entries: float

    @property
    def seconds(self) -> float:
        """Estimated seconds of the factorization."""
        return PER_OPERATION * self.operations + PER_ENTRY * self.entries

    @property
    def solve_seconds(self) -> float:
        """Estimated seconds of a solve for one column."""
        return PER_SOLVE * self.entries


def elimination_order(A: scipy.sparse.csr_array, most: float = np.inf) -> Order:
    """Return a fill-reducing order for a matrix with a symmetric pattern and a full diagonal.

    The search and the count stop at ``most`` operations. Rows with the same pattern, such as those
    of a stalk, are ordered as one vertex. Leaves and chains are eliminated first, the others by
    nested dissection, or in minimum degree order if that is cheaper, which is tried if dissection
    takes more than `DEGREE_ABOVE` operations per vertex.
    """
    starts, Q = quotient(A)
    widths = np.diff(starts)
    n, most = len(widths), min(most, 2.0**62)  # the kernel counts in 64 bits
    rows = np.repeat(np.arange(n), np.diff(Q.indptr))
    other = Q.indices != rows
    indptr = offsets(np.bincount(rows[other], minlength=n))
    indices = Q.indices[other].astype(np.int64)
    first, degrees, neighbors = np.empty(n, np.int64), np.diff(indptr), indices.copy()
    first = first[: order_chains(indptr, neighbors, degrees, first)]
    core_vertices = np.flatnonzero(degrees >= 0)
    number, degrees = np.cumsum(degrees >= 0) - 1, degrees[core_vertices]
    core = offsets(degrees), number[neighbors[ranges(indptr[core_vertices], degrees)]]

    def counted(vertices: np.ndarray, limit: float) -> Order:
        order = np.concatenate([first, core_vertices[vertices]])
        position, counts = np.empty(n, np.int64), np.zeros(2, np.int64)
        position[order] = np.arange(n)
        count_operations(indptr, indices, widths, position, int(limit), counts)
        return Order(order, float(counts[0]), float(counts[1]))

    width = float(widths.sum()) / max(n, 1)
    # minimum degree is skipped if nested dissection needs 16 times what the caller can afford
    limit = min(max(16 * most, 1.0), DEGREE_UP_TO * width**3, 2.0**62)
    best = counted(nested_dissection(*core), max(most, limit))
    if DEGREE_ABOVE * n < best.operations <= limit:
        best = min(best, counted(_minimum_degree(*core), most), key=lambda each: each.operations)
    return best._replace(rows=ranges(starts[best.rows], widths[best.rows]))


def quotient(A: scipy.sparse.csr_array) -> tuple[np.ndarray, scipy.sparse.csr_array]:
    """Group adjacent rows with the same pattern; return their starts and the groups' pattern."""
    A = scipy.sparse.csr_array((np.ones(A.nnz), A.indices, A.indptr), shape=A.shape)
    A.sort_indices()
    begins = np.zeros(A.shape[0], bool)
    mark_stalks(A.indptr.astype(np.int64), A.indices.astype(np.int64), begins)
    first = np.flatnonzero(begins)
    return np.append(first, A.shape[0]), A if begins.all() else A[first][:, first]


def _minimum_degree(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return vertices in SuperLU's minimum degree order, from an incomplete factorization."""
    n = len(indptr) - 1
    A = scipy.sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(n, n))
    dominant = scipy.sparse.csc_array(A + 2 * n * scipy.sparse.eye_array(n))
    factors = spilu(
        dominant,
        drop_tol=1.0,
        fill_factor=1.0,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.argsort(factors.perm_c)


def fills_little(L: scipy.sparse.csr_array) -> bool:
    """Return whether factoring L is cheaper than solving with L iteratively.

    Breadth-first levels of the graph are separators: if the largest has size w, a factorization
    takes about w^3 operations. This quick estimate is far too large for sparse graphs with wide
    levels, such as a path with chords; for these the operations are counted in a fill-reducing
    order.
    """
    # Number of unknowns up to which L is factored unless its rows have many entries
    direct_up_to = 5000
    # Mean number of entries per row of L above which even the factors of small matrices fill in.
    # For 5000 vertices with 200 edges each, a factorization takes twenty times as long as
    # multigrid.
    full_rows = 50
    if L.shape[0] <= direct_up_to and L.nnz <= full_rows * L.shape[0]:
        return True
    L = scipy.sparse.csr_array((np.ones(L.nnz), L.indices, L.indptr), shape=L.shape)
    labels = connected_components(L, directed=False)[1]
    levels = _level_sizes(L, np.flatnonzero(labels == np.bincount(labels).argmax()))
    affordable = float(DIRECT_BEFORE) * len(levels) * L.nnz
    if float(levels.max()) ** 3 <= affordable:
        return True
    most = max(affordable, DIRECT_OPERATIONS)
    return elimination_order(L, most).operations <= most


def _level_sizes(L: scipy.sparse.csr_array, component: np.ndarray) -> np.ndarray:
    """Return the sizes of a component's breadth-first levels, seen from a peripheral vertex."""
    start = component[0]
    for _ in range(2):
        depth = dijkstra(L, unweighted=True, indices=start)
        depth[np.isinf(depth)] = -1
        start = int(depth.argmax())
    return np.bincount(depth[depth >= 0].astype(np.int64))
