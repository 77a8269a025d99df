"""Class methods that construct a sheaf from a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, get_args

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import (
    Seed,
    choice,
    dimensions,
    is_scalar,
    memory_for_entries,
    random_generator,
    scalar_type,
)
from sheafcoarsen.sheaf.from_matrices import MatrixLike, sheaf_of_laplacian
from sheafcoarsen.sheaf.graphs import GraphArrays, GraphLike, graph_arrays
from sheafcoarsen.sheaf.values import (
    EdgeValues,
    MapKind,
    connection_maps,
    constant_maps,
    diagonal_maps,
    random_maps,
    signed_maps,
)


class FromGraphs:
    """Constructors of :class:`CellularSheaf` from a graph or from a Laplacian."""

    if TYPE_CHECKING:  # attributes of CellularSheaf

        @classmethod
        def _of_arrays(
            cls,
            edges: np.ndarray,
            vertex_dims: np.ndarray,
            edge_dims: np.ndarray,
            tail_data: np.ndarray,
            head_data: np.ndarray,
            vertex_labels: tuple | None = None,
        ) -> Self: ...

        def _check_maps(self) -> None: ...

    @classmethod
    def _uniform(cls, graph: GraphArrays, tail: np.ndarray, head: np.ndarray) -> Self:
        """Build a sheaf from owned (m, d, d) arrays; values are checked, shapes are not."""
        m, d = tail.shape[:2]
        sheaf = cls._of_arrays(
            graph.edges,
            np.full(graph.n_vertices, d, dtype=np.int64),
            np.full(m, d, dtype=np.int64),
            tail.reshape(-1),
            head.reshape(-1),
            graph.labels,
        )
        sheaf._check_maps()
        return sheaf

    @classmethod
    def constant(
        cls,
        graph: GraphLike,
        dim: int = 1,
        weight: EdgeValues | None = "weight",
        n_vertices: int | None = None,
    ) -> Self:
        """Build the constant sheaf, whose maps are sqrt(w) I at both ends of every edge.

        The maps are those of ``eq:app-scalar-restrictions``. For ``dim=1`` its Laplacian is the
        weighted graph Laplacian, its energy the sum of w (x_u - x_v)^2
        (``eq:graph_dirichlet_energy``, ``eq:app-weighted-graph-energy``).

        Parameters
        ----------
        graph : networkx Graph or MultiGraph, symmetric scipy sparse adjacency, or integer (m, 2)
            A dense array is a list of edges, even if its shape is (2, 2): [[0, 1], [1, 0]] is two
            parallel edges. Convert a dense adjacency: ``scipy.sparse.csr_array(A)``.
        dim : int
            Dimension of every stalk.
        weight : str or array_like, shape (m,), or None
            Name of an edge attribute ("weight" for the entries of an adjacency), the weights
            themselves, or None if all are 1. An edge without the attribute has weight 1, as in
            networkx; a misspelt name thus gives weight 1 to every edge without an error.
        n_vertices : int, optional
            Number of vertices, if the last ones of an edge array are isolated.

        Returns
        -------
        CellularSheaf

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> sc.laplacian(sc.CellularSheaf.constant(nx.path_graph(3))).toarray()
        array([[ 1., -1.,  0.],
               [-1.,  2., -1.],
               [ 0., -1.,  1.]])
        """
        arrays = graph_arrays(graph, n_vertices)
        return cls._uniform(arrays, *constant_maps(arrays, dim, weight))

    @classmethod
    def connection(
        cls,
        graph: GraphLike,
        transports: EdgeValues,
        weight: EdgeValues | None = "weight",
        n_vertices: int | None = None,
    ) -> Self:
        """Build a connection, with maps sqrt(w) I at the tails and sqrt(w) U_e at the heads.

        The maps are those of ``eq:app-connection-restrictions``; an edge has the energy
        w norm(x_u - U_e x_v)^2 (``eq:app-connection-energy``).

        Parameters
        ----------
        graph, weight, n_vertices : as in :meth:`constant`
        transports : str or array_like, shape (m, d, d)
            U_e for e = (u, v) maps the head's stalk to the tail's, x_u = U_e x_v. It must be
            orthogonal or unitary up to sqrt(eps). For matrices that map the tail to the head,
            x_v = R x_u, pass their conjugate transposes. An undirected networkx graph orients an
            edge by the order in which its nodes were added; an (m, 2) edge array keeps its
            orientation.

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            A graph that cannot be read, matrices that are not orthogonal, or negative weights; the
            message names the first edge.

        Examples
        --------
        >>> import numpy as np
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.connection([[0, 1]], [[[0.0, -1.0], [1.0, 0.0]]])
        >>> float(sc.energy(F, np.array([0.0, 1.0, 1.0, 0.0])))  # x_0 = U x_1
        0.0
        """
        arrays = graph_arrays(graph, n_vertices)
        return cls._uniform(arrays, *connection_maps(arrays, transports, weight))

    @classmethod
    def diagonal(
        cls,
        graph: GraphLike,
        tail: EdgeValues,
        head: EdgeValues,
        n_vertices: int | None = None,
    ) -> Self:
        """Build a sheaf with diagonal maps.

        Parameters
        ----------
        graph, n_vertices : as in :meth:`constant`
        tail, head : str or array_like, shape (m, d)
            Diagonals of the maps at the tails and heads.

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            A graph that cannot be read, or values whose shapes differ; the message names the first
            edge.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.diagonal([[0, 1]], tail=[[1.0, 2.0]], head=[[3.0, 4.0]])
        >>> F.head_map(0)
        array([[3., 0.],
               [0., 4.]])
        """
        arrays = graph_arrays(graph, n_vertices)
        return cls._uniform(arrays, *diagonal_maps(arrays, tail, head))

    @classmethod
    def signed(
        cls,
        graph: GraphLike,
        sign: EdgeValues = "sign",
        weight: EdgeValues | None = "weight",
        n_vertices: int | None = None,
    ) -> Self:
        """Build the O(1) sheaf of a signed graph, with maps sqrt(w) and sign sqrt(w).

        These are the tail map and the head map of an edge.

        Its Laplacian is the signed graph Laplacian, with off-diagonal entries -sign w.

        Parameters
        ----------
        graph, n_vertices : as in :meth:`constant`
        sign : str or array_like, shape (m,)
            Name of an edge attribute or the values, each 1 or -1. If no edge has an attribute
            "sign", as in an adjacency, the signs and absolute values of ``weight`` are used. A
            negative loop of weight w adds 4 w to the diagonal.
        weight : as in :meth:`constant`

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            A graph that cannot be read, or values that are not 1 or -1; the message names the first
            edge.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.signed([[0, 1], [1, 2]], sign=[1, -1])
        >>> sc.laplacian(F).toarray()
        array([[ 1., -1.,  0.],
               [-1.,  2.,  1.],
               [ 0.,  1.,  1.]])

        The same, read from a graph with weights of both signs:

        >>> import networkx as nx
        >>> G = nx.Graph()
        >>> G.add_weighted_edges_from([("a", "b", 1.0), ("b", "c", -1.0)])
        >>> F.allclose(sc.CellularSheaf.signed(G).with_labels(None))
        True
        """
        arrays = graph_arrays(graph, n_vertices)
        return cls._uniform(arrays, *signed_maps(arrays, sign, weight))

    @classmethod
    def from_laplacian(cls, L: MatrixLike, dims: npt.ArrayLike) -> Self:
        """Build a sheaf whose Laplacian is a given matrix, such as a connection Laplacian.

        Every nonzero off-diagonal block becomes an edge, -L_uv = F_u* F_v, whose maps have the
        same singular values: if -L_uv = w U with U unitary, they are sqrt(w) I at the tail and
        sqrt(w) U at the head. The remainder of a diagonal block becomes a loop whose head map is 0.

        Parameters
        ----------
        L : scipy sparse or array_like, shape (dim_c0, dim_c0)
            Hermitian, positive semidefinite.
        dims : int or array_like of int, shape (n,)
            Dimensions of the vertex stalks, which partition rows and columns into blocks.

        Returns
        -------
        CellularSheaf
            Edges (u, v), u < v, sorted, then loops, sorted; its ``laplacian`` is L up to rounding.

        Raises
        ------
        ValueError, TypeError
            A matrix that is not Hermitian, dimensions that do not sum to its size, or a diagonal
            block too small for its edges; the message names the block.

        Notes
        -----
        If maps with the same singular values exceed a diagonal block, as in a normalized Laplacian,
        the two ends of edges are scaled differently, using the lowest eigenvector of a matrix of
        block norms. For stalks of dimension 1 this finds a sheaf whenever there is one with these
        edges. For larger stalks some Laplacians of sheaves are rejected.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.from_laplacian([[3, 0, -1], [0, 1, 0], [-1, 0, 1]], dims=1)
        >>> F.edges.tolist()
        [[0, 2], [0, 0], [1, 1]]
        >>> sc.laplacian(F).toarray().round(12)
        array([[ 3.,  0., -1.],
               [ 0.,  1.,  0.],
               [-1.,  0.,  1.]])
        """
        sheaf = cls._of_arrays(*sheaf_of_laplacian(L, dims))
        sheaf._check_maps()
        return sheaf

    @classmethod
    def random(
        cls,
        graph: GraphLike,
        vertex_dims: npt.ArrayLike,
        edge_dims: npt.ArrayLike,
        kind: MapKind = "general",
        seed: Seed = None,
        dtype: npt.DTypeLike = float,
    ) -> Self:
        """Build a sheaf with random maps.

        Parameters
        ----------
        graph : as in :meth:`constant`
        vertex_dims, edge_dims : int or array_like of int, shape (n,) and (m,)
        kind : {"general", "orthogonal", "diagonal"}
            Standard normal entries; maps with orthonormal rows or columns, whichever are fewer; or
            diagonal maps with standard normal entries.
        seed : None, int or numpy Generator
        dtype : float32, float64, complex64 or complex128

        Returns
        -------
        CellularSheaf

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> sc.CellularSheaf.random(nx.path_graph(3), vertex_dims=[1, 2, 3], edge_dims=2, seed=5)
        CellularSheaf(n_vertices=3, n_edges=2, dim_c0=6, dim_c1=4, dtype=float64)
        """
        choice("kind", kind, get_args(MapKind))
        scalar = scalar_type("dtype", dtype)
        arrays = graph_arrays(graph)
        n, m = arrays.n_vertices, len(arrays.edges)
        # an edge array does not show isolated vertices after its highest index
        if arrays.labels is None and not is_scalar("vertex_dims", vertex_dims):
            n = max(n, len(np.asarray(vertex_dims)))
        dims = dimensions("vertex_dims", vertex_dims, n, "vertex")
        rows = dimensions("edge_dims", edge_dims, m, "edge")
        entries = float((rows.astype(np.float64) * dims[arrays.edges].sum(axis=1)).sum())
        rng = random_generator("seed", seed)
        with memory_for_entries("vertex_dims` with `edge_dims", entries, scalar.itemsize):
            tail, head = (
                random_maps(rng, rows, dims[arrays.edges[:, end]], kind, scalar) for end in (0, 1)
            )
        return cls._of_arrays(arrays.edges, dims, rows, tail, head, arrays.labels)
