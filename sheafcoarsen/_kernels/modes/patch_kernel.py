"""The kernel of a patch, decided on singular values."""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import (
    EPS,
    SEED,
    Workspace,
    drawn,
    following,
    normalized,
    potrf,
    potrs,
    singular_rows,
)
from sheafcoarsen._kernels.jit import pasted, subkernel
from sheafcoarsen._kernels.modes.local import largest_loop_entry, stack
from sheafcoarsen._kernels.modes.patches import PatchIndex

FIRST_BLOCK = 4
"""Vectors with which the search for a kernel begins; twice as many wherever they do not suffice."""


APART = 100.0
"""Inverse iteration parts eigenvalues that are so many shifts from zero from a kernel."""


class PatchWorkspace(NamedTuple):
    """Workspace for the largest patch of a range."""

    t: PatchIndex
    s: Workspace  # LAPACK's, for the clusters
    a: np.ndarray  # (N N,) L_T, then A and its factor
    spare: np.ndarray  # (N N,) a factor for the search for a kernel
    x: np.ndarray  # (n N,) X, then Y, as rows
    m: np.ndarray  # (n 2 N,) [X_b; target Y], its columns as rows
    map: np.ndarray  # both maps of an edge


@subkernel
def apply_delta(f, t, unit, x, y):
    """Write y = unit delta_T x for the rows of x, (count, N); y (rows, count)."""
    edges, vertex_dims, edge_dims = f.edges, f.vertex_dims, f.edge_dims
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    inner, local = t.internal_edges, t.local_offsets
    row, count = 0, x.shape[0]
    y[:] = 0
    for k in range(t.internal_ptr[1]):
        e = inner[k]
        u, v = edges[e, 0], edges[e, 1]
        du, dv, at, to = vertex_dims[u], vertex_dims[v], local[u], local[v]
        for q in range(edge_dims[e]):
            tail, head = tail_offsets[e] + q * du, head_offsets[e] + q * dv
            for j in range(count):
                total = y[row, j]
                if u == v:
                    for i in range(du):
                        total += (tail_data[tail + i] - head_data[head + i]) * unit * x[j, at + i]
                else:
                    for i in range(du):
                        total += tail_data[tail + i] * unit * x[j, at + i]
                    for i in range(dv):
                        total -= head_data[head + i] * unit * x[j, to + i]
                y[row, j] = total
            row += 1


@subkernel
def apply_adjoint(f, t, unit, y, x):
    """Write x = the conjugate of unit delta_T* y, as rows (count, N), for y (rows, count)."""
    edges, vertex_dims, edge_dims = f.edges, f.vertex_dims, f.edge_dims
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    inner, local = t.internal_edges, t.local_offsets
    row, count = 0, x.shape[0]
    x[:] = 0
    for k in range(t.internal_ptr[1]):
        e = inner[k]
        u, v = edges[e, 0], edges[e, 1]
        du, dv, at, to = vertex_dims[u], vertex_dims[v], local[u], local[v]
        for q in range(edge_dims[e]):
            tail, head = tail_offsets[e] + q * du, head_offsets[e] + q * dv
            for j in range(count):
                z = np.conj(y[row, j])
                if u == v:
                    for i in range(du):
                        x[j, at + i] += (tail_data[tail + i] - head_data[head + i]) * unit * z
                else:
                    for i in range(du):
                        x[j, at + i] += tail_data[tail + i] * unit * z
                    for i in range(dv):
                        x[j, to + i] -= head_data[head + i] * unit * z
            row += 1


@subkernel
def orthonormalize(x):
    """Make the rows of x orthonormal by Gram-Schmidt, twice."""
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
            size = 0.0
            for k in range(row.size):
                size += float(abs(row[k])) ** 2
            size = math.sqrt(size)
            if size == 0:
                break
            for k in range(row.size):
                row[k] /= size


@subkernel
def right_vectors(rows, columns, matrix, s):
    """Singular values, descending, and all right singular vectors, as rows; and LAPACK's info.

    The matrix is row-major and is destroyed.
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
    """Orthonormal basis of ker delta_T as rows, (dim, N), by all singular values; and the info."""
    t, s = workspace.t, workspace.s
    n = t.dims[0]
    matrix = np.empty(max(rows * n, 1), workspace.a.dtype)
    stack(0, f, t, rows, matrix)
    scale = normalized(matrix, rows * n)
    w, z, info = right_vectors(rows, n, matrix, s)
    size = w[0]
    if scale > 0:
        size = max(size, largest_loop_entry(0, f, t) / scale)
    rank = 0
    while rank < min(rows, n) and w[rank] > tolerance * size:
        rank += 1
    return z[rank:], info


@subkernel
def combinations(z, begin, end, x, n):
    """Rows begin .. end of z, times the first n columns of x."""
    out = np.zeros((end - begin, n), x.dtype)
    for j in range(begin, end):
        for q in range(x.shape[0]):
            factor = z[j, q]
            for i in range(n):
                out[j - begin, i] += factor * x[q, i]
    return out


@subkernel
def shifted_copy(a, n, shift, out):
    """Write A + shift I, for n x n matrices."""
    for i in range(n * n):
        out[i] = a[i]
    for i in range(n):
        out[i * n + i] += shift


@pasted
def patch_kernel(f, rows, unit, largest, top, eps, workspace):
    """Orthonormal basis of ker delta_T as rows, (dim, N), by singular values; and LAPACK's info.

    A Cholesky factor of L_T - mu I proves that there is none. Else inverse iteration on L_T + mu I
    finds the space of the smallest singular values, refined through delta_T itself, which resolves
    them to eps norm(delta_T) and not to its square root. ``largest``: largest entry of unit^2 L_T;
    ``top``: its norm(., inf).
    """
    t, s = workspace.t, workspace.s
    n = t.dims[0]
    a, spare = workspace.a, workspace.spare
    tolerance = max(rows, n) * eps
    size = max(math.sqrt(top), largest_loop_entry(0, f, t) * unit)
    mu = max(64 * n * EPS * largest, 4 * tolerance * tolerance * size * size)
    none = np.zeros((0, n), a.dtype)
    shifted_copy(a, n, -mu, spare)
    if potrf(spare, n, s) == 0:
        return none, 0
    count = FIRST_BLOCK
    if 3 * count <= n:
        shifted_copy(a, n, mu, spare)
        if potrf(spare, n, s) != 0:
            count = n
    while 3 * count <= n:
        x = np.empty((count, n), a.dtype)
        flat = x.reshape(count * n)
        state = np.uint64(SEED)
        for i in range(count * n):
            state = following(state)
            flat[i] = drawn(state)
        for _ in range(3):
            potrs(spare, n, flat, count, s)
            orthonormalize(x)
        for i in range(count * n):  # LAPACK saw the conjugate
            flat[i] = np.conj(flat[i])
        y = np.empty((rows, count), a.dtype)
        apply_delta(f, t, unit, x, y)
        w, z, info = right_vectors(rows, count, y.reshape(rows * count), s)
        if info != 0:
            return none, info
        near = 0
        while near < count and w[count - 1 - near] ** 2 <= APART * mu:
            near += 1
        if near == 0:
            return none, 0
        if near == count:
            count *= 2
            continue
        x = combinations(z, count - near, count, x, n)
        beyond = w[count - 1 - near] ** 2
        y, step = np.empty((rows, near), a.dtype), np.empty((near, n), a.dtype)
        for _ in range(max(2, math.ceil(math.log(EPS) / math.log(mu / beyond)))):
            apply_delta(f, t, unit, x, y)
            apply_adjoint(f, t, unit, y, step)
            potrs(spare, n, step.reshape(near * n), near, s)
            for j in range(near):
                for i in range(n):
                    x[j, i] -= np.conj(step[j, i])
            orthonormalize(x)
        apply_delta(f, t, unit, x, y)
        w, z, info = right_vectors(rows, near, y.reshape(rows * near), s)
        zeros = 0
        while zeros < near and w[near - 1 - zeros] <= tolerance * size:
            zeros += 1
        x = combinations(z, near - zeros, near, x, n)
        orthonormalize(x)
        return x, info
    return kernel_by_svd(f, rows, tolerance, workspace)


@subkernel
def restriction(x, n, eps, s):
    """Orthonormal basis, as rows (dim, n), of the rows of x on their first n coordinates.

    Returns LAPACK's info too.
    """
    count = x.shape[0]
    matrix = np.empty(n * count, x.dtype)
    for j in range(count):
        for i in range(n):
            matrix[i * count + j] = x[j, i]
    w, z, info = right_vectors(n, count, matrix, s)
    found = 0
    while found < min(n, count) and w[found] > 4 * eps * x.shape[1]:
        found += 1
    out = combinations(z, 0, found, x, n)
    orthonormalize(out)
    return out, info
