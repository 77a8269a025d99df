"""The container: a cellular sheaf on a graph, as flat arrays."""

from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
import scipy.sparse

from sheafcoarsen._kernels.arrays import SheafArrays, scan
from sheafcoarsen._support import (
    check_range,
    choice,
    dimensions,
    entry_count,
    is_scalar,
    offsets,
    random_generator,
    range_limits,
    read_only,
    scalar_array,
    scalar_type,
    tables,
    vertex_count,
    whole_number,
)
from sheafcoarsen.sheaf.graphs import edge_array, edge_values, edge_weights, graph_arrays
from sheafcoarsen.sheaf.maps import check_endpoints, flat_maps, random_maps, stalk_dims


@dataclass(frozen=True, eq=False, repr=False, init=False)
class CellularSheaf:
    """A vector space on every vertex and edge of a graph, and a linear map for every incident pair.

    The coboundary (``eq:coboundary``) compares the two ends of an edge ``e = (u, v)`` in its
    stalk::

        (delta x)_e = F_{u->e} x_u - F_{v->e} x_v

    and the Laplacian is ``L = delta* delta`` (``eq:sheaf-laplacian``). Vertices and edges are
    numbered from 0. Loops (u = v), parallel edges, isolated vertices, several components and stalks
    of dimension 0 are all allowed.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Row e is (tail u, head v); order and orientation are kept.
    tail_maps, head_maps : array_like, shape (m, d_e, d_v), or sequence of m 2-D arrays
        Map e has shape (d_e, d_u) at the tail and (d_e, d_v) at the head. Integers become float64.
    vertex_dims : array_like of int, shape (n,), optional
        Needed only for vertices that no edge touches; otherwise read off the maps.

    Attributes
    ----------
    edges : ndarray of int, shape (m, 2)
    vertex_dims, edge_dims : ndarray of int, shape (n,) and (m,)
        Dimensions of the stalks.
    tail_data, head_data : ndarray
        The maps one after the other, each row-major: map e is
        ``tail_data[tail_offsets[e]:tail_offsets[e + 1]]``.
    vertex_labels : tuple or None
        The graph's own node names in vertex order.

    Raises
    ------
    ValueError
        Endpoints out of range, maps whose shapes disagree, entries that are not finite, or a
        largest entry whose square would over- or underflow.
    TypeError
        Maps of another scalar type than float32, float64, complex64, complex128 or integers.

    Examples
    --------
    Two vertices of dimension 1 and 2, compared in a plane:

    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf([[0, 1]], [[[1.0], [0.0]]], [[[1.0, 0.0], [0.0, 2.0]]])
    >>> F
    CellularSheaf(n_vertices=2, n_edges=1, dim_c0=3, dim_c1=2, dtype=float64)
    >>> sc.coboundary(F).toarray()
    array([[ 1., -1.,  0.],
           [ 0.,  0., -2.]])
    """

    edges: np.ndarray  # (m, 2) int64, row e = (tail, head)
    vertex_dims: np.ndarray  # (n,) int64
    edge_dims: np.ndarray  # (m,) int64
    tail_data: (
        np.ndarray
    )  # flat, row-major: map e is tail_data[tail_offsets[e]:tail_offsets[e + 1]]
    head_data: np.ndarray  # the same for the heads
    vertex_labels: tuple | None  # the graph's own node names in vertex order, or None

    def __init__(self, edges, tail_maps, head_maps, vertex_dims=None):
        edges = edge_array("edges", edges)
        tail, tail_rows, tail_cols = flat_maps("tail_maps", tail_maps, len(edges))
        head, head_rows, head_cols = flat_maps("head_maps", head_maps, len(edges))
        differ = np.flatnonzero(tail_rows != head_rows)
        if differ.size:
            e = int(differ[0])
            raise ValueError(
                f"`tail_maps[{e}]` has {tail_rows[e]} rows and `head_maps[{e}]` has {head_rows[e]}; both must have the "
                f"dimension of the edge's stalk"
            )
        dims = stalk_dims(edges, tail_cols, head_cols, vertex_dims)
        self._fill(edges, dims, tail_rows, tail, head, None)
        self._check_maps()

    def _fill(self, edges, vertex_dims, edge_dims, tail_data, head_data, vertex_labels):
        """Take ownership of arrays that are known to be consistent."""
        dtype = np.result_type(tail_data.dtype, head_data.dtype)
        for name, value in (
            ("edges", edges),
            ("vertex_dims", vertex_dims),
            ("edge_dims", edge_dims),
            ("tail_data", np.ascontiguousarray(tail_data, dtype=dtype)),
            ("head_data", np.ascontiguousarray(head_data, dtype=dtype)),
        ):
            object.__setattr__(self, name, read_only(value))
        object.__setattr__(self, "vertex_labels", vertex_labels)

    @classmethod
    def from_flat(cls, edges, tail_data, head_data, vertex_dims, edge_dims) -> "CellularSheaf":
        """Build from flat map data: for large ragged sheaves, where a list of m arrays is slow.

        Parameters
        ----------
        edges : array_like of int, shape (m, 2)
        tail_data, head_data : array_like, shape (sum of d_e d_v,)
            The maps one after the other in edge order, each row-major.
        vertex_dims, edge_dims : array_like of int, shape (n,) and (m,), or int

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            As the constructor; flat data of another length than the dimensions say.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.from_flat([[0, 1]], [1.0, 0.0], [1.0, 0.0, 0.0, 2.0], [1, 2], [2])
        >>> F.head_map(0)
        array([[1., 0.],
               [0., 2.]])
        """
        return checked_sheaf(edges, tail_data, head_data, vertex_dims, edge_dims, None, limits=True)

    @cached_property
    def largest_entry(self) -> float:
        """Largest modulus of a map entry, by which norms are scaled."""
        return max(scan(self.tail_data)[1], scan(self.head_data)[1])

    def _check_maps(self, *, limits: bool = True):
        largest = 0.0
        for name, data, starts in (
            ("tail_maps", self.tail_data, self.tail_offsets),
            ("head_maps", self.head_data, self.head_offsets),
        ):
            bad, size = scan(data)
            if bad >= 0:
                e = int(np.searchsorted(starts, bad, side="right")) - 1
                u, v = self.edges[e].tolist()
                raise ValueError(f"`{name}[{e}]` (edge {u} -> {v}) must be finite, got {data[bad]}")
            largest = max(largest, size)
        self.__dict__["largest_entry"] = largest
        if limits:
            check_range("tail_maps and head_maps", largest, self.dtype)

    # ---------------------------------------------------------------- sizes and views

    @property
    def n_vertices(self) -> int:
        """Number of vertices n."""
        return len(self.vertex_dims)

    @property
    def n_edges(self) -> int:
        """Number of edges m, loops included."""
        return len(self.edges)

    @property
    def dim_c0(self) -> int:
        """Dimension of C^0 (``eq:zero-cochains``, ``eq:fine_cochain_space``): sum of the d_v."""
        return int(self.vertex_offsets[-1])

    @property
    def dim_c1(self) -> int:
        """Dimension of C^1 (``eq:coboundary-domain``): sum of the d_e."""
        return int(self.edge_offsets[-1])

    @property
    def dtype(self) -> np.dtype:
        """The scalar type of the maps."""
        return self.tail_data.dtype

    @cached_property
    def vertex_offsets(self) -> np.ndarray:
        """Where each vertex's stalk begins in C^0, shape (n + 1,)."""
        return read_only(offsets(self.vertex_dims))

    @cached_property
    def edge_offsets(self) -> np.ndarray:
        """Where each edge's stalk begins in C^1, shape (m + 1,)."""
        return read_only(offsets(self.edge_dims))

    @cached_property
    def tail_offsets(self) -> np.ndarray:
        """Where each map begins in ``tail_data``, shape (m + 1,)."""
        return read_only(offsets(self.edge_dims * self.vertex_dims[self.edges[:, 0]]))

    @cached_property
    def head_offsets(self) -> np.ndarray:
        """Where each map begins in ``head_data``, shape (m + 1,)."""
        return read_only(offsets(self.edge_dims * self.vertex_dims[self.edges[:, 1]]))

    @cached_property
    def map_shape(self) -> tuple[int, int] | None:
        """Return (d_e, d_v) where all edge stalks have one dimension and all vertex stalks one, else None."""
        if not len(self.edge_dims) or (self.edge_dims != self.edge_dims[0]).any():
            return None
        return (
            None
            if (self.vertex_dims != self.vertex_dims[0]).any()
            else (int(self.edge_dims[0]), int(self.vertex_dims[0]))
        )

    @cached_property
    def arrays(self) -> SheafArrays:
        return SheafArrays(
            self.edges,
            self.vertex_dims,
            self.vertex_offsets,
            self.edge_dims,
            self.edge_offsets,
            self.tail_data,
            self.tail_offsets,
            self.head_data,
            self.head_offsets,
        )

    def _map(self, e: int, data, starts, end: int) -> np.ndarray:
        if isinstance(e, bool) or not isinstance(e, int | np.integer):
            raise TypeError(f"an edge is named by an integer, got {e!r}")
        if not -self.n_edges <= e < self.n_edges:
            raise IndexError(f"edge {e} is out of range for {self.n_edges} edges")
        e = range(self.n_edges)[e]
        shape = (self.edge_dims[e], self.vertex_dims[self.edges[e, end]])
        return data[starts[e] : starts[e + 1]].reshape(shape)

    def tail_map(self, e: int) -> np.ndarray:
        """Return F_{u->e} (``eq:restriction-map``) of edge ``e = (u, v)``, read-only.

        Parameters
        ----------
        e : int
            Counted from the end where negative.

        Returns
        -------
        ndarray, shape (d_e, d_u)
            Read-only.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.CellularSheaf.constant([[0, 1]], dim=2, weight=[4.0]).tail_map(0)
        array([[2., 0.],
               [0., 2.]])
        """
        return self._map(e, self.tail_data, self.tail_offsets, 0)

    def head_map(self, e: int) -> np.ndarray:
        """Return F_{v->e} of edge ``e = (u, v)``, a read-only view of shape (d_e, d_v).

        Parameters
        ----------
        e : int
            Counted from the end where negative.

        Returns
        -------
        ndarray, shape (d_e, d_v)
            Read-only.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.CellularSheaf.constant([[0, 1]], dim=2, weight=[4.0]).head_map(0)
        array([[2., 0.],
               [0., 2.]])
        """
        return self._map(e, self.head_data, self.head_offsets, 1)

    def __repr__(self) -> str:
        return (
            f"CellularSheaf(n_vertices={self.n_vertices}, n_edges={self.n_edges}, dim_c0={self.dim_c0}, "
            f"dim_c1={self.dim_c1}, dtype={self.dtype})"
        )

    def _repr_html_(self) -> str:
        rows = [
            *sheaf_rows(self),
            ("maps", f"{self.dtype}, largest entry {self.largest_entry:.4g}"),
        ]
        if self.vertex_labels:
            rows.append(("vertex labels", tables.names(self.vertex_labels)))
        return tables.table(rows, caption="CellularSheaf")

    # ---------------------------------------------------------------- new sheaves from this one

    def with_maps(self, tail_maps, head_maps) -> "CellularSheaf":
        """Return the same graph and stalks with new maps; the graph is not validated again.

        Parameters
        ----------
        tail_maps, head_maps : array_like or sequence
            As in the constructor, or flat like ``tail_data`` and ``head_data``. Shapes must be
            those of this sheaf.

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            Maps of other shapes, or entries that the constructor refuses.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]])
        >>> sc.laplacian(F.with_maps(2 * F.tail_data, 2 * F.head_data)).toarray()
        array([[ 4., -4.,  0.],
               [-4.,  8., -4.],
               [ 0., -4.,  4.]])
        """
        data = []
        for name, maps, end, wanted in (
            ("tail_maps", tail_maps, 0, len(self.tail_data)),
            ("head_maps", head_maps, 1, len(self.head_data)),
        ):
            if isinstance(maps, np.ndarray) and maps.ndim == 1 and maps.dtype != object:
                flat = scalar_array(name, maps).copy()
                if len(flat) != wanted:
                    raise ValueError(f"flat `{name}` must have length {wanted}, got {len(flat)}")
            else:
                flat, rows, cols = flat_maps(name, maps, self.n_edges)
                differ = np.flatnonzero(
                    (rows != self.edge_dims) | (cols != self.vertex_dims[self.edges[:, end]])
                )
                if differ.size:
                    e = int(differ[0])
                    wanted_shape = (
                        int(self.edge_dims[e]),
                        int(self.vertex_dims[self.edges[e, end]]),
                    )
                    raise ValueError(
                        f"`{name}[{e}]` must have shape {wanted_shape}, as in the sheaf it replaces, got "
                        f"{(int(rows[e]), int(cols[e]))}"
                    )
            data.append(flat)
        sheaf = object.__new__(type(self))
        sheaf._fill(
            self.edges, self.vertex_dims, self.edge_dims, data[0], data[1], self.vertex_labels
        )
        for name in ("vertex_offsets", "edge_offsets", "tail_offsets", "head_offsets"):
            sheaf.__dict__[name] = getattr(self, name)
        sheaf._check_maps(limits=False)
        low, high = range_limits(sheaf.dtype)
        mine = self.largest_entry if self.dtype == sheaf.dtype else 0.0
        if (
            not min(low, mine or low) <= sheaf.largest_entry <= max(high, mine)
            and sheaf.largest_entry > 0
        ):
            check_range(
                "tail_maps and head_maps", sheaf.largest_entry, sheaf.dtype
            )  # a coarse sheaf keeps its own range
        return sheaf

    # ---------------------------------------------------------------- sheaves from graphs

    @classmethod
    def constant(
        cls, graph, dim: int = 1, weight="weight", n_vertices: int | None = None
    ) -> "CellularSheaf":
        """Build the constant sheaf: sqrt(w) I on both ends of every edge (``eq:app-scalar-restrictions``).

        For ``dim=1`` its Laplacian is the weighted graph Laplacian, its energy the sum of
        w (x_u - x_v)^2 (``eq:graph_dirichlet_energy``, ``eq:app-weighted-graph-energy``).

        Parameters
        ----------
        graph : networkx Graph or MultiGraph, symmetric scipy sparse adjacency, or (m, 2) integer
            array
        dim : int
            Dimension of every stalk.
        weight : str or array_like, shape (m,), or None
            An edge attribute (missing = 1; an adjacency's entries are its "weight"), the weights,
            or None for 1.
        n_vertices : int, optional
            For an edge array with isolated last vertices.

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
        d = whole_number("dim", dim, at_least=0)
        entry_count("dim", max(len(arrays.edges), 1) * d * d)
        roots = np.sqrt(edge_weights(arrays, weight))
        maps = roots[:, None, None] * np.eye(d, dtype=roots.dtype)
        return cls._uniform(arrays, d, d, maps, maps.copy())

    @classmethod
    def connection(
        cls, graph, transports, weight="weight", n_vertices: int | None = None
    ) -> "CellularSheaf":
        """Build a connection: sqrt(w) I at the tail, sqrt(w) U_e at the head (``eq:app-connection-restrictions``).

        An edge has the energy w norm(x_u - U_e x_v)^2 (``eq:app-connection-energy``).

        Parameters
        ----------
        graph, weight, n_vertices : as in :meth:`constant`
        transports : str or array_like, shape (m, d, d)
            U_e for e = (u, v) carries the head's stalk to the tail's, x_u = U_e x_v; orthogonal or
            unitary to sqrt(eps). If yours carry the tail to the head, x_v = R x_u, pass their
            conjugate transposes. Mind that an undirected networkx graph orients an edge by the
            order in which its nodes were added; an (m, 2) edge array keeps the orientation you
            give.

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            A graph that cannot be read, or values that are not orthogonal, or weights that are
            negative; the message names the first edge.

        Examples
        --------
        >>> import numpy as np
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.connection([[0, 1]], [[[0.0, -1.0], [1.0, 0.0]]])
        >>> float(sc.energy(F, np.array([0.0, 1.0, 1.0, 0.0])))  # x_0 = U x_1
        0.0
        """
        arrays = graph_arrays(graph, n_vertices)
        U = edge_values(arrays, transports, "transports", shape=(-1, -1))
        if U.shape[1] != U.shape[2]:
            raise ValueError(f"`transports` must be square, got shape {U.shape}")
        d = U.shape[1]
        deviation = np.abs(U.conj().swapaxes(1, 2) @ U - np.eye(U.shape[1], dtype=U.dtype)).max(
            axis=(1, 2), initial=0
        )
        allowed = np.sqrt(np.finfo(U.dtype).eps)
        bad = np.flatnonzero(~(deviation <= allowed))
        if bad.size:
            e = int(bad[0])
            raise ValueError(
                f"`transports[{e}]` (edge {tuple(arrays.edges[e].tolist())}) must be orthogonal or unitary: an entry of "
                f"U* U - I is {deviation[e]:.3g}, allowed is {allowed:.1g}"
            )
        roots = np.sqrt(edge_weights(arrays, weight)).astype(U.real.dtype)
        eye = np.eye(d, dtype=U.dtype)
        return cls._uniform(arrays, d, d, roots[:, None, None] * eye, roots[:, None, None] * U)

    @classmethod
    def diagonal(cls, graph, tail, head, n_vertices: int | None = None) -> "CellularSheaf":
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
            A graph that cannot be read, or values that are not arrays of one shape; the message
            names the first edge.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.diagonal([[0, 1]], tail=[[1.0, 2.0]], head=[[3.0, 4.0]])
        >>> F.head_map(0)
        array([[3., 0.],
               [0., 4.]])
        """
        arrays = graph_arrays(graph, n_vertices)
        diagonals = [
            edge_values(arrays, v, name, shape=(-1,))
            for name, v in (("tail", tail), ("head", head))
        ]
        if diagonals[0].shape != diagonals[1].shape:
            raise ValueError(
                f"`tail` and `head` must have one shape, got {diagonals[0].shape} and {diagonals[1].shape}"
            )
        d = diagonals[0].shape[1]
        maps = [values[:, :, None] * np.eye(d, dtype=values.dtype) for values in diagonals]
        return cls._uniform(arrays, d, d, *maps)

    @classmethod
    def signed(
        cls, graph, sign="sign", weight="weight", n_vertices: int | None = None
    ) -> "CellularSheaf":
        """Build the O(1) sheaf of a signed graph: sqrt(w) at the tail, sign sqrt(w) at the head.

        Its Laplacian is the signed graph Laplacian, degrees on the diagonal and -sign w beside it.

        Parameters
        ----------
        graph, n_vertices : as in :meth:`constant`
        sign : str or array_like, shape (m,)
            An edge attribute or the values, each 1 or -1. An adjacency carries its signs in its
            entries. A negative loop of weight w adds 4 w to the diagonal.
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
        """
        arrays = graph_arrays(graph, n_vertices)
        if (
            isinstance(sign, str)
            and sign == "sign"
            and arrays.labels is None
            and _stores_weights(arrays)
        ):
            entries = edge_values(arrays, "weight", "graph")
            signs = np.where(entries < 0, -1.0, 1.0)
            if isinstance(weight, str) and weight == "weight":
                weight = np.abs(entries)
        else:
            signs = edge_values(arrays, sign, "sign")
        bad = np.flatnonzero(np.abs(signs) != 1)
        bad = bad if bad.size or signs.dtype.kind != "c" else np.flatnonzero(signs.imag != 0)
        if bad.size:
            e = int(bad[0])
            raise ValueError(
                f"`sign` must be 1 or -1, got {signs[e]} for edge {e} {tuple(arrays.edges[e].tolist())}"
            )
        roots = np.sqrt(edge_weights(arrays, weight))
        return cls._uniform(arrays, 1, 1, roots[:, None, None], (signs.real * roots)[:, None, None])

    @classmethod
    def random(
        cls, graph, vertex_dims, edge_dims, kind: str = "general", seed=None, dtype=float
    ) -> "CellularSheaf":
        """Build a sheaf with random maps.

        Parameters
        ----------
        graph : as in :meth:`constant`
        vertex_dims, edge_dims : int or array_like of int, shape (n,) and (m,)
        kind : {"general", "orthogonal", "diagonal"}
            Standard normal entries; maps with orthonormal rows or columns, whichever are fewer; or
            standard normal entries on the diagonal alone.
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
        choice("kind", kind, ("general", "orthogonal", "diagonal"))
        scalar = scalar_type("dtype", dtype)
        arrays = graph_arrays(graph)
        n, m = arrays.n_vertices, len(arrays.edges)
        if (
            arrays.labels is None
            and not is_scalar("vertex_dims", vertex_dims)
            and len(vertex_dims) > n
        ):
            n = len(vertex_dims)  # an edge array does not know its isolated last vertices
        dims = dimensions("vertex_dims", vertex_dims, n, "vertex")
        edge_dims = dimensions("edge_dims", edge_dims, m, "edge")
        entries = float((edge_dims.astype(np.float64) * dims[arrays.edges].sum(axis=1)).sum())
        entry_count("vertex_dims` with `edge_dims", entries)
        rng = random_generator("seed", seed)
        data = [
            random_maps(rng, edge_dims, dims[arrays.edges[:, end]], kind, scalar) for end in (0, 1)
        ]
        return trusted_sheaf(arrays.edges, dims, edge_dims, data[0], data[1], arrays.labels)

    @classmethod
    def _uniform(
        cls, arrays, d_v: int, d_e: int, tail: np.ndarray, head: np.ndarray
    ) -> "CellularSheaf":
        """Build from (m, d_e, d_v) arrays of our own; values are checked, shapes are known."""
        vertex_dims = np.full(arrays.n_vertices, d_v, dtype=np.int64)
        edge_dims = np.full(len(arrays.edges), d_e, dtype=np.int64)
        sheaf = trusted_sheaf(
            arrays.edges, vertex_dims, edge_dims, tail.reshape(-1), head.reshape(-1), arrays.labels
        )
        sheaf._check_maps()
        return sheaf


def _stores_weights(arrays) -> bool:
    try:
        arrays.attribute("weight")
    except KeyError:
        return False
    return True


def trusted_sheaf(
    edges, vertex_dims, edge_dims, tail_data, head_data, vertex_labels=None
) -> CellularSheaf:
    """Build from arrays that are known to be consistent and belong to us: no check, no copy."""
    sheaf = object.__new__(CellularSheaf)
    sheaf._fill(edges, vertex_dims, edge_dims, tail_data, head_data, vertex_labels)
    return sheaf


def checked_sheaf(edges, tail_data, head_data, vertex_dims, edge_dims, labels, *, limits: bool):
    """Check and build; a coarse sheaf read from a file may have maps beyond the limits for a caller's own."""
    edges = edge_array("edges", edges)
    count = (
        int(edges.max(initial=-1)) + 1
        if is_scalar("vertex_dims", vertex_dims)
        else len(vertex_dims)
    )
    vertex_count("edges", count)
    dims = dimensions("vertex_dims", vertex_dims, count, "vertex")
    check_endpoints(edges, len(dims))
    edge_dims = dimensions("edge_dims", edge_dims, len(edges), "edge")
    data = []
    for name, given, end in (("tail_data", tail_data, 0), ("head_data", head_data, 1)):
        flat = scalar_array(name, given).copy()
        wanted = float(
            (edge_dims.astype(np.float64) * dims[edges[:, end]]).sum()
        )  # in integers it might wrap around
        if flat.shape != (wanted,):
            raise ValueError(
                f"`{name}` must have shape ({wanted:.0f},), the sum of d_e d_v, got {flat.shape}"
            )
        data.append(flat)
    sheaf = object.__new__(CellularSheaf)
    sheaf._fill(edges, dims, edge_dims, data[0], data[1], labels)
    sheaf._check_maps(limits=limits)
    return sheaf


def sheaf_rows(sheaf: CellularSheaf) -> list[tuple]:
    """Return what a sheaf is, in names and values."""
    return [
        ("vertices", sheaf.n_vertices),
        (
            "vertex stalks",
            f"dim {tables.span(sheaf.vertex_dims)}, together dim C^0 = {sheaf.dim_c0:,}",
        ),
        ("edges", sheaf.n_edges),
        ("of them loops", int((sheaf.edges[:, 0] == sheaf.edges[:, 1]).sum())),
        (
            "edge stalks",
            f"dim {tables.span(sheaf.edge_dims)}, together dim C^1 = {sheaf.dim_c1:,}",
        ),
    ]


def check_sheaf(value, name: str = "sheaf") -> CellularSheaf:
    """Refuse anything but a sheaf, with the way from what came to one."""
    if isinstance(value, CellularSheaf):
        return value
    remedy = ""
    if isinstance(getattr(value, "sheaf", None), CellularSheaf):
        remedy = ": it has one in its attribute `sheaf`"
    elif (
        isinstance(value, nx.Graph) or scipy.sparse.issparse(value) or isinstance(value, np.ndarray)
    ):
        remedy = ": CellularSheaf.constant(graph) makes one"
    raise TypeError(f"`{name}` must be a CellularSheaf, got {type(value).__name__}{remedy}")
