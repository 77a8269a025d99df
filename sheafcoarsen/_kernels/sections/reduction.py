"""One level of exact coarsening: retained columns, sections and loops of each cluster.

The space of small singular values of delta_a comes from elimination with pivoting. ``f`` is a
``SheafArrays``, ``c`` a ``Clusters``. Small dense matrices are row-major in flat arrays, upper
triangular factors including their zeros.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import EPS, Workspace, pstrf, singular_rows, triangular_factor
from sheafcoarsen._kernels.jit import kernel, llvm_inlined, subkernel
from sheafcoarsen._kernels.modes import assemble, map_at

STACKED_ROWS = 64
"""Minimum number of rows added between two factorizations of an incremental QR."""

ZERO_ROUNDING = 10.0
"""Threshold of zero singular values, in units of max(eps, n EPS) / g.

Here eps is the machine epsilon of the maps, n the dimension of the cluster, and g the minimum of 1
and the smallest eliminated singular value.
"""


class Ragged(NamedTuple):
    """Dense row-major blocks; that of item a begins at ``data[starts[a]]``."""

    starts: np.ndarray
    data: np.ndarray


class ClusterWorkspace(NamedTuple):
    """Workspace for clusters of dimension <= n that retain <= k columns; private to a thread."""

    lapack: Workspace  # for matrices n x n
    stack: np.ndarray  # rows of an incremental QR
    column: np.ndarray  # for its reflections, as ``row``
    row: np.ndarray
    factor: np.ndarray  # (k, k)
    t: np.ndarray  # (n, k)
    z: np.ndarray  # (n, k)


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


@llvm_inlined
def next_row(stack, filled, k, column, row):
    """Factor the stacked rows if the stack is full; return the index of the next row.

    The height of a full stack depends on k only: the largest k of a range would depend on the
    number of threads.
    """
    if filled == k + max(k, STACKED_ROWS):
        triangular_factor(stack, filled, k, column, row)
        filled = min(filled, k)
    return filled


@subkernel
def put_times(a, at, rows, b, columns, out, to):
    """Write A B to out[to:]: A is row-major from a[at] on, B the first ``columns`` columns of b."""
    inner = b.shape[0]
    for row in range(rows):
        for j in range(columns):
            x = out.dtype.type(0)
            for i in range(inner):
                x += a[at + row * inner + i] * b[i, j]
            out[to + row * columns + j] = x


@subkernel
def orthonormalize(z, n, k, workspace):
    """Replace the n x k matrix Z by Z R^{-1} from its QR decomposition, with R in the stack."""
    stack = workspace.stack
    for i in range(n * k):
        stack[i] = z[i]
    triangular_factor(stack, n, k, workspace.column, workspace.row)
    for row in range(n):
        x = row * k
        for j in range(k):
            y = z[x + j]
            for i in range(j):
                y -= z[x + i] * stack[i * k + j]
            z[x + j] = y / stack[j * k + j]


@subkernel
def factor_with_pivots(a, f, c, keep, lapack):
    """Factor L_a by pivoted Cholesky down to pivots of keep^2; return the rank."""
    n, matrix = c.dims[a], lapack.a
    assemble(a, f, c, 1.0, lapack.map, matrix)
    largest = 0.0
    for i in range(n):
        largest = max(largest, float(abs(matrix[i * n + i])))
    if largest <= keep * keep:
        for i in range(n):
            lapack.iwork[i] = i + 1
        return 0
    return pstrf(matrix, n, keep * keep, lapack)


@kernel
def count_kept(lo, hi, f, c, keep, lapack, kept):
    """Write the number of retained coordinates of each cluster in lo .. hi."""
    for a in range(lo, hi):
        n = c.dims[a]
        kept[a] = n - factor_with_pivots(a, f, c, keep, lapack) if n > 0 else 0


@subkernel
def solve_factored(r, n, lapack, b, k):
    """Solve L L* x = b in place for the k columns of the row-major b.

    L is the r x r factor from ``factor_with_pivots``; its row i is coordinate ``iwork[i] - 1``.
    """
    factor, order = lapack.a, lapack.iwork
    for i in range(r):
        x = (order[i] - 1) * k
        for j in range(i):
            g, y = factor[i * n + j], (order[j] - 1) * k
            for q in range(k):
                b[x + q] -= g * b[y + q]
        g = factor[i * n + i].real
        for q in range(k):
            b[x + q] /= g
    solve_adjoint(r, n, lapack, b, k)


@subkernel
def solve_adjoint(r, n, lapack, b, k):
    """Solve L* x = b in place, with L and b as in ``solve_factored``."""
    factor, order = lapack.a, lapack.iwork
    for i in range(r - 1, -1, -1):
        x = (order[i] - 1) * k
        g = factor[i * n + i].real
        for q in range(k):
            b[x + q] /= g
        for j in range(i):
            h, y = np.conj(factor[i * n + j]), (order[j] - 1) * k
            for q in range(k):
                b[y + q] -= h * b[x + q]


@subkernel
def smallest_eliminated(r, n, lapack, t):
    """Estimate the smallest singular value of the eliminated columns of delta_a.

    By inverse iteration; infinity if r = 0.
    """
    if r == 0:
        return np.inf
    order = lapack.iwork
    for i in range(r):
        t[order[i] - 1] = 0.5 + (i * 40503 % 65536) / 65536
    for step in range(5):
        norm = 0.0
        for i in range(r):
            norm += float(abs(t[order[i] - 1])) ** 2
        norm = math.sqrt(norm)
        if step < 4:
            for i in range(r):
                t[order[i] - 1] /= norm
            solve_factored(r, n, lapack, t, 1)
    return 1 / math.sqrt(norm)


@subkernel
def put_edge_row(edge_row, ends, f, local, z, k, out, to):
    """Write one row of delta_a Z to ``out`` from index ``to``.

    ``edge_row`` is (edge, row). ``ends`` is (0, 2) for the whole row, and (0, 1) or (1, 2) for the
    part of the tail, or of the head with its negative sign, alone.
    """
    e, q = edge_row
    for j in range(k):
        out[to + j] = 0
    for end in range(ends[0], ends[1]):
        v, d, data, begin = map_at(f, e, end)
        for i in range(d):
            g, x = (1 - 2 * end) * data[begin + q * d + i], (local[v] + i) * k
            for j in range(k):
                out[to + j] += g * z[x + j]


@subkernel
def fill_kept_space(a, r, f, c, k, workspace):
    """Write a basis of {x : delta_I* delta_a x = 0}, orthonormal up to eps / g, to workspace.z.

    I are the r eliminated coordinates, J the k others; the space contains ker delta_a. After x_I =
    -L_II^{-1} L_IJ x_J, one step of iterative refinement with products of delta_a reduces the error
    from eps / g^2 to eps / g, where g is the smallest singular value of delta_I.
    """
    lapack, z, t, row = workspace.lapack, workspace.z, workspace.t, workspace.row
    factor, order, local = lapack.a, lapack.iwork, c.local_offsets
    n = c.dims[a]
    for i in range(r):
        x = (order[i] - 1) * k
        for j in range(k):
            z[x + j] = -np.conj(factor[(r + j) * n + i])
    for j in range(k):
        x = (order[r + j] - 1) * k
        for i in range(k):
            z[x + i] = 1 if i == j else 0
    solve_adjoint(r, n, lapack, z, k)
    for i in range(n * k):  # T = delta_a* (delta_a Z): L_a Z would lose small singular values
        t[i] = 0
    for p in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = c.internal_edges[p]
        for q in range(f.edge_dims[e]):
            put_edge_row((e, q), (0, 2), f, local, z, k, row, 0)
            for end in range(2):
                v, d, data, begin = map_at(f, e, end)
                for i in range(d):
                    g = (1 - 2 * end) * np.conj(data[begin + q * d + i])
                    x = (local[v] + i) * k
                    for j in range(k):
                        t[x + j] += g * row[j]
    solve_factored(r, n, lapack, t, k)
    for i in range(r):
        x = (order[i] - 1) * k
        for j in range(k):
            z[x + j] -= t[x + j]
    orthonormalize(z, n, k, workspace)


@subkernel
def put_carried(a, n, rows, workspace, kept):
    """Write cluster a's retained columns and the factor of its loop; return the factor's row count.

    If sections are removed, both are multiplied by the right singular vectors in ``lapack.z``.
    """
    z, vectors, factor, stack = workspace.z, workspace.lapack.z, workspace.factor, workspace.stack
    columns, loops = kept.columns.data, kept.loops.data
    k, to, loop = kept.widths[a], kept.columns.starts[a], kept.loops.starts[a]
    if kept.n_sections[a] == 0:
        for i in range(n * k):
            columns[to + i] = z[i]
        for i in range(rows * k):
            loops[loop + i] = factor[i]
        return rows
    rotation = vectors[: k * k].reshape(k, k).T
    put_times(z, 0, n, rotation, k, columns, to)
    width = k - kept.n_sections[a]
    if rows == 0 or width == 0:
        return 0
    put_times(factor, 0, rows, rotation, width, stack, 0)
    triangular_factor(stack, rows, width, workspace.column, workspace.row)
    rows = min(rows, width)
    for i in range(rows * width):
        loops[loop + i] = stack[i]
    return rows


@kernel
def reduce_clusters(lo, hi, f, c, crossing, cut, workspace, kept):
    """Write the retained columns of clusters lo .. hi, N_a x widths[a], sections last.

    ``loops`` are triangular factors of delta_a times the other columns, with loop_rows[a] rows, 0
    if that is rounding. dropped[a] is the smallest eliminated singular value of delta_a, if any
    column is retained; zeros[a] is the largest one that counts as zero, of delta_a Z stacked with
    the maps of the crossing half-edges times Z. Returns -1, or the first cluster for which LAPACK
    failed.
    """
    keep, eps = cut
    lapack, stack, factor = workspace.lapack, workspace.stack, workspace.factor
    z, column, row, local = workspace.z, workspace.column, workspace.row, c.local_offsets
    widths, n_sections, loop_rows = kept.widths, kept.n_sections, kept.loop_rows
    dropped, zeros = kept.dropped, kept.zeros
    for a in range(lo, hi):
        n, k = c.dims[a], widths[a]
        if k == 0:
            continue
        r = factor_with_pivots(a, f, c, keep, lapack)
        dropped[a] = smallest_eliminated(r, n, lapack, workspace.t)
        fill_kept_space(a, r, f, c, k, workspace)
        filled = 0  # the triangular factor of delta_a Z
        for p in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
            e = c.internal_edges[p]
            for q in range(f.edge_dims[e]):
                filled = next_row(stack, filled, k, column, row)
                put_edge_row((e, q), (0, 2), f, local, z, k, stack, filled * k)
                filled += 1
        triangular_factor(stack, filled, k, column, row)
        rows = min(filled, k)
        square = 0.0
        for i in range(rows * k):
            factor[i] = stack[i]
            square += float(abs(stack[i])) ** 2
        zero = ZERO_ROUNDING * max(eps, n * EPS)  # for single-precision maps, eps is the larger
        if math.sqrt(square) <= zero:
            rows = 0
        filled = rows  # updated by the maps of crossing half-edges times Z
        for p in range(crossing.half_ptr[a], crossing.half_ptr[a + 1]):
            e, end = crossing.half_edges[p] >> 1, crossing.half_edges[p] & 1
            for q in range(f.edge_dims[e]):
                filled = next_row(stack, filled, k, column, row)
                put_edge_row((e, q), (end, end + 1), f, local, z, k, stack, filled * k)
                filled += 1
        triangular_factor(stack, filled, k, column, row)
        filled = min(filled, k)
        for i in range(filled * k):
            lapack.a[i] = stack[i]
        if singular_rows(filled, k, True, lapack) != 0:
            return a
        for j in range(k):
            sigma = float(lapack.w[j]) if j < filled else 0.0
            if sigma <= zero / min(dropped[a], 1.0):
                n_sections[a] += 1
                zeros[a] = max(zeros[a], sigma)
        loop_rows[a] = put_carried(a, n, rows, workspace, kept)
    return -1
