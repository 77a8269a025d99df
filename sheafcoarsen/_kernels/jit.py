"""The only place with numba options."""

import numba

JIT_IS_OFF = bool(numba.config.DISABLE_JIT)


def kernel(function):
    """Compile on first use, without the GIL, cached on disk where a cache can be written.

    No ``parallel=True``: kernels take a range of items and ``_threads`` runs ranges side by side. That compiles in a
    fraction of the time, has a serial path for small work for free, and gives the same bits for any number of threads.
    No fastmath: inputs may be of any scale.
    """
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no folder to cache in: compile in memory
        return numba.njit(nogil=True, error_model="numpy")(function)


def inlined(function):
    """As `kernel`, for parts of kernels: compiled into every caller, so that arrays are not handed over on the stack."""
    return numba.njit(nogil=True, error_model="numpy", forceinline=True)(function)
