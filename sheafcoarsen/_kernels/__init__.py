"""Numba kernels, which know only arrays.

They trust their input and fill what the caller allocated. ``jit`` has numba's options,
``llvm_intrinsics`` what numba lacks, ``simd`` products on vector registers; ``cache_key`` names
compiled code after its sources, so that code on disk is never stale; ``compile_notice`` logs that
kernels are being compiled.
"""

from sheafcoarsen._kernels import compile_notice

compile_notice.watch()
