"""Every statement of the theory, checked on the user's own coarsening.

Everything is computed here a second time and in another way than in the library: sparse products of the coboundary and R for the
operators, numpy's dense eigensolver for the modes. The coarsening's own fields are only ever compared against.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from sheafcoarsen._checks import whole_number
from sheafcoarsen._linalg import RESIDUAL_LIMIT, eps_of, norm, residual_ratio
from sheafcoarsen._ragged import offsets, ranges
from sheafcoarsen._threads import single_threaded_blas
from sheafcoarsen.clusters import edge_clusters
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.ledger import energy_ledger, isometry_defect
from sheafcoarsen.operators import coboundary, laplacian

DENSE_BUDGET = 3e10
"""Sum of N_a^3 up to which the modes of *every* cluster are checked against a dense solver (seconds); else a sample."""

SAMPLE = 16
"""Clusters on which statements that need all of a cluster's eigenvectors are checked."""


@dataclass(frozen=True)
class Check:
    """One statement, checked or not applicable.

    ``ratio`` is the worst ``norm(error) / (n eps norms)``, below ``threshold`` when the statement holds; None where it does not
    apply, and then ``skipped_because`` says why (and ``passed`` is vacuously true). ``how``: "exact" when everything was compared,
    block by block; "probe" when on random cochains or sampled clusters; "dense" when on dense matrices.
    """

    name: str
    label: str
    ratio: float | None
    threshold: float
    passed: bool
    skipped_because: str | None
    how: str | None


@dataclass(frozen=True)
class Verification:
    """The table of checks; ``str`` shows it."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every statement that applies holds."""
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        rows = [("statement", "label", "ratio", "how", "")]
        for check in self.checks:
            if check.skipped_because is not None:
                rows.append((check.name, check.label, "-", "-", f"does not apply: {check.skipped_because}"))
            else:
                verdict = "ok" if check.passed else "FAILED"
                rows.append((check.name, check.label, f"{check.ratio:.3g}", check.how or "", verdict))
        widths = [max(len(row[i]) for row in rows) for i in range(4)]
        lines = [
            "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[4]]).rstrip() for row in rows
        ]
        verdict = "all that apply hold" if self.passed else "SOME FAILED"
        return "\n".join([*lines, f"{verdict} (a statement holds when its ratio is below {RESIDUAL_LIMIT:g})"])

    def __repr__(self) -> str:
        return str(self)


class _Bench:
    """What several checks need, computed once from the coarsening's fields."""

    def __init__(self, C: Coarsening, seed: int):
        self.C, self.seed = C, seed
        self.eps = eps_of(np.result_type(C.fine.dtype, C.prolongation.dtype))
        self.K = C.partition.n_clusters
        self.row_cluster = np.repeat(C.partition.labels, C.fine.vertex_dims)
        self.column_cluster = np.repeat(np.arange(self.K), C.ranks)
        self.dims = C.clusters.dims
        self.n = np.maximum(self.dims, C.ranks)
        self.edge_cluster = edge_clusters(C.fine, C.partition)
        self.c1_cluster = np.repeat(self.edge_cluster, C.fine.edge_dims)  # -1: crossing

    @cached_property
    def R(self):
        return self.C.prolongation

    @cached_property
    def delta(self):
        return coboundary(self.C.fine)

    @cached_property
    def L(self):
        return laplacian(self.C.fine)

    @cached_property
    def galerkin(self):
        return scipy.sparse.csr_array(self.R.conj().T @ (self.L @ self.R))

    @cached_property
    def delta_R(self):
        return scipy.sparse.csr_array(self.delta @ self.R)

    @cached_property
    def internal_delta_R(self):
        return self.delta_R[np.flatnonzero(self.c1_cluster >= 0)]

    @cached_property
    def retained(self):
        """blockdiag(R_a* L_a R_a), from the fine sheaf."""
        Y = self.internal_delta_R
        return scipy.sparse.csr_array(Y.conj().T @ Y)

    @cached_property
    def coarse_delta(self):
        return coboundary(self.C.sheaf)

    @cached_property
    def crossing_delta(self):
        """The coarse crossing coboundary delta_x, from the coarse sheaf."""
        crossing = self.C.sheaf.edges[:, 0] != self.C.sheaf.edges[:, 1]
        return self.coarse_delta[np.flatnonzero(np.repeat(crossing, self.C.sheaf.edge_dims))]

    @cached_property
    def R_norms(self):
        """norm(R_a)_F, shape (K,)."""
        return _norms_by(self.R, self.row_cluster, None, self.K)

    @cached_property
    def principal_norms(self):
        """norm(L[C_a, C_a])_F, shape (K,)."""
        return _norms_by(self.L, self.row_cluster, self.row_cluster, self.K)

    @cached_property
    def internal_laplacian(self):
        """blockdiag(L_a) in double precision, the reference for the modes."""
        inner = self.delta[np.flatnonzero(self.c1_cluster >= 0)]
        inner = inner.astype(np.result_type(inner.dtype, np.float64))
        return scipy.sparse.csr_array(inner.conj().T @ inner)

    @cached_property
    def internal_norms(self):
        """norm(L_a)_F, shape (K,)."""
        return _norms_by(self.internal_laplacian, self.row_cluster, self.row_cluster, self.K)

    @cached_property
    def internal_delta_norms(self):
        """norm(delta_a)_F, shape (K,)."""
        inner = np.flatnonzero(self.c1_cluster >= 0)
        return _norms_by(self.delta[inner], self.c1_cluster[inner], None, self.K)

    @cached_property
    def cluster_rows(self):
        """Rows of C^0 by cluster, and where each cluster's begin."""
        return np.argsort(self.row_cluster, kind="stable"), offsets(self.dims)

    def rows(self, a: int) -> np.ndarray:
        order, starts = self.cluster_rows
        return order[starts[a] : starts[a + 1]]

    @cached_property
    def sample(self) -> np.ndarray:
        """A few clusters: the largest, one that truncates most, and random ones, never too large for dense work."""
        fits = np.flatnonzero((self.dims > 0) & (self.dims.astype(float) ** 3 <= DENSE_BUDGET / SAMPLE))
        if len(fits) <= SAMPLE:
            return fits
        chosen = np.random.default_rng(self.seed).choice(fits, SAMPLE - 1, replace=False)
        return np.union1d(chosen, fits[[np.argmax(self.dims[fits])]])

    @cached_property
    def internal_rows_ratio(self):
        """norm(delta_a R_a) in units of rounding, shape (K,): small exactly where im R_a lies in ker L_a."""
        inner = np.flatnonzero(self.c1_cluster >= 0)
        size = _norms_by(self.internal_delta_R, self.c1_cluster[inner], None, self.K)
        return residual_ratio(size, self.n, self.eps, self.internal_delta_norms, self.R_norms)

    def worst_block(self, difference) -> float:
        """Worst ratio over the blocks (a, b) of a coarse matrix that ought to vanish, each against its own factors."""
        D = scipy.sparse.coo_array(difference)
        keep = D.data != 0
        if not keep.any():
            return 0.0
        a, b = (self.column_cluster[axis[keep]] for axis in D.coords)
        pairs, which = np.unique(a * self.K + b, return_inverse=True)
        a, b = pairs // self.K, pairs % self.K
        sizes = _scaled_norms(np.abs(D.data[keep]), which, len(pairs))
        return _worst(residual_ratio(
            sizes, np.maximum(self.n[a], self.n[b]), self.eps, self.R_norms[a], self.R_norms[b],
            np.sqrt(self.principal_norms[a]), np.sqrt(self.principal_norms[b]),
        ))  # fmt: skip

    def worst_crossing_row_block(self) -> float:
        """Worst ratio between delta_x and the matching rows of delta R, one coarse edge at a time."""
        C = self.C
        if C.crossing_rows is None:
            return 0.0
        if len(C.crossing_rows) != self.crossing_delta.shape[0]:
            return np.inf
        D = scipy.sparse.coo_array(self.crossing_delta - self.delta_R[C.crossing_rows])
        keep = D.data != 0
        if not keep.any():
            return 0.0
        crossing = np.flatnonzero(C.sheaf.edges[:, 0] != C.sheaf.edges[:, 1])
        edge = np.repeat(np.arange(len(crossing)), C.sheaf.edge_dims[crossing])
        sizes = _scaled_norms(np.abs(D.data[keep]), edge[D.coords[0][keep]], len(crossing))
        fine_rows = self.delta[C.crossing_rows]
        fine = _norms_by(fine_rows, edge, None, len(crossing))
        a, b = C.sheaf.edges[crossing].T
        factor = np.maximum(self.R_norms[a], self.R_norms[b])
        return _worst(residual_ratio(sizes, np.maximum(self.n[a], self.n[b]), self.eps, fine, factor))

    @cached_property
    def isometry(self) -> float:
        """Worst norm(R_a* R_a - I) in units of rounding."""
        return _worst(isometry_defect(self.C))

    @cached_property
    def ledger(self):
        """The ledger of the probes; R must be an isometry."""
        return energy_ledger(self.C, self.probes)

    @cached_property
    def probes(self) -> np.ndarray:
        """Random fine cochains; the second one is smooth, so that small energies are seen as well."""
        rng = np.random.default_rng(self.seed)
        x = rng.standard_normal((self.C.fine.dim_c0, 2))
        if self.R.dtype.kind == "c":
            x = x + 1j * rng.standard_normal(x.shape)
        x[:, 1] = self.R @ (self.R.conj().T @ x[:, 1]) + 0.1 * x[:, 1]
        return x.astype(self.R.dtype)


def _scaled_norms(moduli, which, count) -> np.ndarray:
    """Frobenius norms of groups of entries, scaled by the largest of each against over- and underflow."""
    moduli = moduli.astype(np.float64)
    largest = np.zeros(count)
    np.maximum.at(largest, which, moduli)
    scale = np.where(largest > 0, largest, 1.0)
    return scale * np.sqrt(np.bincount(which, (moduli / scale[which]) ** 2, minlength=count))


def _norms_by(matrix, row_group, column_group, count) -> np.ndarray:
    """Frobenius norms of the row groups of a sparse matrix, or of its diagonal blocks when columns are grouped too."""
    M = scipy.sparse.coo_array(matrix)
    group = row_group[M.coords[0]]
    moduli = np.abs(M.data)
    if column_group is not None:
        inside = group == column_group[M.coords[1]]
        group, moduli = group[inside], moduli[inside]
    return _scaled_norms(moduli, group, count)


def _worst(ratios) -> float:
    ratios = np.asarray(ratios, dtype=np.float64)
    return float(np.where(np.isnan(ratios), np.inf, ratios).max(initial=0.0))


Outcome = tuple[float, str] | str  # (ratio, how), or the reason why the statement does not apply


def _energy_identity(b: _Bench) -> Outcome:
    """z* L_Gal z = norm(delta R z)^2 for every z: as operators, R* L R = (delta R)* (delta R)."""
    Y = b.delta_R
    return b.worst_block(b.galerkin - Y.conj().T @ Y), "exact"


def _decomposition(b: _Bench) -> Outcome:
    """L_Gal = delta_x* delta_x + blockdiag(R_a* L_a R_a), and delta_x is delta R on the crossing edges, sign included."""
    X = b.crossing_delta
    return max(b.worst_block(b.galerkin - (X.conj().T @ X + b.retained)), b.worst_crossing_row_block()), "exact"


def _realization(b: _Bench) -> Outcome:
    """delta_c* delta_c = L_Gal, and the coarse sheaf's own Laplacian is L_Gal."""
    if not b.C.loops and not _loopless(b):
        return "loops=False leaves out the retained internal energy"
    D = b.coarse_delta
    return max(b.worst_block(b.galerkin - D.conj().T @ D), b.worst_block(b.galerkin - laplacian(b.C.sheaf))), "exact"


def _spectral_reason(b: _Bench) -> str | None:
    if b.C.modes is None:
        return "the basis is your own"
    if b.C.modes.local_operator != "internal":
        return f"the modes are those of the {b.C.modes.local_operator} operator"
    return None


def _spectral_form(b: _Bench) -> Outcome:
    """U_a* L_a U_a = diag(lambda)."""
    if reason := _spectral_reason(b):
        return reason
    assert b.C.modes is not None
    scores = b.C.modes.scores
    difference = b.retained - scipy.sparse.diags_array(scores, shape=(len(scores), len(scores)), format="csr")
    return b.worst_block(difference), "exact"


def _local_optimality(b: _Bench) -> Outcome:
    """U_a spans the lowest modes: residual, orthonormality, eigenvalues of an independent solver, and no better subspace."""
    if reason := _spectral_reason(b):
        return reason
    modes = b.C.modes
    assert modes is not None
    scores = scipy.sparse.diags_array(modes.scores, shape=(len(modes.scores),) * 2, format="csr")
    residual = _norms_by(b.internal_laplacian @ b.R - b.R @ scores, b.row_cluster, None, b.K)
    worst = max(
        _worst(residual_ratio(residual, b.n, b.eps, b.internal_norms, np.maximum(b.R_norms, 1))),
        b.isometry,
    )
    everywhere = (b.dims.astype(np.float64) ** 3).sum() <= DENSE_BUDGET
    checked = np.flatnonzero(b.dims > 0) if everywhere else b.sample
    for size in np.unique(b.dims[checked]).tolist():  # one batch per size of cluster
        members = checked[b.dims[checked] == size]
        for part in np.array_split(members, -(-len(members) * size**2 // 2_000_000)):
            values = np.linalg.eigvalsh(_dense_blocks(b, part, size))
            for a, exact in zip(part.tolist(), values, strict=True):
                r = int(modes.ranks[a])
                ours = np.append(modes.eigenvalues(a), modes.next_eigenvalues[a])[: min(r + 1, size)]
                error = norm(ours.astype(np.float64) - exact[: len(ours)].clip(min=0))
                worst = max(worst, _worst(residual_ratio(error, size, b.eps, b.internal_norms[a])))
    rng = np.random.default_rng(b.seed)
    for a in b.sample.tolist():
        U, L = _dense_R(b, a), _dense_blocks(b, np.array([a]), int(b.dims[a]))[0]
        r = U.shape[1]
        if not 0 < r < len(L):
            continue
        Q = np.linalg.qr(U, mode="complete")[0][:, r:]
        W = np.linalg.qr(U + Q @ rng.standard_normal((Q.shape[1], r)) * 10.0 ** -rng.integers(0, 4))[0]
        top = np.linalg.eigvalsh(W.conj().T @ L @ W)[-1]
        shortfall = max(float(modes.eigenvalues(a)[-1]) - float(top), 0.0)
        worst = max(worst, _worst(residual_ratio(shortfall, len(L), b.eps, b.internal_norms[a])))
    return worst, "exact" if everywhere else "probe"


def _dense_blocks(b: _Bench, clusters: np.ndarray, size: int) -> np.ndarray:
    """Return the dense L_a of clusters of one size, shape (len(clusters), size, size)."""
    order, starts = b.cluster_rows
    rows = order[ranges(starts[clusters], np.full(len(clusters), size))]
    local = np.zeros(b.C.fine.dim_c0, np.int64)
    local[rows] = np.tile(np.arange(size), len(clusters))
    part = scipy.sparse.coo_array(b.internal_laplacian[rows])
    out = np.zeros((len(clusters), size, size), part.dtype)
    out[part.coords[0] // size, part.coords[0] % size, local[part.coords[1]]] = part.data
    return out


def _dense_R(b: _Bench, a: int) -> np.ndarray:
    return b.C.block(a).astype(b.internal_laplacian.dtype)


def _truncation(b: _Bench) -> Outcome:
    """norm(x_disc)^2 = sum |alpha|^2 and its energy = sum lambda |alpha|^2 over discarded modes; and the gap bound."""
    if reason := _spectral_reason(b):
        return reason
    if b.isometry >= RESIDUAL_LIMIT:
        return b.isometry, "exact"
    E = b.ledger
    assert E.truncation_bound is not None
    x2 = np.stack([_scaled_norms(np.abs(x), b.row_cluster, b.K) for x in b.probes.T], axis=1) ** 2
    # the bound, multiplied out so that a tiny gap does not divide: norm(x_disc)^2 lambda_{r+1} <= E_a
    finite = np.isfinite(E.truncation_bound) & (E.truncation_bound > 0)
    excess = np.where(finite, (E.discarded_norm2 / np.where(finite, E.truncation_bound, 1) - 1).clip(min=0), 0)
    energy = excess * (E.retained_internal + E.discarded_internal)
    worst = _worst(residual_ratio(energy, b.n[:, None], b.eps, b.internal_norms[:, None] + (energy == 0), x2))
    for a in b.sample.tolist():
        U, L = _dense_R(b, a), _dense_blocks(b, np.array([a]), int(b.dims[a]))[0]
        r = U.shape[1]
        Q = np.linalg.qr(U, mode="complete")[0][:, r:]
        values, V = np.linalg.eigh(Q.conj().T @ L @ Q) if r < len(L) else (np.zeros(0), np.zeros((0, 0)))
        phi = Q @ V  # the discarded modes, from the orthogonal complement so that a tie at the cut is no ambiguity
        eigen = norm(L @ phi - phi * values)
        alpha2 = np.abs(phi.conj().T @ b.probes[b.rows(a)].astype(L.dtype)) ** 2
        gap = np.abs(alpha2.sum(axis=0) - E.discarded_norm2[a])
        loss = np.abs(values @ alpha2 - E.discarded_internal[a])
        worst = max(
            worst,
            _worst(residual_ratio(eigen, len(L), b.eps, b.internal_norms[a], np.sqrt(len(L)))),
            _worst(residual_ratio(gap, len(L), b.eps, x2[a])),
            _worst(residual_ratio(loss, len(L), b.eps, np.full(2, b.internal_norms[a]), x2[a])),
        )
    return worst, "probe"


def _two_losses(b: _Bench) -> Outcome:
    """Retained internal energy = sum lambda_i |z_i|^2, no coupling, and discarded = internal energy of x - retained."""
    if reason := _spectral_reason(b):
        return reason
    if b.isometry >= RESIDUAL_LIMIT:
        return b.isometry, "exact"
    assert b.C.modes is not None
    E = b.ledger
    z = b.R.conj().T @ b.probes
    per_mode = b.C.modes.scores[:, None].astype(np.float64) * np.abs(z).astype(np.float64) ** 2
    by_cluster = np.stack([np.bincount(b.column_cluster, column, minlength=b.K) for column in per_mode.T], axis=1)
    x2 = np.stack([_scaled_norms(np.abs(x), b.row_cluster, b.K) for x in b.probes.T], axis=1) ** 2
    inner = np.flatnonzero(b.c1_cluster >= 0)
    y = np.abs(b.delta[inner] @ b.probes).astype(np.float64)
    whole = np.stack([_scaled_norms(column, b.c1_cluster[inner], b.K) for column in y.T], axis=1) ** 2
    worst = 0.0
    for error in (
        E.retained_internal - by_cluster,
        E.internal_coupling,
        E.retained_internal + E.discarded_internal - whole,
    ):
        worst = max(
            worst,
            _worst(residual_ratio(np.abs(error), b.n[:, None], b.eps, b.internal_norms[:, None] * np.ones(2), x2)),
        )
    return worst, "probe"


def _ledger_closes(b: _Bench) -> Outcome:
    """The six lines of the energy ledger add up to the fine energy."""
    if b.isometry >= RESIDUAL_LIMIT:
        return "R is not an isometry"
    E = b.ledger
    lines = np.array(list(E.lines.values()))
    B = norm(b.delta.data) * np.array([norm(x) for x in b.probes.T])
    n = int(b.n.max(initial=1))
    allowed = B * (np.sqrt(np.abs(lines).sum(axis=0)) + n * b.eps * B)
    return _worst(residual_ratio(np.abs(lines.sum(axis=0) - E.fine_energy), n, b.eps, allowed)), "probe"


def _loopless(b: _Bench) -> bool:
    return _worst(b.internal_rows_ratio) < RESIDUAL_LIMIT


def _loopless_reason(b: _Bench) -> str | None:
    if _loopless(b):
        return None
    a = int(np.argmax(b.internal_rows_ratio >= RESIDUAL_LIMIT))
    return f"retained modes have internal energy, first in cluster {a}"


def _loopless_realization(b: _Bench) -> Outcome:
    """delta_x* delta_x = L_Gal when im R_a lies in ker L_a."""
    if reason := _loopless_reason(b):
        return reason
    X = b.crossing_delta
    return b.worst_block(b.galerkin - X.conj().T @ X), "exact"


def _kernel_preservation(b: _Bench) -> Outcome:
    """Delta R has delta_x as its crossing rows and zero internal rows, so that both have one kernel."""
    if reason := _loopless_reason(b):
        return reason
    if b.C.crossing_rows is None:
        return "the edge stalks are compressed"
    return max(_worst(b.internal_rows_ratio), b.worst_crossing_row_block()), "exact"


STATEMENTS: tuple[tuple[str, str, Callable[[_Bench], Outcome]], ...] = (
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
)


def verify(C: Coarsening, seed: int = 0) -> Verification:
    """Check every statement of the theory that applies to a coarsening, on that coarsening.

    Each is judged by ``norm(error) / (n eps norms)`` below 30, n the size of the block compared, and the worst block counts
    (docs/conventions.md, section 3), so the verdict does not depend on the scale of the maps.

    Parameters
    ----------
    C : Coarsening
    seed : int
        For random cochains and sampled clusters.

    Returns
    -------
    Verification
        ``passed``, ``checks``, and a table as ``str``.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
    >>> C = sc.coarsen(F, sc.select(F, 5), rank=2)
    >>> sc.verify(C).passed
    True
    """
    if not isinstance(C, Coarsening):
        raise TypeError(f"`C` must be a Coarsening, got {type(C).__name__}")
    seed = whole_number("seed", seed, at_least=0)
    _check_shapes(C)
    bench = _Bench(C, seed)
    checks = []
    for name, label, statement in STATEMENTS:
        with single_threaded_blas():  # small dense blocks: more threads only wait for each other
            outcome = statement(bench)
        if isinstance(outcome, str):
            checks.append(Check(name, label, None, RESIDUAL_LIMIT, True, outcome, None))
        else:
            ratio, how = outcome
            checks.append(Check(name, label, ratio, RESIDUAL_LIMIT, bool(ratio < RESIDUAL_LIMIT), None, how))
    return Verification(tuple(checks))


def _check_shapes(C: Coarsening) -> None:
    """Refuse a coarsening put together from parts that do not fit, before sparse products say it worse."""
    K = C.partition.n_clusters
    if C.partition.n_vertices != C.fine.n_vertices or C.sheaf.n_vertices != K:
        raise ValueError(
            f"`C` does not fit together: a sheaf of {C.fine.n_vertices} vertices, a partition of {C.partition.n_vertices} into "
            f"{K} clusters, a coarse sheaf of {C.sheaf.n_vertices} vertices"
        )
    if C.prolongation.shape != (C.fine.dim_c0, C.sheaf.dim_c0):
        raise ValueError(
            f"`C` does not fit together: R has shape {C.prolongation.shape}, C^0 has dimensions "
            f"{C.fine.dim_c0} and {C.sheaf.dim_c0}"
        )
    if C.modes is not None and not np.array_equal(C.modes.ranks, C.sheaf.vertex_dims):
        raise ValueError(
            "`C` does not fit together: the ranks of its modes are not the dimensions of the coarse stalks"
        )
