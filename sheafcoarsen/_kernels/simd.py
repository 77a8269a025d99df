"""Operations for "block row times a few columns", with the sums in vector registers.

A vector holds ``len(lanes)`` consecutive numbers of a row, where ``lanes`` is a tuple of zeros of
their type; ``sums`` is a tuple of vectors, one for each row of a block. Tuples of numbers would be
unpacked and packed again in every iteration of a loop, and LLVM's own vectorizer would check at
each row whether arrays overlap. Arrays are flat, and consecutive rows of a block begin ``h``
entries apart. Numbers are cast to the type of the vectors when they are read, and to the type of
the array when they are written. A sign is 1.0 or -1.0.
"""

import numpy as np

from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen._kernels.simd_codegen import Registers, Vector

ONE = (0,)
"""Argument ``rows`` for a single row: only the length of the tuple, 1, matters."""

EXACT = True
"""Flag: round complex products as numba does, without fused operations."""

if JIT_IS_OFF:

    def zero(lanes, rows):
        """Return ``len(rows)`` vectors of zeros."""
        return np.zeros((len(rows), len(lanes)), np.array(lanes).dtype)

    def read(lanes, rows, x, at, h):
        """Return ``len(rows)`` vectors, the first one starting at x[at]."""
        indices = int(at) + h * np.arange(len(rows))[:, None] + np.arange(len(lanes))
        return x[indices].astype(np.array(lanes).dtype)

    def add_block(sums, sign, a, at, step, others, exact=None):
        """Return sums plus sign A times other vectors; row i of A starts at a[at + i step].

        Complex products use fused operations unless ``exact`` is given. Without them, the blocks
        A* B and B* A are adjoint to the bit.
        """
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
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

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
