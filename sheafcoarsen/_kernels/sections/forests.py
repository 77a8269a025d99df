"""Sections of a forest, from the leaves to the roots, in orthonormal coordinates.

z_v are coordinates of the sections on the subtree of v in which norms are theirs, and x_v = X_v
z_v. An edge to the parent u lets pass what A X_u z_u = C X_v z_v holds for. An orthonormal basis of
that gives z_u and z_v, and x_u, by coordinates for what is now the subtree of u. None but such
bases are ever multiplied, and ranks are those of single edges.

What is large far below is small at u, by any power: X = U D, the columns of U near 1, D powers of
two. Reflections go over rows with exponents, the largest column and row first, which is stable row
by row (Cox and Higham 1998).
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.elimination import ZERO_FACTOR, size_of
from sheafcoarsen._kernels.jit import inlined, kernel, pasted, subkernel

CLEAR_RANK = 100.0
"""A pivot that is not so many times what counts as zero leaves doubt."""

NONE = -(1 << 60)
"""The exponent of a row of zeros."""

LOWEST = -1070
"""What is smaller than 2 to that is no double."""


@inlined
def two_to(power):
    """2^power; numpy's integers are none to Python's ldexp."""
    return math.ldexp(1.0, int(power))


@inlined
def ratio(low, high):
    """2^(low - high), the first being hardly larger."""
    if low == high:
        return 1.0
    return two_to(low - high) if low - high > LOWEST else 0.0


@subkernel
def normalize_row(rows, powers, i, width):
    """Bring the largest entry of a row near 1."""
    largest = 0.0
    for j in range(width):
        largest = max(largest, size_of(rows[i, j]))
    if largest == 0:
        powers[i] = NONE
        return
    if 0.5 <= largest < 1:
        return
    power = math.frexp(largest)[1]
    scale = two_to(-power)
    for j in range(width):
        rows[i, j] *= scale
    powers[i] += power


@inlined
def exchange_rows(rows, i, k, width):
    """Exchange two rows."""
    for j in range(width):
        x = rows[i, j]
        rows[i, j] = rows[k, j]
        rows[k, j] = x


@subkernel
def put_pivot_first(rows, powers, marks, vectors, k, size):
    """Bring the largest entry of the largest column among rows k.. to row k; return the column.

    -1 where all is zero. ``marks``: which columns are done, and the order of the rows.
    """
    done, order = marks
    height, width = size
    highest, column, best = NONE, -1, -1.0
    for i in range(k, height):
        highest = max(highest, powers[i])
    if highest == NONE:
        return -1
    for j in range(width):
        if done[j]:
            continue
        total = 0.0
        for i in range(k, height):
            share = ratio(powers[i], highest)
            total += (share * float(abs(rows[i, j]))) ** 2
        if total > best:
            best, column = total, j
    at, largest = k, -1.0
    for i in range(k, height):
        x = ratio(powers[i], highest) * float(abs(rows[i, column]))
        if x > largest:
            at, largest = i, x
    if at != k:
        exchange_rows(rows, k, at, width)
        exchange_rows(vectors, k, at, min(height, width))
        powers[k], powers[at] = powers[at], powers[k]
        order[k], order[at] = order[at], order[k]
    return column


class ForestWorkspace(NamedTuple):
    """Arrays for the rows of one edge; L and H are the largest vertex and edge stalks."""

    rows: np.ndarray  # (2 L, max(L, H))
    powers: np.ndarray  # (2 L,)
    basis: np.ndarray  # (2 L, 2 L)
    factor: np.ndarray  # (2 L, 2 L)
    lines: np.ndarray  # (L, L)
    levels: np.ndarray  # (L,)
    turned: np.ndarray  # (L, L)
    vectors: np.ndarray  # (2 L, 2 L) of reflections
    turns: np.ndarray  # (2 L,)
    marks: tuple[np.ndarray, np.ndarray, np.ndarray]  # see ``triangulate``


@subkernel
def triangulate(rows, powers, vectors, turns, marks, size, floor):
    """Reduce a stack of rows with exponents; return the rank, and the smallest pivot.

    The reflections stand in ``vectors`` and ``turns``. ``marks``: which columns are done, the order
    of the rows and that of the columns. What is at most ``floor``, 0 where powers differ, is zero.
    """
    height, width = size
    done, order, columns = marks
    for i in range(height):
        order[i] = i
        for j in range(min(height, width)):
            vectors[i, j] = 0
    for j in range(width):
        done[j] = False
    least = np.inf
    for k in range(min(height, width)):
        column = put_pivot_first(rows, powers, (done, order), vectors, k, size)
        if column < 0:
            return k, least
        x = rows[k, column]
        if floor > 0:
            pivot = float(abs(x)) * two_to(powers[k])
            if pivot <= floor:
                return k, least
            least = min(least, pivot)
        done[column], columns[k] = True, column
        total = 0.0
        for i in range(k, height):
            share = ratio(powers[i], powers[k])
            total += (share * float(abs(rows[i, column]))) ** 2
        beta = -math.copysign(math.sqrt(total), float(x.real))
        turn, unit = np.conj((beta - x) / beta), 1 / (x - beta)
        turns[k], vectors[k, k] = turn, 1
        for i in range(k + 1, height):
            rows[i, column] *= unit
            vectors[i, k] = ratio(powers[i], powers[k]) * rows[i, column]
        for j in range(width):
            if done[j]:
                continue
            s = rows[k, j]
            for i in range(k + 1, height):
                share = ratio(powers[i], powers[k])
                s += np.conj(vectors[i, k]) * (share * rows[i, j])
            s *= turn
            rows[k, j] -= s
            for i in range(k + 1, height):
                rows[i, j] -= rows[i, column] * s
        rows[k, column] = beta
        for i in range(k + 1, height):
            rows[i, column] = 0
            normalize_row(rows, powers, i, width)
        normalize_row(rows, powers, k, width)
    return min(height, width), least


@subkernel
def put_orthonormal(vectors, turns, order, place, out):
    """Write columns of the orthonormal factor, its rows in the order as given.

    ``place``: how many reflections there are, the height, the first column and their number.
    """
    rank, height, first, width = place
    for i in range(height):
        for j in range(width):
            out[order[i], j] = 1 if i == first + j else 0
    for k in range(rank - 1, -1, -1):
        turn = np.conj(turns[k])
        for j in range(width):
            s = out[order[k], j]
            for i in range(k + 1, height):
                s += np.conj(vectors[i, k]) * out[order[i], j]
            s *= turn
            out[order[k], j] -= s
            for i in range(k + 1, height):
                out[order[i], j] -= vectors[i, k] * s


@inlined
def power_of(data, at, size):
    """Return the exponent of the power of two above the largest of so many entries."""
    largest = 0.0
    for i in range(at, at + size):
        largest = max(largest, size_of(data[i]))
    return np.int64(math.frexp(largest)[1]) if largest > 0 else np.int64(NONE)


@subkernel
def add_values(rows, first, data, at, scale, state, v, height):
    """Add (scale F U_v)* to the rows from ``first`` on, F being the map at v of so many rows."""
    offsets, counts, values, _ = state
    begin, d = offsets[v], offsets[v + 1] - offsets[v]
    for k in range(counts[v]):
        for i in range(height):
            x = rows[first + k, i] * 0
            for j in range(d):
                x += data[at + i * d + j] * values[begin + j, k]
            rows[first + k, i] += scale * np.conj(x)


@pasted
def stack_edge(f, starts, e, child, state, work):
    """Write [A U_u, -C U_v]* for an edge, or (F_tail - F_head) U_u for a loop.

    Each map is divided by a power of two; the powers are returned.
    """
    rows, counts = work.rows, state[1]
    height, u, v = f.edge_dims[e], f.edges[e, 0], f.edges[e, 1]
    dims = f.vertex_dims
    tail, head = starts[0][e], starts[1][e]
    p = power_of(f.tail_data, tail, height * dims[u])
    q = power_of(f.head_data, head, height * dims[v])
    if u == v:
        p = max(p, q)
        q = p
    p, q = (0 if p == NONE else p), (0 if q == NONE else q)
    first, second = 0, np.int64(counts[u])
    if u == v:
        second = 0
    elif child == u:
        first, second = np.int64(counts[v]), 0
    for i in range(counts[u] + (0 if u == v else counts[v])):
        for j in range(height):
            rows[i, j] = 0
    add_values(rows, first, f.tail_data, tail, two_to(-p), state, u, height)
    add_values(rows, second, f.head_data, head, -two_to(-q), state, v, height)
    return (q, p) if child == u else (p, q)


@pasted
def kernel_of(work, size, eps):
    """Write an orthonormal basis of what a map, given as adjoint, kills; return its dimension.

    -1 where the rank is in doubt.
    """
    height, width = size
    for i in range(height):
        work.powers[i] = 0
        normalize_row(work.rows, work.powers, i, width)
    floor = ZERO_FACTOR * max(height, width) * eps
    rank, least = triangulate(
        work.rows, work.powers, work.vectors, work.turns, work.marks, size, floor
    )
    if least <= CLEAR_RANK * floor:
        return -1
    place = (rank, height, rank, height - rank)
    put_orthonormal(work.vectors, work.turns, work.marks[1], place, work.basis)
    return height - rank


@pasted
def is_led_on(work, height, width, floor):
    """Whether the part at the root of orthonormal columns, of so many rows, determines the rest.

    By one edge alone: that values shrink from edge to edge is no matter.
    """
    for i in range(height):
        work.powers[i] = 0
        for j in range(width):
            work.rows[i, j] = work.basis[i, j]
        normalize_row(work.rows, work.powers, i, width)
    rank, _ = triangulate(
        work.rows, work.powers, work.vectors, work.turns, work.marks, (height, width), floor
    )
    return rank == width


@pasted
def weigh(state, u, v, shifts, width, work):
    """Write coordinates z by orthonormal ones: the basis, with the weights of u and v, is Q R."""
    offsets, counts, _, scales = state
    height = np.int64(counts[u])
    for part in range(1 if v < 0 else 2):
        at, first = (v, height) if part else (u, 0)
        for k in range(counts[at]):
            work.powers[first + k] = -scales[offsets[at] + k] - shifts[part]
            for j in range(width):
                work.rows[first + k, j] = work.basis[first + k, j]
            normalize_row(work.rows, work.powers, first + k, width)
    height += 0 if v < 0 else np.int64(counts[v])
    size = (height, width)
    rank, _ = triangulate(work.rows, work.powers, work.vectors, work.turns, work.marks, size, 0.0)
    place = (rank, height, 0, width)
    put_orthonormal(work.vectors, work.turns, work.marks[1], place, work.factor)
    return rank


@pasted
def put_root_values(state, u, shift, width, work):
    """Let x_u be U D w again, w the new coordinates, which are turned so that D is diagonal."""
    offsets, counts, values, scales = state
    begin, d = offsets[u], offsets[u + 1] - offsets[u]
    rows, lines, levels, columns = (work.rows, work.lines, work.levels, work.marks[2])
    for i in range(width):
        levels[i] = -work.powers[i] - shift
        column = columns[i]
        for a in range(d):
            x = rows[0, 0] * 0
            for k in range(counts[u]):
                x += values[begin + a, k] * work.basis[k, column]
            for m in range(i):
                x -= np.conj(lines[m, a]) * rows[m, column]
            lines[i, a] = np.conj(x / rows[i, column])
    for i in range(width):
        normalize_row(lines, levels, i, d)
    size = (width, d)
    rank, _ = triangulate(lines, levels, work.vectors, work.turns, work.marks, size, 0.0)
    place = (rank, width, 0, width)
    put_orthonormal(work.vectors, work.turns, work.marks[1], place, work.turned)
    for i in range(width):
        scales[begin + i] = levels[i] if i < rank else 0
        for a in range(d):
            values[begin + a, i] = np.conj(lines[i, a]) if i < rank else 0
    counts[u] = width


@kernel
def join_subtrees(f, starts, steps, eps, state, work, shapes, factors):
    """Join the subtrees of the ends of one edge after the other; tell whether that failed.

    It does where the rank of an edge is near its rounding, or there are more sections than the
    value at the root determines.

    ``steps``: the edges, and for each the child, or -1 for a loop. Of each the dimensions of z_u,
    z_v and the new coordinates stand in ``shapes``; ``factors`` holds what leads back to z_u and
    z_v. ``state`` is (offsets, dimensions of z, U, exponents of D), as of single vertices at first.
    """
    order, children = steps
    counts, at = state[1], 0
    for step in range(order.size):
        e, v = order[step], children[step]
        u = f.edges[e, 0] if f.edges[e, 0] != v else f.edges[e, 1]
        shifts = stack_edge(f, starts, e, v, state, work)
        ku, kv = np.int64(counts[u]), np.int64(0)
        if v >= 0:
            kv = np.int64(counts[v])
        width = kernel_of(work, (ku + kv, np.int64(f.edge_dims[e])), eps)
        if width < 0:
            return True
        floor = ZERO_FACTOR * max(ku + kv, np.int64(f.edge_dims[e])) * eps
        if width > f.vertex_dims[u] or not is_led_on(work, ku, width, floor):
            return True
        if weigh(state, u, v, shifts, width, work) < width:
            return True
        put_root_values(state, u, shifts[0], width, work)
        shapes[step, 0], shapes[step, 1], shapes[step, 2] = ku, kv, width
        for i in range(ku + kv):
            for j in range(width):
                x = work.factor[0, 0] * 0
                for k in range(width):
                    x += work.factor[i, k] * work.turned[k, j]
                factors[at] = x
                at += 1
    return False


@kernel
def part_subtrees(f, offsets, steps, shapes, factors, z, roots):
    """Turn the coordinates of sections, at the roots, into their values; z is (dim_c0, columns).

    What hangs on a vertex has the same root.
    """
    order, children = steps
    at, h, tallest = 0, z.shape[1], 1
    for step in range(order.size):
        ku, kv, width = shapes[step]
        at += (ku + kv) * width
        tallest = max(tallest, width)
    before = np.empty((tallest, h), z.dtype)
    for step in range(order.size - 1, -1, -1):
        e, v = order[step], children[step]
        u = f.edges[e, 0] if f.edges[e, 0] != v else f.edges[e, 1]
        ku, kv, width = shapes[step]
        at -= (ku + kv) * width
        if v >= 0:
            roots[v] = roots[u]
        for k in range(width):
            for j in range(h):
                before[k, j] = z[offsets[u] + k, j]
        for i in range(ku + kv):
            row = offsets[u] + i if i < ku else offsets[v] + i - ku
            for j in range(h):
                z[row, j] = 0
            for k in range(width):
                x = factors[at + i * width + k]
                for j in range(h):
                    z[row, j] += x * before[k, j]
