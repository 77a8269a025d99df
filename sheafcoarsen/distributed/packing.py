"""Named arrays as one blob with a checksum: what a task is told, in one read."""

import json

import numpy as np

from sheafcoarsen.distributed.extras import crc32c
from sheafcoarsen.distributed.place import Place, StoreError


def pack(arrays: dict[str, np.ndarray]) -> bytes:
    """Return the arrays as bytes; one whose entries are all equal takes the room of one entry."""
    entries, pieces = [], []
    for name, values in arrays.items():
        flat = np.ascontiguousarray(values).reshape(-1)
        constant = flat.size > 1 and bool((flat == flat[0]).all())
        pieces.append((flat[:1] if constant else flat).tobytes())
        entries.append([name, values.dtype.str, values.shape, constant, len(pieces[-1])])
    head = json.dumps(entries).encode()
    body = b"".join([len(head).to_bytes(8, "little"), head, *pieces])
    return body + crc32c(body).to_bytes(4, "little")


def unpack(data: bytes, where: str) -> dict[str, np.ndarray]:
    """Return the arrays of a blob that `pack` made, or say that it is damaged.

    Raises
    ------
    StoreError
    """
    body = memoryview(data)[:-4]
    if len(data) < 12 or crc32c(body) != int.from_bytes(data[-4:], "little"):
        raise StoreError(f"{where} is damaged: its checksum is wrong")
    at = 8 + int.from_bytes(body[:8], "little")
    arrays = {}
    for name, dtype, shape, constant, size in json.loads(bytes(body[8:at])):
        values = np.frombuffer(body[at : at + size], dtype)
        arrays[name] = np.broadcast_to(values, shape) if constant else values.reshape(shape)
        at += size
    return arrays


def put_arrays(place: Place, arrays: dict[str, np.ndarray]) -> None:
    """Write arrays as one blob."""
    place.put(pack(arrays))


def get_arrays(place: Place) -> dict[str, np.ndarray]:
    """Read arrays that `put_arrays` wrote; they cannot be written to."""
    return unpack(place.get(), place.url)
