"""Schema of a store: its attributes, and its arrays in Zarr format 3.

Attributes are checked when they are read.

Metadata and chunks are written and read here. zarr-python can read them too, but with it a run
from store to store takes 1.5 times the processor time (in shards of 3 MB), every chunk is in memory
twice, and missing or oversized chunks are not detected.
"""

import json
import re
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import checks
from sheafcoarsen.distributed.location import (
    Place,
    StoreError,
    checksum,
    crc32c,
    failures,
    optional,
    without_checksum,
)
from sheafcoarsen.io import SETTINGS
from sheafcoarsen.modes import OPERATORS

VERSION = 2
"""Schema version that this library writes; arrays of version 1 do not record their store."""

CHUNK = 1 << 20
"""Maximum number of rows in a chunk of integers; arrays of other types are one chunk."""


@dataclass(frozen=True)
class Root:
    """Store that owns arrays: its location, and an id that changes whenever it is written again."""

    place: Place
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    version: int = VERSION


# ---------------------------------------------------------------- attributes


@dataclass(frozen=True)
class StoreHeader:
    """Attributes of a store; those that do not apply to its kind keep their defaults."""

    kind: str
    id: str = ""
    version: int = VERSION
    format: str = "sheafcoarsen-store"
    n_vertices: int = 0
    n_clusters: int = 0
    n_edges: int = 0
    dim_c0: int = 0
    dim_c1: int = 0
    n_bytes: int = 0
    largest_entry: float = 0.0
    dtype: str = "<f8"
    parts: list[str] = field(default_factory=list)
    permuted: bool = False
    vertex_labels: bool = False
    source: dict[str, str] = field(default_factory=dict)
    basis: list[str] = field(default_factory=list)
    local_operator: str | None = None
    singular: bool = False
    oversampled: dict[str, Any] | None = None
    loops: bool = False
    compress: bool = False
    run: str | None = None
    report: dict[str, Any] = field(default_factory=dict)
    levels: list[str] = field(default_factory=list)
    stopped_because: str = ""


DEFAULTS = StoreHeader("").__dict__
COMMON = ("format", "version", "kind", "id")
SHEAF = (
    *(*COMMON, "n_vertices", "n_edges", "dim_c0", "dim_c1", "n_bytes", "largest_entry", "dtype"),
    *("parts", "permuted"),
)
REQUIRED = {
    "partition": (*COMMON, "n_vertices", "n_clusters"),
    "sheaf": SHEAF,
    "coarsening": (*SHEAF, "source", "basis", "report", "loops", "compress", "singular"),
    "hierarchy": (*COMMON, "levels", "stopped_because"),
}
"""The required attributes of each kind of store."""

REMEDY = "restore zarr.json from a copy, or write the store again"


def header_of(place: Place) -> StoreHeader:
    """Return the header of a finished store of a supported version."""
    if header := find_header(place):
        return header
    if (place / "zarr.json").find() is None and not is_unfinished(place):
        raise StoreError(f"{place.url}: there is no store")
    raise StoreError(
        f"{place.url}: not a store of this library, or one whose writing did not end: repeat "
        f"the call of coarsen that began it, or else remove it and write it again"
    )


def find_header(place: Place) -> StoreHeader | None:
    """Return the header of the store at a location, or None if there is no finished store."""
    with failures(place, "opened"):
        text = (place / "zarr.json").find()
    if text is None:
        return None
    try:
        group = json.loads(text)
        attributes = group.get("attributes", {})
        if not isinstance(attributes, dict):
            raise ValueError("its attributes are not an object")
        if attributes and (group.get("zarr_format"), group.get("node_type")) != (3, "group"):
            raise ValueError("it does not describe a group of format 3")
    except (ValueError, AttributeError, RecursionError) as error:
        raise StoreError(f"{place.url}: zarr.json is damaged ({error}): {REMEDY}") from None
    if attributes.get("format") != StoreHeader.format:
        return None
    check_attributes(place, attributes, COMMON)
    version = attributes["version"]
    if not 1 <= version <= VERSION:
        raise StoreError(
            f"{place.url}: a store of version {version}, but this library reads versions 1 to "
            f"{VERSION}: update the library, or write the store again"
        )
    required = REQUIRED[attributes["kind"]]
    check_attributes(place, attributes, [n for n in DEFAULTS if n in required or n in attributes])
    if attributes.get("check", attributes_crc(attributes)) != attributes_crc(attributes):
        raise StoreError(
            f"{place.url}: zarr.json is damaged, because the checksum of its attributes is wrong: "
            f"{REMEDY}; if you edited it, remove the attribute `check`"
        )
    return StoreHeader(**{name: attributes[name] for name in DEFAULTS if name in attributes})


def attributes_crc(attributes: dict[str, Any]) -> int:
    """Return the checksum of the attributes that this library writes; ignore other attributes."""
    own = {name: attributes[name] for name in DEFAULTS if name in attributes}
    return crc32c(json.dumps(own, sort_keys=True).encode())


def _one_of(*choices: Any) -> tuple[str, Callable[[Any], bool]]:
    return "one of " + ", ".join(map(str, choices)), lambda v: v in choices


VALID: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    int: ("an integer of at least 0", lambda v: type(v) is int and 0 <= v < 2**63),
    float: ("a finite number of at least 0", lambda v: type(v) in (int, float) and 0 <= v < np.inf),
    str: ("a string", lambda v: type(v) is str),
    bool: ("true or false", lambda v: type(v) is bool),
    list: (
        "a list of different folder names",
        lambda v: (
            type(v) is list
            and len(v) == len({n for n in v if type(n) is str and re.fullmatch(r"[\w-]+", n)})
        ),
    ),
    dict: ("an object", lambda v: type(v) is dict),
    "kind": _one_of(*REQUIRED),
    "dtype": _one_of(*(np.dtype(scalar).str for scalar in checks.SCALARS)),
    "source": (
        "an object with the strings `url` and `id`",
        lambda v: type(v) is dict and {type(v.get(name)) for name in ("url", "id")} == {str},
    ),
    "local_operator": _one_of(None, *OPERATORS),
    "oversampled": (
        f"null or an object with some of {', '.join(SETTINGS)}",
        lambda v: v is None or (type(v) is dict and set(v) <= set(SETTINGS)),
    ),
    "run": ("a string or null", lambda v: v is None or type(v) is str),
}
"""Description and test of the valid values in JSON, by an attribute's name or type."""


def check_attributes(place: Place, attributes: dict[str, Any], names: Iterable[str]) -> None:
    """Raise an error if attributes are missing or have invalid values."""
    for name in names:
        if name not in attributes:
            raise StoreError(
                f"{place.url}: the attribute `{name}` is missing in zarr.json: {REMEDY}"
            )
        value = attributes[name]
        expected, good = VALID.get(name) or VALID[type(DEFAULTS[name])]
        if not good(value):
            raise StoreError(
                f"{place.url}: the attribute `{name}` in zarr.json must be {expected}, "
                f"got {value!r}: {REMEDY}"
            )


def mark(root: Root, **attributes: Any) -> None:
    """Write the attributes that mark a group as a store, with their checksum."""
    header = StoreHeader(id=root.id, **attributes)
    written = {
        name: value
        for name, value in vars(header).items()
        if name in REQUIRED[header.kind] or value != DEFAULTS[name]
    }
    place = root.place
    with failures(place, "opened"):
        group = optional("zarr").open_group(
            place.url, mode="a", zarr_format=3, storage_options=place.options or None
        )
    group.attrs.update({**written, "check": attributes_crc(written)})


def is_unfinished(place: Place) -> bool:
    """Return whether a location holds a store without its attributes, which are written last."""
    names = place.names()
    content = {"parts", "basis", "labels", "fine", "work", "level-0"}
    return "zarr.json" not in names and bool(names & content)


# ---------------------------------------------------------------- arrays


def metadata(shape: list[int], dtype: np.dtype, rows: int) -> dict[str, Any]:
    """Return the Zarr metadata of an array in chunks of ``rows`` rows; integers are compressed.

    The fill value makes other readers see a missing chunk as NaN or -1, which no array contains.
    """
    zstd = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
    return {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": dtype.name,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [rows, *shape[1:]]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": {"f": "NaN", "c": ["NaN", "NaN"]}.get(dtype.kind, -1),
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "little"}},
            *([zstd] if dtype.kind == "i" else []),
            {"name": "crc32c"},
        ],
    }


def owner_check(root: Root, name: str, values: np.ndarray) -> int:
    """Return the checksum of a store's id and of the name and values of one of its arrays."""
    return crc32c(values.reshape(-1).view(np.uint8), crc32c(f"{root.id}/{name}".encode()))


def write_array(root: Root, name: str, values: np.ndarray) -> None:
    """Write an array with a checksum per chunk."""
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    packed = values.dtype.kind == "i"
    rows = max(1, min(CHUNK, len(values)) if packed else len(values))
    described = metadata(list(values.shape), values.dtype, rows)
    described["attributes"] = {"check": owner_check(root, name, values)}
    (root.place / name / "zarr.json").put(json.dumps(described).encode())
    for k in range(-(-len(values) // rows)):
        piece = values[k * rows : (k + 1) * rows]
        if len(piece) < rows:  # pad the last chunk
            filled = np.full((rows, *values.shape[1:]), -1, values.dtype)
            filled[: len(piece)] = piece
            piece = filled
        raw: Any = piece.reshape(-1).view(np.uint8)
        if packed:
            raw = np.frombuffer(optional("numcodecs.zstd").compress(raw, 1), np.uint8)
        (root.place / _chunk(name, k, values.ndim)).put(raw.data, checksum(raw))


def read_array(
    root: Root,
    name: str,
    dtype: npt.DTypeLike | None = None,
    shape: tuple[int | None, ...] = (None,),
    what: str = "",
) -> np.ndarray:
    """Read an array of a given dtype (None: integers) and shape (None: any length).

    Raises a StoreError that names the array if it is missing or damaged, belongs to another store
    or name, or has another shape. Maps are one chunk, returned as a read-only view of its bytes.
    """
    where = f"{root.place.url}: {what + ': ' if what else ''}"
    text = (root.place / name / "zarr.json").find()
    if text is None:
        raise StoreError(f"{where}the array {name} is missing")
    try:
        found = json.loads(text)
        size, rows = found["shape"], found["chunk_grid"]["configuration"]["chunk_shape"][0]
        if any(type(n) is not int or not 0 <= n < 2**48 for n in (*size, rows)):
            raise ValueError(f"its shape is {size}")
        types = ("int8", "int16", "int32", "int64", *(scalar.__name__ for scalar in checks.SCALARS))
        if found["data_type"] not in types:
            raise ValueError(f"its data_type is {found['data_type']!r}")
        kind, longest = np.dtype(found["data_type"]).newbyteorder("<"), max(size[0], 1)
        packed, expected = kind.kind == "i", metadata(size, kind, rows)
        other = [key for key, value in expected.items() if found.get(key) != value]
        if other or not (1 if packed else longest) <= rows <= longest:
            raise ValueError(f"its chunks are not those of this library: {', '.join(other)}")
        values = np.empty(size if packed else (0, *size[1:]), kind)
        check = found["attributes"].get("check")
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        MemoryError,
    ) as error:
        raise StoreError(f"{where}the array {name} cannot be read: {error}") from None
    fits = packed if dtype is None else kind == np.dtype(dtype)
    fits = fits and len(shape) == len(size)
    if not fits or any(n not in (None, m) for n, m in zip(shape, size, strict=True)):
        sought = ", ".join("any" if n is None else str(n) for n in shape)
        raise StoreError(
            f"{where}the array {name} must hold {'integers' if dtype is None else np.dtype(dtype)} "
            f"of shape ({sought}), but according to its zarr.json it holds {kind}, {tuple(size)}"
        )
    for k in range(-(-size[0] // rows)):
        file = _chunk(name, k, len(size))
        raw = (root.place / file).find()
        if raw is None:
            raise StoreError(f"{where}the chunk {file} is missing")
        body = without_checksum(raw, f"{where}the chunk {file}")
        try:
            if packed:
                held = values[k * rows : (k + 1) * rows]
                piece = held if len(held) == rows else np.empty((rows, *size[1:]), kind)
                piece[...] = -1  # invalid values, which remain if the chunk is too short
                optional("numcodecs.zstd").decompress(body, piece.reshape(-1).view(np.uint8))
                held[:] = piece[: len(held)]
            else:
                values = np.frombuffer(body, kind).reshape(size)
        except (ValueError, RuntimeError) as error:
            raise StoreError(f"{where}the chunk {file} is damaged: {error}") from None
    if root.version > 1 and check != owner_check(root, name, values):
        raise StoreError(
            f"{where}the array {name} is not the one that was written here: its chunks or its "
            f"zarr.json come from another array or another store"
        )
    return values


def _chunk(name: str, k: int, ndim: int) -> str:
    """Return the file of a chunk of an array that is divided along its first axis."""
    return f"{name}/c/{k}{'/0' * (ndim - 1)}"
