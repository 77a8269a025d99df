"""One level of exact coarsening: retained columns, sections and loops of each cluster.

The space of small singular values of delta_a comes from elimination with pivoting. ``f`` is a
``SheafArrays``, ``c`` a ``Clusters``. Vectors are the rows of matrices; other small matrices are
row-major in flat arrays.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import (
    EPS,
    orthonormalize,
    potrs,
    pstrf,
    singular_rows,
    triangular_factor,
)
from sheafcoarsen._kernels.jit import kernel, subkernel
from sheafcoarsen._kernels.llvm_intrinsics import put_dot
from sheafcoarsen._kernels.modes import assemble, stack

ZERO_ROUNDING = 10.0
"""Threshold of zero singular values, in units of max(eps, n EPS) / g.

Here eps is the machine epsilon of the maps, n the dimension of the cluster, and g the minimum of 1
and the smallest eliminated singular value.
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


@kernel
def count_kept(lo, hi, f, c, keep, s, kept):
    """Write the number of retained coordinates of each cluster in lo .. hi."""
    for a in range(lo, hi):
        n = c.dims[a]
        kept[a] = n - factor_with_pivots(a, f, c, keep, s, s.a) if n > 0 else 0


@subkernel
def smallest_eliminated(r, n, workspace):
    """Estimate the smallest singular value of the eliminated columns of delta_a.

    By inverse iteration; infinity if r = 0.
    """
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
    step computes x_I = -L_II^{-1} L_IJ x_J. The second one is iterative refinement, which reduces
    the error from eps / g^2 to eps / g, where g is the smallest singular value of delta_I. Products
    are those of delta_a: L_a x would lose small singular values.
    """
    s, factor, delta, basis, other = workspace
    order, solved, image = s.iwork, s.spare, s.a[: rows * k].reshape(rows, k)
    delta_a, x = delta[: rows * n].reshape(rows, n), basis[: k * n].reshape(k, n)
    for i in range(k * n):
        basis[i] = 0
    for j in range(k):
        x[j, order[r + j] - 1] = 1
    for _ in range(2 if r > 0 else 0):
        put_dot(delta_a, x.T, image)
        for i in range(rows * k):
            s.a[i] = np.conj(s.a[i])
        put_dot(image.T, delta_a, other[: k * n].reshape(k, n))  # the conjugate of L_a x
        for j in range(k):
            for i in range(n):
                solved[j * n + i] = other[j * n + order[i] - 1] if i < r else 0
        potrs(factor, n, solved, k, s)
        for j in range(k):
            for i in range(r):
                x[j, order[i] - 1] -= np.conj(solved[j * n + i])
    orthonormalize(x, n, 0, k)


@kernel
def reduce_clusters(lo, hi, f, c, crossing, cut, workspace, kept):
    """Write the retained columns of clusters lo .. hi, N_a x widths[a], sections last.

    ``loops`` are triangular factors of delta_a times the other columns, with loop_rows[a] rows, 0
    if that is rounding. dropped[a] is the smallest eliminated singular value of delta_a, if any
    column is retained; zeros[a] is the largest one that counts as zero, of delta_a Z stacked with
    the maps of the crossing half-edges times Z, for a basis Z of the retained space. ``crossing``
    are the numbers of rows of delta_a, and d_v x d_v factors of the crossing maps at each vertex,
    as ``Ragged``. Returns -1, or the first cluster for which LAPACK failed.
    """
    (keep, eps), (heights, factors) = cut, crossing
    s, delta, basis, other = workspace.s, workspace.delta, workspace.basis, workspace.other
    columns, loops, widths, n_sections = kept.columns, kept.loops, kept.widths, kept.n_sections
    for a in range(lo, hi):
        n, k, rows = c.dims[a], widths[a], heights[a]
        if k == 0:
            continue
        r = factor_with_pivots(a, f, c, keep, s, workspace.a)
        for i in range(r, n):  # so that solving with the factor leaves the other coordinates alone
            for j in range(i):
                workspace.a[i * n + j] = 0
            workspace.a[i * n + i] = 1
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
        x, height = basis[: k * n].reshape(k, n), rows + n
        image = s.a[: height * k].reshape(height, k)
        put_dot(delta[: height * n].reshape(height, n), x.T, image)
        if singular_rows(height, k, True, s) != 0:
            return a
        zero = ZERO_ROUNDING * max(eps, n * EPS)  # for single-precision maps, eps is the larger
        for j in range(k):
            sigma = float(s.w[j])
            if sigma <= zero / min(kept.dropped[a], 1.0):
                n_sections[a] += 1
                kept.zeros[a] = max(kept.zeros[a], sigma)
        z, width = other[: k * n].reshape(k, n), k - n_sections[a]
        put_dot(s.z[: k * k].reshape(k, k), x, z)
        to = columns.starts[a]
        for j in range(k):
            for i in range(n):
                columns.data[to + i * k + j] = z[j, i]
        if rows == 0 or width == 0:
            continue
        image = s.a[: rows * width].reshape(rows, width)
        put_dot(delta[: rows * n].reshape(rows, n), other[: width * n].reshape(width, n).T, image)
        square = 0.0
        for i in range(rows * width):
            square += float(abs(s.a[i])) ** 2
        if math.sqrt(square) <= zero:
            continue
        triangular_factor(s.a, rows, width, s.work, s.work[rows:])
        kept.loop_rows[a], to = min(rows, width), loops.starts[a]
        for i in range(kept.loop_rows[a] * width):
            loops.data[to + i] = s.a[i]
    return -1
