"""Dense local operators of clusters, kernels of delta_a, and the blocks of the prolongation R.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``. Its half-edges, 2 e + end, are the terms of the
principal block that L_a lacks. R = blockdiag(R_a) is stored row by row in the order of C^0.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import (
    ADJOINT,
    ASSIGN,
    EPS,
    NEITHER,
    TRANSPOSED,
    Workspace,
    gemm,
    inf_norm,
    largest_entry,
    potrf,
    potrs,
    power_of_two,
    singular_rows,
)
from sheafcoarsen._kernels.hermitian import fill_random, orthonormalize
from sheafcoarsen._kernels.jit import borrowing_kernel, numba_inlined, subkernel
from sheafcoarsen._kernels.simd import NOT_NEGATIVE, add_gram


class Blocks(NamedTuple):
    """Arrays of R: the r_a entries of row i, in cluster a, start at ``data[indptr[i]]``."""

    indptr: np.ndarray  # (dim_c0 + 1,)
    data: np.ndarray  # (sum N_a r_a,)
    ranks: np.ndarray  # (K,) r_a


@subkernel
def put_block(a, f, c, z, at, row_step, column_step, R):
    """Write R_a, whose entry (i, j) is z[at + i row_step + j column_step], to R."""
    for k in range(c.member_ptr[a], c.member_ptr[a + 1]):
        v = c.members[k]
        for row in range(f.vertex_offsets[v], f.vertex_offsets[v] + f.vertex_dims[v]):
            p = R.indptr[row]
            for j in range(R.ranks[a]):
                R.data[p + j] = z[at + j * column_step]
            at += row_step


@borrowing_kernel
def put_columns(f, c, z, starts, widths, R):
    """Write all R_a to R: R_a is the first r_a of the widths[a] columns at z[starts[a]]."""
    for a in range(R.ranks.size):
        put_block(a, f, c, z, starts[a], widths[a], 1, R)


@borrowing_kernel
def put_modes(a, n, f, c, z, eps, R):
    """Write the first r_a rows of z, of length n, to R_a as columns, with reproducible phases.

    The first entry of nearly maximum modulus becomes positive.
    """
    for j in range(R.ranks[a]):
        at, end = j * n, (j + 1) * n
        least = (1 - math.sqrt(eps)) * largest_entry(z, at, end, 0.0)
        for i in range(at, end):
            size = float(abs(z[i]))
            if size >= least and size > 0:
                phase = np.conj(z[i]) / size
                for k in range(at, end):
                    z[k] *= phase
                z[i] = size
                break
    put_block(a, f, c, z, 0, 1, n, R)


@numba_inlined
def map_at(f, e, end):
    """Return the vertex at one end of edge e, its dimension, and the array and start of its map."""
    v = f.edges[e, end]
    data = f.tail_data if end == 0 else f.head_data
    return v, f.vertex_dims[v], data, f.tail_offsets[e] if end == 0 else f.head_offsets[e]


@subkernel
def cluster_unit(a, f, c):
    """Return the reciprocal of the power of two above the largest map entry in a's operator."""
    largest = 0.0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = c.internal_edges[k]
        if f.edges[e, 0] != f.edges[e, 1]:
            largest = largest_entry(f.tail_data, f.tail_offsets[e], f.tail_offsets[e + 1], largest)
            largest = largest_entry(f.head_data, f.head_offsets[e], f.head_offsets[e + 1], largest)
            continue
        tail, head = f.tail_offsets[e], f.head_offsets[e]
        for i in range(f.tail_offsets[e + 1] - tail):  # the operator contains only this difference
            size = float(abs(f.tail_data[tail + i] - f.head_data[head + i]))
            if size > largest:
                largest = size
    for k in range(c.half_ptr[a], c.half_ptr[a + 1]):
        e = c.half_edges[k] >> 1
        _, d, data, begin = map_at(f, e, c.half_edges[k] & 1)
        largest = largest_entry(data, begin, begin + f.edge_dims[e] * d, largest)
    return 1 / power_of_two(largest)


@subkernel
def scaled_map(data, begin, count, unit, out, at):
    """Write unit times the ``count`` entries of a map to ``out``, starting at index ``at``."""
    for i in range(count):
        out[(at + i) & NOT_NEGATIVE] = data[(begin + i) & NOT_NEGATIVE] * unit


@subkernel
def assemble(a, f, c, unit, maps, out):
    """Write the lower triangle of unit^2 times cluster a's local operator, N_a x N_a row-major.

    Entries above the diagonal are undefined. Maps are scaled before they are squared, so that
    squares neither over- nor underflow; ``maps`` is workspace for both maps of an edge.
    """
    start = np.int64(0)  # int64, since callees would be compiled again for a literal
    # arrays are taken from the tuples once: LLVM would load them again after every write
    edges, vertex_dims, edge_dims, local = f.edges, f.vertex_dims, f.edge_dims, c.local_offsets
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets, internal = f.head_data, f.head_offsets, c.internal_edges
    n = c.dims[a]
    for i in range(n * n):
        out[i] = 0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = internal[k]
        u, v, rows = edges[e, 0], edges[e, 1], edge_dims[e]
        du, at_u, tail = vertex_dims[u], local[u], tail_offsets[e]
        dv, at_v, head = vertex_dims[v], local[v], head_offsets[e]
        h = rows * du
        if u == v:
            for i in range(h):
                maps[i] = (tail_data[tail + i] - head_data[head + i]) * unit
            add_gram(out, (at_u * (n + 1), n), maps, (start, du), maps, (start, du), rows, 1.0)
            continue
        scaled_map(tail_data, tail, h, unit, maps, start)
        scaled_map(head_data, head, rows * dv, unit, maps, h)
        add_gram(out, (at_u * (n + 1), n), maps, (start, du), maps, (start, du), rows, 1.0)
        add_gram(out, (at_v * (n + 1), n), maps, (h, dv), maps, (h, dv), rows, 1.0)
        if at_u > at_v:
            add_gram(out, (at_u * n + at_v, n), maps, (start, du), maps, (h, dv), rows, -1.0)
        else:
            add_gram(out, (at_v * n + at_u, n), maps, (h, dv), maps, (start, du), rows, -1.0)
    for k in range(c.half_ptr[a], c.half_ptr[a + 1]):
        e = c.half_edges[k] >> 1
        v, d, data, begin = map_at(f, e, c.half_edges[k] & 1)
        shape = start, d
        scaled_map(data, begin, f.edge_dims[e] * d, unit, maps, start)
        at = c.local_offsets[v] * (n + 1)
        add_gram(out, (at, n), maps, shape, maps, shape, f.edge_dims[e], 1.0)


@subkernel
def add_map(data, begin, rows, columns, sign, out, n):
    """Add sign times a map, rows x columns from ``begin``, to a matrix of row length n."""
    for q in range(rows):
        for i in range(columns):
            out[q * n + i] += sign * data[begin + q * columns + i]


@subkernel
def stack(a, f, c, rows, out):
    """Write delta_a and, below it, the maps of the half-edges: row-major, rows x N_a.

    The Gram matrix of this stack is the local operator.
    """
    n, at = c.dims[a], 0
    for i in range(rows * n):
        out[i] = 0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = c.internal_edges[k]
        for end in range(2):
            v, d, data, begin = map_at(f, e, end)
            to = out[at + c.local_offsets[v] :]
            add_map(data, begin, f.edge_dims[e], d, 1.0 - 2 * end, to, n)
        at += f.edge_dims[e] * n
    for k in range(c.half_ptr[a], c.half_ptr[a + 1]):
        e = c.half_edges[k] >> 1
        v, d, data, begin = map_at(f, e, c.half_edges[k] & 1)
        add_map(data, begin, f.edge_dims[e], d, 1.0, out[at + c.local_offsets[v] :], n)
        at += f.edge_dims[e] * n


class KernelWorkspace(NamedTuple):
    """Workspace of ``delta_kernel`` for patches or clusters up to rows x N.

    N is the largest dimension of a patch or cluster.
    """

    s: Workspace  # for matrices up to rows x N and their singular vectors, and for clusters
    a: np.ndarray  # (N N,) L_T, then A and its factor
    delta: np.ndarray  # delta_T in the unit of the maps, then columns of [X_b; target Y] as rows
    basis: np.ndarray  # (N N,) an orthonormal basis of ker delta_T as rows, then of K_C
    other: np.ndarray  # (N N,) a second such basis, then X, then Y, as rows


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
    count = np.int64(4)  # number of start vectors, doubled while all of them converge to the kernel
    for sign in range(-1, 2, 2):
        for i in range(n * n):
            spare[i] = a[i]
        for i in range(n):
            spare[i * n + i] += sign * mu
        info = potrf(spare, n, s)
        if sign < 0 and info == 0:
            return 0, 0
    if info != 0:
        count, skewed = n, False
    stack(patch, f, c, rows, delta)
    for i in range(rows * n):
        delta[i] *= unit
    k, steps = np.int64(0), 0
    to_rows, from_rows, plain = (NEITHER, TRANSPOSED), (ADJOINT, NEITHER), (NEITHER, NEITHER)
    while 3 * count <= n and count <= rows:  # else count - rows singular values are not written
        fill_random(basis, count * n, np.int64(0))
        for _ in range(3):
            potrs(spare, n, basis, count, s)
            orthonormalize(basis, n, 0, count)
        for i in range(count * n):  # conjugate back: LAPACK read the conjugate of L_T
            basis[i] = np.conj(basis[i])
        gemm(to_rows, (rows, count, n), ASSIGN, delta, basis, matrix, s)
        info = singular_rows(rows, count, True, s)
        if info != 0:
            return 0, info
        k = 0  # number of vectors to refine; the others are far from the kernel
        while k < count and w[count - 1 - k] ** 2 <= 100 * mu:
            k += 1
        if k == 0:
            return 0, 0
        if k < count:
            gemm(plain, (k, n, count), ASSIGN, z[(count - k) * count :], basis, other, s)
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
            basis[i] = other[i] = z[rank * n + i]
        if not skewed or k == 0 or info != 0:
            return k, info
    for _ in range(max(steps, 2)):
        gemm(to_rows, (rows, k, n), ASSIGN, delta, other, matrix, s)
        gemm(from_rows, (k, n, rows), ASSIGN, matrix, delta, basis, s)
        potrs(spare, n, basis, k, s)
        for i in range(k * n):
            other[i] -= np.conj(basis[i])
        orthonormalize(other, n, 0, k)
    if steps == 0:
        for i in range(k * n):
            basis[i] = other[i]
        return k, info
    gemm(to_rows, (rows, k, n), ASSIGN, delta, other, matrix, s)
    info = singular_rows(rows, k, True, s)
    dim = np.int64(0)
    while dim < k and w[k - 1 - dim] <= tolerance * norm:
        dim += 1
    if dim > 0:
        gemm(plain, (dim, n, k), ASSIGN, z[(k - dim) * k :], other, basis, s)
        orthonormalize(basis, n, 0, dim)
    return dim, info
