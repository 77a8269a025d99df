"""Products of block rows with a few columns, with the sums in vector registers.

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

from sheafcoarsen._kernels.jit import JIT_IS_OFF

ONE = (0,)
"""Argument ``rows`` for a single row: only the length of the tuple, 1, matters."""

EXACT = True
"""Flag: round complex products as numba does, without fused operations."""


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

    def address(self, array_type, array, at):
        """Return the address of an entry of an array."""
        struct = self.context.make_array(array_type)(self.context, self.builder, array)
        return self.builder.gep(struct.data, [at])

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

    def in_memory(self, array_type, array, at):
        """Return the address of a vector in an array, and the alignment of the array's entries."""
        kind = number_of(array_type.dtype)
        address = self.address(array_type, array, at)
        return self.builder.bitcast(address, self.like(kind).as_pointer()), kind.bitwidth // 8

    def loaded(self, array_type, array, at):
        """Return the vector at index ``at`` of an array."""
        address, align = self.in_memory(array_type, array, at)
        return self.cast(self.builder.load(address, align=align), array_type.dtype, self.kind)

    def store(self, value, array_type, array, at):
        """Write a vector to an array."""
        address, align = self.in_memory(array_type, array, at)
        self.builder.store(self.cast(value, self.kind, array_type.dtype), address, align=align)

    def everywhere(self, x):
        """Broadcast x to all parts of a vector."""
        if self.count == 1:
            return x
        first = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(first, x, ir.IntType(32)(0))
        return self.shuffled(first, [0] * self.count)

    def shuffled(self, value, indices):
        """Return the parts of a vector at constant indices."""
        constant = ir.Constant(ir.VectorType(ir.IntType(32), len(indices)), indices)
        return self.builder.shuffle_vector(value, value, constant)

    def entry(self, array_type, array, at, sign, conjugate):
        """Return the real and imaginary part of sign times an entry, each repeated in a vector.

        The imaginary part is None for real numbers.
        """
        value = self.context.unpack_value(
            self.builder, array_type.dtype, self.address(array_type, array, at)
        )
        value = self.context.cast(self.builder, value, array_type.dtype, self.kind)
        sign = self.context.cast(self.builder, sign, types.float64, self.real)
        if not self.is_complex:
            return self.everywhere(self.builder.fmul(value, sign)), None
        number = self.context.make_complex(self.builder, self.kind, value)
        imaginary = self.builder.fneg(number.imag) if conjugate else number.imag
        return tuple(self.everywhere(self.builder.fmul(x, sign)) for x in (number.real, imaginary))

    def added(self, total, parts, y, exact=False):
        """Return ``total`` plus the vector y times an entry, which is given by its parts.

        The operations are fused; with ``exact``, those of complex numbers are not.
        """
        real, imaginary = parts
        if imaginary is None:
            return self.fused(real, y, total)
        swapped = self.shuffled(y, [i ^ 1 for i in range(self.count)])
        signs = ir.Constant(self.type, [-1.0, 1.0] * (self.count // 2))
        swapped = self.builder.fmul(swapped, signs)
        if not exact:
            return self.fused(imaginary, swapped, self.fused(real, y, total))
        products = self.builder.fmul(real, y), self.builder.fmul(imaginary, swapped)
        return self.builder.fadd(total, self.builder.fadd(*products))

    def fused(self, x, y, z):
        """Return x y + z, rounded once."""
        width = "" if self.count == 1 else f"v{self.count}"
        kind = ir.FunctionType(self.type, [self.type] * 3)
        name = f"llvm.fma.{width}f{self.real.bitwidth}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, (x, y, z))


if JIT_IS_OFF:

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
                    index = builder.add(index, index.type(column))
                    parts = registers.entry(a, args[2], index, args[1], adjoint)
                    totals[i] = registers.added(total, parts, other, exactly)
            return cgutils.pack_array(builder, totals)

        return sums(sums, sign, a, at, step, others, exact), codegen

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
                values.append(registers.loaded(x, args[2], index))
                index = builder.add(index, args[4])
            return cgutils.pack_array(builder, values)

        return types.UniTuple(vector, len(rows))(lanes, rows, x, at, h), codegen

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
                registers.store(total, out, args[0], index)
                index = builder.add(index, args[2])
            return context.get_dummy_value()

        return types.none(out, at, h, sums), codegen
