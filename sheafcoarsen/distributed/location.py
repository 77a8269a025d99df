"""Locations of stores: blobs and records; lazy imports of the extra ``distributed``."""

import contextlib
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sheafcoarsen._support import checks


def optional(name: str) -> Any:
    """Import a module of the extra ``distributed``, or raise an error with the install command."""
    message = (
        f"the package {name.partition('.')[0]} is not installed, but stored sheaves require it: "
        f'pip install "sheafcoarsen[distributed]"'
    )
    return checks.optional_module(name, message)


def crc32c(data: Any, begin: int = 0) -> int:
    """Return the CRC-32C checksum of bytes or of an array, continuing from checksum ``begin``."""
    return int(optional("google_crc32c").extend(begin, np.frombuffer(data, np.uint8)))


def checksum(data: Any, name: str | None = None) -> bytes:
    """Return the checksum to append to ``data``; it also covers the file's ``name`` if given."""
    begin = 0 if name is None else crc32c(name.encode())
    return crc32c(data, begin).to_bytes(4, "little")


def without_checksum(data: bytes, what: str, name: str | None = None) -> memoryview:
    """Return data without the appended checksum; raise an error if the checksum is wrong."""
    body = memoryview(data)[:-4]
    if len(data) < 4 or checksum(body, name) != data[-4:]:
        raise StoreError(f"{what} is damaged: its checksum is wrong")
    return body


class StoreError(ValueError):
    """Error for a store that is missing, unfinished, damaged or of an unsupported version.

    Examples
    --------
    >>> import sheafcoarsen.distributed as dist
    >>> try:
    ...     dist.open_store("memory://nothing-here")
    ... except dist.StoreError as error:
    ...     print(error)
    memory://nothing-here: there is no store
    """


@dataclass(frozen=True)
class Place:
    """Location of a store or of a file in it: a local path or an fsspec URL, and options."""

    url: str
    options: dict[str, Any] = field(default_factory=dict)

    def __truediv__(self, name: str) -> "Place":
        return Place(f"{self.url.rstrip('/')}/{name}", self.options)

    def file_system(self) -> tuple[Any, str]:
        """Return the file system, without a cache of listings, and the path in it."""
        fs, path = optional("fsspec").core.url_to_fs(self.url, **self.options)
        fs.invalidate_cache()
        return fs, path

    @property
    def local_path(self) -> str | None:
        """The URL if it is a local path, else None."""
        if "://" not in self.url and "::" not in self.url:
            return self.url
        return None

    @property
    def folder(self) -> str:
        """The resolved URL of a folder, which is a prefix of the URLs of its files."""
        path = self.local_path
        return (self.url if path is None else os.path.realpath(path)).rstrip("/") + "/"

    @property
    def origin(self) -> str:
        """File system and host or bucket; URLs named in a store must have the store's origin."""
        if self.local_path is not None:
            return "this machine's disks"
        protocol, _, path = self.url.rpartition("://")
        return protocol if protocol == "memory" else f"{protocol}://{path.partition('/')[0]}"

    def remove(self) -> None:
        """Remove a file or a folder; ignore errors, since a late worker may keep a file open."""
        fs, path = self.file_system()
        try:
            if fs.exists(path):
                fs.rm(path, recursive=True)
        except OSError:
            return

    def names(self) -> set[str]:
        """Return the names in a folder, or an empty set if the folder does not exist."""
        fs, path = self.file_system()
        try:
            found = fs.ls(path, detail=False)
        except FileNotFoundError:
            return set()
        return {name.rstrip("/").rsplit("/", 1)[-1] for name in found}

    def put(self, *pieces: Any) -> None:
        """Write a blob that consists of one or more pieces."""
        fs, path = self.file_system()
        with failures(self, "written"):
            fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            with fs.open(path, "wb") as file:
                for data in pieces:
                    file.write(data)

    def find(self) -> bytes | None:
        """Return the content of a blob, or None if it does not exist."""
        fs, path = self.file_system()
        try:
            return fs.cat_file(path)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None

    def slices(self, names: list[str], starts: list[int], stops: list[int]) -> list[bytes]:
        """Return byte ranges of blobs in this folder, fetched concurrently if possible."""
        fs, path = self.file_system()
        paths = [f"{path}/{name}" for name in names]
        try:
            return fs.cat_ranges(paths, starts, stops, on_error="raise")
        except FileNotFoundError as error:
            raise StoreError(f"{self.url}: a blob is missing: {error}") from None

    def put_record(self, **record: Any) -> None:
        """Write JSON values and arrays as one file, with a checksum of its name and content.

        The first line is a JSON object, in which an array is its type, shape and size in bytes; the
        arrays follow. Files that the record names must already be written.
        """
        arrays = {name: value for name, value in record.items() if isinstance(value, np.ndarray)}
        head = {name: value for name, value in record.items() if name not in arrays}
        if arrays:
            head["arrays"] = {n: (a.dtype.str, a.shape, a.nbytes) for n, a in arrays.items()}
        body = b"".join([json.dumps(head).encode(), b"\n", *(a.tobytes() for a in arrays.values())])
        self.put(body, checksum(body, self.url.rpartition("/")[2]))

    def record(self) -> dict[str, Any]:
        """Return what `put_record` wrote; an npz file would take 30 times as long."""
        content = self.find()
        if content is None:
            raise StoreError(f"{self.url} is missing")
        body = without_checksum(content, self.url, self.url.rpartition("/")[2])
        end = content.find(b"\n", 0, len(body))
        end = len(body) if end < 0 else end  # notes of earlier versions do not end their line
        record: dict[str, Any] = json.loads(content[:end])
        begin = end + 1
        for name, (dtype, shape, size) in record.pop("arrays", {}).items():
            values = np.frombuffer(body[begin : begin + size], dtype)
            record[name] = values.reshape(shape).copy()  # kernels require aligned arrays
            begin += size
        return record

    def find_record(self) -> dict[str, Any] | None:
        """Return what `put_record` wrote, or None if it is missing or incomplete."""
        try:
            return self.record()
        except StoreError:
            return None


def place_of(url: object, options: dict[str, Any] | None = None, name: str = "url") -> Place:
    """Return the location of a path or URL; paths become absolute, because workers use them too."""
    if isinstance(url, bytes) or not isinstance(url, str | os.PathLike):
        raise TypeError(f"`{name}` must be a path or a URL, got {type(url).__name__}")
    text = os.fsdecode(url)
    if not text:
        raise ValueError(f"`{name}` must name a folder, got an empty path")
    text = text.removeprefix("file://")
    if "://" not in text and "::" not in text:
        text = os.path.abspath(text)
        if options:
            raise TypeError(
                f"`{name}` = {text} is a path on this machine's disks, which takes no option "
                f"`{next(iter(options))}`: omit the option, or pass a URL such as s3://..."
            )
    for part in text.split("::"):
        protocol, found, _ = part.partition("://")
        fsspec = optional("fsspec")
        if found and protocol not in {*fsspec.available_protocols(), *fsspec.registry}:
            raise ValueError(
                f"`{name}` = {text!r}: fsspec has no protocol {protocol!r}; a path on this "
                f"machine's disks must not contain '://'"
            )
    return Place(text, dict(options or {}))


@contextlib.contextmanager
def failures(place: Place, what: str) -> Iterator[None]:
    """Add the location to system errors that name no file, such as the one for a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or isinstance(error, FileNotFoundError):
            raise
        message = error.strerror or str(error)
        raise type(error)(error.errno, f"{place.url} cannot be {what}: {message}") from error


def fresh_name(name: str) -> str:
    """Return a unique file name; if a task runs twice, its record names the valid file."""
    return f"{name}-{uuid.uuid4().hex[:8]}"
