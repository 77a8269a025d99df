"""Operations that numba lacks: fused multiply-add, prefetching, products without allocation."""

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.linalg import dot_3_mm, ensure_blas

from sheafcoarsen._kernels.jit import JIT_IS_OFF


def _multiply_add(x, y, z):
    return x * y + z


if JIT_IS_OFF:
    multiply_add = _multiply_add

    def prefetch(array, index):
        """Prefetch ``array[index]`` into the processor's cache."""

    def put_dot(a, b, out):
        """Write the product of two matrices to ``out``."""
        np.dot(a, b, out)
else:

    @intrinsic
    def prefetch(typingctx, array, index):
        """Prefetch ``array[index]`` into the processor's cache."""

        def codegen(context, builder, signature, args):
            struct = context.make_array(signature.args[0])(context, builder, args[0])
            address = builder.bitcast(builder.gep(struct.data, [args[1]]), cgutils.voidptr_t)
            kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, *[ir.IntType(32)] * 3])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            read, keep, data = (ir.Constant(ir.IntType(32), value) for value in (0, 3, 1))
            builder.call(function, [address, read, keep, data])
            return context.get_dummy_value()

        return numba.types.none(array, index), codegen

    @intrinsic
    def multiply_add(typingctx, x, y, z):
        """Return x y + z, rounded once for real numbers."""

        def codegen(context, builder, signature, args):
            if isinstance(z, numba.types.Float):
                return builder.fma(*args)
            return context.compile_internal(builder, _multiply_add, z(z, z, z), args)

        return z(z, z, z), codegen

    @intrinsic
    def put_dot(typingctx, a, b, out):
        """Write the product of two matrices to ``out``, without the reference count of np.dot."""

        def codegen(context, builder, signature, args):
            ensure_blas()
            dot_3_mm(context, builder, out(a, b, out), args)
            return context.get_dummy_value()

        return numba.types.none(a, b, out), codegen
