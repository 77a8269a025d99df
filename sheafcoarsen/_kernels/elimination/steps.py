"""Elimination of vertices in the order of their degrees."""

import numpy as np

from sheafcoarsen._kernels.elimination.gather import (
    IDS_USED,
    USED,
    add_edge,
    detach,
    gather,
    put_edge,
)
from sheafcoarsen._kernels.elimination.half_edges import (
    DEGREE,
    GONE,
    HEIGHT,
    LOOPS,
    RING,
    neighbors,
    other_end,
    pull,
    requeue,
)
from sheafcoarsen._kernels.elimination.record import (
    BLOCKS,
    FREE,
    INVERSES,
    NEIGHBORS,
    STEPS,
)
from sheafcoarsen._kernels.elimination.row_qr import (
    put_inverse,
    reduce_rows,
    without_zero_rows,
)
from sheafcoarsen._kernels.elimination.star_mesh import eliminate_hub
from sheafcoarsen._kernels.jit import borrowing_kernel, numba_inlined, subkernel

DONE, IDS, POOL, RECORD = range(4)
"""Return values of ``eliminate_vertices``: DONE, or the array too small for the next step."""


@numba_inlined
def demand(links, maps, record, d, around):
    """Return the array that is too small to eliminate a vertex, or DONE."""
    dims, counters, degree = maps.dims, record.counters, around.size
    total, entries = 0, 0
    for i in range(degree):
        du = dims[around[i]]
        total += du
        for k in range(i + 1):  # k = i: loops, counted as an edge, which needs more entries
            width = du + dims[around[k]]
            entries += 2 * (max(d, width) + 1) * (width + 2)
    if maps.counters[IDS_USED] + degree * (degree + 3) // 2 + 1 > maps.positions.size:
        return IDS
    if maps.counters[USED] + entries > maps.pool.size:
        return POOL
    if (
        counters[NEIGHBORS] + degree > record.neighbors.size
        or counters[BLOCKS] + d * total > record.blocks.size
        or counters[INVERSES] + d * d > record.inverses.size
    ):
        return RECORD
    return DONE


@subkernel
def stack_bundle(edges, maps, e, v, target, workspace):
    """Write a bundle, or all loops at v, to the stack; return its number of rows.

    ``target`` is (first row, length of rows, first column of the neighbour, its dimension).
    """
    height, stride, column, width = target
    data, noise, bundle = workspace.stack.data, workspace.stack.noise, workspace.bundle
    d = maps.dims[v]
    count = gather(edges, maps, e, v, workspace, False)
    for k in range(count):
        at, source = (height + k) * stride, k * (d + width)
        for j in range(stride):
            data[at + j] = 0
        for j in range(d):
            data[at + j] = bundle.data[source + j]
        for j in range(width):
            data[at + column + j] = bundle.data[source + d + j]
        noise[height + k] = bundle.noise[k]
    return count


@numba_inlined
def stack_rows(links, maps, v, seen, around, workspace):
    """Stack all rows that contain x_v, its columns first; return their number and length."""
    edges, vertices, _, _ = links
    dims, data = maps.dims, workspace.stack.data
    d, height = dims[v], np.int64(0)
    stride = d
    for i in range(around.size):
        stride += dims[around[i]]
    e = np.int64(vertices[v, LOOPS])
    if e >= 0:
        height = stack_bundle(edges, maps, e, v, (height, stride, d, height), workspace)
    column = d
    for i in range(around.size):
        e, width = np.int64(seen[i] >> 1), dims[around[i]]
        if d + width == 0:
            continue
        if edges[e, RING] == e and edges[e, HEIGHT] <= d + width:
            count = np.int64(edges[e, HEIGHT])
            for j in range(height * stride, (height + count) * stride):
                data[j] = 0
            put_edge(edges, maps, e, v, workspace.stack, height, (stride, 0, column))
        else:
            count = stack_bundle(edges, maps, e, v, (height, stride, column, width), workspace)
        height += count
        column += width
    return height, stride


@numba_inlined
def solve(record, d, shape, rank, workspace):
    """Write G and W of the vertex whose reduced rows are in the stack."""
    _, stride = shape
    data, width = workspace.stack.data, stride - d
    blocks, inverses, counters = record.blocks, record.inverses, record.counters
    at, G = counters[INVERSES], counters[BLOCKS]
    out = inverses[at : at + d * d]
    put_inverse(workspace.stack, stride, rank, d, workspace.order, out, workspace.bundle.data)
    for i in range(d):
        for j in range(width):
            blocks[G + i * width + j] = 0
        for k in range(rank):
            x = inverses[at + i * d + k]
            for j in range(width):
                blocks[G + i * width + j] -= x * data[k * stride + d + j]
    for i in range(at, at + d * d):
        inverses[i] /= record.unit
    counters[BLOCKS] += d * width
    counters[INVERSES] += d * d
    counters[FREE] += d - rank


@numba_inlined
def complement(shape, d, rank, workspace):
    """Move the rows without x_v to the front of ``workspace.bundle``; return their number."""
    height, stride = shape
    width, n_rest = stride - d, 0
    if width == 0:
        return 0
    data, noise, rest = workspace.stack.data, workspace.stack.noise, workspace.bundle
    for k in range(rank, height):
        for j in range(width):
            rest.data[n_rest * width + j] = data[k * stride + d + j]
        rest.noise[n_rest] = noise[k]
        n_rest += 1
    if n_rest > width:
        n_rest = reduce_rows(rest, n_rest, width, width, workspace.order)
    return without_zero_rows(rest, 0, n_rest, width, 0)


@numba_inlined
def eliminate_one(links, maps, record, v, seen, around, workspace):
    """Eliminate v, which has at most two neighbours, and add the edge or loop that results."""
    d = maps.dims[v]
    shape = stack_rows(links, maps, v, seen, around, workspace)
    rank = reduce_rows(workspace.stack, shape[0], shape[1], d, workspace.order)
    solve(record, d, shape, rank, workspace)
    n_rest = complement(shape, d, rank, workspace)
    detach(links.edges, links.vertices, maps, v, seen[: around.size])
    if around.size == 2 or (around.size == 1 and n_rest > 0):
        add_edge(links, maps, around[0], around[around.size - 1], workspace.bundle, n_rest)


@borrowing_kernel
def eliminate_vertices(links, maps, record, workspace, mesh):
    """Eliminate vertices while possible; return DONE, or the array that is too small.

    In that case call it again with a larger array.
    """
    edges, vertices, heads, lists = links
    counters, starts, neighbors_of = record.counters, record.starts, record.neighbors
    most = heads.size
    every, seen, others = lists[0], lists[1], lists[2]
    while True:
        count = 0
        while count < most and heads[count] < 0:
            count += 1
        if count == most:
            return DONE
        v = np.int64(heads[count])
        neighbors(edges, vertices, v, seen)
        around = every[:count]
        for i in range(count):
            around[i] = other_end(edges, seen[i])
        status = demand(links, maps, record, maps.dims[v], around)
        if status != DONE:
            return status
        pull(vertices, heads, v, count)
        if count <= 2:
            eliminate_one(links, maps, record, v, seen, around, workspace)
        elif mesh is not None and not eliminate_hub(
            links, maps, record, v, (seen, around), workspace, mesh
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
        for i in range(count):
            requeue(edges, vertices, heads, every[i], others)
