"""Local modes: low eigenvectors of each cluster's operator, which span the coarse stalk."""

from typing import Any

from sheafcoarsen._support import flag
from sheafcoarsen.modes.local_operators import (
    LocalOperator,
    LocalOperatorLike,
    Oversampled,
    local_operator_of,
)
from sheafcoarsen.modes.oversampled import OversampledProblems
from sheafcoarsen.modes.problems import LocalProblems
from sheafcoarsen.modes.result import LocalModes, warn_if_tied
from sheafcoarsen.partition import Clusters, Partition, check_partition, clusters_of
from sheafcoarsen.ranks import Budget, RankLike, as_rule
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
    (``eq:internal_sheaf_laplacian``): edges with both ends in the cluster. Its first r_a
    eigenvectors (``eq:internal_sheaf_spectrum``; of the constant sheaf, ``eq:graph_fourier_modes``)
    span the space of least energy (``eq:optimal_local_subspace``, by
    ``thm:local_spectral_optimality``). ``"principal"`` is the block L[C_a, C_a] of the paper's
    layer (section 5.1, Reduce), which also contains F* F of the crossing edges on boundary
    vertices; it loses global sections and the low spectrum (docs/conventions.md, section 2).

    ``"oversampled"`` modes approximate best the responses of a cluster to sources on the border of
    a patch T around it, and to interior sources scaled by the wanted eigenvalues
    (docs/conventions.md, section 10): with A = L_T + 0.1 s I, X = A^{-1} P_C* and Y = A^{-1} X,
    first the sections of T restricted to the cluster, then the leading eigenvectors of G = X_b* X_b
    + s^2 Y* Y in their complement. The scores, and so ``eigenvalues``, are 0 and then (eigenvalue
    of G)^{-1/2}. The errors of the low spectrum are then smaller, by orders of magnitude if many
    modes are retained, most so with ``sc.ranks.budget`` (docs/fidelity.md).

    Parameters
    ----------
    sheaf : CellularSheaf
    P : Partition
    rank : int, array_like of int of shape (K,), or rule from ``sc.ranks``
        Number of modes that each cluster retains, clipped to the cluster's dimension N_a.
    local_operator : {"internal", "principal", "oversampled"}
    rings : int, optional
        For "oversampled", 1 by default: a patch is the cluster with at most this many rings of
        neighbours, the most strongly coupled first, of at most twice its dimension.
    target : float, optional
        For "oversampled": s, the largest eigenvalue of interest. By default it is estimated by a
        pilot: the 10th positive eigenvalue of a coarsening with N_a / 20 internal modes per
        cluster.
    progress : bool
        Show a progress bar.

    Returns
    -------
    LocalModes

    Warns
    -----
    TiedModesWarning
        If the cut splits a multiple eigenvalue: the retained space is then not unique.

    Examples
    --------
    A path cut in the middle; the lowest mode of each half is the constant:

    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
    >>> M = sc.local_modes(F, sc.Partition([0, 0, 1, 1]), 1)
    >>> M.basis(0).round(3)
    array([[0.707],
           [0.707]])
    >>> M.next_eigenvalues
    array([2., 2.])
    """
    check_partition(sheaf, P)
    operator = local_operator_of(local_operator, rings, target)
    modes = compute_modes(sheaf, P, rank, operator, progress=flag("progress", progress))
    warn_if_tied(modes, stacklevel=3)
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
    """Return modes without warning of ties; ``found`` is a pilot's target from a finer level."""
    check_partition(sheaf, P)
    rule = as_rule(rank, P.n_clusters)
    clusters = operator.index(sheaf, clusters_of(sheaf, P))
    local = local_problems(sheaf, P, clusters, operator, found, progress)
    ranks = rule.ranks(local.spectra(rule))
    over = max(0, int(ranks.sum()) - rule.total) if isinstance(rule, Budget) else 0
    return local.modes(ranks, singular=rule.needs_kernels, over_budget=over)


def refresh_modes(
    modes: LocalModes, sheaf: CellularSheaf, *, new_edges: bool = False, found: float | None = None
) -> LocalModes:
    """Return as many modes of the same operator for another sheaf on the same vertices.

    Index arrays are shared unless it has ``new_edges``. ``found`` replaces a pilot's target.
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
    """Return the local problems of an operator."""
    if isinstance(operator, Oversampled):
        return OversampledProblems(sheaf, P, clusters, operator, progress, found)
    return LocalProblems(sheaf, P, clusters, operator, progress)
