"""Sparse factorization: elimination order, operation counts, triangular solves."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel, kernel, subkernel
from sheafcoarsen._kernels.simd import ONE, add_block, put, read, zero


class Search(NamedTuple):
    """A graph and the state of a breadth-first search in it."""

    indptr: np.ndarray
    indices: np.ndarray
    mark: np.ndarray  # of every vertex: its piece and the state of the search in it
    level: np.ndarray  # of every vertex: its distance from the start
    queue: np.ndarray  # vertices in the order of the search


@subkernel
def _search_from(start, done, search, old, new):
    """Append all vertices reachable from ``start`` through vertices marked ``old`` to the queue.

    Marks them ``new``. The queue ends at ``done`` before; returns its new end.
    """
    indptr, indices, mark, level, queue = search
    queue[done], mark[start], level[start] = start, new, 0
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
def _separating_level(queue, size, level, depth, counts):
    """Return the smallest level with at least a quarter of all vertices on each side.

    If there is none, return the most balanced level, or -1 if none cuts off 1/50 of the vertices.
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
    """Return a nested-dissection elimination order of the vertices of a graph.

    Two pieces, each in this order, are followed by their separator: the vertices of one level of a
    breadth-first search, from one end of their union, that are adjacent to the next level. If no
    level separates, vertices are ordered by degree.
    """
    n = len(indptr) - 1
    order, queue = np.arange(n), np.empty(n, np.int64)
    mark, level, counts = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n + 1, np.int64)
    search = Search(indptr, indices, mark, level, queue)
    stack = np.empty((n + 1, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    top, name = 1, 0
    while top > 0:
        top -= 1
        lo, hi = stack[top, 0], stack[top, 1]
        size = hi - lo
        if size <= 32:
            continue
        name += 3
        for i in range(lo, hi):
            mark[order[i]] = name
        end, first = 0, top
        for i in range(lo, hi):
            if mark[order[i]] == name:
                start = end
                end = _search_from(order[i], end, search, name, name + 1)
                stack[top, 0], stack[top, 1] = lo + start, lo + end
                top += 1
        if top > first + 1:  # several components, which the stack already contains
            order[lo:hi] = queue[:size]
            continue
        top = first
        end = _search_from(queue[size - 1], 0, search, name + 1, name + 2)
        s = _separating_level(queue, size, level, level[queue[size - 1]], counts)
        if s < 0:
            degrees = np.empty(size, np.int64)
            for i in range(size):
                degrees[i] = indptr[queue[i] + 1] - indptr[queue[i]]
            order[lo:hi] = queue[:size][np.argsort(degrees, kind="mergesort")]
            continue
        a, c = lo, hi
        for i in range(size):  # put the near side in front, the separator at the back
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
    """Return the index k in start .. start + count with neighbors[k] == v, or -1."""
    for k in range(start, start + count):
        if neighbors[k] == v:
            return k
    return -1


@kernel
def order_chains(indptr, neighbors, degrees, order):
    """Repeatedly eliminate vertices with at most two neighbours; write them to ``order``.

    Returns their number. Vertices with a neighbour of degree above 64 are skipped. The two
    neighbours of an eliminated vertex become adjacent, in place: a remaining vertex u has
    degrees[u] neighbours, starting at neighbors[indptr[u]]; an eliminated one has degree -1.
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
        start, degree, most = indptr[v], degrees[v], 0
        for k in range(start, start + degree):
            most = max(most, degrees[neighbors[k]])
        if most > 64:  # the lists of the neighbours are searched at each elimination
            continue
        degrees[v], order[count] = -1, v
        count += 1
        if degree == 2:
            a, b = neighbors[start], neighbors[start + 1]
            if _find(neighbors, indptr[a], degrees[a], b) < 0:
                neighbors[_find(neighbors, indptr[a], degrees[a], v)] = b
                neighbors[_find(neighbors, indptr[b], degrees[b], v)] = a
                continue
        for k in range(start, start + degree):
            u = neighbors[k]  # the last neighbour of u replaces v
            at = _find(neighbors, indptr[u], degrees[u], v)
            degrees[u] -= 1
            neighbors[at] = neighbors[indptr[u] + degrees[u]]
            if degrees[u] == 2:
                queue[end] = u
                end += 1
    return count


@borrowing_kernel
def mark_stalks(indptr, indices, begins):
    """Mark the rows that begin a stalk: not coupled to the previous row, or with other columns."""
    for i in range(begins.size):
        lo, hi = indptr[i], indptr[i + 1]
        same = i > 0 and hi - lo == lo - indptr[i - 1]
        coupled = False
        k = lo
        while same and k < hi:
            same = indices[k] == indices[k - (hi - lo)]
            coupled = coupled or indices[k] == i
            k += 1
        begins[i] = not (same and coupled)


@kernel
def count_operations(indptr, indices, widths, step_of, limit, counts):
    """Write the sum of squared column lengths of a Cholesky factor, and its number of entries.

    The count stops above ``limit`` operations. Vertex v of the symmetric pattern represents
    widths[v] rows with the same entries, and is eliminated at step step_of[v]. Each row of the
    factor is a subtree of the elimination tree (Liu 1990), which contains the entries of the row.
    """
    n = step_of.size
    order = np.empty(n, np.int64)
    for v in range(n):
        order[step_of[v]] = v
    parent = np.full(n, -1, np.int64)
    row = np.full(n, -1, np.int64)  # of each column: the last row with an entry
    below = np.zeros(n, np.int64)  # of each column: number of entries below the diagonal block
    operations, entries = 0, 0
    for k in range(n):
        v = order[k]
        wide = widths[v]
        operations += wide * (wide + 1) * (2 * wide + 1) // 6
        entries += wide * (wide + 1) // 2
        row[k] = k
        for p in range(indptr[v], indptr[v + 1]):
            j = step_of[indices[p]]
            while j < k and row[j] != k:
                row[j] = k
                w = widths[order[j]]
                operations += w * wide * (2 * below[j] + wide + w + 1)
                entries += w * wide
                below[j] += wide
                if parent[j] < 0:
                    parent[j] = k
                j = parent[j]
        if operations > limit:
            break
    counts[0], counts[1] = operations, entries


@borrowing_kernel
def solve_factored(lower, upper, inverses, part, lanes, x):
    """Overwrite columns part[0] .. part[1] of x, (n, h), with (L U)^{-1} x.

    ``lower`` and ``upper`` are (indptr, indices, data) of L by columns and of U by rows. The
    diagonal of L is 1, and ``inverses`` are the inverse entries of that of U. ``lanes`` has as many
    zeros as columns are solved together, a divisor of their number.
    """
    n, h = x.shape
    x = x.reshape(-1)
    for c in range(part[0], part[1], len(lanes)):
        indptr, indices, data = lower
        for j in range(n):
            y = read(lanes, ONE, x, j * h + c, h)
            for p in range(indptr[j], indptr[j + 1]):
                i = indices[p]
                if i > j:
                    row = read(lanes, ONE, x, i * h + c, h)
                    put(x, i * h + c, h, add_block(row, -1.0, data, p, 0, y))
        indptr, indices, data = upper
        for j in range(n - 1, -1, -1):
            y = read(lanes, ONE, x, j * h + c, h)
            for p in range(indptr[j], indptr[j + 1]):
                i = indices[p]
                if i > j:
                    row = read(lanes, ONE, x, i * h + c, h)
                    y = add_block(y, -1.0, data, p, 0, row)
            put(x, j * h + c, h, add_block(zero(lanes, ONE), 1.0, inverses, j, 0, y))
