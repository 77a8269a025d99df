"""Sparse factorization of a shifted Hermitian matrix: fill-reducing orders, cost, and factors."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import spilu, splu

from sheafcoarsen._kernels import factorization as kernels
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen._support import linalg, ragged, threads
from sheafcoarsen.operators._coboundary import as_columns

DEGREE_ABOVE = 100
"""Number of operations per vertex with nested dissection above which minimum degree is tried too.

Operations with minimum degree, relative to nested dissection: 1/3 to 1 on pose graphs, 1/9 on a
chain of poses with chords, and 2 on 3-D grids.
"""

DEGREE_UP_TO = 2e11
"""Minimum degree is skipped if nested dissection needs more operations than this (for stalks of
dimension 1), because finding the minimum degree order would take a second.
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
    """Elimination order of the rows, with the factorization's operation and entry counts."""

    rows: np.ndarray
    operations: float
    entries: float


def elimination_order(A: scipy.sparse.csr_array, most: float = np.inf) -> Order:
    """Return a fill-reducing order for a matrix with a symmetric pattern and a full diagonal.

    Operations are counted up to ``most``, those of nested dissection up to 16 times as many at
    most, so larger counts may be incomplete. Consecutive rows with the same pattern, such as those
    of a stalk, are ordered as one vertex.
    Leaves and chains are eliminated first, the others by nested dissection, or in minimum degree
    order if that is cheaper and dissection takes more than `DEGREE_ABOVE` operations per vertex.
    """
    starts, Q = quotient(A)
    widths = np.diff(starts)
    n, most = len(widths), min(most, 2.0**62)  # the kernel counts in 64 bits
    rows = np.repeat(np.arange(n), np.diff(Q.indptr))
    other = Q.indices != rows
    indptr = ragged.offsets(np.bincount(rows[other], minlength=n))
    indices = Q.indices[other].astype(np.int64)
    first, degrees, neighbors = np.empty(n, np.int64), np.diff(indptr), indices.copy()
    first = first[: kernels.order_chains(indptr, neighbors, degrees, first)]
    core_vertices = np.flatnonzero(degrees >= 0)
    number, degrees = np.cumsum(degrees >= 0) - 1, degrees[core_vertices]
    core = ragged.offsets(degrees), number[neighbors[ragged.ranges(indptr[core_vertices], degrees)]]

    def counted(vertices: np.ndarray, limit: float) -> Order:
        order = np.concatenate([first, core_vertices[vertices]])
        position, counts = np.empty(n, np.int64), np.zeros(2, np.int64)
        position[order] = np.arange(n)
        kernels.count_operations(indptr, indices, widths, position, int(limit), counts)
        return Order(order, float(counts[0]), float(counts[1]))

    width = float(widths.sum()) / max(n, 1)
    # minimum degree is skipped if nested dissection needs 16 times what the caller can afford
    limit = min(max(16 * most, 1.0), DEGREE_UP_TO * width**3, 2.0**62)
    best = counted(kernels.nested_dissection(*core), max(most, limit))
    if DEGREE_ABOVE * n < best.operations <= limit:
        best = min(best, counted(_minimum_degree(*core), most), key=lambda each: each.operations)
    return best._replace(rows=ragged.ranges(starts[best.rows], widths[best.rows]))


def quotient(A: scipy.sparse.csr_array) -> tuple[np.ndarray, scipy.sparse.csr_array]:
    """Return the starts of runs of consecutive rows with equal patterns, and the runs' pattern."""
    # a copy, because sorting the indices of the original would leave its entries unsorted
    A = scipy.sparse.csr_array((np.ones(A.nnz), A.indices.copy(), A.indptr), shape=A.shape)
    A.sort_indices()
    begins = np.zeros(A.shape[0], bool)
    kernels.mark_stalks(A.indptr.astype(np.int64), A.indices.astype(np.int64), begins)
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
    direct_up_to = 5000  # unknowns, if rows have few entries
    # for 5000 vertices with 200 edges each, a factorization takes twenty times as long as multigrid
    if L.shape[0] <= direct_up_to and L.nnz <= 50 * L.shape[0]:
        return True
    L = scipy.sparse.csr_array((np.ones(L.nnz), L.indices, L.indptr), shape=L.shape)
    labels = connected_components(L, directed=False)[1]
    sizes = np.bincount(labels)
    for c in np.flatnonzero(sizes >= max(sizes.max() / 10, min(direct_up_to, sizes.max()))):
        at, start = np.flatnonzero(labels == c), 0
        part = L[at][:, at]
        for _ in range(2):  # the second time from a pseudo-peripheral vertex
            depth = dijkstra(part, unweighted=True, indices=start)
            start = int(depth.argmax())
        levels = np.bincount(depth.astype(np.int64))
        affordable = float(DIRECT_BEFORE) * len(levels) * L.nnz
        if float(levels.max()) ** 3 > affordable:
            most = max(affordable, DIRECT_OPERATIONS)
            return elimination_order(L, most).operations <= most
    return True


OWN_ORDER_ABOVE = 20_000
"""Dimension above which this package's elimination order replaces SuperLU's minimum degree, with
which factorizations of 3-D grids take 2 to 3 times as long.
"""


class Factors:
    """Factorization A + shift I = L U without pivoting, in a fill-reducing or given order.

    ``pivots`` is the diagonal of U; if one is zero, LinAlgError is raised. Though U = D L* in exact
    arithmetic, both are needed: next to small pivots, L D L* has errors hundreds of times larger.
    """

    def __init__(self, A: scipy.sparse.csr_array, shift: float, order: Order | None = None) -> None:
        n = A.shape[0]
        shifted = scipy.sparse.csr_array(A + shift * scipy.sparse.eye_array(n))
        if order is None and n > OWN_ORDER_ABOVE:
            order = elimination_order(shifted)
        if order is not None:
            shifted = shifted[order.rows][:, order.rows]
        # SuperLU's default panel size, 20, takes 25 % less time on 3-D grids, which need at least
        # 7e4 operations per row, but 10 to 40 % longer on pose graphs
        few = order is not None and order.operations <= 2e4 * n
        rows, self._lower, self._upper = threads.interruptible(
            _factored,
            scipy.sparse.csc_array(shifted),
            permc_spec="MMD_AT_PLUS_A" if order is None else "NATURAL",
            panel_size=2 if few else None,
        )
        self._rows = rows if order is None else order.rows[rows]
        self.pivots = self._upper.diagonal()

    def solve(self, b: np.ndarray) -> np.ndarray:
        """Return (A + shift I)^{-1} b for one right-hand side or several columns."""
        if b.dtype.kind == "c" and self.pivots.dtype.kind != "c":
            return linalg.by_real_columns(self.solve, b)
        y = np.ascontiguousarray(b[self._rows], np.result_type(b, self.pivots))
        if JIT_IS_OFF and len(y) > 50:  # as plain Python, the kernel would take minutes
            x = np.empty_like(y)
            for factor in (self._lower, self._upper):
                y = splu(factor.tocsc(), permc_spec="NATURAL", diag_pivot_thresh=0.0).solve(y)
            x[self._rows] = y
            return x
        factors = [(A.indptr, A.indices, A.data) for A in (self._lower, self._upper)]
        inverses = 1 / self.pivots
        columns = as_columns(y)
        begin, h = 0, columns.shape[1]
        # Numbers of right-hand sides that the kernel processes at a time
        widths = (4, 1) if y.dtype.kind == "c" else (16, 4, 1)
        for width in widths:
            part = (begin, h - (h - begin) % width)
            lanes = (y.dtype.type(0),) * width
            if part[0] < part[1]:
                kernels.solve_factored(*factors, inverses, part, lanes, columns)
            begin = part[1]
        x = np.empty_like(y)
        x[self._rows] = y
        return x

    def count_negative(self) -> int:
        """Return the number of eigenvalues of A below -shift, by Sylvester's law of inertia."""
        return int((self.pivots.real < 0).sum())


def _factored(
    A: scipy.sparse.csc_array, **options: Any
) -> tuple[np.ndarray, scipy.sparse.csc_array, scipy.sparse.csr_array]:
    """Return the elimination order and the factors L and U of A = L U.

    SuperLU's own object must not outlive this call: scipy loses its memory if another thread
    deletes it, and from version 1.19 on frees it when the thread ends.
    """
    try:
        # with larger supernodes, a pose graph of 100,000 vertices takes ten times as long
        factors = splu(
            A, diag_pivot_thresh=0.0, relax=1, options={"SymmetricMode": True}, **options
        )
    except RuntimeError as error:
        raise np.linalg.LinAlgError(f"the factorization failed: {error}") from None
    columns, rows = factors.perm_c, factors.perm_r
    L, U = factors.L, scipy.sparse.csr_array(factors.U)
    del factors  # a traceback would keep it
    if not np.array_equal(rows, columns):
        raise np.linalg.LinAlgError("the factorization failed: a pivot is zero")
    return np.argsort(columns), L, U
