"""Arrays of a store: Zarr arrays of format 3 in one layout; and arrays of a task in one blob.

Metadata and chunks of the former are written and read here: with zarr-python, which reads them too,
a run from store to store takes 1.5 times the processor time in shards of 3 MB, every chunk is in
memory twice, and chunks that are missing, or larger than they should be, are not refused.
"""

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import SCALARS
from sheafcoarsen.distributed.location import (
    Place,
    StoreError,
    checksum,
    crc32c,
    optional,
    without_checksum,
)

VERSION = 2
"""Version of the schema that this library writes; arrays of version 1 do not say whose they are."""

CHUNK = 1 << 20
"""Entries of a chunk of the topology."""

TYPES = ("int8", "int16", "int32", "int64", *(scalar.__name__ for scalar in SCALARS))
"""Types of entries, as Zarr calls them."""

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
CRC = {"name": "crc32c"}


@dataclass(frozen=True)
class Root:
    """A store to which arrays belong: where it is, and the id of its writing."""

    place: Place
    id: str
    version: int = VERSION


class Described(NamedTuple):
    """An array's metadata."""

    shape: tuple[int, ...]
    dtype: np.dtype
    chunk: int  # rows of a chunk
    packed: bool
    check: int | None


def owner_check(root: Root, name: str, values: np.ndarray) -> int:
    """Return the checksum of the id of a store, the name of an array in it, and its values."""
    return crc32c(values.reshape(-1).view(np.uint8), crc32c(f"{root.id}/{name}".encode()))


def write_array(root: Root, name: str, values: np.ndarray, *, packed: bool = True) -> None:
    """Write one array, each chunk with a checksum; ``packed`` for integers, which compress well.

    To other readers a chunk that is lost is NaN or -1, which no array holds, and never 0.
    """
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    here = root.place / name
    chunk = max(1, min(CHUNK, len(values)) if packed else len(values))
    absent: Any = {"f": "NaN", "c": ["NaN", "NaN"]}.get(values.dtype.kind, -1)
    description = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": values.shape,
        "data_type": values.dtype.name,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": (chunk, *values.shape[1:])},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": absent,
        "codecs": [BYTES, *([ZSTD] if packed else []), CRC],
        "attributes": {"check": owner_check(root, name, values)},
    }
    (here / "zarr.json").put(json.dumps(description).encode())
    for k in range(-(-len(values) // chunk)):
        piece = values[k * chunk : (k + 1) * chunk]
        if len(piece) < chunk:  # chunks are whole
            filled = np.full((chunk, *values.shape[1:]), -1, values.dtype)
            filled[: len(piece)] = piece
            piece = filled
        raw: Any = piece.reshape(-1).view(np.uint8)
        if packed:
            raw = np.frombuffer(optional("numcodecs.zstd").compress(raw, 1), np.uint8)
        (here / _chunk(k, values.ndim)).put(raw.data, checksum(raw))


def read_array(
    root: Root,
    name: str,
    dtype: npt.DTypeLike | None = None,
    shape: tuple[int | None, ...] = (None,),
    what: str = "",
) -> np.ndarray:
    """Read an array of some type (None: integers) and shape (None: any length).

    What is damaged, missing, of another store, name or shape is an error that names it. Maps are
    one chunk and what was read of it, which cannot be written to.
    """
    where = f"{root.place.url}: {what + ': ' if what else ''}"
    found = _described(root.place / name, name, where)
    kind = found.dtype.kind == "i" if dtype is None else found.dtype == np.dtype(dtype)
    sizes = zip(shape, found.shape, strict=False)
    if not kind or len(shape) != len(found.shape) or any(n not in (None, m) for n, m in sizes):
        sought = ", ".join("any" if n is None else str(n) for n in shape)
        raise StoreError(
            f"{where}the array {name} must hold {'integers' if dtype is None else np.dtype(dtype)} "
            f"of shape ({sought}), but its zarr.json says {found.dtype}, {found.shape}"
        )
    try:
        values = _values(root.place, name, found, where)
    except MemoryError:
        raise StoreError(
            f"{where}the array {name} has {math.prod(found.shape):.3g} entries by its zarr.json, "
            f"more than there is memory for"
        ) from None
    if root.version > 1 and found.check != owner_check(root, name, values):
        raise StoreError(
            f"{where}the array {name} is not the one that was written here: its chunks, or its "
            f"zarr.json, are of another array, another place, or another writing of the store"
        )
    return values


def _values(place: Place, name: str, found: Described, where: str) -> np.ndarray:
    shape, dtype, chunk, packed, _ = found
    values = np.empty(shape if packed else (0, *shape[1:]), dtype)
    for k in range(-(-shape[0] // chunk)):
        file = f"{name}/{_chunk(k, len(shape))}"
        raw = (place / file).find()
        if raw is None:
            raise StoreError(f"{where}the chunk {file} is missing")
        body = without_checksum(raw, f"{where}the chunk {file}")
        try:
            if packed:
                rows = values[k * chunk : (k + 1) * chunk]
                piece = rows if len(rows) == chunk else np.empty((chunk, *shape[1:]), dtype)
                piece[...] = -1  # where the chunk is shorter
                optional("numcodecs.zstd").decompress(body, piece.reshape(-1).view(np.uint8))
                rows[:] = piece[: len(rows)]
            else:
                values = np.frombuffer(body, dtype).reshape(shape)
        except (ValueError, RuntimeError) as error:
            raise StoreError(f"{where}the chunk {file} is damaged: {error}") from None
    return values


def _described(here: Place, name: str, where: str) -> Described:
    """Return the metadata of an array of this library's layout."""
    text = (here / "zarr.json").find()
    if text is None:
        raise StoreError(f"{where}the array {name} is missing")
    try:
        found = json.loads(text)
        codecs = [codec["name"] for codec in found["codecs"]]
        shape = tuple(found["shape"])
        chunk = tuple(found["chunk_grid"]["configuration"]["chunk_shape"])
        if found["data_type"] not in TYPES:
            raise ValueError(f"its data_type is {found['data_type']!r}")
        dtype = np.dtype(found["data_type"]).newbyteorder("<")
        check = found["attributes"].get("check")
        packed = codecs == ["bytes", "zstd", "crc32c"]
        if not shape or any(type(size) is not int or not 0 <= size < 2**48 for size in shape):
            raise ValueError(f"its shape is {shape}")
        whole = len(chunk) == len(shape) and chunk[1:] == shape[1:] and type(chunk[0]) is int
        longest = max(shape[0], 1)
        if (
            not (packed or codecs == ["bytes", "crc32c"])
            or not whole
            or not (1 if packed else longest) <= chunk[0] <= longest
        ):
            raise ValueError(f"its chunks are not those of this library: {codecs}, {chunk}")
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise StoreError(f"{where}the array {name} cannot be read: {error}") from None
    return Described(shape, dtype, chunk[0], packed, check)


def _chunk(k: int, ndim: int) -> str:
    return f"c/{k}{'/0' * (ndim - 1)}"


def put_arrays(place: Place, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays as one blob, with a checksum of the file's name and of them.

    An array whose entries are all equal takes the space of one entry.
    """
    entries, pieces = [], []
    for name, values in arrays.items():
        flat = np.ascontiguousarray(values).reshape(-1)
        constant = flat.size > 1 and bool((flat == flat[0]).all())
        pieces.append((flat[:1] if constant else flat).tobytes())
        entries.append([name, values.dtype.str, values.shape, constant, len(pieces[-1])])
    head = json.dumps(entries).encode()
    body = b"".join([len(head).to_bytes(8, "little"), head, *pieces])
    place.put(body, checksum(body, place.name))


def get_arrays(place: Place) -> dict[str, np.ndarray]:
    """Read arrays that `put_arrays` wrote; they cannot be written to."""
    body = without_checksum(place.get(), place.url, place.name)
    at = 8 + int.from_bytes(body[:8], "little")
    arrays = {}
    for name, dtype, shape, constant, size in json.loads(bytes(body[8:at])):
        values = np.frombuffer(body[at : at + size], dtype)
        arrays[name] = np.broadcast_to(values, shape) if constant else values.reshape(shape)
        at += size
    return arrays
