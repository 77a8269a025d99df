"""Digest of the sources of all kernels.

To decide whether compiled code on disk is stale, numba looks only at the file of the kernel, not at
the functions that the kernel calls. Therefore the name of the compiled code contains a digest of
all kernel modules: a change in one of them compiles every kernel again.

>>> from sheafcoarsen._kernels.cache_key import digest_of, fingerprint, read_sources
>>> fingerprint() == digest_of(read_sources())
True
"""

import functools
import hashlib
from pathlib import Path


@functools.cache
def fingerprint() -> str:
    """Return the digest that the file names of compiled code contain."""
    return digest_of(read_sources())


def digest_of(sources: dict[str, str]) -> str:
    """Return the digest of sources and of the names of their modules.

    Names count because compiled code on disk cannot be read after a NamedTuple that it uses has
    moved to another module.
    """
    digest = hashlib.sha256()
    for name, text in sorted(sources.items()):
        digest.update(f"{name}\n{text}".encode())
    return digest.hexdigest()[:12]


def read_sources() -> dict[str, str]:
    """Return the source texts of all kernel modules, by module name."""
    folder, package = Path(__file__).parent, __name__.rpartition(".")[0]
    sources = {}
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).with_suffix("").parts
        name = ".".join([package, *parts]).removesuffix(".__init__")
        sources[name] = path.read_text(encoding="utf-8")
    return sources
