"""Statements about an elimination or a sparsification (docs/conventions.md, sections 12 and 14).

An elimination is compared with sparse products of the fine Laplacian, which it never forms, a
sparsification with the fine sheaf.
"""

from typing import Any

import numpy as np
from scipy.sparse import eye_array

from sheafcoarsen._support import linalg, ragged
from sheafcoarsen.elimination import Elimination
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import (
    both_ends,
    component_labels,
    edge_subset,
    sheaf_like,
    unit_sheaf,
)
from sheafcoarsen.solve import Sparsification
from sheafcoarsen.verification.relative_residual import (
    EQUAL,
    FAILED,
    ZERO,
    Outcome,
    RelativeResidual,
    Statement,
    relative_residual,
)
from sheafcoarsen.verification.statements import dense_sections


class SchurEvidence:
    """Data for the checks of an elimination; all maps are divided by a power of two.

    The residual of a vertex is relative to the largest sum of absolute products at itself and in
    the eliminated components that contain or touch it.
    """

    def __init__(self, K: Elimination, seed: int) -> None:
        self.K, self.rng = K, np.random.default_rng(seed)
        F = K.fine
        self.eps = linalg.eps_of(F.dtype)
        self.fine, self.unit = unit_sheaf(F)
        self.L = laplacian(self.fine)
        # abs(delta)* abs(delta): bounds rounding errors of L, since nothing cancels
        sizes = sheaf_like(self.fine, abs(self.fine.tail_data), -abs(self.fine.head_data))
        self.products = laplacian(sizes)
        self.S = laplacian(unit_sheaf(K.sheaf, self.unit)[0])
        self.kept = ragged.range_of_blocks(F.vertex_offsets, K.kept)
        self.gone = ragged.range_of_blocks(F.vertex_offsets, K.eliminated)
        self.vertex = np.repeat(np.arange(F.n_vertices), F.vertex_dims)
        self.is_gone = np.zeros(F.n_vertices, bool)
        self.is_gone[K.eliminated] = True
        inside = self.is_gone[F.edges].all(axis=1)
        self.part = component_labels(F.n_vertices, F.edges[inside])
        # n in the rounding level of each vertex: 1 + dimension of its component or stalk
        sizes = np.bincount(self.part, F.vertex_dims * self.is_gone)[self.part] * self.is_gone
        self.n = np.maximum(self.largest_around(sizes), F.vertex_dims).astype(int) + 1

    def largest_around(self, values: np.ndarray) -> np.ndarray:
        """Return the maximum of each vertex and eliminated components that contain or touch it."""
        out = np.array(values, dtype=float)
        largest = np.zeros(len(values))
        np.maximum.at(largest, self.part[self.is_gone], out[self.is_gone])
        out[self.is_gone] = largest[self.part[self.is_gone]]
        around = np.where(self.is_gone, out, 0)
        for a, b in (self.K.fine.edges.T, self.K.fine.edges[:, ::-1].T):
            np.maximum.at(out, a, around[b])
        return out

    def by_vertex(self, error: Any, size: Any) -> RelativeResidual:
        """Return the largest residual over vertices; both matrices may be sparse or dense."""
        errors, sizes = (linalg.norms_by(M, self.vertex, None, len(self.n)) for M in (error, size))
        around = self.largest_around(sizes)
        return relative_residual(errors, self.n, self.eps, around, blocks=("vertex",))


def _schur_complement(e: SchurEvidence) -> Outcome:
    """L P = S at retained vertices and 0 at all others, so P* L P = S is the Schur complement."""
    P = e.K.prolongation
    pad = eye_array(len(e.vertex), format="csr")[:, e.kept]  # adds zero rows at all others
    return e.by_vertex(e.L @ P - pad @ e.S, e.products @ abs(P) + pad @ abs(e.S)), "exact"


def _solutions(e: SchurEvidence) -> Outcome:
    """For b in the range of L and x = extend(z, b), L x - b vanishes at eliminated vertices.

    At retained vertices it is S z - reduce(b), so solutions of either system give those of the
    other.
    """
    F, K = e.K.fine, e.K
    if K.growth**2 * linalg.eps_of(np.float64) > 1:
        return f"forward substitution enlarges rounding errors by `growth` = {K.growth:.1g}"
    y, z = (e.rng.standard_normal((size, 3)).astype(F.dtype) for size in (F.dim_c0, K.sheaf.dim_c0))
    b = (e.L @ y).astype(F.dtype)
    # `K.extend` solves with L = unit^2 e.L, so multiply the part of x that depends on b by unit^2
    x = K.extend(z) + K.extend(0 * z, b) * e.unit * e.unit
    left = e.S @ z - K.reduce(b)
    size = e.products @ (abs(x) + abs(y))
    size[e.kept] += abs(e.S) @ abs(z) + abs(K.reduce(b))
    wanted = np.zeros_like(x)
    wanted[e.kept] = left
    return e.by_vertex(e.L @ x - b - wanted, size), "probe"


def _is_too_large(e: SchurEvidence) -> str | None:
    """Return the reason why kernels, which need dense decompositions, are not compared, or None."""
    for name in ("dim_c0", "dim_c1"):
        if (dim := getattr(e.K.fine, name)) > 1000:
            return f"{name} = {dim} is too large for a dense decomposition (at most 1000)"
    return None


def _zero(sigma: np.ndarray, n: int, eps: float) -> float:
    """Return the level up to which the singular values of delta count as zero; n is its size."""
    level = max(linalg.zero_level(1, eps, 1.0), n * linalg.eps_of(float))
    return level * float(sigma.max(initial=1))


def _sections(e: SchurEvidence) -> Outcome:
    """The fine dim H^0 is the dim H^0 of the reduced sheaf plus dim ker L_ee."""
    delta = coboundary(e.fine).toarray()
    left = coboundary(unit_sheaf(e.K.sheaf, e.unit)[0]).toarray()
    level = _zero(np.linalg.svd(delta, compute_uv=False), max(delta.shape), e.eps)
    fine, reduced, lost = (
        matrix.shape[1] - np.linalg.matrix_rank(matrix, tol=level)
        for matrix in (delta, left, delta[:, e.gone])
    )
    return (EQUAL if fine == reduced + lost else FAILED), "dense"


def _least_norm(e: SchurEvidence) -> Outcome:
    """Extensions are orthogonal to cochains of zero energy that vanish on retained vertices."""
    delta = coboundary(e.fine).toarray()[:, e.gone]
    _, sigma, adjoint = np.linalg.svd(delta)
    level = _zero(sigma, max(delta.shape), e.eps)
    kernel = adjoint[int((sigma > level).sum()) :]
    P = e.K.prolongation[e.gone]
    error = float(np.linalg.norm(kernel @ P.toarray()))
    smallest = float(sigma[sigma > level].min(initial=1.0))
    if smallest < 1e-3:
        return "the maps are too ill-conditioned to find the kernel by a dense decomposition"
    size = float(np.sqrt((abs(P) ** 2).sum())) / smallest
    return relative_residual([error], len(e.gone), e.eps, size), "dense"


OF_ELIMINATIONS: tuple[Statement, ...] = (
    ("Schur complement", "fact-9", _schur_complement),
    ("solutions come back", "fact-9-solutions", _solutions),
    ("sections restrict", "fact-9-sections", _is_too_large, _sections),
    ("least norm", "fact-9-norm", _is_too_large, _least_norm),
)


# ---------------------------------------------------------------- sparsification


class SparseEvidence:
    """A sparsification, with both sheaves in double precision divided by the same power of two."""

    def __init__(self, Z: Sparsification, seed: int) -> None:
        self.Z, self.rng = Z, np.random.default_rng(seed)
        self.fine, unit = unit_sheaf(Z.fine)
        self.sparse = unit_sheaf(Z.sheaf, unit)[0]


def _maps(e: SparseEvidence) -> Outcome:
    """The maps of each edge are those of the fine sheaf times the root of the edge's weight."""
    G, H, worst = e.sparse, edge_subset(e.fine, e.Z.edges, np.sqrt(e.Z.weights)), ZERO
    eps, blocks = linalg.eps_of(e.Z.fine.dtype), ("edge", e.Z.edges)
    for (_, found, _), (_, wanted, starts) in zip(both_ends(G), both_ends(H), strict=True):
        error, size = (linalg.ragged_norms(x, starts) for x in (found - wanted, wanted))
        worst = max(worst, relative_residual(error, 1, eps, size, blocks=blocks))
    return worst, "exact"


def _bounds(e: SparseEvidence) -> Outcome:
    """The bounds are the extreme generalized eigenvalues, up to 1e-5.

    Above dimension 1000, only Rayleigh quotients are checked to lie between the bounds.
    """
    lo, hi = e.Z.bounds()
    if e.fine.dim_c0 <= 1000:
        K, _ = dense_sections(e.fine, linalg.eps_of(e.Z.fine.dtype), e.fine.dtype)
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
    return relative_residual(error, 1, 1e-5 / linalg.RESIDUAL_LIMIT, max(hi, 1.0)), how


def _kernel(e: SparseEvidence) -> Outcome:
    """The sparse and the fine sheaf have the same global sections; dim H^0 is compared."""
    fine, sparse = (global_sections(F).h0 for F in (e.Z.fine, e.Z.sheaf))
    return (EQUAL if fine == sparse else FAILED), "exact"


OF_SPARSIFICATIONS: tuple[Statement, ...] = (
    ("maps of kept edges", "fact-12-maps", _maps),
    ("two-sided bounds", "fact-12", _bounds),
    ("global sections", "fact-12-sections", _kernel),
)
