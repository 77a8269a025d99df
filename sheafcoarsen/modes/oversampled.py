"""Local problems that see rings of neighbours (oversampled modes)."""

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import modes as oversampled_kernels
from sheafcoarsen._kernels.dense import worth_reducing
from sheafcoarsen._support import eps_of, offsets, single_threaded_blas, zero_level
from sheafcoarsen.modes.patches import Patches
from sheafcoarsen.modes.problems import MAX_DENSE, LocalProblems
from sheafcoarsen.modes.sparse import lowest_sparse
from sheafcoarsen.operators import laplacian
from sheafcoarsen.partition import Partition
from sheafcoarsen.ranks import Rule, Spectra
from sheafcoarsen.sheaf import CellularSheaf

KEEP_BELOW = 2**26
"""Sum of N_a^2 up to which a rule that looks at spectra of oversampled modes keeps G of every cluster instead of computing it twice."""


PILOT_SHARE = 20
"""One mode in so many goes into the pilot that finds a target."""


PILOT_NUMBER = 10
"""The target is the pilot's positive eigenvalue of this number."""


PILOT_DENSE = 600
"""Dimension up to which a pilot is solved as a dense matrix."""


class OversampledProblems(LocalProblems):
    """The same for oversampled modes."""

    def __init__(self, sheaf, P, progress, rings: int, target: float | None, like=None):
        super().__init__(sheaf, P, "oversampled", progress, like)
        self.rings, self.pilot, self.over_budget = rings, target is None, 0
        double = np.result_type(sheaf.dtype, np.float64)
        if sheaf.dtype != double:  # A may be too ill-conditioned for single precision
            self.work = sheaf.with_maps(
                sheaf.tail_data.astype(double), sheaf.head_data.astype(double)
            )
        self.patches = Patches(self.work, self.clusters, rings)
        if self.patches.dims.max(initial=0) > MAX_DENSE:
            a = int(self.patches.dims.argmax())
            raise ValueError(
                f"the patch of cluster {a} has dimension {self.patches.dims[a]} (the cluster itself {self.clusters.dims[a]}); oversampled "
                f"modes need dense matrices, which are limited to dimension {MAX_DENSE}: use more clusters"
            )
        self.target = pilot_target(self.work, P) if target is None else target
        self.least = float(np.finfo(self.real).tiny)
        none = np.zeros(0, np.int64)
        self.kept = (
            none,
            np.zeros(0, self.work.dtype),
            none,
            np.zeros((0, 3)),
        )  # by `spectra`, for `compute`

    def run_patches(self, what: str, work, wanted: np.ndarray, reduction: bool) -> None:
        """Call ``work(lo, hi, patch room, workspace)`` as ``run`` does."""
        self.run(
            what,
            lambda lo, hi, rooms: work(lo, hi, *rooms),
            self.patches.dims,
            lambda lo, hi: self.patches.room(lo, hi, self.map_size, wanted, reduction),
        )

    def spectra(self, rule: Rule) -> Spectra:
        """Return what the rule must be shown."""
        f, c = self.work.arrays, self.clusters
        starts, dims = offsets(c.dims), np.zeros(c.n_clusters, np.int64)
        if not (rule.needs_scores or rule.needs_kernels):
            return Spectra(c.dims, starts, np.zeros(0, self.real), dims, np.zeros(0))
        scores = np.zeros(int(starts[-1]))
        if np.square(c.dims, dtype=np.float64).sum() <= KEEP_BELOW:
            kept_starts = offsets(c.dims**2)
            self.kept = (
                kept_starts,
                np.empty(int(kept_starts[-1]), self.work.dtype),
                dims,
                np.empty((c.n_clusters, 3)),
            )
        self.run_patches(
            "local spectra",
            lambda lo, hi, room, s: oversampled_kernels.oversampled_spectra(
                lo, hi, f, c, self.patches.arrays, self.target, self.eps, self.least, room, s, starts, scores,
                *self.kept[:2], dims, self.kept[3],
            ),
            np.ones(c.n_clusters), worth_reducing(c.dims, 1),
        )  # fmt: skip
        ties = np.sqrt(self.eps) * np.append(scores[1:], 0)
        return Spectra(c.dims, starts, scores, dims, ties)

    def compute(self, ranks: np.ndarray, singular: bool, out) -> dict:
        """Fill the arrays ``out`` of ``kernels.local_modes``; return the other fields of the result."""
        f, c = self.work.arrays, self.clusters
        self.run_patches(
            "local modes",
            lambda lo, hi, room, s: oversampled_kernels.oversampled_modes(
                lo,
                hi,
                f,
                c,
                self.patches.arrays,
                self.target,
                self.eps,
                self.least,
                room,
                s,
                *self.kept,
                ranks,
                *out,
            ),
            c.dims,  # eigenvectors: K_C may be of any dimension
            worth_reducing(c.dims, np.minimum(ranks + 1, c.dims)),
        )
        return {
            "rings": self.rings,
            "target": self.target,
            "pilot": self.pilot,
            "over_budget": self.over_budget,
        }


def pilot_target(sheaf: CellularSheaf, P: Partition) -> float:
    """Return an estimate, from above, of the 10th positive eigenvalue of L; 0 where L = 0.

    It is that of R* L R for R of N_a / 20 internal modes of each cluster, and at least its kernel
    (interlacing). Of fewer positive ones the largest counts; where there is none, norm(L, inf).
    """
    local = LocalProblems(sheaf, P, "internal", False)
    dims, eps = local.clusters.dims, eps_of(sheaf.dtype)
    least = -(-dims // PILOT_SHARE)
    # a few more, so that a cut need not split a multiplet, of which rounding would choose a part
    modes = local.modes(
        np.minimum(least + max(int(sheaf.vertex_dims.max(initial=0)) - 1, 1), dims), singular=False
    )
    zero = zero_level(dims, eps, modes.operator_norms)
    short = (modes.next_eigenvalues <= zero) & (modes.ranks < dims)
    if short.any():
        spectra = local.spectra(Rule())
        kernels = np.bincount(
            np.repeat(np.arange(len(dims)), dims)[spectra.scores <= np.repeat(zero, dims)],
            minlength=len(dims),
        )
        modes = local.modes(np.maximum(modes.ranks, kernels), singular=False)
    cluster = np.repeat(np.arange(len(dims)), modes.ranks)
    place = np.arange(len(cluster)) - modes.rank_offsets[cluster]
    following = np.append(modes.scores[1:], 0)
    following[place == modes.ranks[cluster] - 1] = modes.next_eigenvalues[modes.ranks > 0]
    apart = following - modes.scores > np.sqrt(eps) * modes.operator_norms[cluster]
    ends = np.flatnonzero(apart & (place >= least[cluster] - 1))
    cut = modes.ranks.copy()
    np.minimum.at(cut, cluster[ends], place[ends] + 1)
    L, R = laplacian(sheaf), modes.prolongation[:, np.flatnonzero(place < cut[cluster])]
    coarse = scipy.sparse.csr_array(R.conj().T @ (L @ R))
    top = float(abs(L).sum(axis=1).max(initial=0.0))
    m = coarse.shape[0]
    if top == 0 or m == 0:
        return top
    coarse = coarse / top
    level = zero_level(max(int(dims.max()), m), eps, 1.0)
    count = 2 * PILOT_NUMBER
    while m > PILOT_DENSE and 3 * count <= m:
        try:
            values = lowest_sparse(coarse, count, eps)[0]
        except np.linalg.LinAlgError:
            break
        values = values[values > level]
        if len(values) >= PILOT_NUMBER:
            return float(values[PILOT_NUMBER - 1]) * top
        count *= 4
    with single_threaded_blas():
        values = np.linalg.eigvalsh(coarse.toarray())
    values = values[values > level]
    return float(values[:PILOT_NUMBER][-1]) * top if len(values) else top
