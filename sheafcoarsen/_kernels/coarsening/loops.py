"""Energy retained inside each cluster, and its factor, which is the map of a loop.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``, ``R`` the ``Blocks`` of the prolongation.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import eigh_lowest, normalized, power_of_two
from sheafcoarsen._kernels.jit import kernel, subkernel
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


@subkernel
def measure(a, f, c, R, out):
    """Compute units of cluster a's maps and of R_a, and the largest squared column norm of R_a."""
    vertex_dims, vertex_offsets = f.vertex_dims, f.vertex_offsets
    members, member_ptr = c.members, c.member_ptr
    indptr, data, r = R.indptr, R.data, R.ranks[a]
    out.map_units[a] = cluster_unit(a, f, c)
    largest = 0.0
    for k in range(member_ptr[a], member_ptr[a + 1]):
        v = members[k]
        for i in range(vertex_dims[v]):
            p = indptr[vertex_offsets[v] + i]
            for j in range(r):
                largest = max(largest, float(abs(data[p + j])))
    unit = 1 / power_of_two(largest)
    out.block_units[a] = unit
    sums = np.zeros(r)
    for k in range(member_ptr[a], member_ptr[a + 1]):
        v = members[k]
        for i in range(vertex_dims[v]):
            p = indptr[vertex_offsets[v] + i]
            for j in range(r):
                sums[j] += abs(data[p + j] * unit) ** 2
    largest = 0.0
    for j in range(r):
        largest = max(largest, sums[j])
    out.columns[a] = largest


@kernel
def internal_traces(f, c, map_units, out):
    """Add to out[v] the trace of v's diagonal block of internal edges, in the cluster's unit."""
    edges = f.edges
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    internal_edges, labels = c.internal_edges, c.labels
    for k in range(internal_edges.size):
        e = internal_edges[k]
        u, v = edges[e, 0], edges[e, 1]
        unit = map_units[labels[u]]
        if u == v:
            begin = head_offsets[e]
            for i in range(tail_offsets[e + 1] - tail_offsets[e]):
                difference = tail_data[tail_offsets[e] + i] - head_data[begin + i]
                out[u] += abs(difference * unit) ** 2
            continue
        for i in range(tail_offsets[e], tail_offsets[e + 1]):
            out[u] += abs(tail_data[i] * unit) ** 2
        for i in range(head_offsets[e], head_offsets[e + 1]):
            out[v] += abs(head_data[i] * unit) ** 2


@kernel
def retained_energy(lo, hi, f, c, R, out):
    """Compute H_a = (delta_a R_a)* (delta_a R_a) of clusters lo .. hi, and their units."""
    edges, edge_dims, vertex_dims = f.edges, f.edge_dims, f.vertex_dims
    vertex_offsets = f.vertex_offsets
    tail_data, tail_offsets = f.tail_data, f.tail_offsets
    head_data, head_offsets = f.head_data, f.head_offsets
    internal_edges, internal_ptr = c.internal_edges, c.internal_ptr
    indptr, data, matrices, ranks, starts = R.indptr, R.data, out.matrices, R.ranks, out.starts
    map_units, block_units = out.map_units, out.block_units
    for a in range(lo, hi):
        measure(a, f, c, R, out)
        r, at = ranks[a], starts[a]
        unit, block_unit = map_units[a], block_units[a]
        for i in range(at, at + r * r):
            matrices[i] = 0
        y = np.empty(r, data.dtype)
        for k in range(internal_ptr[a], internal_ptr[a + 1]):
            e = internal_edges[k]
            u, v = edges[e, 0], edges[e, 1]
            du, dv = vertex_dims[u], vertex_dims[v]
            for q in range(edge_dims[e]):
                tail, head = tail_offsets[e] + q * du, head_offsets[e] + q * dv
                for j in range(r):
                    y[j] = 0
                if u == v:
                    for i in range(du):
                        x = tail_data[tail + i] - head_data[head + i]
                        p = indptr[vertex_offsets[u] + i]
                        for j in range(r):
                            y[j] += x * unit * data[p + j]
                else:
                    for i in range(du):
                        x = tail_data[tail + i] * unit
                        p = indptr[vertex_offsets[u] + i]
                        for j in range(r):
                            y[j] += x * data[p + j]
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


@kernel
def factor(lo, hi, ranks, energy, zero, eps, s, rows):
    """Factor H_a = B_a* B_a for clusters lo .. hi; B_a = diag(sqrt(mu)) V* has rows[a] rows.

    ``zero`` are 4 n eps and the norms that it is relative to, in units of the cluster. Eigenvalues
    mu up to this level are zero, also relative to norm(H_a), which may be larger if columns of R_a
    are dependent. B_a, followed by zeros, overwrites H_a. Returns -1, or the first cluster for
    which LAPACK failed.
    """
    matrices, starts, map_units = energy.matrices, energy.starts, energy.map_units
    block_units, matrix, w, z, reduction = energy.block_units, s.a, s.w, s.z, s.reduction
    rounding, sizes = zero
    for a in range(lo, hi):
        r, at = ranks[a], starts[a]
        rows[a] = 0
        for i in range(r * r):
            matrix[i] = matrices[at + i]
            matrices[at + i] = 0
        scale = normalized(matrix, r * r)
        if scale == 0:
            continue
        if eigh_lowest(r, r, eps, s, reduction) != 0:
            return a
        level = rounding[a] * max(sizes[a], float(w[r - 1]) * scale)
        for j in range(r):
            mu = float(w[j]) * scale
            if not mu > level:
                continue
            root = math.sqrt(mu) / map_units[a] / block_units[a]
            to = at + rows[a] * r
            for i in range(r):
                matrices[to + i] = root * np.conj(z[j * r + i])
            rows[a] += 1
    return -1
