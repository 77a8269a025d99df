"""Arrays of a store: Zarr arrays of format 3, of the one layout that this library writes.

Metadata and chunks are written and read here, without zarr-python, whose machinery takes as long as
the work on a shard's small arrays; zarr-python, or anything else that knows the format, reads them.
"""

import json
from typing import Any

import numpy as np

from sheafcoarsen.distributed.extras import crc32c, zstd
from sheafcoarsen.distributed.place import Place, StoreError

CHUNK = 1 << 20
"""Entries of a chunk of the topology."""

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
CRC = {"name": "crc32c"}


def write_array(place: Place, name: str, values: np.ndarray, *, packed: bool = True) -> None:
    """Write one array, each chunk with a checksum; ``packed`` for integers, which compress well.

    To other readers a chunk that is lost is NaN or -1, which no array holds, and never 0.
    """
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    here = place / name
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
        "attributes": {},
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
            raw = np.frombuffer(zstd().compress(raw, 1), np.uint8)
        (here / _chunk(k, values.ndim)).put(raw.data, crc32c(raw).to_bytes(4, "little"))


def read_array(place: Place, name: str, what: str = "") -> np.ndarray:
    """Read an array whole; a chunk that is damaged or missing is an error that names it.

    Maps are one chunk and what was read of it, which cannot be written to.

    Raises
    ------
    StoreError
    """
    where = f"{place.url}: {what + ': ' if what else ''}"
    shape, dtype, chunk, packed = _described(place / name, name, where)
    values = np.empty(shape if packed else (0, *shape[1:]), dtype)
    for k in range(-(-shape[0] // chunk)):
        file = f"{name}/{_chunk(k, len(shape))}"
        raw = (place / file).find()
        if raw is None:
            raise StoreError(f"{where}the chunk {file} is missing")
        body = memoryview(raw)[:-4]
        if crc32c(body) != int.from_bytes(raw[-4:], "little"):
            raise StoreError(f"{where}the chunk {file} is damaged: its checksum is wrong")
        try:
            found = np.frombuffer(zstd().decompress(body) if packed else body, dtype)
            found = found.reshape(chunk, *shape[1:])
        except (ValueError, RuntimeError) as error:
            raise StoreError(f"{where}the chunk {file} is damaged: {error}") from None
        if packed:
            room = values[k * chunk : (k + 1) * chunk]
            room[:] = found[: len(room)]
        else:
            values = found
    return values


def _described(here: Place, name: str, where: str) -> tuple[tuple[int, ...], np.dtype, int, bool]:
    """Return shape, scalar type and entries of a chunk, and whether chunks are compressed."""
    text = (here / "zarr.json").find()
    if text is None:
        raise StoreError(f"{where}the array {name} is missing")
    try:
        found = json.loads(text)
        codecs = [codec["name"] for codec in found["codecs"]]
        shape = tuple(int(size) for size in found["shape"])
        chunk = found["chunk_grid"]["configuration"]["chunk_shape"]
        dtype = np.dtype(found["data_type"]).newbyteorder("<")
        known = codecs in (["bytes", "crc32c"], ["bytes", "zstd", "crc32c"])
        whole = tuple(chunk[1:]) == shape[1:] and 0 < chunk[0] <= max(shape[0], 1)
        if not known or not whole or ("zstd" not in codecs and chunk[0] < shape[0]):
            raise ValueError(f"its chunks are not those of this library: {codecs}, {chunk}")
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise StoreError(f"{where}the array {name} cannot be read: {error}") from None
    return shape, dtype, int(chunk[0]), "zstd" in codecs


def _chunk(k: int, ndim: int) -> str:
    return f"c/{k}{'/0' * (ndim - 1)}"
