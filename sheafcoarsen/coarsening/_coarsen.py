"""One level of coarsening: a prolongation and a coarse sheaf from a sheaf and a partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import ReadOnly, checks, linalg, ragged, tables
from sheafcoarsen.coarsening.realization import (
    factored_loops,
    realize,
    rounding_noise,
    spectral_loops,
)
from sheafcoarsen.coarsening.views import Views
from sheafcoarsen.modes import (
    Internal,
    LocalModes,
    LocalOperatorLike,
    Prolongation,
    local_modes,
    local_operator_of,
    refresh_modes,
    warn_if_empty,
    warn_if_tied,
)
from sheafcoarsen.operators import count_nonzeros
from sheafcoarsen.partition import Partition, check_partition, clusters_of
from sheafcoarsen.ranks import RankLike, Rule
from sheafcoarsen.sheaf import (
    CellularSheaf,
    check_same_topology,
    check_sheaf,
    same_topology,
    sheaf_rows,
)


@dataclass(frozen=True, eq=False, repr=False)
class Coarsening(Views, ReadOnly):
    """A coarse sheaf with its prolongation; :func:`coarsen` computes it.

    ``sheaf`` is again a :class:`CellularSheaf`, which may be coarsened further.

    Attributes
    ----------
    fine : CellularSheaf
    partition : Partition
    modes : LocalModes or None
        None for a basis passed by the user.
    prolongation : csr_array, shape (dim_c0, sum r_a)
        R = blockdiag(R_a), with rows in the order of the fine C^0
        (``eq:global_block_prolongation``, ``eq:global_prolongation_problem``). The attribute ``R``
        holds the same blocks as dense arrays, and is no matrix.
    sheaf : CellularSheaf
        The coarse sheaf. Its edges are crossing edges sorted by (a, b), then loops sorted by a;
        its C^0 is the direct sum of the coarse stalks (``eq:global_coarse_cochain_space``). For a
        coarsening D of ``C.sheaf``, ``C.prolongation @ D.prolongation`` maps the coarsest cochains
        to the finest.
    crossing_rows : ndarray of int or None
        The row of C^1(fine) that each crossing row of C^1(sheaf) comes from: the coarse crossing
        coboundary consists of these rows of delta R, those at rounding level set to zero
        (``eq:crossing_coboundary_domain``, ``eq:crossing_coboundary``). None if edge stalks are
        compressed.
    loops : bool
        Whether loop-cells were requested; clusters without retained internal energy have none.
    restored_loops : ndarray of int
        The clusters whose loop has more rows after :meth:`recoarsen` than before, because the new
        maps have energy in these rows.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
    >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
    >>> C.sheaf
    CellularSheaf(n_vertices=2, n_edges=1, dim_c0=2, dim_c1=1, dtype=float64)
    >>> abs(C.prolongation.toarray()).round(3)
    array([[0.707, 0.   ],
           [0.707, 0.   ],
           [0.   , 0.707],
           [0.   , 0.707]])
    """

    fine: CellularSheaf
    partition: Partition
    modes: LocalModes | None
    prolongation: scipy.sparse.csr_array
    sheaf: CellularSheaf
    crossing_rows: np.ndarray | None
    loops: bool = True
    restored_loops: np.ndarray = field(
        default_factory=lambda: ragged.read_only(np.zeros(0, np.int64))
    )

    def __post_init__(self) -> None:
        check_sheaf(self.fine, "fine")
        check_sheaf(self.sheaf, "sheaf")
        check_partition(self.fine, self.partition)
        wrong, modes = "the coarsening is inconsistent: ", self.modes
        if self.sheaf.n_vertices != self.partition.n_clusters:
            raise ValueError(
                f"{wrong}the partition has {self.partition.n_clusters} clusters, "
                f"but the coarse sheaf has {self.sheaf.n_vertices} vertices"
            )
        if modes is not None:
            if not isinstance(modes, LocalModes):
                raise TypeError(f"`modes` must be LocalModes or None, got {type(modes).__name__}")
            if not np.array_equal(modes.partition.labels, self.partition.labels):
                raise ValueError(f"{wrong}its modes belong to another partition")
            if not np.array_equal(modes.ranks, self.sheaf.vertex_dims):
                raise ValueError(
                    f"{wrong}the ranks of its modes do not match the dimensions of its coarse "
                    "stalks"
                )
        checks.flag("loops", self.loops)
        object.__setattr__(self, "prolongation", self.R.matrix)

    def recoarsen(self, sheaf: CellularSheaf) -> Coarsening:
        """Return the coarsening of another sheaf on the same graph, with the same ranks.

        Partition, ranks and local operator are those of this coarsening. A rank rule is not applied
        again: for other ranks call :func:`coarsen`.

        The result shares the index arrays of this coarsening. Its loops have the same rows, even
        if they are zero for the new maps, so that ``LaplacianPattern(C.sheaf)`` remains valid for
        the new coarse sheaf. If the new maps have energy in an omitted loop row, the row is
        restored, and ``restored_loops`` contains the cluster.

        Parameters
        ----------
        sheaf : CellularSheaf
            A sheaf on the graph of ``fine`` with stalks of the same dimensions; its scalar type
            may differ.

        Returns
        -------
        Coarsening

        Raises
        ------
        ValueError
            If the graph or the stalks differ.

        Warns
        -----
        TiedModesWarning
            As in :func:`coarsen`.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.complete_graph(6))
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), rank=1)
        >>> C.recoarsen(F.with_maps(2 * F.tail_data, 2 * F.head_data))
        Coarsening(internal modes: 6 -> 2 vertices, dim C^0 6 -> 2, 15 -> 1 edges + 0 loops)
        >>> with_energy = F.with_maps(F.tail_data, 2 * F.head_data)  # constants are not sections
        >>> C.recoarsen(with_energy).restored_loops
        array([0, 1])
        """
        check_topology(self.fine, check_sheaf(sheaf), "coarsen")
        result = refresh_coarsening(self, sheaf)
        if result.modes is not None:
            advice = "the old ranks were kept: call coarsen again, with the rule of the ranks"
            warn_if_tied(result.modes.tied, result.modes._discards_zero, advice=advice)
        return result

    def __repr__(self) -> str:
        what = "own basis" if self.modes is None else f"{self.modes.local_operator} modes"
        n_loops = self.sheaf.n_edges - self.n_crossing_edges
        compressed = " (compressed)" if self.crossing_rows is None else ""
        n_restored = len(self.restored_loops)
        restored = f", loop rows put back in {n_restored} clusters" if n_restored else ""
        restored += "" if self.loops else " (omitted, so L is not R* L R)"
        growth = f"; {note}" if (note := growth_of(self)) else ""
        return (
            f"Coarsening({what}: {self.fine.n_vertices} -> {self.sheaf.n_vertices} vertices, "
            f"dim C^0 {self.fine.dim_c0} -> {self.sheaf.dim_c0}, {self.fine.n_edges} -> "
            f"{self.n_crossing_edges} edges{compressed} + {n_loops} loops{restored}{growth})"
        )

    def _repr_html_(self) -> str:
        rows = [
            (name, fine, coarse)
            for (name, fine), (_, coarse) in zip(
                sheaf_rows(self.fine), sheaf_rows(self.sheaf), strict=True
            )
        ]
        what = "own basis" if self.modes is None else f"{self.modes.local_operator} operator"
        rows.append(("modes", "", what))
        if self.crossing_rows is None:
            rows.append(("edge stalks are compressed", "", True))
        if len(self.restored_loops):
            rows.append(("clusters with loop rows put back", "", len(self.restored_loops)))
        if note := growth_of(self):
            rows.append(("Laplacian", "", note))
        return tables.table(rows, head=("", "fine", "coarse"), caption="Coarsening")


def growth_of(C: Coarsening) -> str | None:
    """Return a note if the coarse Laplacian has more entries than the fine one, else None."""
    before, after = count_nonzeros(C.fine), count_nonzeros(C.sheaf)
    if after <= before:
        return None
    return (
        f"its Laplacian has {after:,} entries, the fine one {before:,}: fewer modes or larger "
        f"clusters make it sparser"
    )


def check_coarsening(C: object) -> Coarsening:
    """Check that C is a Coarsening, and return it."""
    if not isinstance(C, Coarsening):
        advice = "use coarsen(sheaf, P, rank)"
        if hasattr(C, "coarsening"):
            advice = "pass its `coarsening`"
        elif hasattr(C, "sheaves"):
            advice = "pass one of its `levels` that is a Coarsening"
        raise TypeError(f"`C` must be a Coarsening, got {type(C).__name__}: {advice}")
    return C


def check_topology(fine: CellularSheaf, sheaf: CellularSheaf, maker: str) -> None:
    """Raise if the graph or the stalks of a sheaf differ from those of ``fine``."""
    wanted = "the graph and the stalks of the sheaf that was coarsened"
    check_same_topology(fine, sheaf, wanted, f"use {maker} for another graph")


def coarsen(  # noqa: PLR0913 (public, options by keyword)
    sheaf: CellularSheaf,
    P: Partition,
    rank: RankLike | LocalModes | None = None,
    *,
    basis: Sequence[npt.ArrayLike] | None = None,
    local_operator: LocalOperatorLike = "internal",
    rings: int | None = None,
    target: float | None = None,
    loops: bool = True,
    compress: bool = False,
    progress: bool = False,
) -> Coarsening:
    """Coarsen a sheaf to one vertex per cluster, with the cluster's lowest modes as its stalk.

    With R = blockdiag(R_a), the coarse sheaf's Laplacian is exactly the Galerkin operator R* L R
    (``thm:Galerkin_realization``, which answers ``eq:coarse_sheaf_realization_problem``). A coarse
    edge between two clusters stacks the fine edges between them
    (``eq:coarse_crossing_edge_stalk``), and a loop at each coarse vertex carries the energy H_a =
    R_a* L_a R_a of the retained modes inside their cluster (``thm:galerkin_energy_decomposition``);
    where H_a = 0, up to rounding, there is none.

    Parameters
    ----------
    sheaf : CellularSheaf
    P : Partition
    rank : int, array_like of int of shape (K,), rule from ``sc.ranks``, or LocalModes
        Number of modes that each cluster retains (all N_a if that is less), or modes that are
        already computed, with their own local operator. Pass either ``rank`` or ``basis``.
    basis : sequence of arrays, R_a of shape (N_a, r_a), optional
        Your own prolongation blocks, which need not be orthonormal and are cast to the sheaf's
        precision.
    local_operator : {"internal", "principal", "oversampled"}
        See :func:`local_modes`.
    rings, target : int and float, optional
        Only for "oversampled"; see :func:`local_modes`.
    loops : bool
        If False, omit the loop-cells; the coarse sheaf then lacks the retained internal energy
        (realization loss).
    compress : bool
        Replace the maps [A | -B] of every coarse edge that has more than r_a + r_b rows by their
        triangular QR factor with nonnegative diagonal, which has r_a + r_b rows. The Laplacian
        stays the same; ``crossing_rows`` is then None.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Coarsening

    Raises
    ------
    ValueError, TypeError
        If both or neither of ``rank`` and ``basis`` are passed, shapes do not match, or the
        partition or the modes belong to another sheaf.

    Warns
    -----
    TiedModesWarning
        If the cut between retained and discarded modes splits a multiple eigenvalue.
    SingularProblemWarning
        If ``ranks.kernel()`` retains no local section, so that the coarse sheaf has dimension 0, or
        ``ranks.budget(total)`` discards modes of eigenvalue zero.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(6))
    >>> C = sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), rank=2)
    >>> C
    Coarsening(internal modes: 6 -> 2 vertices, dim C^0 6 -> 4, 5 -> 1 edges + 2 loops)
    >>> bool(abs(sc.laplacian(C.sheaf) - C.galerkin()).max() < 1e-14)
    True
    """
    check_partition(sheaf, P)
    given = "`basis`" if basis is not None else None
    if basis is None and isinstance(rank, LocalModes):
        given = "LocalModes in `rank`"
    operator = local_operator_of(local_operator, *((rings, target) if given is None else ()))
    loops, compress = checks.flag("loops", loops), checks.flag("compress", compress)
    progress = checks.flag("progress", progress)
    if basis is not None and not isinstance(operator, Internal):
        raise ValueError(
            f"`local_operator` = {operator.name!r} selects modes, "
            "but `basis` replaces them: omit one of the two"
        )
    for name, value in (("rings", rings), ("target", target)):
        if value is not None and given is not None:
            raise ValueError(
                f"`{name}` applies only to modes computed by this call: omit it or {given}"
            )
    if (rank is None) == (basis is None):
        raise ValueError(
            "exactly one of `rank` and `basis` must be passed, got "
            + ("neither" if rank is None else "both")
        )
    if basis is not None:
        R = Prolongation.from_blocks(sheaf, clusters_of(sheaf, P), basis)
        return realized(R, P, None, loops=loops, compress=compress)
    if isinstance(rank, LocalModes):
        same_labels = np.array_equal(rank.partition.labels, P.labels)
        if rank.sheaf is not sheaf or not same_labels:
            other = "sheaf" if rank.sheaf is not sheaf else "partition"
            raise ValueError(
                f"`rank` holds LocalModes of another {other}: "
                "compute them with local_modes(sheaf, P, ...)"
            )
        if operator not in (Internal(), type(rank.operator)(), rank.operator):
            raise ValueError(
                f"`local_operator` = {operator.name!r} contradicts the LocalModes in `rank`, "
                f"which are {rank.local_operator!r}: omit `local_operator`"
            )
        # if arrays of the matrix were replaced, validate it again
        modes = rank if rank.R.is_held_by(rank.prolongation) else replace(rank)
        seeks_sections = modes.holds_sections
    else:
        modes = local_modes(sheaf, P, rank, operator, progress=progress)  # type: ignore[arg-type]
        seeks_sections = isinstance(rank, Rule) and rank.needs_kernels
    if seeks_sections:
        warn_if_empty(sheaf.dim_c0, modes.ranks, modes.next_eigenvalues)
    return realized(modes.R, P, modes, loops=loops, compress=compress)


def realized(
    R: Prolongation,
    partition: Partition,
    modes: LocalModes | None,
    *,
    loops: bool,
    compress: bool,
    like: Coarsening | None = None,
) -> Coarsening:
    """Return the coarsening with prolongation R, using the sparsity pattern of ``like`` if any."""
    K, pattern, factors = len(R.ranks), None, None
    least = np.zeros(K, np.int64)  # number of rows of each loop
    if like is not None:
        pattern, (u, v) = like.sheaf, like.sheaf.edges.T
        least = np.bincount(u, (u == v) * pattern.edge_dims, minlength=K).astype(np.int64)
    if loops and modes is not None and modes.operator.spectral:
        factors = spectral_loops(modes, least)
    elif loops:
        factors = factored_loops(R, least)
    if modes is not None:
        noise = rounding_noise(R.clusters.dims, R.sheaf.dtype)
    else:  # a user's columns may have any norm, and noise scales with it
        largest = np.zeros(int(R.offsets[-1]))
        np.maximum.at(largest, R.indices, np.abs(R.data))
        shortest = np.where(R.ranks > 0, np.inf, 0.0)
        np.minimum.at(shortest, np.repeat(np.arange(len(R.ranks)), R.ranks), largest)
        eps = linalg.eps_of(np.result_type(R.sheaf.dtype, R.dtype))
        noise = eps * R.clusters.dims * shortest, 0.0
    if compress:
        rows = None
    elif like is not None and same_topology(R.sheaf, like.fine):
        rows = like.crossing_rows
    else:
        rows = ragged.read_only(
            ragged.range_of_blocks(R.sheaf.edge_offsets, R.clusters.crossing_edges)
        )
    coarse = realize(R, factors, compress=compress, like=pattern, noise=noise)
    restored = np.zeros(0, np.int64)
    if like is not None and factors is not None:
        restored = np.flatnonzero(factors.rows > least)
    C = object.__new__(Coarsening)  # skip validation: the parts are consistent by construction
    C.__dict__.update(
        fine=R.sheaf,
        prolongation=R.matrix,
        R=R,
        clusters=R.clusters,
        partition=partition,
        modes=modes,
        sheaf=coarse,
        crossing_rows=rows,
        loops=loops,
        restored_loops=ragged.read_only(restored),
    )
    return C


def refresh_coarsening(
    C: Coarsening, sheaf: CellularSheaf, *, new_loops: bool = False, found: float | None = None
) -> Coarsening:
    """Coarsen another sheaf with the settings of ``C``, without warning about ties.

    The sheaf must be on the graph of ``C.fine``; with ``new_loops`` its loops may differ, and
    index arrays are recomputed. ``found`` replaces the target that a pilot would compute for
    oversampled modes.
    """
    check_partition(sheaf, C.partition)
    if C.modes is not None:
        modes = refresh_modes(C.modes, sheaf, new_edges=new_loops, found=found)
        R = modes.R
    else:
        if not C.R.is_held_by(C.prolongation):
            C = replace(C)  # validate the matrix again: its arrays were replaced
        modes = None
        R = C.R.on(sheaf, clusters_of(sheaf, C.partition) if new_loops else C.clusters)
    compress = C.crossing_rows is None
    return realized(R, C.partition, modes, loops=C.loops, compress=compress, like=C)
