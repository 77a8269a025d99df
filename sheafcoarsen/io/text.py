"""Text files, plain or gzipped, as lines and numbers; errors that begin with path and line."""

import contextlib
import gzip
import os
import re
import traceback
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import BinaryIO, TypeAlias, cast

import numpy as np

from sheafcoarsen._support import checks, tables

BLOCK = 2**18
"""Number of bytes that are read at a time."""

LONGEST = 2**28
"""Maximum length of a line. It keeps small compressed files from exhausting memory."""

Lines: TypeAlias = Sequence[int] | np.ndarray
"""Numbers of lines."""


class FileError(ValueError):
    """Error in a file's contents; `reading` prefixes its message with the path and the line."""

    def __init__(self, message: str, line: int | None = None):
        super().__init__(message)
        self.line = line


@contextlib.contextmanager
def reading(where: str, refusal: type[ValueError] = ValueError) -> Iterator[None]:
    """Turn errors about invalid contents into a one-line error that begins with the path."""
    try:
        yield
    except (KeyError, TypeError, ValueError) as error:
        if refusal is not ValueError and isinstance(error, refusal):
            raise
        line = error.line if isinstance(error, FileError) else None
        place = where if line is None else f"{where}:{line}"
        what = f"has no array {error}" if isinstance(error, KeyError) else str(error)
        traceback.clear_frames(error.__traceback__)  # closes a file with unread lines
        raise refusal(tables.printable(f"{place}: {' '.join(what.split())}")) from None


def reader_of(path: str, readers: Mapping[str, Callable], name: str, others: str = "") -> Callable:
    """Return the reader for a path's file extension, which may be followed by ``.gz``."""
    stem = path[:-3] if path.lower().endswith(".gz") else path
    ending = os.path.splitext(stem)[1].lower()
    if ending not in readers:
        raise FileError(
            f"unknown file extension {ending!r}; {name} reads {', '.join(readers)}, each also "
            f"gzipped (.gz){others}"
        )
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
        raise FileError("the gzip file is truncated: fetch or write it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise FileError(f"not a gzip file, or a damaged one: {error}") from None


def read_lines(path: str) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without line terminators, reading it in blocks."""
    number = 1
    with opened(path) as file:
        # blocks end with a line, so that they can be decoded and split one by one
        for block in iter(lambda: file.read(BLOCK) + file.readline(LONGEST), b""):
            try:
                text = block.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                before, bad = error.object[: error.start], error.object[error.start]
                gzipped = number == 1 and block.startswith(b"\x1f\x8b")
                hint = "; it is gzipped, so its name must end in .gz" if gzipped else ""
                message = f"not a text file: byte 0x{bad:02x} is not UTF-8{hint}"
                raise FileError(message, number + len(re.findall(b"\r\n?|\n", before))) from None
            if len(block) >= BLOCK + LONGEST and not text.endswith("\n"):
                message = f"more than {LONGEST:,} bytes without an end of line: not a text file"
                raise FileError(message, number + text.count("\n"))
            lines = re.split("\r\n?|\n", text) if "\r" in text else text.split("\n")
            if not lines[-1]:
                del lines[-1]
            yield from lines
            number += len(lines)


def parsed(kind: type, words: list[str], lines: Lines, what: str) -> list:
    """Convert words, the same number from each line, to Python's int, of any size, or to float.

    The error names the first invalid word, which is ``what``, and its line.
    """
    text = "".join(words)
    if text.isascii() and "_" not in text:  # int and float accept 1_000 and other digits
        try:
            return list(map(kind, words))
        except ValueError:
            pass
    if len(words) == 1:
        wanted = "a whole number" if kind is int else "a number"
        raise FileError(f"{what} must be {wanted}, got {shown(text)}", lines[0])
    # one by one, so that the error names the first invalid word
    pairs = zip(words, np.repeat(lines, len(words) // len(lines)), strict=True)
    return [parsed(kind, [word], [line], what)[0] for word, line in pairs]


def ordinals(words: list[str], lines: Lines, what: str, n: int) -> np.ndarray:
    """Convert words, the same number from each line, from 1 .. n to indices 0 .. n - 1."""
    values = parsed(int, words, lines, what)
    if values and not 1 <= min(values) <= max(values) <= n:
        bad = next(k for k, value in enumerate(values) if not 1 <= value <= n)
        message = f"{what} is out of range, got {shown(words[bad])}; they count from 1 to {n}"
        raise FileError(message, lines[bad * len(lines) // len(words)])
    return np.array(values, dtype=np.int64) - 1


def numbers(words: list[str], lines: Lines, what: str) -> np.ndarray:
    """Convert words, the same number from each line, to finite float64 numbers."""
    values = np.array(parsed(float, words, lines, what), dtype=np.float64)
    if (bad := checks.first_true(~np.isfinite(values))) is not None:
        message = f"{what} must be finite, got {shown(words[bad])}"
        raise FileError(message, lines[bad * len(lines) // len(words)])
    return values
