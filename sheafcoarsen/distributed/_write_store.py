"""Writers of stores: first the parts, then the topology, and last the attributes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import checks, labels, ragged
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.distributed._open_coarsening import StoredCoarsening
from sheafcoarsen.distributed._open_store import PartitionStore, SheafStore, map_bytes
from sheafcoarsen.distributed.location import Place, place_of
from sheafcoarsen.distributed.schema import Root, is_unfinished, mark, write_array
from sheafcoarsen.io import SETTINGS
from sheafcoarsen.modes import LocalModes
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf, checked_sheaf

PART_BYTES = 32e6
"""Default size in bytes of the maps in a part."""

Piece = Sequence[npt.ArrayLike]
"""Arrays (edges, edge_dims, tail_data, head_data) that describe some edges of a sheaf."""


def new_group(place: Place) -> None:
    """Create a Zarr group."""
    (place / "zarr.json").put(b'{"zarr_format": 3, "node_type": "group", "attributes": {}}')


def write_part(root: Root, name: str, tail: np.ndarray, head: np.ndarray) -> None:
    """Write the maps of a part: one chunk for the tail maps, one for the head maps."""
    new_group(root.place / f"parts/{name}")
    write_array(root, f"parts/{name}/tail", tail)
    write_array(root, f"parts/{name}/head", head)


def seal(
    root: Root,
    topology: tuple[np.ndarray, np.ndarray, np.ndarray],
    parts: dict[str, int],
    edge_numbers: np.ndarray | None,
    dtype: np.dtype,
    names: np.ndarray | None,
    **attributes: Any,
) -> SheafStore:
    """Write the topology, and then the attributes, which mark the store as complete.

    ``parts`` holds the number of edges of each part, ``names`` the encoded names of the vertices.
    """
    if names is not None:
        write_array(root, "vertex_labels", names.astype(np.int16))
    edges, vertex_dims, edge_dims = topology
    new_group(root.place / "parts")
    dims = ragged.index_dtype(int(max(vertex_dims.max(initial=0), edge_dims.max(initial=0))))
    write_array(root, "edges", edges.astype(ragged.index_dtype(len(vertex_dims)), copy=False))
    write_array(root, "vertex_dims", vertex_dims.astype(dims, copy=False))
    write_array(root, "edge_dims", edge_dims.astype(dims, copy=False))
    write_array(root, "part_ptr", ragged.offsets(list(parts.values())))
    if edge_numbers is not None:
        write_array(
            root, "edge_numbers", edge_numbers.astype(ragged.index_dtype(len(edges)), copy=False)
        )
    mark(
        root,
        n_vertices=len(vertex_dims),
        n_edges=len(edges),
        dim_c0=int(vertex_dims.sum(dtype=np.int64)),
        dim_c1=int(edge_dims.sum(dtype=np.int64)),
        n_bytes=map_bytes(edges, vertex_dims, edge_dims, dtype),
        dtype=dtype.str,
        parts=list(parts),
        permuted=edge_numbers is not None,
        vertex_labels=names is not None,
        **attributes,
    )
    return SheafStore(root.place)


def free_root(url: object, options: dict[str, Any]) -> Root:
    """Return the root of a new store; raise an error if anything exists at its location."""
    place = place_of(url, options)
    if is_unfinished(place):
        raise FileExistsError(
            f"{place.url} holds a store whose writing did not end: remove it and write it again, "
            f"or pass another path"
        )
    if place.names() or (place.local_path is not None and os.path.isfile(place.local_path)):
        raise FileExistsError(f"{place.url} exists: remove it, or pass another path")
    return Root(place)


def write_basis(
    root: Root,
    name: str,
    clusters: np.ndarray,
    data: np.ndarray,
    modes: LocalModes | None,
    own: np.ndarray,
) -> None:
    """Write R and the spectra on ``clusters``, which have the indices ``own`` in ``modes``."""
    new_group(root.place / f"basis/{name}")
    arrays = {"clusters": clusters, "data": data}
    if modes is not None:
        arrays["scores"] = modes.scores[ragged.range_of_blocks(modes.rank_offsets, own)]
        arrays["next_eigenvalues"] = modes.next_eigenvalues[own]
        arrays["operator_norms"] = modes.operator_norms[own]
        arrays["tied"] = modes.tied[own].astype(np.int8)
    for array, values in arrays.items():
        write_array(root, f"basis/{name}/{array}", values)


def write_pieces(
    root: Root,
    vertex_dims: np.ndarray,
    pieces: Iterable[CellularSheaf],
    part_bytes: float,
    names: np.ndarray | None = None,
    limited: bool = False,
    **attributes: Any,
) -> SheafStore:
    """Write each piece, a sheaf on all vertices, as parts, and then topology and attributes.

    The largest entry must be in the range of user-supplied maps if ``limited``; that of a coarse
    sheaf may be outside.
    """
    part_bytes = checks.real_number("part_bytes", part_bytes)
    if not part_bytes >= 1:
        raise ValueError(f"`part_bytes` must be at least 1, got {part_bytes:g}")
    edges, edge_dims = [np.zeros((0, 2), np.int32)], [np.zeros(0, np.int32)]
    parts: dict[str, int] = {}  # number of edges of each part
    dtype, largest = None, 0.0
    for number, F in enumerate(pieces):
        if dtype is not None and dtype != F.dtype:
            raise TypeError(
                f"`pieces[{number}]` holds {F.dtype}, but earlier pieces hold {dtype}: a store has "
                f"one scalar type"
            )
        dtype, largest = F.dtype, max(largest, F.largest_entry)
        weight = (F.tail_offsets + F.head_offsets) * dtype.itemsize
        total = int(weight[-1])
        n = max(1, min(F.n_edges, -(-total // int(min(part_bytes, max(total, 1))))))
        inner = np.searchsorted(weight, total * np.arange(1, n) / n)
        cuts = np.unique([0, *inner.tolist(), F.n_edges]).tolist()
        for lo, hi in itertools.pairwise(cuts):
            name = f"{len(parts):06d}"
            parts[name] = hi - lo
            tail = F.tail_data[F.tail_offsets[lo] : F.tail_offsets[hi]]
            head = F.head_data[F.head_offsets[lo] : F.head_offsets[hi]]
            write_part(root, name, tail, head)
        edges.append(F.edges.astype(ragged.index_dtype(len(vertex_dims))))
        edge_dims.append(F.edge_dims.astype(ragged.index_dtype(int(F.edge_dims.max(initial=0)))))
    dtype = np.dtype(np.float64) if dtype is None else dtype
    if limited:
        checks.check_range("the maps of all pieces", largest, dtype)
    return seal(
        root,
        (np.concatenate(edges), vertex_dims, np.concatenate(edge_dims)),
        parts,
        None,
        dtype=dtype,
        names=names,
        **{"kind": "sheaf", **attributes},
        largest_entry=largest,
    )


def checked_piece(name: str, piece: Piece, vertex_dims: np.ndarray) -> CellularSheaf:
    """Check a piece, and return its edges as a sheaf on all vertices; errors name the piece."""
    try:
        edges, edge_dims, tail, head = piece
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be (edges, edge_dims, tail_data, head_data), got {type(piece).__name__}"
        ) from None
    try:
        return checked_sheaf(edges, tail, head, vertex_dims, edge_dims)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


def write_store(
    url: object,
    vertex_dims: npt.ArrayLike,
    pieces: Iterable[Piece],
    part_bytes: float = PART_BYTES,
    **storage_options: Any,
) -> SheafStore:
    """Write a sheaf to a store piece by piece, so that its maps need not fit in memory.

    Parameters
    ----------
    url : path or URL
        A folder that does not exist, or any fsspec URL.
    vertex_dims : array_like of int, shape (n,)
    pieces : iterable of (edges, edge_dims, tail_data, head_data)
        Each piece holds k edges, as in :meth:`CellularSheaf.from_flat`: edges of shape (k, 2), one
        edge dimension or k of them, and flat maps. Edges are numbered in the order of the pieces.
    part_bytes : float
        Approximate bytes of maps in a part, the unit that tasks read; larger pieces are split.
    **storage_options
        Options of the file system; see fsspec.

    Returns
    -------
    SheafStore

    Raises
    ------
    FileExistsError
        If something exists at ``url``.
    ValueError, TypeError
        If the arrays of a piece are inconsistent, of another scalar type than those of the first
        piece, or not finite; the message names the piece.

    Examples
    --------
    A path, two edges at a time:

    >>> import numpy as np
    >>> import sheafcoarsen.distributed as dist
    >>> def pieces():
    ...     for k in range(0, 6, 2):
    ...         edges = np.array([[k, k + 1], [k + 1, k + 2]])
    ...         yield edges, 1, np.ones(2), np.ones(2)
    >>> dist.write_store("memory://path", np.ones(7, int), pieces())
    SheafStore('memory://path': 7 vertices, 6 edges, float64, 96 bytes in 3 parts)
    """
    dims = checks.integer_array("vertex_dims", vertex_dims)
    dims = checks.dimensions("vertex_dims", dims, len(dims), "vertex")
    if not isinstance(pieces, Iterable):
        raise TypeError(
            f"`pieces` must be an iterable of (edges, edge_dims, tail_data, head_data), "
            f"got {type(pieces).__name__}"
        )
    root = free_root(url, storage_options)
    checked = (checked_piece(f"`pieces[{k}]`", piece, dims) for k, piece in enumerate(pieces))
    return write_pieces(root, dims, checked, part_bytes, limited=True)


# ---------------------------------------------------------------- objects in memory


@overload
def to_store(
    url: object, sheaf: CellularSheaf, part_bytes: float = ..., **storage_options: Any
) -> SheafStore: ...
@overload
def to_store(
    url: object, sheaf: Partition, part_bytes: float = ..., **storage_options: Any
) -> PartitionStore: ...
@overload
def to_store(
    url: object, sheaf: Coarsening, part_bytes: float = ..., **storage_options: Any
) -> StoredCoarsening: ...
def to_store(
    url: object,
    sheaf: CellularSheaf | Partition | Coarsening,
    part_bytes: float = PART_BYTES,
    **storage_options: Any,
) -> SheafStore | PartitionStore | StoredCoarsening:
    """Write a sheaf, a partition or a coarsening from memory to a new store.

    Parameters
    ----------
    url : path or URL
        A folder that does not exist, or any fsspec URL.
    sheaf : CellularSheaf, Partition or Coarsening
        The fine sheaf of a coarsening is written to the same folder.
    part_bytes : float
        Approximate number of bytes of maps in a part, the unit that tasks read.
    **storage_options
        Options of the file system; see fsspec.

    Returns
    -------
    SheafStore, PartitionStore or StoredCoarsening

    Raises
    ------
    FileExistsError
        If something exists at ``url``.
    TypeError
        If the object is of another type, or vertex labels are not numbers, strings, booleans, None
        or tuples of these.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]], dim=2)
    >>> dist.to_store("memory://triple", F).load().n_edges
    2
    >>> dist.to_store("memory://one-vertex", sc.coarsen(F, sc.Partition([0, 0, 0]), 2))
    StoredCoarsening('memory://one-vertex': internal modes, 3 -> 1 vertices, dim C^0 6 -> 2)
    """
    if not isinstance(sheaf, CellularSheaf | Partition | Coarsening):
        raise TypeError(
            f"`sheaf` must be a CellularSheaf, a Partition or a Coarsening, "
            f"got {type(sheaf).__name__}"
        )
    root = free_root(url, storage_options)
    if isinstance(sheaf, CellularSheaf):
        return write_sheaf(root, sheaf, part_bytes)
    if isinstance(sheaf, Coarsening):
        return write_coarsening(root, sheaf, part_bytes)
    write_array(root, "labels", sheaf.labels)
    mark(root, kind="partition", n_vertices=sheaf.n_vertices, n_clusters=sheaf.n_clusters)
    return PartitionStore(root.place)


def write_sheaf(
    root: Root, sheaf: CellularSheaf, part_bytes: float, **attributes: Any
) -> SheafStore:
    """Write a sheaf to a new store, which gets the additional ``attributes``."""
    names = None if sheaf.vertex_labels is None else labels.encode_labels(sheaf.vertex_labels)
    return write_pieces(root, sheaf.vertex_dims, [sheaf], part_bytes, names, **attributes)


def write_coarsening(
    root: Root,
    C: Coarsening,
    part_bytes: float = PART_BYTES,
    fine: SheafStore | None = None,
    run: str | None = None,
) -> StoredCoarsening:
    """Write a coarsening to a new store, with R stored as a single shard.

    Its fine sheaf is written to a subfolder unless ``fine`` stores it already. ``run`` is the
    fingerprint of the arguments with which `coarsen` would return the same coarsening.
    """
    url = "fine"
    if fine is None:
        fine = write_sheaf(Root(root.place / url), C.fine, part_bytes)
    else:
        url = fine.url
    M = C.modes
    new_group(root.place / "basis")
    write_array(root, "labels", C.partition.labels)
    write_array(root, "restored_loops", C.restored_loops)
    clusters = np.arange(C.partition.n_clusters)
    write_basis(root, "all", clusters, C.R.data, M, clusters)
    coarse = write_sheaf(
        root,
        C.sheaf,
        part_bytes,
        kind="coarsening",
        run=run,
        source={"url": url, "id": fine.header.id},
        basis=["all"],
        local_operator=None if M is None else M.local_operator,
        singular=M is not None and M.singular,
        oversampled={} if M is None else {name: getattr(M, name) for name in SETTINGS},
        loops=C.loops,
        compress=C.crossing_rows is None,
    )
    return StoredCoarsening(coarse, fine)
