"""Oversampled modes, cluster by cluster: patches, the kernel of a patch, and the responses of the cluster to sources in the patch.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``, ``p`` the ``Patches``, ``s`` a LAPACK
``Workspace``, ``room`` a ``PatchRoom``. A patch is T, its cluster is C; N and n are their
dimensions, and C has the first n coordinates of T. All in double precision.
"""

import math

import numpy as np

from sheafcoarsen._kernels.dense import (
    eigh_lowest,
    eigvalsh,
    fix_phase,
    gram,
    inf_norm,
    potrf,
    potrs,
    power_of_two,
)
from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.modes.local import assemble, cluster_unit, store
from sheafcoarsen._kernels.modes.patch_kernel import EPS, patch_kernel, restricted
from sheafcoarsen._kernels.modes.patches import enter, leave

SHIFT = 0.1
"""A = L_T + SHIFT target I: positive definite, and the responses hardly know of it."""


BORDER = 1e-12
"""A coordinate is touched by an edge that leaves T where diag(L) exceeds diag(L_T) by so much of the largest diag(L_T)."""


@kernel
def responses(a, f, p, n, unit, largest, target, kernels, room, s):
    """s.a = -(I - K K*) G (I - K K*) / scale - c K K*, lower triangle, entries near 1; return the scale and LAPACK's info.

    With c above norm(G) / scale its lowest eigenvectors are K, then the leading ones of G in the
    complement.

    G = X_b* X_b + target^2 Y* Y with A = L_T + SHIFT target I, X = A^{-1} P_C*, Y = A^{-1} X, b the
    coordinates that an edge touches which leaves T. ``target`` comes in units of the scaled maps.
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

    Returns the dimension of K_C, the scale of G, the unit of the maps, norm(L_T, inf) and LAPACK's
    info.
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
        scale, info = responses(
            a, f, p, n, unit, largest, wanted, np.ascontiguousarray(kernels[:, :n]), room, s
        )
    leave(a, p, t)
    return kernels.shape[0], scale, unit, top / unit / unit, info


@kernel
def score(j, k, w, n, scale, unit, least):
    """Score number j: 0 on K_C, of dimension k, else (eigenvalue of G)^{-1/2}, as far as rounding lets G tell, in least .. 1 / least."""
    if j < k:
        return 0.0
    return min(
        max(1 / math.sqrt(max(-w[j], -n * EPS * w[k]) * scale) / unit / unit, least), 1 / least
    )


@kernel
def oversampled_spectra(
    lo,
    hi,
    f,
    c,
    p,
    target,
    eps,
    least,
    room,
    s,
    value_starts,
    values,
    kept_starts,
    kept,
    kernel_dims,
    numbers,
):
    """All scores of clusters lo .. hi and the dimensions of K_C; returns -1, or the first cluster at which LAPACK failed.

    What ``prepare`` finds is kept in ``kept`` and ``numbers`` (scale, unit, norm), unless they are
    empty.
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
        if eigvalsh(n, EPS, s, s.reduction) != 0:
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
            eigh_lowest(n, max(min(max(r + 1, k + 1), n), 1), EPS, s, s.reduction) != 0
        ):  # the leading eigenvalue of G sets the level of rounding
            return a
        for j in range(r):
            values[value_starts[a] + j] = score(j, k, s.w, n, scale, unit, least)
            fix_phase(s.z, j * n, n, sqrt_eps)
        if r < n:
            next_values[a] = score(r, k, s.w, n, scale, unit, least)
            tied[a] = (
                r > 0
                and next_values[a] - values[value_starts[a] + r - 1] <= sqrt_eps * next_values[a]
            )
        store(a, r, f, c, s.z, n, indptr, data)
    return -1
