"""What local modes are: the result, checked where it is made or altered."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from sheafcoarsen._support import (
    MAX_DIMENSION,
    choice,
    eps_of,
    offsets,
    read_only,
    real_number,
    tables,
    whole_number,
    zero_level,
)
from sheafcoarsen.exceptions import TiedModesWarning
from sheafcoarsen.modes.prolongation import block, check_layout, cluster_number
from sheafcoarsen.partition import Clusters, Partition, clusters_of, crossing_half_edges
from sheafcoarsen.sheaf import CellularSheaf

LOCAL_OPERATORS = ("internal", "principal", "oversampled")


@dataclass(frozen=True, eq=False, repr=False)
class LocalModes:
    """The first r_a modes of every cluster (``eq:local_spectral_basis``) and what is known of the next one.

    ``eigenvalues(a)`` and ``basis(a)`` give one cluster's; the arrays below hold those of all K
    clusters.

    Attributes
    ----------
    sheaf, partition : what the modes were computed for
    local_operator : {"internal", "principal", "oversampled"}
    ranks : ndarray of int, shape (K,)
        How many modes each cluster keeps, r_a.
    scores : ndarray, shape (sum r_a,)
        The kept eigenvalues, cluster after cluster, ascending inside each.
    next_eigenvalues : ndarray, shape (K,)
        The first discarded eigenvalue, inf where nothing is discarded.
    tied : ndarray of bool, shape (K,)
        Where the cut splits a multiple eigenvalue, so that the kept space is one of many.
    operator_norms : ndarray, shape (K,)
        norm(., inf) of the local operators, against which a tie is judged; of the patches' for
        oversampled modes.
    prolongation : csr_array, shape (dim_c0, sum r_a)
        R = blockdiag(U_a), rows in the order of C^0.
    singular : bool
        Whether the modes are singular vectors of the local coboundary, as for kernels, or
        eigenvectors.
    rings, target : int and float, or None
        Of oversampled modes: rings of neighbours in a patch, and the largest eigenvalue of
        interest.
    pilot : bool
        Whether a pilot found ``target``; :meth:`Coarsening.recoarsen` then finds it again for new
        maps.
    over_budget : int
        By how many modes the kernels of oversampled modes alone exceed ``ranks.budget``.

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
    local_operator: str  # one of LOCAL_OPERATORS
    ranks: np.ndarray  # (K,) r_a
    scores: np.ndarray  # (sum r_a,) eigenvalues of cluster after cluster, ascending inside each
    next_eigenvalues: (
        np.ndarray
    )  # (K,) the first discarded eigenvalue, inf where nothing is discarded
    tied: (
        np.ndarray
    )  # (K,) bool: the cut splits a multiple eigenvalue, so the kept space is not unique
    operator_norms: np.ndarray  # (K,) norm(., inf) of the local operators
    prolongation: scipy.sparse.csr_array  # R = blockdiag(U_a), rows in the order of C^0
    singular: bool = False  # singular vectors of the local coboundary rather than eigenvectors
    rings: int | None = None  # of oversampled modes
    target: float | None = None  # of oversampled modes: the one in use
    pilot: bool = False  # whether it was found rather than given
    over_budget: int = 0  # modes by which kernels exceed the budget

    @cached_property
    def rank_offsets(self) -> np.ndarray:
        """Where each cluster begins in ``scores`` and among the columns of R, shape (K + 1,)."""
        return read_only(offsets(self.ranks))

    @cached_property
    def clusters(self) -> Clusters:
        """The index structure of the graph with its partition."""
        return clusters_of(self.sheaf, self.partition)

    @cached_property
    def half_edges(self) -> tuple[np.ndarray, np.ndarray]:
        """What the local operator holds beyond the internal edges, as ``crossing_half_edges`` gives it."""
        principal = self.local_operator == "principal"
        return crossing_half_edges(self.sheaf, self.partition, self.clusters, principal=principal)

    def eigenvalues(self, a: int) -> np.ndarray:
        """Return the r_a eigenvalues kept in cluster ``a``, ascending.

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
        a = cluster_number(self.partition, a)
        return self.scores[self.rank_offsets[a] : self.rank_offsets[a + 1]]

    def basis(self, a: int) -> np.ndarray:
        """Return U_a, shape (N_a, r_a): rows are the cluster's vertices ascending, stalk coordinates inside.

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
        return block(self.prolongation, self.sheaf, self.partition, self.ranks, a)

    def __repr__(self) -> str:
        spread = f"{self.ranks.min()} .. {self.ranks.max()}" if len(self.ranks) else "none"
        own = "" if self.target is None else f", rings={self.rings}, target={self.target:.3g}"
        over = f", kernels {self.over_budget} over budget" if self.over_budget else ""
        return (
            f"LocalModes({self.local_operator!r}, n_clusters={len(self.ranks)}, ranks {spread}, "
            f"dim {self.prolongation.shape[1]} of {self.sheaf.dim_c0}, tied={int(self.tied.sum())}{own}{over})"
        )

    def _repr_html_(self) -> str:
        return tables.table(self._rows(), caption="LocalModes")

    def _rows(self) -> list[tuple]:
        """What they are, in names and values."""
        discarded = self.next_eigenvalues[np.isfinite(self.next_eigenvalues)]
        dims = np.bincount(self.partition.labels, self.sheaf.vertex_dims, len(self.ranks))
        zero = zero_level(dims, eps_of(self.sheaf.dtype), self.operator_norms)
        kept = np.where(self.scores <= np.repeat(zero, self.ranks), 0, self.scores)
        return [
            ("clusters", len(self.ranks)),
            ("local operator", self.local_operator),
            ("modes per cluster", tables.span(self.ranks)),
            ("dimension kept", f"{self.prolongation.shape[1]:,} of {self.sheaf.dim_c0:,}"),
            ("kept eigenvalues", tables.span(kept)),
            ("first discarded eigenvalues", tables.span(discarded)),
            ("clusters whose cut splits a multiple eigenvalue", int(self.tied.sum())),
        ]


def warn_if_tied(modes: LocalModes, stacklevel: int, where: str = "") -> None:
    """Warn once, naming the first cluster whose cut splits a multiple eigenvalue; ``where`` comes first."""
    tied = np.flatnonzero(modes.tied)
    if tied.size:
        a = int(tied[0])
        warnings.warn(
            f"{where}the cut splits a multiple eigenvalue in {tied.size} of {len(modes.ranks)} clusters, first in cluster {a} "
            f"(r = {modes.ranks[a]}, eigenvalue {modes.next_eigenvalues[a]:.4g}): the coarse space is one of many there; "
            f"rank rules have .whole_multiplets(), which keeps multiplets whole",
            TiedModesWarning,
            stacklevel=stacklevel,
        )


def check_oversampling(local_operator: str, rings, target) -> tuple[int, float | None]:
    """Return the arguments of oversampled modes; refuse them beside another local operator."""
    choice("local_operator", local_operator, LOCAL_OPERATORS)
    if local_operator != "oversampled":
        for name, value in (("rings", rings), ("target", target)):
            if value is not None:
                raise ValueError(
                    f'`{name}` is for `local_operator` = "oversampled", got {value!r} with {local_operator!r}: leave it out'
                )
        return 1, None
    rings = 1 if rings is None else min(whole_number("rings", rings, at_least=0), MAX_DIMENSION)
    if target is not None:
        number = real_number("target", target)
        if not 0 < number < np.inf:
            raise ValueError(
                f"`target` must be positive and finite, got {target!r}: it is the largest eigenvalue of interest, and None finds one"
            )
        target = number
    return rings, target


def check_modes(modes: LocalModes, what: str) -> None:
    """Refuse modes whose fields do not fit together, as after ``dataclasses.replace``: kernels rely on them."""
    if _is_as_made(modes):
        return
    choice("local_operator", modes.local_operator, LOCAL_OPERATORS)
    K = modes.partition.n_clusters
    ranks = modes.ranks
    if (
        not isinstance(ranks, np.ndarray)
        or ranks.dtype != np.int64
        or ranks.shape != (K,)
        or (ranks < 0).any()
    ):
        raise ValueError(f"{what}: `ranks` must hold {K} integers of at least 0")
    check_layout(modes.prolongation, modes.sheaf, modes.partition, ranks, what)
    real = np.zeros(0, modes.sheaf.dtype).real.dtype
    for name, length in (
        ("scores", int(ranks.sum())),
        ("next_eigenvalues", K),
        ("operator_norms", K),
    ):
        values = getattr(modes, name)
        if not isinstance(values, np.ndarray) or values.dtype != real or values.shape != (length,):
            raise ValueError(f"{what}: `{name}` must hold {length} numbers of type {real}")
        bad = np.flatnonzero(
            np.isnan(values) | (np.isinf(values) if name != "next_eigenvalues" else False)
        )
        if bad.size:
            raise ValueError(
                f"{what}: `{name}` must be finite, got {values[bad[0]]} at index {bad[0]}"
            )
    if (
        not isinstance(modes.tied, np.ndarray)
        or modes.tied.dtype != np.bool_
        or modes.tied.shape != (K,)
    ):
        raise ValueError(f"{what}: `tied` must hold {K} booleans")
    check_settings(modes, what)
    dims = np.bincount(modes.partition.labels, modes.sheaf.vertex_dims, minlength=K)
    if (ranks > dims).any():
        a = int(np.argmax(ranks > dims))
        raise ValueError(
            f"{what}: `ranks[{a}]` = {ranks[a]} is more than the cluster's dimension {dims[a]:.0f}"
        )
    bad = np.flatnonzero(~np.isfinite(modes.prolongation.data))
    if bad.size:
        raise ValueError(
            f"{what}: `prolongation` must be finite, got {modes.prolongation.data[bad[0]]}"
        )


def _is_as_made(modes: LocalModes) -> bool:
    """Whether the modes come from here as they are: ``replace`` makes others, and R is frozen but may be given other arrays."""
    R, made = modes.prolongation, modes.__dict__.get("_made", ())
    return len(made) == 3 and all(
        one is other and not one.flags.writeable
        for one, other in zip(made, (R.indptr, R.indices, R.data), strict=True)
    )


def check_settings(modes: LocalModes, what: str) -> None:
    """Refuse settings of modes that do not fit together."""
    for name in ("singular", "pilot"):
        if not isinstance(getattr(modes, name), bool):
            raise TypeError(f"{what}: `{name}` must be True or False, got {getattr(modes, name)!r}")
    try:
        if (
            modes.local_operator != "oversampled" or modes.target != 0
        ):  # 0: a pilot found no energy at all
            check_oversampling(modes.local_operator, modes.rings, modes.target)
        if modes.local_operator == "oversampled" and (modes.rings is None or modes.target is None):
            raise ValueError("oversampled modes have `rings` and a `target`")
        whole_number("over_budget", modes.over_budget, at_least=0)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{what}: {error}") from None
