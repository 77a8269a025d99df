"""The only place with numba options."""

import hashlib
from pathlib import Path

import numba

JIT_IS_OFF = bool(numba.config.DISABLE_JIT)


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


SOURCES = _fingerprint()
"""Of all kernels together. numba looks only at the file of the outermost one when it asks whether compiled code is stale."""


def kernel(function):
    """Compile on first use, without the GIL, cached on disk where a cache can be written.

    No ``parallel=True``: kernels take a range of items and ``_threads`` runs ranges side by side. That compiles in a
    fraction of the time, has a serial path for small work for free, and gives the same bits for any number of threads.
    No fastmath: inputs may be of any scale.
    """
    return _compiled(function, fastmath=False)


def summing_kernel(function):
    """Compile as ``kernel`` does, but let sums be taken in any order and products be added without rounding them first.

    That is what vectorizing a dot product asks for. It makes no assumption on NaN, infinities or the sign of zero.
    """
    return _compiled(function, fastmath={"reassoc", "contract"})


def inlined(function):
    """Compile as ``kernel`` does, into every caller, so that arrays are not handed over on the stack."""
    return numba.njit(nogil=True, error_model="numpy", forceinline=True)(function)


def _compiled(function, **options):
    if not JIT_IS_OFF:
        function.__qualname__ += f"-{SOURCES}"  # numba names the file of the compiled code after it
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy", **options)(function)
    except RuntimeError:  # numba found no folder to cache in: compile in memory
        return numba.njit(nogil=True, error_model="numpy", **options)(function)
