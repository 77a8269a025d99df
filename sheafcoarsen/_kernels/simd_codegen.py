"""LLVM code generation for the operations in ``simd``."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model


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
        """Return a vector whose parts all equal x."""
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
