"""Global sections by exact coarsening: bases of the stalks, then what each cluster keeps, peels off and carries on.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``, ``s`` a LAPACK ``Workspace``. Small dense matrices
are row-major in flat arrays, upper triangular factors square.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import potrf, pstrf, singular_rows, triangular_factor
from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.modes import assemble

EPS = 2.0**-52


class Room(NamedTuple):
    """Room beside the LAPACK workspace for clusters of dimension n that keep k; private to a thread.

    stack : rows of a QR on their way; column, row : for its reflections; factor : (k, k); t, z :
    (n, k)
    """

    stack: np.ndarray
    column: np.ndarray
    row: np.ndarray
    factor: np.ndarray
    t: np.ndarray
    z: np.ndarray


@kernel
def pivoted(a, f, c, keep, s):
    """Cholesky of L_a with complete pivoting, stopped where at most keep^2 is left on the diagonal; returns the rank."""
    n = c.dims[a]
    assemble(a, f, c, 1.0, s.map, s.a)
    largest = 0.0
    for i in range(n):
        largest = max(largest, float(abs(s.a[i * n + i])))
    if largest <= keep * keep:
        for i in range(n):
            s.iwork[i] = i + 1
        return 0
    return pstrf(s.a, n, keep * keep, s)


@kernel
def kept_dims(lo, hi, f, c, keep, s, kept):
    """kept[a] = how many coordinates of clusters lo .. hi complete pivoting leaves; none if L_a - keep^2 I is definite."""
    for a in range(lo, hi):
        n = c.dims[a]
        kept[a] = 0
        if n == 0:
            continue
        assemble(a, f, c, 1.0, s.map, s.a)
        for i in range(n):
            s.a[i * n + i] -= keep * keep
        if potrf(s.a, n, s) != 0:
            kept[a] = n - pivoted(a, f, c, keep, s)


@kernel
def solve_pivoted(r, n, s, b, k):
    """Solve L L* x = b in place for the k right-hand sides that are the columns of the row-major b, row i being coordinate p[i]."""
    a, p = s.a, s.iwork
    for i in range(r):
        x = (p[i] - 1) * k
        for j in range(i):
            g, y = a[i * n + j], (p[j] - 1) * k
            for q in range(k):
                b[x + q] -= g * b[y + q]
        g = a[i * n + i].real
        for q in range(k):
            b[x + q] /= g
    adjoint_solve(r, n, s, b, k)


@kernel
def adjoint_solve(r, n, s, b, k):
    """Solve L* x = b in place; otherwise as ``solve_pivoted``."""
    a, p = s.a, s.iwork
    for i in range(r - 1, -1, -1):
        x = (p[i] - 1) * k
        g = a[i * n + i].real
        for q in range(k):
            b[x + q] /= g
        for j in range(i):
            h, y = np.conj(a[i * n + j]), (p[j] - 1) * k
            for q in range(k):
                b[y + q] -= h * b[x + q]


@kernel
def smallest_singular_value(r, n, s, t):
    """Estimate the smallest singular value of the eliminated columns of delta_a by inverse iteration."""
    if r == 0:
        return np.inf
    for i in range(r):
        t[s.iwork[i] - 1] = 0.5 + (i * 40503 % 65536) / 65536
    size = 1.0
    for _ in range(4):
        size = 0.0
        for i in range(r):
            size += float(abs(t[s.iwork[i] - 1])) ** 2
        size = math.sqrt(size)
        for i in range(r):
            t[s.iwork[i] - 1] /= size
        solve_pivoted(r, n, s, t, 1)
        size = 0.0
        for i in range(r):
            size += float(abs(t[s.iwork[i] - 1])) ** 2
        size = math.sqrt(size)
    return 1 / math.sqrt(size)


@kernel
def edge_rows(e, f, local, z, k, q, out, to):
    """out[to ...] = row q of edge e in delta_a Z."""
    u, v = f.edges[e, 0], f.edges[e, 1]
    du, dv = f.vertex_dims[u], f.vertex_dims[v]
    for j in range(k):
        out[to + j] = 0
    for i in range(du):
        g, x = f.tail_data[f.tail_offsets[e] + q * du + i], (local[u] + i) * k
        for j in range(k):
            out[to + j] += g * z[x + j]
    for i in range(dv):
        g, x = f.head_data[f.head_offsets[e] + q * dv + i], (local[v] + i) * k
        for j in range(k):
            out[to + j] -= g * z[x + j]


@kernel
def normal_residual(a, f, c, z, k, y, t):
    """T = delta_a* delta_a Z, without L_a: what is near the kernel keeps its digits."""
    local = c.local_offsets
    for i in range(c.dims[a] * k):
        t[i] = 0
    for p in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = c.internal_edges[p]
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        for q in range(f.edge_dims[e]):
            edge_rows(e, f, local, z, k, q, y, 0)
            for i in range(du):
                g, x = np.conj(f.tail_data[f.tail_offsets[e] + q * du + i]), (local[u] + i) * k
                for j in range(k):
                    t[x + j] += g * y[j]
            for i in range(dv):
                g, x = np.conj(f.head_data[f.head_offsets[e] + q * dv + i]), (local[v] + i) * k
                for j in range(k):
                    t[x + j] -= g * y[j]


@kernel
def gram_factor(z, n, k, g, s):
    """G = the lower Cholesky factor of Z* Z, k x k; returns LAPACK's info."""
    for i in range(k * k):
        g[i] = 0
    for row in range(n):
        for i in range(k):
            x = np.conj(z[row * k + i])
            if x != 0:
                for j in range(i + 1):
                    g[i * k + j] += x * z[row * k + j]
    return potrf(g, k, s)


@kernel
def divided_rows(z, n, k, g, adjoint):
    """Z <- Z G^{-*} for a lower triangular G, or, with ``adjoint``, Z <- Z G^{-1} for an upper triangular one."""
    for row in range(n):
        x = row * k
        for j in range(k):
            y = z[x + j]
            for i in range(j):
                y -= z[x + i] * (g[i * k + j] if adjoint else np.conj(g[j * k + i]))
            z[x + j] = y / g[j * k + j].real if not adjoint else y / g[j * k + j]


@kernel
def pushed(room, filled, k):
    """Make room for one more row of the QR on its way; returns where it goes."""
    if filled == room.column.size or (filled + 1) * k > room.stack.size:
        triangular_factor(room.stack, filled, k, room.column, room.row)
        filled = min(filled, k)
    return filled


@kernel
def kept_space(a, r, f, c, k, s, room):
    """Fill room.z, n x k, with an orthonormal basis of {x : delta_I* delta_a x = 0}, I the r eliminated coordinates.

    ker delta_a lies in that space. x_I = -L_II^{-1} L_IJ x_J, and then two steps of refinement with
    products of delta_a itself bring the error from eps / g^2 down to eps / g, g the smallest
    singular value of delta_I. Returns LAPACK's info.
    """
    n, z, t = c.dims[a], room.z, room.t
    for i in range(r):
        x = (s.iwork[i] - 1) * k
        for j in range(k):
            z[x + j] = -np.conj(s.a[(r + j) * n + i])
    for j in range(k):
        x = (s.iwork[r + j] - 1) * k
        for i in range(k):
            z[x + i] = 1 if i == j else 0
    adjoint_solve(r, n, s, z, k)
    for _ in range(2):
        normal_residual(a, f, c, z, k, room.row, t)
        solve_pivoted(r, n, s, t, k)
        for i in range(r):
            x = (s.iwork[i] - 1) * k
            for j in range(k):
                z[x + j] -= t[x + j]
    for _ in range(2):
        info = gram_factor(z, n, k, s.spare, s)
        if info != 0:
            return info
        divided_rows(z, n, k, s.spare, False)
    return 0


@kernel
def reduced(
    lo, hi, f, c, crossing_ptr, crossing, keep, eps, kept, s, room,
    z_starts, z, loop_starts, loops, peeled, loop_rows, dropped, zeros,
):  # fmt: skip
    """What clusters lo .. hi keep: the columns of z, N_a x kept[a], last the peeled[a] ones that are global sections of their own.

    loops[loop_starts[a] ...]: the factor of what delta_a makes of the others, loop_rows[a] rows,
    none where it is rounding. dropped[a]: the smallest singular value of delta_a that is left out,
    if anything is kept; zeros[a]: the largest that was taken for zero in peeling. Returns -1, or
    the first cluster at which LAPACK failed.
    """
    local, vectors = c.local_offsets, s.z
    for a in range(lo, hi):
        n, k = c.dims[a], kept[a]
        peeled[a], loop_rows[a], dropped[a], zeros[a] = 0, 0, np.inf, 0.0
        if k == 0:
            continue
        r = pivoted(a, f, c, keep, s)
        dropped[a] = smallest_singular_value(r, n, s, room.t)
        if kept_space(a, r, f, c, k, s, room) != 0:
            return a
        m, filled = room.stack, 0
        for p in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
            e = c.internal_edges[p]
            for q in range(f.edge_dims[e]):
                filled = pushed(room, filled, k)
                edge_rows(e, f, local, room.z, k, q, m, filled * k)
                filled += 1
        triangular_factor(m, filled, k, room.column, room.row)
        filled = min(filled, k)
        size = 0.0
        for i in range(filled * k):
            room.factor[i] = m[i]
            size += float(abs(m[i])) ** 2
        if math.sqrt(size) > 50 * max(
            eps, n * EPS
        ):  # errors of single precision are in the maps alone
            loop_rows[a] = filled
            size = 0.0
        else:
            filled = 0
        for p in range(crossing_ptr[a], crossing_ptr[a + 1]):
            e, end = crossing[p] >> 1, crossing[p] & 1
            v = f.edges[e, end]
            d = f.vertex_dims[v]
            data = f.tail_data if end == 0 else f.head_data
            begin = f.tail_offsets[e] if end == 0 else f.head_offsets[e]
            for q in range(f.edge_dims[e]):
                filled = pushed(room, filled, k)
                for j in range(k):
                    m[filled * k + j] = 0
                for i in range(d):
                    g, x = data[begin + q * d + i], (local[v] + i) * k
                    for j in range(k):
                        m[filled * k + j] += g * room.z[x + j]
                filled += 1
        triangular_factor(m, filled, k, room.column, room.row)
        filled = min(filled, k)
        for i in range(filled * k):
            s.a[i] = m[i]
        if singular_rows(filled, k, True, s) != 0:
            return a
        level = 10 * max(eps, n * EPS) / min(dropped[a], 1.0)
        for j in range(k):
            sigma = float(s.w[j]) if j < filled else 0.0
            if sigma <= level:
                peeled[a] += 1
                zeros[a] = max(zeros[a], sigma, math.sqrt(size))
        to = z_starts[a]
        if peeled[a] == 0:
            for i in range(n * k):
                z[to + i] = room.z[i]
            for i in range(loop_rows[a] * k):
                loops[loop_starts[a] + i] = room.factor[i]
            continue
        turned(room.z, n, k, k, vectors, z, to)
        w = k - peeled[a]
        if loop_rows[a] > 0 and w > 0:
            turned(room.factor, loop_rows[a], k, w, vectors, m, 0)
            triangular_factor(m, loop_rows[a], w, room.column, room.row)
            loop_rows[a] = min(loop_rows[a], w)
            for i in range(loop_rows[a] * w):
                loops[loop_starts[a] + i] = m[i]
        elif w == 0:
            loop_rows[a] = 0
    return -1


@kernel
def turned(z, n, k, w, vectors, out, to):
    """out[to ...] = Z times the first w of the vectors that are the rows of a k x k matrix, n x w."""
    for row in range(n):
        for j in range(w):
            x = out.dtype.type(0)
            for i in range(k):
                x += z[row * k + i] * vectors[j * k + i]
            out[to + row * w + j] = x
