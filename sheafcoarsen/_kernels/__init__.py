"""Numba kernels on plain arrays.

They trust their input and write to arrays that the caller allocated. ``jit`` holds the decorators
with numba's options, and names compiled code after a digest of all kernel sources, so that the
cache on disk is never stale. ``simd`` has fused multiply-add, prefetching, and block products in
vector registers; ``compile_notice`` logs a message if compilation takes long.
"""

from numba.core import event

from sheafcoarsen._kernels.compile_notice import notice

event.register("numba:compile", notice)
