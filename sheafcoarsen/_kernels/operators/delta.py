"""The matrix of the coboundary, factors of degree blocks, products with maps, sums over rows.

``f`` is a ``SheafArrays``; ranges ``lo .. hi`` are vertices or edges, as stated.
"""

import numpy as np

from sheafcoarsen._kernels.dense import triangular_factor
from sheafcoarsen._kernels.jit import borrowing_kernel, kernel


@kernel
def stacked_factors(lo, hi, f, half_ptr, half_edges, starts, out):
    """Write triangular R_v with R_v* R_v = D_v for vertices lo .. hi, d x d row-major at starts[v].

    R_v is the factor of the QR decomposition of the maps at v (for a loop, of their difference),
    which loses fewer digits than a factor of D_v. ``half_edges`` are 2 e + end, by vertex.
    """
    tallest, widest = 0, 0
    for v in range(lo, hi):
        widest = max(widest, f.vertex_dims[v])
        for k in range(half_ptr[v], half_ptr[v + 1]):
            tallest = max(tallest, f.edge_dims[half_edges[k] >> 1])
    height = widest + max(tallest, 64)
    m = np.empty(height * widest, out.dtype)
    column, row = np.empty(height, out.dtype), np.empty(widest, out.dtype)
    for v in range(lo, hi):
        d, filled = f.vertex_dims[v], 0
        for k in range(half_ptr[v], half_ptr[v + 1]):
            e, end = half_edges[k] >> 1, half_edges[k] & 1
            loop = f.edges[e, 0] == f.edges[e, 1]
            if d == 0:
                continue
            rows = f.edge_dims[e]
            if filled + rows > d + max(rows, 64):  # of v alone: ranges do not change the bits
                triangular_factor(m, filled, d, column, row)
                filled = min(filled, d)
            tail, head, at = f.tail_offsets[e], f.head_offsets[e], filled * d
            for i in range(rows * d):
                if loop:
                    m[at + i] = f.tail_data[tail + i] - f.head_data[head + i]
                elif end == 0:
                    m[at + i] = f.tail_data[tail + i]
                else:
                    m[at + i] = f.head_data[head + i]
            filled += rows
        triangular_factor(m, filled, d, column, row)
        for i in range(d * d):
            out[starts[v] + i] = m[i] if i < filled * d else 0


@borrowing_kernel
def multiply_maps(lo, hi, f, bases, begins, out):
    """Write F_{v->e} W_v at both ends of edges lo .. hi to out[end][begins[end][e]:].

    ``bases`` are (starts, ranks, W): W_v are the first ranks[v] columns of the d_v x d_v matrix at
    W[starts[v]].
    """
    starts, ranks, W = bases
    for end in range(2):
        maps = f.tail_data if end == 0 else f.head_data
        offsets = f.tail_offsets if end == 0 else f.head_offsets
        to, data = begins[end], out[end]
        for e in range(lo, hi):
            v = f.edges[e, end]
            d, r = f.vertex_dims[v], ranks[v]
            for q in range(f.edge_dims[e]):
                at, p = offsets[e] + q * d, to[e] + q * r
                for j in range(r):
                    data[p + j] = 0
                for i in range(d):
                    x, w = maps[at + i], starts[v] + i * d
                    for j in range(r):
                        data[p + j] += x * W[w + j]


@borrowing_kernel
def coboundary_csr(f, indptr, indices, data):
    """Write the CSR indices, sorted within rows, and data of the coboundary; indptr is given."""
    for e in range(f.edges.shape[0]):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        ou, ov = f.vertex_offsets[u], f.vertex_offsets[v]
        for q in range(f.edge_dims[e]):
            p = indptr[f.edge_offsets[e] + q]
            a, b = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            if u == v:
                for i in range(du):
                    indices[p + i] = ou + i
                    data[p + i] = f.tail_data[a + i] - f.head_data[b + i]
                continue
            pu, pv = (p, p + du) if u < v else (p + dv, p)
            for i in range(du):
                indices[pu + i] = ou + i
                data[pu + i] = f.tail_data[a + i]
            for i in range(dv):
                indices[pv + i] = ov + i
                data[pv + i] = -f.head_data[b + i]


@borrowing_kernel
def sum_products(starts, y, z, out):
    """Write Re sum_r conj(y[r, c]) z[r, c], r in starts[k]:starts[k + 1], to out[k, c]."""
    h = y.shape[1]
    for k in range(starts.size - 1):
        for c in range(h):
            out[k, c] = 0
        for r in range(starts[k], starts[k + 1]):
            for c in range(h):
                out[k, c] += (np.conj(y[r, c]) * z[r, c]).real
