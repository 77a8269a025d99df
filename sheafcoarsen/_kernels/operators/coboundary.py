"""Kernels of the coboundary and of what is summed edge by edge: their action on cochains, diagonal blocks, energies.

``f`` is a ``SheafArrays``; ranges ``lo .. hi`` are vertices or edges, as the first line of each
kernel says.
"""

import numpy as np

from sheafcoarsen._kernels.dense import add_gram
from sheafcoarsen._kernels.jit import kernel, subkernel


@subkernel
def add_loop_gram(out, to, a, p, b, q, shape):
    """Add (A - B)* (A - B) to the matrix at ``to``: the share of a loop with maps A and B."""
    at, stride = to
    rows, d = shape
    for _ in range(rows):
        for i in range(d):
            x = np.conj(a[p + i] - b[q + i])
            for j in range(d):
                out[at + i * stride + j] += x * (a[p + j] - b[q + j])
        p += d
        q += d


@kernel
def diagonal_blocks(f, starts, out):
    """Add up the diagonal block of every vertex; block v is out[starts[v] ...], row-major."""
    for e in range(f.edges.shape[0]):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv, rows = f.vertex_dims[u], f.vertex_dims[v], f.edge_dims[e]
        a, b = f.tail_offsets[e], f.head_offsets[e]
        if u == v:
            add_loop_gram(out, (starts[u], du), f.tail_data, a, f.head_data, b, (rows, du))
        else:
            add_gram(out, (starts[u], du), f.tail_data, (a, du), f.tail_data, (a, du), rows, 1.0)
            add_gram(out, (starts[v], dv), f.head_data, (b, dv), f.head_data, (b, dv), rows, 1.0)


@kernel
def multiply_maps(edges, end, edge_dims, vertex_dims, data, data_offsets, roots, root_offsets, out):
    """Out = F_{v->e} W_v for every edge, W_v the d_v x d_v matrix roots[root_offsets[v] ...]."""
    for e in range(edges.shape[0]):
        v = edges[e, end]
        d = vertex_dims[v]
        w = root_offsets[v]
        for q in range(edge_dims[e]):
            at = data_offsets[e] + q * d
            for j in range(d):
                out[at + j] = 0
            for i in range(d):
                x = data[at + i]
                for j in range(d):
                    out[at + j] += x * roots[w + i * d + j]


@kernel
def coboundary_csr(f, indptr, indices, data):
    """Write the coboundary in CSR with sorted columns; indptr is given."""
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


@kernel
def apply_coboundary(lo, hi, f, x, y):
    """Y = delta x in the rows of edges lo .. hi; x is (dim_c0, h), y is (dim_c1, h)."""
    h = x.shape[1]
    for e in range(lo, hi):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        ou, ov = f.vertex_offsets[u], f.vertex_offsets[v]
        for q in range(f.edge_dims[e]):
            row = f.edge_offsets[e] + q
            a, b = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            for c in range(h):
                y[row, c] = 0
            if u == v:
                for i in range(du):
                    t = f.tail_data[a + i] - f.head_data[b + i]
                    for c in range(h):
                        y[row, c] += t * x[ou + i, c]
                continue
            for i in range(du):
                t = f.tail_data[a + i]
                for c in range(h):
                    y[row, c] += t * x[ou + i, c]
            for i in range(dv):
                t = f.head_data[b + i]
                for c in range(h):
                    y[row, c] -= t * x[ov + i, c]


@kernel
def apply_adjoint(f, y, x):
    """X += delta* y; x is (dim_c0, h), y is (dim_c1, h)."""
    h = x.shape[1]
    for e in range(f.edges.shape[0]):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        ou, ov = f.vertex_offsets[u], f.vertex_offsets[v]
        for q in range(f.edge_dims[e]):
            row = f.edge_offsets[e] + q
            a, b = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            if u == v:
                for i in range(du):
                    t = np.conj(f.tail_data[a + i] - f.head_data[b + i])
                    for c in range(h):
                        x[ou + i, c] += t * y[row, c]
                continue
            for i in range(du):
                t = np.conj(f.tail_data[a + i])
                for c in range(h):
                    x[ou + i, c] += t * y[row, c]
            for i in range(dv):
                t = np.conj(f.head_data[b + i])
                for c in range(h):
                    x[ov + i, c] -= t * y[row, c]


@kernel
def sum_products(starts, y, z, out):
    """out[k, c] = Re sum of conj(y[r, c]) z[r, c] over the rows starts[k] .. starts[k+1]."""
    h = y.shape[1]
    for k in range(starts.size - 1):
        for c in range(h):
            out[k, c] = 0
        for r in range(starts[k], starts[k + 1]):
            for c in range(h):
                out[k, c] += (np.conj(y[r, c]) * z[r, c]).real
