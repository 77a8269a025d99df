"""The container: a cellular sheaf on a graph, as flat arrays."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from sheafcoarsen._kernels.arrays import SheafArrays, scan
from sheafcoarsen._support import (
    check_range,
    offsets,
    range_limits,
    read_only,
    scalar_array,
    tables,
)
from sheafcoarsen.sheaf.flat import flat_arrays
from sheafcoarsen.sheaf.from_graphs import FromGraphs
from sheafcoarsen.sheaf.graphs import edge_array, vertex_names
from sheafcoarsen.sheaf.maps import MapsLike, flat_maps, stalk_dims

Sheaf = TypeVar("Sheaf", bound="CellularSheaf")


@dataclass(frozen=True, eq=False, repr=False, init=False)
class CellularSheaf(FromGraphs):
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
    )  # flat: map e is tail_data[tail_offsets[e]:tail_offsets[e + 1]], row-major
    head_data: np.ndarray  # the same for the heads
    vertex_labels: tuple | None  # the graph's own node names in vertex order, or None

    def __init__(
        self,
        edges: npt.ArrayLike,
        tail_maps: MapsLike,
        head_maps: MapsLike,
        vertex_dims: npt.ArrayLike | None = None,
    ) -> None:
        edges = edge_array("edges", edges)
        tail, tail_rows, tail_cols = flat_maps("tail_maps", tail_maps, len(edges))
        head, head_rows, head_cols = flat_maps("head_maps", head_maps, len(edges))
        differ = np.flatnonzero(tail_rows != head_rows)
        if differ.size:
            e = int(differ[0])
            raise ValueError(
                f"`tail_maps[{e}]` has {tail_rows[e]} rows and `head_maps[{e}]` has "
                f"{head_rows[e]}; both must have the dimension of the edge's stalk"
            )
        dims = stalk_dims(edges, tail_cols, head_cols, vertex_dims)
        self._fill(edges, dims, tail_rows, tail, head, None)
        self._check_maps()

    def _fill(
        self,
        edges: np.ndarray,
        vertex_dims: np.ndarray,
        edge_dims: np.ndarray,
        tail_data: np.ndarray,
        head_data: np.ndarray,
        vertex_labels: tuple | None,
    ) -> None:
        """Take ownership of consistent arrays; only `__init__` and `_of_arrays` call this."""
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
    def _of_arrays(
        cls,
        edges: np.ndarray,
        vertex_dims: np.ndarray,
        edge_dims: np.ndarray,
        tail_data: np.ndarray,
        head_data: np.ndarray,
        vertex_labels: tuple | None = None,
    ) -> Self:
        sheaf = object.__new__(cls)
        sheaf._fill(edges, vertex_dims, edge_dims, tail_data, head_data, vertex_labels)
        return sheaf

    @classmethod
    def from_flat(
        cls,
        edges: npt.ArrayLike,
        tail_data: npt.ArrayLike,
        head_data: npt.ArrayLike,
        vertex_dims: npt.ArrayLike,
        edge_dims: npt.ArrayLike,
    ) -> Self:
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
        sheaf = cls._of_arrays(*flat_arrays(edges, tail_data, head_data, vertex_dims, edge_dims))
        sheaf._check_maps()
        return sheaf

    @cached_property
    def _scans(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """Of tails and heads: first entry that is not finite (-1: none), largest modulus."""
        return scan(self.tail_data), scan(self.head_data)

    @cached_property
    def largest_entry(self) -> float:
        """Largest modulus of a map entry, by which norms are scaled."""
        return max(size for _, size in self._scans)

    def _check_finite(self) -> None:
        """Refuse an entry that is not finite, and name its edge."""
        for name, (bad, _) in zip(("tail_maps", "head_maps"), self._scans, strict=True):
            if bad >= 0:
                tails = name == "tail_maps"
                data = self.tail_data if tails else self.head_data
                starts = self.tail_offsets if tails else self.head_offsets
                e = int(np.searchsorted(starts, bad, side="right")) - 1
                u, v = self.edges[e].tolist()
                raise ValueError(f"`{name}[{e}]` (edge {u} -> {v}) must be finite, got {data[bad]}")

    def _check_maps(self) -> None:
        self._check_finite()
        check_range("tail_maps and head_maps", self.largest_entry, self.dtype)

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
        """(d_e, d_v) where all edge stalks have one dimension, and all vertex stalks; else None."""
        if not len(self.edge_dims) or (self.edge_dims != self.edge_dims[0]).any():
            return None
        if (self.vertex_dims != self.vertex_dims[0]).any():
            return None
        return int(self.edge_dims[0]), int(self.vertex_dims[0])

    @cached_property
    def arrays(self) -> SheafArrays:
        """What kernels take."""
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

    def _map(self, e: int, data: np.ndarray, starts: np.ndarray, end: int) -> np.ndarray:
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
            f"CellularSheaf(n_vertices={self.n_vertices}, n_edges={self.n_edges}, "
            f"dim_c0={self.dim_c0}, dim_c1={self.dim_c1}, dtype={self.dtype})"
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

    def with_maps(self, tail_maps: MapsLike, head_maps: MapsLike) -> Self:
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
        sheaf = sheaf_like(
            self,
            self._replacement("tail_maps", tail_maps, 0, len(self.tail_data)),
            self._replacement("head_maps", head_maps, 1, len(self.head_data)),
        )
        sheaf._check_finite()
        # a coarse sheaf may be beyond the limits for a caller's own maps, and keeps its own range
        low, high = range_limits(sheaf.dtype)
        if self.dtype == sheaf.dtype and self.largest_entry > 0:
            low, high = min(low, self.largest_entry), max(high, self.largest_entry)
        if sheaf.largest_entry > 0 and not low <= sheaf.largest_entry <= high:
            check_range("tail_maps and head_maps", sheaf.largest_entry, sheaf.dtype)
        return sheaf

    def _replacement(self, name: str, maps: MapsLike, end: int, size: int) -> np.ndarray:
        """Return new maps for one end as flat data of our own; their shapes are checked."""
        if isinstance(maps, np.ndarray) and maps.ndim == 1 and maps.dtype != object:
            flat = scalar_array(name, maps).copy()
            if len(flat) != size:
                raise ValueError(f"flat `{name}` must have length {size}, got {len(flat)}")
            return flat
        flat, rows, cols = flat_maps(name, maps, self.n_edges)
        wanted = self.vertex_dims[self.edges[:, end]]
        differ = np.flatnonzero((rows != self.edge_dims) | (cols != wanted))
        if differ.size:
            e = int(differ[0])
            raise ValueError(
                f"`{name}[{e}]` must have shape {(int(self.edge_dims[e]), int(wanted[e]))}, as in "
                f"the sheaf it replaces, got {(int(rows[e]), int(cols[e]))}"
            )
        return flat

    def with_labels(self, vertex_labels: Iterable[Hashable] | None) -> Self:
        """Return the same sheaf with names for its vertices; its maps are shared, not copied.

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
            Another number of names than vertices, a name used twice, or one that cannot be hashed.

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


def trusted_sheaf(
    edges: np.ndarray,
    vertex_dims: np.ndarray,
    edge_dims: np.ndarray,
    tail_data: np.ndarray,
    head_data: np.ndarray,
    vertex_labels: tuple | None = None,
) -> CellularSheaf:
    """Build from consistent arrays that belong to us: no check, no copy."""
    return CellularSheaf._of_arrays(
        edges, vertex_dims, edge_dims, tail_data, head_data, vertex_labels
    )


def sheaf_like(F: Sheaf, tail_data: np.ndarray, head_data: np.ndarray) -> Sheaf:
    """Build on the graph, stalks and labels of ``F`` from flat maps of our own, without a check."""
    sheaf = F._of_arrays(F.edges, F.vertex_dims, F.edge_dims, tail_data, head_data, F.vertex_labels)
    # shapes alone decide these, and to compute them takes as long as to fill in maps again
    for name in ("vertex_offsets", "edge_offsets", "tail_offsets", "head_offsets"):
        sheaf.__dict__[name] = getattr(F, name)
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
