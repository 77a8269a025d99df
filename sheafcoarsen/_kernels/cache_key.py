"""Which sources a compiled kernel depends on.

numba looks only at the file of a kernel when it asks whether its compiled code on disk is stale,
and not at what that kernel calls. So a digest of every kernel module that a module imports, at any
remove, goes into the name of the compiled code. To edit one folder leaves the code of those beside
and below it as it is.

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
"""The one form in which a kernel module imports another one."""

LAYOUT = re.compile(r"^class \w+\(NamedTuple\):\n(?:[ \t].*\n|\n)*", re.MULTILINE)
"""A tuple of arrays: the order of its entries is compiled into every kernel that reads one.

Its module is, too: compiled code on disk names it, and cannot be read once it has moved.
"""


@functools.cache
def fingerprint(module: str) -> str:
    """Return the digest that code compiled from this module is named after."""
    return digest_of(module, read_sources())


def digest_of(module: str, sources: dict[str, str]) -> str:
    """Return the digest of all that code compiled from ``module`` depends on."""
    names = needed(module, sources) if module in sources else set(sources)
    digest = hashlib.sha256(_layouts(tuple(sources.items())))
    for name in sorted(names | {f"{PACKAGE}.jit"}):
        digest.update(f"{name}\n{sources[name]}".encode())
    return digest.hexdigest()[:12]


def needed(module: str, sources: dict[str, str]) -> set[str]:
    """Return the kernel modules that ``module`` imports at any remove, itself included."""
    found, waiting = set(), [module]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            for other, names in _imports(sources[module]):
                waiting += [_home(other, name, sources) for name in names]
    return found


def _home(module: str, name: str, sources: dict[str, str]) -> str:
    """Return the module that holds a name, past the doors of folders."""
    if f"{module}.{name}" in sources:
        return f"{module}.{name}"
    for other, names in _imports(sources[module]):
        if name in names:
            return _home(other, name, sources)
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
    """Return the text of every kernel module by its name."""
    sources = {}
    for path in FOLDER.rglob("*.py"):
        parts = path.relative_to(FOLDER).with_suffix("").parts
        name = ".".join([PACKAGE, *parts]).removesuffix(".__init__")
        sources[name] = path.read_text(encoding="utf-8")
    return sources
