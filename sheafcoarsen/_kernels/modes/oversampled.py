"""Oversampled modes: leading responses of a cluster to sources in the patch around it.

A patch is T, its cluster is C; N and n are their dimensions, and C has the first n coordinates of
T. K_C is the space of sections on T, restricted to C. All computations are in double precision.
Kernels over clusters return -1, or the first cluster for which LAPACK failed.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import (
    EPS,
    eigh_lowest,
    eigvalsh,
    gram,
    inf_norm,
    orthonormalize,
    potrf,
    potrs,
    power_of_two,
)
from sheafcoarsen._kernels.jit import borrowing_kernel, numba_inlined, subkernel
from sheafcoarsen._kernels.modes.blocks import put_modes
from sheafcoarsen._kernels.modes.local import assemble, cluster_unit
from sheafcoarsen._kernels.modes.patches import (
    Patches,
    delta_kernel,
    reset_patch,
    restriction,
    set_patch,
)

SHIFT = 0.1
"""Shift that makes A = L_T + SHIFT target I definite, in units of the target.

It hardly changes the responses.
"""


BORDER = 1e-12
"""Minimum of (diag(L) - diag(L_T)) / max(diag(L_T)) at coordinates on the border of T.

The border consists of the coordinates that edges leaving T touch.
"""


class PatchProblems(NamedTuple):
    """The sheaf, its clusters and patches, and parameters of the responses."""

    f: tuple  # SheafArrays
    even: tuple  # SheafArrays whose edges have maps of one size; its sections times units are f's
    units: np.ndarray  # (dim_c0,) powers of two, 1 unless the sheaf is skewed
    skewed: bool  # whether sections differ in size at the two ends of an edge
    dims: np.ndarray  # (K,) dimensions N_a of the clusters
    p: Patches
    target: float
    eps: float  # machine epsilon of the scalar type of the user's sheaf
    least: float  # smallest positive score in this scalar type


class Responses(NamedTuple):
    """Responses that ``oversampled_spectra`` stores for ``oversampled_modes``, or empty arrays."""

    starts: np.ndarray  # (K + 1,)
    matrices: np.ndarray  # (sum N_a^2,) results of ``prepare``
    kernels: np.ndarray  # (K,) dimension of K_C
    numbers: np.ndarray  # (K, 3) scale of G, unit of the maps, norm(L_T, inf)


@subkernel
def responses(n, N, target, nb, k, arrays, s):
    """Write the lower triangle of -(I - K K*) G (I - K K*) / scale - c K K* to s.a.

    Its entries are near 1. Since c exceeds norm(G) / scale, its lowest eigenvectors are K, followed
    by the leading eigenvectors of G orthogonal to K. Returns the scale and LAPACK's info.

    G = X_b* X_b + target^2 Y* Y with A = L_T + SHIFT target I, X = A^{-1} P_C*, Y = A^{-1} X and b
    the border of ``nb`` coordinates. ``target`` is in units of the scaled maps; the k columns of K
    are stored as rows. ``arrays`` are L_T, K, workspace for X and for [X_b; target Y], and b.
    """
    (A, K, x, m, border), inner = arrays, s.work
    for i in range(N):
        A[i * N + i] += SHIFT * target
    info = potrf(A, N, s)
    if info != 0:
        return 0.0, info
    for i in range(n * N):
        x[i] = 0
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
    for q in range(2 * k):  # M (I - K K*), twice, because M K may be much larger than the result
        at = (q % k) * n
        for i in range(height):
            inner[i] = 0
        for j in range(n):
            factor = np.conj(K[at + j])
            for i in range(height):
                inner[i] += factor * m[j * height + i]
        for j in range(n):
            factor = K[at + j]
            for i in range(height):
                m[j * height + i] -= factor * inner[i]
    out = s.a
    gram(m, height, n, out, s)
    largest = 0.0
    for i in range(n):
        largest = max(largest, out[i * n + i].real)
    scale = power_of_two(largest)
    for i in range(n):
        for j in range(i + 1):
            out[i * n + j] /= -scale
    shift = inf_norm(out, n, s.sums) + 1
    for q in range(k):
        for i in range(n):
            for j in range(i + 1):
                out[i * n + j] -= shift * K[q * n + i] * np.conj(K[q * n + j])
    return scale, 0


@numba_inlined
def prepare(a, problems, workspace):
    """Write the matrix of ``responses`` for cluster a to s.a.

    Returns the dimension of K_C, the scale of G, the unit of the maps, norm(L_T, inf) and LAPACK's
    info.
    """
    f, p, n, eps, target = problems.f, problems.p, problems.dims[a], problems.eps, problems.target
    t, c, border, patch = workspace.t, workspace.c, workspace.border, np.int64(0)
    s, local, delta, basis, other = workspace.kernel
    out = s.a
    N, rows = p.dims[a], set_patch(a, f, p, t)
    unit = cluster_unit(patch, f, c)
    assemble(patch, f, c, unit, s.map, local)
    largest = 0.0
    for i in range(N):
        largest = max(largest, local[i * N + i].real)
    if largest == 0:  # every vector is a section, so K_C is the whole space
        reset_patch(a, p, t)
        for i in range(n * n):
            out[i] = basis[i] = 0
        for i in range(n):
            out[i * n + i] = -1
            basis[i * n + i] = 1
        return n, 1.0, unit, 0.0, 0
    top = inf_norm(local, N, s.sums)
    wanted = min(max(target * unit * unit, 40 * N * EPS * largest), 1e8 * largest)
    scale = 1.0
    even, skewed = problems.even, problems.skewed
    k, info = delta_kernel(patch, even, c, skewed, rows, eps, workspace.kernel)
    if info == 0 and k > 0:
        k, info = restriction(k, N, n, eps, basis, other, s)
        if skewed:
            at = 0
            for v in p.members[p.starts[a] : p.starts[a] + p.counts[a]]:
                for i in range(f.vertex_dims[v]):
                    if at < n:
                        for j in range(k):
                            basis[j * n + at] *= problems.units[f.vertex_offsets[v] + i]
                        at += 1
            orthonormalize(basis[: k * n].reshape(k, n), n, 0, k)
    if info == 0:
        nb, at = 0, 0
        for v in p.members[p.starts[a] : p.starts[a] + p.counts[a]]:
            for i in range(f.vertex_dims[v]):
                full = p.diagonal[f.vertex_offsets[v] + i] * unit * unit
                if full - local[at * N + at].real > BORDER * largest:
                    border[nb] = at
                    nb += 1
                at += 1
        arrays = local, basis, other, delta, border
        scale, info = responses(n, N, wanted, nb, k, arrays, s)
    reset_patch(a, p, t)
    return k, scale, unit, top / unit / unit, info


@subkernel
def score(j, k, w, n, scale, unit, least):
    """Return score j: 0 for the k vectors of K_C, otherwise (eigenvalue of G)^{-1/2}.

    It is clipped to least .. 1 / least, and eigenvalues of G to the rounding of the largest one.
    """
    if j < k:
        return 0.0
    eigenvalue = max(-w[j], -n * EPS * w[k]) * scale
    if not eigenvalue > 0:  # all responses to sources are rounding
        return 1 / least
    return min(max(1 / math.sqrt(eigenvalue) / unit / unit, least), 1 / least)


@borrowing_kernel
def oversampled_spectra(lo, hi, problems, workspace, out, responses_out):
    """Compute all scores of clusters lo .. hi and the dimensions of K_C.

    Results of ``prepare`` are stored for ``oversampled_modes`` unless ``responses_out`` is empty.
    """
    s, least, dims = workspace.kernel.s, problems.least, problems.dims
    starts, scores, matrices, matrix, w = out.starts, out.scores, responses_out.matrices, s.a, s.w
    matrix_starts, reduction = responses_out.starts, s.reduction
    kernels, numbers = responses_out.kernels, responses_out.numbers
    for a in range(lo, hi):
        n = dims[a]
        if n == 0:
            continue
        k, scale, unit, norm, info = prepare(a, problems, workspace)
        if info != 0:
            return a
        kernels[a] = k
        if matrices.size > 0:
            for i in range(n * n):
                matrices[matrix_starts[a] + i] = matrix[i]
            numbers[a, 0], numbers[a, 1], numbers[a, 2] = scale, unit, norm
        if eigvalsh(n, s, reduction) != 0:
            return a
        for j in range(n):
            scores[starts[a] + j] = score(j, k, w, n, scale, unit, least)
    return -1


@borrowing_kernel
def oversampled_modes(lo, hi, problems, workspace, known, out):
    """Compute the lowest oversampled modes of clusters lo .. hi.

    ``known`` are the stored results of ``oversampled_spectra``, or empty.
    """
    f, c, least, eps = problems.f, workspace.c, problems.least, problems.eps
    s, basis = workspace.kernel.s, workspace.kernel.basis
    sqrt_eps, ranks, starts = math.sqrt(eps), out.blocks.ranks, out.starts
    scores, following, norms, tied = out.scores, out.following, out.norms, out.tied
    matrices, matrix_starts = known.matrices, known.starts
    matrix, w, z, dims, blocks, reduction = s.a, s.w, s.z, problems.dims, out.blocks, s.reduction
    for a in range(lo, hi):
        n, r = dims[a], ranks[a]
        if n == 0:
            continue
        if matrices.size > 0:
            k, numbers = known.kernels[a], known.numbers[a]
            scale, unit, norms[a] = numbers[0], numbers[1], numbers[2]
            for i in range(n * n):
                matrix[i] = matrices[matrix_starts[a] + i]
        else:
            k, scale, unit, norms[a], info = prepare(a, problems, workspace)
            if info != 0:
                return a
        # also compute eigenvalue k, the leading one of G: ``score`` needs it as rounding level
        if eigh_lowest(n, min(max(r, k) + 1, n), s, reduction) != 0:
            return a
        if problems.skewed:
            # replace the eigenvectors of K_C by its basis, whose small entries are accurate too
            for i in range(min(k, r) * n):
                z[i] = basis[i]
        at = starts[a]
        for j in range(r):
            scores[at + j] = score(j, k, w, n, scale, unit, least)
        if r < n:
            following[a] = score(r, k, w, n, scale, unit, least)
            tied[a] = r > 0 and following[a] - scores[at + r - 1] <= sqrt_eps * following[a]
        put_modes(a, n, f, c, z, eps, blocks)
    return -1
