"""The energy retained inside each cluster and its factor, which becomes the map of a loop.

``f`` is a ``SheafArrays``, ``c`` a ``Clusters``, ``R`` the ``Blocks`` of the prolongation.
"""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import eigh_lowest, normalized, power_of_two
from sheafcoarsen._kernels.jit import kernel, subkernel
from sheafcoarsen._kernels.modes import cluster_unit


class RetainedEnergy(NamedTuple):
    """H_a = R_a* L_a R_a of every cluster, maps and R_a in units of their own."""

    starts: np.ndarray  # (K + 1,) where the r_a x r_a matrix of cluster a begins
    matrices: np.ndarray
    map_units: np.ndarray  # (K,) one over a power of two above the largest entry of the maps
    block_units: np.ndarray  # (K,) the same of R_a
    columns: np.ndarray  # (K,) largest squared norm of a column of R_a, in its unit


class Loops(NamedTuple):
    """Factors B_a of the retained energies: rows[a] rows of r_a entries, from starts[a] on."""

    rows: np.ndarray  # (K,)
    starts: np.ndarray  # (K + 1,)
    factors: np.ndarray


@kernel
def put_loops(loops, widths, to, out):
    """Write B_a / 2 of every cluster to out[to[a] ...]."""
    rows, starts, factors = loops.rows, loops.starts, loops.factors
    for a in range(rows.size):
        for i in range(rows[a] * widths[a]):
            out[to[a] + i] = factors[starts[a] + i] / 2


@subkernel
def measure(a, f, c, R, out):
    """Find the units of cluster a's maps and of R_a, and its largest column."""
    indptr, data, r = R.indptr, R.data, R.ranks[a]
    out.map_units[a] = cluster_unit(a, f, c)
    largest = 0.0
    for k in range(c.member_ptr[a], c.member_ptr[a + 1]):
        v = c.members[k]
        for i in range(f.vertex_dims[v]):
            p = indptr[f.vertex_offsets[v] + i]
            for j in range(r):
                largest = max(largest, float(abs(data[p + j])))
    unit = 1 / power_of_two(largest)
    out.block_units[a] = unit
    sums = np.zeros(r)
    for k in range(c.member_ptr[a], c.member_ptr[a + 1]):
        v = c.members[k]
        for i in range(f.vertex_dims[v]):
            p = indptr[f.vertex_offsets[v] + i]
            for j in range(r):
                sums[j] += abs(data[p + j] * unit) ** 2
    out.columns[a] = 0
    for j in range(r):
        out.columns[a] = max(out.columns[a], sums[j])


@kernel
def internal_traces(f, c, map_units, out):
    """out[v] += trace of the diagonal block that internal edges put at v, in units of clusters."""
    for k in range(c.internal_edges.size):
        e = c.internal_edges[k]
        u, v = f.edges[e, 0], f.edges[e, 1]
        unit = map_units[c.labels[u]]
        if u == v:
            begin = f.head_offsets[e]
            for i in range(f.tail_offsets[e + 1] - f.tail_offsets[e]):
                difference = f.tail_data[f.tail_offsets[e] + i] - f.head_data[begin + i]
                out[u] += abs(difference * unit) ** 2
            continue
        for i in range(f.tail_offsets[e], f.tail_offsets[e + 1]):
            out[u] += abs(f.tail_data[i] * unit) ** 2
        for i in range(f.head_offsets[e], f.head_offsets[e + 1]):
            out[v] += abs(f.head_data[i] * unit) ** 2


@kernel
def retained_energy(lo, hi, f, c, R, out):
    """H_a = (delta_a R_a)* (delta_a R_a) of clusters lo .. hi, and their units."""
    indptr, data, matrices = R.indptr, R.data, out.matrices
    for a in range(lo, hi):
        measure(a, f, c, R, out)
        r, at = R.ranks[a], out.starts[a]
        unit, block_unit = out.map_units[a], out.block_units[a]
        for i in range(at, at + r * r):
            matrices[i] = 0
        y = np.empty(r, data.dtype)
        for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
            e = c.internal_edges[k]
            u, v = f.edges[e, 0], f.edges[e, 1]
            du, dv = f.vertex_dims[u], f.vertex_dims[v]
            for q in range(f.edge_dims[e]):
                tail, head = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
                for j in range(r):
                    y[j] = 0
                if u == v:
                    for i in range(du):
                        x = f.tail_data[tail + i] - f.head_data[head + i]
                        p = indptr[f.vertex_offsets[u] + i]
                        for j in range(r):
                            y[j] += x * unit * data[p + j]
                else:
                    for i in range(du):
                        x = f.tail_data[tail + i] * unit
                        p = indptr[f.vertex_offsets[u] + i]
                        for j in range(r):
                            y[j] += x * data[p + j]
                    for i in range(dv):
                        x = f.head_data[head + i] * unit
                        p = indptr[f.vertex_offsets[v] + i]
                        for j in range(r):
                            y[j] -= x * data[p + j]
                for i in range(r):
                    y[i] *= block_unit
                for i in range(r):
                    z = np.conj(y[i])
                    for j in range(r):
                        matrices[at + i * r + j] += z * y[j]


@kernel
def factor(lo, hi, ranks, energy, levels, eps, s, rows):
    """H_a = B_a* B_a for clusters lo .. hi: B_a = diag(sqrt(mu)) V*, rows[a] rows, mu > levels[a].

    B_a takes the place of H_a, zeros below it. ``levels`` are in units of the cluster, B_a is not.
    Returns -1, or the first cluster at which LAPACK failed.
    """
    matrices, starts = energy.matrices, energy.starts
    for a in range(lo, hi):
        r, at = ranks[a], starts[a]
        rows[a] = 0
        for i in range(r * r):
            s.a[i] = matrices[at + i]
            matrices[at + i] = 0
        scale = normalized(s.a, r * r)
        if scale == 0:
            continue
        if eigh_lowest(r, r, eps, s, s.reduction) != 0:
            return a
        for j in range(r):
            mu = float(s.w[j]) * scale
            if not mu > levels[a]:
                continue
            root = math.sqrt(mu) / energy.map_units[a] / energy.block_units[a]
            to = at + rows[a] * r
            for i in range(r):
                matrices[to + i] = root * np.conj(s.z[j * r + i])
            rows[a] += 1
    return -1
