"""Elimination of vertices in minimum-degree order."""

import numpy as np

from sheafcoarsen._kernels.elimination.gather import IDS_USED, SPARE, USED, detach, gather, put_rows
from sheafcoarsen._kernels.elimination.half_edges import (
    DEGREE,
    GONE,
    LOOPS,
    neighbors,
    other_end,
    pull,
    push,
)
from sheafcoarsen._kernels.elimination.row_qr import put_inverse, reduce_rows
from sheafcoarsen._kernels.elimination.star_mesh import eliminate_hub
from sheafcoarsen._kernels.elimination.substitution import BLOCKS, INVERSES, NEIGHBORS, STEPS
from sheafcoarsen._kernels.jit import borrowing_kernel, numba_inlined


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
