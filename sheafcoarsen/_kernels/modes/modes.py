"""Lowest modes and spectra of local operators, for ranges of clusters.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``, ``s`` a ``Workspace``. Kernels return -1, or the
first cluster for which LAPACK failed.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.arrays import SheafArrays
from sheafcoarsen._kernels.dense import (
    ADJOINT,
    ASSIGN,
    EPS,
    NEITHER,
    TRANSPOSED,
    brought_near_one,
    gemm,
    inf_norm,
    singular_rows,
)
from sheafcoarsen._kernels.hermitian import eigh_lowest, eigvalsh, orthonormalize
from sheafcoarsen._kernels.jit import borrowing_kernel, subkernel
from sheafcoarsen._kernels.modes.local import (
    Blocks,
    assemble,
    cluster_unit,
    delta_kernel,
    loop_norm,
    put_modes,
    stack,
)


class ModesOut(NamedTuple):
    """Output arrays for the modes of all clusters; scores of cluster a start at starts[a].

    On entry ``following`` is inf, ``norms`` is 0 and ``tied`` is False, for clusters of dimension
    0; the other arrays are uninitialized.
    """

    starts: np.ndarray  # (K + 1,)
    scores: np.ndarray  # (sum r_a,)
    following: np.ndarray  # (K,) the first discarded score, inf if none is discarded
    norms: np.ndarray  # (K,) norm(., inf) of the local operators
    tied: np.ndarray  # (K,) whether the cut splits a multiple eigenvalue
    blocks: Blocks


class Balanced(NamedTuple):
    """A copy of a sheaf with entries of about 1, and the units of its local sections."""

    f: SheafArrays
    units: np.ndarray  # (n,) powers of two
    uneven: np.ndarray  # (K,) whether the maps of a cluster had much different sizes


class SpectraOut(NamedTuple):
    """Output arrays for full spectra; the scores of cluster a start at starts[a]."""

    starts: np.ndarray  # (K + 1,)
    scores: np.ndarray  # (sum N_a,)
    norms: np.ndarray  # (K,)


@borrowing_kernel
def local_modes(lo, hi, f, c, left_out, eps, s, out):
    """Compute the lowest modes of clusters lo .. hi, except those with ``left_out`` set."""
    w, z = s.w, s.z
    for a in range(lo, hi):
        if left_out[a]:
            continue
        n, r, at = c.dims[a], out.blocks.ranks[a], out.starts[a]
        unit = cluster_unit(a, f, c)
        assemble(a, f, c, unit, s.map, s.a)
        top = inf_norm(s.a, n, s.sums)
        scale = brought_near_one(s.a, n)
        if scale == 0:  # every vector is an eigenvector, so take the first coordinates
            for j in range(min(r + 1, n)):
                w[j] = 0
                for i in range(n):
                    z[j * n + i] = 1 if i == j else 0
        elif eigh_lowest(n, min(r + 1, n), s, s.reduction) != 0:
            return a
        for j in range(r):
            out.scores[at + j] = (0.0 if w[j] < 0 else w[j]) * scale / unit / unit
        if r < n:
            out.following[a] = (0.0 if w[r] < 0 else w[r]) * scale / unit / unit
            if r > 0:
                out.tied[a] = (w[r] - w[r - 1]) * scale <= math.sqrt(eps) * top
        out.norms[a] = top / unit / unit
        put_modes(a, n, f, c, z, eps, out.blocks)
    return -1


@borrowing_kernel
def local_spectra(lo, hi, f, c, s, out):
    """Compute all eigenvalues of the local operators of clusters lo .. hi."""
    for a in range(lo, hi):
        n, unit = c.dims[a], cluster_unit(a, f, c)
        assemble(a, f, c, unit, s.map, s.a)
        out.norms[a] = inf_norm(s.a, n, s.sums) / unit / unit
        scale = brought_near_one(s.a, n)
        if scale > 0 and eigvalsh(n, s, s.reduction) != 0:
            return a
        for i in range(n):
            value = max(s.w[i], 0.0) * scale / unit / unit if scale > 0 else 0
            out.scores[out.starts[a] + i] = value
    return -1


@borrowing_kernel
def kernel_dims(lo, hi, sheaves, c, rows, eps, s, dims):
    """Write the kernel dimensions of local operators, from singular values, to ``dims``, 0 before.

    ``sheaves`` are ``f``, which is not used, and the ``Balanced`` sheaf. Singular values up to
    max(rows, N_a) eps max(sigma_max, norms of loops) count as zero, so those of a loop whose maps
    cancel do. ``rows`` is -1 for clusters that are left out.
    """
    for a in range(lo, hi):
        n, height = c.dims[a], rows[a]
        if n == 0 or height < 0:
            continue
        stack(a, sheaves[1].f, c, height, s.a)
        if singular_rows(height, n, False, s) != 0:
            return a
        dims[a] = n
        loop = loop_norm(a, sheaves[1].f, c, height, 1.0)
        for j in range(min(height, n)):
            if s.w[j] > max(height, n) * eps * max(s.w[0], loop):
                dims[a] -= 1
    return -1


@subkernel
def largest_residuals(delta, rows, n, z, count, workspace):
    """Return the largest norm(delta z_j) and norm(delta* delta z_j) of the first rows z_j of z.

    ``delta`` is a matrix rows x n.
    """
    s, images, largest, of_squares = workspace.s, workspace.s.a, 0.0, 0.0
    gemm((NEITHER, TRANSPOSED), (rows, count, n), ASSIGN, delta, z, images, s)
    # conjugates of delta* delta z_j, which have the same norms
    gemm((ADJOINT, NEITHER), (count, n, rows), ASSIGN, images, delta, workspace.a, s)
    for j in range(count):
        square, of_square = 0.0, 0.0
        for q in range(rows):
            square += abs(images[q * count + j]) ** 2
        for i in range(n):
            of_square += abs(workspace.a[j * n + i]) ** 2
        largest, of_squares = max(largest, square), max(of_squares, of_square)
    return math.sqrt(largest), math.sqrt(of_squares)


@borrowing_kernel
def kernel_modes(lo, hi, sheaves, c, rows, eps, workspace, outputs):
    """Replace the modes of eigenvalue 0 of clusters lo .. hi by bases of the kernels of delta_a.

    ``sheaves`` are ``f`` and the ``Balanced`` sheaf, from which the kernels are computed;
    ``outputs`` are, for each cluster, the number of retained modes that count as zero, or -1 to
    replace as many as the kernel has dimensions, and the ``ModesOut`` that is changed. ``rows`` are
    the rows of each delta_a, -1 for clusters that are left out, and become -1 unless LAPACK failed,
    the kernel is zero or it has another dimension. Modes are not replaced by less accurate ones, as
    those of sections that grow at different rates may be.
    """
    (f, balanced), (zeros, out) = sheaves, outputs
    ranks, indptr, data = out.blocks.ranks, out.blocks.indptr, out.blocks.data
    basis, old, delta, z = workspace.basis, workspace.other, workspace.delta, workspace.s.z
    for a in range(lo, hi):
        if rows[a] < 0:
            continue
        n, r = c.dims[a], ranks[a]
        dim, info = delta_kernel(a, balanced.f, c, False, rows[a], eps, workspace)
        first = max(dim - r, 0)  # the last rows of the basis have the smallest singular values
        dim -= first
        if info != 0 or dim == 0 or (zeros[a] >= 0 and dim != zeros[a]):
            continue
        for v in c.members[c.member_ptr[a] : c.member_ptr[a + 1]]:
            for i in range(f.vertex_dims[v]):
                row, at = f.vertex_offsets[v] + i, c.local_offsets[v] + i
                for j in range(dim):
                    z[j * n + at] = basis[(first + j) * n + at] * balanced.units[v]
                for j in range(r):
                    old[j * n + at] = data[indptr[row] + j]
        for i in range(dim * n, r * n):
            z[i] = old[i]
        orthonormalize(z, n, 0, r)
        unit, height = cluster_unit(a, f, c), rows[a]
        stack(a, f, c, height, delta)
        for i in range(height * n):
            delta[i] *= unit
        norm = math.sqrt(out.norms[a]) * unit
        level = max(height, n) * EPS * norm
        before, before_squares = largest_residuals(delta, height, n, old, dim, workspace)
        after, after_squares = largest_residuals(delta, height, n, z, dim, workspace)
        if after <= max(before, level) and after_squares <= max(before_squares, level * norm):
            put_modes(a, n, f, c, z, eps, out.blocks)
        rows[a] = -1
    return -1


@borrowing_kernel
def singular_modes(lo, hi, sheaves, c, rows, eps, s, out):
    """Compute the lowest modes of clusters lo .. hi as right singular vectors of ``stack``.

    ``sheaves`` are ``f`` and the ``Balanced`` sheaf. ``rows`` is -1 for clusters that are left out.
    """
    f, scores = sheaves[0], out.scores
    for a in range(lo, hi):
        n, r, at = c.dims[a], out.blocks.ranks[a], out.starts[a]
        if n == 0 or rows[a] < 0:
            continue
        unit = cluster_unit(a, f, c)
        assemble(a, f, c, unit, s.map, s.a)
        top = inf_norm(s.a, n, s.sums)
        out.norms[a] = top / unit / unit
        stack(a, f, c, rows[a], s.a)
        for i in range(rows[a] * n):
            s.a[i] *= unit
        height = np.int64(0 if top == 0 else rows[a])
        n_values = min(height, n)
        if singular_rows(height, n, True, s) != 0:
            return a
        for j in range(n // 2):  # reverse to ascending order: the null space comes first
            for i in range(n):
                entry = s.z[(n - 1 - j) * n + i]
                s.z[(n - 1 - j) * n + i] = s.z[j * n + i]
                s.z[j * n + i] = entry
        for j in range(min(r + 1, n)):
            sigma = s.w[n - 1 - j] / unit if n - 1 - j < n_values else 0.0
            if j < r:
                scores[at + j] = sigma * sigma
            else:
                out.following[a] = sigma * sigma
        if 0 < r < n:
            gap = out.following[a] - scores[at + r - 1]
            out.tied[a] = gap <= math.sqrt(eps) * out.norms[a]
        put_modes(a, n, f, c, s.z, eps, out.blocks)
    return -1
