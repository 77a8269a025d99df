"""Yardsticks: what a user of numpy, scipy, pyamg or KaMinPar would write, as fast as possible.

Sheaves here have edges u < v without loops or parallel edges, as in :mod:`workloads`.
"""

import importlib
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import scipy.linalg
import scipy.sparse
from threadpoolctl import ThreadpoolController

import sheafcoarsen as sc

blas = ThreadpoolController()


def one_thread():
    """Return a context in which BLAS uses one thread.

    Otherwise the thread pools of numpy's and scipy's BLAS would compete for the processors.
    """
    return blas.limit(limits=1, user_api="blas")


def installed(name):
    """Return an optional package, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


# ---------------------------------------------------------------- bandwidth


# only with reassociated additions is a sum as fast as reading memory; slices avoid the cost of
# checks for negative indices
@numba.njit(nogil=True, fastmath={"reassoc", "nsz"}, cache=True)
def _stream(lo, hi, pieces, a, b, out):
    for t in range(lo, hi):
        total = 0.0
        for x in a[t * a.size // pieces : (t + 1) * a.size // pieces]:
            total += x
        for x in b[t * b.size // pieces : (t + 1) * b.size // pieces]:
            total += x
        out[t * out.size // pieces : (t + 1) * out.size // pieces] = total


class Stream:
    """Read all maps and write as many numbers as L has: a lower bound on the time of a refill."""

    def __init__(self, F, size):
        self.F, self.out = F, np.zeros(size)
        self.pieces = 1 + size // 10_000
        self.threads = numba.config.NUMBA_NUM_THREADS
        self.pool = ThreadPoolExecutor(self.threads)

    def __call__(self):
        """Return sums over consecutive maps."""
        bounds = [t * self.pieces // self.threads for t in range(self.threads + 1)]
        arguments = (self.pieces, self.F.tail_data, self.F.head_data, self.out)
        list(self.pool.map(lambda lo, hi: _stream(lo, hi, *arguments), bounds[:-1], bounds[1:]))
        return self.out[np.arange(self.pieces) * len(self.out) // self.pieces]


# ---------------------------------------------------------------- the Laplacian


def coboundary_csr(F):
    """Build delta from coordinate triples, without a loop."""
    parts = []
    for end, data, starts, sign in (
        (0, F.tail_data, F.tail_offsets, 1),
        (1, F.head_data, F.head_offsets, -1),
    ):
        vertex = F.edges[:, end]
        edge = np.repeat(np.arange(F.n_edges), np.diff(starts))
        row, column = np.divmod(np.arange(len(data)) - starts[edge], F.vertex_dims[vertex][edge])
        parts.append(
            (sign * data, F.edge_offsets[edge] + row, F.vertex_offsets[vertex][edge] + column)
        )
    data, rows, columns = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return scipy.sparse.coo_array((data, (rows, columns)), shape=(F.dim_c1, F.dim_c0)).tocsr()


def uniform(F):
    """Return whether all vertex stalks have the same dimension, and all edge stalks too."""
    return np.ptp(F.vertex_dims) == 0 and np.ptp(F.edge_dims) == 0


def stacked_maps(F):
    """Return the maps of a uniform sheaf as two arrays (m, d_e, d)."""
    shape = (F.n_edges, F.edge_dims[0], F.vertex_dims[0])
    return F.tail_data.reshape(shape), F.head_data.reshape(shape)


def coboundary_bsr(F):
    """Build delta of a uniform sheaf from its blocks, two per row."""
    tail, head = stacked_maps(F)
    data = np.stack([tail, -head], axis=1).reshape(-1, *tail.shape[1:])
    starts = np.arange(0, 2 * F.n_edges + 1, 2)
    return scipy.sparse.bsr_array((data, F.edges.reshape(-1), starts), shape=(F.dim_c1, F.dim_c0))


def scipy_laplacian(F):
    """Return delta* delta in the format that scipy multiplies fastest."""
    delta = coboundary_bsr(F) if uniform(F) else coboundary_csr(F)
    return delta.T @ delta


class BatchedRefill:
    """Refill of L as in neural sheaf diffusion: batched products and sums over segments.

    The indices are computed in advance.
    """

    def __init__(self, F, L):
        n, u, v = F.n_vertices, F.edges[:, 0], F.edges[:, 1]
        keys = np.repeat(np.arange(n), np.diff(L.indptr)) * n + L.indices
        self.upper, self.lower = np.searchsorted(keys, u * n + v), np.searchsorted(keys, v * n + u)
        self.diagonal = np.searchsorted(keys, np.arange(n) * (n + 1))
        ends = np.concatenate([u, v])
        self.order = np.argsort(ends, kind="stable")
        degrees = np.bincount(ends, minlength=n)
        self.starts = np.cumsum(degrees) - degrees
        self.matrix = L.copy()
        self.matrix.data[...] = 0

    def __call__(self, F):
        """Write the values of L."""
        tail, head = stacked_maps(F)
        tail_t, head_t, data = tail.swapaxes(1, 2), head.swapaxes(1, 2), self.matrix.data
        products = -(tail_t @ head)
        data[self.upper] = products
        data[self.lower] = products.swapaxes(1, 2)
        grams = np.concatenate([tail_t @ tail, head_t @ head])
        data[self.diagonal] = np.add.reduceat(grams[self.order], self.starts)
        return self.matrix


# ---------------------------------------------------------------- partitions


class KaMinPar:
    """KaMinPar on a sheaf's graph, weighted by vertex dimensions and loaded in advance."""

    def __init__(self, kaminpar, F, n_clusters):
        self.kaminpar, self.n_clusters = kaminpar, n_clusters
        u, v = F.edges.T
        ends = (np.concatenate([u, v]), np.concatenate([v, u]))
        graph = scipy.sparse.coo_array(
            (np.ones(2 * F.n_edges), ends), shape=(F.n_vertices,) * 2
        ).tocsr()
        rows = np.split(graph.indices + 1, graph.indptr[1:-1])
        weighted = zip(F.vertex_dims, rows, strict=True)
        lines = (" ".join(map(str, [dim, *row])) for dim, row in weighted)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph.metis"
            path.write_text("\n".join([f"{F.n_vertices} {graph.nnz // 2} 10", *lines, ""]))
            self.graph = kaminpar.load_graph(str(path), kaminpar.GraphFileFormat.METIS)

    def __call__(self):
        """Return the labels computed with the fast preset on one thread."""
        solver = self.kaminpar.KaMinPar(1, self.kaminpar.fast_context())
        return np.asarray(solver.compute_partition(self.graph, self.n_clusters))


# ---------------------------------------------------------------- local modes


def internal_laplacian(F, P):
    """Return the direct sum of all L_a in the order of C^0, as delta* delta over internal edges."""
    ends = P.labels[F.edges]
    return _gram(
        coboundary_csr(F)[np.flatnonzero(np.repeat(ends[:, 0] == ends[:, 1], F.edge_dims))]
    )


def _gram(delta):
    return scipy.sparse.csr_array(delta.T @ delta)


def dense_blocks(M, internal, chosen):
    """Return L_a of the chosen clusters as dense matrices.

    They are extracted from the direct sum without a loop over its entries.
    """
    F, clusters = M.sheaf, M.clusters
    cluster = np.repeat(clusters.labels, F.vertex_dims)
    inside = np.arange(F.dim_c0) - np.repeat(F.vertex_offsets[:-1], F.vertex_dims)
    local = np.repeat(clusters.local_offsets, F.vertex_dims) + inside
    squares = np.zeros(len(clusters.dims), np.int64)
    squares[chosen] = clusters.dims[chosen] ** 2
    starts = np.cumsum(squares) - squares
    entries = internal[np.flatnonzero(squares[cluster])].tocoo()
    rows, columns = np.flatnonzero(squares[cluster])[entries.coords[0]], entries.coords[1]
    a = cluster[rows]
    flat = np.zeros(squares.sum())
    flat[starts[a] + local[rows] * clusters.dims[a] + local[columns]] = entries.data
    return [flat[starts[a] : starts[a] + squares[a]].reshape(clusters.dims[a], -1) for a in chosen]


def scipy_modes(blocks, rank):
    """Compute the lowest modes of each block in a loop, with one BLAS thread."""
    with one_thread():
        return [
            scipy.linalg.eigh(
                A, subset_by_index=[0, min(rank, len(A)) - 1], driver="evr", check_finite=False
            )
            for A in blocks
        ]


def by_size(blocks):
    """Stack blocks of equal size; return the indices and the stack of each size."""
    sizes = np.array([len(A) for A in blocks])
    groups = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
    return [(group, np.stack([blocks[i] for i in group])) for group in groups]


def batched_modes(stacks):
    """Compute all modes of all blocks with one call for each size, with one BLAS thread."""
    with one_thread():
        return [np.linalg.eigh(stack) for _, stack in stacks]


class SlicedModes:
    """The lowest eigenvalues by straightforward code: slice delta, multiply, call eigh.

    The lists of rows and columns are computed in advance.
    """

    def __init__(self, F, P, chosen, rank):
        ends = P.labels[F.edges]
        edge_cluster = np.repeat(np.where(ends[:, 0] == ends[:, 1], ends[:, 0], -1), F.edge_dims)
        vertex_cluster = np.repeat(P.labels, F.vertex_dims)
        self.parts = [
            (np.flatnonzero(edge_cluster == a), np.flatnonzero(vertex_cluster == a)) for a in chosen
        ]
        self.delta, self.rank = sc.coboundary(F), rank

    def __call__(self):
        """Return the eigenvalues of each cluster, computed with one BLAS thread."""
        values = []
        with one_thread():
            for rows, columns in self.parts:
                part = self.delta[rows][:, columns].toarray()
                A = part.T @ part
                last = min(self.rank, len(A)) - 1
                values.append(scipy.linalg.eigh(A, subset_by_index=[0, last], eigvals_only=True))
        return values


# ---------------------------------------------------------------- coarse operator, full set-up


def triple_product(R, L):
    """Return R* (L R)."""
    return R.T @ (L @ R)


def prolongation_bsr(M):
    """Return R with d x r blocks, if all vertex stalks have dimension d and all clusters rank r."""
    d, r = int(M.sheaf.vertex_dims[0]), int(M.ranks[0])
    data, indices = M.prolongation.data.reshape(-1, d, r), M.partition.labels
    return scipy.sparse.bsr_array(
        (data, indices, np.arange(len(indices) + 1)), shape=M.prolongation.shape
    )


class SmoothedAggregation:
    """Set-up of pyamg's smoothed aggregation for a given L, with constants as near-kernel."""

    def __init__(self, pyamg, F, L):
        self.solver = pyamg.smoothed_aggregation_solver
        if L.format == "bsr":
            self.L, d = scipy.sparse.bsr_matrix(L), int(F.vertex_dims[0])
        else:
            self.L, d = scipy.sparse.csr_matrix(L), 1
        self.B = np.kron(np.ones((L.shape[0] // d, 1)), np.eye(d))

    def __call__(self):
        """Return the hierarchy."""
        return self.solver(self.L, B=self.B)
