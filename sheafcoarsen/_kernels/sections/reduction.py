"""One level of exact coarsening: retained columns, sections and loops of each cluster.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``. Small dense matrices are row-major in flat arrays,
upper triangular factors square.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import EPS, singular_rows, triangular_factor
from sheafcoarsen._kernels.jit import kernel, subkernel
from sheafcoarsen._kernels.sections.elimination import (
    Ragged,
    factor_with_pivots,
    fill_kept_space,
    next_row,
    put_edge_row,
    put_times,
    smallest_eliminated,
)

ZERO_ROUNDING = 10.0
"""Threshold of zero singular values, in units of n eps / g.

Here g is the minimum of 1 and the smallest eliminated singular value.
"""


class Cut(NamedTuple):
    """Singular value down to which coordinates are eliminated, and the rounding of the maps."""

    keep: float
    eps: float


class Kept(NamedTuple):
    """Output of ``reduce_clusters`` for all clusters of a level."""

    widths: np.ndarray  # (K,) number of retained columns
    n_sections: np.ndarray  # (K,) number of sections among them, the last ones
    columns: Ragged  # (N_a, widths[a])
    loops: Ragged  # (loop_rows[a], widths[a] - n_sections[a]) at the start of their blocks
    loop_rows: np.ndarray
    dropped: np.ndarray  # (K,) smallest eliminated singular value
    zeros: np.ndarray  # (K,) largest singular value that counts as zero


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
    column is retained; zeros[a] is the largest one that counts as zero. Returns -1, or the first
    cluster for which LAPACK failed.
    """
    keep, eps = cut
    lapack, stack, factor = workspace.lapack, workspace.stack, workspace.factor
    z, column, row, local = workspace.z, workspace.column, workspace.row, c.local_offsets
    widths, n_sections, loop_rows = kept.widths, kept.n_sections, kept.loop_rows
    dropped, zeros = kept.dropped, kept.zeros
    for a in range(lo, hi):
        n, k = c.dims[a], widths[a]
        n_sections[a], loop_rows[a], dropped[a], zeros[a] = 0, 0, np.inf, 0.0
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
                put_edge_row(e, q, f, local, z, k, stack, filled * k)
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
        for p in range(crossing.starts[a], crossing.starts[a + 1]):
            e, end = crossing.halves[p] >> 1, crossing.halves[p] & 1
            v = f.edges[e, end]
            d = f.vertex_dims[v]
            data = f.tail_data if end == 0 else f.head_data
            begin = f.tail_offsets[e] if end == 0 else f.head_offsets[e]
            for q in range(f.edge_dims[e]):
                filled = next_row(stack, filled, k, column, row)
                for j in range(k):
                    stack[filled * k + j] = 0
                for i in range(d):
                    g, x = data[begin + q * d + i], (local[v] + i) * k
                    for j in range(k):
                        stack[filled * k + j] += g * z[x + j]
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
