"""Atomic replacement of files: write a temporary file and rename it."""

import contextlib
import functools
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sheafcoarsen._support.checks import file_path

try:
    import fcntl
except ImportError:  # not needed on Windows, where open files cannot be removed
    fcntl = None  # type: ignore[assignment]

TEMPORARY = ".sheafcoarsen-"
"""Prefix of the names of temporary files. The target's name is not included, because it may already
have the maximum length."""


def output_path(path: object) -> Path:
    """Return the target of a path: a regular file, or a new one in an existing folder."""
    given = file_path(path)
    target = Path(os.path.realpath(given) if os.path.islink(given) else given)
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{given}: there is no folder {target.parent}")
    if target.is_dir():
        raise IsADirectoryError(f"{given} is a folder, not a file")
    if os.path.lexists(target) and not stat.S_ISREG(target.lstat().st_mode):
        raise OSError(f"{given} is not a regular file, so it cannot be replaced")
    return target


@contextlib.contextmanager
def replacing(path: object) -> Iterator[BinaryIO]:
    """Open a temporary file; unless an error occurs, it replaces ``path`` and keeps its mode.

    The temporary file is removed after an error. If the process is killed, the next call for the
    same folder removes it.
    """
    target = output_path(path)
    handled = sys.exc_info()[1]  # the caller's exception, where the search for a cause ends
    _remove_abandoned(target.parent)
    # choose the name first, because an interrupt may occur right after the file is created
    name = target.with_name(f"{TEMPORARY}{secrets.token_hex(8)}.tmp")
    try:
        with _temporary_file(name, target) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if fcntl is not None:  # rename before closing, which releases the lock
                os.replace(name, target)
        if fcntl is None:
            os.replace(name, target)
    except BaseException as error:
        name.unlink(missing_ok=True)
        cause = error.__context__
        while cause is not None and cause is not handled:
            # raise the interrupt instead of the error from closing a zipfile after it
            if isinstance(cause, KeyboardInterrupt):
                raise cause from None
            cause = cause.__context__
        raise


def _temporary_file(name: Path, target: Path) -> BinaryIO:
    """Create a file with the mode of the target; it is locked while it is open."""
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    opener = functools.partial(os.open, mode=0o666 if mode is None else mode)
    while True:
        stream = open(name, "xb", opener=opener)  # noqa: SIM115
        if mode is not None:
            os.chmod(name, mode)  # the umask of the process may have cleared bits
        if fcntl is None:
            return stream
        # file systems without locks raise an error; `_remove_abandoned` removes no files there
        with contextlib.suppress(OSError):
            fcntl.flock(stream, fcntl.LOCK_EX)
        if os.fstat(stream.fileno()).st_nlink > 0:  # another process may have removed it
            return stream
        stream.close()


def _remove_abandoned(folder: Path) -> None:
    """Remove temporary files of dead processes, whose locks the system has released."""
    for name in folder.glob(f"{TEMPORARY}*.tmp"):
        with contextlib.suppress(OSError):
            if fcntl is None:
                name.unlink()
                continue
            with open(name, "r+b") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                name.unlink()
