"""Local eigenproblems of all clusters, dense or sparse, and their scaling.

Maps are scaled by powers of two, so that ranks and kernels do not depend on the sizes of maps.
"""

import itertools
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.dense import power_of_two, svd_workspace, workspace, worth_reducing
from sheafcoarsen._support import linalg, ragged, threads
from sheafcoarsen.modes.local_operators import LocalOperator
from sheafcoarsen.modes.prolongation import Prolongation, block_layout, block_rows
from sheafcoarsen.modes.result import LocalModes
from sheafcoarsen.operators import Factors, coboundary, laplacian, lowest_pairs
from sheafcoarsen.partition import Clusters, Partition, clusters_of
from sheafcoarsen.ranks import Rule, Spectra
from sheafcoarsen.sheaf import CellularSheaf, both_ends, edge_subset, sheaf_like

SPARSE_ABOVE, SPARSE_SHARE = 800, 20
"""Dimensions of a cluster, in all and per wanted mode, above which the sparse method is faster."""

MAX_DENSE = 12_000
"""Maximum dimension of a cluster or patch whose operator is stored as a dense matrix.

At this dimension n, the workspace for modes, 5 n^2 numbers, takes 5.8 GB in double precision, and
the one for kernels, 9 to 11 n^2 numbers, 10 to 13 GB.
"""

SERIAL_BELOW = 2e6
"""Sum of N_a^3 over all clusters below which a single thread is used."""


class Whole(NamedTuple):
    """Global decisions that make results on part of a sheaf equal to those on the whole sheaf."""

    spectra: bool  # the value of `worth_reducing` for computing spectra
    modes: bool  # the value of `worth_reducing` for computing modes

    @classmethod
    def of(cls, dims: np.ndarray, ranks: np.ndarray | None) -> "Whole":
        """Return the global decisions for clusters with given dimensions and mode counts."""
        modes = False
        if ranks is not None:
            wanted = np.minimum(ranks + 1, dims)
            modes = worth_reducing(np.where(is_large(dims, wanted), 0, dims), wanted)
        return cls(worth_reducing(dims, 1), modes)


def is_large(dims: Any, wanted: Any) -> Any:
    """Return whether the sparse method is faster for clusters of given dimensions, elementwise."""
    return (dims > SPARSE_ABOVE) & (SPARSE_SHARE * wanted <= dims)


def check_dense(dims: np.ndarray, why: str) -> None:
    """Raise if a cluster is too large for a dense matrix."""
    if dims.max(initial=0) > MAX_DENSE:
        a = int(dims.argmax())
        raise ValueError(
            f"cluster {a} has dimension {dims[a]}; {why} requires dense matrices, which are "
            f"limited to dimension {MAX_DENSE}: use more clusters, or retain few modes with an "
            f"integer `rank`"
        )


class LocalProblems:
    """Local eigenproblems of all clusters, solved in ranges, each with its own workspace.

    If the sheaf is part of a larger one, ``whole`` holds the decisions for the larger one.
    """

    whole: Whole | None = None

    def __init__(
        self,
        sheaf: CellularSheaf,
        P: Partition,
        clusters: Clusters,
        operator: LocalOperator,
        progress: bool = False,
    ):
        self.sheaf, self.partition, self.clusters = sheaf, P, clusters
        self.operator, self.progress = operator, progress
        # low modes of maps in single precision would be lost to the rounding errors of L_a
        self.work, double = sheaf, np.result_type(sheaf.dtype, np.float64)
        if sheaf.dtype != double:
            maps = sheaf.tail_data.astype(double), sheaf.head_data.astype(double)
            self.work = sheaf_like(sheaf, *maps)
        self.real = np.zeros(0, sheaf.dtype).real.dtype
        self.eps = linalg.eps_of(sheaf.dtype)
        map_sizes = np.diff(sheaf.tail_offsets) + np.diff(sheaf.head_offsets)
        self.map_size = int(map_sizes.max(initial=0))

    @cached_property
    def balanced(self) -> tuple[CellularSheaf, kernels.Balanced]:
        """The result of `balance`: a sheaf with maps of similar size, and arrays for kernels."""
        return balance(self.work, self.clusters)

    @cached_property
    def balanced_coboundary(self) -> scipy.sparse.csr_array:
        """The coboundary of the balanced sheaf, computed once for all large clusters."""
        return coboundary(self.balanced[0])

    def run(
        self,
        what: str,
        dims: np.ndarray,
        kernel: Callable,
        inputs: tuple,
        allocate: Callable,
        outputs: tuple,
    ) -> None:
        """Call ``kernel(lo, hi, *inputs, allocate(lo, hi), *outputs)`` on ranges of clusters.

        One BLAS thread is used. ``dims`` are the sizes of the dense problems. The error message
        names the cluster on which LAPACK failed.
        """
        with threads.single_threaded_blas():
            failed = threads.run_ranges(
                lambda lo, hi: kernel(lo, hi, *inputs, allocate(lo, hi), *outputs),
                dims.astype(np.float64) ** 3 + 1e3,
                serial_below=SERIAL_BELOW,
                description=what,
                progress=self.progress,
            )
        for a in failed:
            if a >= 0:
                raise np.linalg.LinAlgError(
                    f"{what}: the problem of cluster {a} (dimension {dims[a]}) did not converge"
                )

    def allocate(self, dims: np.ndarray, wanted: np.ndarray, reduction: bool) -> Callable:
        """Return a function that allocates a workspace for a range of clusters."""
        dtype, size = self.work.dtype, self.map_size
        return lambda lo, hi: workspace(
            dims[lo:hi].max(), wanted[lo:hi].max(), dtype, size, reduction=reduction
        )

    def run_stacks(
        self, what: str, which: np.ndarray, kernel: Callable, allocate: Callable, out: Any
    ) -> np.ndarray:
        """Call a kernel for the matrices G_a of some clusters, and return their numbers of rows.

        G_a* G_a is the local operator. The numbers are -1 for other clusters, and the kernel may
        change them.
        """
        if not which.any():
            return np.full(len(which), -1)
        f, c, size = self.work, self.clusters, self.map_size
        halves = np.concatenate([2 * c.internal_edges, c.half_edges])
        edges, ends = halves >> 1, halves & 1
        rows = np.bincount(c.labels[f.edges[edges, ends]], f.edge_dims[edges], c.n_clusters)
        rows, dims = np.where(which, rows, -1).astype(np.int64), np.where(which, c.dims, 0)
        self.run(
            what,
            dims,
            kernel,
            ((f.arrays, self.balanced[1]), c, rows, self.eps),
            lambda lo, hi: allocate(rows[lo:hi].max(), dims[lo:hi].max(), f.dtype, size),
            (out,),
        )
        return rows

    def spectra(self, rule: Rule) -> Spectra:
        """Return the spectra that a rule needs."""
        f, c, K = self.work.arrays, self.clusters, self.clusters.n_clusters
        if rule.needs_scores or rule.needs_kernels:
            check_dense(c.dims, "a rule that looks at whole spectra")
        starts = ragged.offsets(c.dims)
        count = int(starts[-1]) if rule.needs_scores else 0
        out, ties = kernels.SpectraOut(starts, np.zeros(count), np.zeros(K)), np.zeros(0)
        if rule.needs_scores:
            reduction = (self.whole or Whole.of(c.dims, None)).spectra
            allocate = self.allocate(c.dims, np.ones(K), reduction)
            self.run("local spectra", c.dims, kernels.local_spectra, (f, c), allocate, (out,))
            # rounding must not order the eigenvalues that are zero
            zero = np.repeat(linalg.zero_energy(c.dims, self.sheaf.dtype, out.norms), c.dims)
            out.scores[out.scores <= zero] = 0
            ties = np.repeat(np.sqrt(self.eps) * out.norms, c.dims)
        dims = self.kernel_dims(np.full(K, rule.needs_kernels))
        return Spectra(c.dims, starts, out.scores, dims, ties)

    def kernel_dims(self, which: np.ndarray) -> np.ndarray:
        """Return the dimensions of the kernels of some clusters, and 0 for the others."""
        dims = np.zeros(self.clusters.n_clusters, np.int64)
        self.run_stacks("local kernels", which, kernels.kernel_dims, svd_workspace, dims)
        return dims

    def modes(
        self,
        ranks: np.ndarray,
        *,
        singular: bool,
        layout: Prolongation | None = None,
        over_budget: int = 0,
    ) -> LocalModes:
        """Return the lowest modes: eigenvectors, or if ``singular``, right singular vectors.

        Singular vectors give exact kernels, which are not tied, however small the next eigenvalue.
        ``layout`` is an R of the same shape, whose index arrays are shared; ``over_budget`` is
        stored in the result.
        """
        sheaf, c, K = self.sheaf, self.clusters, self.clusters.n_clusters
        indptr = block_rows(sheaf, c, ranks) if layout is None else layout.indptr
        starts, entries = ragged.offsets(ranks), np.empty(indptr[-1], self.work.dtype)
        out = kernels.ModesOut(
            starts=starts,
            scores=np.empty(int(starts[-1])),
            following=np.full(K, np.inf),
            norms=np.zeros(K),
            tied=np.zeros(K, np.bool_),
            blocks=kernels.Blocks(indptr, entries, ragged.read_only(ranks)),
        )
        settings = self.compute(singular, out)
        if singular:
            out.tied[out.tied & (self.kernel_dims(out.tied) == ranks)] = False
        # the indices are not computed before all workspaces are freed
        indices = block_layout(sheaf, c, ranks, indptr)[1] if layout is None else layout.indices
        data = entries.astype(sheaf.dtype, copy=False)
        R = Prolongation(sheaf, c, ranks, indptr, indices, data)
        scores, following, norms = (
            ragged.read_only(values.astype(self.real, copy=False))
            for values in (out.scores, out.following, out.norms)
        )
        modes = object.__new__(LocalModes)  # skip validation: the arrays were computed here
        modes.__dict__.update(
            R=R,
            sheaf=R.sheaf,
            clusters=R.clusters,
            ranks=R.ranks,
            prolongation=R.matrix,
            partition=self.partition,
            local_operator=self.operator.name,
            scores=scores,
            next_eigenvalues=following,
            tied=ragged.read_only(out.tied),
            operator_norms=norms,
            over_budget=over_budget,
            **settings,
        )
        return modes

    def compute(self, singular: bool, out: kernels.ModesOut) -> dict:
        """Compute the modes into ``out`` and return the settings of the result."""
        f, c, ranks = self.work, self.clusters, out.blocks.ranks
        settings = {"singular": singular, "rings": None, "target": None, "pilot": False}
        if singular:
            self.singular_modes(np.ones(c.n_clusters, bool), out)
            return settings
        wanted = np.minimum(ranks + 1, c.dims)
        large = is_large(c.dims, wanted)
        check_dense(np.where(large, 0, c.dims), "retaining this fraction of its modes")
        delta = coboundary(f) if large.any() else None
        with threads.single_threaded_blas():
            for a in np.flatnonzero(large).tolist():  # few clusters exceed SPARSE_ABOVE
                try:
                    self.large_modes(a, delta, out)
                except np.linalg.LinAlgError as error:
                    n = c.dims[a]
                    if n > MAX_DENSE:
                        message = f"local modes of cluster {a} (dimension {n}): {error}"
                        raise np.linalg.LinAlgError(message) from None
                    large[a] = False
        dense = np.where(large, 0, c.dims)
        allocate = self.allocate(dense, wanted, (self.whole or Whole.of(c.dims, ranks)).modes)
        inputs = f.arrays, c, large, self.eps
        self.run("local modes", dense, kernels.local_modes, inputs, allocate, (out,))
        self.mend_zero_modes(out, large)
        return settings

    def mend_zero_modes(self, out: kernels.ModesOut, large: np.ndarray) -> None:
        """Replace inaccurate modes of eigenvalue 0, except in ``large`` clusters.

        Eigenvectors have errors of eps norm(L_a) / lambda, vectors of the kernel of delta_a of eps
        times the root of this ratio, with lambda the first positive eigenvalue. Coarse maps that
        are zero in exact arithmetic would consist of these errors, and global sections would be
        lost.
        """
        ranks, dims = out.blocks.ranks, self.clusters.dims
        levels = linalg.zero_energy(dims, self.sheaf.dtype, out.norms)
        cluster = np.repeat(np.arange(len(ranks)), ranks)
        zeros = np.bincount(cluster[out.scores <= levels[cluster]], minlength=len(ranks))
        first = np.append(out.scores, 0)[np.minimum(out.starts[:-1] + zeros, len(out.scores))]
        positive = np.where(zeros < ranks, first, out.following)
        doubtful = (zeros > 0) & (out.norms > 1e2 * positive) & ~large
        # else a multiple eigenvalue 0, whose cut is tied, or errors below those of `rounding_noise`
        resolved = (positive > levels) & (out.norms > 10 * dims.clip(1) * positive)
        if not doubtful.any():
            return
        labels, edges, count = self.partition.labels, self.work.edges.T, np.count_nonzero(doubtful)
        share = np.logical_or(*doubtful[labels][edges]).mean()  # of the maps; balancing copies them
        n_batches = 1 + int(min(count / 16, 16 * share))  # so that few maps are copied at a time
        batch = (doubtful * (1 + n_batches * np.cumsum(doubtful) // (count + 1))).astype(np.int8)
        tail, head = batch[labels][edges]
        with threads.bar(n_batches, "local kernels", self.progress) as shown:
            for k in range(1, n_batches + 1):
                F = edge_subset(self.work, np.flatnonzero((tail == k) | (head == k)))
                c = self.operator.index(F, clusters_of(F, self.partition))
                part = LocalProblems(F, self.partition, c, self.operator)
                part.eps = self.eps
                which = (batch == k) & (part.balanced[1].uneven | resolved)
                work = which, kernels.kernel_modes, kernel_workspace, (zeros, out)
                part.singular_modes(part.run_stacks("local kernels", *work) >= 0, out)
                shown.update()

    def singular_modes(self, which: np.ndarray, out: kernels.ModesOut) -> None:
        """Compute modes as singular vectors; kernels of uneven clusters use the balanced sheaf."""
        self.run_stacks("local modes", which, kernels.singular_modes, svd_workspace, out)
        if which.any():
            uneven = which & self.balanced[1].uneven & (out.blocks.ranks > 0)
            work = kernels.kernel_modes, kernel_workspace, (np.full(len(which), -1), out)
            self.run_stacks("local kernels", uneven, *work)

    def large_modes(self, a: int, delta: Any, out: kernels.ModesOut) -> None:
        """Compute the modes of one large cluster by the sparse method."""
        c, f, r = self.clusters, self.work, int(out.blocks.ranks[a])
        inner = c.internal_edges[c.internal_ptr[a] : c.internal_ptr[a + 1]]
        crossing = c.half_edges[c.half_ptr[a] : c.half_ptr[a + 1]] >> 1
        members = c.members[c.member_ptr[a] : c.member_ptr[a + 1]]
        rows = ragged.range_of_blocks(f.edge_offsets, np.concatenate([inner, crossing]))
        columns = ragged.range_of_blocks(f.vertex_offsets, members)
        G = delta[rows][:, columns]  # G* G is the local operator
        unit = power_of_two(float(np.abs(G.data).max(initial=0)))
        # divide as reals: numpy's complex division multiplies by a reciprocal, which is less exact
        G.data = (G.data.view(np.float64) / unit).view(G.dtype)
        A = G.conj().T.tocsr() @ G
        n, eps, top = A.shape[0], linalg.eps_of(A.dtype), linalg.inf_norm(A)
        if top == 0:  # A = 0, so every vector is an eigenvector
            w, Z = np.zeros(r + 1), np.eye(n, r)
        else:
            w, Z = lowest_sparse(A, r + 1, eps)
            Z = Z[:, :r]
            if w[:r].min(initial=top) <= n * eps * top and self.balanced[1].uneven[a]:
                G = self.balanced_coboundary[rows][:, columns]
                units = np.repeat(self.balanced[1].units[members], f.vertex_dims[members])
                Z = with_balanced_kernel(G, units, A, Z, eps)
        w = w.clip(min=0)
        out.scores[out.starts[a] : out.starts[a + 1]] = w[:r] * unit * unit
        out.following[a] = w[r] * unit * unit
        out.norms[a] = top * unit * unit
        out.tied[a] = r > 0 and w[r] - w[r - 1] <= np.sqrt(self.eps) * top
        vectors = np.ascontiguousarray(Z.T, dtype=out.blocks.data.dtype).reshape(-1)
        kernels.put_modes(a, n, f.arrays, c, vectors, self.eps, out.blocks)


def kernel_workspace(
    rows: int,
    n: int,
    dtype: np.dtype,
    map_size: int,
    *,
    reduction: bool = False,
    least_rows: int = 0,
) -> kernels.KernelWorkspace:
    """Allocate a workspace for null spaces of matrices up to rows x n; delta may be higher."""
    rows, n = int(rows), int(n)
    return kernels.KernelWorkspace(
        s=svd_workspace(max(rows, n), n, dtype, map_size, reduction=reduction),
        a=np.empty(n * n, dtype),
        delta=np.empty(max(rows, least_rows) * n, dtype),
        basis=np.empty(n * n, dtype),
        other=np.empty(n * n, dtype),
    )


def balance(sheaf: CellularSheaf, clusters: Clusters) -> tuple[CellularSheaf, kernels.Balanced]:
    """Return a sheaf whose map entries are of order 1, and the units of its local sections.

    Columns are multiplied by the sizes of local sections, so that those of the new sheaf have
    entries of about one size, and then the rows of every edge by one over its largest entry. The
    ends of crossing edges, of which a local operator contains one alone, are scaled separately.
    """
    labels, (u, v) = clusters.labels, sheaf.edges.T
    internal = labels[u] == labels[v]
    # exponents of the powers of two above the largest entries of maps, or -inf
    exponents = np.full((sheaf.n_edges, 2), -np.inf)
    for end, (_, data, starts) in enumerate(both_ends(sheaf)):
        full = np.flatnonzero(np.diff(starts))
        largest = np.maximum.reduceat(np.abs(data), starts[full])
        exponents[full, end] = np.where(largest > 0, np.frexp(largest)[1], -np.inf)
    sizes = _section_exponents(sheaf.edges, exponents, clusters)
    rows = exponents + sizes[sheaf.edges]
    rows[internal] = rows[internal].max(axis=1, keepdims=True)
    low, high = np.full(clusters.n_clusters, np.inf), np.full(clusters.n_clusters, -np.inf)
    used = np.isfinite(rows)
    used[internal, 1] = False
    if not len(clusters.half_edges):
        used[clusters.crossing_edges] = False
    cluster, row = labels[sheaf.edges[used]], rows[used]
    np.minimum.at(low, cluster, row)
    np.maximum.at(high, cluster, row)
    uneven = high > low + 2  # up to a ratio of 4, singular vectors lose at most two bits
    uneven[labels[sizes < 0]] = True
    shifts = (sizes[sheaf.edges] - np.where(np.isfinite(rows), rows, 0)).astype(np.int32)
    maps = []
    for end, (_, data, starts) in enumerate(both_ends(sheaf)):
        numbers = data.view(np.float64)  # two for each complex entry
        counts = np.diff(starts) * (data.itemsize // numbers.itemsize)
        maps.append(np.ldexp(numbers, np.repeat(shifts[:, end], counts)).view(data.dtype))
    scaled = sheaf_like(sheaf, *maps)
    units = np.ldexp(1.0, sizes.astype(np.int32))
    return scaled, kernels.Balanced(scaled.arrays, units, uneven)


def _section_exponents(edges: np.ndarray, exponents: np.ndarray, clusters: Clusters) -> np.ndarray:
    """Return exponents b of the sizes of local sections, shape (n,), at most 0 in every cluster.

    On a section both maps of an edge are equal, so that s + b_u = t + b_v for maps of sizes 2^s and
    2^t. Where s and t differ by more than 3 in some edge of a cluster, b solves these equations by
    least squares; elsewhere it is 0.
    """
    labels, (u, v) = clusters.labels, edges.T
    used = (labels[u] == labels[v]) & (u != v) & np.isfinite(np.add(*exponents.T))
    differences = np.subtract(*np.where(used[:, None], exponents, 0).T)
    skewed = np.zeros(clusters.n_clusters, bool)
    skewed[labels[u[np.abs(differences) > 3]]] = True
    used &= skewed[labels[u]]
    if not used.any():
        return np.zeros(len(labels))
    vertices, ends = np.unique(edges[used], return_inverse=True)
    ends, d, n = ends.reshape(-1, 2), differences[used], len(vertices)
    L = laplacian(CellularSheaf.constant(ends, n_vertices=n))
    b = np.bincount(ends[:, 1], d, minlength=n) - np.bincount(ends[:, 0], d, minlength=n)
    # a shift for each vertex, so that a cluster does not depend on others
    b = Factors(L + scipy.sparse.diags_array(1e-10 * L.diagonal()), 0.0).solve(b)
    largest, cluster = np.full(clusters.n_clusters, -np.inf), labels[vertices]
    np.maximum.at(largest, cluster, b)
    out = np.zeros(len(labels))
    out[vertices] = np.rint(b - largest[cluster]).clip(-1000, 0)
    return out


# ---------------------------------------------------------------- large clusters


def with_balanced_kernel(
    G: scipy.sparse.csr_array,
    units: np.ndarray,
    A: scipy.sparse.csr_array,
    Z: np.ndarray,
    eps: float,
) -> np.ndarray:
    """Return the lowest modes Z of A, with a kernel accurate relative to the maps of every edge.

    ``units`` times the kernel of G is that of A, and G has maps with entries of about 1. Singular
    values up to max(shape) eps norm(G) count as zero. Z is returned if it is more accurate, as for
    sections that grow at different rates.
    """
    A_G, r = G.conj().T.tocsr() @ G, Z.shape[1]
    level = max(G.shape) * eps * np.sqrt(linalg.inf_norm(A_G))
    K = lowest_sparse(A_G, r + 1, eps)[1]
    _, sigma, V = scipy.linalg.svd(G @ K, full_matrices=False)
    K = (K @ V[sigma <= level].conj().T)[:, :r]
    # eigenvectors have errors of eps norm(A_G) / lambda with the first positive eigenvalue lambda;
    # a step of least squares leaves eps times the root of this ratio
    K -= Factors(A_G, level * np.sqrt(linalg.inf_norm(A_G))).solve(G.conj().T @ (G @ K))
    K *= units[:, None]
    # multiplying by the inverse triangular factor keeps the accuracy of every row of K
    factor = scipy.linalg.qr(K, mode="r")[0][: K.shape[1]]
    K = scipy.linalg.solve_triangular(factor, K.T, trans="T").T
    if np.linalg.norm(A @ K, axis=0).max(initial=0) > 2 * len(K) * eps * linalg.inf_norm(A):
        return Z
    others = scipy.linalg.svd(Z - K @ (K.conj().T @ Z), full_matrices=False)[0]
    others = others[:, : r - K.shape[1]]
    return np.hstack([K, others @ scipy.linalg.eigh(others.conj().T @ (A @ others))[1]])


def lowest_sparse(
    A: scipy.sparse.csr_array, count: int, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``count`` lowest eigenpairs of a sparse semidefinite matrix, ascending.

    LOBPCG is preconditioned by factors of A + s I, and inverse iteration then reduces residuals to
    at most 2 n eps norm(A, inf). Both are repeated with other shifts from the vectors found so far,
    before LinAlgError is raised.
    """
    n, norm = A.shape[0], linalg.inf_norm(A)
    level = n * eps * norm
    X = linalg.normal(np.random.default_rng(0), (n, count + max(8, count // 4)), A.dtype)
    X = scipy.linalg.qr(X, mode="economic")[0]
    # perturbed zeros hide other eigenvalues from a smaller shift, which finds eigenvalues below it
    for shift, target in itertools.product((1e-10 * norm, level), repeat=2):
        solve, X = Factors(A, shift).solve, np.ascontiguousarray(X)
        targets = partial(np.full_like, fill_value=target)
        X = lowest_pairs(A.__matmul__, solve, X, count, targets).vectors
        for _ in range(12):
            X = scipy.linalg.qr(solve(X), mode="economic")[0]
            Y = A @ X
            values, rotation = scipy.linalg.eigh(X.conj().T @ Y)
            X, Y = X @ rotation, Y @ rotation
            worst = float(np.linalg.norm(Y - X * values, axis=0)[:count].max())
            if worst <= 2 * level and len(values) >= count:
                return values[:count], np.ascontiguousarray(X[:, :count])
    raise np.linalg.LinAlgError(f"residual {worst:.3g} after inverse iteration")
