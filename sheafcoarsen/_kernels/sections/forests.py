"""Sections of a forest, computed from the leaves to the roots in orthonormal coordinates.

z_v are coordinates of the sections on the subtree of v in an orthonormal basis, and x_v = X_v z_v
their values at v. On the edge to the parent u, with maps A and C, sections satisfy A X_u z_u = C
X_v z_v. An orthonormal basis of the solutions (z_u, z_v) gives coordinates of the sections on the
subtree of u joined with that of v. Only such bases are multiplied, and ranks are decided for single
edges.

A section that is large at leaves may be arbitrarily small at u, so X = U D with columns of U near 1
and powers of two in D. Householder reflections of rows with exponents use the largest column and
row first, which is stable row by row (Cox and Higham 1998).
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.elimination import ZERO_FACTOR, magnitude
from sheafcoarsen._kernels.jit import kernel, llvm_inlined, numba_inlined, subkernel

NONE = -(1 << 60)
"""Exponent of a row of zeros."""


@llvm_inlined
def two_to(power):
    """Return 2^power; ``power`` is converted because ldexp rejects numpy's integers."""
    return math.ldexp(1.0, int(power))


@llvm_inlined
def ratio(low, high):
    """Return 2^(low - high), or 0 if it is too small; low - high must not be large."""
    if low == high:
        return 1.0
    # Maximum exponent of a power of two that is replaced by zero, near double-precision underflow
    lowest = -1070
    return two_to(low - high) if low - high > lowest else 0.0


@subkernel
def normalize_row(rows, powers, i, width):
    """Scale a row by a power of two so that its largest entry is near 1."""
    largest = 0.0
    for j in range(width):
        largest = max(largest, magnitude(rows[i, j]))
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


@llvm_inlined
def swap_rows(rows, i, k, width):
    """Swap two rows."""
    for j in range(width):
        x = rows[i, j]
        rows[i, j] = rows[k, j]
        rows[k, j] = x


@subkernel
def put_pivot_first(rows, powers, marks, vectors, k, size):
    """Swap the largest entry of the largest column among rows from k on to row k.

    Returns the column, or -1 if these rows are zero. ``marks`` are the mask of columns that are
    done, and the order of the rows.
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
            weight = ratio(powers[i], highest)
            total += (weight * float(abs(rows[i, j]))) ** 2
        if total > best:
            best, column = total, j
    at, largest = k, -1.0
    for i in range(k, height):
        x = ratio(powers[i], highest) * float(abs(rows[i, column]))
        if x > largest:
            at, largest = i, x
    if at != k:
        swap_rows(rows, k, at, width)
        swap_rows(vectors, k, at, min(height, width))
        powers[k], powers[at] = powers[at], powers[k]
        order[k], order[at] = order[at], order[k]
    return column


class ForestWorkspace(NamedTuple):
    """Arrays for one edge's rows; vertex stalks have dimension at most L, edge stalks at most H."""

    rows: np.ndarray  # (2 L, max(L, H))
    powers: np.ndarray  # (2 L,)
    basis: np.ndarray  # (2 L, 2 L)
    factor: np.ndarray  # (2 L, 2 L)
    lines: np.ndarray  # (L, L)
    levels: np.ndarray  # (L,)
    rotation: np.ndarray  # (L, L)
    vectors: np.ndarray  # (2 L, 2 L) vectors of the reflections
    taus: np.ndarray  # (2 L,)
    marks: tuple[np.ndarray, np.ndarray, np.ndarray]  # see ``triangulate``


@subkernel
def triangulate(rows, powers, vectors, taus, marks, size, floor):
    """Reduce a stack of rows with exponents to triangular form; return rank and smallest pivot.

    The reflections are written to ``vectors`` and ``taus``. ``marks`` are the mask of columns that
    are done, the order of the rows and that of the columns. Pivots up to ``floor`` are zero;
    ``floor`` must be 0 if powers differ.
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
            weight = ratio(powers[i], powers[k])
            total += (weight * float(abs(rows[i, column]))) ** 2
        beta = -math.copysign(math.sqrt(total), float(x.real))
        tau, unit = np.conj((beta - x) / beta), 1 / (x - beta)
        taus[k], vectors[k, k] = tau, 1
        for i in range(k + 1, height):
            rows[i, column] *= unit
            vectors[i, k] = ratio(powers[i], powers[k]) * rows[i, column]
        for j in range(width):
            if done[j]:
                continue
            s = rows[k, j]
            for i in range(k + 1, height):
                weight = ratio(powers[i], powers[k])
                s += np.conj(vectors[i, k]) * (weight * rows[i, j])
            s *= tau
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
def put_orthonormal(vectors, taus, order, shape, out):
    """Write columns of the orthonormal factor, with rows in their original order.

    ``shape`` are the number of reflections, the number of rows, the first column and the number of
    columns.
    """
    rank, height, first, width = shape
    for i in range(height):
        for j in range(width):
            out[order[i], j] = 1 if i == first + j else 0
    for k in range(rank - 1, -1, -1):
        tau = np.conj(taus[k])
        for j in range(width):
            s = out[order[k], j]
            for i in range(k + 1, height):
                s += np.conj(vectors[i, k]) * out[order[i], j]
            s *= tau
            out[order[k], j] -= s
            for i in range(k + 1, height):
                out[order[i], j] -= vectors[i, k] * s


@llvm_inlined
def power_of(data, at, size):
    """Return the exponent of the power of two above the largest of ``size`` entries."""
    largest = 0.0
    for i in range(at, at + size):
        largest = max(largest, magnitude(data[i]))
    return np.int64(math.frexp(largest)[1]) if largest > 0 else np.int64(NONE)


@subkernel
def add_values(rows, first, data, at, scale, state, v, height):
    """Add (scale F U_v)* to the rows from ``first`` on, for the map F at v with ``height`` rows."""
    offsets, counts, values, _ = state
    begin, d = offsets[v], offsets[v + 1] - offsets[v]
    for k in range(counts[v]):
        for i in range(height):
            x = rows[first + k, i] * 0
            for j in range(d):
                x += data[at + i * d + j] * values[begin + j, k]
            rows[first + k, i] += scale * np.conj(x)


@numba_inlined
def stack_edge(f, starts, e, child, state, workspace):
    """Write [A U_u, -C U_v]* for an edge, or (F_tail - F_head) U_u for a loop.

    Each map is divided by a power of two; returns the two powers.
    """
    rows, counts = workspace.rows, state[1]
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


@numba_inlined
def kernel_of(workspace, size, eps):
    """Write an orthonormal basis of the kernel of a map given by its adjoint.

    Returns its dimension, or -1 if the rank is uncertain.
    """
    height, width = size
    for i in range(height):
        workspace.powers[i] = 0
        normalize_row(workspace.rows, workspace.powers, i, width)
    floor = ZERO_FACTOR * max(height, width) * eps
    rank, smallest = triangulate(
        workspace.rows,
        workspace.powers,
        workspace.vectors,
        workspace.taus,
        workspace.marks,
        size,
        floor,
    )
    # A rank is certain if the smallest pivot exceeds this many times the threshold of zero pivots
    clear_rank = 100.0
    if smallest <= clear_rank * floor:
        return -1
    shape = (rank, height, rank, height - rank)
    put_orthonormal(workspace.vectors, workspace.taus, workspace.marks[1], shape, workspace.basis)
    return height - rank


@numba_inlined
def root_determines(workspace, height, width, floor):
    """Return whether the first ``height`` rows of the basis, at the root, have full column rank.

    Then the value at the root determines a section. This is decided for one edge, so it does not
    matter if sections decrease from edge to edge.
    """
    for i in range(height):
        workspace.powers[i] = 0
        for j in range(width):
            workspace.rows[i, j] = workspace.basis[i, j]
        normalize_row(workspace.rows, workspace.powers, i, width)
    rank, _ = triangulate(
        workspace.rows,
        workspace.powers,
        workspace.vectors,
        workspace.taus,
        workspace.marks,
        (height, width),
        floor,
    )
    return rank == width


@numba_inlined
def weighted_basis(state, u, v, shifts, width, workspace):
    """Write the QR decomposition of the basis, weighted by the scales of u and v; return the rank.

    Q maps new orthonormal coordinates to the coordinates of both subtrees.
    """
    offsets, counts, _, scales = state
    height = np.int64(counts[u])
    for part in range(1 if v < 0 else 2):
        at, first = (v, height) if part else (u, 0)
        for k in range(counts[at]):
            workspace.powers[first + k] = -scales[offsets[at] + k] - shifts[part]
            for j in range(width):
                workspace.rows[first + k, j] = workspace.basis[first + k, j]
            normalize_row(workspace.rows, workspace.powers, first + k, width)
    height += 0 if v < 0 else np.int64(counts[v])
    size = (height, width)
    rank, _ = triangulate(
        workspace.rows,
        workspace.powers,
        workspace.vectors,
        workspace.taus,
        workspace.marks,
        size,
        0.0,
    )
    shape = (rank, height, 0, width)
    put_orthonormal(workspace.vectors, workspace.taus, workspace.marks[1], shape, workspace.factor)
    return rank


@numba_inlined
def put_root_values(state, u, shift, width, workspace):
    """Write x_u = U D w for new coordinates w, rotated so that D is diagonal."""
    offsets, counts, values, scales = state
    begin, d = offsets[u], offsets[u + 1] - offsets[u]
    rows, lines, levels, columns = (
        workspace.rows,
        workspace.lines,
        workspace.levels,
        workspace.marks[2],
    )
    for i in range(width):
        levels[i] = -workspace.powers[i] - shift
        column = columns[i]
        for a in range(d):
            x = rows[0, 0] * 0
            for k in range(counts[u]):
                x += values[begin + a, k] * workspace.basis[k, column]
            for m in range(i):
                x -= np.conj(lines[m, a]) * rows[m, column]
            lines[i, a] = np.conj(x / rows[i, column])
    for i in range(width):
        normalize_row(lines, levels, i, d)
    size = (width, d)
    rank, _ = triangulate(
        lines, levels, workspace.vectors, workspace.taus, workspace.marks, size, 0.0
    )
    shape = (rank, width, 0, width)
    put_orthonormal(
        workspace.vectors, workspace.taus, workspace.marks[1], shape, workspace.rotation
    )
    for i in range(width):
        scales[begin + i] = levels[i] if i < rank else 0
        for a in range(d):
            values[begin + a, i] = np.conj(lines[i, a]) if i < rank else 0
    counts[u] = width


@kernel
def join_subtrees(f, starts, steps, eps, state, workspace, shapes, factors):
    """Join the subtrees at both ends of each edge; return whether that failed.

    It fails if the rank of an edge is uncertain, or if there are more sections than the value at
    the root determines.

    ``steps`` are the edges, and for each the child, or -1 for a loop. The dimensions of z_u, z_v
    and the new coordinates are written to ``shapes``, the matrices from new coordinates to z_u and
    z_v to ``factors``. ``state`` is (offsets, dimensions of z, U, exponents of D), for single
    vertices on entry.
    """
    order, children = steps
    counts, at = state[1], 0
    for step in range(order.size):
        e, v = order[step], children[step]
        u = f.edges[e, 0] if f.edges[e, 0] != v else f.edges[e, 1]
        shifts = stack_edge(f, starts, e, v, state, workspace)
        ku, kv = np.int64(counts[u]), np.int64(0)
        if v >= 0:
            kv = np.int64(counts[v])
        width = kernel_of(workspace, (ku + kv, np.int64(f.edge_dims[e])), eps)
        if width < 0:
            return True
        floor = ZERO_FACTOR * max(ku + kv, np.int64(f.edge_dims[e])) * eps
        if width > f.vertex_dims[u] or not root_determines(workspace, ku, width, floor):
            return True
        if weighted_basis(state, u, v, shifts, width, workspace) < width:
            return True
        put_root_values(state, u, shifts[0], width, workspace)
        shapes[step, 0], shapes[step, 1], shapes[step, 2] = ku, kv, width
        for i in range(ku + kv):
            for j in range(width):
                x = workspace.factor[0, 0] * 0
                for k in range(width):
                    x += workspace.factor[i, k] * workspace.rotation[k, j]
                factors[at] = x
                at += 1
    return False


@kernel
def split_subtrees(f, offsets, steps, shapes, factors, z, roots):
    """Replace sections' coordinates at the roots by values at all vertices; z is (dim_c0, h).

    The root of each vertex is written to ``roots``.
    """
    order, children = steps
    at, h, tallest = 0, z.shape[1], 1
    for step in range(order.size):
        ku, kv, width = shapes[step]
        at += (ku + kv) * width
        tallest = max(tallest, width)
    root_values = np.empty((tallest, h), z.dtype)
    for step in range(order.size - 1, -1, -1):
        e, v = order[step], children[step]
        u = f.edges[e, 0] if f.edges[e, 0] != v else f.edges[e, 1]
        ku, kv, width = shapes[step]
        at -= (ku + kv) * width
        if v >= 0:
            roots[v] = roots[u]
        for k in range(width):
            for j in range(h):
                root_values[k, j] = z[offsets[u] + k, j]
        for i in range(ku + kv):
            row = offsets[u] + i if i < ku else offsets[v] + i - ku
            for j in range(h):
                z[row, j] = 0
            for k in range(width):
                x = factors[at + i * width + k]
                for j in range(h):
                    z[row, j] += x * root_values[k, j]
