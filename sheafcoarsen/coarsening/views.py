"""Methods of a coarsening: lift and pool, operators, and the quotient graph."""

from __future__ import annotations

from functools import cached_property

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import CochainLike, checks
from sheafcoarsen.modes import LocalModes, Prolongation
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.partition import Clusters, Partition, clusters_of, relative_strengths
from sheafcoarsen.sheaf import CellularSheaf, edge_subset


class Views:
    """Properties and methods of :class:`Coarsening`, computed from its parts."""

    fine: CellularSheaf
    partition: Partition
    modes: LocalModes | None
    prolongation: scipy.sparse.csr_array
    sheaf: CellularSheaf

    @cached_property
    def R(self) -> Prolongation:
        """The prolongation R as dense blocks, one per cluster."""
        return Prolongation.from_matrix(
            self.fine, self.clusters, self.sheaf.vertex_dims, self.prolongation, "Coarsening"
        )

    @cached_property
    def n_crossing_edges(self) -> int:
        """Number of crossing edges of the coarse sheaf; its other edges are loops."""
        return int((self.sheaf.edges[:, 0] != self.sheaf.edges[:, 1]).sum())

    @property
    def ranks(self) -> np.ndarray:
        """Dimension r_a of each coarse stalk (``eq:coarse_stalk``), shape (K,)."""
        return self.sheaf.vertex_dims

    @cached_property
    def clusters(self) -> Clusters:
        """The index arrays of the partitioned fine graph."""
        return clusters_of(self.fine, self.partition)

    def block(self, a: int) -> np.ndarray:
        """Return R_a (``eq:local_prolongation``), shape (N_a, r_a).

        Rows are ordered by vertex of the cluster, then by stalk coordinate.

        Parameters
        ----------
        a : int
            The cluster.

        Returns
        -------
        ndarray, shape (N_a, r_a)

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
        >>> abs(C.block(1)).round(3)
        array([[0.707],
               [0.707]])
        """
        return self.R.block(checks.item_index("a", a, "cluster", self.partition.n_clusters))

    def internal_operator(self, a: int) -> np.ndarray:
        """Return H_a = R_a* L_a R_a (``eq:local_residual_operator``), shape (r_a, r_a).

        It is computed as the Gram matrix of delta_a R_a (``eq:internal_coboundary``).

        Parameters
        ----------
        a : int
            The cluster.

        Returns
        -------
        ndarray, shape (r_a, r_a)

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), 2)
        >>> abs(C.internal_operator(1)).round(12)
        array([[0., 0.],
               [0., 2.]])
        """
        a = checks.item_index("a", a, "cluster", self.partition.n_clusters)
        begin, end = self.clusters.internal_ptr[a : a + 2]
        inner = edge_subset(self.fine, self.clusters.internal_edges[begin:end])
        lo, hi = self.sheaf.vertex_offsets[a : a + 2]
        y = (coboundary(inner) @ self.prolongation[:, lo:hi]).toarray()
        return y.conj().T @ y

    def lift(self, z: CochainLike) -> np.ndarray:
        """Return R z, the fine cochain that a coarse cochain z is lifted to (``eq:local_lift``).

        Parameters
        ----------
        z : array_like, shape (sum r_a,) or (sum r_a, h)

        Returns
        -------
        ndarray, shape (dim_c0,) or (dim_c0, h)

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
        >>> bool(abs(C.pool(C.lift([1.0, -2.0])) - [1.0, -2.0]).max() < 1e-15)  # R* R = I
        True
        """
        return self.prolongation @ checks.cochain(self.sheaf, z, "z", " of the coarse sheaf")

    def pool(self, x: CochainLike) -> np.ndarray:
        """Return R* x, the coarse cochain of a fine cochain x (``eq:local_pooling_adjoint``).

        Parameters
        ----------
        x : array_like, shape (dim_c0,) or (dim_c0, h)

        Returns
        -------
        ndarray, shape (sum r_a,) or (sum r_a, h)

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
        >>> abs(C.pool([1.0, 1.0, 0.0, 0.0])).round(3)
        array([1.414, 0.   ])
        """
        return self.prolongation.conj().T @ checks.cochain(self.fine, x, "x", " of the fine sheaf")

    def galerkin(self) -> scipy.sparse.csr_array:
        """Return L_Gal = R* L R (``eq:sheaf_galerkin_operator``), computed from R and the fine L.

        It does not use the coarse sheaf, so it can test ``laplacian(C.sheaf)``. For the constant
        sheaf of dimension 1, if ``basis`` holds the columns of an assignment matrix S, it is S* L S
        (``eq:SLS``).

        Returns
        -------
        csr_array, shape (sum r_a, sum r_a)

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
        >>> C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1)
        >>> abs(C.galerkin().toarray()).round(3)
        array([[0.5, 0.5],
               [0.5, 0.5]])
        """
        R = self.prolongation
        product = scipy.sparse.csr_array(R.conj().T @ (laplacian(self.fine) @ R))
        product.sort_indices()
        return product

    def quotient(self, weight: npt.ArrayLike | str | None = None) -> nx.Graph:
        """Return the weighted quotient graph, whose nodes are the clusters.

        It can be drawn and analysed with networkx. Of the coarse sheaf only the stalk dimensions
        are used.

        Parameters
        ----------
        weight : array_like, shape (m,), or "sheaf", optional
            Weights of the fine edges, which are summed. By default each weight is 1, so that sums
            count edges. "sheaf" means the weights norm(F_u* F_v), with 0 for loops. For
            stalks of dimension 1 these are absolute weights; the signed weights of a signed sheaf
            are ``F.tail_data * F.head_data``.

        Returns
        -------
        networkx.Graph
            Nodes 0 .. K-1 have the attributes ``members``, the labels of the vertices of ``C.fine``
            in order, which are tuples if these are clusters with labelled vertices, or their
            indices if ``C.fine`` has no labels; ``size``, their number; ``dim``, the dimension of
            the coarse stalk; and ``inside``, the total weight of the edges in the cluster. Edges
            have ``weight`` and ``count``, the number of fine edges. There are no loops.
            ``nx.write_gml`` writes such a graph; GraphML has no tuples, so first delete
            ``members``.

        Raises
        ------
        ValueError, TypeError
            If weights are not m finite real numbers.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.Graph(["ab", "bc", "cd", "da"]))
        >>> Q = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1).quotient([5.0, 2.0, 7.0, 3.0])
        >>> Q.nodes(data="members"), Q.edges(data="weight")
        (NodeDataView({0: ('a', 'b'), 1: ('c', 'd')}, data='members'), EdgeDataView([(0, 1, 9.0)]))
        """
        sheaf, clusters, dims = self.fine, self.clusters, self.sheaf.vertex_dims
        if weight is None:
            weights = np.ones(sheaf.n_edges)
        elif not isinstance(weight, str):
            what = f"hold one number for each of the {sheaf.n_edges} fine edges"
            weights = checks.real_array("weight", weight, [(sheaf.n_edges,)], what).astype(
                np.float64
            )
        elif weight == "sheaf":
            weights = relative_strengths(sheaf) * sheaf.largest_entry**2
        else:
            raise ValueError(
                f'`weight` must be None, "sheaf" or an array of {sheaf.n_edges} numbers, got '
                f"{weight!r}: a sheaf stores no edge attributes"
            )
        graph = nx.Graph()
        names = range(sheaf.n_vertices) if sheaf.vertex_labels is None else sheaf.vertex_labels
        inner, crossing = clusters.internal_edges, clusters.crossing_edges
        at = clusters.labels[sheaf.edges[inner, 0]]
        inside = np.bincount(at, weights[inner], minlength=clusters.n_clusters)
        for a in range(clusters.n_clusters):
            members = tuple(names[v] for v in self.partition.cluster(a).tolist())
            graph.add_node(
                a, members=members, size=len(members), dim=int(dims[a]), inside=float(inside[a])
            )
        sums = np.add.reduceat(weights[crossing], clusters.pair_ptr[:-1])
        counts = np.diff(clusters.pair_ptr)
        rows = zip(clusters.pairs.tolist(), sums.tolist(), counts.tolist(), strict=True)
        graph.add_edges_from((a, b, {"weight": w, "count": count}) for (a, b), w, count in rows)
        return graph
