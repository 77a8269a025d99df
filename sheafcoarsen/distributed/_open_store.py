"""Stored sheaves and partitions: maps are read, and operators applied, part by part."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
from scipy.sparse.linalg import LinearOperator

from sheafcoarsen import operators
from sheafcoarsen._kernels.arrays import scan
from sheafcoarsen._support import ReadOnly, checks, labels, ragged, tables
from sheafcoarsen.distributed.location import Place, StoreError, place_of
from sheafcoarsen.distributed.schema import REMEDY, Root, header_of, read_array
from sheafcoarsen.io import reading
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf

ENDS: tuple[Literal["tail", "head"], ...] = ("tail", "head")


class Store(ReadOnly):
    """Base class of stored objects: a header, and arrays that are read on request."""

    def __init__(self, place: Place) -> None:
        self.place, self.url, self.header = place, place.url, header_of(place)
        self.root = Root(place, self.header.id, self.header.version)
        self.array = partial(read_array, self.root)

    def numbers(self, name: str, below: int, shape: tuple[int | None, ...] = (None,)) -> np.ndarray:
        """Read an array of integers, and check that they are at least 0 and less than ``below``."""
        values = self.array(name, None, shape)
        if values.size and not 0 <= values.min() <= values.max() < below:
            bad = np.flatnonzero((values < 0) | (values >= below))[0]
            raise StoreError(
                f"{self.url}: the array {name} holds {values.reshape(-1)[bad]} at index {bad}, "
                f"outside 0 .. {below - 1}"
            )
        return values

    def read_partition(self, n_vertices: int, n_clusters: int) -> Partition:
        """Read the partition from the array ``labels``."""
        labels = self.numbers("labels", n_clusters, (n_vertices,))
        with reading(self.url, StoreError):
            P = Partition(labels)
        if P.n_clusters != n_clusters:
            raise StoreError(
                f"{self.url}: the array labels must have {n_clusters} clusters, got {P.n_clusters}"
            )
        return P


class SheafStore(Store):
    """Stored sheaf: holds its sizes, and reads the topology on request and maps part by part.

    Returned by :func:`open_store`, :func:`to_store` and :func:`write_store`; also the coarse sheaf
    of a stored coarsening. Methods raise a `StoreError` if an array or a chunk, which the message
    names, is missing, damaged or inconsistent.

    Attributes
    ----------
    url : str
    n_vertices, n_edges, dim_c0, dim_c1 : int
    dtype : dtype
        Scalar type of the maps.
    n_bytes : int
        Bytes of all maps.
    parts : list of str
        Names of the parts, in stored order.
    largest_entry : float
        Largest absolute value of a map entry.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> F = sc.CellularSheaf.random(nx.grid_2d_graph(6, 6), 2, 3, seed=3)
    >>> src = dist.to_store("memory://grid", F, part_bytes=2000)
    >>> src
    SheafStore('memory://grid': 36 vertices, 60 edges, float64, 5.76 kB in 3 parts)
    >>> edges, vertex_dims, edge_dims = src.topology()
    >>> tail, head = src.maps(0)
    >>> len(edges), tail.shape, bool((src.load().tail_data == F.tail_data).all())
    (60, (120,), True)
    """

    def __init__(self, place: Place, unit: float = 1.0) -> None:
        super().__init__(place)
        header, self.unit = self.header, unit
        if header.kind not in ("sheaf", "coarsening"):
            raise StoreError(f"{place.url}: holds a {header.kind}, not a sheaf")
        self.parts, self.dtype = header.parts, np.dtype(header.dtype).newbyteorder("=")
        self.n_vertices, self.n_edges = header.n_vertices, header.n_edges
        self.dim_c0, self.dim_c1 = header.dim_c0, header.dim_c1
        self.n_bytes, self.largest_entry = header.n_bytes, float(header.largest_entry)

    @cached_property
    def part_ptr(self) -> np.ndarray:
        """Offsets of the parts among the stored edges, shape (P + 1,)."""
        starts = self.numbers("part_ptr", self.n_edges + 1, (len(self.parts) + 1,))
        if starts[0] or starts[-1] != self.n_edges or (starts[1:] < starts[:-1]).any():
            raise StoreError(
                f"{self.url}: the array part_ptr must ascend from 0 to {self.n_edges} edges"
            )
        return ragged.read_only(starts)

    @cached_property
    def edge_numbers(self) -> np.ndarray | None:
        """Index in the sheaf of each stored edge; None if edges are stored in the sheaf's order."""
        if not self.header.permuted:
            return None
        found = self.numbers("edge_numbers", self.n_edges, (self.n_edges,))
        if not np.bincount(found, minlength=self.n_edges).all():
            raise StoreError(f"{self.url}: the array edge_numbers holds an edge twice")
        return ragged.read_only(found)

    def edges_of(self, p: int) -> np.ndarray:
        """Return the indices of the edges in part ``p``, ascending."""
        part = checks.item_index("p", p, "part", len(self.parts))
        lo, hi = self.part_ptr[part : part + 2]
        return np.arange(lo, hi) if self.edge_numbers is None else self.edge_numbers[lo:hi]

    def topology(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Read the edges, shape (m, 2), and the dimensions of vertex and edge stalks.

        Returns
        -------
        edges, vertex_dims, edge_dims : ndarray of int
        """
        edges = self.numbers("edges", self.n_vertices, (self.n_edges, 2))
        vertex_dims = self.vertex_dims()
        edge_dims = self.numbers("edge_dims", self.dim_c1 + 1, (self.n_edges,))
        n_bytes = map_bytes(edges, vertex_dims, edge_dims, self.dtype)
        sizes = (int(edge_dims.sum(dtype=np.int64)), n_bytes)
        if sizes != (said := (self.dim_c1, self.n_bytes)):
            raise StoreError(
                f"{self.url}: `dim_c1` and `n_bytes` are {said} in zarr.json, but {sizes} in its "
                f"arrays: {REMEDY}"
            )
        return edges, vertex_dims, edge_dims

    def vertex_dims(self) -> np.ndarray:
        """Read the dimensions of the vertex stalks, shape (n,)."""
        dims = self.numbers("vertex_dims", self.dim_c0 + 1, (self.n_vertices,))
        if (total := int(dims.sum(dtype=np.int64))) != self.dim_c0:
            raise StoreError(
                f"{self.url}: `dim_c0` is {self.dim_c0} in zarr.json, but {total} in its arrays: "
                f"{REMEDY}"
            )
        return dims

    def maps(self, p: int) -> tuple[np.ndarray, np.ndarray]:
        """Read the tail maps and head maps of the edges of part ``p``.

        Parameters
        ----------
        p : int
            Index of the part.

        Returns
        -------
        tail, head : ndarray
            Flat maps in the order of ``edges_of(p)``, each row-major.
        """
        return self.maps_at(p, "tail"), self.maps_at(p, "head")

    def maps_at(
        self, p: int, end: Literal["tail", "head"], entries: int | None = None
    ) -> np.ndarray:
        """Read the maps at one end of part ``p``; if ``entries`` is passed, check their size."""
        part = checks.item_index("p", p, "part", len(self.parts))
        name = f"parts/{self.parts[part]}/{end}"
        maps = self.array(name, self.dtype, what=f"part {part}")
        check_entries(f"{self.url}: part {part}: the {end} maps", maps)
        if entries not in (None, len(maps)):
            raise StoreError(
                f"{self.url}: part {part} holds {len(maps)} entries of {end} maps, but its "
                f"dimensions require {entries}"
            )
        if self.unit == 1:
            return maps
        # divide as real numbers: numpy multiplies complex ones by a reciprocal, which may overflow
        real = np.zeros(0, self.dtype).real.dtype
        return (maps.view(real) / real.type(self.unit)).view(self.dtype)

    def load(self) -> CellularSheaf:
        """Load the full sheaf into memory.

        Returns
        -------
        CellularSheaf
        """
        edges, vertex_dims, edge_dims = (
            array.astype(np.int64, copy=False) for array in self.topology()
        )
        data = []
        for k, end in enumerate(ENDS):
            starts = ragged.offsets(edge_dims * vertex_dims[edges[:, k]])
            flat = np.empty(int(starts[-1]), self.dtype)
            for p in range(len(self.parts)):
                entries = ragged.range_of_blocks(starts, self.edges_of(p))
                flat[entries] = self.maps_at(p, end, len(entries))
            data.append(ragged.read_only(flat))
        return trusted_sheaf(edges, vertex_dims, edge_dims, data[0], data[1], self.vertex_labels)

    @property
    def vertex_labels(self) -> tuple[Hashable, ...] | None:
        """The names of the vertices, or None if they have none."""
        if not self.header.vertex_labels:
            return None
        with reading(self.url, StoreError):
            return labels.decode_labels(
                self.array("vertex_labels").astype(np.uint8), self.n_vertices
            )

    def __repr__(self) -> str:
        parts = tables.counted(len(self.parts), "part")
        return (
            f"SheafStore({self.url!r}: {self.n_vertices} vertices, {self.n_edges} edges, "
            f"{self.dtype}, {amount(self.n_bytes)} in {parts})"
        )


class PartitionStore(Store):
    """Stored partition, returned by :func:`to_store` and :func:`open_store`.

    :func:`coarsen` accepts it in place of a partition. `load` raises a `StoreError` if a chunk
    is missing or damaged.

    Attributes
    ----------
    url : str
    n_vertices, n_clusters : int

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> dist.to_store("memory://labels", sc.Partition([0, 1, 1]))
    PartitionStore('memory://labels': 3 vertices in 2 clusters)
    >>> dist.open_store("memory://labels").load().labels
    array([0, 1, 1])
    """

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.n_vertices, self.n_clusters = self.header.n_vertices, self.header.n_clusters

    def load(self) -> Partition:
        """Load the partition into memory.

        Returns
        -------
        Partition
        """
        return self.read_partition(self.n_vertices, self.n_clusters)

    def __repr__(self) -> str:
        return (
            f"PartitionStore({self.url!r}: {self.n_vertices} vertices in "
            f"{self.n_clusters} clusters)"
        )


def map_bytes(
    edges: np.ndarray, vertex_dims: np.ndarray, edge_dims: np.ndarray, dtype: np.dtype
) -> int:
    """Return the number of bytes that all maps occupy."""
    ends = (vertex_dims[edges[:, end]] for end in (0, 1))
    # sum as floats, because integers from a damaged store might overflow
    entries = sum(np.einsum("i,i", edge_dims, dims, dtype=float) for dims in ends)
    return int(entries) * dtype.itemsize


def check_store(store: Any, name: str) -> SheafStore:
    """Check that a stored sheaf was not rewritten since it was opened, and return it."""
    if not isinstance(store, SheafStore):
        raise TypeError(
            f"`{name}` must be a SheafStore, got {type(store).__name__}: open one with "
            f"open_store(url), or write one with to_store(url, F)"
        )
    if header_of(store.place).id != store.header.id:
        raise StoreError(
            f"`{name}`: {store.url} has been written again since it was opened: open it again "
            f"with open_store"
        )
    return store


def check_entries(name: str, values: np.ndarray) -> None:
    """Raise an error if stored entries are not finite, or their squares overflow."""
    bad, largest = scan(values)
    if bad >= 0:
        raise StoreError(f"{name} must be finite, got {values[bad]} at index {bad}")
    try:
        checks.check_squares(name, largest, values.dtype)
    except ValueError as error:
        raise StoreError(str(error)) from None


def amount(size: float) -> str:
    """Return a number of bytes as text with a unit."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= 0.9995 * unit:
            return f"{size / unit:{'.3g' if size < 999.5e12 else '.0f'}} {name}"
    return f"{size:.0f} bytes"


def open_store(url: object, **storage_options: Any) -> SheafStore | PartitionStore:
    """Open a stored sheaf or partition, reading only its sizes.

    For a stored coarsening, it opens only the coarse sheaf; see :func:`open_coarsening`.

    Parameters
    ----------
    url : path or URL
        A folder, or any fsspec URL, such as "s3://bucket/name".
    **storage_options
        Options of the file system; see fsspec.

    Returns
    -------
    SheafStore or PartitionStore

    Raises
    ------
    StoreError
        If there is no store, it is unfinished, or its version is not supported.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> _ = dist.to_store("memory://edge", sc.CellularSheaf.constant([[0, 1]]))
    >>> dist.open_store("memory://edge").load()
    CellularSheaf(n_vertices=2, n_edges=1, dim_c0=2, dim_c1=1, dtype=float64)
    """
    place = place_of(url, storage_options)
    if header_of(place).kind == "partition":
        return PartitionStore(place)
    return SheafStore(place)


# ---------------------------------------------------------------- operators


def parts_of(store: SheafStore) -> Iterator[tuple[CellularSheaf, np.ndarray, np.ndarray]]:
    """Yield each part as a sheaf, the vertices at the ends of its edges, and their rows in C^0."""
    edges, vertex_dims, edge_dims = store.topology()
    starts = ragged.offsets(vertex_dims)
    for p in range(len(store.parts)):
        numbers = store.edges_of(p)
        rows = edge_dims[numbers].astype(np.int64)
        sizes = rows @ vertex_dims[edges[numbers]]
        tail, head = (
            store.maps_at(p, end, int(size)) for end, size in zip(ENDS, sizes, strict=True)
        )
        vertices, ends = np.unique(edges[numbers], return_inverse=True)
        dims = vertex_dims[vertices].astype(np.int64)
        sheaf = trusted_sheaf(ends.reshape(-1, 2), dims, rows, tail, head)
        yield sheaf, vertices, ragged.range_of_blocks(starts, vertices)


def laplacian_operator(store: SheafStore) -> LinearOperator:
    """Return the operator x -> delta* (delta x) of a stored sheaf, applied part by part.

    It serves for Rayleigh quotients of lifted modes, and for scipy's iterative methods. Every
    application reads the store once, so apply it to many columns at a time.

    Parameters
    ----------
    store : SheafStore

    Returns
    -------
    LinearOperator, shape (dim_c0, dim_c0)

    Raises
    ------
    TypeError
        If ``store`` is not a SheafStore.
    StoreError
        If the store was rewritten; when the operator is applied, if a chunk is missing or damaged.

    Examples
    --------
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]])
    >>> A = dist.laplacian_operator(dist.to_store("memory://operator", F))
    >>> A @ np.array([1.0, 0.0, 0.0])
    array([ 1., -1.,  0.])
    """
    check_store(store, "store")

    def apply(x: np.ndarray) -> np.ndarray:
        out = np.zeros(x.shape, np.result_type(x, store.dtype))
        for F, _, rows in parts_of(store):
            out[rows] += operators.laplacian_operator(F) @ x[rows]
        return out

    shape = (store.dim_c0, store.dim_c0)
    return LinearOperator(shape, apply, apply, apply, store.dtype, apply)
