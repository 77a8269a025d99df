"""Solutions with sparse factors L D L*, several columns of right sides at a time."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.vectors import add_row, add_to_row, put_row, read_row, zero_row


@kernel
def solve_factored(indptr, indices, data, pivots, part, lanes, x):
    """Let x (n, h) be (L D L*)^{-1} x in the columns from part[0] to part[1].

    L is unit lower triangular by columns, its diagonal among the entries or not. ``lanes`` holds as
    many zeros as columns are worked on at a time, which must divide their number.
    """
    n, h = x.shape
    x = x.reshape(-1)
    for c in range(part[0], part[1], len(lanes)):
        for j in range(n):
            y = read_row(lanes, x, j * h + c)
            for p in range(indptr[j], indptr[j + 1]):
                i = indices[p]
                if i > j:
                    add_to_row(x, i * h + c, -data[p], y)
        for j in range(n - 1, -1, -1):
            y = add_row(zero_row(lanes), 1 / pivots[j], x, j * h + c)
            for p in range(indptr[j], indptr[j + 1]):
                i = indices[p]
                if i > j:
                    y = add_row(y, -np.conj(data[p]), x, i * h + c)
            put_row(x, j * h + c, y)
