"""Local Laplacians and their lowest eigenpairs, cluster by cluster, in a workspace that is never stored.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``, ``s`` a LAPACK ``Workspace``.
"""

import math

import numpy as np

from sheafcoarsen._kernels.hermitian import eigh_lowest, eigvalsh
from sheafcoarsen._kernels.jit import kernel, summing_kernel
from sheafcoarsen._kernels.lapack import singular_rows
from sheafcoarsen._kernels.products import NOT_NEGATIVE, put_product


@kernel
def power_of_two(size):
    """The power of two just above ``size``, kept away from where its inverse would overflow; 1 for 0."""
    if size == 0:
        return 1.0
    return math.ldexp(1.0, min(max(math.frexp(size)[1], -1000), 1000))


@kernel
def cluster_unit(a, f, c, half_ptr, half_edges):
    """One over the power of two just above the largest entry of the maps that enter cluster a's local operator."""
    largest = 0.0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = c.internal_edges[k]
        tail, head = f.tail_offsets[e], f.head_offsets[e]
        if f.edges[e, 0] == f.edges[e, 1]:  # of a loop only the difference enters
            for i in range(f.tail_offsets[e + 1] - tail):
                largest = max(largest, float(abs(f.tail_data[tail + i] - f.head_data[head + i])))
            continue
        for i in range(tail, f.tail_offsets[e + 1]):
            largest = max(largest, float(abs(f.tail_data[i])))
        for i in range(head, f.head_offsets[e + 1]):
            largest = max(largest, float(abs(f.head_data[i])))
    for k in range(half_ptr[a], half_ptr[a + 1]):
        e = half_edges[k] >> 1
        data = f.tail_data if half_edges[k] & 1 == 0 else f.head_data
        starts = f.tail_offsets if half_edges[k] & 1 == 0 else f.head_offsets
        for i in range(starts[e], starts[e + 1]):
            largest = max(largest, float(abs(data[i])))
    return 1 / power_of_two(largest)


@kernel
def scaled_map(data, begin, end, unit, out, at):
    """out[at ...] = unit times one map."""
    for i in range(begin, end):
        out[(at + i - begin) & NOT_NEGATIVE] = data[i & NOT_NEGATIVE] * unit


@kernel
def assemble(a, f, c, half_ptr, half_edges, unit, m, out):
    """Fill the lower triangle of unit^2 times cluster a's local operator, N_a x N_a row-major; what is above it means nothing.

    The maps are scaled before they are squared, so that neither over- nor underflows; ``m`` has room for the maps of an edge.
    Half-edges, 2 e + end, are what the principal block holds beyond L_a.
    """
    # taken out of the tuples once: they count references at every access
    edges, vertex_dims, edge_dims, local = f.edges, f.vertex_dims, f.edge_dims, c.local_offsets
    tail_data, tail_offsets, head_data, head_offsets = f.tail_data, f.tail_offsets, f.head_data, f.head_offsets
    inner = c.internal_edges
    one = out.dtype.type(1).real
    n = c.dims[a]
    out[: n * n] = 0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = inner[k]
        u, v, rows = edges[e, 0], edges[e, 1], edge_dims[e]
        du, dv, at, to = vertex_dims[u], vertex_dims[v], local[u], local[v]
        if u == v:
            for i in range(rows * du):
                m[i] = (tail_data[tail_offsets[e] + i] - head_data[head_offsets[e] + i]) * unit
            put_product(out, at * (n + 1), n, m, 0, 1, du, True, m, 0, du, du, rows, du, one, True)
            continue
        h = rows * du
        scaled_map(tail_data, tail_offsets[e], tail_offsets[e + 1], unit, m, 0)
        scaled_map(head_data, head_offsets[e], head_offsets[e + 1], unit, m, h)
        put_product(out, at * (n + 1), n, m, 0, 1, du, True, m, 0, du, du, rows, du, one, True)
        put_product(out, to * (n + 1), n, m, h, 1, dv, True, m, h, dv, dv, rows, dv, one, True)
        if at > to:
            put_product(out, at * n + to, n, m, 0, 1, du, True, m, h, dv, du, rows, dv, -one, True)
        else:
            put_product(out, to * n + at, n, m, h, 1, dv, True, m, 0, du, dv, rows, du, -one, True)
    for k in range(half_ptr[a], half_ptr[a + 1]):
        e = half_edges[k] >> 1
        v, rows = edges[e, half_edges[k] & 1], edge_dims[e]
        d, at = vertex_dims[v], local[v]
        if half_edges[k] & 1 == 0:
            scaled_map(tail_data, tail_offsets[e], tail_offsets[e + 1], unit, m, 0)
        else:
            scaled_map(head_data, head_offsets[e], head_offsets[e + 1], unit, m, 0)
        put_product(out, at * (n + 1), n, m, 0, 1, d, True, m, 0, d, d, rows, d, one, True)


@summing_kernel
def inf_norm(a, n):
    """norm(A, inf) of a Hermitian matrix given by its lower triangle."""
    sums = np.zeros(n)
    for i in range(n):
        row = a[i * n : i * n + i + 1]
        total = float(abs(row[i]))
        for j in range(i):
            size = float(abs(row[j]))
            total += size
            sums[j] += size
        sums[i] += total
    return sums.max()


@kernel
def brought_near_one(a, n):
    """Divide the lower triangle of a semidefinite matrix by a power of two where it is far from 1; return that, or 0 if A = 0.

    The largest entry of such a matrix stands on its diagonal.
    """
    largest = 0.0
    for i in range(n):
        largest = max(largest, float(abs(a[i * n + i])))
    if largest == 0 or 1e-3 < largest < 1e3:
        return 1.0 if largest > 0 else 0.0
    scale = power_of_two(largest)
    for i in range(n):
        row = a[i * n : i * n + i + 1]
        for j in range(i + 1):
            row[j] /= scale  # not times 1 / scale, which single precision may not hold
    return scale


@kernel
def fix_phase(z, at, n, sqrt_eps):
    """Make the first entry whose modulus is nearly the largest real and positive, so that runs repeat."""
    largest = 0.0
    for i in range(n):
        largest = max(largest, float(abs(z[at + i])))
    for i in range(n):
        size = float(abs(z[at + i]))
        if size >= (1 - sqrt_eps) * largest and size > 0:
            turn = np.conj(z[at + i]) / size
            for k in range(n):
                z[at + k] *= turn
            z[at + i] = size
            return


@kernel
def store(a, r, f, c, z, n, indptr, data):
    """Write the first r rows of z, vectors of length n, as the columns of R_a."""
    for k in range(c.member_ptr[a], c.member_ptr[a + 1]):
        v = c.members[k]
        row = f.vertex_offsets[v]
        for i in range(f.vertex_dims[v]):
            p = indptr[row + i]
            for j in range(r):
                data[p + j] = z[j * n + c.local_offsets[v] + i]


@kernel
def store_rows(a, r, f, c, z, eps, indptr, data):
    """Fix the phases of the first r rows of z and write them as the columns of R_a."""
    for j in range(r):
        fix_phase(z, j * c.dims[a], c.dims[a], math.sqrt(eps))
    store(a, r, f, c, z, c.dims[a], indptr, data)


@kernel
def normalized(out, count):
    """Divide by a power of two near the largest entry, which is exact; return it, or 0 where all entries are zero."""
    largest = 0.0
    for i in range(count):
        largest = max(largest, float(abs(out[i])))
    if largest == 0:
        return 0.0
    scale = power_of_two(largest)
    for i in range(count):
        out[i] /= scale  # not times 1 / scale, which single precision may not hold
    return scale


@kernel
def local_modes(
    lo, hi, f, c, half_ptr, half_edges, ranks, left_out, eps, s,
    indptr, data, value_starts, values, next_values, norms, tied,
):  # fmt: skip
    """Lowest modes of clusters lo .. hi.

    Mode vectors go to the rows of R (``data`` at ``indptr``), eigenvalues to ``values``. Clusters ``left_out`` are not touched.
    Returns -1, or the first cluster at which LAPACK failed.
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
            if eigh_lowest(n, min(r + 1, n), eps, s) != 0:
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
        if scale > 0 and eigvalsh(n, eps, s) != 0:
            return a
        for i in range(n):
            values[value_starts[a] + i] = max(float(s.w[i]), 0.0) * scale / unit / unit if scale > 0 else 0
    return -1


@kernel
def stack(a, f, c, half_ptr, half_edges, rows, out):
    """Write the matrix whose Gram matrix is cluster a's local operator, row-major, rows[a] x N_a.

    Its rows are delta_a and then, for the principal operator, the near maps of the crossing half-edges.
    """
    n = c.dims[a]
    for i in range(rows[a] * n):
        out[i] = 0
    row = 0
    for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
        e = c.internal_edges[k]
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        for q in range(f.edge_dims[e]):
            at = row * n + c.local_offsets[u]
            for i in range(du):
                out[at + i] += f.tail_data[f.tail_offsets[e] + q * du + i]
            at = row * n + c.local_offsets[v]
            for i in range(dv):
                out[at + i] -= f.head_data[f.head_offsets[e] + q * dv + i]
            row += 1
    for k in range(half_ptr[a], half_ptr[a + 1]):
        e, end = half_edges[k] >> 1, half_edges[k] & 1
        v = f.edges[e, end]
        d = f.vertex_dims[v]
        data = f.tail_data if end == 0 else f.head_data
        begin = f.tail_offsets[e] if end == 0 else f.head_offsets[e]
        for q in range(f.edge_dims[e]):
            at = row * n + c.local_offsets[v]
            for i in range(d):
                out[at + i] = data[begin + q * d + i]
            row += 1


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
            tied[a] = r > 0 and next_values[a] - values[value_starts[a] + r - 1] <= sqrt_eps * norms[a]
        store(a, r, f, c, s.z, n, indptr, data)
    return -1
