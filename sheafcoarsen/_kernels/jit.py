"""Decorators that compile kernels, with all numba options."""

import contextlib

import numba
from numba.core.caching import FunctionCache

from sheafcoarsen._kernels.cache_key import fingerprint

JIT_IS_OFF = bool(numba.config.DISABLE_JIT)

COMMON = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""Options of every kernel; no C wrapper, since no kernel is called from C."""

FROM_KERNELS = {"no_cpython_wrapper": True}
"""Option of kernels that only kernels call: no Python wrapper, which saves a tenth of compiling."""


def kernel(function):
    """Compile on first call, to run without the GIL, and cache the code on disk if possible.

    Use ``subkernel``, which compiles faster, for functions that only kernels call.

    There is no ``parallel=True``: kernels take a range of items, and ``_support.threads`` runs
    ranges concurrently. That compiles in a fraction of the time, is serial for small input, and
    gives the same bits for any number of threads. There is no fastmath, because inputs may have
    any scale.
    """
    return _compiled(function)


def borrowing_kernel(function):
    """Compile as ``kernel`` does, without reference counts in the kernel and its callees.

    For kernels that allocate no arrays. numba counts references to every array of every tuple
    passed, by atomic operations, which took two thirds of the time of an elimination.
    """
    return _compiled(function, _nrt=False)


def subkernel(function):
    """Compile as ``kernel`` does, without a Python wrapper: only kernels may call it."""
    return _compiled(function, **FROM_KERNELS)


def reassociating_subkernel(function):
    """Compile as ``subkernel`` does, and let LLVM reassociate sums to vectorize them.

    This assumes nothing about NaN, infinities or the sign of zero. Do not add the flag that fuses
    products with sums: numba compiles complex multiplication once, with the flags of its first
    caller, for all kernels. ``multiply_add`` fuses.
    """
    return _compiled(function, fastmath={"reassoc"}, **FROM_KERNELS)


def llvm_inlined(function):
    """Compile into every caller by LLVM's inliner, so that arrays need not be passed."""
    return numba.njit(forceinline=True, **COMMON, **FROM_KERNELS)(function)


def numba_inlined(function):
    """Compile as part of every caller, by numba's own inliner, and not separately.

    numba links and optimizes a callee again in every kernel around it. A long function with one
    or two callers is typed, lowered and optimized only once this way.
    """
    return numba.njit(inline="always", **COMMON, **FROM_KERNELS)(function)


def _compiled(function, **options):
    if not JIT_IS_OFF:
        # numba names the cache file after the qualified name, which must change with the sources
        function.__qualname__ += f"-{fingerprint()}"
    compiled = numba.njit(**COMMON, **options)(function)
    if not JIT_IS_OFF:
        with contextlib.suppress(RuntimeError):  # no writable folder: compile in memory
            compiled._cache = KernelCache(function)
    return compiled


class KernelCache(FunctionCache):
    """Cache of compiled code on disk, ignored if it cannot be read or written."""

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self):  # numba calls it around every read and write
        with contextlib.suppress(OSError):
            yield
