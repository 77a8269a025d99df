"""Patches, each a cluster and the rings of vertices around it, and the kernel of delta on them.

The ranks of delta_T on a patch T are decided by singular values.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import (
    EPS,
    Workspace,
    fill_random,
    inf_norm,
    orthonormalize,
    potrf,
    potrs,
    singular_rows,
)
from sheafcoarsen._kernels.jit import borrowing_kernel, subkernel
from sheafcoarsen._kernels.llvm_intrinsics import put_dot
from sheafcoarsen._kernels.modes.local import assemble, cluster_unit, stack
from sheafcoarsen._kernels.partition import ITEM, descending_code, heap_pop, heap_push


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


class KernelWorkspace(NamedTuple):
    """Workspace of ``delta_kernel`` for patches or clusters up to rows x N.

    N is the largest dimension of a patch or cluster.
    """

    s: Workspace  # for matrices up to rows x N and their singular vectors, and for clusters
    a: np.ndarray  # (N N,) L_T, then A and its factor
    delta: np.ndarray  # delta_T in the unit of the maps, then columns of [X_b; target Y] as rows
    basis: np.ndarray  # (N N,) an orthonormal basis of ker delta_T as rows, then of K_C
    other: np.ndarray  # (N N,) a second such basis, then X, then Y, as rows


class PatchWorkspace(NamedTuple):
    """Workspace for all patches of a range, sized for the largest one, of dimension N."""

    t: PatchIndex
    c: tuple  # Clusters of which only the cluster T has edges, in the memory of t
    kernel: KernelWorkspace
    border: np.ndarray  # (N,) coordinates that edges leaving the patch touch


@borrowing_kernel
def grow_patches(lo, hi, f, c, links, rings, patches, workspace):
    """Fill the patches T of clusters C in lo .. hi, ring by ring, while dim T <= 2 dim C.

    Within a ring, vertices are added in descending order of their coupling to the patch, rounded to
    20 bits, so that rounding errors do not break ties. ``workspace`` holds two integers and a
    number for each vertex.
    """
    starts, ends, weights = links.starts, links.ends, links.weights
    members, counts, dims = patches.members, patches.counts, patches.dims
    vertex_dims, cluster_members, cluster_dims = f.vertex_dims, c.members, c.dims
    member_ptr, begins = c.member_ptr, patches.starts
    seen, candidates, strength = workspace
    for v in range(vertex_dims.size):
        seen[v], strength[v] = -1, 0.0
    for a in range(lo, hi):
        begin = begins[a]
        count = 0
        for k in range(member_ptr[a], member_ptr[a + 1]):
            members[begin + count] = cluster_members[k]
            seen[cluster_members[k]] = a
            count += 1
        dims[a] = cluster_dims[a]
        first = 0
        for _ in range(rings):
            n_candidates, largest = np.int64(0), 0.0
            for k in range(first, count):
                v = members[begin + k]
                for i in range(starts[v], starts[v + 1]):
                    u = ends[i]
                    if seen[u] == a or vertex_dims[u] == 0:
                        continue
                    if strength[u] == 0:  # list u once; 5e-324 marks it even if couplings are zero
                        candidates[n_candidates] = u
                        n_candidates += 1
                        strength[u] = 5e-324
                    strength[u] += weights[i]
                    largest = max(largest, strength[u])
            if n_candidates == 0:
                break
            first = count
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
                if dims[a] + vertex_dims[u] > 2 * cluster_dims[a]:
                    is_full = True
                    continue
                members[begin + count] = u
                seen[u] = a
                dims[a] += vertex_dims[u]
                count += 1
            if is_full:
                break
        counts[a] = count


@subkernel
def set_patch(a, f, p, t):
    """Set ``t`` to the index arrays of patch a; return the number of rows of delta_T."""
    edges, vertex_dims, edge_dims = f.edges, f.vertex_dims, f.edge_dims
    members, low_ptr, low_edges = p.members, p.low_ptr, p.low_edges
    local, inner = t.local_offsets, t.internal_edges
    at = 0
    begin = p.starts[a]
    end = begin + p.counts[a]
    for k in range(begin, end):
        v = members[k]
        local[v] = at
        at += vertex_dims[v]
    count, rows = 0, 0
    for k in range(begin, end):
        v = members[k]
        for i in range(low_ptr[v], low_ptr[v + 1]):
            e = low_edges[i]
            if local[edges[e, 0]] >= 0 and local[edges[e, 1]] >= 0:
                inner[count] = e
                count += 1
                rows += edge_dims[e]
    t.dims[0] = at
    t.internal_ptr[1] = count
    return rows


@subkernel
def reset_patch(a, p, t):
    """Reset the local offsets of patch a to -1."""
    members, local, begin = p.members, t.local_offsets, p.starts[a]
    for k in range(begin, begin + p.counts[a]):
        local[members[k]] = -1


@subkernel
def combinations(z, begin, end, count, x, stride, n, out):
    """Write rows begin .. end of z, (., count), times the first n columns of x, (count, stride)."""
    for i in range((end - begin) * n):
        out[i] = 0
    for j in range(begin, end):
        to = (j - begin) * n
        for q in range(count):
            factor, at = z[j * count + q], q * stride
            for i in range(n):
                out[to + i] += factor * x[at + i]


@subkernel
def shifted_copy(a, n, shift, out):
    """Write A + shift I for an n x n matrix A."""
    for i in range(n * n):
        out[i] = a[i]
    for i in range(n):
        out[i * n + i] += shift


@subkernel
def loop_norm(a, f, c, rows, unit):
    """Return the largest norm of both maps of a loop of cluster a, times ``unit``, or 0.

    If the maps cancel, their difference, which the operator contains, is rounding relative to this
    norm, and must not count as rank (`zero_level`).
    """
    largest = 0.0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = c.internal_edges[k]
        if f.edges[e, 0] == f.edges[e, 1]:
            squares = 0.0
            for i in range(f.tail_offsets[e], f.tail_offsets[e + 1]):
                squares += abs(f.tail_data[i] * unit) ** 2
            for i in range(f.head_offsets[e], f.head_offsets[e + 1]):
                squares += abs(f.head_data[i] * unit) ** 2
            # 4 d eps norm is the level of one loop, which the tolerance of a small patch misses
            factor = max(1.0, 4 * f.edge_dims[e] / max(rows, c.dims[a]))
            largest = max(largest, factor * math.sqrt(squares))
    return largest


@subkernel
def delta_kernel(patch, f, c, skewed, rows, eps, workspace):
    """Write an orthonormal basis of ker delta_T as rows; return its dimension, and LAPACK's info.

    T is cluster ``patch`` of c. For principal blocks delta_T has the rows of half-edges, too.

    A Cholesky factorization of L_T - mu I proves that the kernel is zero. Otherwise inverse
    iteration with L_T + mu I computes the space of the smallest singular values. It is refined by
    products with delta_T, which resolve singular values to eps norm(delta_T) instead of sqrt(eps)
    norm(delta_T). Each entry of delta_T x has an error relative to its terms, so if the sheaf is
    ``skewed``, small entries of sections become accurate, too.
    """
    s, delta = workspace.s, workspace.delta
    basis, a, other = workspace.basis, workspace.other, workspace.other  # a is used before other
    matrix, spare, w, z = s.a, s.spare, s.w, s.z
    n = c.dims[patch]
    unit = cluster_unit(patch, f, c)
    assemble(patch, f, c, unit, s.map, a)
    largest = 0.0
    for i in range(n):
        largest = max(largest, a[i * n + i].real)
    top = inf_norm(a, n, s.sums)
    tolerance = max(rows, n) * eps
    loop = loop_norm(patch, f, c, rows, unit)
    norm = max(math.sqrt(top), loop)
    mu = max(64 * n * EPS * largest, 4 * tolerance * tolerance * norm * norm)
    shifted_copy(a, n, -mu, spare)
    if potrf(spare, n, s) == 0:
        return 0, 0
    count = np.int64(4)  # number of start vectors, doubled while all of them converge to the kernel
    if 3 * count <= n or skewed:
        shifted_copy(a, n, mu, spare)
        if potrf(spare, n, s) != 0:
            count, skewed = n, False
    stack(patch, f, c, rows, delta)
    for i in range(rows * n):
        delta[i] *= unit
    delta_T = delta[: rows * n].reshape(rows, n)
    k, steps = np.int64(0), 0
    while 3 * count <= n and count <= rows:  # else count - rows singular values are not written
        fill_random(basis, count * n, np.int64(0))
        for _ in range(3):
            potrs(spare, n, basis, count, s)
            orthonormalize(basis[: count * n].reshape(count, n), n, 0, count)
        for i in range(count * n):  # conjugate back: LAPACK read the conjugate of L_T
            basis[i] = np.conj(basis[i])
        image = matrix[: rows * count].reshape(rows, count)
        put_dot(delta_T, basis[: count * n].reshape(count, n).T, image)
        info = singular_rows(rows, count, True, s)
        if info != 0:
            return 0, info
        k = 0  # number of vectors to refine; the others are far from the kernel
        while k < count and w[count - 1 - k] ** 2 <= 100 * mu:
            k += 1
        if k == 0:
            return 0, 0
        if k < count:
            combinations(z, count - k, count, count, basis, n, n, other)
            next_square = w[count - 1 - k] ** 2
            steps = max(2, math.ceil(math.log(EPS) / math.log(mu / next_square)))
            break
        count *= 2
    if steps == 0:  # the kernel is large compared with n: use a full singular value decomposition
        for i in range(rows * n):
            matrix[i] = delta[i]
        info = singular_rows(rows, n, True, s)
        norm, rank = max(w[0], loop), 0
        while rank < min(rows, n) and w[rank] > tolerance * norm:
            rank += 1
        k = n - rank
        for i in range(k * n):
            basis[i] = z[rank * n + i]
        if not skewed or k == 0 or info != 0:
            return k, info
        for i in range(k * n):
            other[i] = basis[i]
    x, image = other[: k * n].reshape(k, n), matrix[: rows * k].reshape(rows, k)
    for _ in range(max(steps, 2)):
        put_dot(delta_T, x.T, image)
        for i in range(rows * k):
            matrix[i] = np.conj(matrix[i])
        put_dot(image.T, delta_T, basis[: k * n].reshape(k, n))
        potrs(spare, n, basis, k, s)
        for i in range(k * n):
            other[i] -= np.conj(basis[i])
        orthonormalize(x, n, 0, k)
    dim = k
    if steps > 0:
        put_dot(delta_T, x.T, image)
        info = singular_rows(rows, k, True, s)
        dim = np.int64(0)
        while dim < k and w[k - 1 - dim] <= tolerance * norm:
            dim += 1
        combinations(z, k - dim, k, k, other, n, n, basis)
        orthonormalize(basis[: dim * n].reshape(dim, n), n, 0, dim)
    else:
        for i in range(k * n):
            basis[i] = other[i]
    return dim, info


@subkernel
def restriction(count, N, n, eps, basis, other, s):
    """Restrict basis vectors to their first n entries; overwrite them with an orthonormal basis.

    Returns the dimension of its span, and LAPACK's info. Vectors are rows, of length N before and n
    afterwards.
    """
    for j in range(count):
        for i in range(n):
            s.a[i * count + j] = basis[j * N + i]
    info = singular_rows(n, count, True, s)
    rank = np.int64(0)
    while rank < min(n, count) and s.w[rank] > 4 * eps * N:
        rank += 1
    combinations(s.z, np.int64(0), rank, count, basis, N, n, other)
    for i in range(rank * n):
        basis[i] = other[i]
    orthonormalize(basis[: rank * n].reshape(rank, n), n, 0, rank)
    return rank, info
