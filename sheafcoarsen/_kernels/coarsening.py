"""Kernels of :mod:`sheafcoarsen.coarsening`: maps of crossing edges and of loops.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``, ``R`` the ``Blocks`` of the prolongation. The maps
of loops are factors of the energy retained inside each cluster.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import (
    brought_near_one,
    largest_entry,
    power_of_two,
    triangular_factor,
)
from sheafcoarsen._kernels.hermitian import eigh_lowest
from sheafcoarsen._kernels.jit import borrowing_kernel, subkernel
from sheafcoarsen._kernels.modes import cluster_unit
from sheafcoarsen._kernels.simd import NOT_NEGATIVE, prefetch, put_product

FAR, NEAR = 16, 8
"""Prefetch distances, in edges: FAR for an edge's indices, NEAR for its maps and blocks of R."""


class CoarseMaps(NamedTuple):
    """Maps of the coarse sheaf; both maps of edge p have heights[p] rows.

    They begin at tail[tail_starts[p]] and head[head_starts[p]].
    """

    heights: np.ndarray  # (P,)
    tail_starts: np.ndarray
    head_starts: np.ndarray
    tail: np.ndarray
    head: np.ndarray


class Noise(NamedTuple):
    """Rounding level of coarse rows at a vertex v of cluster a, for fine rows of norm 1.

    It is norms[a] + relative * max(abs(R_v)).
    """

    norms: np.ndarray  # (K,) absolute errors of R_a
    relative: float  # error of R_v
    longest: float  # upper bound on the norms of all fine rows


class Rows(NamedTuple):
    """Destination of a map's rows: row i has ``columns`` entries from ``at + i stride`` on."""

    out: np.ndarray
    at: int
    columns: int
    stride: int


class FactorWorkspace(NamedTuple):
    """Workspace for a coarse edge's triangular factor and ``chunk`` or more rows below it."""

    stack: np.ndarray
    column: np.ndarray
    row: np.ndarray
    chunk: int
    noise: Noise


@borrowing_kernel
def uniform_maps(lo, hi, f, c, R, out):
    """Compute the maps of coarse edges lo .. hi if all fine maps are rows x d and all ranks are r.

    All offsets are then products; computing them takes a third of the time of reading them.
    """
    edges, labels, crossing = f.edges, c.labels, c.crossing_edges
    tail_data, head_data, data, tail, head = f.tail_data, f.head_data, R.data, out.tail, out.head
    begin, end = c.pair_ptr[lo], c.pair_ptr[hi]
    rows, d, r = f.edge_dims[0], f.vertex_dims[0], R.ranks[0]
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
        fe, u, v = (e * size, d), edges[e, 0], edges[e, 1]
        pu, pv = (u * block, r), (v * block, r)
        if labels[u] < labels[v]:
            put_product(tail, (at, r), tail_data, fe, data, pu, rows, 1.0)
            put_product(head, (at, r), head_data, fe, data, pv, rows, 1.0)
        else:
            put_product(tail, (at, r), head_data, fe, data, pv, rows, -1.0)
            put_product(head, (at, r), tail_data, fe, data, pu, rows, -1.0)
        at += rows * r


@subkernel
def stack_pair(begin, end, f, c, R, sign, tail, head):
    """Write fine maps times blocks of R for crossing edges begin .. end between two clusters.

    The products at the first cluster are written to the rows ``tail``, sign times those at the
    second to the rows ``head``. If a fine edge has its tail in the second cluster, its rows in both
    are negated, so that the coarse coboundary equals the fine one row by row.
    """
    edges, offsets, crossing = f.edges, f.vertex_offsets, c.crossing_edges
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    indptr, data = R.indptr, R.data
    A, to_A, ra, stride_A = tail
    B, to_B, rb, stride_B = head
    for k in range(begin, end):
        if k + FAR < crossing.size:  # crossing edges are scattered in memory
            e = crossing[k + FAR]
            prefetch(edges, 2 * e)
            prefetch(tail_offsets, e)
            prefetch(head_offsets, e)
            e = crossing[k + NEAR]
            fu, fv = tail_offsets[e], head_offsets[e]
            p, q = indptr[offsets[edges[e, 0]]], indptr[offsets[edges[e, 1]]]
            for i in (0, 8):  # two cache lines: blocks are longer than one
                prefetch(tail_data, fu + i)
                prefetch(head_data, fv + i)
                prefetch(data, p + i)
                prefetch(data, q + i)
        e = crossing[k]
        u, v, rows = edges[e, 0], edges[e, 1], f.edge_dims[e]
        a, b, fu, fv, one = tail_data, head_data, tail_offsets[e], head_offsets[e], 1.0
        if c.labels[u] > c.labels[v]:
            u, v, a, b, fu, fv, one = v, u, head_data, tail_data, fv, fu, -1.0
        at_a, at_b = (fu, f.vertex_dims[u]), (fv, f.vertex_dims[v])
        pu, pv = np.int64(indptr[offsets[u]]), np.int64(indptr[offsets[v]])
        put_product(A, (to_A, stride_A), a, at_a, data, (pu, ra), rows, one)
        put_product(B, (to_B, stride_B), b, at_b, data, (pv, rb), rows, one * sign)
        to_A += rows * stride_A
        to_B += rows * stride_B


@borrowing_kernel
def crossing_maps(lo, hi, f, c, R, out):
    """Compute the maps of coarse edges lo .. hi: stacked products F R_v, in fine edge order."""
    for p in range(lo, hi):
        ra, rb = R.ranks[c.pairs[p, 0]], R.ranks[c.pairs[p, 1]]
        tail = Rows(out.tail, out.tail_starts[p], ra, ra)
        head = Rows(out.head, out.head_starts[p], rb, rb)
        stack_pair(c.pair_ptr[p], c.pair_ptr[p + 1], f, c, R, 1.0, tail, head)


@subkernel
def clear_rows(begin, end, a, f, c, R, noise, target):
    """Zero the rows at rounding level in the maps at cluster a, for crossing edges begin .. end.

    A row of F R_v has the error of R_v, relative to its row of F. A row that is zero in exact
    arithmetic consists of this error, which would grow if maps are scaled to norm 1.
    """
    out, row, columns, stride = target
    for k in range(begin, end):
        e = c.crossing_edges[k]
        data, starts, v = f.tail_data, f.tail_offsets, f.edges[e, 0]
        if c.labels[v] != a:
            data, starts, v = f.head_data, f.head_offsets, f.edges[e, 1]
        p, largest = R.indptr[f.vertex_offsets[v]], 0.0
        for j in range(p, p + f.vertex_dims[v] * R.ranks[a]):
            largest = max(largest, float(abs(R.data[j])))
        at, rows = starts[e], f.edge_dims[e]
        for _ in range(rows):
            after, squares = at + (starts[e + 1] - starts[e]) // rows, 0.0
            for j in range(at, after):
                squares += float(data[j].real) ** 2 + float(data[j].imag) ** 2
            at, level = after, (noise.norms[a] + noise.relative * largest) * math.sqrt(squares)
            j = row
            while j < row + columns and abs(out[j]) <= level:
                j += 1
            if j == row + columns:
                for j in range(row, row + columns):
                    out[j] = 0
            row += stride


@borrowing_kernel
def clear_rounding(lo, hi, f, c, R, noise, out):
    """Zero the rows at rounding level in the maps of coarse edges lo .. hi."""
    for p in range(lo, hi):
        for end in range(2):
            maps, starts = (out.tail, out.tail_starts) if end == 0 else (out.head, out.head_starts)
            a, at = c.pairs[p, end], starts[p]
            r, least = R.ranks[a], np.inf
            if r == 0:
                continue
            # a cheap test first, which reads no fine maps; few edges need the second
            for i in range(out.heights[p]):
                size = float(abs(maps[(at + i * r) & NOT_NEGATIVE].real))
                least = size if size < least else least
            if least <= (noise.norms[a] + noise.relative) * noise.longest:
                rows = Rows(maps, at, r, r)
                clear_rows(c.pair_ptr[p], c.pair_ptr[p + 1], a, f, c, R, noise, rows)


@borrowing_kernel
def compressed_maps(lo, hi, f, c, R, rows, out, workspace):
    """Compute the maps of coarse edges lo .. hi, and compress those with heights[p] < rows[p].

    [A | -B] of a coarse edge is replaced by the triangular factor of its QR decomposition, with
    non-negative diagonal. It is updated by as many fine edges as fit into ``chunk`` or more rows.
    """
    tail, head, m = out.tail, out.head, workspace.stack
    for p in range(lo, hi):
        if rows[p] == out.heights[p]:
            crossing_maps(p, p + 1, f, c, R, out)
            clear_rounding(p, p + 1, f, c, R, workspace.noise, out)
            continue
        a, b = c.pairs[p, 0], c.pairs[p, 1]
        ra, rb = R.ranks[a], R.ranks[b]
        w = ra + rb
        if w == 0:
            continue
        filled, k, end = 0, c.pair_ptr[p], c.pair_ptr[p + 1]
        height = w + max(w, workspace.chunk)
        for e in c.crossing_edges[k:end]:  # one fine edge must fit below the factor
            height = max(height, w + f.edge_dims[e])
        while k < end:
            begin, at = k, filled * w
            while k < end and filled + f.edge_dims[c.crossing_edges[k]] <= height:
                filled += f.edge_dims[c.crossing_edges[k]]
                k += 1
            tail_rows, head_rows = Rows(m, at, ra, w), Rows(m, at + ra, rb, w)
            stack_pair(begin, k, f, c, R, -1.0, tail_rows, head_rows)
            clear_rows(begin, k, a, f, c, R, workspace.noise, tail_rows)
            clear_rows(begin, k, b, f, c, R, workspace.noise, head_rows)
            triangular_factor(m, filled, w, workspace.column, workspace.row)
            filled = min(filled, w)
        to_tail, to_head = out.tail_starts[p], out.head_starts[p]
        for q in range(w):
            sign = -1 if m[q * w + q].real < 0 else 1
            for j in range(ra):
                tail[to_tail + q * ra + j] = sign * m[q * w + j]
            for j in range(rb):
                head[to_head + q * rb + j] = -sign * m[q * w + ra + j]


class RetainedEnergy(NamedTuple):
    """Retained energies H_a = R_a* L_a R_a, in the units of the clusters' maps and of R_a."""

    starts: np.ndarray  # (K + 1,) offsets of the r_a x r_a matrices
    matrices: np.ndarray
    map_units: np.ndarray  # (K,) one over a power of two above the largest entry of the maps
    block_units: np.ndarray  # (K,) one over a power of two above the largest entry of R_a
    columns: np.ndarray  # (K,) largest squared norm of a column of R_a, in the unit of R_a
    traces: (
        np.ndarray
    )  # (n,) traces of the diagonal blocks of L_a, in the unit of the maps; 0 before


class Loops(NamedTuple):
    """Factors B_a of the retained energies: rows[a] rows of r_a entries from index starts[a] on."""

    rows: np.ndarray  # (K,)
    starts: np.ndarray  # (K + 1,)
    factors: np.ndarray


@borrowing_kernel
def retained_energy(lo, hi, f, c, R, out, y):
    """Compute the fields of ``out`` for clusters lo .. hi; H_a = (delta_a R_a)* (delta_a R_a).

    ``y`` is workspace for a row of delta_a R_a.
    """
    offsets, indptr, data, matrices = f.vertex_offsets, R.indptr, R.data, out.matrices
    for a in range(lo, hi):
        r, at, members = R.ranks[a], out.starts[a], c.members[c.member_ptr[a] : c.member_ptr[a + 1]]
        unit, largest = cluster_unit(a, f, c), 0.0
        for v in members:
            for i in range(offsets[v], offsets[v] + f.vertex_dims[v]):
                p = np.int64(indptr[i])
                largest = largest_entry(data, p, p + r, largest)
        block_unit = 1 / power_of_two(largest)
        out.map_units[a], out.block_units[a], out.columns[a] = unit, block_unit, 0
        for j in range(r):
            total = 0.0
            for v in members:
                for i in range(offsets[v], offsets[v] + f.vertex_dims[v]):
                    total += abs(data[indptr[i] + j] * block_unit) ** 2
            out.columns[a] = max(out.columns[a], total)
        for i in range(at, at + r * r):
            matrices[i] = 0
        for e in c.internal_edges[c.internal_ptr[a] : c.internal_ptr[a + 1]]:
            u, v = f.edges[e, 0], f.edges[e, 1]
            du, dv = f.vertex_dims[u], f.vertex_dims[v]
            for q in range(f.edge_dims[e]):
                tail, head = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
                for j in range(r):
                    y[j] = 0
                for i in range(du):
                    x = f.tail_data[tail + i]
                    if u == v:
                        x -= f.head_data[head + i]
                    x *= unit
                    out.traces[u] += abs(x) ** 2
                    p = indptr[offsets[u] + i]
                    for j in range(r):
                        y[j] += x * data[p + j]
                for i in range(0 if u == v else dv):
                    x = f.head_data[head + i] * unit
                    out.traces[v] += abs(x) ** 2
                    p = indptr[offsets[v] + i]
                    for j in range(r):
                        y[j] -= x * data[p + j]
                for i in range(r):
                    y[i] *= block_unit
                for i in range(r):
                    z = np.conj(y[i])
                    for j in range(r):
                        matrices[at + i * r + j] += z * y[j]


@borrowing_kernel
def factor(lo, hi, ranks, energy, zero, s, rows):
    """Factor H_a = B_a* B_a for clusters lo .. hi; B_a = diag(sqrt(mu)) V* has rows[a] rows.

    ``zero`` are (rounding, sizes): eigenvalues mu up to rounding[a] max(sizes[a], norm(H_a)) are
    zero. sizes[a] is in the units of the cluster; norm(H_a) may be larger if columns of R_a are
    dependent. B_a, followed by zeros, overwrites H_a. Returns -1, or the first cluster for which
    LAPACK failed.
    """
    matrices, (rounding, sizes) = energy.matrices, zero
    for a in range(lo, hi):
        r, at, rows[a] = ranks[a], energy.starts[a], 0
        for i in range(r * r):
            s.a[i] = matrices[at + i]
            matrices[at + i] = 0
        scale = brought_near_one(s.a, r)
        if scale == 0:
            continue
        if eigh_lowest(r, r, s, s.reduction) != 0:
            return a
        level = rounding[a] * max(sizes[a], s.w[r - 1] * scale)
        for j in range(r):
            mu = s.w[j] * scale
            if not mu > level:
                continue
            root = math.sqrt(mu) / energy.map_units[a] / energy.block_units[a]
            to = at + rows[a] * r
            for i in range(r):
                matrices[to + i] = root * np.conj(s.z[j * r + i])
            rows[a] += 1
    return -1
