"""A workload, with the objects that several stages share."""

from functools import cached_property

import numpy as np

import sheafcoarsen as sc
from benchmarks import checks, peers, workloads
from benchmarks.report import Row

RANK, SIZE = 6, 40
"""Number of modes kept per cluster, and mean number of vertices per cluster."""


class Case:
    """One workload; its clusters, modes and matrices are computed once and not timed."""

    def __init__(self, name, n):
        self.name = name
        self.F = workloads.build(name, n)
        self.n_clusters = max(self.F.n_vertices // SIZE, 2)
        self.format = "bsr" if peers.uniform(self.F) else "csr"

    def select(self):
        """Select clusters of about SIZE vertices."""
        return sc.select(self.F, self.n_clusters, "balls")

    def local_modes(self):
        """Compute the local modes of the clusters ``P``."""
        return sc.local_modes(self.F, self.P, RANK)

    def coarsened(self):
        """Select clusters and coarsen."""
        return sc.coarsen(self.F, self.select(), RANK)

    def whole(self):
        """Select clusters, coarsen, and compute the fine and the coarse Laplacian."""
        C = self.coarsened()
        return C, sc.laplacian(self.F, self.format), sc.laplacian(C.sheaf)

    @cached_property
    def P(self):
        """The clusters."""
        return self.select()

    @cached_property
    def M(self):
        """The local modes of the clusters."""
        return self.local_modes()

    @cached_property
    def L(self):
        """The fine Laplacian, as bsr if stalks have equal dimensions."""
        return sc.laplacian(self.F, self.format)

    @cached_property
    def internal(self):
        """The direct sum of the local Laplacians, computed by scipy."""
        return peers.internal_laplacian(self.F, self.P)

    def check_laplacian(self, L):
        """Compare a Laplacian of this sheaf with the one that scipy computes."""
        delta = peers.coboundary_csr(self.F)
        checks.same_products("L", L, delta.T @ delta, int(np.bincount(delta.indices).max()))

    def check_coarse(self, C, coarse, L):
        """Compare the Laplacian of a coarse sheaf with R* L R, L the fine Laplacian."""
        galerkin = peers.triple_product(C.prolongation, L.tocsr())
        checks.same_coarse("the coarse L", coarse, galerkin, L, C.clusters.dims.max())

    def check_whole(self, result):
        """Check everything that ``whole`` returns."""
        C, L, coarse = result
        self.check_laplacian(L)
        self.check_coarse(C, coarse, L)
        checks.local_modes(C.modes, peers.internal_laplacian(self.F, C.partition))
        checks.connected(C.partition, self.F.edges)

    def row(self, claim, against, **found):
        """Return a row about this workload."""
        return Row(claim, against, self.name[:2], self.F.n_vertices, **found)

    def compare(self, claim, against, times, pair, sense=">=", floor=None, scale=1.0, **more):
        """Return a row from the times of a pair (ours, theirs); theirs is times ``scale``."""
        ours, theirs = pair
        ratio = (
            times.ratio(theirs, ours) * scale
            if sense == ">="
            else times.ratio(ours, theirs) / scale
        )
        ours, theirs = times.median(ours), times.median(theirs) * scale
        return self.row(
            claim, against, sense=sense, floor=floor, ours=ours, theirs=theirs, ratio=ratio, **more
        )
