"""Digest of the sources that a compiled kernel depends on.

To decide whether compiled code on disk is stale, numba looks only at the file of the kernel, not at
the functions that the kernel calls. Therefore the name of the compiled code contains a digest of
all kernel modules that its module imports, directly or indirectly. Editing one package does not
invalidate the compiled code of packages that do not import it.

>>> from sheafcoarsen._kernels.cache_key import fingerprint
>>> one, other = (fingerprint(f"sheafcoarsen._kernels.{name}") for name in ("arrays", "jit"))
>>> one == other
False
"""

import functools
import hashlib
import re
from pathlib import Path

PACKAGE = "sheafcoarsen._kernels"
FOLDER = Path(__file__).parent

IMPORT = re.compile(
    rf"^from {re.escape(PACKAGE)}([\w.]*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE
)
"""Regular expression for the only form in which a kernel module may import another one."""

LAYOUT = re.compile(r"^class \w+\(NamedTuple\):\n(?:[ \t].*\n|\n)*", re.MULTILINE)
"""Regular expression for a NamedTuple; kernels that read one depend on its order of fields.

Compiled code on disk also names the tuple's module, and cannot be read after the class has moved.
"""


@functools.cache
def fingerprint(module: str) -> str:
    """Return the digest that the file names of a module's compiled code contain."""
    return digest_of(module, read_sources())


def digest_of(module: str, sources: dict[str, str]) -> str:
    """Return the digest of all sources that the code compiled from ``module`` depends on."""
    names = needed(module, sources) if module in sources else set(sources)
    digest = hashlib.sha256(_layouts(tuple(sources.items())))
    for name in sorted(names | {f"{PACKAGE}.jit"}):
        digest.update(f"{name}\n{sources[name]}".encode())
    return digest.hexdigest()[:12]


def needed(module: str, sources: dict[str, str]) -> set[str]:
    """Return ``module`` and the kernel modules that it imports, directly or indirectly."""
    visited, pending = set(), [module]
    while pending:
        module = pending.pop()
        if module not in visited:
            visited.add(module)
            for target, names in _imports(sources[module]):
                pending += [_defining_module(target, name, sources) for name in names]
    return visited


def _defining_module(module: str, name: str, sources: dict[str, str]) -> str:
    """Return the module that defines a name, which an ``__init__`` may re-export."""
    if f"{module}.{name}" in sources:
        return f"{module}.{name}"
    for other, names in _imports(sources[module]):
        if name in names:
            return _defining_module(other, name, sources)
    return module


@functools.cache
def _layouts(sources: tuple[tuple[str, str], ...]) -> bytes:
    found = ((name, text) for name, source in sources for text in LAYOUT.findall(source))
    return "".join(f"{name}\n{text}" for name, text in sorted(found)).encode()


@functools.cache
def _imports(source: str) -> list[tuple[str, list[str]]]:
    return [
        (PACKAGE + tail, (several or one).replace(",", " ").split())
        for tail, several, one in IMPORT.findall(source)
    ]


@functools.cache
def read_sources() -> dict[str, str]:
    """Return the source texts of all kernel modules, by module name."""
    sources = {}
    for path in FOLDER.rglob("*.py"):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        name = ".".join([PACKAGE, *parts]).removesuffix(".__init__")
        sources[name] = path.read_text(encoding="utf-8")
    return sources
