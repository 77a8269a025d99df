"""Solutions with sparse factors L D L*, several columns of right sides at a time."""

from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.simd import ONE, add_adjoint, add_block, put, read, zero


@kernel
def solve_factored(indptr, indices, data, inverses, part, lanes, x):
    """Let x (n, h) be (L D L*)^{-1} x in the columns from part[0] to part[1].

    L is unit lower triangular by columns, its diagonal among the entries or not, and D has the
    inverse entries ``inverses``. ``lanes`` holds as many zeros as columns are worked on at a time,
    which must divide their number.
    """
    n, h = x.shape
    x = x.reshape(-1)
    for c in range(part[0], part[1], len(lanes)):
        for j in range(n):
            y = read(lanes, ONE, x, j * h + c, h)
            for p in range(indptr[j], indptr[j + 1]):
                i = indices[p]
                if i > j:
                    row = read(lanes, ONE, x, i * h + c, h)
                    put(x, i * h + c, h, add_block(row, -1.0, data, p, 0, y))
        for j in range(n - 1, -1, -1):
            y = read(lanes, ONE, x, j * h + c, h)
            y = add_block(zero(lanes, ONE), 1.0, inverses, j, 0, y)
            for p in range(indptr[j], indptr[j + 1]):
                i = indices[p]
                if i > j:
                    row = read(lanes, ONE, x, i * h + c, h)
                    y = add_adjoint(y, -1.0, data, p, 0, row)
            put(x, j * h + c, h, y)
