"""Elimination of vertices in minimum-degree order, and substitution with its record.

A vertex with more than two neighbours is eliminated by the star-mesh transform. Let M_i be the
columns of x_v in the rows shared with the i-th neighbour. If M_i* M_i = m_i^2 I for all i, the
least energy over x_v is a sum over pairs of neighbours, and the coarse sheaf has an edge for each
pair. This holds for connections, except for bundles of different transports and loops with
holonomy.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._kernels.elimination.remaining_sheaf import (
    DEGREE,
    END,
    GONE,
    IDS_USED,
    LOOPS,
    SEEN,
    SPARE,
    USED,
    add_edge,
    append_rows,
    detach,
    gather,
    neighbors,
    other_end,
    pull,
    push,
    put_rows,
)
from sheafcoarsen._kernels.elimination.row_qr import magnitude, put_inverse, reduce_rows
from sheafcoarsen._kernels.jit import borrowing_kernel, numba_inlined, subkernel

STEPS, NEIGHBORS, BLOCKS, INVERSES = range(4)
"""Indices in ``Record.counters``."""


class Record(NamedTuple):
    """Eliminated vertices in order, and G and W of x_v = G x_neighbors + W W* b_v for each.

    The neighbours are those at the time of its elimination.
    """

    vertices: np.ndarray  # (steps,)
    starts: np.ndarray  # (steps + 1,) offsets of the neighbours
    neighbors: np.ndarray
    blocks: np.ndarray  # G, d_v rows each
    inverses: np.ndarray  # W, d_v x d_v
    counters: np.ndarray  # (4,) used lengths of the arrays


class MeshWorkspace(NamedTuple):
    """Terms of the energy at v, the sum of norm(m_i x_v + U_i x_i)^2."""

    maps: np.ndarray  # (most, D D) U_i, d_v x d_i
    sizes: np.ndarray  # (most,) m_i
    noise: np.ndarray  # (most,) noise of the rows of U_i
    rest: np.ndarray  # (most,) number of rows without x_v


@subkernel
def isometry(rows, height, stride, d, order, eps):
    """Reduce the first d columns M; return (m, rank) with M* M = m^2 I, m = -1 if impossible."""
    rank = reduce_rows(rows, height, stride, d, order)
    data = rows.data
    if rank == 0:
        return 0.0, 0
    if rank < d:
        return -1.0, rank
    largest = 0.0
    for i in range(d):
        for j in range(d):
            largest = max(largest, magnitude(data[i * stride + j]))
    scale, trace, off = power_of_two(largest), 0.0, 0.0
    for pair in range(2):  # first the mean of the diagonal, then the deviation from m^2 I
        for a in range(d):
            for b in range(a, d if pair else a + 1):
                x = np.conj(data[a]) * data[b] * 0
                for i in range(d):
                    x += np.conj(data[i * stride + a] / scale) * (data[i * stride + b] / scale)
                if pair == 0:
                    trace += float(x.real) / d
                elif a == b:
                    off = max(off, float(abs(x - trace)))
                else:
                    off = max(off, float(abs(x)))
    m = scale * math.sqrt(trace)
    # Maximum deviation of M* M from m^2 I, in units of d eps m^2
    tolerance = 30.0
    if off > tolerance * d * eps * trace:
        return -1.0, rank
    return m, rank


@subkernel
def put_scaled(rows, target, source, size, factor):
    """Write factor times a matrix of shape ``size`` to a stack; ``target`` is (stride, column)."""
    stride, at = target
    height, width = size
    for i in range(height):
        for j in range(width):
            rows.data[i * stride + at + j] = factor * source[i * width + j]


@subkernel
def measure_hub(links, maps, v, seen, workspace, mesh):
    """Fill ``mesh``; return m >= 0 such that M* M = m^2 I for the loops M at v, 0 without loops.

    Returns -1 if the star-mesh transform is not exact.
    """
    factors, sizes, noise, rest = mesh
    dims, rows, order, eps = maps.dims, workspace.bundle, workspace.order, workspace.eps
    d, loop = dims[v], 0.0
    if d == 0:
        sizes[: seen.size] = 0
        rest[: seen.size] = 1
        return 0.0
    e = links.vertices[v, LOOPS]
    if e >= 0:
        height = gather(links.edges, maps, e, v, workspace, False)
        loop, _ = isometry(rows, height, d, d, order, eps)
        if loop < 0:
            return -1.0
    for i in range(seen.size):
        width = dims[other_end(links.edges, seen[i])]
        height = gather(links.edges, maps, seen[i] >> 1, v, workspace, False)
        m, rank = isometry(rows, height, d + width, d, order, eps)
        if m < 0:
            return -1.0
        sizes[i], rest[i], noise[i] = m, height - rank, 0.0
        if m > 0:  # R* C / m for R, the first d columns, and C, the next ones
            stride, factors[i, : d * width] = d + width, 0
            for k in range(rank):
                noise[i] = max(noise[i], rows.noise[k])
                for a in range(d):
                    x = np.conj(rows.data[k * stride + a] / m)
                    for b in range(width):
                        factors[i, a * width + b] += x * rows.data[k * stride + d + b]
    return loop


@subkernel
def eliminate_hub(links, maps, record, v, edges, workspace, mesh):
    """Eliminate v by the star-mesh transform; if it is not exact, change nothing and return False.

    ``edges`` are the half-edges at v and the neighbours of v.
    """
    seen, around = edges
    factors, sizes, noise, rest = mesh
    dims, counters, rows, stack = maps.dims, record.counters, workspace.bundle, workspace.stack
    d, degree, width = dims[v], around.size, 0
    loop = measure_hub(links, maps, v, seen, workspace, mesh)
    if loop < 0:
        return False
    total = loop
    for i in range(degree):
        total = math.hypot(total, sizes[i])
        width += dims[around[i]]
        if rest[i] > 0:  # the rows of the bundle that remain without x_v
            du = dims[around[i]]
            height = gather(links.edges, maps, seen[i] >> 1, v, workspace, False)
            rank = reduce_rows(rows, height, d + du, d, workspace.order)
            for k in range(rank, height):
                for j in range(du):
                    stack.data[(k - rank) * du + j] = rows.data[k * (d + du) + d + j]
                stack.noise[k - rank] = rows.noise[k]
            u = around[i]
            put_rows(links, maps, u, u, stack, height - rank, workspace.order)
    G, W = record.blocks[counters[BLOCKS] :], record.inverses[counters[INVERSES] :]
    G[: d * width], W[: d * d] = 0, 0
    column = 0
    for i in range(degree):
        du = dims[around[i]]
        if sizes[i] > 0:
            for a in range(d):
                for b in range(du):
                    x = factors[i, a * du + b] / total * (sizes[i] / total)
                    G[a * width + column + b] = -x
        column += du
    for a in range(d):
        if total > 0:
            W[a * d + a] = 1 / total
    counters[BLOCKS] += d * width
    counters[INVERSES] += d * d
    detach(links.edges, links.vertices, maps, v, seen)
    for i in range(degree):
        u, m = around[i], sizes[i]
        du = dims[u]
        if m == 0:
            continue
        if loop > 0:
            put_scaled(rows, (du, 0), factors[i], (d, du), loop / total)
            for k in range(d):
                rows.noise[k] = noise[i] * (loop / total)
            put_rows(links, maps, u, u, rows, d, workspace.order)
        found = neighbors(links.edges, links.vertices, u, links.lists[2])
        for k in range(i):
            w, n = around[k], sizes[k]
            dw = dims[w]
            if n == 0:
                continue
            at, e, to_u, to_w = links.vertices[w, SEEN], np.int64(-1), np.int64(0), du
            if at < found and other_end(links.edges, links.lists[2, at]) == w:
                e = np.int64(links.lists[2, at] >> 1)
                if links.edges[e, END] == w:
                    to_u, to_w = dw, np.int64(0)
            put_scaled(stack, (du + dw, to_u), factors[i], (d, du), n / total)
            put_scaled(stack, (du + dw, to_w), factors[k], (d, dw), -m / total)
            for a in range(d):
                stack.noise[a] = math.hypot(n / total * noise[i], m / total * noise[k])
            if e >= 0:
                append_rows(links.edges, maps, e, workspace, d)
            else:
                add_edge(links, maps, u, w, stack, d)
    return True


@numba_inlined
def fits(links, maps, record, d, around):
    """Return whether the arrays are large enough to eliminate a vertex of dimension d."""
    dims, counters, degree = maps.dims, record.counters, around.size
    total, entries = 0, 0
    for i in range(degree):
        du = dims[around[i]]
        total += du
        for k in range(i + 1):  # k = i: loops, counted as an edge, which needs more entries
            width = du + dims[around[k]]
            entries += 2 * (max(d, width) + SPARE * width + 1) * (width + 2)
    return (
        maps.counters[IDS_USED] + degree * (degree + 3) // 2 + 1 <= maps.positions.size
        and maps.counters[USED] + entries <= maps.pool.size
        and counters[NEIGHBORS] + degree <= record.neighbors.size
        and counters[BLOCKS] + d * total <= record.blocks.size
    )


@numba_inlined
def eliminate_one(links, maps, record, v, seen, around, workspace):
    """Eliminate v, which has at most two neighbours, and add the edge or loop that results."""
    dims, bundle, stack, order = maps.dims, workspace.bundle, workspace.stack, workspace.order
    d, height = dims[v], 0
    stride = d
    for i in range(around.size):
        stride += dims[around[i]]
    column = d
    for i in range(-1, around.size):  # stack all rows that contain x_v, its columns and loops first
        e = np.int64(links.vertices[v, LOOPS] if i < 0 else seen[i] >> 1)
        others = np.int64(0 if i < 0 else dims[around[i]])
        count = gather(links.edges, maps, e, v, workspace, False) if e >= 0 else 0
        for k in range(count):
            at, source = (height + k) * stride, k * (d + others)
            stack.data[at : at + stride] = 0
            for j in range(d):
                stack.data[at + j] = bundle.data[source + j]
            for j in range(others):
                stack.data[at + column + j] = bundle.data[source + d + j]
            stack.noise[height + k] = bundle.noise[k]
        height += count
        column += others
    rank = reduce_rows(stack, height, stride, d, order)
    width = stride - d
    blocks, inverses, counters = record.blocks, record.inverses, record.counters
    at, G = counters[INVERSES], counters[BLOCKS]
    put_inverse(stack, stride, rank, d, order, inverses[at : at + d * d], bundle.data)
    blocks[G : G + d * width] = 0
    for i in range(d):  # G = -W times the reduced rows at the neighbours
        for k in range(rank):
            x = inverses[at + i * d + k]
            for j in range(width):
                blocks[G + i * width + j] -= x * stack.data[k * stride + d + j]
    counters[BLOCKS] += d * width
    counters[INVERSES] += d * d
    for k in range(rank, height):  # the rows without x_v
        for j in range(width):
            bundle.data[(k - rank) * width + j] = stack.data[k * stride + d + j]
        bundle.noise[k - rank] = stack.noise[k]
    detach(links.edges, links.vertices, maps, v, seen)
    if around.size > 0:
        put_rows(links, maps, around[0], around[around.size - 1], bundle, height - rank, order)


@borrowing_kernel
def eliminate_vertices(links, maps, record, workspace, mesh):
    """Eliminate vertices in minimum-degree order; return False if larger arrays are needed."""
    edges, vertices, heads, lists = links
    counters, starts, neighbors_of = record.counters, record.starts, record.neighbors
    most = heads.size
    every, seen, others = lists[0], lists[1], lists[2]
    while True:
        count = 0
        while count < most and heads[count] < 0:
            count += 1
        if count == most:
            return True
        v = np.int64(heads[count])
        neighbors(edges, vertices, v, seen)
        here, around = seen[:count], every[:count]
        for i in range(count):
            around[i] = other_end(edges, seen[i])
        if not fits(links, maps, record, maps.dims[v], around):
            return False
        pull(vertices, heads, v, count)
        if count <= 2:
            eliminate_one(links, maps, record, v, here, around, workspace)
        elif mesh is not None and not eliminate_hub(
            links, maps, record, v, (here, around), workspace, mesh
        ):
            vertices[v, DEGREE] = most  # not tried again until its edges change
            continue
        vertices[v, DEGREE] = GONE
        step, at = counters[STEPS], counters[NEIGHBORS]
        record.vertices[step] = v
        for i in range(count):
            neighbors_of[at + i] = every[i]
        starts[step + 1] = at + count
        counters[STEPS] += 1
        counters[NEIGHBORS] += count
        for i in range(count):  # update the degrees of the neighbours
            u = np.int64(every[i])
            before = np.int64(vertices[u, DEGREE])
            after = neighbors(edges, vertices, u, others) if before >= 0 else before
            if after == before:
                continue
            if before < most:
                pull(vertices, heads, u, before)
            vertices[u, DEGREE] = after
            if after < most:
                push(vertices, heads, u, after)


@borrowing_kernel
def reduce_forward(record, dims, offsets, b):
    """Add G_u* b_v to b_u for the neighbours u of each eliminated v, in order.

    This is b_kept - L_kv L_vv^+ b_v, vertex by vertex. Columns of b are cochains.
    """
    vertices, starts, neighbors, blocks, _, _ = record
    at, h = 0, b.shape[1]
    for step in range(vertices.size):
        v = vertices[step]
        for a in range(dims[v]):
            row = offsets[v] + a
            for p in range(starts[step], starts[step + 1]):
                to = offsets[neighbors[p]]
                for i in range(dims[neighbors[p]]):
                    x = np.conj(blocks[at])
                    at += 1
                    for j in range(h):
                        b[to + i, j] += x * b[row, j]


@borrowing_kernel
def extend_backward(record, dims, offsets, x, b):
    """Add G x_neighbors + W W* b_v to x_v for each eliminated v, the last one first.

    ``b`` is the result of ``reduce_forward``, or has no rows.
    """
    vertices, starts, neighbors, blocks, inverses, _ = record
    at, at_W, zero = blocks.size, inverses.size, x.dtype.type(0)
    for step in range(vertices.size - 1, -1, -1):
        v, width = vertices[step], 0
        d, first = dims[v], offsets[v]
        for p in range(starts[step], starts[step + 1]):
            width += dims[neighbors[p]]
        at -= d * width
        at_W -= d * d
        for j in range(x.shape[1]):
            column = at
            for row in range(first, first + d):
                value = x[row, j]
                for p in range(starts[step], starts[step + 1]):
                    source = offsets[neighbors[p]]
                    for i in range(source, source + dims[neighbors[p]]):
                        value += blocks[column] * x[i, j]
                        column += 1
                x[row, j] = value
            for k in range(at_W, at_W + d if b.shape[0] > 0 else at_W):
                value = zero
                for a in range(d):
                    value += np.conj(inverses[k + a * d]) * b[first + a, j]
                for a in range(d):
                    x[first + a, j] += inverses[k + a * d] * value


@borrowing_kernel
def substitute_rows(record, dims, offsets, rows, position):
    """Add G times the rows of the neighbours to those of each eliminated v, the last one first.

    ``rows`` are (first, counts, columns, values) of a sparse matrix: row i has the next counts[i]
    entries from index first[i] on. ``position`` is -1 for every column. Returns whether the arrays
    are large enough.
    """
    vertices, starts, neighbors, blocks, _, _ = record
    first, counts, columns, values = rows
    at_G, end = blocks.size, 0
    for i in range(counts.size):
        end += counts[i]
    for step in range(vertices.size - 1, -1, -1):
        v, width = vertices[step], 0
        for p in range(starts[step], starts[step + 1]):
            width += dims[neighbors[p]]
        at_G -= dims[v] * width
        entry = at_G
        for row in range(offsets[v], offsets[v] + dims[v]):
            begin = end
            if end + counts[row] > columns.size:
                return False
            for k in range(first[row], first[row] + counts[row]):
                columns[end], values[end], position[columns[k]] = columns[k], values[k], end
                end += 1
            for p in range(starts[step], starts[step + 1]):
                source = offsets[neighbors[p]]
                for i in range(source, source + dims[neighbors[p]]):
                    x = blocks[entry]
                    entry += 1
                    if end + counts[i] > columns.size:
                        return False
                    for k in range(first[i], first[i] + counts[i]):
                        column = columns[k]
                        if position[column] < begin:  # not in this row yet
                            columns[end], values[end], position[column] = column, 0, end
                            end += 1
                        values[position[column]] += x * values[k]
            first[row], counts[row] = begin, end - begin
    return True
