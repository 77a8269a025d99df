"""Local modes of all clusters, validated on construction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import ReadOnly, checks, linalg, ragged, tables, warned
from sheafcoarsen.exceptions import SingularProblemWarning, TiedModesWarning
from sheafcoarsen.modes.local_operators import LocalOperator, Oversampled, local_operator_of
from sheafcoarsen.modes.prolongation import Prolongation, frozen
from sheafcoarsen.partition import Clusters, Partition, check_partition, clusters_of
from sheafcoarsen.ranks import Budget, WholeMultiplets
from sheafcoarsen.sheaf import CellularSheaf


@dataclass(frozen=True, eq=False, repr=False)
class LocalModes(ReadOnly):
    """The first r_a modes of every cluster (``eq:local_spectral_basis``), and the next eigenvalue.

    ``eigenvalues(a)`` and ``basis(a)`` return the modes of one cluster; the arrays below hold the
    modes of all K clusters.

    Attributes
    ----------
    sheaf, partition : CellularSheaf, Partition
    local_operator : {"internal", "principal", "oversampled"}
    ranks : ndarray of int, shape (K,)
        Number of retained modes r_a of each cluster.
    scores : ndarray, shape (sum r_a,)
        The retained eigenvalues, sorted by cluster and ascending within each cluster.
    next_eigenvalues : ndarray, shape (K,)
        The first discarded eigenvalue of each cluster, or inf if none is discarded.
    tied : ndarray of bool, shape (K,)
        Whether the cut splits a multiple eigenvalue, so that the retained space is not unique: the
        first discarded eigenvalue exceeds the last one kept by at most sqrt(eps) times
        ``operator_norms``, or for oversampled modes, times its own value. False for the modes that
        ``ranks.kernel()`` retains: a kernel is unique, however small the first positive eigenvalue.
    operator_norms : ndarray, shape (K,)
        norm(., inf) of the local operators, or for oversampled modes of the Laplacians of the
        patches.
    prolongation : csr_array, shape (dim_c0, sum r_a)
        R = blockdiag(U_a), with rows in the order of C^0.
    singular : bool
        Whether the modes are singular vectors of the local coboundary, which give exact kernels,
        rather than eigenvectors.
    rings, target : int and float, or None
        For oversampled modes: maximum number of rings of neighbours in a patch, and the largest
        eigenvalue of interest.
    pilot : bool
        Whether ``target`` was estimated by a pilot, on later levels of a hierarchy by that of the
        finest; :meth:`Coarsening.recoarsen` then recomputes it for new maps.
    over_budget : int
        Number of modes by which the kernels alone exceed ``ranks.budget``.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F, P = sc.CellularSheaf.constant(nx.path_graph(5)), sc.Partition([0, 0, 0, 1, 1])
    >>> M = sc.local_modes(F, P, rank=2)
    >>> M.ranks, abs(M.scores).round(12), M.next_eigenvalues.round(12)
    (array([2, 2]), array([0., 1., 0., 2.]), array([ 3., inf]))
    """

    sheaf: CellularSheaf
    partition: Partition
    local_operator: str
    ranks: np.ndarray
    scores: np.ndarray
    next_eigenvalues: np.ndarray
    tied: np.ndarray
    operator_norms: np.ndarray
    prolongation: scipy.sparse.csr_array
    singular: bool = False
    rings: int | None = None
    target: float | None = None
    pilot: bool = False
    over_budget: int = 0

    def __post_init__(self) -> None:
        check_partition(self.sheaf, self.partition)
        oversampled = self.local_operator == Oversampled.name
        try:
            for name in ("singular", "pilot"):
                object.__setattr__(self, name, checks.flag(name, getattr(self, name)))
            # a pilot sets the target 0 if L = 0
            if not (oversampled and self.pilot and self.target == 0):
                local_operator_of(self.local_operator, self.rings, self.target)
            if oversampled and (self.rings is None or self.target is None):
                raise ValueError("oversampled modes must have `rings` and a `target`, got None")
            checks.whole_number("over_budget", self.over_budget, at_least=0)
        except (ValueError, TypeError) as error:
            raise type(error)(f"LocalModes: {error}") from None
        K, scalar = self.partition.n_clusters, np.zeros(0, self.sheaf.dtype).real.dtype

        def checked(name: str, dtype: npt.DTypeLike, length: int) -> np.ndarray:
            values = getattr(self, name)
            given = getattr(values, "dtype", None), getattr(values, "shape", None)
            if not isinstance(values, np.ndarray) or given != (np.dtype(dtype), (length,)):
                what = f"{length} values of type {np.dtype(dtype)}, in an array"
                raise ValueError(f"LocalModes: `{name}` must hold {what}")
            infinite = values.dtype.kind == "f" and name != "next_eigenvalues" and np.isinf(values)
            if (bad := checks.first_true(np.isnan(values) | infinite)) is not None:
                raise ValueError(
                    f"LocalModes: `{name}` must be finite, got {values[bad]} at index {bad}"
                )
            object.__setattr__(self, name, frozen(values))
            return values

        ranks = checked("ranks", np.int64, K)
        dims = self.clusters.dims
        if (a := checks.first_true((ranks < 0) | (ranks > dims))) is not None:
            raise ValueError(
                f"LocalModes: `ranks[{a}]` = {ranks[a]} exceeds the cluster's dimension "
                f"{dims[a]} or is negative"
            )
        checked("scores", scalar, int(ranks.sum()))
        checked("next_eigenvalues", scalar, K)
        checked("operator_norms", scalar, K)
        checked("tied", np.bool_, K)
        object.__setattr__(self, "prolongation", self.R.matrix)

    @cached_property
    def R(self) -> Prolongation:
        """The prolongation as dense blocks, one per cluster."""
        return Prolongation.from_matrix(
            self.sheaf, self.clusters, self.ranks, self.prolongation, "LocalModes"
        )

    @cached_property
    def rank_offsets(self) -> np.ndarray:
        """First index of each cluster in ``scores`` and in the columns of R, shape (K + 1,)."""
        return ragged.read_only(ragged.offsets(self.ranks))

    @cached_property
    def clusters(self) -> Clusters:
        """The clusters with all index arrays that the local operator needs."""
        return self.operator.index(self.sheaf, clusters_of(self.sheaf, self.partition))

    @cached_property
    def operator(self) -> LocalOperator:
        """The local operator with the settings that the user passed."""
        if self.local_operator != Oversampled.name:
            return local_operator_of(self.local_operator)
        assert self.rings is not None
        return Oversampled(self.rings, None if self.pilot else self.target)

    @property
    def holds_sections(self) -> bool:
        """Whether the modes are known to include the kernels of all local operators."""
        oversampled = self.local_operator == Oversampled.name
        return self.singular or (oversampled and bool((self.next_eigenvalues > 0).all()))

    def eigenvalues(self, a: int) -> np.ndarray:
        """Return the r_a eigenvalues retained in cluster ``a``, ascending.

        Parameters
        ----------
        a : int
            The cluster.

        Returns
        -------
        ndarray, shape (r_a,)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F, P = sc.CellularSheaf.constant(nx.path_graph(5)), sc.Partition([0, 0, 0, 1, 1])
        >>> M = sc.local_modes(F, P, rank=2)
        >>> abs(M.eigenvalues(1)).round(12)
        array([0., 2.])
        """
        a = checks.item_index("a", a, "cluster", len(self.ranks))
        return self.scores[self.rank_offsets[a] : self.rank_offsets[a + 1]]

    def basis(self, a: int) -> np.ndarray:
        """Return the basis U_a of the modes retained in cluster ``a``, shape (N_a, r_a).

        Its rows are ordered by vertex of the cluster, then by stalk coordinate.

        Parameters
        ----------
        a : int
            The cluster.

        Returns
        -------
        ndarray, shape (N_a, r_a)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F, P = sc.CellularSheaf.constant(nx.path_graph(5)), sc.Partition([0, 0, 0, 1, 1])
        >>> M = sc.local_modes(F, P, rank=2)
        >>> abs(M.basis(1)).round(3)
        array([[0.707, 0.707],
               [0.707, 0.707]])
        """
        return self.R.block(checks.item_index("a", a, "cluster", len(self.ranks)))

    def __repr__(self) -> str:
        spread = f"{self.ranks.min()} .. {self.ranks.max()}" if len(self.ranks) else "none"
        own = "" if self.target is None else f", rings={self.rings}, target={self.target:.3g}"
        over = f", kernels {self.over_budget} over budget" if self.over_budget else ""
        return (
            f"LocalModes({self.local_operator!r}, n_clusters={len(self.ranks)}, ranks {spread}, "
            f"dim {self.prolongation.shape[1]} of {self.sheaf.dim_c0}, "
            f"tied={int(self.tied.sum())}{own}{over})"
        )

    def _repr_html_(self) -> str:
        kept, after = self._without_rounding()
        rows = [
            ("clusters", len(self.ranks)),
            ("local operator", self.local_operator),
            ("modes per cluster", tables.span(self.ranks)),
            ("dimension kept", f"{self.prolongation.shape[1]:,} of {self.sheaf.dim_c0:,}"),
            ("kept eigenvalues", tables.span(kept)),
            ("first discarded eigenvalues", tables.span(after[np.isfinite(after)])),
            ("clusters whose cut splits a multiple eigenvalue", int(self.tied.sum())),
        ]
        return tables.table(rows, caption="LocalModes")

    def _without_rounding(self) -> tuple[np.ndarray, np.ndarray]:
        """Return scores and next eigenvalues as float64; those below working accuracy become 0."""
        zero = linalg.zero_energy(self.clusters.dims, self.sheaf.dtype, self.operator_norms)
        if self.local_operator == Oversampled.name:  # the score of a section is exactly 0
            zero = np.zeros(len(zero))
        kept, after = self.scores.astype(np.float64), self.next_eigenvalues.astype(np.float64)
        return (
            np.where(kept <= np.repeat(zero, self.ranks), 0.0, kept),
            np.where(after <= zero, 0.0, after),
        )

    @property
    def _discards_zero(self) -> np.ndarray:
        """Mask of the clusters whose first discarded mode has eigenvalue 0."""
        return self._without_rounding()[1] == 0


def warn_if_tied(
    tied: np.ndarray,
    zero: np.ndarray | bool,
    where: str = "",
    name: str = "`tied` of the modes",
    advice: str = "coarsen with a rule such as ranks.fixed(r).whole_multiplets() to keep them all",
) -> None:
    """Warn if the cut splits a multiple eigenvalue in some cluster, given the mask ``tied``.

    ``zero`` is the mask of clusters where the first discarded eigenvalue is 0, and ``name`` is the
    name of ``tied`` in the message. ``where`` is a prefix of the message, which does not count
    clusters, so that Python shows it once per line of code for similar sheaves.
    """
    lost = "which does no harm if any of these spaces serves; otherwise "
    if (b := checks.first_true(tied & zero)) is not None:
        lost = f"and global sections may be lost, because the eigenvalue is 0 in cluster {b}: "
    if (a := checks.first_true(tied)) is not None:
        warned.warn(
            f"{where}the cut splits a multiple eigenvalue in the clusters where {name} is True, "
            f"first in cluster {a}. The coarse space is not unique there, {lost}{advice}. "
            f"Eigenvalues count as equal if they differ by at most sqrt(eps) times the norm of the "
            f"local operator, which is large around hubs, or for oversampled modes, times their "
            f"own value",
            TiedModesWarning,
        )


def warn_if_empty(
    dim: int, ranks: np.ndarray, next_eigenvalues: np.ndarray, where: str = ""
) -> None:
    """Warn if no local operator of a sheaf with dim C^0 = ``dim`` has a kernel."""
    if dim and not ranks.any():
        lowest = next_eigenvalues[np.isfinite(next_eigenvalues)]
        low, high = lowest.min(), lowest.max()
        warned.warn(
            f"{where}no local operator has eigenvalue 0, so `ranks.kernel()` retains none of {dim} "
            f"dimensions and the coarse sheaf has dimension 0. The lowest eigenvalues of the "
            f"clusters are {low:.3g} to {high:.3g}: use ranks.below({high:.3g}) to retain modes up "
            f"to this eigenvalue, or ranks.fixed(r) to retain the r lowest modes of every cluster "
            f"(local sections are the kernels of internal operators, not of principal ones)",
            SingularProblemWarning,
        )


def warn_if_sections_lost(lost: int, n_clusters: int, rank: Any, where: str = "") -> None:
    """Warn if a budget discards modes of eigenvalue zero in ``lost`` clusters."""
    rule = rank.rule if isinstance(rank, WholeMultiplets) else rank
    if isinstance(rule, Budget) and lost:
        warned.warn(
            f"{where}`ranks.budget({rule.total})` discards modes of eigenvalue 0 in {lost} of "
            f"{n_clusters} clusters, so that the coarse sheaf may lose global sections: "
            f"increase `total` to at least the sum of the ranks of `ranks.kernel()`, which retains "
            f"all of these modes",
            SingularProblemWarning,
        )
