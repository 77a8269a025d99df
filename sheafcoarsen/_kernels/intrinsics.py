"""What numba has no word for: fused products, short rows and vectors of sums, prefetching."""

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

    def lanes_plus(lanes, x, row, at):
        """Return the tuple ``lanes`` with x row[at + i] added to entry i: one vector of them."""
        return tuple(total + x * row[at + i] for i, total in enumerate(lanes))

    def put_lanes(out, at, lanes):
        """Write the tuple ``lanes`` to out[at ...]."""
        for i, value in enumerate(lanes):
            out[at + i] = value

    def add_lanes(out, at, x, lanes):
        """Add x times the tuple ``lanes`` to out[at ...]."""
        for i, value in enumerate(lanes):
            out[at + i] += x * value
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

    # lanes stay in one register: LLVM's own vectorizer would ask at each row whether arrays overlap

    @intrinsic
    def lanes_plus(typingctx, lanes, x, row, at):
        """Return the tuple ``lanes`` with x row[at + i] added to entry i: one vector of them."""

        def codegen(context, builder, signature, args):
            kind = _Lanes(context, builder, lanes)
            entries = kind.load(_address(context, builder, row, args[2], args[3], 0))
            total = kind.fused(kind.filled(args[1], x), entries, kind.packed(args[0]))
            return kind.unpacked(total)

        return lanes(lanes, x, row, at), codegen

    @intrinsic
    def put_lanes(typingctx, out, at, lanes):
        """Write the tuple ``lanes`` to out[at ...]."""

        def codegen(context, builder, signature, args):
            kind = _Lanes(context, builder, lanes)
            kind.store(kind.packed(args[2]), _address(context, builder, out, args[0], args[1], 0))
            return context.get_dummy_value()

        return numba.types.none(out, at, lanes), codegen

    @intrinsic
    def add_lanes(typingctx, out, at, x, lanes):
        """Add x times the tuple ``lanes`` to out[at ...]."""

        def codegen(context, builder, signature, args):
            kind = _Lanes(context, builder, lanes)
            place = _address(context, builder, out, args[0], args[1], 0)
            total = kind.fused(kind.filled(args[2], x), kind.packed(args[3]), kind.load(place))
            kind.store(total, place)
            return context.get_dummy_value()

        return numba.types.none(out, at, x, lanes), codegen

    class _Lanes:
        """A tuple of real numbers as one vector; a tuple of one entry, of any kind, as that."""

        def __init__(self, context, builder, lanes):
            self.context, self.builder = context, builder
            self.kind, self.count = lanes.dtype, len(lanes)
            if self.count > 1:
                self.vector = ir.VectorType(context.get_value_type(self.kind), self.count)

        def packed(self, value):
            entries = [self.builder.extract_value(value, i) for i in range(self.count)]
            if self.count == 1:
                return entries[0]
            vector = ir.Constant(self.vector, ir.Undefined)
            for i, entry in enumerate(entries):
                vector = self.builder.insert_element(vector, entry, ir.IntType(32)(i))
            return vector

        def unpacked(self, vector):
            if self.count == 1:
                return cgutils.pack_array(self.builder, [vector])
            places = [ir.IntType(32)(i) for i in range(self.count)]
            entries = [self.builder.extract_element(vector, i) for i in places]
            return cgutils.pack_array(self.builder, entries)

        def filled(self, x, kind):
            x = self.context.cast(self.builder, x, kind, self.kind)
            if self.count == 1:
                return x
            first = ir.Constant(self.vector, ir.Undefined)
            first = self.builder.insert_element(first, x, ir.IntType(32)(0))
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), self.count), None)
            return self.builder.shuffle_vector(first, first, everywhere)

        def load(self, place):
            if self.count == 1:
                return self.context.unpack_value(self.builder, self.kind, place)
            place = self.builder.bitcast(place, self.vector.as_pointer())
            return self.builder.load(place, align=self.kind.bitwidth // 8)

        def store(self, value, place):
            if self.count == 1:
                self.context.pack_value(self.builder, self.kind, value, place)
                return
            place = self.builder.bitcast(place, self.vector.as_pointer())
            self.builder.store(value, place, align=self.kind.bitwidth // 8)

        def fused(self, *three):
            if self.count == 1:
                return _fused(self.context, self.builder, self.kind, list(three))
            kind = ir.FunctionType(self.vector, [self.vector] * 3)
            name = f"llvm.fma.v{self.count}f{self.kind.bitwidth}"
            function = cgutils.get_or_insert_function(self.builder.module, kind, name)
            return self.builder.call(function, three)

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
