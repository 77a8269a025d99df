"""The kernel of a patch, decided on singular values."""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import Workspace, normalized, potrf, potrs, singular_rows
from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.modes.local import largest_loop_entry, stack
from sheafcoarsen._kernels.modes.patches import PatchIndex

EPS = 2.0**-52


FIRST_BLOCK = 4
"""Vectors with which the search for a kernel begins; twice as many wherever they do not suffice."""


APART = 100.0
"""Inverse iteration parts eigenvalues that are so many shifts from zero from a kernel."""


class PatchRoom(NamedTuple):
    """Room for the largest patch of a range."""

    t: PatchIndex
    s: Workspace  # LAPACK's, for the clusters
    a: np.ndarray  # (N N,) L_T, then A and its factor
    spare: np.ndarray  # (N N,) a factor for the search for a kernel
    x: np.ndarray  # (n N,) X, then Y, as rows
    m: np.ndarray  # (n 2 N,) [X_b; target Y], its columns as rows
    map: np.ndarray  # both maps of an edge


@kernel
def apply_delta(f, t, unit, x, y):
    """Write y = unit delta_T x for the rows of x, (count, N); y (rows, count)."""
    row, count = 0, x.shape[0]
    y[:] = 0
    for k in range(t.internal_ptr[1]):
        e = t.internal_edges[k]
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv, at, to = f.vertex_dims[u], f.vertex_dims[v], t.local_offsets[u], t.local_offsets[v]
        for q in range(f.edge_dims[e]):
            tail, head = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            for j in range(count):
                total = y[row, j]
                if u == v:
                    for i in range(du):
                        total += (
                            (f.tail_data[tail + i] - f.head_data[head + i]) * unit * x[j, at + i]
                        )
                else:
                    for i in range(du):
                        total += f.tail_data[tail + i] * unit * x[j, at + i]
                    for i in range(dv):
                        total -= f.head_data[head + i] * unit * x[j, to + i]
                y[row, j] = total
            row += 1


@kernel
def apply_adjoint(f, t, unit, y, x):
    """Write x = the conjugate of unit delta_T* y, as rows (count, N), for y (rows, count)."""
    row, count = 0, x.shape[0]
    x[:] = 0
    for k in range(t.internal_ptr[1]):
        e = t.internal_edges[k]
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv, at, to = f.vertex_dims[u], f.vertex_dims[v], t.local_offsets[u], t.local_offsets[v]
        for q in range(f.edge_dims[e]):
            tail, head = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            for j in range(count):
                z = np.conj(y[row, j])
                if u == v:
                    for i in range(du):
                        x[j, at + i] += (f.tail_data[tail + i] - f.head_data[head + i]) * unit * z
                else:
                    for i in range(du):
                        x[j, at + i] += f.tail_data[tail + i] * unit * z
                    for i in range(dv):
                        x[j, to + i] -= f.head_data[head + i] * unit * z
            row += 1


@kernel
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


@kernel
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
        matrix, s.spare, w, z, s.map, s.reduction, work, rwork, s.iwork, s.ints, s.chars
    )
    info = singular_rows(rows, columns, True, own)
    return w, z.reshape(columns, columns), info


@kernel
def kernel_by_svd(f, rows, tolerance, room):
    """Orthonormal basis of ker delta_T as rows, (dim, N), by all singular values; and the info."""
    t, s = room.t, room.s
    n = t.dims[0]
    matrix = np.empty(max(rows * n, 1), room.a.dtype)
    stack(0, f, t, rows, matrix)
    scale = normalized(matrix, rows * n)
    w, z, info = right_vectors(rows, n, matrix, s)
    size = w[0]
    if scale > 0:
        size = max(size, largest_loop_entry(0, f, t) / scale)
    rank = 0
    while rank < min(rows, n) and w[rank] > tolerance * size:
        rank += 1
    return z[rank:].copy(), info


@kernel
def patch_kernel(f, rows, unit, largest, top, eps, room):
    """Orthonormal basis of ker delta_T as rows, (dim, N), by singular values; and LAPACK's info.

    A Cholesky factor of L_T - mu I proves that there is none. Else inverse iteration on L_T + mu I
    finds the space of the smallest singular values, refined through delta_T itself, which resolves
    them to eps norm(delta_T) and not to its square root. ``largest``: largest entry of unit^2 L_T;
    ``top``: its norm(., inf).
    """
    t, s = room.t, room.s
    n = t.dims[0]
    a, spare = room.a, room.spare
    tolerance = max(rows, n) * eps
    size = max(math.sqrt(top), largest_loop_entry(0, f, t) * unit)
    mu = max(64 * n * EPS * largest, 4 * tolerance * tolerance * size * size)
    none = np.zeros((0, n), a.dtype)
    spare[: n * n] = a[: n * n]
    for i in range(n):
        spare[i * n + i] -= mu
    if potrf(spare, n, s) == 0:
        return none, 0
    count = FIRST_BLOCK
    if 3 * count > n:
        return kernel_by_svd(f, rows, tolerance, room)
    spare[: n * n] = a[: n * n]
    for i in range(n):
        spare[i * n + i] += mu
    if potrf(spare, n, s) != 0:
        return kernel_by_svd(f, rows, tolerance, room)
    while 3 * count <= n:
        x = np.empty((count, n), a.dtype)
        flat = x.reshape(count * n)
        seed = np.uint64(88172645463325252)
        for i in range(count * n):  # any start will do: xorshift
            seed ^= seed << np.uint64(13)
            seed ^= seed >> np.uint64(7)
            seed ^= seed << np.uint64(17)
            flat[i] = (seed >> np.uint64(11)) * 2.0**-53 - 0.5
        for _ in range(3):
            potrs(spare, n, flat, count, s)
            orthonormalize(x)
        x = np.conj(x)  # LAPACK saw the conjugate
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
        x = np.dot(np.ascontiguousarray(z[count - near :]), x)
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
        x = np.dot(np.ascontiguousarray(z[near - zeros :]), x)
        orthonormalize(x)
        return x, info
    return kernel_by_svd(f, rows, tolerance, room)


@kernel
def restriction(x, n, eps, s):
    """Orthonormal basis, as rows (dim, n), of the rows of x on their first n coordinates.

    Returns LAPACK's info too.
    """
    count = x.shape[0]
    matrix = np.empty((n, count), x.dtype)
    for j in range(count):
        for i in range(n):
            matrix[i, j] = x[j, i]
    w, z, info = right_vectors(n, count, matrix.copy().reshape(n * count), s)
    found = 0
    while found < min(n, count) and w[found] > 4 * eps * x.shape[1]:
        found += 1
    out = np.dot(np.ascontiguousarray(z[:found]), np.ascontiguousarray(x[:, :n]))
    orthonormalize(out)
    return out, info
