"""Numba kernels on plain arrays.

They trust their input and write to arrays that the caller allocated. ``jit`` holds the decorators
with numba's options, ``llvm_intrinsics`` fused multiply-add and prefetching, ``simd`` block
products in vector registers; ``cache_key`` names compiled code after a digest of its sources, so
that the cache on disk is never stale; ``compile_notice`` logs the start of a compilation.
"""

from sheafcoarsen._kernels import compile_notice

compile_notice.watch()
