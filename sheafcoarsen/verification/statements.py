"""Every statement of the theory, checked on the user's own coarsening.

Each statement is one function, under the paper's label, that returns the worst ratio of error to
rounding, or the reason why the statement does not apply. What they compare is computed a second
time and in another way than in the library (``_workbench.py``); the coarsening's own fields are
only ever compared against.
"""

from collections.abc import Callable

import numpy as np
import scipy.sparse

from sheafcoarsen._support import RESIDUAL_LIMIT, norm, residual_ratio, zero_level
from sheafcoarsen.operators import energy, laplacian
from sheafcoarsen.verification.evidence import Workbench
from sheafcoarsen.verification.norms import norms_by, scaled_norms, worst

DENSE = 2000
"""Dimension up to which statements about whole spectra are checked on dense matrices."""


Outcome = tuple[float, str] | str  # (ratio, how), or the reason why the statement does not apply


def _energy_identity(b: Workbench) -> Outcome:
    """z* L_Gal z = norm(delta R z)^2 for every z: as operators, R* L R = (delta R)* (delta R)."""
    Y = b.delta_R
    return b.worst_block(b.galerkin - Y.conj().T @ Y), "exact"


def _decomposition(b: Workbench) -> Outcome:
    """L_Gal = delta_x* delta_x + blockdiag(R_a* L_a R_a) (``eq:galerkin_operator_decomposition``).

    As forms, ``eq:galerkin_energy_decomposition``. And delta_x is delta R on the crossing edges:
    sign included, or in Gram matrices where compressed.
    """
    X = b.crossing_delta
    return max(
        b.worst_block(b.galerkin - (X.conj().T @ X + b.retained)), b.worst_crossing_edge()
    ), "exact"


def _realization(b: Workbench) -> Outcome:
    """delta_c* delta_c = L_Gal (``eq:augmented_exact_realization``), and L of ``C.sheaf`` too."""
    if not b.C.loops and not _loopless(b):
        return "loops=False leaves out the retained internal energy"
    D = b.coarse_delta
    return max(
        b.worst_block(b.galerkin - D.conj().T @ D), b.worst_block(b.galerkin - laplacian(b.C.sheaf))
    ), "exact"


def _ledger_closes(b: Workbench) -> Outcome:
    """The six lines of the energy ledger add up to the fine energy, for every isometry R."""
    if b.isometry >= RESIDUAL_LIMIT:
        return "R is not an isometry"
    E = b.ledger
    B = norm(b.delta.data) * np.array([norm(x) for x in b.probes.T])
    B_a = b.internal_delta_norms[:, None] * np.sqrt(b.probe_norms2)
    in_all = _closes(
        np.array(list(E.lines.values())), E.fine_energy, int(b.n.max(initial=1)), b.eps, B
    )
    lines = np.array([E.retained_internal, E.discarded_internal, E.internal_coupling])
    return max(in_all, _closes(lines, b.internal_energy, b.n[:, None], b.eps, B_a)), "probe"


def _closes(lines, energy, n, eps, B) -> float:
    """Worst gap over eps n B (sqrt(M) + n eps B), M the sum of the lines' moduli."""
    allowed = B * (np.sqrt(np.abs(lines).sum(axis=0)) + n * eps * B)
    return worst(residual_ratio(np.abs(lines.sum(axis=0) - energy), n, eps, allowed))


def _modes(b: Workbench) -> Outcome:
    """The modes are the lowest of their local operator, internal or principal, R holds them, and ties are told."""
    if b.C.modes is None:
        return "the basis is your own"
    if not np.array_equal(b.C.modes.sheaf.edges, b.C.fine.edges):
        return np.inf, "exact"
    own = scipy.sparse.csr_array(b.R - b.modes.prolongation)
    same = worst(
        residual_ratio(
            norms_by(own, b.row_cluster, None, b.K), b.n, b.eps, np.maximum(b.R_norms, 1)
        )
    )
    if b.modes.local_operator == "oversampled":
        return max(same, b.isometry), "exact"
    operator, norms = b.local_operator
    residual = norms_by(operator @ b.R - b.R @ b.score_matrix, b.row_cluster, None, b.K)
    return max(
        worst(residual_ratio(residual, b.n, b.eps, norms, np.maximum(b.R_norms, 1))),
        same,
        b.isometry,
        b.worst_eigenvalue,
        0.0 if np.array_equal(b.modes.tied, b.ties) else np.inf,
    ), "exact" if b.all_clusters_dense else "probe"


def _spectral_reason(b: Workbench) -> str | None:
    if b.C.modes is None:
        return "the basis is your own"
    if b.C.modes.local_operator != "internal":
        if b.C.modes.local_operator == "oversampled":
            return "the modes are oversampled"
        return f"the modes are those of the {b.C.modes.local_operator} operator"
    return None


def _spectral_form(b: Workbench) -> Outcome:
    """U_a* L_a U_a = diag(lambda)."""
    if reason := _spectral_reason(b):
        return reason
    return b.worst_block(b.retained - b.score_matrix), "exact"


def _local_optimality(b: Workbench) -> Outcome:
    """U_a spans the lowest modes: residual, orthonormality, an independent solver's eigenvalues.

    And no subspace does better (``eq:minmax_local_energy``, ``eq:appendix_courant_fischer``).
    """
    if reason := _spectral_reason(b):
        return reason
    outcome = _modes(b)
    assert not isinstance(outcome, str)
    ratios = [outcome[0]]
    rng = np.random.default_rng(b.seed)
    for a in (
        b.sample.tolist()
    ):  # a random subspace near or far from span U_a has a larger largest energy
        U, L = b.dense(a)
        r = U.shape[1]
        if 0 < r < len(L):
            Q = np.linalg.qr(U, mode="complete")[0][:, r:]
            W = np.linalg.qr(
                U + Q @ rng.standard_normal((Q.shape[1], r)) * 10.0 ** -rng.integers(0, 4)
            )[0]
            top = np.linalg.eigvalsh(W.conj().T @ L @ W)[-1]
            shortfall = max(float(b.eigenvalues(a)[-1]) - float(top), 0.0)
            ratios.append(worst(residual_ratio(shortfall, len(L), b.eps, b.internal_norms[a])))
    return max(ratios), "exact" if b.all_clusters_dense else "probe"


def _truncation(b: Workbench) -> Outcome:
    """norm(x_disc)^2 = sum |alpha|^2 and its energy = sum lambda |alpha|^2; and the gap bound.

    alpha are the coefficients of ``eq:local_eigen_expansion_truncation``, those of the discarded
    modes alone (``eq:retained_discarded_expansion``).
    """
    if reason := _spectral_reason(b):
        return reason
    if b.isometry >= RESIDUAL_LIMIT:
        return b.isometry, "exact"
    E = b.ledger
    assert E.truncation_bound is not None
    # by how much the bound is missed, as an energy, so that a tiny gap divides nothing
    finite = np.isfinite(E.truncation_bound) & (E.truncation_bound > 0)
    excess = np.where(
        finite, (E.discarded_norm2 / np.where(finite, E.truncation_bound, 1) - 1).clip(min=0), 0
    )
    missed = excess * (E.retained_internal + E.discarded_internal)
    ratios = [
        worst(
            residual_ratio(missed, b.n[:, None], b.eps, b.internal_norms[:, None], b.probe_norms2)
        )
    ]
    for a in b.sample.tolist():
        U, L = b.dense(a)
        r = U.shape[1]
        Q = np.linalg.qr(U, mode="complete")[0][:, r:]
        values, V = (
            np.linalg.eigh(Q.conj().T @ L @ Q) if r < len(L) else (np.zeros(0), np.zeros((0, 0)))
        )
        phi = (
            Q @ V
        )  # the discarded modes, from the orthogonal complement so that a tie at the cut is no ambiguity
        alpha2 = np.abs(phi.conj().T @ b.probes[b.rows(a)].astype(L.dtype)) ** 2
        size, x2 = b.internal_norms[a], b.probe_norms2[a]
        ratios += [
            worst(
                residual_ratio(norm(L @ phi - phi * values), len(L), b.eps, size, np.sqrt(len(L)))
            ),
            worst(
                residual_ratio(np.abs(alpha2.sum(axis=0) - E.discarded_norm2[a]), len(L), b.eps, x2)
            ),
            worst(
                residual_ratio(
                    np.abs(values @ alpha2 - E.discarded_internal[a]), len(L), b.eps, size, x2
                )
            ),
        ]
    return max(ratios), "probe"


def _two_losses(b: Workbench) -> Outcome:
    """Retained internal energy = sum lambda_i |z_i|^2, no coupling, and discarded = internal energy of x - retained."""
    if reason := _spectral_reason(b):
        return reason
    if b.isometry >= RESIDUAL_LIMIT:
        return b.isometry, "exact"
    E = b.ledger
    per_mode = b.scores[:, None] * np.abs(b.R.conj().T @ b.probes).astype(np.float64) ** 2
    by_cluster = np.stack(
        [np.bincount(b.column_cluster, column, minlength=b.K) for column in per_mode.T], axis=1
    )
    discarded = b.internal_energy - E.retained_internal
    errors = (
        E.retained_internal - by_cluster,
        E.internal_coupling,
        E.discarded_internal - discarded,
    )
    factors = (b.internal_norms[:, None], b.probe_norms2)
    return max(
        worst(residual_ratio(np.abs(error), b.n[:, None], b.eps, *factors)) for error in errors
    ), "probe"


def _loopless(b: Workbench) -> bool:
    return worst(b.internal_rows_ratio) < RESIDUAL_LIMIT


def _loopless_reason(b: Workbench) -> str | None:
    if _loopless(b):
        return None
    a = int(np.argmax(b.internal_rows_ratio >= RESIDUAL_LIMIT))
    return f"retained modes have internal energy, first in cluster {a}"


def _loopless_realization(b: Workbench) -> Outcome:
    """delta_x* delta_x = L_Gal (``eq:loopless_exact_realization``) when im R_a lies in ker L_a."""
    if reason := _loopless_reason(b):
        return reason
    X = b.crossing_delta
    return b.worst_block(b.galerkin - X.conj().T @ X), "exact"


def _kernel_preservation(b: Workbench) -> Outcome:
    """R* L R and delta have one kernel on im R (``eq:kernel_preservation_image``).

    For delta R has delta_x as its crossing rows and zero internal rows
    (``eq:kernel_preservation``).
    Compressed, delta_x has the Gram matrices of those crossing rows instead, edge by edge, and so
    their kernel.
    """
    if reason := _loopless_reason(b):
        return reason
    return max(worst(b.internal_rows_ratio), b.worst_crossing_edge()), "exact"


def _interlacing(b: Workbench) -> Outcome:
    """lambda_i(L) <= lambda_i(L_Gal), and the crossing-only operator lies below L_Gal."""
    if b.isometry >= RESIDUAL_LIMIT:
        return "R is not an isometry"
    if max(b.L.shape[0], b.galerkin.shape[0]) > DENSE:
        return (
            b.isometry,
            "exact",
        )  # it follows from R* R = I, which was compared, and the energy decomposition
    L, G = (matrix.toarray().astype(b.double) for matrix in (b.L, b.galerkin))
    n, size = len(L), norm(L)
    fine, coarse = np.linalg.eigvalsh(L), np.linalg.eigvalsh((G + G.conj().T) / 2)
    X = b.crossing_delta.astype(b.double)
    rest = G - (X.conj().T @ X).toarray()
    lowest = np.linalg.eigvalsh((rest + rest.conj().T) / 2).min(initial=0.0)
    missed = (fine[: len(coarse)] - coarse).max(initial=0.0)
    return worst(
        [residual_ratio(missed, n, b.eps, size), residual_ratio(-lowest, n, b.eps, size)]
    ), "dense"


def _sections_kept(b: Workbench) -> Outcome:
    """H^0 is preserved when every local section is kept: all global sections lie in im R, where L_Gal is L."""
    oversampled = b.C.modes is not None and b.C.modes.local_operator == "oversampled"
    if not oversampled and (reason := _spectral_reason(b)):
        return reason
    if b.isometry >= RESIDUAL_LIMIT:
        return b.isometry, "exact"
    level = (
        0.0 if oversampled else zero_level(b.n, b.eps, b.modes.operator_norms.astype(np.float64))
    )
    lost = np.flatnonzero(b.modes.next_eigenvalues <= level)
    if lost.size:
        return f"a local section may be discarded, first in cluster {lost[0]}"
    if b.C.fine.dim_c0 > DENSE:
        return (
            b.isometry,
            "exact",
        )  # a global section restricts to local ones, and all of those lie in im R
    sections, gap = b.global_sections()
    discarded = norms_by(sections - b.R @ (b.R.conj().T @ sections), b.row_cluster, None, b.K)
    n = max(b.C.fine.dim_c0, b.C.fine.dim_c1)
    size = norm(b.delta.data)
    if (
        oversampled
    ):  # a dense solver finds sections to eps norm(delta) over the smallest nonzero singular value
        return worst(residual_ratio(discarded * gap, n, b.eps, size, norm(sections))), "dense"
    # a dense solver finds sections to eps norm(delta), and what is discarded has at least the first
    # discarded eigenvalue
    gaps = np.minimum(b.modes.next_eigenvalues, b.modes.operator_norms).astype(np.float64)
    return worst(
        residual_ratio(discarded * gaps, n, b.eps, b.internal_delta_norms, size, norm(sections))
    ), "dense"


def _normalization(b: Workbench) -> Outcome:
    """Normalizing is a change of maps: the Laplacian of normalize(F) is D^{-1/2} L D^{-1/2}."""
    sheaf, roots = b.normalized
    change = scipy.sparse.csr_array(roots @ b.L @ roots)
    dims = b.C.fine.vertex_dims
    vertex = np.repeat(np.arange(len(dims)), dims)
    D = scipy.sparse.coo_array(change - laplacian(sheaf))
    pairs, which = np.unique(
        vertex[D.coords[0]] * len(dims) + vertex[D.coords[1]], return_inverse=True
    )
    u, v = pairs // max(len(dims), 1), pairs % max(len(dims), 1)
    sizes = scaled_norms(np.abs(D.data), which, len(pairs))
    root_norms = norms_by(roots, vertex, None, len(dims))
    block_norms = np.sqrt(norms_by(b.L, vertex, vertex, len(dims)))
    factors = (root_norms[u], root_norms[v], block_norms[u], block_norms[v])
    F = b.C.fine
    terms = np.bincount(
        F.edges.reshape(-1), np.repeat(F.edge_dims, 2), minlength=len(dims)
    )  # summed in a diagonal block
    n = np.maximum(dims, terms)
    return worst(residual_ratio(sizes, np.maximum(n[u], n[v]), b.eps, *factors)), "exact"


def _dirichlet(b: Workbench) -> Outcome:
    """The Dirichlet energy x* Delta x is the energy of the normalized sheaf, each edge once and without a factor 1/2."""
    sheaf, roots = b.normalized
    x = b.probes
    y = roots @ x
    exact = np.real(np.sum(np.conj(y) * (b.L @ y), axis=0))
    size = norms_by(b.L, b.row_cluster * 0, None, 1)[0] if b.L.nnz else 0.0
    # not norm(y): D^{-1/2} x may cancel, and does in the sheaf's maps too
    vertex = np.repeat(np.arange(b.C.fine.n_vertices), b.C.fine.vertex_dims)
    spread = norms_by(roots, vertex, None, b.C.fine.n_vertices)[vertex][:, None] * np.abs(x)
    x2 = np.array([norm(column) for column in spread.T]) ** 2
    return worst(
        residual_ratio(np.abs(exact - energy(sheaf, x)), b.C.fine.dim_c0, b.eps, size, x2)
    ), "probe"


STATEMENTS: tuple[tuple[str, str, Callable[[Workbench], Outcome]], ...] = (
    ("local modes", "section-2", _modes),
    ("energy identity", "eq:galerkin_energy_identity", _energy_identity),
    ("local optimality", "thm:local_spectral_optimality", _local_optimality),
    ("truncation loss", "prop:truncation_loss", _truncation),
    ("energy decomposition", "thm:galerkin_energy_decomposition", _decomposition),
    ("spectral form", "eq:retained_internal_energy_spectral", _spectral_form),
    ("loop-cell realization", "thm:Galerkin_realization", _realization),
    ("two losses", "cor:truncation_realization_errors", _two_losses),
    ("ledger closes", "section-4", _ledger_closes),
    ("loopless realization", "eq:loopless_exact_realization", _loopless_realization),
    ("kernel preservation", "prop:kernel_preservation_loopless", _kernel_preservation),
    ("interlacing", "fact-1", _interlacing),
    ("sections kept", "fact-2", _sections_kept),
    ("normalization", "fact-5", _normalization),
    ("Dirichlet energy", "fact-6", _dirichlet),
)
