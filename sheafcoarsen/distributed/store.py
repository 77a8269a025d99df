"""A sheaf in a store: its topology whole, its maps in parts, read one part at a time."""

import json
import numbers
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sheafcoarsen._support import ReadOnly, counted, offsets, ranges, read_only
from sheafcoarsen.distributed.arrays import read_array
from sheafcoarsen.distributed.extras import crc32c
from sheafcoarsen.distributed.place import Place, StoreError, failures, place_of
from sheafcoarsen.partition import Partition
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf

FORMAT, VERSION = "sheafcoarsen-store", 1
"""What the attributes of a store begin with, and the version that this library writes."""


class SheafStore(ReadOnly):
    """A stored sheaf: sizes are at hand, the topology on request, the maps part by part.

    :func:`open_store`, :func:`to_store` and :func:`write_store` return it, and so does a coarsening
    of one, as its coarse sheaf.

    Attributes
    ----------
    url : str
    n_vertices, n_edges, dim_c0, dim_c1 : int
    dtype : dtype
        The scalar type of the maps.
    n_bytes : int
        Of all maps.
    parts : list of str
        The names of the parts, in the order in which they stand in the store.
    largest_entry : float
        The largest modulus of a map entry.

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
    (60, (114,), True)
    """

    def __init__(self, place: Place) -> None:
        self.place, self.url = place, place.url
        a = self.attributes = attributes_of(place)
        if a["kind"] not in ("sheaf", "coarsening"):
            raise StoreError(f"{place.url}: holds a {a['kind']}, not a sheaf")
        self.parts: list[str] = a["parts"]
        self.dtype = np.dtype(a["dtype"]).newbyteorder("=")
        self.n_vertices, self.n_edges = int(a["n_vertices"]), int(a["n_edges"])
        self.dim_c0, self.dim_c1 = int(a["dim_c0"]), int(a["dim_c1"])
        self.n_bytes, self.largest_entry = int(a["n_bytes"]), float(a["largest_entry"])

    def array(self, name: str, what: str = "") -> np.ndarray:
        """Read one of its arrays, or say which chunk is lost or damaged."""
        return read_array(self.place, name, what)

    @cached_property
    def part_ptr(self) -> np.ndarray:
        """Where the edges of each part begin among those stored, shape (P + 1,)."""
        return read_only(self.array("part_ptr"))

    @cached_property
    def edge_numbers(self) -> np.ndarray | None:
        """The number of each edge in the order in which they are stored; None where it is that."""
        return read_only(self.array("edge_numbers")) if self.attributes["permuted"] else None

    def edges_of(self, p: int) -> np.ndarray:
        """Return the numbers of the edges of part ``p``, ascending.

        Parameters
        ----------
        p : int
            The part.

        Returns
        -------
        ndarray of int
        """
        lo, hi = self.part_ptr[self._part(p) : self._part(p) + 2]
        return np.arange(lo, hi) if self.edge_numbers is None else self.edge_numbers[lo:hi]

    def topology(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the edges, shape (m, 2), and the dimensions of vertex and edge stalks, in memory.

        Returns
        -------
        edges, vertex_dims, edge_dims : ndarray of int

        Raises
        ------
        StoreError
            For a chunk that is missing or damaged.
        """
        edges, vertex_dims, edge_dims = map(self.array, ("edges", "vertex_dims", "edge_dims"))
        dims = (int(some.sum(dtype=np.int64)) for some in (vertex_dims, edge_dims))
        sizes = (len(vertex_dims), len(edges), *dims)
        said = (self.n_vertices, self.n_edges, self.dim_c0, self.dim_c1)
        if sizes != said or len(edge_dims) != len(edges):
            raise StoreError(
                f"{self.url}: `n_vertices`, `n_edges`, `dim_c0` and `dim_c1` are {said} in "
                f"zarr.json, but {sizes} in its arrays: {REMEDY}"
            )
        return edges, vertex_dims, edge_dims

    def _part(self, p: int) -> int:
        if isinstance(p, bool) or not isinstance(p, int | np.integer):
            raise TypeError(f"a part is named by an integer, got {p!r}")
        if not -len(self.parts) <= p < len(self.parts):
            raise IndexError(f"part {p} is out of range for {len(self.parts)} parts")
        return int(p) % len(self.parts)

    def maps(self, p: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the maps of the edges of part ``p``, those of tails and those of heads.

        Parameters
        ----------
        p : int
            The part.

        Returns
        -------
        tail, head : ndarray
            Map after map in the order of ``edges_of(p)``, each row-major.

        Raises
        ------
        StoreError
            For a chunk that is missing or damaged; it names the chunk.
        """
        return self.maps_at(p, "tail"), self.maps_at(p, "head")

    def maps_at(self, p: int, end: Literal["tail", "head"]) -> np.ndarray:
        """Return the maps of one end of the edges of part ``p``.

        Parameters
        ----------
        p : int
            The part.
        end : {"tail", "head"}

        Returns
        -------
        ndarray

        Raises
        ------
        StoreError
            For a chunk that is missing or damaged; it names the chunk.
        """
        part = self._part(p)
        return self.array(f"parts/{self.parts[part]}/{end}", f"part {part}")

    def load(self) -> CellularSheaf:
        """Return the whole sheaf in memory.

        Returns
        -------
        CellularSheaf

        Raises
        ------
        StoreError
            For a chunk that is missing or damaged, or of another length than the dimensions say.
        """
        edges, vertex_dims, edge_dims = (
            array.astype(np.int64, copy=False) for array in self.topology()
        )
        data = []
        starts = [offsets(edge_dims * vertex_dims[edges[:, end]]) for end in (0, 1)]
        flat = [np.empty(int(where[-1]), self.dtype) for where in starts]
        for p in range(len(self.parts)):
            numbers = self.edges_of(p)
            for out, where, maps in zip(flat, starts, self.maps(p), strict=True):
                lengths = where[numbers + 1] - where[numbers]
                if lengths.sum() != len(maps):
                    raise StoreError(
                        f"{self.url}: part {p} holds {len(maps)} numbers for maps of "
                        f"{lengths.sum()} in all: it is not the part that the dimensions are of"
                    )
                if self.edge_numbers is None:
                    lo = int(where[numbers[0]]) if len(numbers) else 0
                    out[lo : lo + len(maps)] = maps
                else:
                    out[ranges(where[numbers], lengths)] = maps
        data = [read_only(values) for values in flat]
        names = self._vertex_labels()
        return trusted_sheaf(edges, vertex_dims, edge_dims, data[0], data[1], names)

    def _vertex_labels(self) -> tuple | None:
        """Return the graph's own node names, where they were stored."""
        if not self.attributes.get("vertex_labels", False):
            return None
        return names_of(self.array("vertex_labels"))

    def __repr__(self) -> str:
        parts = counted(len(self.parts), "part")
        return (
            f"SheafStore({self.url!r}: {self.n_vertices} vertices, {self.n_edges} edges, "
            f"{self.dtype}, {amount(self.n_bytes)} in {parts})"
        )


class PartitionStore:
    """A stored partition; :func:`to_store` and :func:`open_store` return it.

    :func:`coarsen` takes it in place of a partition.

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
        self.place, self.url = place, place.url
        self.attributes = attributes_of(place)
        self.n_vertices = int(self.attributes["n_vertices"])
        self.n_clusters = int(self.attributes["n_clusters"])

    def load(self) -> Partition:
        """Return the partition in memory.

        Returns
        -------
        Partition

        Raises
        ------
        StoreError
            For a chunk that is missing or damaged.
        """
        return Partition(read_array(self.place, "labels"))

    def __repr__(self) -> str:
        return (
            f"PartitionStore({self.url!r}: {self.n_vertices} vertices in "
            f"{self.n_clusters} clusters)"
        )


def attributes_of(place: Place) -> dict[str, Any]:
    """Return the attributes of a finished store of a version that this library reads.

    Raises
    ------
    StoreError
    """
    attributes = found_attributes(place)
    if attributes is None:
        if is_unfinished(place):
            raise StoreError(
                f"{place.url}: a store whose writing did not end: make the same call of coarsen "
                f"again if that began it, or else remove it and write it again"
            )
        raise StoreError(f"{place.url}: there is no store")
    if attributes.get("format") != FORMAT:
        raise StoreError(
            f"{place.url}: not a store of this library, or one whose writing did not end: make the "
            f"same call of coarsen again if that began it, or else remove it and write it again"
        )
    check_attributes(place, attributes, {"version": int, "kind": str, "id": str})
    version = attributes["version"]
    if version != VERSION:
        raise StoreError(
            f"{place.url}: a store of version {version}, this library reads version {VERSION}: "
            f"update the library, or write the store again"
        )
    check_attributes(place, attributes, ATTRIBUTES.get(attributes["kind"], {}))
    if attributes.get("check", checksum(attributes)) != checksum(attributes):
        raise StoreError(
            f"{place.url}: zarr.json is damaged, since the checksum of its attributes is wrong: "
            f"{REMEDY}; after an edit by hand remove the attribute `check`"
        )
    return attributes


def checksum(attributes: dict[str, Any]) -> int:
    """Return the checksum of the attributes that this library writes, whoever adds others."""
    own = {name: attributes[name] for name in KNOWN if name in attributes}
    return crc32c(json.dumps(own, sort_keys=True).encode())


COUNTS = {"n_vertices": int, "n_edges": int, "dim_c0": int, "dim_c1": int, "n_bytes": int}
SHEAF = {**COUNTS, "parts": list, "dtype": str, "largest_entry": float, "permuted": bool}
COARSENING = {"source": dict, "basis": list, "report": dict, "loops": bool, "compress": bool}
ATTRIBUTES: dict[str, dict[str, type]] = {
    "partition": {"n_vertices": int, "n_clusters": int},
    "sheaf": SHEAF,
    "coarsening": {**SHEAF, **COARSENING},
}
"""What the attributes of every kind hold beside its format, version, kind and id."""

KNOWN = (
    *("format", "version", "kind", "id", *ATTRIBUTES["coarsening"], "n_clusters", "run"),
    *("vertex_labels", "local_operator", "singular", "oversampled", "levels", "stopped_because"),
)
"""All that attributes of stores are called, but for their checksum `check`."""

SCALARS = ("float32", "float64", "complex64", "complex128")

NAMES = {
    int: "an integer of at least 0",
    float: "a number",
    str: "a string",
    bool: "true or false",
    list: "a list of strings",
    dict: "an object",
}

REMEDY = "restore zarr.json from a copy, or write the store again"


def found_attributes(place: Place) -> dict[str, Any] | None:
    """Return the attributes of the group at a place; None where there is none.

    Raises
    ------
    StoreError
        Where they cannot be read.
    """
    try:
        with failures(place, "opened"):
            text = (place / "zarr.json").find()
    except NotADirectoryError:
        return None
    if text is None:
        return None
    try:
        group = json.loads(text)
        attributes = group.get("attributes", {})
        if not isinstance(attributes, dict):
            raise ValueError("its attributes are no object")
        if attributes and (group.get("zarr_format"), group.get("node_type")) != (3, "group"):
            raise ValueError("it describes no group of format 3")
    except (ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"{place.url}: zarr.json is damaged ({error}): {REMEDY}") from None
    return attributes


def is_unfinished(place: Place) -> bool:
    """Tell whether there is something of a store, but not what is written last."""
    names = set(place.names())
    return "zarr.json" not in names and bool(names & {"parts", "basis", "labels", "fine", "work"})


def check_attributes(place: Place, attributes: dict[str, Any], wanted: dict[str, type]) -> None:
    """Refuse attributes that are missing or of another kind than they are written.

    Raises
    ------
    StoreError
    """
    for name, kind in wanted.items():
        if name not in attributes:
            raise StoreError(
                f"{place.url}: the attribute `{name}` is missing in zarr.json: {REMEDY}"
            )
        value, expected = attributes[name], NAMES[kind]
        good = isinstance(value, numbers.Real if kind is float else kind)
        if kind in (int, float):
            good = good and not isinstance(value, bool) and value >= 0
        if kind is list:
            good = good and all(isinstance(item, str) for item in value)
        if name == "dtype" and good:
            expected = "one of " + ", ".join(SCALARS)
            try:
                good = np.dtype(value).name in SCALARS
            except (TypeError, ValueError, SyntaxError):  # numpy parses what stands there
                good = False
        if name == "source" and good:
            expected = "an object with `url` and `id`"
            good = isinstance(value.get("url"), str) and isinstance(value.get("id"), str)
        if not good:
            raise StoreError(
                f"{place.url}: the attribute `{name}` in zarr.json must be {expected}, "
                f"got {value!r}: {REMEDY}"
            )


def check_store(store: Any, name: str) -> SheafStore:
    """Return a stored sheaf that is still the one that was opened.

    Raises
    ------
    TypeError, StoreError
    """
    if not isinstance(store, SheafStore):
        raise TypeError(
            f"`{name}` must be a SheafStore, got {type(store).__name__}: open_store(url) opens "
            f"one, to_store(url, F) makes one"
        )
    if attributes_of(store.place)["id"] != store.attributes["id"]:
        raise StoreError(
            f"`{name}`: {store.url} has been written again since it was opened: open it again "
            f"with open_store"
        )
    return store


def names_of(stored: np.ndarray) -> tuple:
    """Return node names that `writing.stored_names` wrote."""

    def plain(item: Any) -> Any:
        return tuple(map(plain, item["tuple"])) if isinstance(item, dict) else item

    return tuple(map(plain, json.loads(stored.astype(np.uint8).tobytes())))


def amount(size: float) -> str:
    """Return a number of bytes as people read it."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return (
                f"{size / unit:.3g} {name}" if size < 999.5 * unit else f"{size / unit:.0f} {name}"
            )
    return f"{size:.0f} bytes"


def open_store(url: object, **storage_options: Any) -> SheafStore | PartitionStore:
    """Open a stored sheaf or partition: only its sizes are read.

    Of a stored coarsening it opens the coarse sheaf; :func:`open_coarsening` opens all of it.

    Parameters
    ----------
    url : path or address
        A folder, or any address that fsspec knows, such as "s3://bucket/name".
    **storage_options
        What the file system must be told; see fsspec.

    Returns
    -------
    SheafStore or PartitionStore

    Raises
    ------
    StoreError
        Where there is none, its writing did not end, or it is of another version.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> _ = dist.to_store("memory://edge", sc.CellularSheaf.constant([[0, 1]]))
    >>> dist.open_store("memory://edge").load()
    CellularSheaf(n_vertices=2, n_edges=1, dim_c0=2, dim_c1=1, dtype=float64)
    """
    place = place_of(url, storage_options)
    if attributes_of(place)["kind"] == "partition":
        return PartitionStore(place)
    return SheafStore(place)
