"""The only place with numba options."""

import hashlib
from pathlib import Path

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

JIT_IS_OFF = bool(numba.config.DISABLE_JIT)


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


SOURCES = _fingerprint()
"""Of all kernels together. numba looks only at the file of the outermost one when it asks whether compiled code is stale."""


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
        function.__qualname__ += f"-{SOURCES}"  # numba names the file of the compiled code after it
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy", **options)(function)
    except RuntimeError:  # numba found no folder to cache in: compile in memory
        return numba.njit(nogil=True, error_model="numpy", **options)(function)


if JIT_IS_OFF:

    def prefetch(array, index):
        """Ask for ``array[index]`` to be brought into the cache."""

    def multiply_add(x, y, z):
        """Return x y + z; real numbers are rounded once."""
        return x * y + z
else:

    @intrinsic
    def prefetch(typingctx, array, index):
        """Ask for ``array[index]`` to be brought into the cache."""

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
        """Return x y + z; real numbers are rounded once."""

        def fused(context, builder, signature, args):
            return builder.fma(*args)

        def plain(context, builder, signature, args):
            return context.compile_internal(builder, lambda x, y, z: x * y + z, signature, args)

        return z(z, z, z), fused if isinstance(z, numba.types.Float) else plain
