"""Oversampled modes, cluster by cluster: patches, the kernel of a patch, and the responses of the cluster to sources in the patch.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``, ``p`` the ``Patches``, ``s`` a LAPACK ``Workspace``, ``room`` a ``PatchRoom``. A patch is
T, its cluster is C; N and n are their dimensions, and C has the first n coordinates of T. All in double precision.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.hermitian import eigh_lowest, eigvalsh
from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.lapack import Workspace, gram, potrf, potrs, singular_rows
from sheafcoarsen._kernels.modes import (
    assemble,
    cluster_unit,
    fix_phase,
    inf_norm,
    normalized,
    power_of_two,
    stack,
    store,
)

EPS = 2.0**-52

SHIFT = 0.1
"""A = L_T + SHIFT target I: positive definite, and the responses hardly know of it."""

BORDER = 1e-12
"""A coordinate is touched by an edge that leaves T where diag(L) exceeds diag(L_T) by so much of the largest diag(L_T)."""

FIRST_BLOCK = 4
"""Vectors with which the search for a kernel begins; twice as many wherever they do not suffice."""

APART = 100.0
"""Inverse iteration parts eigenvalues that are so many shifts from zero from a kernel."""


class Patches(NamedTuple):
    """The patch of every cluster, and what is needed to find its edges.

    members, starts, counts : vertices of patch a: ``members[starts[a] : starts[a] + counts[a]]``, first those of the cluster, ascending
    dims : (K,) dimension of C^0 on the patch
    low_ptr, low_edges : edges by their end of fewer edges, so that no list is long
    diagonal : (dim_c0,) diag(L)
    """

    members: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    dims: np.ndarray
    low_ptr: np.ndarray
    low_edges: np.ndarray
    diagonal: np.ndarray


class PatchIndex(NamedTuple):
    """One patch, as ``Clusters`` would hold it if it were the only cluster."""

    dims: np.ndarray  # (1,)
    internal_edges: np.ndarray
    internal_ptr: np.ndarray  # (2,)
    local_offsets: np.ndarray  # (n_vertices,) -1 outside


class PatchRoom(NamedTuple):
    """Room for the largest patch of a range."""

    t: PatchIndex
    a: np.ndarray  # (N N,) L_T, then A and its factor
    spare: np.ndarray  # (N N,) a factor for the search for a kernel
    x: np.ndarray  # (n N,) X, then Y, as rows
    m: np.ndarray  # (n 2 N,) [X_b; target Y], its columns as rows
    map: np.ndarray  # both maps of an edge
    no_edges: np.ndarray  # (2,) zeros: the patch has no half-edges


@kernel
def diagonal(f, out):
    """Write diag(L)."""
    out[:] = 0
    for e in range(f.edges.shape[0]):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        for q in range(f.edge_dims[e]):
            tail, head = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            if u == v:
                for i in range(du):
                    out[f.vertex_offsets[u] + i] += float(abs(f.tail_data[tail + i] - f.head_data[head + i])) ** 2
                continue
            for i in range(du):
                out[f.vertex_offsets[u] + i] += float(abs(f.tail_data[tail + i])) ** 2
            for i in range(dv):
                out[f.vertex_offsets[v] + i] += float(abs(f.head_data[head + i])) ** 2


@kernel
def coarse_number(size):
    """Round to 20 bits, so that equal strengths remain equal where rounding told them apart."""
    if size == 0:
        return 0.0
    fraction, power = math.frexp(size)
    return math.ldexp(math.floor(fraction * 2.0**20 + 0.5), power - 20)


@kernel
def grow_patches(lo, hi, f, c, starts, ends, weights, rings, members, member_starts, counts, dims):
    """Fill the patches of clusters lo .. hi: ring after ring the neighbours most strongly coupled first, while dim T <= 2 dim C."""
    n_vertices = f.vertex_dims.size
    seen = np.full(n_vertices, -1, np.int64)
    strength = np.zeros(n_vertices)
    candidates = np.empty(n_vertices, np.int64)
    for a in range(lo, hi):
        begin = member_starts[a]
        count = 0
        for k in range(c.member_ptr[a], c.member_ptr[a + 1]):
            members[begin + count] = c.members[k]
            seen[c.members[k]] = a
            count += 1
        dims[a] = c.dims[a]
        first = 0
        for _ in range(rings):
            found = 0
            for k in range(first, count):
                v = members[begin + k]
                for i in range(starts[v], starts[v + 1]):
                    u = ends[i]
                    if seen[u] == a or f.vertex_dims[u] == 0:
                        continue
                    if strength[u] == 0:  # a coupling of zero may come more than once
                        candidates[found] = u
                        found += 1
                        strength[u] = 5e-324
                    strength[u] += weights[i]
            if found == 0:
                break
            first = count
            ring = candidates[:found]
            ring.sort()
            keys = np.empty(found)
            for k in range(found):
                keys[k] = -coarse_number(strength[ring[k]])
                strength[ring[k]] = 0
            cut = False
            for k in np.argsort(keys, kind="mergesort"):
                u = ring[k]
                if dims[a] + f.vertex_dims[u] > 2 * c.dims[a]:
                    cut = True
                    continue
                members[begin + count] = u
                seen[u] = a
                dims[a] += f.vertex_dims[u]
                count += 1
            if cut:
                break
        counts[a] = count


@kernel
def enter(a, f, p, t):
    """Number the coordinates of patch a and list its edges; return how many rows delta_T has."""
    at = 0
    begin, end = p.starts[a], p.starts[a] + p.counts[a]
    for k in range(begin, end):
        v = p.members[k]
        t.local_offsets[v] = at
        at += f.vertex_dims[v]
    count, rows = 0, 0
    for k in range(begin, end):
        v = p.members[k]
        for i in range(p.low_ptr[v], p.low_ptr[v + 1]):
            e = p.low_edges[i]
            if t.local_offsets[f.edges[e, 0]] >= 0 and t.local_offsets[f.edges[e, 1]] >= 0:
                t.internal_edges[count] = e
                count += 1
                rows += f.edge_dims[e]
    t.dims[0] = at
    t.internal_ptr[1] = count
    return rows


@kernel
def leave(a, p, t):
    """Forget patch a."""
    for k in range(p.starts[a], p.starts[a] + p.counts[a]):
        t.local_offsets[p.members[k]] = -1


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
                        total += (f.tail_data[tail + i] - f.head_data[head + i]) * unit * x[j, at + i]
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
    """Singular values, descending, and all right singular vectors, as rows, of a row-major matrix, which is destroyed; and LAPACK's info."""
    small, large = min(rows, columns), max(rows, columns)
    z, w = np.empty(columns * columns, matrix.dtype), np.zeros(columns)
    work, rwork = np.empty(small * small + 70 * (small + large) + 1024, matrix.dtype), np.empty(5 * small + 1)
    own = Workspace(
        matrix, s.spare, w, z, s.map, s.tau, s.panel, s.p, s.t, work, rwork, s.iwork, s.ints, s.chars
    )  # fmt: skip
    info = singular_rows(rows, columns, True, own)
    return w, z.reshape(columns, columns), info


@kernel
def kernel_by_svd(f, t, rows, tolerance, room, s):
    """Orthonormal basis of ker delta_T as rows, (dim, N), by all singular values; and LAPACK's info."""
    n = t.dims[0]
    matrix = np.empty(max(rows * n, 1), room.a.dtype)
    heights = np.full(1, rows)
    stack(0, f, t, room.no_edges, room.no_edges, heights, matrix)
    normalized(matrix, rows * n)
    w, z, info = right_vectors(rows, n, matrix, s)
    rank = 0
    while rank < min(rows, n) and w[rank] > tolerance * w[0]:
        rank += 1
    return z[rank:].copy(), info


@kernel
def patch_kernel(f, t, rows, unit, largest, top, eps, room, s):
    """Orthonormal basis of ker delta_T as rows, (dim, N), decided on singular values of delta_T; and LAPACK's info.

    A Cholesky factor of L_T - mu I proves that there is none. Else inverse iteration on L_T + mu I finds the space of the smallest
    singular values, refined through delta_T itself, which resolves them to eps norm(delta_T) and not to its square root.
    ``largest``: largest entry of unit^2 L_T; ``top``: its norm(., inf).
    """
    n = t.dims[0]
    a, spare = room.a, room.spare
    tolerance = max(rows, n) * eps
    mu = max(64 * n * EPS * largest, 4 * tolerance * tolerance * top)
    none = np.zeros((0, n), a.dtype)
    spare[: n * n] = a[: n * n]
    for i in range(n):
        spare[i * n + i] -= mu
    if potrf(spare, n, s) == 0:
        return none, 0
    count = FIRST_BLOCK
    if 3 * count > n:
        return kernel_by_svd(f, t, rows, tolerance, room, s)
    spare[: n * n] = a[: n * n]
    for i in range(n):
        spare[i * n + i] += mu
    if potrf(spare, n, s) != 0:
        return kernel_by_svd(f, t, rows, tolerance, room, s)
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
        while zeros < near and w[near - 1 - zeros] <= tolerance * math.sqrt(top):
            zeros += 1
        x = np.dot(np.ascontiguousarray(z[near - zeros :]), x)
        orthonormalize(x)
        return x, info
    return kernel_by_svd(f, t, rows, tolerance, room, s)


@kernel
def restricted(x, n, eps, s):
    """Orthonormal basis, as rows (dim, n), of what is left of the rows of x on the first n coordinates; and LAPACK's info."""
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


@kernel
def responses(a, f, p, n, unit, largest, target, kernels, room, s):
    """s.a = -(I - K K*) G (I - K K*) / scale - c K K*, lower triangle, entries near 1; return the scale and LAPACK's info.

    With c above norm(G) / scale its lowest eigenvectors are K, then the leading ones of G in the complement.

    G = X_b* X_b + target^2 Y* Y with A = L_T + SHIFT target I, X = A^{-1} P_C*, Y = A^{-1} X, b the coordinates that an edge touches
    which leaves T. ``target`` comes in units of the scaled maps.
    """
    N, k = room.t.dims[0], kernels.shape[0]
    A, x, m = room.a, room.x, room.m
    border = np.empty(N, np.int64)
    nb, at = 0, 0
    for q in range(p.starts[a], p.starts[a] + p.counts[a]):
        v = p.members[q]
        for i in range(f.vertex_dims[v]):
            whole = p.diagonal[f.vertex_offsets[v] + i] * unit * unit
            if whole - A[at * N + at].real > BORDER * largest:
                border[nb] = at
                nb += 1
            at += 1
    for i in range(N):
        A[i * N + i] += SHIFT * target
    info = potrf(A, N, s)
    if info != 0:
        return 0.0, info
    x[: n * N] = 0
    for j in range(n):
        x[j * N + j] = 1
    potrs(A, N, x, n, s)
    height = nb + N
    for j in range(n):
        for i in range(nb):
            m[j * height + i] = x[j * N + border[i]]
    potrs(A, N, x, n, s)
    for j in range(n):
        for i in range(N):
            m[j * height + nb + i] = target * x[j * N + i]
    if (
        k > 0
    ):  # M <- M (I - K K*), where m holds the conjugate of M; twice, since M K may be far larger than what is left
        M, columns = m[: n * height].reshape(n, height), np.ascontiguousarray(kernels.T)
        for _ in range(2):
            M -= np.dot(columns, np.dot(np.conj(kernels), M))
    gram(m, height, n, s.a, s)
    size = 0.0
    for i in range(n):
        size = max(size, s.a[i * n + i].real)
    scale = power_of_two(size)
    for i in range(n):
        for j in range(i + 1):
            s.a[i * n + j] /= -scale
    apart = inf_norm(s.a, n) + 1
    for q in range(k):
        row = kernels[q]
        for i in range(n):
            for j in range(i + 1):
                s.a[i * n + j] -= apart * row[i] * np.conj(row[j])
    return scale, 0


@kernel
def prepare(a, f, c, p, target, eps, room, s):
    """Leave in s.a what ``responses`` leaves for cluster a.

    Returns the dimension of K_C, the scale of G, the unit of the maps, norm(L_T, inf) and LAPACK's info.
    """
    t, n = room.t, c.dims[a]
    rows = enter(a, f, p, t)
    N = t.dims[0]
    unit = cluster_unit(0, f, t, room.no_edges, room.no_edges)
    assemble(0, f, t, room.no_edges, room.no_edges, unit, room.map, room.a)
    largest = 0.0
    for i in range(N):
        largest = max(largest, room.a[i * N + i].real)
    if largest == 0:  # every vector is a section, and the first coordinates are as good as any
        leave(a, p, t)
        s.a[: n * n] = 0
        for i in range(n):
            s.a[i * n + i] = -1
        return n, 1.0, unit, 0.0, 0
    top = inf_norm(room.a, N)
    wanted = min(max(target * unit * unit, 40 * N * EPS * largest), 1e8 * largest)
    scale = 1.0
    kernels, info = patch_kernel(f, t, rows, unit, largest, top, eps, room, s)
    if info == 0 and kernels.shape[0] > 0:
        kernels, info = restricted(kernels, n, eps, s)
    if info == 0:
        scale, info = responses(a, f, p, n, unit, largest, wanted, np.ascontiguousarray(kernels[:, :n]), room, s)
    leave(a, p, t)
    return kernels.shape[0], scale, unit, top / unit / unit, info


@kernel
def score(j, k, w, n, scale, unit, least):
    """Score number j: 0 on K_C, of dimension k, else (eigenvalue of G)^{-1/2}, as far as rounding lets G tell, in least .. 1 / least."""
    if j < k:
        return 0.0
    return min(max(1 / math.sqrt(max(-w[j], -n * EPS * w[k]) * scale) / unit / unit, least), 1 / least)


@kernel
def oversampled_spectra(
    lo, hi, f, c, p, target, eps, least, room, s, value_starts, values, kept_starts, kept, kernel_dims, numbers
):
    """All scores of clusters lo .. hi and the dimensions of K_C; returns -1, or the first cluster at which LAPACK failed.

    What ``prepare`` finds is kept in ``kept`` and ``numbers`` (scale, unit, norm), unless they are empty.
    """
    for a in range(lo, hi):
        n = c.dims[a]
        kernel_dims[a] = 0
        if n == 0:
            continue
        k, scale, unit, norm, info = prepare(a, f, c, p, target, eps, room, s)
        if info != 0:
            return a
        kernel_dims[a] = k
        if kept.size > 0:
            kept[kept_starts[a] : kept_starts[a + 1]] = s.a[: n * n]
            numbers[a, 0], numbers[a, 1], numbers[a, 2] = scale, unit, norm
        if eigvalsh(n, EPS, s) != 0:
            return a
        for j in range(n):
            values[value_starts[a] + j] = score(j, k, s.w, n, scale, unit, least)
    return -1


@kernel
def oversampled_modes(
    lo, hi, f, c, p, target, eps, least, room, s, kept_starts, kept, kernel_dims, numbers,
    ranks, indptr, data, value_starts, values, next_values, norms, tied,
):  # fmt: skip
    """The first modes of clusters lo .. hi; outputs and result as of ``local_modes``; what ``oversampled_spectra`` kept is not repeated."""
    sqrt_eps = math.sqrt(eps)
    for a in range(lo, hi):
        n, r = c.dims[a], ranks[a]
        next_values[a] = np.inf
        norms[a] = 0
        tied[a] = False
        if n == 0:
            continue
        if kept.size > 0:
            k, scale, unit, norms[a] = kernel_dims[a], numbers[a, 0], numbers[a, 1], numbers[a, 2]
            s.a[: n * n] = kept[kept_starts[a] : kept_starts[a + 1]]
        else:
            k, scale, unit, norms[a], info = prepare(a, f, c, p, target, eps, room, s)
            if info != 0:
                return a
        if (
            eigh_lowest(n, max(min(max(r + 1, k + 1), n), 1), EPS, s) != 0
        ):  # the leading eigenvalue of G sets the level of rounding
            return a
        for j in range(r):
            values[value_starts[a] + j] = score(j, k, s.w, n, scale, unit, least)
            fix_phase(s.z, j * n, n, sqrt_eps)
        if r < n:
            next_values[a] = score(r, k, s.w, n, scale, unit, least)
            tied[a] = r > 0 and next_values[a] - values[value_starts[a] + r - 1] <= sqrt_eps * next_values[a]
        store(a, r, f, c, s.z, n, indptr, data)
    return -1
