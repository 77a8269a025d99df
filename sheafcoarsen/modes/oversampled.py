"""Local problems of oversampled modes (docs/conventions.md, section 10).

The first modes of a cluster are the sections of its patch. They are followed by the strongest
responses to sources on the border of the patch and to interior sources scaled by the target.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.dense import worth_reducing
from sheafcoarsen._support import linalg, ragged, threads
from sheafcoarsen.modes.local_operators import Internal, Oversampled
from sheafcoarsen.modes.problems import (
    MAX_DENSE,
    LocalProblems,
    balance,
    is_large,
    kernel_workspace,
    lowest_sparse,
)
from sheafcoarsen.operators import laplacian
from sheafcoarsen.partition import Clusters, Partition, clusters_of, links_of
from sheafcoarsen.ranks import Rule, Spectra, as_rule
from sheafcoarsen.sheaf import CellularSheaf

STORED_BELOW = 2**26
"""Sum of N_a^2 up to which rules that need spectra store G, so that the modes can reuse it."""


class ClusterPatches:
    """The patch T of every cluster C: C and up to ``rings`` rings of neighbours, dim T <= 2 dim C.

    The most strongly coupled neighbours are added first; the coupling of two vertices is
    norm(F_{u->e}* F_{v->e})_F, summed over the edges between them. The sheaf must be in double
    precision.
    """

    def __init__(self, sheaf: CellularSheaf, clusters: Clusters, rings: int):
        n, K = sheaf.n_vertices, clusters.n_clusters
        # rings add at most N_a vertices: each has dimension >= 1, all of them at most N_a in total
        starts = ragged.offsets(np.diff(clusters.member_ptr) + clusters.dims)
        degrees = np.bincount(sheaf.edges.reshape(-1), minlength=n)
        tails, heads = sheaf.edges.T
        low_end = np.where(degrees[tails] <= degrees[heads], tails, heads)
        low_counts = np.bincount(low_end, minlength=n)
        self.arrays = kernels.Patches(
            members=np.zeros(int(starts[-1]), np.int64),
            starts=starts,
            counts=np.empty(K, np.int64),
            dims=np.empty(K, np.int64),
            low_ptr=ragged.offsets(low_counts),
            low_edges=np.argsort(low_end, kind="stable"),
            diagonal=np.ascontiguousarray(laplacian(sheaf).diagonal().real),
        )
        links = links_of(sheaf, weights="sheaf")
        threads.run_ranges(
            lambda lo, hi: kernels.grow_patches(
                lo,
                hi,
                sheaf.vertex_dims,
                (clusters.members, clusters.member_ptr, clusters.dims),
                links,
                rings,
                self.arrays,
                (np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)),
            ),
            np.diff(starts) + 1,
            serial_below=1e5,
        )
        members, counts, self.dims = self.arrays.members, self.arrays.counts, self.arrays.dims
        low_rows = np.bincount(low_end, sheaf.edge_dims, minlength=n).astype(np.int64)
        # upper bounds of the number of edges and of rows of delta_T of every patch
        self.edge_bounds, self.row_bounds = (
            reach[starts[:-1] + counts] - reach[starts[:-1]]
            for reach in (
                ragged.offsets(of_vertex[members]) for of_vertex in (low_counts, low_rows)
            )
        )
        self.dtype, self.n_vertices, self.clusters = sheaf.dtype, n, clusters

    def allocate(self, lo: int, hi: int, map_size: int, reduction: bool) -> kernels.PatchWorkspace:
        """Allocate a workspace for the patches of clusters lo to hi - 1."""
        N, n = int(self.dims[lo:hi].max()), int(self.clusters.dims[lo:hi].max())
        rows = int(self.row_bounds[lo:hi].max())
        index = kernels.PatchIndex(
            dims=np.zeros(1, np.int64),
            internal_edges=np.empty(int(self.edge_bounds[lo:hi].max()), np.int64),
            internal_ptr=np.zeros(2, np.int64),
            local_offsets=np.full(self.n_vertices, -1, np.int64),
        )
        shared = index._asdict() | {
            "half_edges": np.zeros(0, np.int64),
            "half_ptr": np.zeros(2, np.int64),
        }
        views = {name: ragged.read_only(array[:]) for name, array in shared.items()}
        return kernels.PatchWorkspace(
            t=index,
            c=self.clusters._replace(**views),
            kernel=kernel_workspace(
                rows, N, self.dtype, map_size, reduction=reduction, least_rows=2 * n
            ),
            border=np.empty(N, np.int64),
        )


class OversampledProblems(LocalProblems):
    """Local problems of oversampled modes; ``found`` is the result of an earlier `pilot_target`."""

    operator: Oversampled

    def __init__(
        self,
        sheaf: CellularSheaf,
        P: Partition,
        clusters: Clusters,
        operator: Oversampled,
        progress: bool = False,
        found: float | None = None,
    ):
        super().__init__(sheaf, P, clusters, operator, progress)
        self.patches = ClusterPatches(self.work, clusters, operator.rings)
        if self.patches.dims.max(initial=0) > MAX_DENSE:
            a = int(self.patches.dims.argmax())
            raise ValueError(
                f"the patch of cluster {a} has dimension {self.patches.dims[a]} (the cluster "
                f"itself {clusters.dims[a]}), but oversampled modes require dense matrices, which "
                f"are limited to dimension {MAX_DENSE}: use more clusters"
            )
        self.target = found if operator.target is None else operator.target
        if self.target is None:
            self.target = pilot_target(self.work, P)
        whole = Partition(np.zeros(self.work.n_vertices, np.int64))
        even, (_, units, uneven) = balance(self.work, clusters_of(self.work, whole))
        maps = (even if uneven.any() else self.work).arrays
        self.problems = kernels.PatchProblems(
            f=self.work.arrays,
            even=(maps.tail_data, maps.head_data),
            units=units,
            skewed=bool((units != 1).any()),
            dims=clusters.dims,
            p=self.patches.arrays,
            target=float(self.target),
            eps=self.eps,
            least=float(np.finfo(self.real).tiny),
        )
        self.known = self.allocate_responses(np.zeros(0, np.int64))

    def allocate_responses(self, dims: np.ndarray) -> kernels.Responses:
        """Allocate memory for the responses of clusters of given dimensions."""
        starts = ragged.offsets(dims**2)
        return kernels.Responses(
            starts=starts,
            matrices=np.empty(int(starts[-1]), self.work.dtype),
            kernels=np.zeros(self.clusters.n_clusters, np.int64),
            numbers=np.empty((len(dims), 3)),
        )

    def spectra(self, rule: Rule) -> Spectra:
        """Return the spectra that a rule needs."""
        c = self.clusters
        starts = ragged.offsets(c.dims)
        if not (rule.needs_scores or rule.needs_kernels):
            none = np.zeros(0)
            return Spectra(c.dims, starts, none, 0 * c.dims, none)
        if np.square(c.dims, dtype=np.float64).sum() <= STORED_BELOW:
            self.known = self.allocate_responses(c.dims)
        known, scores = self.known, np.zeros(int(starts[-1]))
        out, reduction = kernels.SpectraOut(starts, scores, np.zeros(0)), worth_reducing(c.dims, 1)
        self.run_patches("local spectra", kernels.oversampled_spectra, reduction, (out, known))
        if self.problems.skewed and known.kernels.any():  # the modes also require K_C
            self.known = self.allocate_responses(np.zeros(0, np.int64))
        return Spectra(c.dims, starts, scores, known.kernels, np.sqrt(self.eps) * scores)

    def run_patches(self, what: str, kernel: Callable, reduction: bool, outputs: tuple) -> None:
        """Call a kernel for the patches of all clusters."""
        T = self.patches
        allocate = partial(T.allocate, map_size=self.map_size, reduction=reduction)
        self.run(what, T.dims, kernel, (self.problems,), allocate, outputs)

    def compute(self, singular: bool, out: kernels.ModesOut) -> dict:
        """Compute the modes into ``out`` and return the settings of the result."""
        dims = self.clusters.dims
        reduction = worth_reducing(dims, np.minimum(out.blocks.ranks + 1, dims))
        self.run_patches("local modes", kernels.oversampled_modes, reduction, (self.known, out))
        return {
            "singular": False,
            "rings": self.operator.rings,
            "target": self.target,
            "pilot": self.operator.target is None,
        }


def pilot_target(sheaf: CellularSheaf, P: Partition) -> float:
    """Return an upper estimate of the 10th positive eigenvalue of L, or 0 if L = 0.

    It is the 10th positive eigenvalue of R* L R, with N_a / 20 internal modes per cluster and at
    least its local kernel; it is an upper bound by interlacing. If R* L R has fewer positive
    eigenvalues, the largest is returned; if it has none, norm(L, inf).
    """
    local = LocalProblems(sheaf, P, clusters_of(sheaf, P), Internal())
    dims, eps = local.clusters.dims, linalg.eps_of(sheaf.dtype)
    # keep whole multiplets, such as kernels: a cut through one would be decided by rounding
    least, number = -(-dims // 20), 10
    rule = as_rule(least, len(dims)).whole_multiplets()
    most = least + max(int(sheaf.vertex_dims.max(initial=0)) - 1, 1)
    while True:
        modes = local.modes(np.minimum(most, dims), singular=False)
        ties = np.repeat(np.sqrt(eps) * modes.operator_norms, modes.ranks)
        spectra = Spectra(modes.ranks, modes.rank_offsets, modes.scores, 0 * dims, ties)
        cut = rule.ranks(spectra)
        is_open = (cut == modes.ranks) & modes.tied
        if not is_open.any():
            break
        most = np.where(is_open, 2 * most, most)
    columns = ragged.ranges(modes.rank_offsets[:-1], cut)
    L, R = laplacian(sheaf), modes.prolongation[:, columns]
    coarse = scipy.sparse.csr_array(R.conj().T @ (L @ R))
    top = linalg.inf_norm(L)
    m = coarse.shape[0]
    if top == 0 or m == 0:
        return top
    coarse = coarse / top
    level = linalg.zero_level(max(int(dims.max()), m), eps, 1.0)
    count = 2 * number
    with threads.single_threaded_blas():  # for the same bits with any number of threads
        while is_large(m, count):
            try:
                values = lowest_sparse(coarse, count, eps)[0]
            except np.linalg.LinAlgError:
                break
            values = values[values > level]
            if len(values) >= number:
                return float(values[number - 1]) * top
            count *= 4
        values = np.linalg.eigvalsh(coarse.toarray())
    values = values[values > level]
    return float(values[:number][-1]) * top if len(values) else top
