"""Kernel of delta_T on a patch T, with ranks decided by singular values."""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import (
    EPS,
    Workspace,
    fill_random,
    normalized,
    potrf,
    potrs,
    singular_rows,
)
from sheafcoarsen._kernels.jit import numba_inlined, subkernel
from sheafcoarsen._kernels.modes.local import largest_loop_entry, stack
from sheafcoarsen._kernels.modes.patches import PatchIndex


class PatchWorkspace(NamedTuple):
    """Workspace for all patches of a range, sized for the largest one."""

    t: PatchIndex
    s: Workspace  # for dense problems of clusters
    a: np.ndarray  # (N N,) L_T, then A and its factor
    spare: np.ndarray  # (N N,) Cholesky factor of the shifted L_T
    x: np.ndarray  # (n N,) X, then Y, as rows
    m: np.ndarray  # (n 2 N,) columns of [X_b; target Y] as rows
    map: np.ndarray  # both maps of an edge


@subkernel
def scaled_delta(f, t, rows, unit, out):
    """Write unit delta_T to ``out`` and return it as a matrix, (rows, N)."""
    stack(0, f, t, rows, out)
    for i in range(out.size):
        out[i] *= unit
    return out.reshape(rows, t.dims[0])


@subkernel
def orthonormalize(x):
    """Orthonormalize the rows of x by Gram-Schmidt twice."""
    for j in range(x.shape[0]):
        row = x[j]
        for _ in range(2):
            largest = 0.0
            for k in range(row.size):
                largest = max(largest, float(abs(row[k])))
            if largest == 0:
                break
            for k in range(row.size):
                row[k] /= largest
            for i in range(j):
                other = x[i]
                inner = row[0] * 0
                for k in range(row.size):
                    inner += np.conj(other[k]) * row[k]
                for k in range(row.size):
                    row[k] -= inner * other[k]
            norm = 0.0
            for k in range(row.size):
                norm += float(abs(row[k])) ** 2
            norm = math.sqrt(norm)
            if norm == 0:
                break
            for k in range(row.size):
                row[k] /= norm


@subkernel
def right_vectors(rows, columns, matrix, s):
    """Return singular values, descending, all right singular vectors as rows, and LAPACK's info.

    The matrix is row-major and is overwritten.
    """
    small, large = min(rows, columns), max(rows, columns)
    z, w = np.empty(columns * columns, matrix.dtype), np.zeros(columns)
    work, rwork = (
        np.empty(small * small + 70 * (small + large) + 1024, matrix.dtype),
        np.empty(5 * small + 1),
    )
    own = Workspace(
        matrix, s.spare, w, z, s.map, s.reduction, work, rwork, s.iwork, s.ints, s.chars, s.sums
    )
    info = singular_rows(rows, columns, True, own)
    return w, z.reshape(columns, columns), info


@subkernel
def kernel_by_svd(f, rows, tolerance, workspace):
    """Return ker delta_T as in ``patch_kernel``, from a full singular value decomposition."""
    t, s = workspace.t, workspace.s
    n = t.dims[0]
    matrix = np.empty(max(rows * n, 1), workspace.a.dtype)
    stack(0, f, t, rows, matrix)
    scale = normalized(matrix, rows * n)
    w, z, info = right_vectors(rows, n, matrix, s)
    norm = w[0]
    if scale > 0:
        norm = max(norm, largest_loop_entry(0, f, t) / scale)
    rank = 0
    while rank < min(rows, n) and w[rank] > tolerance * norm:
        rank += 1
    return z[rank:], info


@subkernel
def combinations(z, begin, end, x, n):
    """Return rows begin .. end of z times the first n columns of x."""
    out = np.zeros((end - begin, n), x.dtype)
    for j in range(begin, end):
        for q in range(x.shape[0]):
            factor = z[j, q]
            for i in range(n):
                out[j - begin, i] += factor * x[q, i]
    return out


@subkernel
def shifted_copy(a, n, shift, out):
    """Write A + shift I for an n x n matrix A."""
    for i in range(n * n):
        out[i] = a[i]
    for i in range(n):
        out[i * n + i] += shift


@numba_inlined
def patch_kernel(f, rows, unit, largest, top, eps, workspace):
    """Return an orthonormal basis of ker delta_T as rows, (dim, N), and LAPACK's info.

    A Cholesky factorization of L_T - mu I proves that the kernel is zero. Otherwise inverse
    iteration with L_T + mu I computes the space of the smallest singular values. It is refined by
    products with delta_T, which resolve singular values to eps norm(delta_T) instead of sqrt(eps)
    norm(delta_T). ``largest`` is the largest entry of unit^2 L_T, ``top`` its norm(., inf).
    """
    t, s = workspace.t, workspace.s
    n = t.dims[0]
    a, spare = workspace.a, workspace.spare
    tolerance = max(rows, n) * eps
    norm = max(math.sqrt(top), largest_loop_entry(0, f, t) * unit)
    mu = max(64 * n * EPS * largest, 4 * tolerance * tolerance * norm * norm)
    none = np.zeros((0, n), a.dtype)
    shifted_copy(a, n, -mu, spare)
    if potrf(spare, n, s) == 0:
        return none, 0
    count = 4  # number of start vectors, doubled while all of them converge to the kernel
    if 3 * count <= n:
        shifted_copy(a, n, mu, spare)
        if potrf(spare, n, s) != 0:
            count = n
    delta = scaled_delta(f, t, rows, unit, np.empty(rows * n, a.dtype))
    while 3 * count <= n:
        x = np.empty((count, n), a.dtype)
        flat = x.reshape(count * n)
        fill_random(flat, count * n, 0)
        for _ in range(3):
            potrs(spare, n, flat, count, s)
            orthonormalize(x)
        for i in range(count * n):  # conjugate back: LAPACK read the conjugate of L_T
            flat[i] = np.conj(flat[i])
        w, z, info = right_vectors(rows, count, np.dot(delta, x.T).reshape(rows * count), s)
        if info != 0:
            return none, info
        n_small = 0  # number of vectors to refine; the others are far from the kernel
        while n_small < count and w[count - 1 - n_small] ** 2 <= 100 * mu:
            n_small += 1
        if n_small == 0:
            return none, 0
        if n_small == count:
            count *= 2
            continue
        x = combinations(z, count - n_small, count, x, n)
        next_square = w[count - 1 - n_small] ** 2
        for _ in range(max(2, math.ceil(math.log(EPS) / math.log(mu / next_square)))):
            step = np.dot(np.conj(np.dot(delta, x.T)).T, delta)
            potrs(spare, n, step.reshape(n_small * n), n_small, s)
            for j in range(n_small):
                for i in range(n):
                    x[j, i] -= np.conj(step[j, i])
            orthonormalize(x)
        w, z, info = right_vectors(rows, n_small, np.dot(delta, x.T).reshape(rows * n_small), s)
        zeros = 0
        while zeros < n_small and w[n_small - 1 - zeros] <= tolerance * norm:
            zeros += 1
        x = combinations(z, n_small - zeros, n_small, x, n)
        orthonormalize(x)
        return x, info
    return kernel_by_svd(f, rows, tolerance, workspace)


@subkernel
def restriction(x, n, eps, s):
    """Return an orthonormal basis of the span of the first n columns of x, and LAPACK's info.

    The basis vectors are rows, (dim, n).
    """
    count = x.shape[0]
    matrix = np.empty(n * count, x.dtype)
    for j in range(count):
        for i in range(n):
            matrix[i * count + j] = x[j, i]
    w, z, info = right_vectors(n, count, matrix, s)
    rank = 0
    while rank < min(n, count) and w[rank] > 4 * eps * x.shape[1]:
        rank += 1
    out = combinations(z, 0, rank, x, n)
    orthonormalize(out)
    return out, info
