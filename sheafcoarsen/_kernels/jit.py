"""The only place with numba options."""

import numba

from sheafcoarsen._kernels.sources import fingerprint

JIT_IS_OFF = bool(numba.config.DISABLE_JIT)


def kernel(function):
    """Compile on first use, without the GIL, cached on disk where a cache can be written.

    No ``parallel=True``: kernels take a range of items and ``_support.threads`` runs ranges side by
    side. That compiles in a fraction of the time, has a serial path for small work for free, and
    gives the same bits for any number of threads. No fastmath: inputs may be of any scale.
    """
    return _compiled(function, fastmath=False)


def summing_kernel(function):
    """Compile as ``kernel`` does, but let sums be taken in any order, which vectorizing a dot product asks for.

    That makes no assumption on NaN, infinities or the sign of zero. Products must not be fused with
    sums by a flag here: numba compiles complex multiplication once, with the flags of whoever comes
    first, for all kernels. ``multiply_add`` fuses.
    """
    return _compiled(function, fastmath={"reassoc"})


def inlined(function):
    """Compile as ``kernel`` does, into every caller, so that arrays are not handed over on the stack."""
    return numba.njit(nogil=True, error_model="numpy", forceinline=True)(function)


def _compiled(function, **options):
    if not JIT_IS_OFF:
        # numba names the file of the compiled code after it
        function.__qualname__ += f"-{fingerprint(function.__module__)}"
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy", **options)(function)
    except RuntimeError:  # numba found no folder to cache in: compile in memory
        return numba.njit(nogil=True, error_model="numpy", **options)(function)
