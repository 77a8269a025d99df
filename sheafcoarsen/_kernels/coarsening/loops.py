"""Energy retained inside each cluster, and its factor, which is the map of a loop.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``, ``R`` the ``Blocks`` of the prolongation.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import brought_near_one, eigh_lowest, largest_entry, power_of_two
from sheafcoarsen._kernels.jit import borrowing_kernel
from sheafcoarsen._kernels.modes import cluster_unit


class RetainedEnergy(NamedTuple):
    """Retained energies H_a = R_a* L_a R_a, in the units of the clusters' maps and of R_a."""

    starts: np.ndarray  # (K + 1,) offsets of the r_a x r_a matrices
    matrices: np.ndarray
    map_units: np.ndarray  # (K,) one over a power of two above the largest entry of the maps
    block_units: np.ndarray  # (K,) one over a power of two above the largest entry of R_a
    columns: np.ndarray  # (K,) largest squared norm of a column of R_a, in the unit of R_a


class Loops(NamedTuple):
    """Factors B_a of the retained energies: rows[a] rows of r_a entries from index starts[a] on."""

    rows: np.ndarray  # (K,)
    starts: np.ndarray  # (K + 1,)
    factors: np.ndarray


@borrowing_kernel
def internal_traces(f, c, map_units, out):
    """Add the trace of the diagonal block of L_a at each vertex v of cluster a to out[v].

    It is in the unit of the maps of cluster a.
    """
    for e in c.internal_edges:
        u, v = f.edges[e, 0], f.edges[e, 1]
        unit, tail, head = map_units[c.labels[u]], f.tail_offsets[e], f.head_offsets[e]
        if u == v:
            for i in range(f.tail_offsets[e + 1] - tail):
                out[u] += abs((f.tail_data[tail + i] - f.head_data[head + i]) * unit) ** 2
            continue
        for i in range(tail, f.tail_offsets[e + 1]):
            out[u] += abs(f.tail_data[i] * unit) ** 2
        for i in range(head, f.head_offsets[e + 1]):
            out[v] += abs(f.head_data[i] * unit) ** 2


@borrowing_kernel
def retained_energy(lo, hi, f, c, R, out, y):
    """Compute the fields of ``out`` for clusters lo .. hi; H_a = (delta_a R_a)* (delta_a R_a).

    ``y`` is workspace for a row of delta_a R_a.
    """
    edges, vertex_offsets, indptr, data = f.edges, f.vertex_offsets, R.indptr, R.data
    tail_data, head_data, matrices, starts = f.tail_data, f.head_data, out.matrices, out.starts
    for a in range(lo, hi):
        r, at, members = R.ranks[a], starts[a], c.members[c.member_ptr[a] : c.member_ptr[a + 1]]
        unit, largest = cluster_unit(a, f, c), 0.0
        for v in members:
            for i in range(vertex_offsets[v], vertex_offsets[v] + f.vertex_dims[v]):
                p = np.int64(indptr[i])
                largest = largest_entry(data, p, p + r, largest)
        block_unit = 1 / power_of_two(largest)
        out.map_units[a], out.block_units[a], out.columns[a] = unit, block_unit, 0
        for j in range(r):
            total = 0.0
            for v in members:
                for i in range(vertex_offsets[v], vertex_offsets[v] + f.vertex_dims[v]):
                    total += abs(data[indptr[i] + j] * block_unit) ** 2
            out.columns[a] = max(out.columns[a], total)
        for i in range(at, at + r * r):
            matrices[i] = 0
        for e in c.internal_edges[c.internal_ptr[a] : c.internal_ptr[a + 1]]:
            u, v = edges[e, 0], edges[e, 1]
            du, dv = f.vertex_dims[u], f.vertex_dims[v]
            for q in range(f.edge_dims[e]):
                tail, head = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
                for j in range(r):
                    y[j] = 0
                for i in range(du):
                    x = tail_data[tail + i]
                    if u == v:
                        x -= head_data[head + i]
                    x *= unit
                    p = indptr[vertex_offsets[u] + i]
                    for j in range(r):
                        y[j] += x * data[p + j]
                if u != v:
                    for i in range(dv):
                        x = head_data[head + i] * unit
                        p = indptr[vertex_offsets[v] + i]
                        for j in range(r):
                            y[j] -= x * data[p + j]
                for i in range(r):
                    y[i] *= block_unit
                for i in range(r):
                    z = np.conj(y[i])
                    for j in range(r):
                        matrices[at + i * r + j] += z * y[j]


@borrowing_kernel
def factor(lo, hi, ranks, energy, zero, s, rows):
    """Factor H_a = B_a* B_a for clusters lo .. hi; B_a = diag(sqrt(mu)) V* has rows[a] rows.

    ``zero`` are (rounding, sizes): eigenvalues mu up to rounding[a] max(sizes[a], norm(H_a)) are
    zero. sizes[a] is in the units of the cluster; norm(H_a) may be larger if columns of R_a are
    dependent. B_a, followed by zeros, overwrites H_a. Returns -1, or the first
    cluster for which LAPACK failed.
    """
    matrices, starts, matrix, (rounding, sizes) = energy.matrices, energy.starts, s.a, zero
    for a in range(lo, hi):
        r, at = ranks[a], starts[a]
        rows[a] = 0
        for i in range(r * r):
            matrix[i] = matrices[at + i]
            matrices[at + i] = 0
        scale = brought_near_one(matrix, r)
        if scale == 0:
            continue
        if eigh_lowest(r, r, s, s.reduction) != 0:
            return a
        level = rounding[a] * max(sizes[a], s.w[r - 1] * scale)
        for j in range(r):
            mu = s.w[j] * scale
            if not mu > level:
                continue
            root = math.sqrt(mu) / energy.map_units[a] / energy.block_units[a]
            to = at + rows[a] * r
            for i in range(r):
                matrices[to + i] = root * np.conj(s.z[j * r + i])
            rows[a] += 1
    return -1
