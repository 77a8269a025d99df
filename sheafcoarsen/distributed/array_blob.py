"""Named arrays as one blob with a checksum: what a task is told, in one read."""

import json
from typing import Any

import numpy as np

from sheafcoarsen.distributed.extras import crc32c
from sheafcoarsen.distributed.location import Place, StoreError


def pack(url: str, arrays: dict[str, np.ndarray]) -> bytes:
    """Return the arrays as bytes, with a checksum of the file's name and of them.

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
    return body + _check(url, body).to_bytes(4, "little")


def unpack(url: str, data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays of a blob that `pack` made for a file of this name.

    Raises
    ------
    StoreError
    """
    body = memoryview(data)[:-4]
    if len(data) < 12 or _check(url, body) != int.from_bytes(data[-4:], "little"):
        raise StoreError(f"{url} is damaged: its checksum is wrong")
    at = 8 + int.from_bytes(body[:8], "little")
    arrays = {}
    for name, dtype, shape, constant, size in json.loads(bytes(body[8:at])):
        values = np.frombuffer(body[at : at + size], dtype)
        arrays[name] = np.broadcast_to(values, shape) if constant else values.reshape(shape)
        at += size
    return arrays


def put_arrays(place: Place, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays as one blob."""
    place.put(pack(place.url, arrays))


def get_arrays(place: Place) -> dict[str, np.ndarray]:
    """Read arrays that `put_arrays` wrote; they cannot be written to."""
    return unpack(place.url, place.get())


def _check(url: str, body: Any) -> int:
    return crc32c(body, crc32c(url.rpartition("/")[2].encode()))
