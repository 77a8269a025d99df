"""An order of elimination with little fill: nested dissection by breadth-first levels."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import kernel, subkernel

LEAF = 32
"""Pieces up to this size are not cut."""


MANY = 64
"""Neighbours of a vertex that is looked through for each that goes beside it."""


class Search(NamedTuple):
    """A graph and what a breadth-first search of it has found."""

    indptr: np.ndarray
    indices: np.ndarray
    mark: np.ndarray  # of every vertex: in which piece it is, and how far the search of it is
    level: np.ndarray  # of every vertex: its distance from the start
    queue: np.ndarray  # vertices in the order in which they were found


@subkernel
def _spread(start, done, search, old, new):
    """Append what can be reached from ``start`` through vertices marked ``old`` to the queue.

    Marks it ``new`` and returns the end of the queue, which ends at ``done`` before.
    """
    indptr, indices, mark, level, queue = search
    queue[done] = start
    mark[start], level[start] = new, 0
    end = done + 1
    while done < end:
        v = queue[done]
        done += 1
        for k in range(indptr[v], indptr[v + 1]):
            w = indices[k]
            if mark[w] == old:
                mark[w], level[w] = new, level[v] + 1
                queue[end] = w
                end += 1
    return end


@subkernel
def _cut(queue, size, level, depth, counts):
    """Return the smallest level that leaves a quarter on either side, else the most balanced.

    -1 where no level cuts off 1/50.
    """
    counts[: depth + 1] = 0
    for i in range(size):
        counts[level[queue[i]]] += 1
    best, smallest, balanced, most, before = -1, size, -1, size // 50, 0
    for s in range(depth):
        after = size - before - counts[s]
        less = min(before, after)
        if 4 * less >= size and counts[s] < smallest:
            best, smallest = s, counts[s]
        if less > most:
            balanced, most = s, less
        before += counts[s]
    return best if best >= 0 else balanced


@kernel
def nested_dissection(indptr, indices):
    """Return the vertices of a graph in the order of elimination.

    That is: two pieces, each in this order, then what separates them.

    A piece is cut at a level of a breadth-first search from one of its ends. Where levels do not
    cut it, its vertices are put in order of degree.
    """
    n = len(indptr) - 1
    order = np.arange(n)
    mark, level, counts = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    queue = np.empty(n, np.int64)
    search = Search(indptr, indices, mark, level, queue)
    stack = np.empty((n + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    top, name = 1, 0
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        size = hi - lo
        if size <= LEAF:
            continue
        name += 3
        for i in range(lo, hi):
            mark[order[i]] = name
        end, first = 0, top
        for i in range(lo, hi):
            if mark[order[i]] == name:
                start = end
                end = _spread(order[i], end, search, name, name + 1)
                stack[top, 0], stack[top, 1] = lo + start, lo + end
                top += 1
        if top > first + 1:  # several components
            order[lo:hi] = queue[:size]
            continue
        top = first
        end = _spread(queue[size - 1], 0, search, name + 1, name + 2)
        s = _cut(queue, size, level, level[queue[size - 1]], counts)
        if s < 0:
            degrees = np.empty(size, np.int64)
            for i in range(size):
                degrees[i] = indptr[queue[i] + 1] - indptr[queue[i]]
            order[lo:hi] = queue[:size][np.argsort(degrees, kind="mergesort")]
            continue
        a, c = lo, hi
        for i in range(size):  # the near side, and the separator from behind
            v = queue[i]
            if level[v] > s:
                break
            separates = False
            if level[v] == s:
                for k in range(indptr[v], indptr[v + 1]):
                    w = indices[k]
                    separates = separates or (mark[w] == name + 2 and level[w] == s + 1)
            if separates:
                c -= 1
                order[c] = v
            else:
                order[a] = v
                a += 1
        order[a:c] = queue[size - (c - a) : size]
        stack[top, 0], stack[top, 1] = lo, a
        stack[top + 1, 0], stack[top + 1, 1] = a, c
        top += 2
    return order


@subkernel
def _find(neighbors, start, count, v):
    """Return where v stands among so many neighbours, -1 if it does not."""
    for k in range(start, start + count):
        if neighbors[k] == v:
            return k
    return -1


@subkernel
def _take_out(indptr, neighbors, degrees, u, v):
    """Remove v from the neighbours of u."""
    degrees[u] -= 1
    neighbors[_find(neighbors, indptr[u], degrees[u] + 1, v)] = neighbors[indptr[u] + degrees[u]]


@kernel
def order_chains(indptr, neighbors, degrees, order):
    """Write vertices with two neighbours at most, again and again; return how many there are.

    What they leave joined are neighbours of each other from then on, in place: a vertex u of those
    that remain has degrees[u] of them, from neighbors[indptr[u]] on; one that went has -1.
    """
    n, count, end, done = len(degrees), 0, 0, 0
    queue = np.empty(n, np.int64)
    for v in range(n):
        if degrees[v] <= 2:
            queue[end] = v
            end += 1
    while done < end:
        v = queue[done]
        done += 1
        start, degree = indptr[v], degrees[v]
        if degree > 0 and degrees[neighbors[start]] > MANY:
            continue
        if degree > 1 and degrees[neighbors[start + 1]] > MANY:
            continue
        degrees[v] = -1
        order[count] = v
        count += 1
        if degree == 2:
            a, b = neighbors[start], neighbors[start + 1]
            if _find(neighbors, indptr[a], degrees[a], b) < 0:
                neighbors[_find(neighbors, indptr[a], degrees[a], v)] = b
                neighbors[_find(neighbors, indptr[b], degrees[b], v)] = a
                continue
        for k in range(start, start + degree):
            u = neighbors[k]
            _take_out(indptr, neighbors, degrees, u, v)
            if degrees[u] == 2:
                queue[end] = u
                end += 1
    return count
