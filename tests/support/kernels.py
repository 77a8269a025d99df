"""Python access to kernels that only other kernels call."""

import functools

import numba

from sheafcoarsen._kernels.jit import JIT_IS_OFF


@functools.cache
def from_python(subkernel):
    """Return a subkernel, compiled again so that Python can call it."""
    if JIT_IS_OFF:
        return subkernel
    options = {"nogil": True, "error_model": "numpy"}
    sums = subkernel.targetoptions.get("fastmath", False)
    return numba.njit(fastmath=sums, **options)(subkernel.py_func)
