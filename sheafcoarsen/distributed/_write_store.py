"""Writes a store: parts as they come, the topology after them, and last the attributes."""

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._kernels.arrays import scan
from sheafcoarsen._support import (
    check_range,
    dimensions,
    integer_array,
    offsets,
    range_of_blocks,
    real_number,
)
from sheafcoarsen.distributed._open_store import SheafStore, map_bytes
from sheafcoarsen.distributed.arrays import Root, write_array
from sheafcoarsen.distributed.header import StoreHeader, is_unfinished
from sheafcoarsen.distributed.location import Place, failures, optional, place_of
from sheafcoarsen.modes import LocalModes
from sheafcoarsen.sheaf import edge_arrays

PART_BYTES = 32e6
"""Bytes of maps in a part, unless a caller says otherwise."""

Piece = Sequence[npt.ArrayLike]
"""Edges, edge_dims, tail_data and head_data of some edges."""


def index_type(count: int) -> type:
    """Return the smallest of int32 and int64 that holds ``count``."""
    return np.int32 if count < 2**31 else np.int64


def new_group(place: Place) -> None:
    """Make a Zarr group."""
    (place / "zarr.json").put(b'{"zarr_format": 3, "node_type": "group", "attributes": {}}')


def write_part(root: Root, name: str, tail: np.ndarray, head: np.ndarray) -> None:
    """Write the maps of a part, each end as one chunk."""
    new_group(root.place / f"parts/{name}")
    write_array(root, f"parts/{name}/tail", tail, packed=False)
    write_array(root, f"parts/{name}/head", head, packed=False)


def seal(
    root: Root,
    topology: tuple[np.ndarray, np.ndarray, np.ndarray],
    part_ptr: np.ndarray,
    edge_numbers: np.ndarray | None,
    dtype: np.dtype,
    **attributes: Any,
) -> SheafStore:
    """Write the topology, and last the attributes without which nothing counts as a store."""
    edges, vertex_dims, edge_dims = topology
    new_group(root.place / "parts")
    dims = index_type(int(max(vertex_dims.max(initial=0), edge_dims.max(initial=0))))
    write_array(root, "edges", edges.astype(index_type(len(vertex_dims)), copy=False))
    write_array(root, "vertex_dims", vertex_dims.astype(dims, copy=False))
    write_array(root, "edge_dims", edge_dims.astype(dims, copy=False))
    write_array(root, "part_ptr", part_ptr)
    if edge_numbers is not None:
        write_array(root, "edge_numbers", edge_numbers.astype(index_type(len(edges)), copy=False))
    mark(
        root,
        n_vertices=len(vertex_dims),
        n_edges=len(edges),
        dim_c0=int(vertex_dims.sum(dtype=np.int64)),
        dim_c1=int(edge_dims.sum(dtype=np.int64)),
        n_bytes=map_bytes(edges, vertex_dims, edge_dims, dtype),
        dtype=dtype.str,
        permuted=edge_numbers is not None,
        **attributes,
    )
    return SheafStore(root.place)


def mark(root: Root, **attributes: Any) -> None:
    """Write the attributes that make a group a store."""
    place = root.place
    with failures(place, "opened"):
        group = optional("zarr").open_group(
            place.url, mode="a", zarr_format=3, storage_options=place.options or None
        )
    group.attrs.update(StoreHeader(id=root.id, **attributes).attributes)


def free_root(url: object, options: dict[str, Any]) -> Root:
    """Return the root of a new store, where nothing is stored yet."""
    place = place_of(url, options)
    if is_unfinished(place):
        raise FileExistsError(
            f"{place.url} holds a store whose writing did not end: remove it and write it again, "
            f"or give another path"
        )
    if place.names() or (place.local_path is not None and os.path.isfile(place.local_path)):
        raise FileExistsError(f"{place.url} exists: remove it, or give another path")
    return Root(place)


def write_basis(
    root: Root,
    name: str,
    vertices: np.ndarray,
    clusters: np.ndarray,
    data: np.ndarray,
    modes: LocalModes | None,
    own: np.ndarray,
) -> None:
    """Write rows of R, vertex after vertex, and the spectral data of their clusters.

    Those are the clusters ``own`` of the modes and ``clusters`` of the whole.
    """
    new_group(root.place / f"basis/{name}")
    arrays = {"vertices": vertices, "clusters": clusters, "data": data}
    if modes is not None:
        arrays["scores"] = modes.scores[range_of_blocks(modes.rank_offsets, own)]
        arrays["next_eigenvalues"] = modes.next_eigenvalues[own]
        arrays["operator_norms"] = modes.operator_norms[own]
        arrays["tied"] = modes.tied[own].astype(np.int8)
    for array, values in arrays.items():
        write_array(root, f"basis/{name}/{array}", values, packed=values.dtype.kind == "i")


class Writer:
    """Writes parts one after the other and remembers their topology."""

    def __init__(self, root: Root, vertex_dims: np.ndarray, part_bytes: float) -> None:
        part_bytes = real_number("part_bytes", part_bytes)
        if not part_bytes >= 1:
            raise ValueError(f"`part_bytes` must be at least 1, got {part_bytes:g}")
        self.root, self.vertex_dims, self.part_bytes = root, vertex_dims, part_bytes
        self.edges: list[np.ndarray] = []
        self.edge_dims: list[np.ndarray] = []
        self.names: list[str] = []
        self.counts: list[int] = []
        self.dtype: np.dtype | None = None
        self.largest = 0.0

    def add(self, number: int, piece: Piece) -> None:
        """Check a piece and write it as one part or more."""
        name = f"`pieces[{number}]`"
        try:
            edges, edge_dims, tail, head = piece
        except (TypeError, ValueError):
            raise TypeError(
                f"{name} must be (edges, edge_dims, tail_data, head_data), "
                f"got {type(piece).__name__}"
            ) from None
        try:
            edges, edge_dims, tail, head = edge_arrays(
                edges, tail, head, self.vertex_dims, edge_dims
            )
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: {error}") from None
        dtype = np.result_type(tail, head)
        if self.dtype is None:
            self.dtype = dtype
        if dtype != self.dtype:
            raise TypeError(
                f"{name} holds {dtype}, but earlier ones hold {self.dtype}: a store has one "
                f"scalar type"
            )
        data = [np.ascontiguousarray(values, dtype=dtype) for values in (tail, head)]
        starts = [offsets(edge_dims * self.vertex_dims[edges[:, end]]) for end in (0, 1)]
        for values, where, end in zip(data, starts, ("tail", "head"), strict=True):
            bad, largest = scan(values)
            if bad >= 0:
                e = int(np.searchsorted(where, bad, side="right")) - 1
                raise ValueError(
                    f"{name}: the {end} map of its edge {e} must be finite, got {values[bad]}"
                )
            self.largest = max(self.largest, largest)
        weight = (starts[0] + starts[1]) * dtype.itemsize
        total = int(weight[-1])
        n = max(1, min(len(edges), -(-total // int(min(self.part_bytes, max(total, 1))))))
        inner = np.searchsorted(weight[1:], total * np.arange(1, n) / n)
        cuts = np.unique([0, *inner.tolist(), len(edges)]).tolist()
        for lo, hi in itertools.pairwise(cuts):
            self.names.append(f"{len(self.names):06d}")
            maps = (values[at[lo] : at[hi]] for values, at in zip(data, starts, strict=True))
            write_part(self.root, self.names[-1], *maps)
            self.counts.append(hi - lo)
        self.edges.append(edges.astype(index_type(len(self.vertex_dims))))
        self.edge_dims.append(edge_dims.astype(index_type(int(edge_dims.max(initial=0)))))

    def finished(self, **attributes: Any) -> SheafStore:
        """Write the topology and the attributes."""
        dtype = np.dtype(np.float64) if self.dtype is None else self.dtype
        check_range("the maps of all pieces", self.largest, dtype)
        edges = np.concatenate([*self.edges, np.zeros((0, 2), np.int32)])
        edge_dims = np.concatenate([*self.edge_dims, np.zeros(0, np.int32)])
        return seal(
            self.root,
            (edges, self.vertex_dims, edge_dims),
            offsets(self.counts),
            None,
            dtype=dtype,
            **{"kind": "sheaf", **attributes},
            parts=self.names,
            largest_entry=self.largest,
        )


def write_store(
    url: object,
    vertex_dims: npt.ArrayLike,
    pieces: Iterable[Piece],
    part_bytes: float = PART_BYTES,
    **storage_options: Any,
) -> SheafStore:
    """Write a sheaf that comes in pieces, so that its maps never need to be in memory together.

    Parameters
    ----------
    url : path or address
        A folder that is not there yet, or any address that fsspec knows.
    vertex_dims : array_like of int, shape (n,)
    pieces : iterable of (edges, edge_dims, tail_data, head_data)
        Some edges each, as :meth:`CellularSheaf.from_flat` takes them: edges of shape (k, 2), one
        integer or k of them, and flat maps. Edges are numbered in the order in which they come.
    part_bytes : float
        Bytes of maps in a part, which tasks read whole; a larger piece becomes several parts.
    **storage_options
        What the file system must be told; see fsspec.

    Returns
    -------
    SheafStore

    Raises
    ------
    FileExistsError
        Where something stands already.
    ValueError, TypeError
        A piece whose arrays do not fit, of another scalar type than the first, or with entries that
        are not finite; the piece is named.

    Examples
    --------
    A path whose edges come two at a time:

    >>> import numpy as np
    >>> import sheafcoarsen.distributed as dist
    >>> def pieces():
    ...     for k in range(0, 6, 2):
    ...         edges = np.array([[k, k + 1], [k + 1, k + 2]])
    ...         yield edges, 1, np.ones(2), np.ones(2)
    >>> dist.write_store("memory://path", np.ones(7, int), pieces())
    SheafStore('memory://path': 7 vertices, 6 edges, float64, 96 bytes in 3 parts)
    """
    dims = integer_array("vertex_dims", vertex_dims)
    dims = dimensions("vertex_dims", dims, len(dims), "vertex")
    if not isinstance(pieces, Iterable):
        raise TypeError(
            f"`pieces` must be an iterable of (edges, edge_dims, tail_data, head_data), "
            f"got {type(pieces).__name__}"
        )
    writer = Writer(free_root(url, storage_options), dims, part_bytes)
    for number, piece in enumerate(pieces):
        writer.add(number, piece)
    return writer.finished()
