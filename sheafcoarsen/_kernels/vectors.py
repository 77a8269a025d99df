"""Neighbouring numbers of a row as one value, which stays in a register while sums are taken.

A vector holds as many numbers as ``lanes``, a tuple of zeros of their type; ``sums`` and ``rows``
are tuples of vectors, one for each row of a block. As a tuple of numbers a vector would be taken
apart and put together again in every round of a loop, and LLVM's own vectorizer would ask at each
row whether arrays overlap. What is read is cast to the type of the vectors, and what is written to
that of the array. Arrays are flat; ``h`` is how many entries a row has. A sign is 1.0 or -1.0.
"""

import numpy as np
from llvmlite import binding

from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen._kernels.registers import Registers, Vector

MASKS = bool(binding.get_host_cpu_features().get("avx"))
"""Whether the processor reads and writes some numbers of a vector at once, and not one by one."""

if JIT_IS_OFF:

    def zero_row(lanes):
        """Return a vector of zeros."""
        return np.array(lanes)

    def zero_rows(lanes, rows):
        """Return as many vectors as ``rows`` is long, of zeros."""
        return tuple(np.array(lanes) for _ in rows)

    def read_row(lanes, x, at):
        """Return the vector that begins at ``at``."""
        return x[at : at + len(lanes)].astype(type(lanes[0]))

    def read_rows(lanes, rows, x, at, h):
        """Return as many vectors as ``rows`` is long, which begin at ``at``."""
        return tuple(
            x[at + i * h : at + i * h + len(lanes)].astype(type(lanes[0])) for i in range(len(rows))
        )

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

    def add_row(total, x, row, at):
        """Add x times the row that begins at ``at``."""
        return total + x * row[at : at + len(total)]

    def add_rows(sums, x, rows, at, h):
        """Add x times the rows that begin at ``at``."""
        return tuple(
            total + x * rows[at + a * h : at + a * h + len(total)] for a, total in enumerate(sums)
        )

    def put_row(out, at, total):
        """Write a vector to the row that begins at ``at``."""
        out[at : at + len(total)] = total

    def put_rows(out, at, h, sums):
        """Write the sums to the rows that begin at ``at``."""
        for a, total in enumerate(sums):
            out[at + a * h : at + a * h + len(total)] = total

    def add_to_row(out, at, x, total):
        """Add x times a vector to the row that begins at ``at``."""
        out[at : at + len(total)] += x * total

    def add_image(total, sign, data, at, rows):
        """Add sign times the product of data[at ...] with rows."""
        return total + sign * sum(data[at + i] * row for i, row in enumerate(rows))

    def add_adjoint(sums, sign, data, at, total):
        """Add sign times the product of the conjugate of data[at + i] with a vector to sum i."""
        return tuple(old + sign * np.conj(data[at + i]) * total for i, old in enumerate(sums))

    def add_column(sums, sign, data, at, stride, left, row):
        """Add sign times data[at + k stride] times a vector to sum k; to those left only."""
        return tuple(
            total + sign * data[at + k * stride] * row if k < left else total
            for k, total in enumerate(sums)
        )

    def add_row_of_adjoint(out, to, data, at, stride, left, sums):
        """Add the sum of the conjugates of data[at + k stride] times sum k to a row."""
        for k in range(min(left, len(sums))):
            total = sums[k]
            out[to : to + len(total)] += np.conj(data[at + k * stride]) * total

    def without(sums, count, left):
        """Return vectors with zeros for the first so many numbers, and zero but for those left."""
        return tuple(
            np.where((np.arange(len(total)) >= count) & (k < left), total, total.dtype.type(0))
            for k, total in enumerate(sums)
        )

    def read_some(lanes, x, at, count):
        """Return the vector that begins at ``at``, with zeros for all but so many numbers."""
        out = np.array(lanes)
        count = min(count, len(lanes))
        out[:count] = x[at : at + count]
        return out

    def put_some(out, at, count, total):
        """Write so many numbers of a vector, or all of them."""
        count = min(count, len(total))
        out[at : at + count] = total[:count]

    def add_some(out, at, count, total):
        """Add so many numbers of a vector, or all of them."""
        count = min(count, len(total))
        out[at : at + count] += total[:count]

    def add_products(total, x, y):
        """Add the products of numbers of two vectors."""
        return total + x * y

    def add_multiple(total, x, y):
        """Add the conjugate of a vector times a number."""
        return total + np.conj(x) * y

    def sum_of(total):
        """Return the sum of a vector's numbers."""
        return total.sum()

    def negative(total):
        """Return a vector with other signs."""
        return -total
else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    @intrinsic
    def zero_row(typingctx, lanes):
        """Return a vector of zeros."""
        vector = Vector(lanes.dtype, len(lanes))

        def codegen(context, builder, signature, args):
            return ir.Constant(context.get_value_type(vector), None)

        return vector(lanes), codegen

    @intrinsic
    def zero_rows(typingctx, lanes, rows):
        """Return as many vectors as ``rows`` is long, of zeros."""
        vector = Vector(lanes.dtype, len(lanes))
        result = types.UniTuple(vector, len(rows))

        def codegen(context, builder, signature, args):
            zero = ir.Constant(context.get_value_type(vector), None)
            return cgutils.pack_array(builder, [zero] * len(rows))

        return result(lanes, rows), codegen

    @intrinsic
    def read_row(typingctx, lanes, x, at):
        """Return the vector that begins at ``at``."""
        vector = Vector(lanes.dtype, len(lanes))

        def codegen(context, builder, signature, args):
            return Registers(context, builder, vector).loaded(x, *args[1:])

        return vector(lanes, x, at), codegen

    @intrinsic
    def read_rows(typingctx, lanes, rows, x, at, h):
        """Return as many vectors as ``rows`` is long, which begin at ``at``."""
        vector = Vector(lanes.dtype, len(lanes))

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, vector)
            return cgutils.pack_array(builder, do.rows(x, *args[2:], len(rows)))

        return types.UniTuple(vector, len(rows))(lanes, rows, x, at, h), codegen

    @intrinsic
    def add_block(typingctx, sums, columns, data, k, y, at, h):
        """Add the product of block k, which has as many columns as named, with rows of y."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, sums.dtype)
            rows, q = do.entries(args[0]), len(columns)
            begin = builder.mul(args[3], args[3].type(len(rows) * q))
            entries = do.rows(y, args[4], args[5], args[6], q)
            for a, total in enumerate(rows):
                for b, entry in enumerate(entries):
                    place = builder.add(begin, begin.type(a * q + b))
                    total = do.plus(total, do.number(data, args[2], place), entry)
                rows[a] = total
            return cgutils.pack_array(builder, rows)

        return sums(sums, columns, data, k, y, at, h), codegen

    @intrinsic
    def times_columns(typingctx, sums, by, c):
        """Return the sums times by[c ...], column by column."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, sums.dtype)
            factor = do.loaded(by, args[1], args[2])
            rows = [builder.fmul(total, factor) for total in do.entries(args[0])]
            return cgutils.pack_array(builder, rows)

        return sums(sums, by, c), codegen

    @intrinsic
    def add_row(typingctx, total, x, row, at):
        """Add x times the row that begins at ``at``."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, total)
            factor = context.cast(builder, args[1], x, total.kind)
            return do.plus(args[0], factor, do.loaded(row, args[2], args[3]))

        return total(total, x, row, at), codegen

    @intrinsic
    def add_rows(typingctx, sums, x, rows, at, h):
        """Add x times the rows that begin at ``at``."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, sums.dtype)
            factor = context.cast(builder, args[1], x, sums.dtype.kind)
            totals = do.entries(args[0])
            others = do.rows(rows, args[2], args[3], args[4], len(totals))
            totals = [do.plus(t, factor, o) for t, o in zip(totals, others, strict=True)]
            return cgutils.pack_array(builder, totals)

        return sums(sums, x, rows, at, h), codegen

    @intrinsic
    def put_row(typingctx, out, at, total):
        """Write a vector to the row that begins at ``at``."""

        def codegen(context, builder, signature, args):
            Registers(context, builder, total).store(args[2], out, args[0], args[1])
            return context.get_dummy_value()

        return types.none(out, at, total), codegen

    @intrinsic
    def put_rows(typingctx, out, at, h, sums):
        """Write the sums to the rows that begin at ``at``."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, sums.dtype)
            place = args[1]
            for total in do.entries(args[3]):
                do.store(total, out, args[0], place)
                place = builder.add(place, args[2])
            return context.get_dummy_value()

        return types.none(out, at, h, sums), codegen

    @intrinsic
    def add_to_row(typingctx, out, at, x, total):
        """Add x times a vector to the row that begins at ``at``."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, total)
            factor = context.cast(builder, args[2], x, total.kind)
            new = do.plus(do.loaded(out, args[0], args[1]), factor, args[3])
            do.store(new, out, args[0], args[1])
            return context.get_dummy_value()

        return types.none(out, at, x, total), codegen

    @intrinsic
    def add_image(typingctx, total, sign, data, at, rows):
        """Add sign times the product of data[at ...] with rows."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, total)
            result = args[0]
            for i, row in enumerate(do.entries(args[4])):
                place = builder.add(args[3], args[3].type(i))
                result = do.plus(result, do.number(data, args[2], place, args[1]), row)
            return result

        return total(total, sign, data, at, rows), codegen

    @intrinsic
    def add_adjoint(typingctx, sums, sign, data, at, total):
        """Add sign times the product of the conjugate of data[at + i] with a vector to sum i."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, total)
            results = []
            for i, old in enumerate(do.entries(args[0])):
                place = builder.add(args[3], args[3].type(i))
                factor = do.conjugate(do.number(data, args[2], place, args[1]))
                results.append(do.plus(old, factor, args[4]))
            return cgutils.pack_array(builder, results)

        return sums(sums, sign, data, at, total), codegen

    @intrinsic
    def add_column(typingctx, sums, sign, data, at, stride, left, row):
        """Add sign times data[at + k stride] times a vector to sum k; to those left only."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, row)
            places = do.strided(args[3], args[4], args[5], len(sums))
            pairs = zip(do.entries(args[0]), places, strict=True)
            totals = [do.plus(t, do.number(data, args[2], at, args[1]), args[6]) for t, at in pairs]
            return cgutils.pack_array(builder, totals)

        return sums(sums, sign, data, at, stride, left, row), codegen

    @intrinsic
    def add_row_of_adjoint(typingctx, out, to, data, at, stride, left, sums):
        """Add the sum of the conjugates of data[at + k stride] times sum k to a row."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, sums.dtype)
            places = do.strided(args[3], args[4], args[5], len(sums))
            total = do.loaded(out, args[0], args[1])
            for entry, at in zip(do.entries(args[6]), places, strict=True):
                factor = do.conjugate(do.number(data, args[2], at))
                total = do.plus(total, factor, entry)
            do.store(total, out, args[0], args[1])
            return context.get_dummy_value()

        return types.none(out, to, data, at, stride, left, sums), codegen

    @intrinsic
    def without(typingctx, sums, count, left):
        """Return vectors with zeros for the first so many numbers, and zero but for those left."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, sums.dtype)
            zero = ir.Constant(do.type, None)
            rows = []
            for k, total in enumerate(do.entries(args[0])):
                if sums.dtype.count > 1:
                    total = builder.select(do.compared(">=", args[1]), total, zero)
                if k > 0:
                    is_left = builder.icmp_signed("<", args[2].type(k), args[2])
                    total = builder.select(is_left, total, zero)
                rows.append(total)
            return cgutils.pack_array(builder, rows)

        return sums(sums, count, left), codegen

    @intrinsic
    def read_some(typingctx, lanes, x, at, count):
        """Return the vector that begins at ``at``, with zeros for all but so many numbers."""
        vector = Vector(lanes.dtype, len(lanes))

        def codegen(context, builder, signature, args):
            return Registers(context, builder, vector).loaded(x, *args[1:])

        return vector(lanes, x, at, count), codegen

    @intrinsic
    def put_some(typingctx, out, at, count, total):
        """Write so many numbers of a vector, or all of them."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, total)
            do.store(args[3], out, args[0], args[1], args[2])
            return context.get_dummy_value()

        return types.none(out, at, count, total), codegen

    @intrinsic
    def add_some(typingctx, out, at, count, total):
        """Add so many numbers of a vector, or all of them."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, total)
            new = builder.fadd(do.loaded(out, *args[:3]), args[3])
            do.store(new, out, *args[:3])
            return context.get_dummy_value()

        return types.none(out, at, count, total), codegen

    @intrinsic
    def add_products(typingctx, total, x, y):
        """Add the products of numbers of two vectors."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, total)
            return do.added(args[0], do.parts(args[1]), args[2])

        return total(total, x, y), codegen

    @intrinsic
    def add_multiple(typingctx, total, x, y):
        """Add the conjugate of a vector times a number."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, total)
            factor = do.filled(context.cast(builder, args[2], y, total.kind))
            return do.added(args[0], do.parts(args[1], conjugate=True), factor)

        return total(total, x, y), codegen

    @intrinsic
    def sum_of(typingctx, total):
        """Return the sum of a vector's numbers."""

        def codegen(context, builder, signature, args):
            return Registers(context, builder, total).folded(args[0])

        return total.kind(total), codegen

    @intrinsic
    def negative(typingctx, total):
        """Return a vector with other signs."""

        def codegen(context, builder, signature, args):
            return builder.fneg(args[0])

        return total(total), codegen
