"""Arrays, sizes, offsets and single maps of a sheaf, and methods that return another sheaf."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from typing import Self, TypeVar

import numpy as np

from sheafcoarsen._kernels.arrays import SheafArrays, scan
from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import Vertices, checks, labels, ragged
from sheafcoarsen.sheaf.graphs import vertex_names
from sheafcoarsen.sheaf.maps import MapsLike, flat_maps

Sheaf = TypeVar("Sheaf", bound="Views")


class Views:
    """Properties of :class:`CellularSheaf`, and methods that return another sheaf."""

    edges: np.ndarray
    vertex_dims: np.ndarray
    edge_dims: np.ndarray
    tail_data: np.ndarray
    head_data: np.ndarray
    vertex_labels: tuple | None
    _columns: np.ndarray | None = None
    """For a sheaf of ``from_edge_index``: columns of the tail and head maps, shape (2, m)."""

    @classmethod
    def _of_arrays(
        cls,
        edges: np.ndarray,
        vertex_dims: np.ndarray,
        edge_dims: np.ndarray,
        tail_data: np.ndarray,
        head_data: np.ndarray,
        vertex_labels: tuple | None = None,
    ) -> Self:
        """Return a sheaf that takes ownership of consistent arrays, without checks or copies."""
        dtype = np.result_type(tail_data.dtype, head_data.dtype)
        sheaf = object.__new__(cls)
        vars(sheaf).update(  # as the class is frozen
            edges=ragged.read_only(edges),
            vertex_dims=ragged.read_only(vertex_dims),
            edge_dims=ragged.read_only(edge_dims),
            tail_data=ragged.read_only(np.ascontiguousarray(tail_data, dtype)),
            head_data=ragged.read_only(np.ascontiguousarray(head_data, dtype)),
            vertex_labels=vertex_labels,
        )
        return sheaf

    @cached_property
    def _scans(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """(index of the first non-finite entry or -1, largest modulus) of tail and of head maps."""
        return scan(self.tail_data), scan(self.head_data)

    @cached_property
    def largest_entry(self) -> float:
        """Largest absolute value of a map entry, used to scale norms."""
        return max(size for _, size in self._scans)

    def _check_finite(self) -> None:
        """Raise an error that names the edge of the first non-finite map entry, if there is one."""
        for end, (bad, _) in zip(("tail", "head"), self._scans, strict=True):
            if bad >= 0:
                data, starts = getattr(self, f"{end}_data"), getattr(self, f"{end}_offsets")
                e = int(np.searchsorted(starts, bad, side="right")) - 1
                u, v = self.edges[e].tolist()
                raise ValueError(
                    f"`{end}_maps[{e}]` (edge {u} -> {v}) must be finite, got {data[bad]}"
                )

    def _check_maps(self) -> Self:
        """Return the sheaf, after checking that map entries are finite and in the allowed range."""
        self._check_finite()
        checks.check_range("tail_maps and head_maps", self.largest_entry, self.dtype)
        return self

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
        """Scalar type of the maps."""
        return self.tail_data.dtype

    @cached_property
    def vertex_offsets(self) -> np.ndarray:
        """Offset of each vertex's stalk in C^0, shape (n + 1,)."""
        return ragged.read_only(ragged.offsets(self.vertex_dims))

    @cached_property
    def edge_offsets(self) -> np.ndarray:
        """Offset of each edge's stalk in C^1, shape (m + 1,)."""
        return ragged.read_only(ragged.offsets(self.edge_dims))

    @cached_property
    def tail_offsets(self) -> np.ndarray:
        """Offset of each map in ``tail_data``, shape (m + 1,)."""
        return ragged.read_only(ragged.offsets(self.edge_dims * self.vertex_dims[self.edges[:, 0]]))

    @cached_property
    def head_offsets(self) -> np.ndarray:
        """Offset of each map in ``head_data``, shape (m + 1,)."""
        return ragged.read_only(ragged.offsets(self.edge_dims * self.vertex_dims[self.edges[:, 1]]))

    @cached_property
    def map_shape(self) -> tuple[int, int] | None:
        """(d_e, d_v) if all edges have the same d_e and all vertices the same d_v, or None."""
        dims = self.edge_dims, self.vertex_dims
        if not self.n_edges or any((d != d[0]).any() for d in dims):
            return None
        return int(dims[0][0]), int(dims[1][0])

    @cached_property
    def arrays(self) -> SheafArrays:
        """Arrays of the sheaf as a tuple, which kernels take as one argument."""
        return SheafArrays(*(getattr(self, name) for name in SheafArrays._fields))

    def _map(self, e: int, data: np.ndarray, starts: np.ndarray, end: int) -> np.ndarray:
        e = checks.item_index("e", e, "edge", self.n_edges)
        shape = (self.edge_dims[e], self.vertex_dims[self.edges[e, end]])
        return data[starts[e] : starts[e + 1]].reshape(shape)

    def tail_map(self, e: int) -> np.ndarray:
        """Return F_{u->e} (``eq:restriction-map``) of edge ``e = (u, v)``, read-only.

        Parameters
        ----------
        e : int
            Index of the edge; negative indices count from the end.

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
        """Return F_{v->e} of edge ``e = (u, v)``, read-only.

        Parameters
        ----------
        e : int
            Index of the edge; negative indices count from the end.

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

    def with_maps(self, tail_maps: MapsLike, head_maps: MapsLike) -> Self:
        """Return a sheaf on the same graph and stalks with new maps; only the maps are validated.

        Parameters
        ----------
        tail_maps, head_maps : array_like or sequence
            As in the constructor, or flat like ``tail_data`` and ``head_data``. Shapes must match
            this sheaf.

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            Maps of other shapes, or entries that the constructor rejects.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]])
        >>> sc.laplacian(F.with_maps(2 * F.tail_data, 2 * F.head_data)).toarray()
        array([[ 4., -4.,  0.],
               [-4.,  8., -4.],
               [ 0., -4.,  4.]])
        """
        data, given = [], (("tail_maps", tail_maps), ("head_maps", head_maps))
        for (name, maps), (vertices, old, _) in zip(given, both_ends(self), strict=True):
            if isinstance(maps, np.ndarray) and maps.ndim == 1 and maps.dtype != object:
                flat = checks.scalar_array(name, maps).copy()
                if len(flat) != len(old):
                    raise ValueError(f"flat `{name}` must have length {len(old)}, got {len(flat)}")
            else:
                flat, rows, cols = flat_maps(name, maps, self.n_edges)
                _check_shapes(name, rows, cols, self.edge_dims, self.vertex_dims[vertices])
            data.append(flat)
        sheaf = sheaf_like(self, *data)
        sheaf._check_finite()
        # a coarse sheaf may exceed the range for user-supplied maps, so its own range is allowed
        low, high = checks.range_limits(sheaf.dtype)
        if self.dtype == sheaf.dtype and self.largest_entry > 0:
            low, high = min(low, self.largest_entry), max(high, self.largest_entry)
        if not low <= sheaf.largest_entry <= high:
            checks.check_range("tail_maps and head_maps", sheaf.largest_entry, sheaf.dtype)
        return sheaf

    def with_columns(self, maps: MapsLike) -> Self:
        """Return a sheaf on the same graph with new maps, one per column of its edge index.

        Columns are not paired again, which saves time if a model learns maps and changes them at
        each step. Sheaves made by :meth:`with_maps` and :meth:`with_labels` still know their
        columns; subsheaves, normalized sheaves, and sheaves that were saved and loaded do not. So
        make the sheaf with its columns first, and normalize that.

        Parameters
        ----------
        maps : array_like, shape (2 m, d_e, d_v), or sequence of 2 m 2-D arrays
            ``maps[k]`` is the map of column k of the ``edge_index``, with its original shape.

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            A sheaf that is not from :func:`from_edge_index`; maps of other shapes, or entries that
            the constructor rejects.

        Examples
        --------
        >>> import numpy as np
        >>> import sheafcoarsen as sc
        >>> F = sc.from_edge_index([[1, 0, 2, 1], [0, 1, 1, 2]], np.ones((4, 1, 1)))
        >>> G = F.with_columns(np.arange(1.0, 5.0).reshape(4, 1, 1))
        >>> sc.coboundary(G).toarray()
        array([[-2.,  1.,  0.],
               [ 0., -4.,  3.]])
        """
        if self._columns is None:
            raise ValueError(
                "`with_columns` requires a sheaf from from_edge_index(edge_index, maps), not a "
                "subsheaf of it or one that was loaded: for other sheaves use "
                "with_maps(tail_maps, head_maps), with maps in edge order"
            )
        columns = self._columns
        count = int(columns.max(initial=-1)) + 1
        flat, rows, cols = flat_maps(
            "maps", maps, count, "(2 m, d_e, d_v)", "column of `edge_index`"
        )
        edge_dims, dims = np.empty((2, count), np.int64)
        edge_dims[columns], dims[columns] = self.edge_dims, self.vertex_dims[self.edges.T]
        _check_shapes("maps", rows, cols, edge_dims, dims)
        starts, (bad, _) = ragged.offsets(rows * cols), scan(flat)
        if bad >= 0:
            k = int(np.searchsorted(starts, bad, side="right")) - 1
            raise ValueError(f"`maps[{k}]` must be finite, got {flat[bad]}")
        return self.with_maps(*(ragged.blocks(flat, starts, which) for which in columns))

    def with_labels(self, vertex_labels: Iterable[Hashable] | None) -> Self:
        """Return the sheaf with new vertex labels; the maps are shared, not copied.

        Parameters
        ----------
        vertex_labels : sequence of n hashable names, all different, or None
            In vertex order.

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            The number of names differs from n, a name is repeated, or a name is not hashable.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.CellularSheaf.constant([[0, 1]]).with_labels(["a", "b"]).vertex_labels
        ('a', 'b')
        """
        labels = None if vertex_labels is None else vertex_names(vertex_labels, self.n_vertices)
        sheaf = sheaf_like(self, self.tail_data, self.head_data)
        object.__setattr__(sheaf, "vertex_labels", labels)
        return sheaf

    def vertices_of(self, names: Sequence[Hashable]) -> np.ndarray:
        """Return the indices of vertices given by name, in the order of the names.

        Other functions accept vertices as indices, masks and, if the sheaf has names, sequences of
        names. There a sequence of integers alone holds indices; here integers are names. The names
        of a sheaf without labels are 0 .. n-1.

        Parameters
        ----------
        names : sequence of k names

        Returns
        -------
        ndarray of int64, shape (k,)
            Such that ``F.vertex_labels[indices[i]] == names[i]``.

        Raises
        ------
        ValueError, TypeError
            For anything that is not the name of a vertex.

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant(nx.Graph(["ab", "bc", "cd"]))
        >>> F.vertices_of(["d", "a"])
        array([3, 0])
        >>> F.subsheaf(["a", "b"]).edges.tolist()
        [[0, 1]]
        """
        known = range(self.n_vertices) if self.vertex_labels is None else self.vertex_labels
        return labels.named_vertices("names", names, known)

    def subsheaf(self, vertices: Vertices) -> Self:
        """Return the sheaf on the subgraph induced by some vertices, in the order of this sheaf.

        Edges to other vertices are left out, so it may have sections that do not extend to this
        sheaf.

        The order of ``vertices`` does not matter: vertex i of the result is
        ``np.sort(vertices)[i]``, and edges and vertex labels keep their order. With a boolean
        ``mask`` of the vertices, a cochain x restricts to ``x[np.repeat(mask, F.vertex_dims)]``.

        Parameters
        ----------
        vertices : array_like of int, or of bool and shape (n,), or sequence of names
            Their indices or names (:meth:`vertices_of`), each once, or a mask.

        Returns
        -------
        CellularSheaf

        Raises
        ------
        ValueError, TypeError
            Vertices out of range or repeated, a mask of another length, or anything but integers,
            names and a mask.

        Examples
        --------
        The largest component, its vertices, and a cochain restricted to them:

        >>> import numpy as np
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 4], [1, 2], [2, 3]])
        >>> labels = sc.components(F)
        >>> largest = labels == np.bincount(labels).argmax()
        >>> F.subsheaf(largest).edges.tolist(), np.flatnonzero(largest).tolist()
        ([[0, 1], [1, 2]], [1, 2, 3])
        >>> x = np.array([0.0, 10.0, 20.0, 30.0, 40.0])
        >>> x[np.repeat(largest, F.vertex_dims)]
        array([10., 20., 30.])
        """
        mask = labels.vertex_mask("vertices", vertices, self, once=True)
        kept = np.flatnonzero(mask[self.edges].all(axis=1))
        return self._part(np.flatnonzero(mask), kept, (np.cumsum(mask) - 1)[self.edges[kept]])

    def _part(self, vertices: np.ndarray, edges: np.ndarray, ends: np.ndarray) -> Self:
        """Return the sheaf on some vertices and edges; ``ends`` are positions in ``vertices``."""
        labels = self.vertex_labels
        return self._of_arrays(
            ends,
            self.vertex_dims[vertices],
            self.edge_dims[edges],
            ragged.blocks(self.tail_data, self.tail_offsets, edges),
            ragged.blocks(self.head_data, self.head_offsets, edges),
            None if labels is None else tuple(labels[v] for v in vertices.tolist()),
        )


def both_ends(F: Views) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]:
    """Return vertices, maps and offsets of maps, for the tails and for the heads of all edges."""
    tails, heads = F.edges.T
    return (tails, F.tail_data, F.tail_offsets), (heads, F.head_data, F.head_offsets)


def _check_shapes(
    name: str, rows: np.ndarray, cols: np.ndarray, edge_dims: np.ndarray, dims: np.ndarray
) -> None:
    """Raise an error for the first map whose shape is not (edge_dims[k], dims[k])."""
    if (k := checks.first_true((rows != edge_dims) | (cols != dims))) is not None:
        raise ValueError(
            f"`{name}[{k}]` must have shape {(int(edge_dims[k]), int(dims[k]))}, as in the sheaf "
            f"it replaces, got {(int(rows[k]), int(cols[k]))}"
        )


def sheaf_like(F: Sheaf, tail_data: np.ndarray, head_data: np.ndarray) -> Sheaf:
    """Return a sheaf with the graph, stalks and labels of ``F`` and new maps, without checks."""
    sheaf = F._of_arrays(F.edges, F.vertex_dims, F.edge_dims, tail_data, head_data, F.vertex_labels)
    object.__setattr__(sheaf, "_columns", F._columns)
    # copy what depends on shapes only: recomputing it takes as long as filling in maps
    for name in ("vertex_offsets", "edge_offsets", "tail_offsets", "head_offsets"):
        sheaf.__dict__[name] = getattr(F, name)
    return sheaf


def edge_subset(F: Sheaf, edges: np.ndarray, factors: np.ndarray | None = None) -> Sheaf:
    """Return the sheaf on all vertices and chosen edges, with maps multiplied by ``factors``."""
    part = F._part(np.arange(F.n_vertices), edges, F.edges[edges])
    if factors is None:
        return part
    scaled = (
        data * np.repeat(factors.astype(data.real.dtype), np.diff(starts))
        for _, data, starts in both_ends(part)
    )
    return sheaf_like(part, *scaled)


def unit_sheaf(F: Sheaf, unit: float | None = None) -> tuple[Sheaf, float]:
    """Return the sheaf in double precision with its maps divided by ``unit``, and ``unit``.

    By default it is the power of two just above the largest entry (1 if all are zero), so that
    entries are below 1 and the division is exact except for entries below 1e-308.
    """
    unit = power_of_two(F.largest_entry) if unit is None else unit
    double = np.result_type(F.dtype, np.float64)
    # divide as reals: numpy multiplies complex numbers by a reciprocal, which may overflow
    tail, head = (
        (data.astype(double, copy=False).view(np.float64) / unit).view(double)
        for data in (F.tail_data, F.head_data)
    )
    return sheaf_like(F, tail, head), unit
