"""Orthonormalization of columns in the metric of the stalks, to lift sections."""

import numpy as np

from sheafcoarsen._kernels.dense import triangular_factor
from sheafcoarsen._kernels.jit import kernel


@kernel
def write_stalk_metrics(vertex_dims, bases, out):
    """Write V_v* W_v, with the first ranks[v] columns of V_v and W_v, to square blocks ``out``."""
    starts, ranks, W, V = bases.starts, bases.ranks, bases.W, bases.V
    to, data = out.starts, out.data
    for v in range(ranks.size):
        r, d, at = ranks[v], vertex_dims[v], starts[v]
        for i in range(r):
            for j in range(r):
                x = data.dtype.type(0)
                for h in range(d):
                    x += np.conj(V[at + h * d + i]) * W[at + h * d + j]
                data[to[v] + i * r + j] = x


@kernel
def orthonormalize_columns(lo, hi, f, c, metrics, columns, workspace):
    """Orthonormalize [P_a | R_a] of clusters lo .. hi in the metrics of the stalks, in place.

    ``columns`` are P and R as ``Blocks``. The columns of P_a become orthonormal, those of R_a
    orthogonal to them. ``metrics`` are the triangular factors of the metrics of the stalks, and the
    output for those of the coarse stalks, in which the norm of y is that of R_a y.
    """
    (P, R), (metric, new) = columns, metrics
    stack = workspace.stack
    for a in range(lo, hi):
        n, r, p = c.dims[a], R.ranks[a], P.ranks[a]
        k = r + p
        if k == 0:
            continue
        for _ in range(2):  # since rounding leaves columns not quite orthogonal
            for q in range(c.member_ptr[a], c.member_ptr[a + 1]):
                v = c.members[q]
                d = f.vertex_dims[v]
                for i in range(d):
                    first = (c.local_offsets[v] + i) * k
                    for j in range(k):
                        stack[first + j] = 0
                    for h in range(d):
                        g, row = metric.data[metric.starts[v] + i * d + h], f.vertex_offsets[v] + h
                        for j in range(p):
                            stack[first + j] += g * P.data[P.indptr[row] + j]
                        for j in range(r):
                            stack[first + p + j] += g * R.data[R.indptr[row] + j]
            triangular_factor(stack, n, k, workspace.column, workspace.row)
            for q in range(c.member_ptr[a], c.member_ptr[a + 1]):
                v = c.members[q]
                for row in range(f.vertex_offsets[v], f.vertex_offsets[v] + f.vertex_dims[v]):
                    at, to = P.indptr[row], R.indptr[row]
                    for h in range(p):
                        x = P.data[at + h] / stack[h * k + h]
                        P.data[at + h] = x
                        for j in range(h + 1, p):
                            P.data[at + j] -= x * stack[h * k + j]
                        for j in range(r):
                            R.data[to + j] -= x * stack[h * k + p + j]
        for i in range(r):
            for j in range(r):
                new.data[new.starts[a] + i * r + j] = stack[(p + i) * k + p + j]
