"""What the words of ``vectors.py`` are to LLVM."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model


class Vector(types.Type):
    """Some numbers in one register."""

    def __init__(self, kind, count):
        self.kind, self.count = kind, count
        super().__init__(name=f"Vector({kind}, {count})")


def number_of(kind):
    """Return the real type of a number's parts."""
    return getattr(kind, "underlying_float", kind)


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """To LLVM a vector, of real parts, each before its imaginary part; a single real is one."""

    def __init__(self, manager, vector):
        number = manager.lookup(number_of(vector.kind)).get_value_type()
        count = vector.count * (1 + (number_of(vector.kind) != vector.kind))
        super().__init__(manager, vector, number if count == 1 else ir.VectorType(number, count))


class Registers:
    """What can be done with vectors of one type."""

    def __init__(self, context, builder, vector):
        self.context, self.builder = context, builder
        self.kind, self.lanes = vector.kind, vector.count
        self.type = context.get_value_type(vector)
        self.real = number_of(vector.kind)
        self.parts_each = 1 + (self.real != self.kind)
        self.count = self.lanes * self.parts_each

    def entries(self, sums):
        return [self.builder.extract_value(sums, i) for i in range(sums.type.count)]

    def place(self, array_type, array, at):
        struct = self.context.make_array(array_type)(self.context, self.builder, array)
        return self.builder.gep(struct.data, [at])

    def strided(self, at, stride, left, count):
        """Places of so many rows; those not left are the last one again."""
        last = self.builder.sub(left, left.type(1))
        places = [at]
        for k in range(1, count):
            row = left.type(k)
            row = self.builder.select(self.builder.icmp_signed("<", row, last), row, last)
            places.append(self.builder.add(at, self.builder.mul(row, stride)))
        return places

    def like(self, number):
        """The type of a vector of other real numbers."""
        number = self.context.get_value_type(number)
        return number if self.count == 1 else ir.VectorType(number, self.count)

    def shuffled(self, value, places):
        constant = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
        return self.builder.shuffle_vector(value, value, constant)

    # ---------------------------------------------------------------- numbers

    def number(self, array_type, array, at, sign=None):
        """One number of an array, times a sign, as the vectors' type."""
        place = self.place(array_type, array, at)
        value = self.context.unpack_value(self.builder, array_type.dtype, place)
        value = self.context.cast(self.builder, value, array_type.dtype, self.kind)
        if sign is None:
            return value
        sign = self.context.cast(self.builder, sign, types.float64, self.real)
        return self.each_part(value, lambda part: self.builder.fmul(part, sign))

    def each_part(self, value, change):
        if self.parts_each == 1:
            return change(value)
        number = self.context.make_complex(self.builder, self.kind, value)
        number.real, number.imag = change(number.real), change(number.imag)
        return number._getvalue()

    def conjugate(self, value):
        if self.parts_each == 1:
            return value
        number = self.context.make_complex(self.builder, self.kind, value)
        number.imag = self.builder.fneg(number.imag)
        return number._getvalue()

    def everywhere(self, x):
        if self.count == 1:
            return x
        first = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(first, x, ir.IntType(32)(0))
        return self.shuffled(first, [0] * self.count)

    def filled(self, x):
        """A number in all places."""
        if self.parts_each == 1:
            return self.everywhere(x)
        number = self.context.make_complex(self.builder, self.kind, x)
        both = ir.Constant(self.type, ir.Undefined)
        for i, part in enumerate((number.real, number.imag)):
            both = self.builder.insert_element(both, part, ir.IntType(32)(i))
        return self.shuffled(both, [0, 1] * self.lanes)

    # ---------------------------------------------------------------- memory

    def cast(self, value, kind, other):
        kind, other = number_of(kind), number_of(other)
        if kind.bitwidth == other.bitwidth:
            return value
        cast = self.builder.fpext if kind.bitwidth < other.bitwidth else self.builder.fptrunc
        return cast(value, self.like(other))

    def first(self, count):
        """Which places belong to so many numbers from the first; None for all."""
        if self.lanes == 1:
            return None
        return self.compared("<", count)

    def compared(self, how, count):
        """Whether the index of each number is less than so many, or another comparison."""
        index = ir.VectorType(ir.IntType(32), self.count)
        places = [i // self.parts_each for i in range(self.count)]
        count = self.builder.trunc(count, ir.IntType(32))
        limit = ir.Constant(index, ir.Undefined)
        limit = self.builder.insert_element(limit, count, ir.IntType(32)(0))
        limit = self.shuffled(limit, [0] * self.count)
        return self.builder.icmp_signed(how, ir.Constant(index, places), limit)

    def access(self, array_type, array, at):
        """The address of a vector in an array, and its type and alignment there."""
        kind = number_of(array_type.dtype)
        place = self.place(array_type, array, at)
        place = self.builder.bitcast(place, self.like(kind).as_pointer())
        return place, kind, kind.bitwidth // 8

    def loaded(self, array_type, array, at, count=None):
        place, kind, align = self.access(array_type, array, at)
        if count is None or self.lanes == 1:
            value = self.builder.load(place, align=align)
        else:
            zero = ir.Constant(self.like(kind), None)
            mask = self.first(count)
            value = self.masked("load", kind, zero.type, [place, align, mask, zero])
        return self.cast(value, kind, self.kind)

    def store(self, value, array_type, array, at, count=None):
        place, kind, align = self.access(array_type, array, at)
        value = self.cast(value, self.kind, kind)
        if count is None or self.lanes == 1:
            self.builder.store(value, place, align=align)
        else:
            mask = self.first(count)
            self.masked("store", kind, ir.VoidType(), [value, place, align, mask])

    def masked(self, name, kind, result, args):
        args = [ir.IntType(32)(x) if isinstance(x, int) else x for x in args]
        name = f"llvm.masked.{name}.v{self.count}f{kind.bitwidth}.p0"
        kind = ir.FunctionType(result, [x.type for x in args])
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, args)

    def rows(self, array_type, array, at, h, count):
        found = []
        for _ in range(count):
            found.append(self.loaded(array_type, array, at))
            at = self.builder.add(at, h)
        return found

    # ---------------------------------------------------------------- sums

    def plus(self, total, x, y):
        """A vector plus a number times another."""
        return self.added(total, self.factor(x), y)

    def factor(self, x):
        """A number's real and imaginary part, each in all places."""
        if self.parts_each == 1:
            return self.everywhere(x), None
        number = self.context.make_complex(self.builder, self.kind, x)
        return self.everywhere(number.real), self.everywhere(number.imag)

    def parts(self, x, *, conjugate=False):
        """Real and imaginary parts of a vector's numbers, each in both places."""
        if self.parts_each == 1:
            return x, None
        even = [i - i % 2 for i in range(self.count)]
        real, imaginary = self.shuffled(x, even), self.shuffled(x, [i + 1 for i in even])
        return real, self.builder.fneg(imaginary) if conjugate else imaginary

    def added(self, total, parts, y):
        """A vector plus the products of numbers in parts with another."""
        real, imaginary = parts
        if imaginary is None:
            return self.fused(real, y, total)
        turned = self.shuffled(y, [i ^ 1 for i in range(self.count)])
        signs = ir.Constant(self.type, [-1.0, 1.0] * self.lanes)
        turned = self.builder.fmul(turned, signs)
        if self.lanes == 1:  # sums wait for each other: the shorter chain is the faster one
            product = self.fused(real, y, self.builder.fmul(imaginary, turned))
            return self.builder.fadd(total, product)
        return self.fused(imaginary, turned, self.fused(real, y, total))

    def fused(self, x, y, z):
        width = "" if self.count == 1 else f"v{self.count}"
        kind = ir.FunctionType(self.type, [self.type] * 3)
        name = f"llvm.fma.{width}f{self.real.bitwidth}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, (x, y, z))

    def folded(self, value):
        """The sum of a vector's numbers, half by half."""
        count = self.count
        while count > self.parts_each:
            count //= 2
            low = self.shuffled(value, list(range(count)))
            high = self.shuffled(value, list(range(count, 2 * count)))
            value = self.builder.fadd(low, high)
        if self.count == 1:
            return value
        parts = [
            self.builder.extract_element(value, ir.IntType(32)(i)) for i in range(self.parts_each)
        ]
        if self.parts_each == 1:
            return parts[0]
        number = self.context.make_complex(self.builder, self.kind)
        number.real, number.imag = parts
        return number._getvalue()
