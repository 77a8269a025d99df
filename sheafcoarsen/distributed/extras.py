"""Packages that only stores need, loaded where one is used, and what to install without them."""

import importlib
from types import ModuleType
from typing import Any

import numpy as np

REMEDY = 'sheaves in stores need it: pip install "sheafcoarsen[distributed]"'


def optional(name: str) -> ModuleType:
    """Return a package of the extra ``distributed``, or say what to install.

    Raises
    ------
    ImportError
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise
        raise ImportError(f"there is no package {name}, but {REMEDY}") from None


def fsspec() -> Any:
    """Return the package that knows file systems and object stores."""
    return optional("fsspec")


def zarr() -> Any:
    """Return the package that reads and writes arrays in chunks."""
    optional("zarr.codecs")
    return optional("zarr")


def zstd() -> Any:
    """Return the compression that comes with zarr."""
    return optional("numcodecs.zstd")


def distributed() -> Any:
    """Return the scheduler's package."""
    return optional("distributed")


def crc32c(data: Any, begin: int = 0) -> int:
    """Return the checksum of bytes, or of an array's memory, that follow those of ``begin``."""
    return int(optional("google_crc32c").extend(begin, np.frombuffer(data, np.uint8)))
