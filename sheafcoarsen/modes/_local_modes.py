"""Local modes: low eigenvectors of each cluster's operator, which span the coarse stalk."""

from __future__ import annotations

from typing import Any

from sheafcoarsen._support import checks
from sheafcoarsen.modes.local_operators import (
    LocalOperator,
    LocalOperatorLike,
    Oversampled,
    local_operator_of,
)
from sheafcoarsen.modes.oversampled import OversampledProblems
from sheafcoarsen.modes.problems import LocalProblems
from sheafcoarsen.modes.result import LocalModes, warn_if_sections_lost, warn_if_tied
from sheafcoarsen.partition import Clusters, Partition, check_partition, clusters_of
from sheafcoarsen.ranks import Budget, RankLike, WholeMultiplets, as_rule
from sheafcoarsen.sheaf import CellularSheaf


def local_modes(
    sheaf: CellularSheaf,
    P: Partition,
    rank: RankLike,
    local_operator: LocalOperatorLike = "internal",
    *,
    rings: int | None = None,
    target: float | None = None,
    progress: bool = False,
) -> LocalModes:
    """Return the lowest modes of every cluster's local operator.

    ``"internal"`` is the internal Laplacian L_a of the paper's theory
    (``eq:internal_sheaf_laplacian``), which contains the edges with both ends in the cluster. Its
    first r_a eigenvectors (``eq:internal_sheaf_spectrum``; for the constant sheaf,
    ``eq:graph_fourier_modes``) span the subspace of minimum energy (``eq:optimal_local_subspace``,
    by ``thm:local_spectral_optimality``). ``"principal"`` is the block L[C_a, C_a] of the paper's
    layer (section 5.1, Reduce), which also contains F* F of the crossing edges at boundary
    vertices; it loses global sections and the low spectrum (docs/conventions.md, section 2).

    ``"oversampled"`` modes give the best approximation of a cluster's responses to sources on the
    border of a patch T around it, and to interior sources scaled by the wanted eigenvalues
    (docs/conventions.md, section 10). With A = L_T + 0.1 s I, X = A^{-1} P_C* and Y = A^{-1} X,
    the modes are the sections of T restricted to the cluster, followed by the leading eigenvectors
    of G = X_b* X_b + s^2 Y* Y in their orthogonal complement. The scores, which ``eigenvalues``
    returns, are 0 for the former and (eigenvalue of G)^{-1/2} for the latter. Errors of the low
    spectrum are smaller than with internal modes: by orders of magnitude if many modes are
    retained, and smallest with ``sc.ranks.budget`` (docs/fidelity.md).

    Parameters
    ----------
    sheaf : CellularSheaf
    P : Partition
    rank : int, array_like of int of shape (K,), or rule from ``sc.ranks``
        Number of modes that each cluster retains, clipped to the cluster's dimension N_a.
    local_operator : {"internal", "principal", "oversampled"}
    rings : int, optional
        For "oversampled", 1 by default: maximum number of rings of neighbours that are added to a
        cluster to form its patch. Strongly coupled neighbours are added first, until the patch
        has twice the dimension of the cluster.
    target : float, optional
        For "oversampled": s, the largest eigenvalue of interest. By default it is estimated as
        the 10th positive eigenvalue of a pilot, a coarsening with N_a / 20 internal modes per
        cluster.
    progress : bool
        Show a progress bar.

    Returns
    -------
    LocalModes

    Warns
    -----
    TiedModesWarning
        If the cut splits a multiple eigenvalue, because the retained space is then not unique.
    SingularProblemWarning
        If ``ranks.budget(total)`` discards modes of eigenvalue zero.

    Examples
    --------
    Cut a path in the middle; the lowest mode of each half is constant:

    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
    >>> M = sc.local_modes(F, sc.Partition([0, 0, 1, 1]), 1)
    >>> M.basis(0).round(3)
    array([[0.707],
           [0.707]])
    >>> M.eigenvalues(0), M.next_eigenvalues
    (array([0.]), array([2., 2.]))
    """
    operator = local_operator_of(local_operator, rings, target)
    modes = compute_modes(sheaf, P, rank, operator, progress=checks.flag("progress", progress))
    zero = modes._discards_zero
    warn_if_tied(modes.tied, zero)
    warn_if_sections_lost(zero.sum(), len(modes.ranks), rank)
    return modes


def compute_modes(
    sheaf: CellularSheaf,
    P: Partition,
    rank: Any,
    operator: LocalOperator,
    *,
    found: float | None = None,
    progress: bool = False,
) -> LocalModes:
    """Return modes without warning about ties; ``found`` is the pilot target of a finer level."""
    check_partition(sheaf, P)
    rule = as_rule(rank, P.n_clusters)
    clusters = operator.index(sheaf, clusters_of(sheaf, P))
    local = local_problems(sheaf, P, clusters, operator, found, progress)
    spectra = local.spectra(rule)
    ranks = rule.ranks(spectra)
    inner, over = rule.rule if isinstance(rule, WholeMultiplets) else rule, 0
    if isinstance(inner, Budget):
        over = max(0, int(spectra.kernels.sum()) - inner.total)
    return local.modes(ranks, singular=rule.needs_kernels, over_budget=over)


def refresh_modes(
    modes: LocalModes, sheaf: CellularSheaf, *, new_edges: bool = False, found: float | None = None
) -> LocalModes:
    """Return as many modes per cluster for another sheaf on the same vertices.

    Index arrays are shared unless the sheaf has ``new_edges``; ``found`` replaces a pilot target.
    """
    operator, clusters = modes.operator, modes.clusters
    if new_edges:
        clusters = operator.index(sheaf, clusters_of(sheaf, modes.partition))
    local = local_problems(sheaf, modes.partition, clusters, operator, found)
    singular, over = modes.singular, modes.over_budget
    return local.modes(modes.ranks, singular=singular, layout=modes.R, over_budget=over)


def local_problems(
    sheaf: CellularSheaf,
    P: Partition,
    clusters: Clusters,
    operator: LocalOperator,
    found: float | None = None,
    progress: bool = False,
) -> LocalProblems:
    """Return the local eigenproblems of all clusters for an operator."""
    if isinstance(operator, Oversampled):
        return OversampledProblems(sheaf, P, clusters, operator, progress, found)
    return LocalProblems(sheaf, P, clusters, operator, progress)
