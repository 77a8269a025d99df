"""The rows of edges: where they lie, and how those of a bundle come together.

Each edge has a block in the pool: its rows, each with what multiplies the value at the tail and
then that at the head (for a loop: at its vertex), and then the noise of each row. Signs are in the
rows: an edge as given has F_tail and -F_head.
"""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.elimination.half_edges import END, HEIGHT, RING, join
from sheafcoarsen._kernels.elimination.row_qr import (
    Rows,
    clear_noise,
    reduce_rows,
    size_of,
    without_zero_rows,
)
from sheafcoarsen._kernels.jit import borrowing_kernel, inlined, subkernel

USED, IDS_USED, FREE_ID, FREE_BLOCKS = 0, 1, 2, 3
"""In ``Maps.counters``: entries of the pool in use, ids in use, the first free id, or -1, and from
there on where the first free block of at least 2^k entries begins, or -1.
"""


class Maps(NamedTuple):
    """The rows of all edges."""

    pool: np.ndarray
    place: np.ndarray  # (ids,) where an edge's block begins; -1 - that for an edge as given
    dims: np.ndarray  # (n,) of the stalks
    counters: np.ndarray  # (3 + 64,)


class EliminationWorkspace(NamedTuple):
    """Workspace for the rows at one vertex."""

    bundle: Rows  # of one edge
    stack: Rows  # of all
    order: np.ndarray  # of the columns of either, as they were reduced
    eps: float  # of the scalar type that the maps were given in


@borrowing_kernel
def fill_pool(sheaf, unit, eps, maps):
    """Write the rows of all edges as given, divided by ``unit``; their noise is eps times them."""
    pool, place, dims, counters = maps
    edges, edge_dims, a, b = sheaf.edges, sheaf.edge_dims, sheaf.tail_data, sheaf.head_data
    p, q, at = 0, 0, 0
    for e in range(edge_dims.size):
        u, w, height = edges[e, 0], edges[e, 1], edge_dims[e]
        du, dw, largest = dims[u], dims[w], 0.0
        place[e] = -1 - at
        for i in range(p, p + height * du):
            largest = max(largest, size_of(a[i]))
        for i in range(q, q + height * dw):
            largest = max(largest, size_of(b[i]))
        for _ in range(height):
            for i in range(du):
                pool[at + i] = a[p + i]
                if u == w:
                    pool[at + i] -= b[q + i]
                pool[at + i] /= unit
            at += du
            if u != w:
                for i in range(dw):
                    pool[at + i] = b[q + i]
                    pool[at + i] /= -unit
                at += dw
            p += du
            q += dw
        for _ in range(height):
            pool[at] = eps * (largest / unit)
            at += 1
    counters[USED] = at


@inlined
def class_above(size):
    """The least k with 2^k >= size."""
    k = 0
    while (1 << k) < size:
        k += 1
    return k


@inlined
def width_of(edges, dims, e):
    """Return how long the rows of an edge are."""
    u, w = edges[e, END], edges[e, END + 1]
    return dims[u] if u == w else dims[u] + dims[w]


@subkernel
def release(edges, maps, e):
    """Give the block of an edge back, and put its id in the chain of free ones."""
    pool, place, dims, counters = maps
    at = place[e]
    size = edges[e, HEIGHT] * (width_of(edges, dims, e) + 1)
    if at < 0:
        at = -1 - at
    else:
        size = max(size, 1)
    k = class_above(size + 1) - 1  # a block as given is as long as it must be, a new one longer
    if size > 0:
        if place[e] >= 0:
            k = class_above(size)
        pool[at] = counters[FREE_BLOCKS + k]
        counters[FREE_BLOCKS + k] = at
    edges[e, RING] = counters[FREE_ID]
    counters[FREE_ID] = e


@inlined
def new_id(edges, counters):
    """Return the id of an edge that is not in use; there is one."""
    e = counters[FREE_ID]
    if e >= 0:
        counters[FREE_ID] = edges[e, RING]
    else:
        e = counters[IDS_USED]
        counters[IDS_USED] += 1
    return e


@subkernel
def put_edge(edges, maps, e, v, rows, row, place):
    """Write the rows of an edge or loop at v from ``row`` on.

    ``place`` is how long rows are, where what multiplies x_v goes, and where the rest does.
    """
    pool, places, dims, _ = maps
    data, noise = rows
    stride, to, others = place
    tail, head, height = edges[e, END], edges[e, END + 1], edges[e, HEIGHT]
    at = places[e]
    if at < 0:
        at = -1 - at
    da, db = dims[tail], dims[head]
    if tail == head:
        db = 0
    to_tail, to_head = (to, others) if v == tail else (others, to)
    for k in range(height):
        out = (row + k) * stride
        for i in range(da):
            data[out + to_tail + i] = pool[at + i]
        for i in range(db):
            data[out + to_head + i] = pool[at + da + i]
        at += da + db
    for k in range(height):
        noise[row + k] = pool[at + k].real


@subkernel
def gather(edges, maps, e, v, workspace, tidy):
    """Write the rows of a bundle, or of all loops at v, to ``workspace.bundle``; return how many.

    What multiplies x_v comes first. Rows are compressed where there are more than columns, and
    where ``tidy``, if they are of several edges or of one that was made here.
    """
    dims, rows, order = maps.dims, workspace.bundle, workspace.order
    u = edges[e, END] + edges[e, END + 1] - v
    stride = width_of(edges, dims, e)
    if stride == 0:
        return 0
    capacity = min(rows.data.size // stride, rows.noise.size)
    height, g, count = np.int64(0), np.int64(e), 0
    while g >= 0:
        if height + edges[g, HEIGHT] > capacity:
            height = reduce_rows(rows, height, stride, stride, order)
        put_edge(edges, maps, g, v, rows, height, (stride, 0, dims[v]))
        height = height + np.int64(edges[g, HEIGHT])
        count += 1
        g = np.int64(edges[g, RING])
        if u != v and g == e:
            g = -1
    if height > stride or (tidy and (count > 1 or maps.place[e] >= 0)):
        height = reduce_rows(rows, height, stride, stride, order)
    if tidy:
        clear_noise(rows, 0, height, stride, stride)
        height = without_zero_rows(rows, 0, height, stride, 0)
    return height


@subkernel
def add_edge(links, maps, u, w, rows, height):
    """Let the rows, the first of a stack, be a new edge from u to w, or a loop where u = w."""
    edges, vertices, _, _ = links
    pool, place, dims, counters = maps
    data, noise = rows
    e = new_id(edges, counters)
    join(edges, vertices, e, u, w)
    edges[e, HEIGHT] = height
    size = height * width_of(edges, dims, e)
    k = class_above(max(size + height, 1))
    at = counters[FREE_BLOCKS + k]
    if at >= 0:
        counters[FREE_BLOCKS + k] = np.int64(pool[at].real)
    else:
        at = counters[USED]
        counters[USED] += 1 << k
    place[e] = at
    for i in range(size):
        pool[at + i] = data[i]
    for i in range(height):
        pool[at + size + i] = noise[i]
