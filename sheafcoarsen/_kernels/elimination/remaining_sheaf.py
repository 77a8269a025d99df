"""The remaining sheaf in an elimination: half-edges at each vertex, and a pool of the edges' rows.

Edge e has the half-edges 2e, at its tail, and 2e + 1, at its head; h ^ 1 is the opposite half-edge.
Each vertex has a doubly linked list of half-edges and a singly linked list of loops; -1 ends a
list. When a search of a list finds parallel edges, they are joined in a bundle: one of them remains
in the lists, the others are linked to it in a ring. Searches end at the first neighbour above the
largest degree that is eliminated, so all of them take linear time in the edges.

Each edge has a block in the pool: its rows, [F_tail, -F_head] (for a loop, F_tail - F_head), and
then the noise of each row.
"""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.elimination.row_qr import (
    ZERO_FACTOR,
    Rows,
    magnitude,
    reduce_rows,
    without_zero_rows,
)
from sheafcoarsen._kernels.jit import borrowing_kernel, llvm_inlined, subkernel

END, AFTER, BEFORE, RING, HEIGHT = 0, 2, 4, 6, 7
"""Columns of ``Links.edges``. END, AFTER and BEFORE, one column per half-edge: its vertex, and the
next and the previous half-edge there. RING: the next edge in a bundle, a list of loops or the
free ids. HEIGHT: the number of rows.
"""

FIRST, LOOPS, DEGREE, LATER, EARLIER, SEEN = range(6)
"""Columns of ``Links.vertices``. FIRST: first half-edge. LOOPS: first loop. DEGREE: KEPT, GONE or
the degree, capped at one above the largest eliminated degree. LATER, EARLIER: the next and the
previous vertex of that degree. SEEN: its index in the neighbours of the last search.
"""

KEPT, GONE = -1, -2
"""Values in column DEGREE: KEPT for a vertex to be kept, GONE for an eliminated vertex."""

USED, IDS_USED, FREE_ID = range(3)
"""Indices in ``Maps.counters``. USED, IDS_USED: numbers of used pool entries and of used edge ids.
FREE_ID: first free id, or -1.
"""

SPARE = 4
"""Maximum number of rows for each column of an edge to which rows are appended."""


class Links(NamedTuple):
    """Linked lists of edges and of vertices; entries of one edge or vertex are contiguous."""

    edges: np.ndarray  # (ids, 8)
    vertices: np.ndarray  # (n, 6)
    heads: np.ndarray  # (most + 1,) the first vertex of each degree
    lists: np.ndarray  # (3, most + 1) workspace for neighbours of a vertex


@llvm_inlined
def unlink(edges, vertices, e, side):
    """Remove a half-edge from the list of its vertex."""
    after, before = edges[e, AFTER + side], edges[e, BEFORE + side]
    if before >= 0:
        edges[before >> 1, AFTER + (before & 1)] = after
    else:
        vertices[edges[e, END + side], FIRST] = after
    if after >= 0:
        edges[after >> 1, BEFORE + (after & 1)] = before


@llvm_inlined
def join(edges, vertices, e, u, w):
    """Insert a new edge into the lists of both ends, or a loop into the list of its vertex."""
    edges[e, END], edges[e, END + 1] = u, w
    if u == w:
        edges[e, RING] = vertices[u, LOOPS]
        vertices[u, LOOPS] = e
    else:
        edges[e, RING] = e
        for side in range(2):  # to the front of the list of half-edges
            v = edges[e, END + side]
            first = vertices[v, FIRST]
            edges[e, AFTER + side], edges[e, BEFORE + side] = first, -1
            if first >= 0:
                edges[first >> 1, BEFORE + (first & 1)] = 2 * e + side
            vertices[v, FIRST] = 2 * e + side


@llvm_inlined
def other_end(edges, h):
    """Return the vertex at the opposite end of a half-edge."""
    return edges[h >> 1, END + 1 - (h & 1)]


@llvm_inlined
def push(vertices, heads, v, degree):
    """Insert a vertex at the front of the list of its degree."""
    first = heads[degree]
    vertices[v, LATER], vertices[v, EARLIER] = first, -1
    if first >= 0:
        vertices[first, EARLIER] = v
    heads[degree] = v


@llvm_inlined
def pull(vertices, heads, v, degree):
    """Remove a vertex from the list of its degree."""
    later, earlier = vertices[v, LATER], vertices[v, EARLIER]
    if earlier >= 0:
        vertices[earlier, LATER] = later
    else:
        heads[degree] = later
    if later >= 0:
        vertices[later, EARLIER] = earlier


@subkernel
def neighbors(edges, vertices, v, seen):
    """Write one half-edge per neighbour of v to ``seen`` until it is full; return their number.

    Parallel edges found in the search are joined in bundles.
    """
    count, h = 0, vertices[v, FIRST]
    while h >= 0 and count < seen.size:
        e, side = h >> 1, h & 1
        h = edges[e, AFTER + side]
        u = edges[e, END + 1 - side]
        i = vertices[u, SEEN]  # may be of another search
        if i < count and other_end(edges, seen[i]) == u:
            g = seen[i] >> 1
            edges[e, RING], edges[g, RING] = edges[g, RING], edges[e, RING]
            unlink(edges, vertices, e, 0)
            unlink(edges, vertices, e, 1)
        else:
            vertices[u, SEEN] = count
            seen[count] = 2 * e + side
            count += 1
    return count


@borrowing_kernel
def set_up(sheaf, keep, links):
    """Fill the lists from the edges of a sheaf; ``keep`` is the mask of vertices to be kept."""
    edges, vertices, heads, lists = links
    vertices[:, FIRST], vertices[:, LOOPS], vertices[:, SEEN], heads[:] = -1, -1, 0, -1
    for e in range(sheaf.edge_dims.size - 1, -1, -1):
        edges[e, HEIGHT] = sheaf.edge_dims[e]
        join(edges, vertices, e, sheaf.edges[e, 0], sheaf.edges[e, 1])
    for v in range(keep.size - 1, -1, -1):
        if keep[v]:
            vertices[v, DEGREE] = KEPT
            continue
        count = neighbors(edges, vertices, v, lists[0])
        vertices[v, DEGREE] = count
        if count < heads.size:
            push(vertices, heads, v, count)


class Maps(NamedTuple):
    """Pool of the rows of all edges."""

    pool: np.ndarray
    positions: np.ndarray  # (ids,) index of the block of an edge
    capacities: np.ndarray  # (ids,) size of the block of an id; 0: of an input edge, not reused
    dims: np.ndarray  # (n,) dimensions of stalks
    counters: np.ndarray  # (3,)


class EliminationWorkspace(NamedTuple):
    """Workspace for the rows at a vertex."""

    bundle: Rows  # rows of one bundle
    stack: Rows  # rows of all bundles
    order: np.ndarray  # order of columns in a reduction
    eps: float  # machine epsilon of the input maps' scalar type


@borrowing_kernel
def fill_pool(sheaf, eps, maps):
    """Write the rows of all input edges; their noise is eps max(abs(maps))."""
    pool, positions, _, dims, counters = maps
    edges, edge_dims, a, b = sheaf.edges, sheaf.edge_dims, sheaf.tail_data, sheaf.head_data
    p, q, at = 0, 0, 0
    for e in range(edge_dims.size):
        u, w, height = edges[e, 0], edges[e, 1], edge_dims[e]
        du, dw, largest = dims[u], dims[w], 0.0
        positions[e] = at
        for _ in range(height):
            for i in range(du):
                largest = max(largest, magnitude(a[p + i]))
                pool[at + i] = a[p + i]
            p, to = p + du, at if u == w else at + du
            for i in range(dw):
                largest = max(largest, magnitude(b[q + i]))
                pool[to + i] = pool[to + i] - b[q + i] if u == w else -b[q + i]
            q, at = q + dw, to + dw
        for _ in range(height):
            pool[at] = eps * largest
            at += 1
    counters[USED] = at


@llvm_inlined
def width_of(edges, dims, e):
    """Return the length of the rows of an edge."""
    u, w = edges[e, END], edges[e, END + 1]
    return dims[u] if u == w else dims[u] + dims[w]


@llvm_inlined
def release(edges, maps, e):
    """Free the id of an edge, giving it the larger of its block and that of the last freed id."""
    counters, positions, capacities = maps.counters, maps.positions, maps.capacities
    first = counters[FREE_ID]
    if first >= 0 and capacities[first] > capacities[e]:
        positions[e], positions[first] = positions[first], positions[e]
        capacities[e], capacities[first] = capacities[first], capacities[e]
    edges[e, RING] = first
    counters[FREE_ID] = e


@llvm_inlined
def release_all(edges, maps, first, last):
    """Free the ids of the edges of a ring or list from ``first`` on, up to ``last`` excluded."""
    while first != last:
        next_edge = np.int64(edges[first, RING])
        release(edges, maps, first)
        first = next_edge


@subkernel
def put_edge(edges, maps, e, v, rows, row, columns):
    """Write the rows of an edge or loop at v to a stack, starting at ``row``.

    ``columns`` are the length of rows, the first column of v and that of the other end.
    """
    pool, dims, at = maps.pool, maps.dims, maps.positions[e]
    data, noise = rows
    stride, to, others = columns
    tail, head, height = edges[e, END], edges[e, END + 1], edges[e, HEIGHT]
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
    """Write the rows of a bundle, or of all loops at v, to ``workspace.bundle``; return the height.

    The columns of v come first. Rows are compressed if there are more of them than columns; with
    ``tidy``, also those of several edges or of an edge made by elimination, without zero rows.
    """
    dims, rows, order = maps.dims, workspace.bundle, workspace.order
    u, stride = edges[e, END] + edges[e, END + 1] - v, width_of(edges, dims, e)
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
    if height > stride or (tidy and (count > 1 or maps.capacities[e] > 0)):
        height = reduce_rows(rows, height, stride, stride, order)
    if tidy:
        height = without_zero_rows(rows, height, stride, ZERO_FACTOR * max(height, stride))
    return height


@subkernel
def store_rows(edges, maps, e, rows, height, capacity):
    """Write the first rows of a stack to the block of an edge, of at least ``capacity`` rows."""
    pool, positions, capacities, dims, counters = maps
    data, noise = rows
    edges[e, HEIGHT] = height
    width = width_of(edges, dims, e)
    size, needed = height * width, max(capacity * (width + 1), 1)
    if needed > capacities[e]:
        positions[e] = counters[USED]
        capacities[e] = max(needed, 2 * capacities[e])
        counters[USED] += capacities[e]
    at = positions[e]
    for i in range(size):
        pool[at + i] = data[i]
    for i in range(height):
        pool[at + size + i] = noise[i]


@subkernel
def add_edge(links, maps, u, w, rows, height):
    """Add an edge from u to w, or a loop if u = w, whose rows are the first rows of a stack."""
    edges, vertices, _, _ = links
    counters = maps.counters
    e = counters[FREE_ID]  # the caller ensures that there is a free id
    if e >= 0:
        counters[FREE_ID] = edges[e, RING]
    else:
        e = counters[IDS_USED]
        counters[IDS_USED] += 1
        maps.capacities[e] = 0
    join(edges, vertices, e, u, w)
    store_rows(edges, maps, e, rows, height, height)


@subkernel
def append_rows(edges, maps, e, workspace, height):
    """Append the first rows of ``workspace.stack`` to an edge; its tail's columns come first.

    If it has too many rows, or its block is full, the bundle becomes one edge of compressed rows.
    """
    rows, bundle = workspace.stack, workspace.bundle
    width = width_of(edges, maps.dims, e)
    before = np.int64(edges[e, HEIGHT])
    at, total = maps.positions[e], before + height
    if total <= SPARE * width and total * (width + 1) <= maps.capacities[e]:
        for k in range(before - 1, -1, -1):  # noise is stored after the rows
            maps.pool[at + total * width + k] = maps.pool[at + before * width + k]
        for i in range(height * width):
            maps.pool[at + before * width + i] = rows.data[i]
        for k in range(height):
            maps.pool[at + total * width + before + k] = rows.noise[k]
        edges[e, HEIGHT] = total
        return
    before = gather(edges, maps, e, edges[e, END], workspace, False)
    for i in range(height * width):
        bundle.data[before * width + i] = rows.data[i]
    for k in range(height):
        bundle.noise[before + k] = rows.noise[k]
    release_all(edges, maps, np.int64(edges[e, RING]), e)
    edges[e, RING] = e
    store_rows(edges, maps, e, bundle, before + height, max(before + height, SPARE * width))


@subkernel
def put_rows(links, maps, u, w, rows, height, order):
    """Add an edge from u to w with the given rows, or a loop if u = w, unless they are zero.

    Rows are compressed if there are more of them than columns, and zero rows omitted.
    """
    width = maps.dims[u] if u == w else maps.dims[u] + maps.dims[w]
    if height > width:
        height = reduce_rows(rows, height, width, width, order)
    height = without_zero_rows(rows, height, width, 0.0)
    if u != w or height > 0:
        add_edge(links, maps, u, w, rows, height)


@subkernel
def detach(edges, vertices, maps, v, seen):
    """Remove all edges and loops at v from the graph."""
    for i in range(seen.size):
        e, side = np.int64(seen[i] >> 1), seen[i] & 1
        unlink(edges, vertices, e, 1 - side)
        release_all(edges, maps, np.int64(edges[e, RING]), e)
        release(edges, maps, e)
    release_all(edges, maps, np.int64(vertices[v, LOOPS]), np.int64(-1))
    vertices[v, LOOPS], vertices[v, FIRST] = -1, -1


@borrowing_kernel
def list_edges(kept, links, seen, chosen, rows):
    """Join all parallel edges; write the first edge and the height of each bundle at kept vertices.

    Returns the number of bundles. ``seen`` is workspace for all neighbours of a vertex.
    """
    edges, vertices, _, _ = links
    count = 0
    for v in kept:
        for h in seen[: neighbors(edges, vertices, v, seen)]:
            if other_end(edges, h) > v:
                e = np.int64(h >> 1)
                first, total, g = e, np.int64(edges[e, HEIGHT]), np.int64(edges[e, RING])
                while g != e:
                    first, total = min(first, g), total + edges[g, HEIGHT]
                    g = np.int64(edges[g, RING])
                chosen[count], rows[count] = first, total
                count += 1
    return count


@borrowing_kernel
def put_maps(links, maps, chosen, pairs, workspace, out):
    """Write the maps of bundle ``chosen[p]``, from pairs[p, 0] to pairs[p, 1], for all p.

    A bundle of one input edge with at most as many rows as columns is copied. In others, zero rows
    are omitted, and rows are multiplied by phases that make their first large entry positive. For
    the loops B at a vertex, the maps are B / 2 and -B / 2. ``out`` are the number of rows of each
    bundle, and the maps at the tail and the head.
    """
    edges, dims, bundle = links.edges, maps.dims, workspace.bundle
    heights, tail, head = out
    data, to_tail, to_head = bundle.data, 0, 0
    for p in range(chosen.size):
        e, u, w = np.int64(chosen[p]), pairs[p, 0], pairs[p, 1]
        du, dw, height = dims[u], np.int64(0 if u == w else dims[w]), np.int64(edges[e, HEIGHT])
        stride, sign = du + dw, 0.5 if u == w else 1.0
        copied = maps.capacities[e] == 0 and edges[e, RING] == e and u != w and height <= stride
        if copied:
            put_edge(edges, maps, e, u, bundle, 0, (stride, 0, du))
        else:
            height = gather(edges, maps, e, u, workspace, True)
        for k in range(height):
            largest, begin = 0.0, k * stride
            phase = data[begin] * 0 + 1
            for j in range(begin, begin if copied else begin + stride):
                largest = max(largest, magnitude(data[j]))
            for j in range(begin, begin if copied else begin + stride):
                if magnitude(data[j]) >= 0.5 * largest and largest > 0:
                    phase = np.conj(data[j] / largest) / abs(data[j] / largest)
                    break
            for j in range(du):
                tail[to_tail + k * du + j] = sign * (phase * data[begin + j])
                if u == w:
                    head[to_head + k * du + j] = -tail[to_tail + k * du + j]
            for j in range(dw):
                head[to_head + k * dw + j] = -1.0 * (phase * data[begin + du + j])
        heights[p] = height
        to_tail += height * du
        to_head += height * dims[w]
