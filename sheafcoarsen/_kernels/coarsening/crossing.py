"""Coarse restriction maps, retained internal energy and its factor, one coarse edge or one cluster at a time.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``; R is given by its csr ``indptr`` and ``data`` (see
``prolongation.py``).
"""

import numpy as np

from sheafcoarsen._kernels.dense import put_product, triangular_factor
from sheafcoarsen._kernels.intrinsics import prefetch
from sheafcoarsen._kernels.jit import inlined, kernel

FAR, NEAR = 16, 8
"""How many edges ahead their indices are fetched, and their maps and blocks of R: crossing edges lie scattered in memory."""


@inlined
def fetch_ahead(
    k,
    crossing,
    edges,
    vertex_offsets,
    tail_data,
    tail_offsets,
    head_data,
    head_offsets,
    indptr,
    data,
):
    """Bring what the crossing edges after the k-th need into the cache."""
    if k + FAR >= crossing.size:
        return
    e = crossing[k + FAR]
    prefetch(edges, 2 * e)
    prefetch(tail_offsets, e)
    prefetch(head_offsets, e)
    e = crossing[k + NEAR]
    tail, head = tail_offsets[e], head_offsets[e]
    p, q = indptr[vertex_offsets[edges[e, 0]]], indptr[vertex_offsets[edges[e, 1]]]
    for i in (0, 8):  # blocks are longer than a line of the cache
        prefetch(tail_data, tail + i)
        prefetch(head_data, head + i)
        prefetch(data, p + i)
        prefetch(data, q + i)


@kernel
def uniform_maps(
    begin, end, edges, labels, crossing, tail_data, head_data, data, rows, d, r, tail, head
):
    """Maps of crossing edges number begin .. end as ``crossing_maps`` writes them, where all fine maps are rows x d and all ranks r.

    Where everything begins is then a product, which takes a third of the time of looking it up.
    """
    size, block = rows * d, d * r
    at = begin * rows * r
    for k in range(begin, end):
        if k + FAR < crossing.size:
            prefetch(edges, 2 * crossing[k + FAR])
            e = crossing[k + NEAR]
            u, v = edges[e, 0], edges[e, 1]
            prefetch(labels, u)
            prefetch(labels, v)
            for i in (0, 8):
                prefetch(tail_data, e * size + i)
                prefetch(head_data, e * size + i)
                prefetch(data, u * block + i)
                prefetch(data, v * block + i)
        e = crossing[k]
        u, v = edges[e, 0], edges[e, 1]
        fe, pu, pv = e * size, u * block, v * block
        if labels[u] < labels[v]:
            put_product(tail, (at, r), tail_data, (fe, d), data, (pu, r), rows, 1.0)
            put_product(head, (at, r), head_data, (fe, d), data, (pv, r), rows, 1.0)
        else:
            put_product(tail, (at, r), head_data, (fe, d), data, (pv, r), rows, -1.0)
            put_product(head, (at, r), tail_data, (fe, d), data, (pu, r), rows, -1.0)
        at += rows * r


@kernel
def stack_pair(
    begin, end, f, c, indptr, data, sign, tail, to_tail, ra, tail_stride, head, to_head, rb, head_stride
):  # fmt: skip
    """Write the rows of crossing edges number begin .. end, all between the same clusters: A to ``tail``, sign * B to ``head``.

    Fine maps times blocks of R, stacked. A fine edge stored with its tail in the second cluster has
    both rows negated, so that the coarse coboundary equals the fine one row for row.
    """
    # taken out of the tuples once: they count references at every access
    edges, labels, crossing = f.edges, c.labels, c.crossing_edges
    vertex_dims, vertex_offsets, edge_dims = f.vertex_dims, f.vertex_offsets, f.edge_dims
    tail_data, tail_offsets, head_data, head_offsets = (
        f.tail_data,
        f.tail_offsets,
        f.head_data,
        f.head_offsets,
    )
    for k in range(begin, end):
        fetch_ahead(
            k,
            crossing,
            edges,
            vertex_offsets,
            tail_data,
            tail_offsets,
            head_data,
            head_offsets,
            indptr,
            data,
        )
        e = crossing[k]
        u, v, rows = edges[e, 0], edges[e, 1], edge_dims[e]
        du, dv = vertex_dims[u], vertex_dims[v]
        fu, fv = tail_offsets[e], head_offsets[e]
        pu, pv = np.int64(indptr[vertex_offsets[u]]), np.int64(indptr[vertex_offsets[v]])
        if labels[u] < labels[v]:
            put_product(
                tail, (to_tail, tail_stride), tail_data, (fu, du), data, (pu, ra), rows, abs(sign)
            )
            put_product(
                head, (to_head, head_stride), head_data, (fv, dv), data, (pv, rb), rows, sign
            )
        else:
            put_product(
                tail, (to_tail, tail_stride), head_data, (fv, dv), data, (pv, ra), rows, -abs(sign)
            )
            put_product(
                head, (to_head, head_stride), tail_data, (fu, du), data, (pu, rb), rows, -sign
            )
        to_tail += rows * tail_stride
        to_head += rows * head_stride


@kernel
def crossing_maps(lo, hi, f, c, ranks, indptr, data, tail_starts, head_starts, tail, head):
    """Maps of the coarse edges lo .. hi: fine maps times blocks of R, stacked in increasing fine edge index."""
    for p in range(lo, hi):
        ra, rb = ranks[c.pairs[p, 0]], ranks[c.pairs[p, 1]]
        stack_pair(
            c.pair_ptr[p], c.pair_ptr[p + 1], f, c, indptr, data, 1.0, tail, tail_starts[p], ra, ra, head, head_starts[p], rb, rb
        )  # fmt: skip


@kernel
def compressed_maps(
    lo,
    hi,
    f,
    c,
    ranks,
    edge_dims,
    rows,
    chunk,
    indptr,
    data,
    tail_starts,
    head_starts,
    m,
    v,
    s,
    tail,
    head,
):
    """Maps of the coarse edges lo .. hi, those of more rows than r_a + r_b compressed.

    [A | -B] of one edge goes through ``m``, at least ``chunk`` rows at a time, and becomes the
    triangular factor of its QR, whose Gram matrix is the same; its diagonal is made non-negative.
    ``rows``: of each edge before, ``edge_dims``: after compression.
    """
    for p in range(lo, hi):
        if rows[p] == edge_dims[p]:
            crossing_maps(p, p + 1, f, c, ranks, indptr, data, tail_starts, head_starts, tail, head)
            continue
        ra, rb = ranks[c.pairs[p, 0]], ranks[c.pairs[p, 1]]
        w = ra + rb
        if w == 0:
            continue
        filled, k, end = 0, c.pair_ptr[p], c.pair_ptr[p + 1]
        while k < end:
            begin, at = k, filled * w
            while k < end and filled + f.edge_dims[c.crossing_edges[k]] <= w + max(w, chunk):
                filled += f.edge_dims[c.crossing_edges[k]]
                k += 1
            stack_pair(begin, k, f, c, indptr, data, -1.0, m, at, ra, w, m, at + ra, rb, w)
            triangular_factor(m, filled, w, v, s)
            filled = min(filled, w)
        for q in range(w):
            sign = -1 if m[q * w + q].real < 0 else 1
            for j in range(ra):
                tail[tail_starts[p] + q * ra + j] = sign * m[q * w + j]
            for j in range(rb):
                head[head_starts[p] + q * rb + j] = -sign * m[q * w + ra + j]
