"""Writes a file beside its place and renames it: whatever happens, an old file stays whole."""

import contextlib
import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sheafcoarsen._support.checks import file_path


def output_path(path: object) -> Path:
    """Return a path that a file can be written to, or say why not."""
    target = Path(file_path(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {target.parent}")
    if target.is_dir():
        raise IsADirectoryError(f"{target}: is a folder, not a file")
    return target


@contextlib.contextmanager
def replacing(path: object) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of ``path`` when all has gone well.

    Otherwise nothing is left behind.
    """
    target = output_path(path)
    handled = sys.exc_info()[1]  # what the caller is busy with is not ours
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(beside, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, target)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        cause = error.__context__
        while cause is not None and cause is not handled:
            # zipfile complains that it cannot close what was interrupted
            if isinstance(cause, KeyboardInterrupt):
                raise cause from None
            cause = cause.__context__
        raise
