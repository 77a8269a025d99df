"""Star-mesh transform: exact elimination of a vertex with more than two neighbours.

Let M_i be the columns of x_v in the rows shared with the i-th neighbour. If M_i* M_i = m_i^2 I for
all i, the least energy over x_v is a sum over pairs of neighbours, and the coarse sheaf has an edge
for each pair. This holds for connections, except for bundles of different transports and loops with
holonomy.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._kernels.elimination.gather import add_edge, append_rows, detach, gather, put_rows
from sheafcoarsen._kernels.elimination.half_edges import END, LOOPS, SEEN, neighbors, other_end
from sheafcoarsen._kernels.elimination.row_qr import magnitude, reduce_rows
from sheafcoarsen._kernels.elimination.substitution import BLOCKS, INVERSES
from sheafcoarsen._kernels.jit import subkernel


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
