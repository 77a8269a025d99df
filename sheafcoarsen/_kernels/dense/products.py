"""Products of small dense matrices inside flat arrays, with the sums in registers."""

import numpy as np

from sheafcoarsen._kernels.jit import inlined, kernel, multiply_add

NOT_NEGATIVE = (1 << 62) - 1
"""Indices are masked by this: numba then need not ask whether they count from the end, which takes as long as the arithmetic."""


@inlined
def put_columns(
    columns, out, at, stride, a, p, row_step, step, conjugate, b, q, b_step, rows, inner, sign, add
):
    """Write or add a product to as many columns of a matrix as ``columns`` is long, at most 6; see ``put_product``."""
    zero = out.dtype.type(0)
    for i in range(rows):
        t0, t1, t2, t3, t4, t5 = zero, zero, zero, zero, zero, zero
        g, h = p + i * row_step, q
        for _ in range(inner):
            x, j = a[g & NOT_NEGATIVE], h & NOT_NEGATIVE
            if conjugate:
                x = np.conj(x)
            t0 = multiply_add(x, b[j], t0)
            if len(columns) > 1:
                t1 = multiply_add(x, b[j + 1], t1)
            if len(columns) > 2:
                t2 = multiply_add(x, b[j + 2], t2)
            if len(columns) > 3:
                t3 = multiply_add(x, b[j + 3], t3)
            if len(columns) > 4:
                t4 = multiply_add(x, b[j + 4], t4)
            if len(columns) > 5:
                t5 = multiply_add(x, b[j + 5], t5)
            g += step
            h += b_step
        z = (at + i * stride) & NOT_NEGATIVE
        out[z] = (out[z] if add else zero) + sign * t0
        if len(columns) > 1:
            out[z + 1] = (out[z + 1] if add else zero) + sign * t1
        if len(columns) > 2:
            out[z + 2] = (out[z + 2] if add else zero) + sign * t2
        if len(columns) > 3:
            out[z + 3] = (out[z + 3] if add else zero) + sign * t3
        if len(columns) > 4:
            out[z + 4] = (out[z + 4] if add else zero) + sign * t4
        if len(columns) > 5:
            out[z + 5] = (out[z + 5] if add else zero) + sign * t5


@kernel
def put_product(
    out, at, stride, a, p, row_step, step, conjugate, b, q, b_step, rows, inner, columns, sign, add
):
    """Write sign A B, rows x columns, or add it, where the matrix begins at ``at`` and has rows ``stride`` apart; six columns at a time.

    A[i, k] = a[p + i row_step + k step], or its conjugate: a row-major matrix or its adjoint. B[k,
    j] = b[q + k b_step + j].
    """
    left = columns
    while left > 6:
        put_columns(
            (0, 0, 0, 0, 0, 0),
            out,
            at,
            stride,
            a,
            p,
            row_step,
            step,
            conjugate,
            b,
            q,
            b_step,
            rows,
            inner,
            sign,
            add,
        )
        at += 6
        q += 6
        left -= 6
    if left == 1:
        put_columns(
            (0,),
            out,
            at,
            stride,
            a,
            p,
            row_step,
            step,
            conjugate,
            b,
            q,
            b_step,
            rows,
            inner,
            sign,
            add,
        )
    elif left == 2:
        put_columns(
            (0, 0),
            out,
            at,
            stride,
            a,
            p,
            row_step,
            step,
            conjugate,
            b,
            q,
            b_step,
            rows,
            inner,
            sign,
            add,
        )
    elif left == 3:
        put_columns(
            (0, 0, 0),
            out,
            at,
            stride,
            a,
            p,
            row_step,
            step,
            conjugate,
            b,
            q,
            b_step,
            rows,
            inner,
            sign,
            add,
        )
    elif left == 4:
        put_columns(
            (0, 0, 0, 0),
            out,
            at,
            stride,
            a,
            p,
            row_step,
            step,
            conjugate,
            b,
            q,
            b_step,
            rows,
            inner,
            sign,
            add,
        )
    elif left == 5:
        put_columns(
            (0, 0, 0, 0, 0),
            out,
            at,
            stride,
            a,
            p,
            row_step,
            step,
            conjugate,
            b,
            q,
            b_step,
            rows,
            inner,
            sign,
            add,
        )
    elif left == 6:
        put_columns(
            (0, 0, 0, 0, 0, 0),
            out,
            at,
            stride,
            a,
            p,
            row_step,
            step,
            conjugate,
            b,
            q,
            b_step,
            rows,
            inner,
            sign,
            add,
        )
