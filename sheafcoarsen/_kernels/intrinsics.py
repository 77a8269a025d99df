"""What numba has no word for: fused products, short rows of sums, prefetching."""

import numba
from llvmlite import ir
from numba.core import cgutils
from numba.extending import intrinsic

from sheafcoarsen._kernels.jit import JIT_IS_OFF


def _multiply_add(x, y, z):
    return x * y + z


if JIT_IS_OFF:
    multiply_add = _multiply_add

    def prefetch(array, index):
        """Ask for ``array[index]`` to be brought into the cache."""

    def add_multiple(sums, x, row, at):
        """Return the tuple ``sums`` with x row[at + i] added to entry i, as ``multiply_add``."""
        return tuple(total + x * row[at + i] for i, total in enumerate(sums))

    def put_row(out, at, sign, sums):
        """Write sign times the tuple ``sums`` to out[at ...]; the sign is 1 or -1."""
        for i, total in enumerate(sums):
            out[at + i] = sign * total

    def add_row(out, at, sign, sums):
        """Add sign times the tuple ``sums`` to out[at ...]; the sign is 1 or -1."""
        for i, total in enumerate(sums):
            out[at + i] += sign * total
else:
    # what acts on tuples is written for LLVM: numba would type and lower every entry by itself

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

        def codegen(context, builder, signature, args):
            return _fused(context, builder, z, args)

        return z(z, z, z), codegen

    @intrinsic
    def add_multiple(typingctx, sums, x, row, at):
        """Return the tuple ``sums`` with x row[at + i] added to entry i, as ``multiply_add``."""

        def codegen(context, builder, signature, args):
            kind = sums.dtype
            factor = context.cast(builder, args[1], x, kind)
            results = []
            for i in range(len(sums)):
                entry = context.unpack_value(
                    builder, row.dtype, _address(context, builder, row, args[2], args[3], i)
                )
                entry = context.cast(builder, entry, row.dtype, kind)
                total = builder.extract_value(args[0], i)
                results.append(_fused(context, builder, kind, [factor, entry, total]))
            return cgutils.pack_array(builder, results)

        return sums(sums, x, row, at), codegen

    @intrinsic
    def put_row(typingctx, out, at, sign, sums):
        """Write sign times the tuple ``sums`` to out[at ...]; the sign is 1 or -1."""
        return numba.types.none(out, at, sign, sums), _row_writer(out, sums, add=False)

    @intrinsic
    def add_row(typingctx, out, at, sign, sums):
        """Add sign times the tuple ``sums`` to out[at ...]; the sign is 1 or -1."""
        return numba.types.none(out, at, sign, sums), _row_writer(out, sums, add=True)

    def _address(context, builder, array_type, array, at, i):
        struct = context.make_array(array_type)(context, builder, array)
        return builder.gep(struct.data, [builder.add(at, at.type(i))])

    def _fused(context, builder, kind, three):
        if isinstance(kind, numba.types.Float):
            return builder.fma(*three)
        return context.compile_internal(builder, _multiply_add, kind(kind, kind, kind), three)

    def _row_writer(out, sums, *, add):
        def codegen(context, builder, signature, args):
            kind = out.dtype
            factor = context.cast(builder, args[2], signature.args[2], kind)
            for i in range(len(sums)):
                place = _address(context, builder, out, args[0], args[1], i)
                old = (
                    context.unpack_value(builder, kind, place)
                    if add
                    else context.get_constant_null(kind)
                )
                # multiplied by 1 or -1, which is exact, so that rounding once changes nothing
                new = [factor, builder.extract_value(args[3], i), old]
                context.pack_value(builder, kind, _fused(context, builder, kind, new), place)
            return context.get_dummy_value()

        return codegen
