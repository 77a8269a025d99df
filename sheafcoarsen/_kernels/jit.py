"""Decorators that compile kernels, with all numba options, and the digest of all kernel sources.

To decide whether compiled code on disk is stale, numba looks only at the file of the kernel, not at
the functions that the kernel calls. Therefore the name of the compiled code contains a digest of
all kernel modules: a change in one of them compiles every kernel again.

>>> from sheafcoarsen._kernels.jit import digest_of, fingerprint, read_sources
>>> fingerprint() == digest_of(read_sources())
True
"""

import contextlib
import functools
import hashlib
from pathlib import Path

import numba
from numba.core.caching import FunctionCache

JIT_IS_OFF = bool(numba.config.DISABLE_JIT)


def kernel(function, is_cached=True, **options):
    """Compile on first call, to run without the GIL, and cache the code on disk if possible.

    Use ``subkernel``, which compiles faster, for functions that only kernels call.

    There is no ``parallel=True``: kernels take a range of items, and ``_support.threads`` runs
    ranges concurrently. That compiles in a fraction of the time, is serial for small input, and
    gives the same bits for any number of threads. There is no fastmath, because inputs may have
    any scale.
    """
    is_cached = is_cached and not JIT_IS_OFF
    if is_cached:
        # numba names the cache file after the qualified name, which must change with the sources
        function.__qualname__ += f"-{fingerprint()}"
    # no C wrapper, since no kernel is called from C
    common = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    compiled = numba.njit(**common, **options)(function)
    if is_cached:
        with contextlib.suppress(RuntimeError):  # no writable folder: compile in memory
            compiled._cache = KernelCache(function)
    return compiled


borrowing_kernel = functools.partial(kernel, _nrt=False)
"""Compile as ``kernel`` does, without reference counts in the kernel and its callees.

For kernels that allocate no arrays. numba counts references to every array of every tuple passed,
by atomic operations, which took two thirds of the time of an elimination.

numba compiles a callee once, with or without reference counts as its first caller. A callee that
returns an array without counting it would let other kernels free the array of the caller, so
functions that return arrays must be ``numba_inlined``.
"""

subkernel = functools.partial(kernel, no_cpython_wrapper=True)
"""Compile as ``kernel`` does, without a Python wrapper: only kernels may call it.

That saves a tenth of the time of compiling.
"""

reassociating_subkernel = functools.partial(subkernel, fastmath={"reassoc"})
"""Compile as ``subkernel`` does, and let LLVM reassociate sums to vectorize them.

This assumes nothing about NaN, infinities or the sign of zero. Do not add the flag that fuses
products with sums: numba compiles complex multiplication once, with the flags of its first caller,
for all kernels. ``multiply_add`` fuses.
"""

llvm_inlined = functools.partial(subkernel, is_cached=False, forceinline=True)
"""Compile into every caller by LLVM's inliner, so that arrays need not be passed."""

numba_inlined = functools.partial(subkernel, is_cached=False, inline="always")
"""Compile as part of every caller, by numba's own inliner, and not separately.

numba links and optimizes a callee again in every kernel around it. A long function with one or two
callers is typed, lowered and optimized only once this way.
"""


class KernelCache(FunctionCache):
    """Cache of compiled code on disk, ignored if it cannot be read or written."""

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self):  # numba calls it around every read and write
        # ImportError, AttributeError: the code names a class that is in another module now
        with contextlib.suppress(OSError, ImportError, AttributeError):
            yield


@functools.cache
def fingerprint() -> str:
    """Return the digest of all kernel modules, which is part of the file names of compiled code."""
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
