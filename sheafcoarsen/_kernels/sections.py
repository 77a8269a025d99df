"""Kernels of :mod:`sheafcoarsen.sections`: sections of forests, and one level of exact coarsening.

Sections of a forest are computed from the leaves to the roots in orthonormal coordinates. z_v are
coordinates of the sections on the subtree of v in an orthonormal basis, and x_v = X_v z_v their
values at v. On the edge to the parent u, with maps A and C, sections satisfy A X_u z_u = C X_v z_v.
An orthonormal basis of the solutions (z_u, z_v) gives coordinates of the sections on the subtree of
u joined with that of v. Only such bases are multiplied, and ranks are decided for single edges.

A section that is large at leaves may be arbitrarily small at u, so X = U D with columns of U near 1
and powers of two in D. Householder reflections of rows with exponents use the largest column and
row first, which is stable row by row (Cox and Higham 1998).

A level of exact coarsening retains the space of small singular values of delta_a, which comes from
elimination with pivoting. ``f`` is a ``SheafArrays``, ``c`` a ``Clusters``.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import (
    ADJOINT,
    ASSIGN,
    EPS,
    NEITHER,
    TRANSPOSED,
    gemm,
    potrs,
    pstrf,
    singular_rows,
    triangular_factor,
)
from sheafcoarsen._kernels.elimination import ZERO_FACTOR, magnitude
from sheafcoarsen._kernels.hermitian import orthonormalize
from sheafcoarsen._kernels.jit import borrowing_kernel, kernel, llvm_inlined, subkernel
from sheafcoarsen._kernels.modes import assemble, stack

NONE = -(1 << 60)
"""Exponent of a row of zeros."""


@llvm_inlined
def two_to(power):
    """Return 2^power; ``power`` is converted because ldexp rejects numpy's integers."""
    return math.ldexp(1.0, int(power))


@subkernel
def normalize_row(rows, powers, i, width):
    """Scale a row by a power of two so that its largest magnitude is in [0.5, 1)."""
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


@subkernel
def pivot(rows, powers, k, size, done, weights):
    """Return row and column of the largest entry of the largest column among rows from k on.

    Also writes the weights 2^(powers[i] - p) of these rows, where p is the largest power. The
    column is -1 if these rows are zero. ``done`` is the mask of columns that are done.
    """
    height, width = size
    highest, row, column, best = NONE, k, -1, -1.0
    for i in range(k, height):
        highest = max(highest, powers[i])
    if highest == NONE:
        return row, column
    for i in range(k, height):
        # powers of two near the underflow of double precision are replaced by zero
        weights[i] = two_to(powers[i] - highest) if powers[i] - highest > -1070 else 0.0
    for j in range(width):
        total = -1.0 if done[j] else 0.0
        for i in range(k, height):
            total += (weights[i] * float(abs(rows[i, j]))) ** 2
        if total > best and not done[j]:
            best, column = total, j
    for i in range(k + 1, height):
        if weights[i] * float(abs(rows[i, column])) > weights[row] * float(abs(rows[row, column])):
            row = i
    return row, column


@subkernel
def triangulate(rows, powers, size, floor, work):
    """Reduce rows with exponents to triangular form; return the rank and the smallest pivot.

    Row i is 2^powers[i] times the first entries of rows[i]. The next ``height`` entries become row
    i of Q*, Q the orthonormal factor. ``work`` are the mask of columns that are done, their order,
    and workspace for a column. Pivots up to ``floor`` are zero; it must be 0 if powers differ, and
    the smallest pivot is then not computed but infinity.
    """
    height, width = size
    done, columns, weights, vector = work
    done[:width] = False
    for i in range(height):
        normalize_row(rows, powers, i, width)
        for j in range(height):
            rows[i, width + j] = 1 if i == j else 0
    least = np.inf
    for k in range(min(height, width)):
        at, column = pivot(rows, powers, k, size, done, weights)
        if column < 0:
            return k, least
        for j in range(width + height):
            rows[k, j], rows[at, j] = rows[at, j], rows[k, j]
        powers[k], powers[at] = powers[at], powers[k]
        weights[k], weights[at] = weights[at], weights[k]
        x, scale, total = rows[k, column], weights[k], 0.0
        if floor > 0:
            size_of_pivot = float(abs(x)) * two_to(powers[k])
            if size_of_pivot <= floor:
                return k, least
            least = min(least, size_of_pivot)
        done[column], columns[k] = True, column
        for i in range(k, height):
            weights[i] /= scale
            total += (weights[i] * float(abs(rows[i, column]))) ** 2
        beta = -math.copysign(math.sqrt(total), float(x.real))
        tau, unit = np.conj((beta - x) / beta), 1 / (x - beta)
        for i in range(k + 1, height):
            rows[i, column] *= unit
            vector[i] = weights[i] * rows[i, column]
        for j in range(width + height):
            if j < width and done[j]:
                continue
            s = rows[k, j]
            for i in range(k + 1, height):
                s += np.conj(vector[i]) * ((weights[i] if j < width else 1.0) * rows[i, j])
            s *= tau
            rows[k, j] -= s
            for i in range(k + 1, height):
                rows[i, j] -= (rows[i, column] if j < width else vector[i]) * s
        rows[k, column] = beta
        for i in range(k, height):
            if i > k:
                rows[i, column] = 0
            normalize_row(rows, powers, i, width)
    return min(height, width), least


@llvm_inlined
def power_of(data, at, size):
    """Return the exponent of the power of two above the largest of ``size`` entries, or NONE."""
    largest = 0.0
    for i in range(at, at + size):
        largest = max(largest, magnitude(data[i]))
    return np.int64(math.frexp(largest)[1]) if largest > 0 else np.int64(NONE)


@subkernel
def stack_edge(f, starts, e, child, state, rows):
    """Write [A U_u, -C U_v]* up to sign for an edge, or ((F_tail - F_head) U_u)* for a loop.

    Each map is divided by a power of two; returns the powers of the parent's and the child's map.
    """
    offsets, counts, values, _ = state
    height = f.edge_dims[e]
    p = power_of(f.tail_data, starts[0][e], height * f.vertex_dims[f.edges[e, 0]])
    q = power_of(f.head_data, starts[1][e], height * f.vertex_dims[f.edges[e, 1]])
    if child < 0:
        p = max(p, q)
        q = p
    p, q = (0 if p == NONE else p), (0 if q == NONE else q)
    rows[: counts[f.edges[e, 0]] + counts[f.edges[e, 1]], :height] = 0
    for side in range(2):
        w, data, power = f.edges[e, side], f.head_data if side else f.tail_data, q if side else p
        first, d = 0, offsets[w + 1] - offsets[w]
        if w == child:
            first = counts[f.edges[e, 1 - side]]
        scale = two_to(-power) * (1 - 2 * side)
        for k in range(counts[w]):
            for i in range(height):
                x = rows[0, 0] * 0
                for j in range(d):
                    x += data[starts[side][e] + i * d + j] * values[offsets[w] + j, k]
                rows[first + k, i] += scale * np.conj(x)
    return (q, p) if child == f.edges[e, 0] else (p, q)


@subkernel
def put_root_values(state, u, shift, width, arrays):
    """Write U and D of x_u = U D w, where the new coordinates w are rotated to make D diagonal.

    The adjoint of the rotation is written to the last columns of ``lines``.
    """
    offsets, counts, values, scales = state
    rows, powers, basis, lines, levels, work = arrays
    begin, d, columns = offsets[u], offsets[u + 1] - offsets[u], work[1]
    for i in range(width):
        levels[i] = -powers[i] - shift
        for a in range(d):
            x = rows[0, 0] * 0
            for k in range(counts[u]):
                x += values[begin + a, k] * basis[k, columns[i]]
            for m in range(i):
                x -= np.conj(lines[m, a]) * rows[m, columns[i]]
            lines[i, a] = np.conj(x / rows[i, columns[i]])
    rank, _ = triangulate(lines, levels, (width, d), 0.0, work)
    for i in range(width):
        scales[begin + i] = levels[i] if i < rank else 0
        for a in range(d):
            values[begin + a, i] = np.conj(lines[i, a]) if i < rank else 0
    counts[u] = width


@kernel
def join_subtrees(f, starts, steps, eps, state, sizes, shapes, factors):
    """Join the subtrees at both ends of each edge; return whether that failed.

    It fails if the rank of an edge is uncertain, or if the value at the root does not determine a
    section. ``steps`` are the edges, and for each the child, or -1 for a loop. The dimensions of
    z_u, z_v and the new coordinates are written to ``shapes``, the matrices from new coordinates to
    z_u and z_v to ``factors``. ``state`` is (offsets, dimensions of z, U, exponents of D), for
    single vertices on entry; ``sizes`` are the largest dimensions of vertex and edge stalks.
    """
    order, children = steps
    offsets, counts, values, scales = state
    most, wide, dtype = 2 * sizes[0], max(2 * sizes[0], sizes[1]), values.dtype
    rows, powers = np.empty((most, wide + most), dtype), np.empty(most, np.int64)
    lines, levels = np.empty((most, most), dtype), np.empty(most, np.int64)
    basis, weights, vector = np.empty((most, most), dtype), np.empty(most), np.empty(most, dtype)
    work = np.empty(wide, np.bool_), np.empty(most, np.int64), weights, vector
    arrays, at = (rows, powers, basis, lines, levels, work), 0
    for step in range(order.size):
        e, v = order[step], children[step]
        u = f.edges[e, 0] if f.edges[e, 0] != v else f.edges[e, 1]
        height, ku = np.int64(f.edge_dims[e]), np.int64(counts[u])
        total = ku if v < 0 else ku + counts[v]
        shifts = stack_edge(f, starts, e, v, state, rows)
        powers[:total] = 0
        floor = ZERO_FACTOR * max(total, height) * eps
        rank, smallest = triangulate(rows, powers, (total, height), floor, work)
        width = total - rank
        # A rank is certain if the smallest pivot exceeds 100 times the threshold of zero pivots
        if smallest <= 100 * floor or width > f.vertex_dims[u]:
            return True
        for i in range(total):
            for j in range(width):
                basis[i, j] = np.conj(rows[rank + j, height + i])
        # The value at the root must determine a section. This is decided for one edge, so it does
        # not matter if sections decrease from edge to edge.
        powers[:ku] = 0
        rows[:ku, :width] = basis[:ku, :width]
        if triangulate(rows, powers, (ku, width), floor, work)[0] < width:
            return True
        # Orthonormal coordinates, by a QR decomposition of the basis weighted by D^{-1}
        for i in range(total):
            powers[i] = -shifts[0] - scales[offsets[u] + i] if i < ku else 0
            if i >= ku:
                powers[i] = -shifts[1] - scales[offsets[v] + i - ku]
        rows[:total, :width] = basis[:total, :width]
        if triangulate(rows, powers, (total, width), 0.0, work)[0] < width:
            return True
        put_root_values(state, u, shifts[0], width, arrays)
        shapes[step, 0], shapes[step, 1], shapes[step, 2] = ku, total - ku, width
        d = f.vertex_dims[u]
        for i in range(total):
            for j in range(width):
                x = rows[0, 0] * 0
                for k in range(width):
                    x += rows[k, width + i] * lines[j, d + k]
                factors[at] = np.conj(x)
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


ZERO_ROUNDING = 10.0
"""Threshold of zero singular values, in units of max(eps of the maps, n EPS) / g.

Here n is the dimension of the cluster, and g the minimum of 1 and the smallest eliminated value.
"""


class Ragged(NamedTuple):
    """Dense row-major blocks; that of item a begins at ``data[starts[a]]``."""

    starts: np.ndarray
    data: np.ndarray


class Kept(NamedTuple):
    """Output of ``count_kept`` (widths) and ``reduce_clusters`` for all clusters of a level.

    On entry ``dropped`` is inf, and ``n_sections``, ``loop_rows`` and ``zeros`` are 0.
    """

    widths: np.ndarray  # (K,) number of retained columns
    n_sections: np.ndarray  # (K,) number of sections among them, the last ones
    columns: Ragged  # (N_a, widths[a])
    loops: Ragged  # (loop_rows[a], widths[a] - n_sections[a]) at the start of their blocks
    loop_rows: np.ndarray
    dropped: np.ndarray  # (K,) smallest eliminated singular value
    zeros: np.ndarray  # (K,) largest singular value that counts as zero


@subkernel
def factor_with_pivots(a, f, c, keep, s, matrix):
    """Factor L_a by pivoted Cholesky down to pivots of keep^2; return the rank."""
    n = c.dims[a]
    assemble(a, f, c, 1.0, s.map, matrix)
    largest = 0.0
    for i in range(n):
        largest = max(largest, float(abs(matrix[i * n + i])))
    if largest <= keep * keep:
        for i in range(n):
            s.iwork[i] = i + 1
        return 0
    return pstrf(matrix, n, keep * keep, s)


@borrowing_kernel
def count_kept(lo, hi, f, c, keep, s, kept):
    """Write the number of retained coordinates of each cluster in lo .. hi."""
    for a in range(lo, hi):
        n = c.dims[a]
        kept[a] = n - factor_with_pivots(a, f, c, keep, s, s.a) if n > 0 else 0


@subkernel
def smallest_eliminated(r, n, workspace):
    """Estimate the smallest of the r singular values of delta_I by inverse iteration, or inf."""
    if r == 0:
        return np.inf
    x = workspace.other
    for i in range(n):
        x[i] = 0.5 + (i * 40503 % 65536) / 65536 if i < r else 0.0
    for step in range(5):
        norm = 0.0
        for i in range(r):
            norm += float(abs(x[i])) ** 2
        norm = math.sqrt(norm)
        if step < 4:
            for i in range(r):
                x[i] /= norm
            potrs(workspace.a, n, x, np.int64(1), workspace.s)
    return 1 / math.sqrt(norm)


@subkernel
def fill_kept_space(n, r, rows, k, workspace):
    """Write a basis of {x : delta_I* delta_a x = 0}, orthonormal up to eps / g, as k rows.

    I are the r eliminated coordinates, J the k others; the space contains ker delta_a. The first
    step computes x_I = -L_II^{-1} L_IJ x_J. Iterative refinement then reduces the error from eps /
    g^2 to eps / g, g the smallest singular value of delta_I; L_a x would lose small ones.
    """
    s, factor, delta, basis, other = workspace
    order, solved = s.iwork, s.spare
    for i in range(k * n):
        basis[i] = 0
    for j in range(k):
        basis[j * n + order[r + j] - 1] = 1
    for _ in range(2 if r > 0 else 0):
        gemm((NEITHER, TRANSPOSED), (rows, k, n), ASSIGN, delta, basis, s.a, s)
        # the conjugate of L_a x
        gemm((ADJOINT, NEITHER), (k, n, rows), ASSIGN, s.a, delta, other, s)
        for j in range(k):
            for i in range(n):
                solved[j * n + i] = other[j * n + order[i] - 1] if i < r else 0
        potrs(factor, n, solved, k, s)
        for j in range(k):
            for i in range(r):
                basis[j * n + order[i] - 1] -= np.conj(solved[j * n + i])
    orthonormalize(basis, n, 0, k)


@borrowing_kernel
def reduce_clusters(lo, hi, f, c, crossing, cut, workspace, kept):
    """Write the retained columns of clusters lo .. hi, N_a x widths[a], sections last.

    ``loops`` are triangular factors of delta_a times the other columns, with loop_rows[a] rows, 0
    if that is rounding. zeros[a] is the largest singular value that counts as zero, of delta_a Z
    stacked with the maps of the crossing half-edges times Z, for a basis Z of the retained space.
    ``crossing`` are the numbers of rows of delta_a, and d_v x d_v factors of the crossing maps at
    each vertex, as ``Ragged``. Returns -1, or the first cluster for which LAPACK failed.
    """
    (keep, eps), (heights, factors) = cut, crossing
    s, factor, delta, basis, other = workspace
    for a in range(lo, hi):
        n, k, rows = c.dims[a], kept.widths[a], heights[a]
        if k == 0:
            continue
        r = factor_with_pivots(a, f, c, keep, s, factor)
        for i in range(r, n):  # so that solving with the factor leaves the other coordinates alone
            for j in range(i):
                factor[i * n + j] = 0
            factor[i * n + i] = 1
        kept.dropped[a] = smallest_eliminated(r, n, workspace)
        stack(a, f, c, rows, delta)
        for i in range(rows * n, (rows + n) * n):
            delta[i] = 0
        for v in c.members[c.member_ptr[a] : c.member_ptr[a + 1]]:
            d, at = f.vertex_dims[v], c.local_offsets[v]
            for i in range(d):
                for j in range(d):
                    entry = factors.data[factors.starts[v] + i * d + j]
                    delta[(rows + at + i) * n + at + j] = entry
        fill_kept_space(n, r, rows, k, workspace)
        height = rows + n
        gemm((NEITHER, TRANSPOSED), (height, k, n), ASSIGN, delta, basis, s.a, s)
        if singular_rows(height, k, True, s) != 0:
            return a
        zero = ZERO_ROUNDING * max(eps, n * EPS)  # for single-precision maps, eps is the larger
        for j in range(k):
            sigma = float(s.w[j])
            if sigma <= zero / min(kept.dropped[a], 1.0):
                kept.n_sections[a] += 1
                kept.zeros[a] = max(kept.zeros[a], sigma)
        gemm((NEITHER, NEITHER), (k, n, k), ASSIGN, s.z, basis, other, s)
        to, width = kept.columns.starts[a], k - kept.n_sections[a]
        for j in range(k):
            for i in range(n):
                kept.columns.data[to + i * k + j] = other[j * n + i]
        if rows == 0 or width == 0:
            continue
        gemm((NEITHER, TRANSPOSED), (rows, width, n), ASSIGN, delta, other, s.a, s)
        square = 0.0
        for i in range(rows * width):
            square += float(abs(s.a[i])) ** 2
        if math.sqrt(square) <= zero:
            continue
        triangular_factor(s.a, rows, width, s.work, s.work[rows:])
        kept.loop_rows[a], to = min(rows, width), kept.loops.starts[a]
        for i in range(kept.loop_rows[a] * width):
            kept.loops.data[to + i] = s.a[i]
    return -1
