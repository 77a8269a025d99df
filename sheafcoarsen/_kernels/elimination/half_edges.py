"""The graph as it shrinks: edges in lists of their vertices, and vertices by their neighbours.

Edge e has the half-edges 2e, at its tail, and 2e + 1, at its head; h ^ 1 is the other half. The
list of a vertex holds one edge for each bundle of parallel ones, as far as they were met: the rest
of a bundle hangs in a ring on it. A parallel edge leaves the list when it is first met, and a look
at a list ends with the neighbour that is one too many, so that all looks together take a time
linear in the edges. Loops are in a chain of their own. -1 stands for the end of a list.
"""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel, inlined, subkernel

END, AFTER, BEFORE, RING, HEIGHT = 0, 2, 4, 6, 7
"""Columns of ``Links.edges``: of both halves the vertex, the next half-edge at that vertex and the
one before; the next edge of a bundle, of a chain of loops, or of the free ids; rows of the maps.
"""

FIRST, LOOPS, DEGREE, LATER, EARLIER = range(5)
"""Columns of ``Links.vertices``: the first half-edge and the first loop; neighbours, counted up to
one too many, KEPT or GONE; the next vertex with as many and the one before.
"""

KEPT, GONE = -1, -2
"""The degree of a vertex that is never eliminated, and of one that was."""


class Links(NamedTuple):
    """Lists of edges and of vertices; all that belongs to one lies together in memory."""

    edges: np.ndarray  # (ids, 8)
    vertices: np.ndarray  # (n, 5)
    heads: np.ndarray  # (most + 1,) the first vertex with so many neighbours
    lists: np.ndarray  # (3, most + 1) workspace: half-edges or vertices around a vertex


@inlined
def link(edges, vertices, e, side):
    """Put one half of an edge in front of its vertex's list."""
    v = edges[e, END + side]
    first = vertices[v, FIRST]
    edges[e, AFTER + side], edges[e, BEFORE + side] = first, -1
    if first >= 0:
        edges[first >> 1, BEFORE + (first & 1)] = 2 * e + side
    vertices[v, FIRST] = 2 * e + side


@inlined
def unlink(edges, vertices, e, side):
    """Take one half of an edge out of its vertex's list."""
    after, before = edges[e, AFTER + side], edges[e, BEFORE + side]
    if before >= 0:
        edges[before >> 1, AFTER + (before & 1)] = after
    else:
        vertices[edges[e, END + side], FIRST] = after
    if after >= 0:
        edges[after >> 1, BEFORE + (after & 1)] = before


@inlined
def join(edges, vertices, e, u, w):
    """Put a new edge into the lists of its two ends, or, a loop, into the chain of its vertex."""
    edges[e, END], edges[e, END + 1] = u, w
    if u == w:
        edges[e, RING] = vertices[u, LOOPS]
        vertices[u, LOOPS] = e
    else:
        edges[e, RING] = e
        link(edges, vertices, e, 0)
        link(edges, vertices, e, 1)


@inlined
def other_end(edges, h):
    """The vertex to which a half-edge leads."""
    return edges[h >> 1, END + 1 - (h & 1)]


@inlined
def push(vertices, heads, v, degree):
    """Put a vertex in front of the list of its degree."""
    first = heads[degree]
    vertices[v, LATER], vertices[v, EARLIER] = first, -1
    if first >= 0:
        vertices[first, EARLIER] = v
    heads[degree] = v


@inlined
def pull(vertices, heads, v, degree):
    """Take a vertex out of the list of its degree."""
    later, earlier = vertices[v, LATER], vertices[v, EARLIER]
    if earlier >= 0:
        vertices[earlier, LATER] = later
    else:
        heads[degree] = later
    if later >= 0:
        vertices[later, EARLIER] = earlier


@subkernel
def neighbors(edges, vertices, v, seen):
    """Count v's neighbours, up to ``len(seen)``, put in ``seen`` the half-edges that lead there.

    Parallel edges met on the way become one bundle.
    """
    count, h = 0, vertices[v, FIRST]
    while h >= 0 and count < seen.size:
        e, side = h >> 1, h & 1
        h = edges[e, AFTER + side]
        u, known = edges[e, END + 1 - side], False
        for i in range(count):
            g = seen[i] >> 1
            if edges[g, END + 1 - (seen[i] & 1)] == u:
                edges[e, RING], edges[g, RING] = edges[g, RING], edges[e, RING]
                unlink(edges, vertices, e, 0)
                unlink(edges, vertices, e, 1)
                known = True
                break
        if not known:
            seen[count] = 2 * e + side
            count += 1
    return count


@inlined
def requeue(edges, vertices, heads, v, seen):
    """Count v's neighbours again, and put it in the list of those that have as many."""
    degree = vertices[v, DEGREE]
    if degree >= 0:
        count = neighbors(edges, vertices, v, seen)
        if count != degree:
            if degree < heads.size:
                pull(vertices, heads, v, degree)
            vertices[v, DEGREE] = count
            if count < heads.size:
                push(vertices, heads, v, count)


@borrowing_kernel
def set_up(sheaf, keep, links):
    """Fill the lists from the edges of a sheaf; the vertices in the mask ``keep`` are kept."""
    edges, vertices, heads, lists = links
    given, edge_dims = sheaf.edges, sheaf.edge_dims
    for v in range(keep.size):
        vertices[v, FIRST], vertices[v, LOOPS] = -1, -1
    for e in range(edge_dims.size - 1, -1, -1):
        edges[e, HEIGHT] = edge_dims[e]
        join(edges, vertices, e, given[e, 0], given[e, 1])
    for k in range(heads.size):
        heads[k] = -1
    seen = lists[0]
    for v in range(keep.size - 1, -1, -1):
        if keep[v]:
            vertices[v, DEGREE] = KEPT
            continue
        count = neighbors(edges, vertices, v, seen)
        vertices[v, DEGREE] = count
        if count < heads.size:
            push(vertices, heads, v, count)
