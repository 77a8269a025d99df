"""Coarse restriction maps, retained internal energy and its factor, one coarse edge or one cluster at a time.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``; R is given by its csr ``indptr`` and ``data`` (see ``prolongation.py``).
"""

import math

import numpy as np

from sheafcoarsen._kernels.hermitian import eigh_lowest
from sheafcoarsen._kernels.jit import inlined, kernel, prefetch
from sheafcoarsen._kernels.modes import cluster_unit, normalized, power_of_two
from sheafcoarsen._kernels.products import put_product

FAR, NEAR = 16, 8
"""How many edges ahead their indices are fetched, and their maps and blocks of R: crossing edges lie scattered in memory."""


@inlined
def fetch_ahead(k, crossing, edges, vertex_offsets, tail_data, tail_offsets, head_data, head_offsets, indptr, data):
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
def uniform_maps(begin, end, edges, labels, crossing, tail_data, head_data, data, rows, d, r, tail, head):
    """Maps of crossing edges number begin .. end as ``crossing_maps`` writes them, where all fine maps are rows x d and all ranks r.

    Where everything begins is then a product, which takes a third of the time of looking it up.
    """
    one = tail.dtype.type(1).real
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
            put_product(tail, at, r, tail_data, fe, d, 1, False, data, pu, r, rows, d, r, one, False)
            put_product(head, at, r, head_data, fe, d, 1, False, data, pv, r, rows, d, r, one, False)
        else:
            put_product(tail, at, r, head_data, fe, d, 1, False, data, pv, r, rows, d, r, -one, False)
            put_product(head, at, r, tail_data, fe, d, 1, False, data, pu, r, rows, d, r, -one, False)
        at += rows * r


@kernel
def stack_pair(
    begin, end, f, c, indptr, data, sign, tail, to_tail, ra, tail_stride, head, to_head, rb, head_stride
):  # fmt: skip
    """Write the rows of crossing edges number begin .. end, all between the same clusters: A to ``tail``, sign * B to ``head``.

    Fine maps times blocks of R, stacked. A fine edge stored with its tail in the second cluster has both rows negated, so that the
    coarse coboundary equals the fine one row for row.
    """
    # taken out of the tuples once: they count references at every access
    edges, labels, crossing = f.edges, c.labels, c.crossing_edges
    vertex_dims, vertex_offsets, edge_dims = f.vertex_dims, f.vertex_offsets, f.edge_dims
    tail_data, tail_offsets, head_data, head_offsets = f.tail_data, f.tail_offsets, f.head_data, f.head_offsets
    for k in range(begin, end):
        fetch_ahead(k, crossing, edges, vertex_offsets, tail_data, tail_offsets, head_data, head_offsets, indptr, data)
        e = crossing[k]
        u, v, rows = edges[e, 0], edges[e, 1], edge_dims[e]
        du, dv = vertex_dims[u], vertex_dims[v]
        fu, fv = tail_offsets[e], head_offsets[e]
        pu, pv = np.int64(indptr[vertex_offsets[u]]), np.int64(indptr[vertex_offsets[v]])
        if labels[u] < labels[v]:
            put_product(
                tail, to_tail, tail_stride, tail_data, fu, du, 1, False, data, pu, ra, rows, du, ra, abs(sign), False
            )
            put_product(
                head, to_head, head_stride, head_data, fv, dv, 1, False, data, pv, rb, rows, dv, rb, sign, False
            )
        else:
            put_product(
                tail, to_tail, tail_stride, head_data, fv, dv, 1, False, data, pv, ra, rows, dv, ra, -abs(sign), False
            )
            put_product(
                head, to_head, head_stride, tail_data, fu, du, 1, False, data, pu, rb, rows, du, rb, -sign, False
            )
        to_tail += rows * tail_stride
        to_head += rows * head_stride


@kernel
def crossing_maps(lo, hi, f, c, ranks, indptr, data, tail_starts, head_starts, tail, head):
    """Maps of the coarse edges lo .. hi: fine maps times blocks of R, stacked in increasing fine edge index."""
    one = tail.dtype.type(1).real
    for p in range(lo, hi):
        ra, rb = ranks[c.pairs[p, 0]], ranks[c.pairs[p, 1]]
        stack_pair(
            c.pair_ptr[p], c.pair_ptr[p + 1], f, c, indptr, data, one, tail, tail_starts[p], ra, ra, head, head_starts[p], rb, rb
        )  # fmt: skip


@kernel
def triangular_factor(m, rows, w, v, s):
    """Overwrite the row-major rows x w matrix in m by the triangular factor of its QR, by Householder reflections.

    Only norms are squares, and they are taken of columns divided by a power of two, so that nothing over- or underflows.
    Rows are skipped where a reflection does not touch them: those of an earlier factor. The diagonal is left real, of either
    sign. ``v`` and ``s`` have room for a column and a row.
    """
    for k in range(min(rows, w)):
        largest = 0.0
        for i in range(k, rows):
            largest = max(largest, float(abs(m[i * w + k].real)), float(abs(m[i * w + k].imag)))
        if largest == 0:
            continue
        scale = power_of_two(largest)
        size = 0.0
        for i in range(k, rows):
            v[i] = m[i * w + k] / scale
            size += float(v[i].real) ** 2 + float(v[i].imag) ** 2
        beta = -math.copysign(math.sqrt(size), float(v[k].real))
        tau = (beta - v[k]) / beta
        turn = 1 / (v[k] - beta)
        for j in range(k + 1, w):
            s[j] = m[k * w + j]
        for i in range(k + 1, rows):
            if v[i] == 0:
                continue
            v[i] *= turn
            for j in range(k + 1, w):
                s[j] += np.conj(v[i]) * m[i * w + j]
        for j in range(k + 1, w):
            s[j] *= np.conj(tau)
            m[k * w + j] -= s[j]
        for i in range(k + 1, rows):
            m[i * w + k] = 0
            if v[i] == 0:
                continue
            for j in range(k + 1, w):
                m[i * w + j] -= v[i] * s[j]
        m[k * w + k] = beta * scale


@kernel
def compressed_maps(
    lo, hi, f, c, ranks, edge_dims, rows, chunk, indptr, data, tail_starts, head_starts, m, v, s, tail, head
):
    """Maps of the coarse edges lo .. hi, those of more rows than r_a + r_b compressed.

    [A | -B] of one edge goes through ``m``, at least ``chunk`` rows at a time, and becomes the triangular factor of its QR, whose
    Gram matrix is the same; its diagonal is made non-negative. ``rows``: of each edge before, ``edge_dims``: after compression.
    """
    one = tail.dtype.type(1).real
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
            stack_pair(begin, k, f, c, indptr, data, -one, m, at, ra, w, m, at + ra, rb, w)
            triangular_factor(m, filled, w, v, s)
            filled = min(filled, w)
        for q in range(w):
            sign = -1 if m[q * w + q].real < 0 else 1
            for j in range(ra):
                tail[tail_starts[p] + q * ra + j] = sign * m[q * w + j]
            for j in range(rb):
                head[head_starts[p] + q * rb + j] = -sign * m[q * w + ra + j]


@kernel
def half_factors(lo, hi, ranks, starts, factors, kept, to, out):
    """out[to[a] ...] = B_a / 2, the first kept[a] rows that stand in factors at starts[a], clusters lo .. hi."""
    for a in range(lo, hi):
        for i in range(kept[a] * ranks[a]):
            out[to[a] + i] = factors[starts[a] + i] / 2


@kernel
def units(lo, hi, f, c, half_ptr, half_edges, ranks, indptr, data, map_units, block_units):
    """One over powers of two just above the largest entries of cluster a's internal maps and of R_a, clusters lo .. hi."""
    for a in range(lo, hi):
        map_units[a] = cluster_unit(a, f, c, half_ptr, half_edges)
        largest = 0.0
        for k in range(c.member_ptr[a], c.member_ptr[a + 1]):
            v = c.members[k]
            for i in range(f.vertex_dims[v]):
                p = indptr[f.vertex_offsets[v] + i]
                for j in range(ranks[a]):
                    largest = max(largest, float(abs(data[p + j])))
        block_units[a] = 1 / power_of_two(largest)


@kernel
def internal_traces(f, c, map_units, out):
    """out[v] += trace of the diagonal block that the internal edges, maps in units of their cluster, put at vertex v."""
    for k in range(c.internal_edges.size):
        e = c.internal_edges[k]
        u, v = f.edges[e, 0], f.edges[e, 1]
        unit = map_units[c.labels[u]]
        if u == v:
            begin = f.head_offsets[e]
            for i in range(f.tail_offsets[e + 1] - f.tail_offsets[e]):
                out[u] += abs((f.tail_data[f.tail_offsets[e] + i] - f.head_data[begin + i]) * unit) ** 2
            continue
        for i in range(f.tail_offsets[e], f.tail_offsets[e + 1]):
            out[u] += abs(f.tail_data[i] * unit) ** 2
        for i in range(f.head_offsets[e], f.head_offsets[e + 1]):
            out[v] += abs(f.head_data[i] * unit) ** 2


@kernel
def retained_energy(lo, hi, f, c, ranks, indptr, data, map_units, block_units, starts, out):
    """H_a = (delta_a R_a)* (delta_a R_a) of clusters lo .. hi, r_a x r_a at starts[a], maps and R_a in units of their own."""
    for a in range(lo, hi):
        r = ranks[a]
        at = starts[a]
        unit, block_unit = map_units[a], block_units[a]
        for i in range(at, at + r * r):
            out[i] = 0
        y = np.empty(r, data.dtype)
        for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
            e = c.internal_edges[k]
            u, v = f.edges[e, 0], f.edges[e, 1]
            du, dv = f.vertex_dims[u], f.vertex_dims[v]
            for q in range(f.edge_dims[e]):
                for j in range(r):
                    y[j] = 0
                if u == v:
                    for i in range(du):
                        x = f.tail_data[f.tail_offsets[e] + q * du + i] - f.head_data[f.head_offsets[e] + q * du + i]
                        p = indptr[f.vertex_offsets[u] + i]
                        for j in range(r):
                            y[j] += x * unit * data[p + j]
                else:
                    for i in range(du):
                        x = f.tail_data[f.tail_offsets[e] + q * du + i] * unit
                        p = indptr[f.vertex_offsets[u] + i]
                        for j in range(r):
                            y[j] += x * data[p + j]
                    for i in range(dv):
                        x = f.head_data[f.head_offsets[e] + q * dv + i] * unit
                        p = indptr[f.vertex_offsets[v] + i]
                        for j in range(r):
                            y[j] -= x * data[p + j]
                for i in range(r):
                    y[i] *= block_unit
                for i in range(r):
                    z = np.conj(y[i])
                    for j in range(r):
                        out[at + i * r + j] += z * y[j]


@kernel
def largest_columns(lo, hi, f, c, ranks, indptr, data, block_units, out):
    """out[a] = largest squared norm of a column of R_a, in its unit, clusters lo .. hi."""
    for a in range(lo, hi):
        r = ranks[a]
        sums = np.zeros(r)
        for k in range(c.member_ptr[a], c.member_ptr[a + 1]):
            v = c.members[k]
            for i in range(f.vertex_dims[v]):
                p = indptr[f.vertex_offsets[v] + i]
                for j in range(r):
                    sums[j] += abs(data[p + j] * block_units[a]) ** 2
        out[a] = 0
        for j in range(r):
            out[a] = max(out[a], sums[j])


@kernel
def factor(lo, hi, ranks, starts, energy, levels, map_units, block_units, eps, s, out, kept):
    """H_a = B_a* B_a for clusters lo .. hi: B_a = diag(sqrt(mu)) V*, rows with mu <= levels[a] left out.

    ``energy`` and ``levels`` are in units of the cluster, B_a is not; ``out`` may be ``energy``. Returns -1, or the first
    cluster at which LAPACK failed.
    """
    for a in range(lo, hi):
        r = ranks[a]
        at = starts[a]
        kept[a] = 0
        for i in range(r * r):
            s.a[i] = energy[at + i]
        scale = normalized(s.a, r * r)
        if scale == 0:
            continue
        if eigh_lowest(r, r, eps, s) != 0:
            return a
        for j in range(r):
            mu = float(s.w[j]) * scale
            if not mu > levels[a]:
                continue
            root = math.sqrt(mu) / map_units[a] / block_units[a]
            to = at + kept[a] * r
            for i in range(r):
                out[to + i] = root * np.conj(s.z[j * r + i])
            kept[a] += 1
    return -1
