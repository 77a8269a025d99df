"""Cholesky factors of symmetric matrices of d x d blocks on a graph, front by front.

Columns whose factors have the same rows below them, or nearly, make a front: a dense matrix of
their rows, in which LAPACK eliminates them. What is left goes to the front of its first row. Graphs
are analysed once for all d columns of a block, and right sides are solved for four at a time.
"""

import numpy as np

from sheafcoarsen._kernels.dense import eliminate_front
from sheafcoarsen._kernels.jit import kernel, subkernel
from sheafcoarsen._kernels.vectors import ONE, add_multiple, put, read, zero

NARROW = 4
"""Fronts of up to so many block columns are joined at any price: small ones cost calls."""

WASTE = 0.1
"""Share of zeros in a front's factor up to which wider fronts are joined."""

MANY = 64
"""Neighbours of a vertex that is looked through for each that goes beside it."""

LANES = 4
"""Right sides that are solved for together, which fill a vector register."""

NOTHING = (0.0,) * LANES


# What kernels take, as tuples of arrays:
#   graph   indptr, indices: neighbours of vertices; order (n,): vertices as they are eliminated;
#           position (n,): where each stands in it
#   fronts  first (s + 1,): block columns; row_start (s + 1,), rows: the rows below them, ascending
#           positions; children (s,): fronts whose rest goes to this one; value_start (s + 1,)
#   blocks  diagonal (n, d, d); couplings (m, d, d), of an edge (u, v) in row u and column v;
#           edges (m, 2); start (n + 1,), sorted (m,): edges by the end that is eliminated first
#   room    that of ``dense.fronts``


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


@subkernel
def _write_tree(graph, parent, ancestor):
    """Write the elimination tree: the next column that every column changes, n for none."""
    indptr, indices, order, position = graph
    n = len(order)
    for j in range(n):
        parent[j], ancestor[j] = n, n
        v = order[j]
        for k in range(indptr[v], indptr[v + 1]):
            i = position[indices[k]]
            while i < j:
                above = ancestor[i]
                ancestor[i] = j
                if above == n:
                    parent[i] = j
                    break
                i = above


@subkernel
def _write_postorder(parent, place):
    """Write the place of every column where all below a column come right before it."""
    n = len(parent)
    head, following = np.full(n + 1, -1), np.empty(n, np.int64)
    for j in range(n - 1, -1, -1):
        following[j] = head[parent[j]]
        head[parent[j]] = j
    stack = np.empty(n + 1, np.int64)
    stack[0], top, done = n, 1, 0
    while top > 0:
        j = stack[top - 1]
        child = head[j]
        if child >= 0:
            head[j] = following[child]
            stack[top] = child
            top += 1
        else:
            top -= 1
            if j < n:
                place[j] = done
                done += 1


@kernel
def plan_elimination(graph, parent, counts):
    """Put the order into postorder, in place; write the tree and the rows below each column."""
    indptr, indices, order, position = graph
    n = len(order)
    for j in range(n):
        position[order[j]] = j
    old, place = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    place[n] = n
    _write_tree(graph, old[:n], counts)
    _write_postorder(old[:n], place[:n])
    for j in range(n):
        parent[place[j]] = place[old[j]]
    for v in range(n):
        position[v] = place[position[v]]
    for v in range(n):
        order[position[v]] = v
    mark = old
    for j in range(n):
        counts[j], mark[j] = 0, j
        v = order[j]
        for k in range(indptr[v], indptr[v + 1]):
            i = position[indices[k]]
            while i < j and mark[i] != j:
                counts[i] += 1
                mark[i] = j
                i = parent[i]


@kernel
def find_fronts(parent, counts, first):
    """Write the first columns of fronts, and n behind them; return how many there are."""
    n = len(parent)
    zeros = np.zeros(n + 1, np.int64)
    top, b = 0, 0
    while b < n:
        a, wasted = b, 0
        b += 1
        while b < n and parent[b - 1] == b and counts[b - 1] == counts[b] + 1:
            b += 1
        while top > 0 and parent[a - 1] < b:  # the front before ends in this one
            lower, width, below = a - first[top - 1], b - a, counts[b - 1]
            both = lower + width
            size = both * (both + below) - both * (both - 1) // 2
            own = width * (width + below) - width * (width - 1) // 2
            under = lower * (lower + counts[a - 1]) - lower * (lower - 1) // 2
            total = zeros[top - 1] + wasted + size - own - under
            if both > NARROW and total > WASTE * size:
                break
            top -= 1
            a, wasted = first[top], total
        first[top], zeros[top] = a, wasted
        top += 1
    first[top] = n
    return top


@kernel
def write_fronts(graph, fronts):
    """Write the rows of every front, and how many go into it.

    Return the most rows of a front and the largest sum of squares of rows that wait, in blocks.
    """
    indptr, indices, order, position = graph
    first, row_start, rows, children, _ = fronts
    n, count = len(order), len(children)
    front_of, mark = np.empty(n, np.int64), np.full(n, -1)
    head, following = np.full(count, -1), np.empty(count, np.int64)
    most, waiting, highest = 0, 0, 0
    for s in range(count):
        front_of[first[s] : first[s + 1]] = s
    for s in range(count):
        a, b, start = first[s], first[s + 1], row_start[s]
        end = start
        for j in range(a, b):
            v = order[j]
            for k in range(indptr[v], indptr[v + 1]):
                i = position[indices[k]]
                if i >= b and mark[i] != s:
                    mark[i], rows[end] = s, i
                    end += 1
        child, children[s] = head[s], 0
        while child >= 0:
            children[s] += 1
            waiting -= (row_start[child + 1] - row_start[child]) ** 2
            for k in range(row_start[child], row_start[child + 1]):
                i = rows[k]
                if i >= b and mark[i] != s:
                    mark[i], rows[end] = s, i
                    end += 1
            child = following[child]
        rows[start:end].sort()
        most = max(most, b - a + end - start)
        waiting += (end - start) ** 2
        highest = max(highest, waiting)
        if end > start:
            above = front_of[rows[start]]
            following[s], head[above] = head[above], s
    return most, highest


@subkernel
def _add_matrix(front, size, columns, blocks, local, graph):
    """Add the matrix's own entries in a range of block columns to a front."""
    diagonal, couplings, edges, start, by_column = blocks
    _, _, order, position = graph
    d = diagonal.shape[1]
    for j in range(columns[0], columns[1]):
        v, at = order[j], local[j] * d
        for column in range(d):
            for row in range(column, d):
                front[(at + column) * size + at + row] += diagonal[v, row, column]
        for k in range(start[j], start[j + 1]):
            e = by_column[k]
            upright = position[edges[e, 1]] == j
            other = local[position[edges[e, 0 if upright else 1]]] * d
            for column in range(d):
                for row in range(d):
                    entry = couplings[e, row, column] if upright else couplings[e, column, row]
                    front[(at + column) * size + other + row] += entry


@subkernel
def _add_rest(front, size, rest, rows, local, d):
    """Add what a front below has left, a lower triangle in columns."""
    count = len(rows) * d
    for q in range(len(rows)):
        for column in range(d):
            at = (local[rows[q]] * d + column) * size
            source = (q * d + column) * count
            for p in range(q, len(rows)):
                to, out = at + local[rows[p]] * d, source + p * d
                for row in range(d):  # above the diagonal there are zeros
                    front[to + row] += rest[out + row]


@kernel
def factor_fronts(graph, fronts, blocks, values, stack, room):
    """Write the Cholesky factor, the columns of a front after each other.

    Return False where the matrix is not positive definite.
    """
    first, row_start, rows, children, value_start = fronts
    front = room[0]
    d = blocks[0].shape[1]
    n, count = len(graph[2]), len(children)
    local, pile = np.empty(n, np.int64), np.empty(count + 1, np.int64)
    top, end = 0, 0
    for s in range(count):
        a, b = first[s], first[s + 1]
        mine = rows[row_start[s] : row_start[s + 1]]
        for j in range(a, b):
            local[j] = j - a
        for k in range(len(mine)):
            local[mine[k]] = b - a + k
        pivots, size = (b - a) * d, (b - a + len(mine)) * d
        front[: size * size] = 0
        _add_matrix(front, size, (a, b), blocks, local, graph)
        for _ in range(children[s]):
            top -= 1
            below = rows[row_start[pile[top]] : row_start[pile[top] + 1]]
            end -= (len(below) * d) ** 2
            _add_rest(front, size, stack[end:], below, local, d)
        if eliminate_front(size, pivots, room) != 0:
            return False
        values[value_start[s] : value_start[s + 1]] = front[: size * pivots]
        left = size - pivots
        if left == 0:
            continue
        for column in range(left):
            at, to = (pivots + column) * size + pivots, end + column * left
            for row in range(column):
                stack[to + row] = 0
            for row in range(column, left):
                stack[to + row] = front[at + row]
        end += left * left
        pile[top] = s
        top += 1
    return True


@subkernel
def _gather(x, fronts, s, d, w):
    """Copy the rows of a front to its room; return how many are eliminated, and all."""
    first, row_start, rows, _, _ = fronts
    a, b = first[s], first[s + 1]
    at = (b - a) * d * LANES
    w[:at] = x[a * d * LANES : b * d * LANES]
    for k in range(row_start[s], row_start[s + 1]):
        source = rows[k] * d * LANES
        for i in range(d * LANES):
            w[at + i] = x[source + i]
        at += d * LANES
    return (b - a) * d, at // LANES


@subkernel
def _divide(w, row, pivot):
    """Divide a row of the right sides by a pivot; return it."""
    total = add_multiple(zero(NOTHING, ONE), 1 / pivot, read(NOTHING, ONE, w, row * LANES, 0))
    put(w, row * LANES, 0, total)
    return total


@subkernel
def _forward(values, size, pivots, w):
    """Solve with a front's columns, and take them out of the rows below; four at a time."""
    for j in range(0, pivots, 4):
        end = min(j + 4, pivots)
        for c in range(j, end):
            solved = _divide(w, c, values[c * size + c])
            for i in range(c + 1, size if end < j + 4 else end):
                put(
                    w,
                    i * LANES,
                    0,
                    add_multiple(
                        read(NOTHING, ONE, w, i * LANES, 0), -values[c * size + i], solved
                    ),
                )
        if end == j + 4:
            at = j * size
            first, second = values[at : at + size], values[at + size : at + 2 * size]
            third, last = values[at + 2 * size : at + 3 * size], values[at + 3 * size :]
            for i in range(np.uint64(end), np.uint64(size)):
                sums = add_multiple(
                    zero(NOTHING, ONE), first[i], read(NOTHING, ONE, w, j * LANES, 0)
                )
                sums = add_multiple(sums, second[i], read(NOTHING, ONE, w, (j + 1) * LANES, 0))
                sums = add_multiple(sums, third[i], read(NOTHING, ONE, w, (j + 2) * LANES, 0))
                sums = add_multiple(sums, last[i], read(NOTHING, ONE, w, (j + 3) * LANES, 0))
                put(
                    w,
                    i * np.uint64(LANES),
                    0,
                    add_multiple(read(NOTHING, ONE, w, i * np.uint64(LANES), 0), -1.0, sums),
                )


@subkernel
def _backward(values, size, pivots, w):
    """Solve with the transpose of a front's columns; four at a time, from the last."""
    for j in range((pivots - 1) // 4 * 4, -1, -4):
        end = min(j + 4, pivots)
        if end == j + 4:
            at = j * size
            first, second = values[at : at + size], values[at + size : at + 2 * size]
            third, last = values[at + 2 * size : at + 3 * size], values[at + 3 * size :]
            one, two = zero(NOTHING, ONE), zero(NOTHING, ONE)
            three, four = zero(NOTHING, ONE), zero(NOTHING, ONE)
            for i in range(np.uint64(end), np.uint64(size)):
                one = add_multiple(one, first[i], read(NOTHING, ONE, w, i * np.uint64(LANES), 0))
                two = add_multiple(two, second[i], read(NOTHING, ONE, w, i * np.uint64(LANES), 0))
                three = add_multiple(
                    three, third[i], read(NOTHING, ONE, w, i * np.uint64(LANES), 0)
                )
                four = add_multiple(four, last[i], read(NOTHING, ONE, w, i * np.uint64(LANES), 0))
            put(w, j * LANES, 0, add_multiple(read(NOTHING, ONE, w, j * LANES, 0), -1.0, one))
            put(
                w,
                (j + 1) * LANES,
                0,
                add_multiple(read(NOTHING, ONE, w, (j + 1) * LANES, 0), -1.0, two),
            )
            put(
                w,
                (j + 2) * LANES,
                0,
                add_multiple(read(NOTHING, ONE, w, (j + 2) * LANES, 0), -1.0, three),
            )
            put(
                w,
                (j + 3) * LANES,
                0,
                add_multiple(read(NOTHING, ONE, w, (j + 3) * LANES, 0), -1.0, four),
            )
        for c in range(end - 1, j - 1, -1):
            sums = zero(NOTHING, ONE)
            for i in range(c + 1, size if end < j + 4 else end):
                sums = add_multiple(sums, values[c * size + i], read(NOTHING, ONE, w, i * LANES, 0))
            put(w, c * LANES, 0, add_multiple(read(NOTHING, ONE, w, c * LANES, 0), -1.0, sums))
            _divide(w, c, values[c * size + c])


@kernel
def solve_fronts(fronts, values, d, x, w):
    """Solve for LANES right sides in place; x holds those of a row after each other."""
    first, row_start, rows, _, value_start = fronts
    count = len(value_start) - 1
    for s in range(count):
        pivots, size = _gather(x, fronts, s, d, w)
        _forward(values[value_start[s] :], size, pivots, w)
        at = first[s] * d * LANES
        x[at : at + pivots * LANES] = w[: pivots * LANES]
        at = pivots * LANES
        for k in range(row_start[s], row_start[s + 1]):
            target = rows[k] * d * LANES
            for i in range(d * LANES):
                x[target + i] = w[at + i]
            at += d * LANES
    for s in range(count - 1, -1, -1):
        pivots, size = _gather(x, fronts, s, d, w)
        _backward(values[value_start[s] :], size, pivots, w)
        at = first[s] * d * LANES
        x[at : at + pivots * LANES] = w[: pivots * LANES]
