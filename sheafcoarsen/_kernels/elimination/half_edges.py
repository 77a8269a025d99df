"""The remaining graph in an elimination: half-edges at each vertex, and vertices by degree.

Edge e has the half-edges 2e, at its tail, and 2e + 1, at its head; h ^ 1 is the opposite half-edge.
Each vertex has a doubly linked list of half-edges and a singly linked list of loops; -1 ends a
list. Parallel edges are joined in a bundle: one of them remains in the lists, the others are linked
to it in a ring. They are joined when a search of a list finds them. Searches end at the first
neighbour above the largest degree that is eliminated, so all of them take linear time in the edges.
"""

from typing import NamedTuple

import numpy as np

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
    given, edge_dims = sheaf.edges, sheaf.edge_dims
    vertices[:, FIRST], vertices[:, LOOPS], vertices[:, SEEN], heads[:] = -1, -1, 0, -1
    for e in range(edge_dims.size - 1, -1, -1):
        edges[e, HEIGHT] = edge_dims[e]
        join(edges, vertices, e, given[e, 0], given[e, 1])
    seen = lists[0]
    for v in range(keep.size - 1, -1, -1):
        if keep[v]:
            vertices[v, DEGREE] = KEPT
            continue
        count = neighbors(edges, vertices, v, seen)
        vertices[v, DEGREE] = count
        if count < heads.size:
            push(vertices, heads, v, count)
