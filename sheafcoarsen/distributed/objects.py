"""Writes what is in memory into stores: sheaves, partitions, coarsenings."""

import json
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.distributed.arrays import write_array
from sheafcoarsen.distributed.place import Place
from sheafcoarsen.distributed.result import StoredCoarsening
from sheafcoarsen.distributed.store import PartitionStore, SheafStore
from sheafcoarsen.distributed.writing import (
    PART_BYTES,
    Writer,
    mark,
    new_group,
    new_place,
    write_basis,
)
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
    """Write a sheaf, a partition or a coarsening that is in memory.

    Parameters
    ----------
    url : path or address
        A folder that is not there yet, or any address that fsspec knows.
    sheaf : CellularSheaf, Partition or Coarsening
        The fine sheaf of a coarsening goes into the same folder.
    part_bytes : float
        Bytes of maps in a part, which tasks read whole.
    **storage_options
        What the file system must be told; see fsspec.

    Returns
    -------
    SheafStore, PartitionStore or StoredCoarsening

    Raises
    ------
    FileExistsError
        Where something stands already.
    TypeError
        For another object, or vertex labels that are not numbers, strings, booleans, None or tuples
        of them.

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
        place = new_place(url, storage_options)
        write_array(place, "labels", sheaf.labels)
        counts = {"n_vertices": sheaf.n_vertices, "n_clusters": sheaf.n_clusters}
        mark(place, {"kind": "partition", **counts})
        return PartitionStore(place)
    if isinstance(sheaf, Coarsening):
        return write_coarsening(new_place(url, storage_options), sheaf, part_bytes)
    if not isinstance(sheaf, CellularSheaf):
        raise TypeError(
            f"`sheaf` must be a CellularSheaf, a Partition or a Coarsening, "
            f"got {type(sheaf).__name__}"
        )
    return write_sheaf(new_place(url, storage_options), sheaf, part_bytes)


def write_sheaf(
    place: Place, sheaf: CellularSheaf, part_bytes: float, **attributes: Any
) -> SheafStore:
    """Write a sheaf and what else its attributes are to say."""
    names = None if sheaf.vertex_labels is None else stored_names(sheaf.vertex_labels)
    writer = Writer(place, sheaf.vertex_dims, part_bytes)
    writer.add(0, (sheaf.edges, sheaf.edge_dims, sheaf.tail_data, sheaf.head_data))
    if names is not None:
        write_array(place, "vertex_labels", names)
    return writer.finished(vertex_labels=names is not None, **attributes)


def write_coarsening(
    place: Place,
    C: Coarsening,
    part_bytes: float,
    fine: SheafStore | None = None,
    run: str | None = None,
) -> StoredCoarsening:
    """Write a coarsening, and R as if there were one shard.

    Its fine sheaf goes below it where that stands in no store. ``run`` is the fingerprint of the
    call of `coarsen` that it is the result of.
    """
    url = "fine"
    if fine is None:
        fine = write_sheaf(place / url, C.fine, part_bytes)
    else:
        url = fine.url
    new_group(place / "basis")
    write_array(place, "labels", C.partition.labels)
    write_array(place, "restored_loops", C.restored_loops)
    clusters = np.arange(C.partition.n_clusters)
    write_basis(place, "all", np.arange(C.fine.n_vertices), clusters, C.R.data, C.modes, clusters)
    M = C.modes
    attributes = {
        "kind": "coarsening",
        "run": run,
        "source": {"url": url, "id": fine.attributes["id"]},
        "basis": ["all"],
        "local_operator": None if M is None else M.local_operator,
        "singular": M is not None and M.singular,
        "oversampled": {} if M is None else {name: getattr(M, name) for name in OVERSAMPLED},
        "loops": C.loops,
        "compress": C.crossing_rows is None,
        "report": {},
    }
    return StoredCoarsening(write_sheaf(place, C.sheaf, part_bytes, **attributes), fine)


OVERSAMPLED = ("rings", "target", "pilot", "over_budget")
"""What only oversampled modes have."""


def stored_names(labels: Sequence) -> np.ndarray:
    """Return node names as the bytes of a JSON text, which `store.names_of` reads."""

    def plain(label: object) -> object:
        if isinstance(label, np.generic):
            label = label.item()
        if isinstance(label, tuple):
            return {"tuple": [plain(item) for item in label]}
        if label is None or isinstance(label, bool | int | float | str):
            return label
        raise TypeError(
            f"vertex label {label!r} cannot be stored: only numbers, strings, booleans, None and "
            f"tuples of them can; F.with_labels(None) leaves them out"
        )

    text = json.dumps([plain(label) for label in labels])
    return np.frombuffer(text.encode(), np.uint8).astype(np.int16)
