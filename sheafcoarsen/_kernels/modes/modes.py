"""Local Laplacians and their lowest eigenpairs, cluster by cluster, in a workspace that is never stored.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``, ``s`` a LAPACK ``Workspace``.
"""

import math

import numpy as np

from sheafcoarsen._kernels.dense import (
    brought_near_one,
    eigh_lowest,
    eigvalsh,
    fix_phase,
    inf_norm,
    normalized,
    singular_rows,
)
from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.modes.local import assemble, cluster_unit, stack, store


@kernel
def local_modes(
    lo, hi, f, c, half_ptr, half_edges, ranks, left_out, eps, s,
    indptr, data, value_starts, values, next_values, norms, tied,
):  # fmt: skip
    """Lowest modes of clusters lo .. hi.

    Mode vectors go to the rows of R (``data`` at ``indptr``), eigenvalues to ``values``. Clusters
    ``left_out`` are not touched. Returns -1, or the first cluster at which LAPACK failed.
    """
    sqrt_eps = math.sqrt(eps)
    for a in range(lo, hi):
        if left_out[a]:
            continue
        n, r = c.dims[a], ranks[a]
        next_values[a] = np.inf
        norms[a] = 0
        tied[a] = False
        if n == 0:
            continue
        unit = cluster_unit(a, f, c, half_ptr, half_edges)
        assemble(a, f, c, half_ptr, half_edges, unit, s.map, s.a)
        top = inf_norm(s.a, n)
        at = value_starts[a]
        scale = brought_near_one(s.a, n)
        if scale == 0:
            # L_a = 0: every vector is an eigenvector, and the first coordinates are as good as any
            for j in range(r):
                values[at + j] = 0
                for i in range(n):
                    s.z[j * n + i] = 1 if i == j else 0
            if r < n:
                next_values[a] = 0
                tied[a] = r > 0
        else:
            if eigh_lowest(n, min(r + 1, n), eps, s, s.reduction) != 0:
                return a
            for j in range(r):
                values[at + j] = max(float(s.w[j]), 0.0) * scale / unit / unit
                fix_phase(s.z, j * n, n, sqrt_eps)
            if r < n:
                next_values[a] = max(float(s.w[r]), 0.0) * scale / unit / unit
                if r > 0:
                    tied[a] = (float(s.w[r]) - float(s.w[r - 1])) * scale <= sqrt_eps * top
            norms[a] = top / unit / unit
        store(a, r, f, c, s.z, n, indptr, data)
    return -1


@kernel
def local_spectra(lo, hi, f, c, half_ptr, half_edges, eps, s, value_starts, values, norms):
    """All eigenvalues of the local operators of clusters lo .. hi, without vectors; returns as ``local_modes``."""
    for a in range(lo, hi):
        n = c.dims[a]
        norms[a] = 0
        if n == 0:
            continue
        unit = cluster_unit(a, f, c, half_ptr, half_edges)
        assemble(a, f, c, half_ptr, half_edges, unit, s.map, s.a)
        norms[a] = inf_norm(s.a, n) / unit / unit
        scale = brought_near_one(s.a, n)
        if scale > 0 and eigvalsh(n, eps, s, s.reduction) != 0:
            return a
        for i in range(n):
            values[value_starts[a] + i] = (
                max(float(s.w[i]), 0.0) * scale / unit / unit if scale > 0 else 0
            )
    return -1


@kernel
def kernel_dims(lo, hi, f, c, half_ptr, half_edges, rows, eps, s, dims):
    """dims[a] = dimension of the kernel of cluster a's local operator, by singular values; returns as ``local_modes``."""
    for a in range(lo, hi):
        n = c.dims[a]
        dims[a] = n
        if n == 0:
            continue
        stack(a, f, c, half_ptr, half_edges, rows, s.a)
        if normalized(s.a, rows[a] * n) == 0:
            continue
        if singular_rows(rows[a], n, False, s) != 0:
            return a
        for j in range(min(rows[a], n)):
            if float(s.w[j]) > max(rows[a], n) * eps * float(s.w[0]):
                dims[a] -= 1
    return -1


@kernel
def singular_modes(
    lo, hi, f, c, half_ptr, half_edges, rows, ranks, eps, s,
    indptr, data, value_starts, values, next_values, norms, tied,
):  # fmt: skip
    """The lowest modes of clusters lo .. hi as right singular vectors of the local stack; otherwise as ``local_modes``."""
    sqrt_eps = math.sqrt(eps)
    for a in range(lo, hi):
        n, r = c.dims[a], ranks[a]
        next_values[a] = np.inf
        norms[a] = 0
        tied[a] = False
        if n == 0:
            continue
        unit = cluster_unit(a, f, c, half_ptr, half_edges)
        assemble(a, f, c, half_ptr, half_edges, unit, s.map, s.spare)
        norms[a] = inf_norm(s.spare, n) / unit / unit
        stack(a, f, c, half_ptr, half_edges, rows, s.a)
        scale = normalized(s.a, rows[a] * n)
        found = 0 if scale == 0 else min(rows[a], n)
        if singular_rows(0 if scale == 0 else rows[a], n, True, s) != 0:
            return a
        for j in range(n // 2):  # ascending: the null space first
            for i in range(n):
                other = s.z[(n - 1 - j) * n + i]
                s.z[(n - 1 - j) * n + i] = s.z[j * n + i]
                s.z[j * n + i] = other
        for j in range(r):
            sigma = float(s.w[n - 1 - j]) * scale if n - 1 - j < found else 0.0
            values[value_starts[a] + j] = sigma * sigma
            fix_phase(s.z, j * n, n, sqrt_eps)
        if r < n:
            sigma = float(s.w[n - 1 - r]) * scale if n - 1 - r < found else 0.0
            next_values[a] = sigma * sigma
            tied[a] = (
                r > 0 and next_values[a] - values[value_starts[a] + r - 1] <= sqrt_eps * norms[a]
            )
        store(a, r, f, c, s.z, n, indptr, data)
    return -1
