"""Local eigenproblems of all clusters, and their scaling.

Maps are scaled by powers of two, so that ranks and kernels do not depend on the sizes of maps.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.dense import power_of_two, svd_workspace, workspace, worth_reducing
from sheafcoarsen._support import linalg, ragged, threads
from sheafcoarsen.modes.local_operators import LocalOperator
from sheafcoarsen.modes.prolongation import Prolongation, block_layout
from sheafcoarsen.modes.result import LocalModes
from sheafcoarsen.modes.sparse import (
    SPARSE_ABOVE,
    SPARSE_SHARE,
    lowest_sparse,
    with_balanced_kernel,
)
from sheafcoarsen.operators import Factors, coboundary, laplacian
from sheafcoarsen.partition import Clusters, Partition, clusters_of
from sheafcoarsen.ranks import Rule, Spectra
from sheafcoarsen.sheaf import CellularSheaf, edge_subset, sheaf_like

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

    def stack_rows(self) -> np.ndarray:
        """Return the number of rows of every G_a, shape (K,); G_a* G_a is the local operator."""
        f, c = self.sheaf, self.clusters
        halves = np.concatenate([2 * c.internal_edges, c.half_edges])
        edges, ends = halves >> 1, halves & 1
        rows = np.bincount(c.labels[f.edges[edges, ends]], f.edge_dims[edges], c.n_clusters)
        return rows.astype(np.int64)

    def run(self, what: str, task: Callable, dims: np.ndarray, allocate: Callable) -> None:
        """Call ``task(lo, hi, allocate(lo, hi))`` on ranges of clusters, with one BLAS thread.

        ``dims`` are the sizes of the dense problems. The error message names the cluster on which
        LAPACK failed.
        """
        with threads.single_threaded_blas():
            failed = threads.run_ranges(
                lambda lo, hi: task(lo, hi, allocate(lo, hi)),
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
        return lambda lo, hi: workspace(
            int(dims[lo:hi].max()),
            int(wanted[lo:hi].max()),
            self.work.dtype,
            self.map_size,
            reduction=reduction,
        )

    def run_stacks(
        self, what: str, which: np.ndarray, kernel: Callable, allocate: Callable, out: Any
    ) -> np.ndarray:
        """Call a kernel for the matrices G_a of some clusters, and return their numbers of rows.

        The numbers are -1 for other clusters, and the kernel may change them.
        """
        c, eps = self.clusters, self.eps
        rows, dims = np.where(which, self.stack_rows(), -1), np.where(which, c.dims, 0)
        if which.any():
            sheaves = self.work.arrays, self.balanced[1]
            self.run(
                what,
                lambda lo, hi, s: kernel(lo, hi, sheaves, c, rows, eps, s, out),
                dims,
                lambda lo, hi: allocate(
                    rows[lo:hi].max(), dims[lo:hi].max(), self.work.dtype, self.map_size
                ),
            )
        return rows

    def spectra(self, rule: Rule) -> Spectra:
        """Return the spectra that a rule needs."""
        f, c, eps = self.work.arrays, self.clusters, self.eps
        if rule.needs_scores or rule.needs_kernels:
            check_dense(c.dims, "a rule that looks at whole spectra")
        K = c.n_clusters
        starts = ragged.offsets(c.dims)
        count = int(starts[-1]) if rule.needs_scores else 0
        out = kernels.SpectraOut(starts, np.zeros(count), np.zeros(K))
        if rule.needs_scores:
            self.run(
                "local spectra",
                lambda lo, hi, s: kernels.local_spectra(lo, hi, f, c, s, out),
                c.dims,
                self.allocate(c.dims, np.ones(K), (self.whole or Whole.of(c.dims, None)).spectra),
            )
            # rounding must not order the eigenvalues that are zero
            zero = np.repeat(linalg.zero_energy(c.dims, self.sheaf.dtype, out.norms), c.dims)
            out.scores[out.scores <= zero] = 0
        dims = self.kernel_dims(np.full(K, rule.needs_kernels))
        ties = np.sqrt(eps) * out.norms
        ties = np.repeat(ties, c.dims) if rule.needs_scores else ties[:0]
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
        K = self.clusters.n_clusters
        if layout is None:
            indptr, indices = block_layout(self.sheaf, self.clusters, ranks)
        else:
            indptr, indices = layout.indptr, layout.indices
        starts = ragged.offsets(ranks)
        out = kernels.ModesOut(
            starts=starts,
            scores=np.empty(int(starts[-1])),
            following=np.full(K, np.inf),
            norms=np.zeros(K),
            tied=np.zeros(K, np.bool_),
            blocks=kernels.Blocks(
                indptr, np.empty(len(indices), self.work.dtype), ragged.read_only(ranks)
            ),
        )
        settings = self.compute(singular, out)
        if singular:
            out.tied[out.tied & (self.kernel_dims(out.tied) == ranks)] = False
        data = out.blocks.data.astype(self.sheaf.dtype, copy=False)
        R = Prolongation(self.sheaf, self.clusters, ranks, indptr, indices, data)
        modes = object.__new__(LocalModes)  # skip validation: the arrays were computed here
        modes.__dict__.update(
            R=R,
            sheaf=R.sheaf,
            clusters=R.clusters,
            ranks=R.ranks,
            prolongation=R.matrix,
            partition=self.partition,
            local_operator=self.operator.name,
            scores=ragged.read_only(out.scores.astype(self.real, copy=False)),
            next_eigenvalues=ragged.read_only(out.following.astype(self.real, copy=False)),
            tied=ragged.read_only(out.tied),
            operator_norms=ragged.read_only(out.norms.astype(self.real, copy=False)),
            over_budget=over_budget,
            **settings,
        )
        return modes

    def compute(self, singular: bool, out: kernels.ModesOut) -> dict:
        """Compute the modes into ``out`` and return the settings of the result."""
        f, c, eps, ranks = self.work.arrays, self.clusters, self.eps, out.blocks.ranks
        settings = {"singular": singular, "rings": None, "target": None, "pilot": False}
        if singular:
            self.singular_modes(np.ones(c.n_clusters, bool), out)
            return settings
        wanted = np.minimum(ranks + 1, c.dims)
        large = is_large(c.dims, wanted)
        check_dense(np.where(large, 0, c.dims), "retaining this fraction of its modes")
        delta = coboundary(self.work) if large.any() else None
        with threads.single_threaded_blas():
            # a Python loop suffices: clusters larger than SPARSE_ABOVE are few
            for a in np.flatnonzero(large).tolist():
                try:
                    self.large_modes(a, delta, out)
                except np.linalg.LinAlgError:
                    if c.dims[a] > MAX_DENSE:
                        raise
                    large[a] = False
        dense = np.where(large, 0, c.dims)
        self.run(
            "local modes",
            lambda lo, hi, s: kernels.local_modes(lo, hi, f, c, large, eps, s, out),
            dense,
            self.allocate(dense, wanted, (self.whole or Whole.of(c.dims, ranks)).modes),
        )
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
        # few clusters are doubtful: balance only the maps at their vertices
        labels, edges = self.partition.labels, self.work.edges
        F = edge_subset(self.work, np.flatnonzero(doubtful[labels[edges]].any(axis=1)))
        c = self.operator.index(F, clusters_of(F, self.partition))
        part = LocalProblems(F, self.partition, c, self.operator, self.progress)
        part.eps = self.eps
        which = doubtful & (part.balanced[1].uneven | resolved)
        rows = part.run_stacks(
            "local kernels", which, kernels.kernel_modes, kernel_workspace, (zeros, out)
        )
        part.singular_modes(rows >= 0, out)

    def singular_modes(self, which: np.ndarray, out: kernels.ModesOut) -> None:
        """Compute modes as singular vectors; kernels of uneven clusters use the balanced sheaf."""
        self.run_stacks("local modes", which, kernels.singular_modes, svd_workspace, out)
        if which.any():
            uneven = which & self.balanced[1].uneven & (out.blocks.ranks > 0)
            any_dims = np.full(len(which), -1)
            self.run_stacks(
                "local kernels", uneven, kernels.kernel_modes, kernel_workspace, (any_dims, out)
            )

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
            try:
                w, Z = lowest_sparse(A, r + 1, eps)
                Z = Z[:, :r]
                if w[:r].min(initial=top) <= n * eps * top and self.balanced[1].uneven[a]:
                    G = self.balanced_coboundary[rows][:, columns]
                    Z = with_balanced_kernel(G, self.balanced[1].units[columns], A, Z, eps)
            except np.linalg.LinAlgError as error:
                raise np.linalg.LinAlgError(
                    f"local modes of cluster {a} (dimension {n}): {error}"
                ) from None
        w = w.clip(min=0)
        out.scores[out.starts[a] : out.starts[a + 1]] = w[:r] * unit * unit
        out.following[a] = w[r] * unit * unit
        out.norms[a] = top * unit * unit
        out.tied[a] = r > 0 and w[r] - w[r - 1] <= np.sqrt(self.eps) * top
        vectors = np.ascontiguousarray(Z.T, dtype=out.blocks.data.dtype).reshape(-1)
        kernels.put_modes(a, c.dims[a], f.arrays, c, vectors, self.eps, out.blocks)


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
    internal = (labels[u] == labels[v])[:, None]
    exponents = _map_exponents(sheaf)
    sizes = _section_exponents(sheaf.edges, exponents, clusters)
    rows = exponents + sizes[sheaf.edges]
    rows = np.where(internal, np.maximum(*rows.T)[:, None], rows)
    low, high = np.full(clusters.n_clusters, np.inf), np.full(clusters.n_clusters, -np.inf)
    used = np.isfinite(rows)
    used[:, 1] &= ~internal[:, 0]
    if not len(clusters.half_edges):
        used[clusters.crossing_edges] = False
    for end in (0, 1):
        cluster, row = labels[sheaf.edges[used[:, end], end]], rows[used[:, end], end]
        np.minimum.at(low, cluster, row)
        np.maximum.at(high, cluster, row)
    uneven = high > low + 2  # up to a ratio of 4, singular vectors lose at most two bits
    uneven[labels[sizes < 0]] = True
    scaled = _scaled(sheaf, sizes[sheaf.edges] - np.where(np.isfinite(rows), rows, 0))
    units = np.ldexp(1.0, np.repeat(sizes, sheaf.vertex_dims).astype(np.int32))
    return scaled, kernels.Balanced(scaled.arrays, units, uneven)


def _scaled(sheaf: CellularSheaf, exponents: np.ndarray) -> CellularSheaf:
    """Return the sheaf whose maps are multiplied by the powers 2^exponents, shape (m, 2)."""
    maps, data = ((sheaf.tail_data, sheaf.tail_offsets), (sheaf.head_data, sheaf.head_offsets)), []
    for (x, starts), shifts in zip(maps, exponents.T.astype(np.int32), strict=True):
        numbers = x.view(x.real.dtype)  # two for each complex entry
        exponent = np.repeat(shifts, np.diff(starts) * (1 + (x.dtype.kind == "c")))
        data.append(np.ldexp(numbers, exponent).view(x.dtype))
    return sheaf_like(sheaf, *data)


def _map_exponents(sheaf: CellularSheaf) -> np.ndarray:
    """Return the exponents of the powers of two above the largest entries of maps, or -inf."""
    out = np.full((sheaf.n_edges, 2), -np.inf)
    maps = ((sheaf.tail_data, sheaf.tail_offsets), (sheaf.head_data, sheaf.head_offsets))
    for end, (data, starts) in enumerate(maps):
        full = np.flatnonzero(np.diff(starts))
        if full.size:
            largest = np.maximum.reduceat(np.abs(data), starts[full])
            out[full, end] = np.where(largest > 0, np.frexp(largest)[1], -np.inf)
    return out


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
