"""The arrays of an ``.npz`` file, read as if a stranger had written it.

A file that is not whole or not ours is a ValueError, before anything of a size that the file only
claims is allocated.
"""

import io
import math
import os
import zipfile
from collections.abc import Collection

import numpy as np

HEADER = ("format", "version", "kind")
"""Arrays that every file begins with."""


class RefusedError(ValueError):
    """What is wrong with a file that is whole."""


def read_arrays(
    path: str, newest: int, kinds: Collection[str]
) -> tuple[str, dict[str, np.ndarray]]:
    """Return the kind of object in a file and its arrays."""
    with open(path, "rb") as stream:
        try:
            if stream.read(4) != b"PK\x03\x04":
                raise RefusedError(
                    "not a sheafcoarsen file (an .npz begins otherwise); read_graph and "
                    "read_g2o read graphs"
                )
            with zipfile.ZipFile(stream) as archive:
                members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                header = {
                    name: _member(archive, members[name]) for name in HEADER if name in members
                }
                kind = _kind(header, newest, kinds)
                claimed = sum(info.file_size for info in archive.infolist())
                if claimed > os.fstat(stream.fileno()).st_size:
                    raise RefusedError("its arrays are more than the file holds")
                return kind, {name: _member(archive, info) for name, info in members.items()}
        except RefusedError as error:
            raise ValueError(f"{path}: {error}") from None
        # zipfile and numpy let KeyError, struct.error, MemoryError and others through
        except Exception as error:
            what = " ".join(str(error).split()) or type(error).__name__
            raise ValueError(f"{path}: truncated or damaged ({what})") from None


def _kind(header: dict[str, np.ndarray], newest: int, kinds: Collection[str]) -> str:
    """Return what a file holds, if it is one of ours and not too new."""
    if "format" not in header or text_of(header, "format") != "sheafcoarsen":
        raise RefusedError("not a sheafcoarsen file")
    version = header.get("version", np.array(0))
    if version.shape != () or version.dtype.kind not in "iu" or not 1 <= version <= newest:
        raise RefusedError(
            f"written in format version {version}; this library reads up to {newest}: upgrade "
            f"sheafcoarsen"
        )
    kind = text_of(header, "kind") if "kind" in header else None
    if kind is None or kind not in kinds:
        raise RefusedError(f"holds a {kind!r}, which this version does not know")
    return kind


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    """Return one array, read-only.

    Its bytes are looked at only where they are as many as its header says.
    """
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
        raise RefusedError(
            f"array {info.filename!r} is compressed: write it with numpy.savez, not "
            f"savez_compressed"
        )
    if info.file_size > os.fstat(archive.fp.fileno()).st_size:  # type: ignore[union-attr]
        raise RefusedError("its arrays are more than the file holds")
    content = archive.read(info)
    stream = io.BytesIO(content)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise RefusedError(f"array {info.filename!r} is not of .npy version 1.0")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in "biufcU":
        raise RefusedError(f"array {info.filename!r} holds {dtype}, not numbers or text")
    size = math.prod(shape)
    if min(shape, default=0) < 0 or stream.tell() + size * dtype.itemsize != len(content):
        raise RefusedError(f"array {info.filename!r} is not as long as its shape {shape} says")
    array = np.zeros(0, dtype)
    if size:
        array = np.frombuffer(content, dtype, size, stream.tell())
    if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise RefusedError(f"array {info.filename!r} holds values that are neither true nor false")
    return array.reshape(shape, order="F" if by_columns else "C")


def text_of(arrays: dict[str, np.ndarray], name: str) -> str:
    """Return one array as a line of text."""
    array = arrays[name]
    if array.shape != () or array.dtype.kind != "U" or not str(array).isprintable():
        raise ValueError(f"`{name}` must be one line of text")
    return str(array)
