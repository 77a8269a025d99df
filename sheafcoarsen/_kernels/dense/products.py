"""Products of small dense matrices inside flat arrays, with the sums in registers.

A matrix is handed over as the array it lies in and its place there, (where it begins, how far apart
its rows are); the rows of a row-major matrix of its own are as far apart as it has columns. Two
shapes are all that a sheaf needs: F* G added to a block of a Laplacian, and F R, a map times a
block of R. Both run over up to three columns at a time.
"""

from sheafcoarsen._kernels.jit import inlined, subkernel
from sheafcoarsen._kernels.simd import (
    EXACT,
    ONE,
    add_adjoint,
    add_block,
    add_multiple,
    put,
    read,
    zero,
)

NOT_NEGATIVE = (1 << 62) - 1
"""Indices are masked by this: numba then does not ask whether they count from the end."""


@inlined
def add_gram_columns(lanes, out, to, a, place_a, b, place_b, sizes):
    """Do what ``add_gram`` does in as many columns as there are ``lanes``; sizes: rows, sign."""
    (at, stride), (p, columns), (q, step), (rows, sign) = to, place_a, place_b, sizes
    for i in range(columns):
        sums = zero(lanes, ONE)
        for k in range(rows):
            row = read(lanes, ONE, b, q + k * step, 0)
            sums = add_adjoint(sums, 1.0, a, p + i + k * columns, 0, row, EXACT)
        before = read(lanes, ONE, out, at + i * stride, 0)
        put(out, at + i * stride, 0, add_multiple(before, sign, sums))


@subkernel
def add_gram(out, to, a, place_a, b, place_b, rows, sign):
    """Add sign A* B to the matrix at ``to``, for row-major A and B of the same number of rows.

    Places are (begin, columns) for A and B and (begin, stride) for the result; the sign is 1.0 or
    -1.0.
    """
    at, stride = to
    q, step = place_b
    sizes, left, o = (rows, sign), step, out.dtype.type(0)
    while left > 0:
        to, of = (at, stride), (q, step)
        if left >= 3:
            add_gram_columns((o, o, o), out, to, a, place_a, b, of, sizes)
        elif left == 2:
            add_gram_columns((o, o), out, to, a, place_a, b, of, sizes)
        else:
            add_gram_columns((o,), out, to, a, place_a, b, of, sizes)
        at += 3
        q += 3
        left -= 3


@inlined
def put_product_columns(lanes, out, to, a, place_a, b, place_b, sizes):
    """Do what ``put_product`` does in as many columns as there are ``lanes``; sizes: rows, sign."""
    (at, stride), (p, inner), (q, step), (rows, sign) = to, place_a, place_b, sizes
    for i in range(rows):
        sums = zero(lanes, ONE)
        for k in range(inner):
            row = read(lanes, ONE, b, q + k * step, 0)
            sums = add_block(sums, 1.0, a, p + i * inner + k, 0, row, EXACT)
        put(out, at + i * stride, 0, add_multiple(zero(lanes, ONE), sign, sums))


@subkernel
def put_product(out, to, a, place_a, b, place_b, rows, sign):
    """Write sign A B to the matrix at ``to``, for row-major A, of so many rows, and B.

    Places and sign are those of ``add_gram``.
    """
    at, stride = to
    q, step = place_b
    sizes, left, o = (rows, sign), step, out.dtype.type(0)
    while left > 0:
        to, of = (at, stride), (q, step)
        if left >= 3:
            put_product_columns((o, o, o), out, to, a, place_a, b, of, sizes)
        elif left == 2:
            put_product_columns((o, o), out, to, a, place_a, b, of, sizes)
        else:
            put_product_columns((o,), out, to, a, place_a, b, of, sizes)
        at += 3
        q += 3
        left -= 3
