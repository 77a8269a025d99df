"""Class methods that construct a sheaf from a graph or from a sheaf Laplacian."""

from __future__ import annotations

from typing import Self, get_args

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import Seed, checks
from sheafcoarsen.sheaf.from_matrices import MatrixLike, sheaf_of_laplacian
from sheafcoarsen.sheaf.graphs import (
    EdgeValues,
    GraphArrays,
    GraphLike,
    edge_name,
    edge_values,
    edge_weights,
    graph_arrays,
)
from sheafcoarsen.sheaf.maps import MapKind, check_unitary, random_maps
from sheafcoarsen.sheaf.properties import Views


class FromGraphs(Views):
    """Constructors of :class:`CellularSheaf` from a graph or from a Laplacian."""

    @classmethod
    def _uniform(cls, graph: GraphArrays, tail: np.ndarray, head: np.ndarray) -> Self:
        """Build a sheaf from owned (m, d, d) arrays; values are checked, shapes are not."""
        m, d = tail.shape[:2]
        return cls._of_arrays(
            graph.edges,
            np.full(graph.n_vertices, d, dtype=np.int64),
            np.full(m, d, dtype=np.int64),
            tail.reshape(-1),
            head.reshape(-1),
            graph.labels,
        )._check_maps()

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
            parallel edges. Convert a dense adjacency: ``scipy.sparse.csr_array(A)``. Zeros that an
            adjacency stores are not edges; an edge of weight 0 in an array is kept.
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
        >>> import sheafcoarsen as sc
        >>> sc.laplacian(sc.CellularSheaf.constant([[0, 1], [1, 2]])).toarray()
        array([[ 1., -1.,  0.],
               [-1.,  2., -1.],
               [ 0., -1.,  1.]])
        """
        arrays = graph_arrays(graph, n_vertices)
        d = checks.whole_number("dim", dim, at_least=0)
        roots = np.sqrt(edge_weights(arrays, weight))
        with checks.memory_for_entries("dim", max(len(roots), 1) * d * d, roots.itemsize):
            maps = roots[:, None, None] * np.eye(d, dtype=roots.dtype)
            return cls._uniform(arrays, maps, maps.copy())

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
        U = edge_values(arrays, transports, "transports", ndim=2)
        if U.shape[1] != U.shape[2]:
            raise ValueError(f"`transports` must be square, got shape {U.shape}")
        check_unitary(U, lambda e: f"`transports[{e}]` (edge {tuple(arrays.edges[e].tolist())})")
        roots = np.sqrt(edge_weights(arrays, weight), dtype=float)
        roots = roots.astype(U.real.dtype)[:, None, None]
        return cls._uniform(arrays, roots * np.eye(U.shape[1], dtype=U.dtype), roots * U)

    @classmethod
    def diagonal(
        cls, graph: GraphLike, tail: EdgeValues, head: EdgeValues, n_vertices: int | None = None
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
        tails = edge_values(arrays, tail, "tail", ndim=1)
        heads = edge_values(arrays, head, "head", ndim=1)
        if tails.shape != heads.shape:
            raise ValueError(
                f"`tail` and `head` must have the same shape, got {tails.shape} and {heads.shape}"
            )
        eye = np.eye(tails.shape[1], dtype=np.float32)  # products keep the dtype of the values
        return cls._uniform(arrays, tails[:, :, None] * eye, heads[:, :, None] * eye)

    @classmethod
    def signed(
        cls,
        graph: GraphLike,
        sign: EdgeValues = "sign",
        weight: EdgeValues | None = "weight",
        n_vertices: int | None = None,
    ) -> Self:
        """Build the O(1) sheaf of a signed graph: tail maps sqrt(w), head maps sign sqrt(w).

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
        stored = arrays.attribute
        if isinstance(sign, str) and sign == "sign" and stored(sign) is None and len(arrays.edges):
            adjacency = arrays.labels is None and stored("weight") is not None
            adjacency &= not isinstance(weight, str)
            source = "weight" if weight is None or adjacency else weight
            if isinstance(source, str) and stored(source) is None:
                raise ValueError(
                    f"`sign` = 'sign' names an edge attribute that no edge of the graph has, and "
                    f"there is no {source!r} whose sign could be used: pass an array of 1 and -1"
                )
            entries = edge_values(arrays, source, "weight", missing=1)
            if entries.dtype.kind == "c":
                raise TypeError(f"`weight` must be real, got dtype {entries.dtype}")
            signs = np.where(entries < 0, -1, 1)
            if isinstance(weight, str) or source is weight:
                weight = np.abs(entries)
        else:
            signs = edge_values(arrays, sign, "sign")
        if (e := checks.first_true((np.abs(signs) != 1) | (signs.imag != 0))) is not None:
            raise ValueError(f"`sign` must be 1 or -1, got {signs[e]} for {edge_name(arrays, e)}")
        roots = np.sqrt(edge_weights(arrays, weight))[:, None, None]
        return cls._uniform(arrays, roots, signs.real.astype(roots.dtype)[:, None, None] * roots)

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
            block too small for its edges; the message names the vertex.

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
        return cls._of_arrays(*sheaf_of_laplacian(L, dims))._check_maps()

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
        checks.choice("kind", kind, get_args(MapKind))
        scalar = checks.scalar_type("dtype", dtype)
        arrays = graph_arrays(graph)
        n, m = arrays.n_vertices, len(arrays.edges)
        if not arrays.has_all_vertices and not checks.is_scalar("vertex_dims", vertex_dims):
            n = max(n, len(np.asarray(vertex_dims)))
        dims = checks.dimensions("vertex_dims", vertex_dims, n, "vertex")
        rows = checks.dimensions("edge_dims", edge_dims, m, "edge")
        entries = float((rows.astype(np.float64) * dims[arrays.edges].sum(axis=1)).sum())
        rng = checks.random_generator("seed", seed)
        with checks.memory_for_entries("vertex_dims` with `edge_dims", entries, scalar.itemsize):
            tail, head = (
                random_maps(rng, rows, dims[arrays.edges[:, end]], kind, scalar) for end in (0, 1)
            )
        return cls._of_arrays(arrays.edges, dims, rows, tail, head, arrays.labels)
