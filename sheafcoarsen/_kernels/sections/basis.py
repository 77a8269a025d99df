"""Orthonormal bases, stalk by stalk."""

import numpy as np

from sheafcoarsen._kernels.dense import triangular_factor
from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.sections.reduction import divided_rows, gram_factor


@kernel
def orthonormal_blocks(
    lo,
    hi,
    f,
    c,
    starts,
    factors,
    carried,
    peeled,
    r_ptr,
    r_data,
    p_ptr,
    p_data,
    s,
    room,
    new_starts,
    new_factors,
):
    """Make [P_a | R_a] orthonormal in the metrics that ``factors`` are the triangular factors of, for clusters lo .. hi, in place.

    What is written instead are coordinates in orthonormal bases. new_factors[new_starts[a] ...] is
    the factor of the metric of what R_a carries on, P_a being split off. Returns -1, or the first
    cluster at which LAPACK failed.
    """
    for a in range(lo, hi):
        n, r, p = c.dims[a], carried[a], peeled[a]
        k = r + p
        if k == 0:
            continue
        m = room.z
        for q in range(c.member_ptr[a], c.member_ptr[a + 1]):
            v = c.members[q]
            d = f.vertex_dims[v]
            for i in range(d):
                x = (c.local_offsets[v] + i) * k
                for j in range(k):
                    m[x + j] = 0
                for h in range(d):
                    g = factors[starts[v] + i * d + h]
                    row = f.vertex_offsets[v] + h
                    for j in range(p):
                        m[x + j] += g * p_data[p_ptr[row] + j]
                    for j in range(r):
                        m[x + p + j] += g * r_data[r_ptr[row] + j]
        for i in range(n * k):
            room.stack[i] = m[i]
        triangular_factor(room.stack, n, k, room.column, room.row)
        divided_rows(m, n, k, room.stack, True)
        if (
            gram_factor(m, n, k, room.factor, s) != 0
        ):  # what was left of dependence goes in the second pass
            return a
        divided_rows(m, n, k, room.factor, False)
        for i in range(r):
            for j in range(r):
                x = factors.dtype.type(0)
                for h in range(i, j + 1):
                    x += np.conj(room.factor[(p + h) * k + p + i]) * room.stack[(p + h) * k + p + j]
                new_factors[new_starts[a] + i * r + j] = x
        for q in range(c.member_ptr[a], c.member_ptr[a + 1]):
            v = c.members[q]
            for i in range(f.vertex_dims[v]):
                x, row = (c.local_offsets[v] + i) * k, f.vertex_offsets[v] + i
                for j in range(p):
                    p_data[p_ptr[row] + j] = m[x + j]
                for j in range(r):
                    r_data[r_ptr[row] + j] = m[x + p + j]
    return -1


@kernel
def stalk_factors(lo, hi, vertex_dims, starts, V, W, ranks, new_starts, out):
    """out[new_starts[v] ...] = V_v* W_v, ranks[v] x ranks[v], the first columns of both, for vertices lo .. hi."""
    for v in range(lo, hi):
        r, d, at = ranks[v], vertex_dims[v], starts[v]
        for i in range(r):
            for j in range(r):
                x = out.dtype.type(0)
                for h in range(d):
                    x += np.conj(V[at + h * d + i]) * W[at + h * d + j]
                out[new_starts[v] + i * r + j] = x
