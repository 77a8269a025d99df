"""Products of small dense matrices inside flat arrays, with the sums in registers.

A matrix is handed over as the array it lies in and its place there, (where it begins, how far apart
its rows are); the rows of a row-major matrix of its own are as far apart as it has columns. Two
shapes are all that a sheaf needs: F* G added to a block of a Laplacian, and F R, a map times a
block of R. Both run over up to six columns at a time, whose sums are a tuple.
"""

import numpy as np

from sheafcoarsen._kernels.intrinsics import add_multiple, add_row, put_row
from sheafcoarsen._kernels.jit import inlined, subkernel

NOT_NEGATIVE = (1 << 62) - 1
"""Indices are masked by this: numba then does not ask whether they count from the end."""


@inlined
def add_gram_columns(zeros, out, to, a, place_a, b, place_b, sizes):
    """Do what ``add_gram`` does in as many columns as there are ``zeros``; sizes: rows, sign."""
    (at, stride), (p, columns), (q, step), (rows, sign) = to, place_a, place_b, sizes
    for i in range(columns):
        sums, g, h = zeros, p + i, q
        for _ in range(rows):
            sums = add_multiple(sums, np.conj(a[g & NOT_NEGATIVE]), b, h)
            g += columns
            h += step
        add_row(out, at + i * stride, sign, sums)


@subkernel
def add_gram(out, to, a, place_a, b, place_b, rows, sign):
    """Add sign A* B to the matrix at ``to``, for row-major A and B of the same number of rows.

    Places are (begin, columns) for A and B and (begin, stride) for the result; the sign is 1.0 or
    -1.0.
    """
    at, stride = to
    q, left = place_b
    step = left
    sizes = rows, sign
    o = out.dtype.type(0)
    while left > 6:
        to, of = (at, stride), (q, step)
        add_gram_columns((o, o, o, o, o, o), out, to, a, place_a, b, of, sizes)
        at += 6
        q += 6
        left -= 6
    to, of = (at, stride), (q, step)
    if left == 1:
        add_gram_columns((o,), out, to, a, place_a, b, of, sizes)
    elif left == 2:
        add_gram_columns((o, o), out, to, a, place_a, b, of, sizes)
    elif left == 3:
        add_gram_columns((o, o, o), out, to, a, place_a, b, of, sizes)
    elif left == 4:
        add_gram_columns((o, o, o, o), out, to, a, place_a, b, of, sizes)
    elif left == 5:
        add_gram_columns((o, o, o, o, o), out, to, a, place_a, b, of, sizes)
    elif left == 6:
        add_gram_columns((o, o, o, o, o, o), out, to, a, place_a, b, of, sizes)


@inlined
def put_product_columns(zeros, out, to, a, place_a, b, place_b, sizes):
    """Do what ``put_product`` does in as many columns as there are ``zeros``; sizes: rows, sign."""
    (at, stride), (p, inner), (q, step), (rows, sign) = to, place_a, place_b, sizes
    for i in range(rows):
        sums, g, h = zeros, p + i * inner, q
        for _ in range(inner):
            sums = add_multiple(sums, a[g & NOT_NEGATIVE], b, h)
            g += 1
            h += step
        put_row(out, at + i * stride, sign, sums)


@subkernel
def put_product(out, to, a, place_a, b, place_b, rows, sign):
    """Write sign A B to the matrix at ``to``, for row-major A, of so many rows, and B.

    Places and sign are those of ``add_gram``.
    """
    at, stride = to
    q, left = place_b
    step = left
    sizes = rows, sign
    o = out.dtype.type(0)
    while left > 6:
        to, of = (at, stride), (q, step)
        put_product_columns((o, o, o, o, o, o), out, to, a, place_a, b, of, sizes)
        at += 6
        q += 6
        left -= 6
    to, of = (at, stride), (q, step)
    if left == 1:
        put_product_columns((o,), out, to, a, place_a, b, of, sizes)
    elif left == 2:
        put_product_columns((o, o), out, to, a, place_a, b, of, sizes)
    elif left == 3:
        put_product_columns((o, o, o), out, to, a, place_a, b, of, sizes)
    elif left == 4:
        put_product_columns((o, o, o, o), out, to, a, place_a, b, of, sizes)
    elif left == 5:
        put_product_columns((o, o, o, o, o), out, to, a, place_a, b, of, sizes)
    elif left == 6:
        put_product_columns((o, o, o, o, o, o), out, to, a, place_a, b, of, sizes)
