"""One level: a sheaf and a partition go in, a prolongation and a coarse sheaf come out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import choice, cochain, flag, ranges, read_only, tables
from sheafcoarsen.coarsening.loops import factored_loops, loop_rows, spectral_loops
from sheafcoarsen.coarsening.realization import realize
from sheafcoarsen.modes import (
    LOCAL_OPERATORS,
    LocalModes,
    check_layout,
    check_modes,
    check_oversampling,
    cluster_number,
    compute_modes,
    coordinates,
    from_blocks,
    in_precision_of,
    refresh_modes,
    warn_if_tied,
)
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.partition import Clusters, Partition, check_partition, clusters_of
from sheafcoarsen.ranks import RankLike
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, sheaf_rows


@dataclass(frozen=True, eq=False, repr=False)
class Coarsening:
    """A coarsened sheaf and how it came about; :func:`coarsen` makes it.

    ``sheaf`` is a :class:`CellularSheaf` again, so that everything, coarsening included, runs on
    it.

    Attributes
    ----------
    fine : CellularSheaf
    partition : Partition
    modes : LocalModes or None
        None with a basis of the user's own.
    prolongation : csr_array, shape (dim_c0, sum r_a)
        R = blockdiag(R_a), rows in the order of the fine C^0 (``eq:global_block_prolongation``,
        ``eq:global_prolongation_problem``).
    sheaf : CellularSheaf
        The coarse sheaf: crossing edges sorted by (a, b), then loops sorted by a; its C^0 is the
        direct sum of the coarse stalks (``eq:global_coarse_cochain_space``). With the
        coarsening of a coarsening, ``C.prolongation @ D.prolongation`` leads from the coarsest
        cochains to the finest.
    crossing_rows : ndarray of int or None
        The row of C^1(fine) that each crossing row of C^1(sheaf) comes from, so that the coarse
        crossing coboundary is these rows of delta R (``eq:crossing_coboundary_domain``,
        ``eq:crossing_coboundary``); None where edge stalks are compressed.
    loops : bool
        Whether loop-cells were asked for; there is none where a cluster keeps no internal energy.
    restored_loops : ndarray of int
        After :meth:`recoarsen`: the clusters whose loop gained rows because the new maps give them
        energy.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
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
    modes: LocalModes | None  # None with a basis of the user's own
    prolongation: scipy.sparse.csr_array  # R, (dim_c0, sum r_a), rows in the order of the fine C^0
    sheaf: (
        CellularSheaf  # the coarse sheaf: crossing edges sorted by (a, b), then loops sorted by a
    )
    crossing_rows: (
        np.ndarray | None
    )  # row of C^1(fine) that each crossing row of C^1(sheaf) comes from; None: compressed
    loops: bool = True  # whether loop-cells were asked for
    restored_loops: np.ndarray = field(
        default_factory=lambda: read_only(np.zeros(0, np.int64))
    )  # by `recoarsen`

    @cached_property
    def n_crossing_edges(self) -> int:
        """How many of the coarse sheaf's edges are crossing edges; the rest are loops."""
        return int((self.sheaf.edges[:, 0] != self.sheaf.edges[:, 1]).sum())

    @property
    def ranks(self) -> np.ndarray:
        """Dimension r_a of each coarse stalk (``eq:coarse_stalk``), shape (K,)."""
        return self.sheaf.vertex_dims

    @cached_property
    def clusters(self) -> Clusters:
        """The index structure of the fine graph with its partition."""
        if (
            self.modes is not None
            and self.modes.sheaf is self.fine
            and self.modes.partition is self.partition
        ):
            return self.modes.clusters
        return clusters_of(self.fine, self.partition)

    def block(self, a: int) -> np.ndarray:
        """Return R_a (``eq:local_prolongation``), shape (N_a, r_a).

        Rows are the cluster's vertices ascending, stalk coordinates inside.

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
        >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
        >>> abs(C.block(1)).round(3)
        array([[0.707],
               [0.707]])
        """
        a = cluster_number(self.partition, a)
        lo, hi = self.sheaf.vertex_offsets[a : a + 2]
        return self.prolongation[coordinates(self.fine, self.partition, a)][:, lo:hi].toarray()

    def internal_operator(self, a: int) -> np.ndarray:
        """Return H_a = R_a* L_a R_a (``eq:local_residual_operator``), shape (r_a, r_a).

        It comes from the fine maps: the Gram matrix of delta_a R_a (``eq:internal_coboundary``).

        Parameters
        ----------
        a : int
            The cluster.

        Returns
        -------
        ndarray, shape (r_a, r_a)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), 2)
        >>> abs(C.internal_operator(1)).round(12)
        array([[0., 0.],
               [0., 2.]])
        """
        a = cluster_number(self.partition, a)
        edges = self.clusters.internal_edges[
            self.clusters.internal_ptr[a] : self.clusters.internal_ptr[a + 1]
        ]
        rows = ranges(self.fine.edge_offsets[edges], self.fine.edge_dims[edges])
        lo, hi = self.sheaf.vertex_offsets[a : a + 2]
        y = (coboundary(self.fine)[rows] @ self.prolongation[:, lo:hi]).toarray()
        return y.conj().T @ y

    def lift(self, z: npt.ArrayLike) -> np.ndarray:
        """Return R z, a fine cochain, for a coarse one of shape (sum r_a,) or (sum r_a, h) (``eq:local_lift``).

        Parameters
        ----------
        z : array_like, shape (sum r_a,) or (sum r_a, h)

        Returns
        -------
        ndarray, shape (dim_c0,) or (dim_c0, h)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
        >>> bool(abs(C.pool(C.lift([1.0, -2.0])) - [1.0, -2.0]).max() < 1e-15)  # R* R = I
        True
        """
        return self.prolongation @ cochain(self.sheaf, z, "z", " of the coarse sheaf")

    def pool(self, x: npt.ArrayLike) -> np.ndarray:
        """Return R* x (``eq:local_pooling_adjoint``), a coarse cochain, for a fine one.

        Parameters
        ----------
        x : array_like, shape (dim_c0,) or (dim_c0, h)

        Returns
        -------
        ndarray, shape (sum r_a,) or (sum r_a, h)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
        >>> abs(C.pool([1.0, 1.0, 0.0, 0.0])).round(3)
        array([1.414, 0.   ])
        """
        return self.prolongation.conj().T @ cochain(self.fine, x, "x", " of the fine sheaf")

    def galerkin(self) -> scipy.sparse.csr_array:
        """Return L_Gal = R* L R (``eq:sheaf_galerkin_operator``), computed from R and the fine L.

        It does not look at the coarse sheaf, so comparing it with ``laplacian(C.sheaf)`` means
        something. On the constant sheaf of dimension 1, with the columns of an assignment matrix as
        ``basis``, it is S* L S (``eq:SLS``).

        Returns
        -------
        csr_array, shape (sum r_a, sum r_a)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
        >>> abs(C.galerkin().toarray()).round(3)
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        R = self.prolongation
        product = scipy.sparse.csr_array(R.conj().T @ (laplacian(self.fine) @ R))
        product.sort_indices()
        return product

    def recoarsen(self, sheaf: CellularSheaf) -> "Coarsening":
        """Coarsen another sheaf on the same graph in the same way: same partition, same ranks (or basis), new maps.

        Index work is not repeated, and patterns survive: the result shares the index arrays of this
        coarsening, its loops keep their rows even where the new maps leave them zero, so
        ``LaplacianPattern(C.sheaf)`` fills the new coarse sheaf. Exactness comes first: where the
        new maps give energy to a loop row that was left out, it is put back, and ``restored_loops``
        names the cluster.

        Parameters
        ----------
        sheaf : CellularSheaf
            On the graph of ``fine``, with stalks of the same dimensions; its scalar type may be
            another.

        Returns
        -------
        Coarsening

        Raises
        ------
        ValueError
            For a sheaf on another graph or with other stalks.

        Warns
        -----
        TiedModesWarning
            As :func:`coarsen` does.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.complete_graph(6))
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), rank=1)
        >>> C.recoarsen(F.with_maps(2 * F.tail_data, 2 * F.head_data))
        Coarsening(internal modes: 6 -> 2 vertices, dim C^0 6 -> 2, 15 -> 1 edges + 0 loops)
        >>> C.recoarsen(F.with_maps(F.tail_data, 2 * F.head_data)).restored_loops  # constants have energy now
        array([0, 1])
        """
        check_topology(self.fine, check_sheaf(sheaf), "coarsen")
        result = refresh_coarsening(self, sheaf)
        if result.modes is not None:
            warn_if_tied(result.modes, stacklevel=3)
        return result

    def __repr__(self) -> str:
        what = f"{self.modes.local_operator} modes" if self.modes is not None else "own basis"
        n_loops = self.sheaf.n_edges - self.n_crossing_edges
        compressed = " (compressed)" if self.crossing_rows is None else ""
        n_restored = len(self.restored_loops)
        restored = f", loop rows put back in {n_restored} clusters" if n_restored else ""
        return (
            f"Coarsening({what}: {self.fine.n_vertices} -> {self.sheaf.n_vertices} vertices, dim C^0 {self.fine.dim_c0} -> "
            f"{self.sheaf.dim_c0}, {self.fine.n_edges} -> {self.n_crossing_edges} edges{compressed} + {n_loops} loops{restored})"
        )

    def _repr_html_(self) -> str:
        rows = [
            (name, fine, coarse)
            for (name, fine), (_, coarse) in zip(
                sheaf_rows(self.fine), sheaf_rows(self.sheaf), strict=True
            )
        ]
        rows.append(
            (
                "modes",
                "",
                "own basis" if self.modes is None else f"{self.modes.local_operator} operator",
            )
        )
        if self.crossing_rows is None:
            rows.append(("edge stalks are compressed", "", True))
        if len(self.restored_loops):
            rows.append(("clusters with loop rows put back", "", len(self.restored_loops)))
        return tables.table(rows, head=("", "fine", "coarse"), caption="Coarsening")


def check_coarsening(C: object) -> Coarsening:
    """Refuse what is not a coarsening."""
    if not isinstance(C, Coarsening):
        raise TypeError(f"`C` must be a Coarsening, got {type(C).__name__}: coarsen makes one")
    return C


def coarsen(
    sheaf: CellularSheaf,
    P: Partition,
    rank: RankLike | LocalModes | None = None,
    *,
    basis: Sequence[npt.ArrayLike] | None = None,
    local_operator: str = "internal",
    rings: int | None = None,
    target: float | None = None,
    loops: bool = True,
    compress: bool = False,
    progress: bool = False,
) -> Coarsening:
    """Coarsen a sheaf: one coarse vertex per cluster, whose stalk holds the cluster's lowest modes.

    With R = blockdiag(R_a), the coarse sheaf's Laplacian is exactly the Galerkin operator R* L R
    (``thm:Galerkin_realization``, which answers ``eq:coarse_sheaf_realization_problem``): a coarse
    edge between two clusters stacks the fine edges that cross
    (``eq:coarse_crossing_edge_stalk``), and a loop at each coarse vertex carries the energy H_a =
    R_a* L_a R_a that the kept modes have inside their cluster
    (``thm:galerkin_energy_decomposition``).

    Parameters
    ----------
    sheaf : CellularSheaf
    P : Partition
    rank : int, array_like of int of shape (K,), rule from ``sc.ranks``, or LocalModes
        Exactly one of ``rank`` and ``basis``. LocalModes bring their own local operator.
    basis : sequence of arrays, R_a of shape (N_a, r_a), optional
        Your own prolongation blocks; they need not be orthonormal. They are cast to the sheaf's
        precision.
    local_operator : {"internal", "principal", "oversampled"}
        See :func:`local_modes`.
    rings, target : int and float, optional
        For "oversampled" alone; see :func:`local_modes`.
    loops : bool
        False leaves the loop-cells out: the coarse sheaf then lacks the retained internal energy
        (realization loss).
    compress : bool
        Replace the maps [A | -B] of every coarse edge of more than r_a + r_b rows by the triangular
        factor of their QR, its diagonal non-negative: min(rows, r_a + r_b) rows, the same
        Laplacian. ``crossing_rows`` is then None.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Coarsening

    Raises
    ------
    ValueError, TypeError
        Both or neither of ``rank`` and ``basis``, arrays whose shapes do not fit, a partition or
        modes of another sheaf.

    Warns
    -----
    TiedModesWarning
        Where the cut between kept and discarded modes splits a multiple eigenvalue.

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
    choice("local_operator", local_operator, LOCAL_OPERATORS)
    if basis is None and not isinstance(rank, LocalModes):
        check_oversampling(local_operator, rings, target)
    loops, compress, progress = (
        flag("loops", loops),
        flag("compress", compress),
        flag("progress", progress),
    )
    if basis is not None and local_operator != "internal":
        raise ValueError(
            f"`local_operator` = {local_operator!r} chooses modes, but `basis` brings its own: leave it out"
        )
    for name, value in (("rings", rings), ("target", target)):
        if value is not None and (basis is not None or isinstance(rank, LocalModes)):
            holder = "`basis`" if basis is not None else "the LocalModes in `rank`"
            raise ValueError(
                f"`{name}` is for modes that are computed here, but {holder} are given: leave it out"
            )
    if (rank is None) == (basis is None):
        raise ValueError(
            "exactly one of `rank` and `basis` must be given, got "
            + ("neither" if rank is None else "both")
        )
    if basis is not None:
        clusters = clusters_of(sheaf, P)
        R = from_blocks(sheaf, P, clusters, basis)
        ranks = read_only(np.array([np.shape(item)[1] for item in basis], dtype=np.int64))
        return _realized(sheaf, P, None, R, ranks, clusters, loops, compress)
    if isinstance(rank, LocalModes):
        modes = _matching(rank, sheaf, P, local_operator)
    else:
        modes = compute_modes(
            sheaf, P, rank, local_operator, rings=rings, target=target, progress=progress
        )
        warn_if_tied(modes, stacklevel=3)
    return _realized(
        sheaf, P, modes, modes.prolongation, modes.ranks, modes.clusters, loops, compress
    )


def _realized(
    sheaf, P, modes, R, ranks, clusters, loops: bool, compress: bool, like: Coarsening | None = None
) -> Coarsening:
    """Build the coarse sheaf of an R, and with it the result; ``like`` is a coarsening whose pattern is to survive."""
    least = np.zeros(len(ranks), np.int64) if like is None else loop_rows(like.sheaf)
    loop_data = None
    if loops and modes is not None and modes.local_operator == "internal":
        loop_data = spectral_loops(modes, least)
    elif loops:
        loop_data = factored_loops(sheaf, P, clusters, R, ranks, least)
    coarse = realize(
        sheaf,
        clusters,
        R,
        ranks,
        loop_data,
        compress=compress,
        like=None if like is None else like.sheaf,
    )
    if compress:
        rows = None
    elif like is not None:
        rows = like.crossing_rows
    else:
        crossing = clusters.crossing_edges
        rows = read_only(ranges(sheaf.edge_offsets[crossing], sheaf.edge_dims[crossing]))
    restored = np.zeros(0, np.int64)
    if like is not None and loop_data is not None:
        restored = np.flatnonzero(loop_data[0] > least)
    result = Coarsening(sheaf, P, modes, R, coarse, rows, loops, read_only(restored))
    result.__dict__["clusters"] = clusters
    return result


def refresh_coarsening(
    C: Coarsening, sheaf: CellularSheaf, *, new_loops: bool = False, target: float | None = None
) -> Coarsening:
    """Coarsen a sheaf in the way of ``C`` without a word about ties; ``target`` stands for that of a pilot.

    It is on the graph of ``C.fine``, but for loops where ``new_loops``: then the index work is done
    again, on which no crossing edge depends.
    """
    check_partition(sheaf, C.partition)
    if C.modes is not None:
        if not new_loops:
            check_topology(C.modes.sheaf, sheaf, "coarsen")
        if not np.array_equal(C.modes.partition.labels, C.partition.labels):
            raise ValueError(
                "the coarsening does not fit together: its modes belong to another partition"
            )
        modes = refresh_modes(C.modes, sheaf, new_edges=new_loops, target=target)
        R, ranks, clusters = modes.prolongation, modes.ranks, modes.clusters
    else:
        check_layout(
            C.prolongation, C.fine, C.partition, C.ranks, "the prolongation of the coarsening"
        )
        clusters = clusters_of(sheaf, C.partition) if new_loops else C.clusters
        modes, R, ranks = None, in_precision_of(sheaf, clusters, C.prolongation), C.ranks
    if not np.array_equal(ranks, C.ranks):
        raise ValueError(
            "the coarsening does not fit together: its modes are not as many as its coarse stalks hold"
        )
    compress = C.crossing_rows is None
    return _realized(sheaf, C.partition, modes, R, ranks, clusters, C.loops, compress, like=C)


def check_topology(fine: CellularSheaf, sheaf: CellularSheaf, maker: str) -> None:
    """Refuse a sheaf on another graph or with other stalks than the one that ``maker`` coarsened."""
    for name in ("edges", "vertex_dims", "edge_dims"):
        mine, other = getattr(fine, name), getattr(sheaf, name)
        if mine is other or np.array_equal(mine, other):
            continue
        if len(mine) != len(other):
            what = f"there are {len(other)} of them, not {len(mine)}"
        else:
            i = int(np.argmax((mine != other).reshape(len(mine), -1).any(axis=1)))
            what = f"first at index {i}, where {other[i].tolist()} stands for {mine[i].tolist()}"
        raise ValueError(
            f"`sheaf` must have the graph and the stalks of the sheaf that was coarsened, but its {name} differ, {what}: "
            f"use {maker} for another graph"
        )


def _matching(
    modes: LocalModes, sheaf: CellularSheaf, P: Partition, local_operator: str
) -> LocalModes:
    """Refuse modes that belong to another sheaf or partition, or that were put together from parts that do not fit."""
    if modes.sheaf is not sheaf:
        raise ValueError(
            "`rank` holds LocalModes of another sheaf: compute them with local_modes(sheaf, P, ...) for this one"
        )
    if not isinstance(modes.partition, Partition) or not np.array_equal(
        modes.partition.labels, P.labels
    ):
        raise ValueError(
            "`rank` holds LocalModes of another partition: compute them with local_modes(sheaf, P, ...)"
        )
    if local_operator not in ("internal", modes.local_operator):
        raise ValueError(
            f"`local_operator` = {local_operator!r} contradicts the LocalModes in `rank`, which are {modes.local_operator!r}"
        )
    check_modes(modes, "the LocalModes in `rank`")
    return modes
