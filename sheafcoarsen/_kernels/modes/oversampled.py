"""Oversampled modes: leading responses of a cluster to sources in the patch around it.

A patch is T, its cluster is C; N and n are their dimensions, and C has the first n coordinates of
T. K_C is the space of sections on T, restricted to C. All computations are in double precision.
Kernels over clusters return -1, or the first cluster for which LAPACK failed.
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
    SUBTRACT,
    TRANSPOSED,
    gemm,
    inf_norm,
    potrf,
    potrs,
    power_of_two,
    singular_rows,
)
from sheafcoarsen._kernels.heap import ITEM, descending_code, heap_pop, heap_push
from sheafcoarsen._kernels.hermitian import eigh_lowest, eigvalsh, orthonormalize
from sheafcoarsen._kernels.jit import borrowing_kernel, numba_inlined, subkernel
from sheafcoarsen._kernels.modes.local import (
    KernelWorkspace,
    assemble,
    cluster_unit,
    delta_kernel,
    put_modes,
)

SHIFT = 0.1
"""Shift that makes A = L_T + SHIFT target I definite; it hardly changes the responses."""

BORDER = 1e-12
"""Minimum of (diag(L) - diag(L_T)) / max(diag(L_T)) at coordinates that edges leaving T touch."""


class Patches(NamedTuple):
    """Vertices of the patches of all clusters, and edges grouped by vertex.

    The vertices of patch a are ``members[starts[a] : starts[a] + counts[a]]``, of which the first
    are the vertices of the cluster, ascending.
    """

    members: np.ndarray
    starts: np.ndarray  # (K + 1,)
    counts: np.ndarray  # (K,)
    dims: np.ndarray  # (K,) dimension of C^0 on the patch
    low_ptr: np.ndarray  # (n + 1,)
    low_edges: np.ndarray  # (m,) edges grouped by the end of lower degree, so that lists are short
    diagonal: np.ndarray  # (dim_c0,) diag(L)


class PatchIndex(NamedTuple):
    """Index arrays of one patch, laid out as in a ``Clusters`` with a single cluster."""

    dims: np.ndarray  # (1,)
    internal_edges: np.ndarray
    internal_ptr: np.ndarray  # (2,)
    local_offsets: np.ndarray  # (n_vertices,) -1 outside the patch


class PatchWorkspace(NamedTuple):
    """Workspace for all patches of a range, sized for the largest one, of dimension N."""

    t: PatchIndex
    c: tuple  # Clusters of which only the cluster T has edges, in the memory of t
    kernel: KernelWorkspace
    border: np.ndarray  # (N,) coordinates that edges leaving the patch touch


@borrowing_kernel
def grow_patches(lo, hi, dims, clusters, links, rings, patches, workspace):
    """Fill the patches T of clusters C in lo .. hi, ring by ring, while dim T <= 2 dim C.

    Within a ring, vertices are added in descending order of their coupling to the patch, rounded to
    20 bits, so that rounding errors do not break ties. ``dims`` are those of the stalks,
    ``clusters`` the clusters' members, where those of each cluster start, and dimensions.
    ``workspace`` holds two integers and a number for each vertex.
    """
    (own, own_ptr, cluster_dims), members = clusters, patches.members
    seen, candidates, strength = workspace
    for v in range(dims.size):
        seen[v], strength[v] = -1, 0.0
    for a in range(lo, hi):
        first = end = patches.starts[a]
        for v in own[own_ptr[a] : own_ptr[a + 1]]:
            members[end], seen[v] = v, a
            end += 1
        dim = cluster_dims[a]
        for _ in range(rings):
            n_candidates, largest = np.int64(0), 0.0
            for v in members[first:end]:
                for i in range(links.starts[v], links.starts[v + 1]):
                    u = links.ends[i]
                    if seen[u] == a or dims[u] == 0:
                        continue
                    if strength[u] == 0:  # list u once; 5e-324 marks it even if couplings are zero
                        candidates[n_candidates] = u
                        n_candidates += 1
                        strength[u] = 5e-324
                    strength[u] += links.weights[i]
                    largest = max(largest, strength[u])
            if n_candidates == 0:
                break
            first = end
            unit = math.frexp(largest)[1]  # so that codes, in single precision, do not underflow
            size = np.int64(0)
            for k in range(n_candidates):
                u = candidates[k]
                fraction, power = math.frexp(strength[u])
                fraction = math.floor(fraction * 2.0**20 + 0.5)
                code = descending_code(math.ldexp(fraction, power - 20 - unit), u)
                size = heap_push(candidates, size, code)
                strength[u] = 0
            is_full = False
            while size > 0:
                u = candidates[0] & ITEM
                size = heap_pop(candidates, size)
                if dim + dims[u] > 2 * cluster_dims[a]:
                    is_full = True
                    continue
                members[end], seen[u] = u, a
                dim += dims[u]
                end += 1
            if is_full:
                break
        patches.counts[a], patches.dims[a] = end - patches.starts[a], dim


@subkernel
def set_patch(a, f, p, t):
    """Set ``t`` to the index arrays of patch a; return the number of rows of delta_T."""
    local, members = t.local_offsets, p.members[p.starts[a] : p.starts[a] + p.counts[a]]
    at, count, rows = 0, 0, 0
    for v in members:
        local[v] = at
        at += f.vertex_dims[v]
    for v in members:
        for e in p.low_edges[p.low_ptr[v] : p.low_ptr[v + 1]]:
            if local[f.edges[e, 0]] >= 0 and local[f.edges[e, 1]] >= 0:
                t.internal_edges[count] = e
                count += 1
                rows += f.edge_dims[e]
    t.dims[0], t.internal_ptr[1] = at, count
    return rows


@subkernel
def reset_patch(a, p, t):
    """Reset the local offsets of patch a to -1."""
    for v in p.members[p.starts[a] : p.starts[a] + p.counts[a]]:
        t.local_offsets[v] = -1


class PatchProblems(NamedTuple):
    """The sheaf, its clusters and patches, and parameters of the responses."""

    f: tuple  # SheafArrays
    even: tuple  # map data of f, or of a sheaf whose edges have maps of one size
    units: np.ndarray  # (n,) powers of two; sections of the even sheaf times them are f's
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
def restriction(count, N, n, eps, basis, other, s):
    """Overwrite rows of length N with a basis of the span of their first n entries.

    Returns the dimension, and LAPACK's info.
    """
    for j in range(count):
        for i in range(n):
            s.a[i * count + j] = basis[j * n + i] = basis[j * N + i]
    info = singular_rows(n, count, True, s)
    rank = np.int64(0)
    while rank < min(n, count) and s.w[rank] > 4 * eps * N:
        rank += 1
    if rank > 0:
        gemm((NEITHER, NEITHER), (rank, n, count), ASSIGN, s.z, basis, other, s)
        for i in range(rank * n):
            basis[i] = other[i]
    return rank, info


@subkernel
def responses(n, N, target, nb, k, arrays, s):
    """Write the lower triangle of -(I - K K*) G (I - K K*) / scale - c K K* to s.a.

    Its entries are near 1. Since c exceeds norm(G) / scale, its lowest eigenvectors are K, followed
    by the leading eigenvectors of G orthogonal to K. Returns the scale and LAPACK's info.

    G = X_b* X_b + target^2 Y* Y with A = L_T + SHIFT target I, X = A^{-1} P_C*, Y = A^{-1} X and b
    the border of ``nb`` coordinates. ``target`` is in units of the scaled maps; the k columns of K
    are stored as rows. ``arrays`` are L_T, K, workspace for X and for [X_b; target Y], and b.
    """
    A, K, x, m, border = arrays
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
    # M (I - K K*), twice, because M K may be much larger than the result
    for _ in range(2 if k > 0 else 0):
        gemm((ADJOINT, TRANSPOSED), (height, k, n), ASSIGN, m, K, s.work, s)
        gemm((TRANSPOSED, ADJOINT), (n, height, k), SUBTRACT, K, s.work, m, s)
    out, largest = s.a, 0.0
    gemm((NEITHER, ADJOINT), (n, n, height), ASSIGN, m, m, out, s)
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
    N, rows, out = p.dims[a], set_patch(a, f, p, t), s.a
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
    wanted, scale = min(max(target * unit * unit, 40 * N * EPS * largest), 1e8 * largest), 1.0
    even = SheafArrays(*f[:5], problems.even[0], f.tail_offsets, problems.even[1], f.head_offsets)
    k, info = delta_kernel(patch, even, c, problems.skewed, rows, eps, workspace.kernel)
    if info == 0 and k > 0:
        k, info = restriction(k, N, n, eps, basis, other, s)
    nb, at = 0, 0
    for v in p.members[p.starts[a] : p.starts[a] + p.counts[a]]:
        for i in range(f.vertex_offsets[v], f.vertex_offsets[v] + f.vertex_dims[v]):
            if at < n:
                for j in range(k):
                    basis[j * n + at] *= problems.units[v]
            full = p.diagonal[i] * unit * unit
            if full - local[at * N + at].real > BORDER * largest:
                border[nb] = at
                nb += 1
            at += 1
    orthonormalize(basis, n, 0, k)
    if info == 0:
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
    s = workspace.kernel.s
    for a in range(lo, hi):
        n = problems.dims[a]
        if n == 0:
            continue
        k, scale, unit, norm, info = prepare(a, problems, workspace)
        if info != 0:
            return a
        responses_out.kernels[a] = k
        if responses_out.matrices.size > 0:
            for i in range(n * n):
                responses_out.matrices[responses_out.starts[a] + i] = s.a[i]
            numbers = responses_out.numbers[a]
            numbers[0], numbers[1], numbers[2] = scale, unit, norm
        if eigvalsh(n, s, s.reduction) != 0:
            return a
        for j in range(n):
            out.scores[out.starts[a] + j] = score(j, k, s.w, n, scale, unit, problems.least)
    return -1


@borrowing_kernel
def oversampled_modes(lo, hi, problems, workspace, known, out):
    """Compute the lowest oversampled modes of clusters lo .. hi.

    ``known`` are the stored results of ``oversampled_spectra``, or empty.
    """
    s, least, eps, scores = workspace.kernel.s, problems.least, problems.eps, out.scores
    for a in range(lo, hi):
        n, r, at = problems.dims[a], out.blocks.ranks[a], out.starts[a]
        if n == 0:
            continue
        if known.matrices.size > 0:
            k, numbers = known.kernels[a], known.numbers[a]
            scale, unit, out.norms[a] = numbers[0], numbers[1], numbers[2]
            for i in range(n * n):
                s.a[i] = known.matrices[known.starts[a] + i]
        else:
            k, scale, unit, out.norms[a], info = prepare(a, problems, workspace)
            if info != 0:
                return a
        # also compute eigenvalue k, the leading one of G: ``score`` needs it as rounding level
        if eigh_lowest(n, min(max(r, k) + 1, n), s, s.reduction) != 0:
            return a
        if problems.skewed:
            # replace the eigenvectors of K_C by its basis, whose small entries are accurate too
            for i in range(min(k, r) * n):
                s.z[i] = workspace.kernel.basis[i]
        for j in range(r):
            scores[at + j] = score(j, k, s.w, n, scale, unit, least)
        if r < n:
            out.following[a] = following = score(r, k, s.w, n, scale, unit, least)
            out.tied[a] = r > 0 and following - scores[at + r - 1] <= math.sqrt(eps) * following
        put_modes(a, n, problems.f, workspace.c, s.z, eps, out.blocks)
    return -1
