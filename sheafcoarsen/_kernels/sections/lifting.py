"""Orthonormalization of columns in the metric of the stalks, to lift sections."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.sections.reduction import orthonormalize


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

    ``columns`` are P and R as ``Blocks``; they become coordinates in orthonormal bases. ``metrics``
    are the triangular factors of the metrics of the stalks, and the output for those of the coarse
    stalks, in which the norm of y is that of the component of R_a y orthogonal to P_a.
    """
    (P, R), (metric, new) = columns, metrics
    z, factor, stack = workspace.z, workspace.factor, workspace.stack
    for a in range(lo, hi):
        n, r, p = c.dims[a], R.ranks[a], P.ranks[a]
        k = r + p
        if k == 0:
            continue
        for q in range(c.member_ptr[a], c.member_ptr[a + 1]):
            v = c.members[q]
            d = f.vertex_dims[v]
            for i in range(d):
                first = (c.local_offsets[v] + i) * k
                for j in range(k):
                    z[first + j] = 0
                for h in range(d):
                    g, row = metric.data[metric.starts[v] + i * d + h], f.vertex_offsets[v] + h
                    for j in range(p):
                        z[first + j] += g * P.data[P.indptr[row] + j]
                    for j in range(r):
                        z[first + p + j] += g * R.data[R.indptr[row] + j]
        orthonormalize(z, n, k, workspace)
        for i in range(k * k):
            factor[i] = stack[i]
        orthonormalize(z, n, k, workspace)  # since rounding leaves columns not quite orthogonal
        for i in range(r):
            for j in range(r):
                x = factor.dtype.type(0)
                for h in range(i, j + 1):
                    x += stack[(p + i) * k + p + h] * factor[(p + h) * k + p + j]
                new.data[new.starts[a] + i * r + j] = x
        for q in range(c.member_ptr[a], c.member_ptr[a + 1]):
            v = c.members[q]
            for i in range(f.vertex_dims[v]):
                first, row = (c.local_offsets[v] + i) * k, f.vertex_offsets[v] + i
                for j in range(p):
                    P.data[P.indptr[row] + j] = z[first + j]
                for j in range(r):
                    R.data[R.indptr[row] + j] = z[first + p + j]
