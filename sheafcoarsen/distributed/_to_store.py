"""Write sheaves, partitions and coarsenings from memory to stores."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from sheafcoarsen._support import labels
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.distributed._open_coarsening import StoredCoarsening
from sheafcoarsen.distributed._open_store import PartitionStore, SheafStore
from sheafcoarsen.distributed._write_store import (
    PART_BYTES,
    free_root,
    mark,
    new_group,
    write_basis,
    write_pieces,
)
from sheafcoarsen.distributed.schema import Root, write_array
from sheafcoarsen.io import SETTINGS
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf


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
    if isinstance(sheaf, Partition):
        root = free_root(url, storage_options)
        write_array(root, "labels", sheaf.labels)
        n, K = sheaf.n_vertices, sheaf.n_clusters
        mark(root, kind="partition", n_vertices=n, n_clusters=K)
        return PartitionStore(root.place)
    if isinstance(sheaf, Coarsening):
        return write_coarsening(free_root(url, storage_options), sheaf, part_bytes)
    if not isinstance(sheaf, CellularSheaf):
        raise TypeError(
            f"`sheaf` must be a CellularSheaf, a Partition or a Coarsening, "
            f"got {type(sheaf).__name__}"
        )
    return write_sheaf(free_root(url, storage_options), sheaf, part_bytes)


def write_sheaf(
    root: Root, sheaf: CellularSheaf, part_bytes: float, **attributes: Any
) -> SheafStore:
    """Write a sheaf to a new store, which gets the additional ``attributes``."""
    names = None if sheaf.vertex_labels is None else labels.encode_labels(sheaf.vertex_labels)
    piece = sheaf.edges, sheaf.edge_dims, sheaf.tail_data, sheaf.head_data
    return write_pieces(root, sheaf.vertex_dims, [piece], part_bytes, names, **attributes)


def write_coarsening(
    root: Root,
    C: Coarsening,
    part_bytes: float,
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
    write_basis(root, "all", np.arange(C.fine.n_vertices), clusters, C.R.data, M, clusters)
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
