"""One level: a sheaf and a partition go in, a prolongation and a coarse sheaf come out."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from sheafcoarsen._checks import choice, cochain, flag
from sheafcoarsen._ragged import ranges, read_only
from sheafcoarsen.clusters import Clusters, check_partition, clusters_of
from sheafcoarsen.modes import LOCAL_OPERATORS, LocalModes, check_modes, compute_modes, warn_if_tied
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.partition import Partition
from sheafcoarsen.prolongation import cluster_number, coordinates, from_blocks
from sheafcoarsen.realization import factored_loops, realize, spectral_loops
from sheafcoarsen.sheaf import CellularSheaf


@dataclass(frozen=True, eq=False, repr=False)
class Coarsening:
    """A coarsened sheaf and how it came about; :func:`coarsen` makes it.

    ``sheaf`` is a :class:`CellularSheaf` again, so that everything, coarsening included, runs on it.

    Attributes
    ----------
    fine : CellularSheaf
    partition : Partition
    modes : LocalModes or None
        None with a basis of the user's own.
    prolongation : csr_array, shape (dim_c0, sum r_a)
        R = blockdiag(R_a), rows in the order of the fine C^0 (``eq:global_block_prolongation``).
    sheaf : CellularSheaf
        The coarse sheaf: crossing edges sorted by (a, b), then loops sorted by a. With the coarsening of a coarsening,
        ``C.prolongation @ D.prolongation`` leads from the coarsest cochains to the finest.
    crossing_rows : ndarray of int
        The row of C^1(fine) that each crossing row of C^1(sheaf) comes from.
    loops : bool
        Whether loop-cells were asked for; there is none where a cluster keeps no internal energy.
    """

    fine: CellularSheaf
    partition: Partition
    modes: LocalModes | None  # None with a basis of the user's own
    prolongation: scipy.sparse.csr_array  # R, (dim_c0, sum r_a), rows in the order of the fine C^0
    sheaf: CellularSheaf  # the coarse sheaf: crossing edges sorted by (a, b), then loops sorted by a
    crossing_rows: np.ndarray  # row of C^1(fine) that each crossing row of C^1(sheaf) comes from
    loops: bool = True  # whether loop-cells were asked for

    @cached_property
    def n_crossing_edges(self) -> int:
        """How many of the coarse sheaf's edges are crossing edges; the rest are loops."""
        return int((self.sheaf.edges[:, 0] != self.sheaf.edges[:, 1]).sum())

    @property
    def ranks(self) -> np.ndarray:
        """Dimension r_a of each coarse stalk, shape (K,)."""
        return self.sheaf.vertex_dims

    @cached_property
    def clusters(self) -> Clusters:
        """The index structure of the fine graph with its partition."""
        if self.modes is not None and self.modes.sheaf is self.fine and self.modes.partition is self.partition:
            return self.modes.clusters
        return clusters_of(self.fine, self.partition)

    def block(self, a: int) -> np.ndarray:
        """Return R_a, shape (N_a, r_a): rows are the cluster's vertices ascending, stalk coordinates inside."""
        a = cluster_number(self.partition, a)
        lo, hi = self.sheaf.vertex_offsets[a : a + 2]
        return self.prolongation[coordinates(self.fine, self.partition, a)][:, lo:hi].toarray()

    def internal_operator(self, a: int) -> np.ndarray:
        """Return H_a = R_a* L_a R_a (``eq:local_residual_operator``), shape (r_a, r_a), from the fine maps.

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
        edges = self.clusters.internal_edges[self.clusters.internal_ptr[a] : self.clusters.internal_ptr[a + 1]]
        rows = ranges(self.fine.edge_offsets[edges], self.fine.edge_dims[edges])
        lo, hi = self.sheaf.vertex_offsets[a : a + 2]
        y = (coboundary(self.fine)[rows] @ self.prolongation[:, lo:hi]).toarray()
        return y.conj().T @ y

    def lift(self, z) -> np.ndarray:
        """Return R z, a fine cochain, for a coarse one of shape (sum r_a,) or (sum r_a, h) (``eq:local_lift``)."""
        return self.prolongation @ cochain(self.sheaf, z, "z", " of the coarse sheaf")

    def pool(self, x) -> np.ndarray:
        """Return R* x, a coarse cochain, for a fine one of shape (dim_c0,) or (dim_c0, h)."""
        return self.prolongation.conj().T @ cochain(self.fine, x, "x", " of the fine sheaf")

    def galerkin(self) -> scipy.sparse.csr_array:
        """Return L_Gal = R* L R (``eq:sheaf_galerkin_operator``), computed from R and the fine L.

        It does not look at the coarse sheaf, so comparing it with ``laplacian(C.sheaf)`` means something.
        """
        R = self.prolongation
        product = scipy.sparse.csr_array(R.conj().T @ (laplacian(self.fine) @ R))
        product.sort_indices()
        return product

    def __repr__(self) -> str:
        what = f"{self.modes.local_operator} modes" if self.modes is not None else "own basis"
        n_loops = self.sheaf.n_edges - self.n_crossing_edges
        return (
            f"Coarsening({what}: {self.fine.n_vertices} -> {self.sheaf.n_vertices} vertices, dim C^0 {self.fine.dim_c0} -> "
            f"{self.sheaf.dim_c0}, {self.fine.n_edges} -> {self.n_crossing_edges} edges + {n_loops} loops)"
        )


def coarsen(
    sheaf: CellularSheaf,
    P: Partition,
    rank=None,
    *,
    basis=None,
    local_operator: str = "internal",
    loops: bool = True,
    progress: bool = False,
) -> Coarsening:
    """Coarsen a sheaf: one coarse vertex per cluster, whose stalk holds the cluster's lowest modes.

    With R = blockdiag(R_a), the coarse sheaf's Laplacian is exactly the Galerkin operator R* L R
    (``thm:Galerkin_realization``): a coarse edge between two clusters stacks the fine edges that cross
    (``eq:coarse_crossing_edge_stalk``), and a loop at each coarse vertex carries the energy H_a = R_a* L_a R_a that the
    kept modes have inside their cluster.

    Parameters
    ----------
    sheaf : CellularSheaf
    P : Partition
    rank : int, array_like of int of shape (K,), rule from ``sc.ranks``, or LocalModes
        Exactly one of ``rank`` and ``basis``. LocalModes bring their own local operator.
    basis : sequence of arrays, R_a of shape (N_a, r_a), optional
        Your own prolongation blocks; they need not be orthonormal. They are cast to the sheaf's precision.
    local_operator : {"internal", "principal"}
        See :func:`local_modes`.
    loops : bool
        False leaves the loop-cells out: the coarse sheaf then lacks the retained internal energy (realization loss).
    progress : bool
        Show a progress bar.

    Returns
    -------
    Coarsening

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
    loops, progress = flag("loops", loops), flag("progress", progress)
    if basis is not None and local_operator != "internal":
        raise ValueError(
            f"`local_operator` = {local_operator!r} chooses modes, but `basis` brings its own: leave it out"
        )
    if (rank is None) == (basis is None):
        raise ValueError(
            "exactly one of `rank` and `basis` must be given, got " + ("neither" if rank is None else "both")
        )
    modes = None
    if basis is not None:
        clusters = clusters_of(sheaf, P)
        R = from_blocks(sheaf, P, clusters, basis)
        ranks = np.array([np.shape(item)[1] for item in basis], dtype=np.int64)
        loop_data = factored_loops(sheaf, P, clusters, R, ranks) if loops else None
    else:
        if isinstance(rank, LocalModes):
            modes = _matching(rank, sheaf, P, local_operator)
        else:
            modes = compute_modes(sheaf, P, rank, local_operator, progress=progress)
            warn_if_tied(modes, stacklevel=3)
        clusters, R, ranks = modes.clusters, modes.prolongation, modes.ranks
        if not loops:
            loop_data = None
        elif modes.local_operator == "internal":
            loop_data = spectral_loops(modes)
        else:
            loop_data = factored_loops(sheaf, P, clusters, R, ranks)
    coarse = realize(sheaf, clusters, R, ranks, loop_data)
    crossing = clusters.crossing_edges
    rows = read_only(ranges(sheaf.edge_offsets[crossing], sheaf.edge_dims[crossing]))
    result = Coarsening(sheaf, P, modes, R, coarse, rows, loops)
    result.__dict__["clusters"] = clusters
    return result


def _matching(modes: LocalModes, sheaf: CellularSheaf, P: Partition, local_operator: str) -> LocalModes:
    """Refuse modes that belong to another sheaf or partition, or that were put together from parts that do not fit."""
    if modes.sheaf is not sheaf:
        raise ValueError(
            "`rank` holds LocalModes of another sheaf: compute them with local_modes(sheaf, P, ...) for this one"
        )
    if not isinstance(modes.partition, Partition) or not np.array_equal(modes.partition.labels, P.labels):
        raise ValueError("`rank` holds LocalModes of another partition: compute them with local_modes(sheaf, P, ...)")
    if local_operator not in ("internal", modes.local_operator):
        raise ValueError(
            f"`local_operator` = {local_operator!r} contradicts the LocalModes in `rank`, which are {modes.local_operator!r}"
        )
    check_modes(modes, "the LocalModes in `rank`")
    return modes
