"""Statements about a sparsification (docs/conventions.md, section 14)."""

import numpy as np

from sheafcoarsen._support import RESIDUAL_LIMIT, eps_of, scaled_norms
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import edge_subset, unit_sheaf
from sheafcoarsen.solve import Sparsification
from sheafcoarsen.verification.dense import dense_sections
from sheafcoarsen.verification.relative_residual import (
    FAILED,
    ZERO,
    Outcome,
    RelativeResidual,
    Statement,
    relative_residual,
)


class SparseEvidence:
    """A sparsification, with both sheaves in double precision divided by the same power of two."""

    def __init__(self, Z: Sparsification, seed: int) -> None:
        self.Z, self.rng = Z, np.random.default_rng(seed)
        self.fine, unit = unit_sheaf(Z.fine)
        self.sparse = unit_sheaf(Z.sheaf, unit)[0]


def _maps(e: SparseEvidence) -> Outcome:
    """The maps of each edge are those of the fine sheaf times the root of the edge's weight."""
    G, H, worst = e.sparse, edge_subset(e.fine, e.Z.edges, np.sqrt(e.Z.weights)), ZERO
    for found, wanted, starts in (
        (G.tail_data, H.tail_data, H.tail_offsets),
        (G.head_data, H.head_data, H.head_offsets),
    ):
        which = np.repeat(np.arange(H.n_edges), np.diff(starts))
        error, size = (scaled_norms(np.abs(x), which, H.n_edges) for x in (found - wanted, wanted))
        eps, blocks = eps_of(e.Z.fine.dtype), ("edge", e.Z.edges)
        worst = max(worst, relative_residual(error, 1, eps, size, blocks=blocks))
    return worst, "exact"


def _bounds(e: SparseEvidence) -> Outcome:
    """The bounds are the extreme generalized eigenvalues, up to 1e-5.

    Above dimension 1000, only Rayleigh quotients are checked to lie between the bounds.
    """
    lo, hi = e.Z.bounds()
    if e.fine.dim_c0 <= 1000:
        K, _ = dense_sections(e.fine, eps_of(e.Z.fine.dtype), e.fine.dtype)
        C = np.linalg.qr(K, mode="complete")[0][:, K.shape[1] :]
        R, S = (np.linalg.qr(coboundary(F) @ C).R for F in (e.fine, e.sparse))
        if not C.shape[1]:
            return ZERO, "dense"
        ratios = np.linalg.solve(R.T, S.T)
        found = np.linalg.eigvalsh(ratios @ ratios.conj().T)[[0, -1]]
        error, how = np.abs(found - [lo, hi]), "dense"
    else:
        L, A = laplacian(e.fine), laplacian(e.sparse)
        X = e.rng.standard_normal((e.fine.dim_c0, 8))
        above, below = (
            np.append(M.diagonal().real, np.einsum("ij,ij->j", X, M @ X).real) for M in (A, L)
        )
        ratios = above[below > 0] / below[below > 0]
        error, how = np.maximum(np.append(lo - ratios, ratios - hi), 0), "probe"
    return relative_residual(error, 1, 1e-5 / RESIDUAL_LIMIT, max(hi, 1.0)), how


def _kernel(e: SparseEvidence) -> Outcome:
    """The sparse and the fine sheaf have the same global sections; dim H^0 is compared."""
    fine, sparse = (global_sections(F).h0 for F in (e.Z.fine, e.Z.sheaf))
    return (RelativeResidual(0.0, 0.0, 1.0) if fine == sparse else FAILED), "exact"


STATEMENTS: tuple[Statement, ...] = (
    ("maps of kept edges", "fact-12-maps", _maps),
    ("two-sided bounds", "fact-12", _bounds),
    ("global sections", "fact-12-sections", _kernel),
)
