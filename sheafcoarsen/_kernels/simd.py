"""Six words for "block row times a few columns", with the sums in vector registers.

A vector holds as many neighbouring numbers of a row as the tuple ``lanes`` holds zeros of their
type; ``sums`` is a tuple of vectors, one for each row of a block. As tuples of numbers, vectors
would be taken apart and put together again in every round of a loop, and LLVM's own vectorizer
would ask at each row whether arrays overlap. Arrays are flat, and the rows of a block begin ``h``
entries apart. What is read is cast to the type of the vectors, what is written to that of the
array. A sign is 1.0 or -1.0.
"""

import numpy as np

from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen._kernels.simd_codegen import Registers, Vector

ONE = (0,)
"""A block of one row."""

EXACT = True
"""Products as numba rounds them."""

if JIT_IS_OFF:

    def zero(lanes, rows):
        """Return as many vectors of zeros as the tuple ``rows`` is long."""
        return np.zeros((len(rows), len(lanes)), np.array(lanes).dtype)

    def read(lanes, rows, x, at, h, count=None):
        """Return as many vectors as ``rows`` is long, the first one beginning at x[at].

        Of each only the first ``count`` numbers are read where that is given; the others are zero.
        """
        out, width = zero(lanes, rows), len(lanes) if count is None else min(count, len(lanes))
        out[:, :width] = x[int(at) + h * np.arange(len(rows))[:, None] + np.arange(width)]
        return out

    def add_block(sums, sign, a, at, step, others, exact=None):
        """Add sign A times other vectors; row i of A begins at a[at + i step].

        Products of complex numbers are fused unless ``exact`` is given: then the blocks of A* B
        and B* A are adjoint to the bit.
        """
        places = at + step * np.arange(len(sums))[:, None] + np.arange(len(others))
        return sums + sign * a[places].astype(sums.dtype) @ others

    def add_adjoint(sums, sign, a, at, step, others, exact=None):
        """Add sign A* times other vectors, as ``add_block``."""
        places = at + step * np.arange(len(others)) + np.arange(len(sums))[:, None]
        return sums + sign * a[places].conj().astype(sums.dtype) @ others

    def add_multiple(sums, by, others):
        """Add ``by``, a number or a real vector of one for each column, times other sums."""
        return sums + by * others

    def dot(sums, others):
        """Return the sum of the products of all numbers."""
        return (np.array(sums) * np.array(others)).sum()

    def put(out, at, h, sums, count=None):
        """Write the sums, or the first ``count`` numbers of each, to rows from ``at`` on."""
        for i, total in enumerate(sums):
            out[at + i * h : at + i * h + len(total[:count])] = total[:count]
else:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def _block_product(sums, sign, a, at, step, others, exact, adjoint):
        exactly = not isinstance(exact, types.NoneType | types.Omitted)

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, sums.dtype)
            begin, width = (
                context.cast(builder, args[i], kind, types.intp) for i, kind in ((3, at), (4, step))
            )
            totals = cgutils.unpack_tuple(builder, args[0])
            for k, other in enumerate(cgutils.unpack_tuple(builder, args[5])):
                for i, total in enumerate(totals):
                    row, column = (k, i) if adjoint else (i, k)
                    place = builder.add(begin, builder.mul(width, width.type(row)))
                    place = builder.add(place, place.type(column))
                    parts = do.entry(a, args[2], place, args[1], adjoint)
                    totals[i] = do.added(total, parts, other, exactly)
            return cgutils.pack_array(builder, totals)

        return sums(sums, sign, a, at, step, others, exact), codegen

    @intrinsic
    def zero(typingctx, lanes, rows):
        """Return as many vectors of zeros as the tuple ``rows`` is long."""
        sums = types.UniTuple(Vector(lanes.dtype, len(lanes)), len(rows))

        def codegen(context, builder, signature, args):
            return ir.Constant(context.get_value_type(sums), None)

        return sums(lanes, rows), codegen

    @intrinsic
    def read(typingctx, lanes, rows, x, at, h, count=types.none):
        """Return as many vectors as ``rows`` is long, the first one beginning at x[at].

        Of each only the first ``count`` numbers are read where that is given; the others are zero.
        """
        vector = Vector(lanes.dtype, len(lanes))

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, vector)
            mask = do.first(count, args[5])

            return do.tuple_of(lambda at: do.loaded(x, args[2], at, mask), len(rows), *args[3:5])

        return types.UniTuple(vector, len(rows))(lanes, rows, x, at, h, count), codegen

    @intrinsic
    def add_block(typingctx, sums, sign, a, at, step, others, exact=types.none):
        """Add sign A times other vectors; row i of A begins at a[at + i step].

        Products of complex numbers are fused unless ``exact`` is given: then the blocks of A* B
        and B* A are adjoint to the bit.
        """
        return _block_product(sums, sign, a, at, step, others, exact, adjoint=False)

    @intrinsic
    def add_adjoint(typingctx, sums, sign, a, at, step, others, exact=types.none):
        """Add sign A* times other vectors, as ``add_block``."""
        return _block_product(sums, sign, a, at, step, others, exact, adjoint=True)

    @intrinsic
    def add_multiple(typingctx, sums, by, others):
        """Add ``by``, a number or a real vector of one for each column, times other sums."""

        def codegen(context, builder, signature, args):
            do, parts = Registers(context, builder, sums.dtype), (args[1], None)
            if isinstance(by, types.Complex):
                parts = do.parts(context.cast(builder, args[1], by, do.kind))
            elif not isinstance(by, Vector):
                parts = do.everywhere(context.cast(builder, args[1], by, do.real)), None
            pairs = zip(*(cgutils.unpack_tuple(builder, args[i]) for i in (0, 2)), strict=True)
            return cgutils.pack_array(builder, [do.added(x, parts, y) for x, y in pairs])

        return sums(sums, by, others), codegen

    @intrinsic
    def dot(typingctx, sums, others):
        """Return the sum of the products of all numbers."""

        def codegen(context, builder, signature, args):
            do = Registers(context, builder, sums.dtype)
            total = ir.Constant(do.type, None)
            for x, y in zip(*(cgutils.unpack_tuple(builder, arg) for arg in args), strict=True):
                total = do.added(total, do.spread(x), y)
            return do.folded(total)

        return sums.dtype.kind(sums, others), codegen

    @intrinsic
    def put(typingctx, out, at, h, sums, count=types.none):
        """Write the sums, or the first ``count`` numbers of each, to rows from ``at`` on."""

        def codegen(context, builder, signature, args):
            do, place = Registers(context, builder, sums.dtype), args[1]
            mask = do.first(count, args[4])
            for total in cgutils.unpack_tuple(builder, args[3]):
                do.store(total, out, args[0], place, mask)
                place = builder.add(place, args[2])
            return context.get_dummy_value()

        return types.none(out, at, h, sums, count), codegen
