"""The only place with numba options."""

import contextlib

import numba
from numba.core.caching import FunctionCache

from sheafcoarsen._kernels.cache_key import fingerprint

JIT_IS_OFF = bool(numba.config.DISABLE_JIT)

COMMON = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""No kernel is called from C."""

FROM_KERNELS = {"no_cpython_wrapper": True}
"""The way in from Python takes a tenth of all time to compile."""


def kernel(function):
    """Compile on first use, without the GIL, cached on disk where a cache can be written.

    A kernel that only kernels call is a ``subkernel``, which costs less to compile.

    No ``parallel=True``: kernels take a range of items and ``_support.threads`` runs ranges side by
    side. That compiles in a fraction of the time, has a serial path for small work for free, and
    gives the same bits for any number of threads. No fastmath: inputs may be of any scale.
    """
    return _compiled(function)


def borrowing_kernel(function):
    """Compile as ``kernel`` does, without reference counts, here and in all that it calls.

    For a kernel that makes no arrays. numba counts the references of each array in each tuple that
    is handed over, by atomic operations: two thirds of the time of an elimination.
    """
    return _compiled(function, _nrt=False)


def subkernel(function):
    """Compile as ``kernel`` does, without a way in from Python: only kernels may call it."""
    return _compiled(function, **FROM_KERNELS)


def summing_subkernel(function):
    """Compile as ``subkernel`` does, but let sums be taken in any order, to vectorize them.

    That makes no assumption on NaN, infinities or the sign of zero. Products must not be fused with
    sums by a flag here: numba compiles complex multiplication once, with the flags of whoever comes
    first, for all kernels. ``multiply_add`` fuses.
    """
    return _compiled(function, fastmath={"reassoc"}, **FROM_KERNELS)


def inlined(function):
    """Compile as ``subkernel`` does, into every caller: arrays need not be handed over."""
    return numba.njit(forceinline=True, **COMMON, **FROM_KERNELS)(function)


def pasted(function):
    """Compile as a part of every caller, which should be one or two, and not by itself.

    numba links and optimizes what a kernel calls again in each kernel around it. What is long and
    called at one place is typed, lowered and optimized once this way.
    """
    return numba.njit(inline="always", **COMMON, **FROM_KERNELS)(function)


def _compiled(function, **options):
    if not JIT_IS_OFF:
        # numba names the file of the compiled code after it
        function.__qualname__ += f"-{fingerprint(function.__module__)}"
    compiled = numba.njit(**COMMON, **options)(function)
    if not JIT_IS_OFF:
        with contextlib.suppress(RuntimeError):  # numba found no folder: compile in memory
            compiled._cache = KernelCache(function)
    return compiled


class KernelCache(FunctionCache):
    """Compiled code on disk, passed over if it cannot be read or written, as on a full disk."""

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self):  # around each access
        with contextlib.suppress(OSError):
            yield
