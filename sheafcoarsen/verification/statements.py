"""Statements of the theory, one function per label of the paper.

Each function returns the largest ratio of error to rounding and how it was computed, or the reason
why the statement does not apply. The residuals that it compares are computed in ``residuals``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sheafcoarsen._kernels.modes import BORDER, SHIFT
from sheafcoarsen._support import checks, linalg, ragged
from sheafcoarsen.modes import ClusterPatches, Oversampled
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.sheaf import CellularSheaf, both_ends, unit_sheaf
from sheafcoarsen.verification.cluster_batches import part_of
from sheafcoarsen.verification.relative_residual import (
    FAILED,
    ZERO,
    Outcome,
    RelativeResidual,
    Statement,
    relative_residual,
)
from sheafcoarsen.verification.residuals import Evidence, pooled


def _vanishing(*names: str) -> Callable[[Evidence], Outcome]:
    """Return the check that all blocks of some matrices in ``Evidence.block_errors`` are zero."""
    return lambda e: (max(map(e.worst_block, names)), "exact")


# z* L_Gal z = norm(delta R z)^2 for every z, or as operators R* L R = (delta R)* (delta R)
_energy_identity = _vanishing("identity")
# delta_c* delta_c = laplacian(C.sheaf) = L_Gal
_realization = _vanishing("realization", "laplacian")
# U_a* L_a U_a = diag(lambda)
_spectral_form = _vanishing("spectral")
# delta_x* delta_x = L_Gal if im R_a lies in ker L_a
_loopless = _vanishing("loopless")


def _decomposition(e: Evidence) -> Outcome:
    """L_Gal = delta_x* delta_x + blockdiag(R_a* L_a R_a) (``eq:galerkin_operator_decomposition``).

    As quadratic forms, it is ``eq:galerkin_energy_decomposition``. Moreover, delta_x equals delta R
    on crossing edges, in Gram matrices if edges are compressed.
    """
    return max(e.worst_block("decomposition"), e.worst_crossing_edge()), "exact"


def _no_isometry(e: Evidence) -> Outcome | None:
    """Return None if R is an isometry, else that it is not, which modes must not do."""
    if e.isometry.ratio < linalg.RESIDUAL_LIMIT:
        return None
    return "R is not an isometry" if e.C.modes is None else (e.isometry, "exact")


def _no_loops(e: Evidence) -> str | None:
    """Return the reason why statements on the coarse sheaf do not apply without loops, or None."""
    has_loops = e.C.loops or e.C.sheaf.n_edges > e.C.n_crossing_edges
    if has_loops or _retains_energy(e) is None:  # loops that are there are checked
        return None
    return "loops=False omits the retained internal energy"


def _ledger_closes(e: Evidence) -> Outcome:
    """The six lines of the energy ledger add up to the fine energy for every isometry R."""
    E = e.ledger
    B = e.delta_norm * np.array([linalg.norm(x) for x in e.probes.T])
    B_a = e.internal_delta_norms[:, None] * np.sqrt(e.probe_norms2)
    lines = np.array([E.retained_internal, E.discarded_internal, E.internal_coupling])
    totals = np.array(list(E.lines.values()))
    worst = ZERO
    for terms, energy, n, bound, blocks in (
        (totals, E.fine_energy, int(e.n.max(initial=1)), B, ()),
        (lines, e.internal_energy, e.n[:, None], B_a, ("cluster",)),
    ):
        # relative to n eps B (sqrt(M) + n eps B), where M is the sum of the absolute terms
        allowed = bound * (np.sqrt(np.abs(terms).sum(axis=0)) + n * e.eps * bound)
        gap = np.abs(terms.sum(axis=0) - energy)
        worst = max(worst, relative_residual(gap, n, e.eps, allowed, blocks=blocks))
    return worst, "probe"


def _modes(e: Evidence) -> Outcome:
    """R consists of the lowest eigenvectors, and ``tied`` marks cuts of multiple eigenvalues."""
    if e.C.modes is None:
        return "the basis is your own"
    if not e.same_graph:
        return FAILED, "exact"
    lengths = np.maximum(e.R_norms, 1)
    same = e.by_cluster(e.mode_errors, lengths)
    if isinstance(e.modes.operator, Oversampled):
        return max(same, e.isometry, _worst_response(e)), "probe"
    size, wrong = e.mode_norms, np.flatnonzero(e.modes.tied != e.ties)
    ratios = [
        e.by_cluster(e.mode_residuals, size, lengths),
        same,
        e.isometry,
        relative_residual(e.eigenvalue_errors, e.dims, e.eps, size, blocks=("cluster",)),
        FAILED._replace(where=f"cluster {wrong[0]}") if wrong.size else ZERO,
    ]
    return max(ratios), "exact" if e.all_clusters_dense else "probe"


def _no_internal_modes(e: Evidence) -> str | None:
    """Return the reason why statements about internal modes do not apply, or None."""
    if e.C.modes is None:
        return "the basis is your own"
    if isinstance(e.C.modes.operator, Oversampled):
        return "the modes are oversampled"
    if not e.C.modes.operator.spectral:
        return f"the modes are those of the {e.C.modes.local_operator} operator"
    return None


def _local_optimality(e: Evidence) -> Outcome:
    """No subspace is better than U_a (``eq:minmax_local_energy``, ``eq:appendix_courant_fischer``).

    U_a spans the lowest modes, by residuals, orthonormality and recomputed eigenvalues.
    """
    outcome = _modes(e)
    assert not isinstance(outcome, str)
    worst, how = outcome
    rng = np.random.default_rng(e.seed)
    for a in e.sample.tolist():
        # a random subspace, close to span U_a or far from it, must not have a lower maximum energy
        U, L = e.dense(a)
        r = U.shape[1]
        if 0 < r < len(L):
            Q = np.linalg.qr(U, mode="complete")[0][:, r:]
            V = Q @ rng.standard_normal((Q.shape[1], r))
            W = np.linalg.qr(U + V * 10.0 ** -rng.integers(0, 4))[0]
            top = np.linalg.eigvalsh(W.conj().T @ L @ W)[-1]
            shortfall = max(float(e.modes.eigenvalues(a)[-1]) - float(top), 0.0)
            n, size, where = len(L), e.mode_norms[a], f"cluster {a}"
            worst = max(worst, relative_residual(shortfall, n, e.eps, size, blocks=where))
    return worst, how


def _truncation(e: Evidence) -> Outcome:
    """norm(x_disc)^2 = sum |alpha|^2, energy(x_disc) = sum lambda |alpha|^2, and the gap bound.

    alpha are the coefficients of the discarded modes (``eq:retained_discarded_expansion``) in
    ``eq:local_eigen_expansion_truncation``.
    """
    E = e.ledger
    assert E.truncation_bound is not None
    # measure a violation of the bound as an energy, to avoid a division by a tiny gap
    finite = np.isfinite(E.truncation_bound) & (E.truncation_bound > 0)
    excess = E.discarded_norm2 / np.where(finite, E.truncation_bound, 1) - 1
    missed = np.where(finite, excess.clip(min=0), 0) * (E.retained_internal + E.discarded_internal)
    worst = e.by_cluster(missed, e.mode_norms[:, None], e.probe_norms2)
    for a in e.sample.tolist():
        U, L = e.dense(a)
        n, size, x2 = len(L), e.mode_norms[a], e.probe_norms2[a]
        # discarded modes in the complement of U, since they are not unique if the cut is tied
        Q = np.linalg.qr(U, mode="complete")[0][:, U.shape[1] :]
        values, V = np.linalg.eigh(Q.conj().T @ L @ Q)
        phi = Q @ V
        rows = ragged.range_of_blocks(e.C.fine.vertex_offsets, e.C.partition.cluster(a))
        alpha2 = np.abs(phi.conj().T @ e.probes[rows].astype(L.dtype)) ** 2
        for error, *norms in (
            (linalg.norm(L @ phi - phi * values), size, np.sqrt(n)),
            (np.abs(alpha2.sum(axis=0) - E.discarded_norm2[a]), x2),
            (np.abs(values @ alpha2 - E.discarded_internal[a]), size, x2),
        ):
            worst = max(worst, relative_residual(error, n, e.eps, *norms, blocks=f"cluster {a}"))
    return worst, "probe"


def _two_losses(e: Evidence) -> Outcome:
    """Retained internal energy is sum lambda_i |z_i|^2; all other internal energy is discarded."""
    E = e.ledger
    z = pooled(e.C.prolongation, e.probes)
    per_mode = e.scores[:, None] * np.abs(z).astype(np.float64) ** 2
    cluster = np.repeat(np.arange(e.K), e.C.ranks)
    sums = [np.bincount(cluster, column, minlength=e.K) for column in per_mode.T]
    errors = (
        E.retained_internal - np.stack(sums, axis=1),
        E.internal_coupling,
        E.discarded_internal - (e.internal_energy - E.retained_internal),
    )
    factors = e.mode_norms[:, None], e.probe_norms2
    return max(e.by_cluster(np.abs(error), *factors) for error in errors), "probe"


def _retains_energy(e: Evidence) -> str | None:
    """Return the reason why statements on modes without internal energy do not apply, or None."""
    if (a := checks.first_true(e.internal_rows_ratio() >= linalg.RESIDUAL_LIMIT)) is None:
        return None
    return (
        f"retained modes have internal energy, first in cluster {a}: use internal modes with "
        f"rank=ranks.kernel() to retain only modes without energy"
    )


def _same_kernel(e: Evidence) -> Outcome:
    """R maps ker delta_x onto im R intersected with ker delta (``eq:kernel_preservation_image``).

    The crossing rows of delta R have the kernel of delta_x, edge by edge, and its internal rows are
    zero (``eq:kernel_preservation``).
    """
    internal = e.by_cluster(e.internal_row_errors, e.internal_delta_norms, e.R_norms)
    return max(internal, e.worst_crossing_edge()), "exact"


def _interlacing(e: Evidence) -> Outcome:
    """lambda_i(L) <= lambda_i(L_Gal), and delta_x* delta_x <= L_Gal in the Loewner order."""
    C = e.C
    if max(C.fine.dim_c0, C.sheaf.dim_c0) > 2000:  # dense matrices would be too large
        # interlacing follows from R* R = I, which was checked, and from the energy decomposition
        return e.isometry, "exact"
    L = laplacian(C.fine).toarray().astype(e.double)
    G = C.galerkin().toarray().astype(e.double)
    n, size = len(L), linalg.norm(L)
    fine, coarse = np.linalg.eigvalsh(L), np.linalg.eigvalsh((G + G.conj().T) / 2)
    crossing = C.sheaf.edges[:, 0] != C.sheaf.edges[:, 1]
    rows = np.flatnonzero(np.repeat(crossing, C.sheaf.edge_dims))
    X = coboundary(C.sheaf)[rows].astype(e.double)
    rest = G - (X.conj().T @ X).toarray()
    lowest = np.linalg.eigvalsh((rest + rest.conj().T) / 2).min(initial=0.0)
    missed = (fine[: len(coarse)] - coarse).max(initial=0.0)
    return relative_residual([missed, -lowest], n, e.eps, size), "dense"


def _sections_kept(e: Evidence) -> Outcome:
    """If every local section is retained, all global sections lie in im R."""
    C = e.C
    oversampled = C.modes is not None and isinstance(C.modes.operator, Oversampled)
    if not oversampled and (reason := _no_internal_modes(e)):
        return reason
    modes = e.modes
    norms = modes.operator_norms
    level = np.zeros(e.K) if oversampled else linalg.zero_energy(e.n, C.fine.dtype, norms)
    if (a := checks.first_true(modes.next_eigenvalues <= level)) is not None:
        return (
            f"a local section may be discarded, first in cluster {a}: its first discarded "
            f"eigenvalue {modes.next_eigenvalues[a]:.3g} is within rounding, {level[a]:.3g}, of 0"
        )
    if C.fine.dim_c0 > 2000:
        # R* R = I suffices: a global section restricts to local sections, which all lie in im R
        return e.isometry, "exact"
    sections, gap = dense_sections(C.fine, e.eps, e.double)
    missed = sections - C.prolongation @ pooled(C.prolongation, sections)
    discarded = linalg.norms_by(missed, e.row_cluster, None, e.K)
    n = max(C.fine.dim_c0, C.fine.dim_c1)
    # use the norm of the maps, since where the maps of a loop cancel in delta, rounding remains
    size = linalg.norm([linalg.norm(C.fine.tail_data), linalg.norm(C.fine.head_data)])
    # dense sections x have errors of eps norm(delta) / gap, with gap the smallest nonzero singular
    # value; for internal modes, norm(L_a x) >= next eigenvalue times norm of the discarded part
    factors: list[Any] = [size, linalg.norm(sections)]
    if oversampled:
        discarded = np.where(_are_local_sections(e, sections), discarded, 0)
    else:
        gap = np.minimum(modes.next_eigenvalues, modes.operator_norms).astype(np.float64)
        factors.insert(0, e.internal_delta_norms)
    return relative_residual(discarded * gap, n, e.eps, *factors, blocks=("cluster",)), "dense"


def _are_local_sections(e: Evidence, sections: np.ndarray) -> np.ndarray:
    """Return a mask of the clusters in which the energy of sections is at rounding level."""
    C = e.C
    ends = C.partition.labels[C.fine.edges]
    rows = np.flatnonzero(np.repeat(ends[:, 0] == ends[:, 1], C.fine.edge_dims))
    of_row = np.repeat(ends[:, 0], C.fine.edge_dims)[rows]
    energy = linalg.norms_by(coboundary(C.fine)[rows] @ sections, of_row, None, e.K)
    lengths = linalg.norms_by(sections, e.row_cluster, None, e.K)
    ratio = linalg.residual_ratio(energy, e.n, e.eps, e.internal_delta_norms, lengths)
    return ~(ratio > linalg.RESIDUAL_LIMIT)


def _dirichlet(e: Evidence) -> Outcome:
    """x* Delta x is the energy of the normalized sheaf (``eq:app-dirichlet-energy-edge``)."""
    _, errors, norms2 = e.normalized
    return relative_residual(errors, e.C.fine.dim_c0, e.eps, e.L_norm, norms2), "probe"


# ---------------------------------------------------------------- dense solvers


def _worst_response(e: Evidence) -> RelativeResidual:
    """Return the largest error of the scores of oversampled modes on a sample of clusters.

    For positive scores s, s^-2 is compared with Rayleigh quotients of G on R_a, and for the next
    eigenvalue with the norm of G on the complement (docs/conventions.md, section 10).
    """
    C, modes, worst = e.C, e.modes, ZERO
    F, unit = unit_sheaf(C.fine)
    patches = ClusterPatches(F, C.clusters, modes.operator.rings).arrays
    whole = laplacian(F).diagonal().real
    for a in e.sample.tolist():
        U, r = C.block(a).astype(F.dtype), int(C.ranks[a])
        begin = patches.starts[a]
        T = patches.members[begin : begin + patches.counts[a]]
        inside = np.zeros(F.n_vertices, bool)
        inside[T] = True
        edges = np.flatnonzero(inside[F.edges].all(axis=1))
        A = laplacian(part_of(F, edges, T)).toarray()
        n, N, own = len(U), len(A), A.diagonal().real.copy()
        if own.max() == 0:
            continue
        outer = whole[ragged.range_of_blocks(F.vertex_offsets, T)] - own > BORDER * own.max()
        lowest, highest = 40 * N * np.finfo(float).eps * own.max(), 1e8 * own.max()
        target = min(max(modes.target / unit / unit, lowest), highest)
        A += SHIFT * target * np.eye(N)
        X = np.linalg.solve(A, np.eye(N, n))
        M = full = np.concatenate([X[outer], target * np.linalg.solve(A, X)])
        scores = modes.eigenvalues(a).astype(np.float64) / unit / unit
        K, V = U[:, scores == 0], U[:, scores > 0]
        M = M - (M @ K) @ K.conj().T
        found = np.sum(np.abs(M @ V) ** 2, axis=0)
        claimed = scores[scores > 0] ** -2
        following = float(modes.next_eigenvalues[a]) / unit / unit
        if following > 0 and r < n:
            found = np.append(found, np.linalg.norm(M - (M @ V) @ V.conj().T, 2) ** 2)
            claimed = np.append(claimed, following**-2)
        rounding = max(e.eps, np.finfo(float).eps * np.linalg.cond(A))
        size = np.linalg.norm(full) * np.linalg.norm(M)
        errors, where = np.abs(found - claimed), f"cluster {a}"
        worst = max(worst, relative_residual(errors, N, rounding, size, blocks=where))
    return worst


def dense_sections(F: CellularSheaf, eps: float, dtype: Any) -> tuple[np.ndarray, float]:
    """Return a basis of ker delta and the smallest nonzero singular value of delta.

    The rank is decided relative to the norm of the maps, since the maps of a loop may cancel.
    """
    F, unit = unit_sheaf(F)
    delta, n = coboundary(F).astype(dtype), F.dim_c0
    if n == 0 or F.largest_entry == 0:
        return np.eye(n, dtype=dtype), 0.0
    triangle = np.zeros((0, n), dtype)
    # QR of a few rows at a time, because there may be many more rows than columns
    for lo in range(0, F.dim_c1, 4 * n):
        rows = np.concatenate([triangle, delta[lo : lo + 4 * n].toarray()])
        triangle = np.linalg.qr(rows, mode="r")  # type: ignore[assignment]
    _, sigma, vh = np.linalg.svd(triangle)
    largest_map = np.max([linalg.ragged_norms(data, starts) for _, data, starts in both_ends(F)])
    rank = int((sigma > max(F.dim_c1, n) * eps * max(sigma[0], largest_map)).sum())
    return vh[rank:].conj().T, float(sigma[rank - 1]) * unit if rank else 0.0


SPECTRAL = _no_internal_modes, _no_isometry
STATEMENTS: tuple[Statement, ...] = (
    ("local modes", "section-2", _modes),
    ("energy identity", "eq:galerkin_energy_identity", _energy_identity),
    ("local optimality", "thm:local_spectral_optimality", _no_internal_modes, _local_optimality),
    ("truncation loss", "prop:truncation_loss", *SPECTRAL, _truncation),
    ("energy decomposition", "thm:galerkin_energy_decomposition", _decomposition),
    ("spectral form", "eq:retained_internal_energy_spectral", _no_internal_modes, _spectral_form),
    ("loop-cell realization", "thm:Galerkin_realization", _no_loops, _realization),
    ("two losses", "cor:truncation_realization_errors", *SPECTRAL, _two_losses),
    ("ledger closes", "section-4", _no_isometry, _ledger_closes),
    ("loopless realization", "eq:loopless_exact_realization", _retains_energy, _loopless),
    ("kernel preservation", "prop:kernel_preservation_loopless", _retains_energy, _same_kernel),
    ("interlacing", "fact-1", _no_isometry, _interlacing),
    ("sections kept", "fact-2", _no_loops, _no_isometry, _sections_kept),
    # the Laplacian of normalize(F) is D^{-1/2} L D^{-1/2}
    ("normalization", "fact-5", lambda e: (e.normalized[0], "exact")),
    ("Dirichlet energy", "fact-6", _dirichlet),
)
