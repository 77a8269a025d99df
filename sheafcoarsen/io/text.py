"""Text files, plain or gzipped, as lines and numbers; error messages begin with path and line."""

import contextlib
import gzip
import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, TypeVar, cast

import numpy as np

from sheafcoarsen._support import first_true, tables

BLOCK = 2**18
"""Number of bytes that are read at a time."""

LONGEST = 2**28
"""Maximum length of a line in bytes. It keeps small compressed files from exhausting memory."""

Reader = TypeVar("Reader", bound=Callable)


def file_error(path: str, line: int | None, message: str) -> ValueError:
    """Return the error for an unusable file, as one line ``path:line: message``."""
    place = path if line is None else f"{path}:{line}"
    return ValueError(tables.printable(f"{place}: {' '.join(message.split())}"))


def reader_of(path: str, readers: Mapping[str, Reader], name: str, others: str = "") -> Reader:
    """Return the reader for a path's file extension, which may be followed by ``.gz``."""
    stem = path[:-3] if path.lower().endswith(".gz") else path
    ending = os.path.splitext(stem)[1].lower()
    if ending not in readers:
        message = (
            f"unknown file extension {ending!r}; {name} reads {', '.join(readers)}, each also "
            f"gzipped (.gz){others}"
        )
        raise file_error(path, None, message)
    return readers[ending]


def shown(word: str) -> str:
    """Quote a word of a file for an error message, abbreviated if it is long."""
    return repr(word if len(word) <= 40 else word[:37] + "...")


@contextlib.contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open a file for reading; decompress it if its name ends in ``.gz``."""
    if not path.lower().endswith(".gz"):
        with open(path, "rb") as file:
            yield file
        return
    try:
        with gzip.open(path, "rb") as unpacked:
            yield cast(BinaryIO, unpacked)
    except EOFError:
        message = "the gzip file is truncated: fetch or write it again"
        raise file_error(path, None, message) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise file_error(path, None, f"not a gzip file, or a damaged one: {error}") from None


def read_lines(path: str) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without line ends, reading in blocks."""
    before, parts = 0, []
    with opened(path) as file:
        while block := file.read(BLOCK):
            # no cut after a final \r, because the next block may begin with its \n
            cut = max(block.rfind(b"\n"), block.rfind(b"\r", 0, -1)) + 1
            parts.append(block[:cut] or block)
            if cut:
                lines = _decoded(path, b"".join(parts), before)
                yield from lines
                before, parts = before + len(lines), [block[cut:]]
            elif sum(map(len, parts)) > LONGEST:
                message = f"more than {LONGEST:,} bytes without an end of line: not a text file"
                raise file_error(path, before + 1, message)
        if any(parts):
            yield from _decoded(path, b"".join(parts), before)


def _decoded(path: str, content: bytes, before: int) -> list[str]:
    """Return the lines of one block of a file; ``before`` lines of the file precede the block."""
    try:
        text = content.decode("utf-8" if before else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = before + 1 + _with_newlines(error.object[: error.start].decode("latin1")).count("\n")
        byte = error.object[error.start]
        gzipped = not before and content[:2] == b"\x1f\x8b"
        hint = "; it is gzipped, so its name must end in .gz" if gzipped else ""
        message = f"not a text file: byte 0x{byte:02x} is not UTF-8{hint}"
        raise file_error(path, line, message) from None
    # not str.splitlines, which also ends lines at form feeds, so line numbers would differ
    return _with_newlines(text).removesuffix("\n").split("\n")


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Words:
    """Words of one kind from the lines of a file; ``what`` names such a word in errors."""

    def __init__(self, path: str, what: str):
        self.path = path
        self.what = what
        self.words: list[str] = []
        self.lines: list[int] = []
        self.ends: list[int] = []  # offset in `words` of the end of each line

    def add(self, line: int, words: list[str]) -> None:
        """Append the words of a line."""
        self.words += words
        self.lines.append(line)
        self.ends.append(len(self.words))

    def line(self, k: int) -> int:
        """Return the line number of word k."""
        return self.lines[bisect_right(self.ends, k)]

    def integers(self) -> list[int]:
        """Return the words as Python integers of any size."""
        return self._convert(int, "a whole number")

    def indices(self, n: int) -> np.ndarray:
        """Return the words, which must be integers from 1 to n, as indices from 0."""
        numbers = self.integers()
        if numbers and not (min(numbers) >= 1 and max(numbers) <= n):
            k = next(k for k, v in enumerate(numbers) if not 1 <= v <= n)
            message = f"{self.what} is out of range, got {shown(self.words[k])}"
            raise file_error(self.path, self.line(k), f"{message}; they count from 1 to {n}")
        return np.array(numbers, dtype=np.int64) - 1

    def numbers(self) -> np.ndarray:
        """Return the words as an array of finite float64 numbers."""
        values = np.array(self._convert(float, "a number"), dtype=np.float64)
        if (k := first_true(~np.isfinite(values))) is not None:
            message = f"{self.what} must be finite, got {shown(self.words[k])}"
            raise file_error(self.path, self.line(k), message)
        return values

    def _convert(self, kind: Callable, wanted: str) -> list:
        if _plain("".join(self.words)):
            try:
                return list(map(kind, self.words))
            except ValueError:
                pass
        for k, word in enumerate(self.words):
            try:
                if _plain(word):
                    kind(word)
                    continue
            except ValueError:
                pass
            message = f"{self.what} must be {wanted}, got {shown(word)}"
            raise file_error(self.path, self.line(k), message)
        raise AssertionError("each word converts by itself, but all words do not")


def _plain(text: str) -> bool:
    """Return whether ``text`` is ASCII without underscores (int accepts 1_000 and other digits)."""
    return text.isascii() and "_" not in text
