"""Statements about a sparsification (docs/conventions.md, section 14)."""

from collections.abc import Callable

import numpy as np

from sheafcoarsen._support import RESIDUAL_LIMIT, eps_of, range_of_blocks
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import CellularSheaf, sheaf_like, unit_sheaf
from sheafcoarsen.solve import Sparsification
from sheafcoarsen.verification.dense import dense_sections
from sheafcoarsen.verification.relative_residual import (
    FAILED,
    ZERO,
    Outcome,
    RelativeResidual,
    relative_residual,
    scaled_norms,
)

DENSE = 1000
"""Maximum dimension for which all generalized eigenvalues are computed."""

CLOSE = 1e-5
"""Maximum relative error of computed bounds."""


class SparseEvidence:
    """A sparsification, with both sheaves in double precision divided by the same power of two."""

    def __init__(self, Z: Sparsification, seed: int) -> None:
        self.Z, self.rng = Z, np.random.default_rng(seed)
        self.fine, unit = unit_sheaf(Z.fine)
        tail, head = (
            data.astype(self.fine.dtype) / unit for data in (Z.sheaf.tail_data, Z.sheaf.head_data)
        )
        self.sparse: CellularSheaf = sheaf_like(Z.sheaf, tail, head)


def _maps(e: SparseEvidence) -> Outcome:
    """The maps of each edge are those of the fine sheaf times the root of the edge's weight."""
    Z, worst = e.Z, ZERO
    for end, given, found, starts in (
        (0, e.fine.tail_data, e.sparse.tail_data, e.fine.tail_offsets),
        (1, e.fine.head_data, e.sparse.head_data, e.fine.head_offsets),
    ):
        sizes = Z.sheaf.edge_dims * Z.sheaf.vertex_dims[Z.sheaf.edges[:, end]]
        which, count = np.repeat(np.arange(len(sizes)), sizes), len(sizes)
        wanted = given[range_of_blocks(starts, Z.edges)] * np.sqrt(Z.weights)[which]
        error, size = (scaled_norms(np.abs(x), which, count) for x in (found - wanted, wanted))
        eps, blocks = eps_of(Z.fine.dtype), ("edge", Z.edges)
        worst = max(worst, relative_residual(error, 1, eps, size, blocks=blocks))
    return worst, "exact"


def _bounds(e: SparseEvidence) -> Outcome:
    """The bounds are the extreme generalized eigenvalues.

    Above dimension ``DENSE``, only Rayleigh quotients are checked to lie between the bounds.
    """
    lo, hi = e.Z.bounds()
    if e.fine.dim_c0 <= DENSE:
        K, _ = dense_sections(e.fine, eps_of(e.Z.fine.dtype), e.fine.dtype)
        C = np.linalg.qr(K, mode="complete")[0][:, K.shape[1] :]
        R, S = (np.linalg.qr(coboundary(F) @ C).R for F in (e.fine, e.sparse))
        if not C.shape[1]:
            return ZERO, "dense"
        ratios = np.linalg.svd(np.linalg.solve(R.T, S.T), compute_uv=False) ** 2
        found = np.array([ratios[-1] if len(ratios) == len(R) else 0.0, ratios[0]])
        error, how = np.abs(found - [lo, hi]), "dense"
    else:
        L, A = laplacian(e.fine), laplacian(e.sparse)
        X = e.rng.standard_normal((e.fine.dim_c0, 8))
        above, below = (
            np.append(M.diagonal().real, np.einsum("ij,ij->j", X, M @ X).real) for M in (A, L)
        )
        ratios = above[below > 0] / below[below > 0]
        error, how = np.maximum(np.append(lo - ratios, ratios - hi), 0), "probe"
    return relative_residual(error, 1, CLOSE / RESIDUAL_LIMIT, max(hi, 1.0)), how


def _kernel(e: SparseEvidence) -> Outcome:
    """The sparse and the fine sheaf have the same global sections; dim H^0 is compared."""
    fine, sparse = (global_sections(F).h0 for F in (e.Z.fine, e.Z.sheaf))
    return (RelativeResidual(0.0, 0.0, 1.0) if fine == sparse else FAILED), "exact"


STATEMENTS: tuple[tuple[str, str, Callable[[SparseEvidence], Outcome]], ...] = (
    ("maps of kept edges", "fact-12-maps", _maps),
    ("two-sided bounds", "fact-12", _bounds),
    ("global sections", "fact-12-sections", _kernel),
)
