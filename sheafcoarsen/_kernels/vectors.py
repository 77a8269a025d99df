"""Rows of vectors that stay in registers while a product with a block row is summed up.

A vector holds neighbouring columns of one row; ``sums`` is a tuple of them, one for each row of a
block. To the compiler a vector is one value: as a tuple of numbers it would be taken apart and put
together again in every round of a loop. What is read is cast to the type of the sums, and what is
written to that of the array. Arrays are flat; ``h`` is how many entries a row has.
"""

import numpy as np

from sheafcoarsen._kernels.jit import JIT_IS_OFF

if JIT_IS_OFF:

    def zero_rows(lanes, rows):
        """Return as many vectors as ``rows`` is long, of zeros like ``lanes``."""
        return tuple(np.array(lanes) for _ in rows)

    def add_block(sums, columns, data, k, y, at, h):
        """Add the product of block k, which has as many columns as named, with rows of y."""
        q, w = len(columns), len(sums[0])
        block = data[k * len(sums) * q :]
        entries = [y[at + b * h : at + b * h + w].astype(data.dtype) for b in range(q)]
        return tuple(
            total + sum(block[a * q + b] * entries[b] for b in range(q))
            for a, total in enumerate(sums)
        )

    def times_columns(sums, by, c):
        """Return the sums times by[c ...], column by column."""
        return tuple(total * by[c : c + len(total)] for total in sums)

    def add_rows(sums, x, rows, at, h):
        """Add x times the rows that begin at ``at``."""
        return tuple(
            total + x * rows[at + a * h : at + a * h + len(total)] for a, total in enumerate(sums)
        )

    def put_rows(out, at, h, sums):
        """Write the sums to the rows that begin at ``at``."""
        for a, total in enumerate(sums):
            out[at + a * h : at + a * h + len(total)] = total
else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic, models, register_model

    class Vector(types.Type):
        """Some real numbers in one register."""

        def __init__(self, kind, count):
            self.kind, self.count = kind, count
            super().__init__(name=f"Vector({kind}, {count})")

    @register_model(Vector)
    class VectorModel(models.PrimitiveModel):
        """To LLVM a vector; a single number is one."""

        def __init__(self, manager, vector):
            number = manager.lookup(vector.kind).get_value_type()
            kind = number if vector.count == 1 else ir.VectorType(number, vector.count)
            super().__init__(manager, vector, kind)

    @intrinsic
    def zero_rows(typingctx, lanes, rows):
        """Return as many vectors as ``rows`` is long, of zeros like ``lanes``."""
        vector = Vector(lanes.dtype, len(lanes))
        result = types.UniTuple(vector, len(rows))

        def codegen(context, builder, signature, args):
            zero = ir.Constant(context.get_value_type(vector), None)
            return cgutils.pack_array(builder, [zero] * len(rows))

        return result(lanes, rows), codegen

    @intrinsic
    def add_block(typingctx, sums, columns, data, k, y, at, h):
        """Add the product of block k, which has as many columns as named, with rows of y."""

        def codegen(context, builder, signature, args):
            do = _Vectors(context, builder, sums.dtype)
            rows, q = do.entries(args[0]), len(columns)
            begin = builder.mul(args[3], args[3].type(len(rows) * q))
            entries = do.rows(y, args[4], args[5], args[6], q)
            for a, total in enumerate(rows):
                for b, entry in enumerate(entries):
                    place = do.place(data, args[2], builder.add(begin, begin.type(a * q + b)))
                    total = do.plus(total, do.filled(builder.load(place)), entry)
                rows[a] = total
            return cgutils.pack_array(builder, rows)

        return sums(sums, columns, data, k, y, at, h), codegen

    @intrinsic
    def times_columns(typingctx, sums, by, c):
        """Return the sums times by[c ...], column by column."""

        def codegen(context, builder, signature, args):
            do = _Vectors(context, builder, sums.dtype)
            factor = do.loaded(by, args[1], args[2])
            rows = [builder.fmul(total, factor) for total in do.entries(args[0])]
            return cgutils.pack_array(builder, rows)

        return sums(sums, by, c), codegen

    @intrinsic
    def add_rows(typingctx, sums, x, rows, at, h):
        """Add x times the rows that begin at ``at``."""

        def codegen(context, builder, signature, args):
            do = _Vectors(context, builder, sums.dtype)
            factor = do.filled(context.cast(builder, args[1], x, sums.dtype.kind))
            totals = do.entries(args[0])
            others = do.rows(rows, args[2], args[3], args[4], len(totals))
            totals = [do.plus(*three, factor) for three in zip(totals, others, strict=True)]
            return cgutils.pack_array(builder, totals)

        return sums(sums, x, rows, at, h), codegen

    @intrinsic
    def put_rows(typingctx, out, at, h, sums):
        """Write the sums to the rows that begin at ``at``."""

        def codegen(context, builder, signature, args):
            do = _Vectors(context, builder, sums.dtype)
            place = args[1]
            for total in do.entries(args[3]):
                do.store(total, out, args[0], place)
                place = builder.add(place, args[2])
            return context.get_dummy_value()

        return types.none(out, at, h, sums), codegen

    class _Vectors:
        """What can be done with vectors of one type."""

        def __init__(self, context, builder, vector):
            self.context, self.builder = context, builder
            self.kind, self.count = vector.kind, vector.count
            self.type = context.get_value_type(vector)

        def entries(self, sums):
            return [self.builder.extract_value(sums, i) for i in range(sums.type.count)]

        def place(self, array_type, array, at):
            struct = self.context.make_array(array_type)(self.context, self.builder, array)
            return self.builder.gep(struct.data, [at])

        def filled(self, x):
            if self.count == 1:
                return x
            first = ir.Constant(self.type, ir.Undefined)
            first = self.builder.insert_element(first, x, ir.IntType(32)(0))
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), self.count), None)
            return self.builder.shuffle_vector(first, first, everywhere)

        def like(self, number):
            """The type of a vector of other numbers."""
            number = self.context.get_value_type(number)
            return number if self.count == 1 else ir.VectorType(number, self.count)

        def cast(self, value, kind, other):
            if kind.bitwidth == other.bitwidth:
                return value
            cast = self.builder.fpext if kind.bitwidth < other.bitwidth else self.builder.fptrunc
            return cast(value, self.like(other))

        def loaded(self, array_type, array, at):
            kind = array_type.dtype
            place = self.place(array_type, array, at)
            place = self.builder.bitcast(place, self.like(kind).as_pointer())
            value = self.builder.load(place, align=kind.bitwidth // 8)
            return self.cast(value, kind, self.kind)

        def rows(self, array_type, array, at, h, count):
            found = []
            for _ in range(count):
                found.append(self.loaded(array_type, array, at))
                at = self.builder.add(at, h)
            return found

        def store(self, value, array_type, array, at):
            kind = array_type.dtype
            place = self.place(array_type, array, at)
            place = self.builder.bitcast(place, self.like(kind).as_pointer())
            self.builder.store(self.cast(value, self.kind, kind), place, align=kind.bitwidth // 8)

        def plus(self, total, x, y):
            width = "" if self.count == 1 else f"v{self.count}"
            kind = ir.FunctionType(self.type, [self.type] * 3)
            name = f"llvm.fma.{width}f{self.kind.bitwidth}"
            function = cgutils.get_or_insert_function(self.builder.module, kind, name)
            return self.builder.call(function, (x, y, total))
