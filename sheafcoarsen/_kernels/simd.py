"""Instructions that numba lacks, and products of block rows with vectors in registers.

A vector holds ``len(lanes)`` consecutive numbers of a row, where ``lanes`` is a tuple of zeros of
their type; ``sums`` is a tuple of vectors, one for each row of a block. Tuples of numbers would be
unpacked and packed again in every iteration of a loop, and LLVM's own vectorizer would check at
each row whether arrays overlap. Arrays are flat, and consecutive rows of a block begin ``h``
entries apart. Numbers are cast to the type of the vectors when they are read, and to the type of
the array when they are written. A sign is 1.0 or -1.0.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from sheafcoarsen._kernels.jit import JIT_IS_OFF, llvm_inlined, subkernel

ONE = (0,)
"""Argument ``rows`` for a single row: only the length of the tuple, 1, matters."""

EXACT = True
"""Flag: round complex products as numba does, without fused operations."""

NOT_NEGATIVE = (1 << 62) - 1
"""Mask for indices that are never negative; numba then omits its wraparound of negative indices."""


class Vector(types.Type):
    """Numba type of a register with ``count`` numbers of the scalar type ``kind``."""

    def __init__(self, kind, count):
        self.kind, self.count = kind, count
        super().__init__(name=f"Vector({kind}, {count})")


def number_of(kind):
    """Return the real type of a scalar type's real and imaginary parts."""
    return getattr(kind, "underlying_float", kind)


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """LLVM vector of numbers, real and imaginary parts alternating; a scalar for one real."""

    def __init__(self, manager, vector):
        number = manager.lookup(number_of(vector.kind)).get_value_type()
        count = vector.count * (1 + (number_of(vector.kind) != vector.kind))
        super().__init__(manager, vector, number if count == 1 else ir.VectorType(number, count))


class Registers:
    """Builder of instructions for vectors of one type."""

    def __init__(self, context, builder, vector):
        self.context, self.builder = context, builder
        self.kind, self.real = vector.kind, number_of(vector.kind)
        self.type = context.get_value_type(vector)
        self.is_complex = self.real != self.kind
        self.count = vector.count * (1 + self.is_complex)

    def like(self, number):
        """Return the LLVM type of this vector with parts of another real type."""
        number = self.context.get_value_type(number)
        return number if self.count == 1 else ir.VectorType(number, self.count)

    def cast(self, value, kind, other):
        """Return a vector cast from one scalar type to another."""
        kind, other = number_of(kind), number_of(other)
        if kind.bitwidth == other.bitwidth:
            return value
        cast = self.builder.fpext if kind.bitwidth < other.bitwidth else self.builder.fptrunc
        return cast(value, self.like(other))

    def address(self, array_type, array, at):
        """Return the address of an entry of an array."""
        struct = self.context.make_array(array_type)(self.context, self.builder, array)
        return self.builder.gep(struct.data, [at])

    def in_memory(self, array_type, array, at):
        """Return the address of a vector in an array, and the alignment of the array's entries."""
        kind = number_of(array_type.dtype)
        address = self.address(array_type, array, at)
        return self.builder.bitcast(address, self.like(kind).as_pointer()), kind.bitwidth // 8

    def shuffled(self, value, indices):
        """Return the parts of a vector at constant indices."""
        constant = ir.Constant(ir.VectorType(ir.IntType(32), len(indices)), indices)
        return self.builder.shuffle_vector(value, value, constant)

    def everywhere(self, x):
        """Broadcast x to all parts of a vector."""
        if self.count == 1:
            return x
        first = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(first, x, ir.IntType(32)(0))
        return self.shuffled(first, [0] * self.count)

    def fused(self, x, y, z):
        """Return x y + z, rounded once."""
        width = "" if self.count == 1 else f"v{self.count}"
        kind = ir.FunctionType(self.type, [self.type] * 3)
        name = f"llvm.fma.{width}f{self.real.bitwidth}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, (x, y, z))

    def added(self, total, entry, sign, y, adjoint, exact):
        """Return ``total`` plus sign times an entry, or its conjugate, times the vector y.

        ``entry`` is the array and the index. Operations are fused, but with ``exact`` not those of
        complex numbers.
        """
        context, builder, dtype = self.context, self.builder, entry[0].dtype
        value = context.unpack_value(builder, dtype, self.address(*entry))
        value = context.cast(builder, value, dtype, self.kind)
        sign = context.cast(builder, sign, types.float64, self.real)
        if not self.is_complex:
            return self.fused(self.everywhere(builder.fmul(value, sign)), y, total)
        number = context.make_complex(builder, self.kind, value)
        imaginary = builder.fneg(number.imag) if adjoint else number.imag
        real, imaginary = (self.everywhere(builder.fmul(x, sign)) for x in (number.real, imaginary))
        swapped = self.shuffled(y, [i ^ 1 for i in range(self.count)])
        signs = ir.Constant(self.type, [-1.0, 1.0] * (self.count // 2))
        swapped = builder.fmul(swapped, signs)
        if not exact:
            return self.fused(imaginary, swapped, self.fused(real, y, total))
        products = builder.fmul(real, y), builder.fmul(imaginary, swapped)
        return builder.fadd(total, builder.fadd(*products))


def _multiply_add(x, y, z):
    return x * y + z


if JIT_IS_OFF:
    multiply_add = _multiply_add

    def prefetch(array, index):
        """Prefetch ``array[index]`` into the processor's cache."""

    def zero(lanes, rows):
        """Return ``len(rows)`` vectors of zeros."""
        return np.zeros((len(rows), len(lanes)), np.array(lanes).dtype)

    def read(lanes, rows, x, at, h):
        """Return ``len(rows)`` vectors, the first one starting at x[at]."""
        indices = int(at) + h * np.arange(len(rows))[:, None] + np.arange(len(lanes))
        return x[indices].astype(np.array(lanes).dtype)

    def add_block(sums, sign, a, at, step, others, exact=None):
        """Return sums plus sign A times other vectors; row i of A starts at a[at + i step]."""
        indices = at + step * np.arange(len(sums))[:, None] + np.arange(len(others))
        return sums + sign * a[indices].astype(sums.dtype) @ others

    def add_adjoint(sums, sign, a, at, step, others, exact=None):
        """Return sums plus sign A* times other vectors, otherwise as ``add_block``."""
        indices = at + step * np.arange(len(others)) + np.arange(len(sums))[:, None]
        return sums + sign * a[indices].conj().astype(sums.dtype) @ others

    def add_multiple(sums, by, others):
        """Return sums plus ``by`` times other sums; ``by`` is a real number or vector."""
        return sums + by * others

    def put(out, at, h, sums):
        """Write the sums to rows starting at ``at``."""
        for i, total in enumerate(sums):
            out[at + i * h : at + i * h + len(total)] = total
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

        return types.none(array, index), codegen

    @intrinsic
    def multiply_add(typingctx, x, y, z):
        """Return x y + z, rounded once for real numbers."""

        def codegen(context, builder, signature, args):
            if isinstance(z, types.Float):
                return builder.fma(*args)
            return context.compile_internal(builder, _multiply_add, z(z, z, z), args)

        return z(z, z, z), codegen

    @intrinsic
    def zero(typingctx, lanes, rows):
        """Return ``len(rows)`` vectors of zeros."""
        sums = types.UniTuple(Vector(lanes.dtype, len(lanes)), len(rows))

        def codegen(context, builder, signature, args):
            return ir.Constant(context.get_value_type(sums), None)

        return sums(lanes, rows), codegen

    @intrinsic
    def read(typingctx, lanes, rows, x, at, h):
        """Return ``len(rows)`` vectors, the first one starting at x[at]."""
        vector = Vector(lanes.dtype, len(lanes))

        def codegen(context, builder, signature, args):
            registers, values, index = Registers(context, builder, vector), [], args[3]
            for _ in range(len(rows)):
                address, align = registers.in_memory(x, args[2], index)
                value = builder.load(address, align=align)
                values.append(registers.cast(value, x.dtype, vector.kind))
                index = builder.add(index, args[4])
            return cgutils.pack_array(builder, values)

        return types.UniTuple(vector, len(rows))(lanes, rows, x, at, h), codegen

    def _block_product(sums, sign, a, at, step, others, exact, adjoint):
        exactly = not isinstance(exact, types.NoneType | types.Omitted)

        def codegen(context, builder, signature, args):
            registers = Registers(context, builder, sums.dtype)
            begin, width = (
                context.cast(builder, args[i], kind, types.intp) for i, kind in ((3, at), (4, step))
            )
            totals = cgutils.unpack_tuple(builder, args[0])
            for k, other in enumerate(cgutils.unpack_tuple(builder, args[5])):
                for i, total in enumerate(totals):
                    row, column = (k, i) if adjoint else (i, k)
                    index = builder.add(begin, builder.mul(width, width.type(row)))
                    entry = a, args[2], builder.add(index, index.type(column))
                    totals[i] = registers.added(total, entry, args[1], other, adjoint, exactly)
            return cgutils.pack_array(builder, totals)

        return sums(sums, sign, a, at, step, others, exact), codegen

    @intrinsic
    def add_block(typingctx, sums, sign, a, at, step, others, exact=types.none):
        """Return sums plus sign A times other vectors; row i of A starts at a[at + i step].

        Complex products use fused operations unless ``exact`` is given. Without them, the blocks
        A* B and B* A are adjoint to the bit.
        """
        return _block_product(sums, sign, a, at, step, others, exact, adjoint=False)

    @intrinsic
    def add_adjoint(typingctx, sums, sign, a, at, step, others, exact=types.none):
        """Return sums plus sign A* times other vectors, otherwise as ``add_block``."""
        return _block_product(sums, sign, a, at, step, others, exact, adjoint=True)

    @intrinsic
    def add_multiple(typingctx, sums, by, others):
        """Return sums plus ``by`` times other sums; ``by`` is a real number or vector."""

        def codegen(context, builder, signature, args):
            registers, factor = Registers(context, builder, sums.dtype), args[1]
            if not isinstance(by, Vector):
                factor = registers.everywhere(context.cast(builder, factor, by, registers.real))
            pairs = zip(*(cgutils.unpack_tuple(builder, args[i]) for i in (0, 2)), strict=True)
            return cgutils.pack_array(builder, [registers.fused(factor, y, x) for x, y in pairs])

        return sums(sums, by, others), codegen

    @intrinsic
    def put(typingctx, out, at, h, sums):
        """Write the sums to rows starting at ``at``."""

        def codegen(context, builder, signature, args):
            registers, index = Registers(context, builder, sums.dtype), args[1]
            for total in cgutils.unpack_tuple(builder, args[3]):
                address, align = registers.in_memory(out, args[0], index)
                builder.store(
                    registers.cast(total, sums.dtype.kind, out.dtype), address, align=align
                )
                index = builder.add(index, args[2])
            return context.get_dummy_value()

        return types.none(out, at, h, sums), codegen


@llvm_inlined
def add_gram_columns(lanes, out, to, a, at_a, b, at_b, sizes):
    """Apply ``add_gram`` to ``len(lanes)`` columns; ``sizes`` are (rows, sign)."""
    (at, stride), (p, columns), (q, step), (rows, sign) = to, at_a, at_b, sizes
    for i in range(columns):
        sums = zero(lanes, ONE)
        for k in range(rows):
            row = read(lanes, ONE, b, q + k * step, 0)
            sums = add_adjoint(sums, 1.0, a, p + i + k * columns, 0, row, EXACT)
        before = read(lanes, ONE, out, at + i * stride, 0)
        put(out, at + i * stride, 0, add_multiple(before, sign, sums))


@subkernel
def add_gram(out, to, a, at_a, b, at_b, rows, sign):
    """Add sign A* B to the matrix at position ``to``, for row-major A and B with ``rows`` rows.

    Positions are (begin, columns) for A and B, and (begin, stride) for the result.
    """
    at, stride = to
    q, step = at_b
    sizes, left, o = (rows, sign), step, out.dtype.type(0)
    while left > 0:
        to, of = (at, stride), (q, step)
        if left >= 3:
            add_gram_columns((o, o, o), out, to, a, at_a, b, of, sizes)
        elif left == 2:
            add_gram_columns((o, o), out, to, a, at_a, b, of, sizes)
        else:
            add_gram_columns((o,), out, to, a, at_a, b, of, sizes)
        at += 3
        q += 3
        left -= 3


@llvm_inlined
def put_product_columns(lanes, out, to, a, at_a, b, at_b, sizes):
    """Apply ``put_product`` to ``len(lanes)`` columns; ``sizes`` are (rows, sign)."""
    (at, stride), (p, inner), (q, step), (rows, sign) = to, at_a, at_b, sizes
    for i in range(rows):
        sums = zero(lanes, ONE)
        for k in range(inner):
            row = read(lanes, ONE, b, q + k * step, 0)
            sums = add_block(sums, sign, a, p + i * inner + k, 0, row, EXACT)
        put(out, at + i * stride, 0, sums)


@subkernel
def put_product(out, to, a, at_a, b, at_b, rows, sign):
    """Write sign A B to the matrix at position ``to``, otherwise as ``add_gram``."""
    at, stride = to
    q, step = at_b
    sizes, left, o = (rows, sign), step, out.dtype.type(0)
    while left > 0:
        to, of = (at, stride), (q, step)
        if left >= 3:
            put_product_columns((o, o, o), out, to, a, at_a, b, of, sizes)
        elif left == 2:
            put_product_columns((o, o), out, to, a, at_a, b, of, sizes)
        else:
            put_product_columns((o,), out, to, a, at_a, b, of, sizes)
        at += 3
        q += 3
        left -= 3
