"""Retained internal energy and its factor, the map of the loop, cluster by cluster."""

import math

import numpy as np

from sheafcoarsen._kernels.dense import eigh_lowest, normalized, power_of_two
from sheafcoarsen._kernels.jit import kernel
from sheafcoarsen._kernels.modes import cluster_unit


@kernel
def half_factors(lo, hi, ranks, starts, factors, kept, to, out):
    """out[to[a] ...] = B_a / 2, the first kept[a] rows that stand in factors at starts[a], clusters lo .. hi."""
    for a in range(lo, hi):
        for i in range(kept[a] * ranks[a]):
            out[to[a] + i] = factors[starts[a] + i] / 2


@kernel
def units(lo, hi, f, c, half_ptr, half_edges, ranks, indptr, data, map_units, block_units):
    """One over powers of two just above the largest entries of cluster a's internal maps and of R_a, clusters lo .. hi."""
    for a in range(lo, hi):
        map_units[a] = cluster_unit(a, f, c, half_ptr, half_edges)
        largest = 0.0
        for k in range(c.member_ptr[a], c.member_ptr[a + 1]):
            v = c.members[k]
            for i in range(f.vertex_dims[v]):
                p = indptr[f.vertex_offsets[v] + i]
                for j in range(ranks[a]):
                    largest = max(largest, float(abs(data[p + j])))
        block_units[a] = 1 / power_of_two(largest)


@kernel
def internal_traces(f, c, map_units, out):
    """out[v] += trace of the diagonal block that the internal edges, maps in units of their cluster, put at vertex v."""
    for k in range(c.internal_edges.size):
        e = c.internal_edges[k]
        u, v = f.edges[e, 0], f.edges[e, 1]
        unit = map_units[c.labels[u]]
        if u == v:
            begin = f.head_offsets[e]
            for i in range(f.tail_offsets[e + 1] - f.tail_offsets[e]):
                out[u] += (
                    abs((f.tail_data[f.tail_offsets[e] + i] - f.head_data[begin + i]) * unit) ** 2
                )
            continue
        for i in range(f.tail_offsets[e], f.tail_offsets[e + 1]):
            out[u] += abs(f.tail_data[i] * unit) ** 2
        for i in range(f.head_offsets[e], f.head_offsets[e + 1]):
            out[v] += abs(f.head_data[i] * unit) ** 2


@kernel
def retained_energy(lo, hi, f, c, ranks, indptr, data, map_units, block_units, starts, out):
    """H_a = (delta_a R_a)* (delta_a R_a) of clusters lo .. hi, r_a x r_a at starts[a], maps and R_a in units of their own."""
    for a in range(lo, hi):
        r = ranks[a]
        at = starts[a]
        unit, block_unit = map_units[a], block_units[a]
        for i in range(at, at + r * r):
            out[i] = 0
        y = np.empty(r, data.dtype)
        for k in range(c.internal_ptr[a], c.internal_ptr[a + 1]):
            e = c.internal_edges[k]
            u, v = f.edges[e, 0], f.edges[e, 1]
            du, dv = f.vertex_dims[u], f.vertex_dims[v]
            for q in range(f.edge_dims[e]):
                for j in range(r):
                    y[j] = 0
                if u == v:
                    for i in range(du):
                        x = (
                            f.tail_data[f.tail_offsets[e] + q * du + i]
                            - f.head_data[f.head_offsets[e] + q * du + i]
                        )
                        p = indptr[f.vertex_offsets[u] + i]
                        for j in range(r):
                            y[j] += x * unit * data[p + j]
                else:
                    for i in range(du):
                        x = f.tail_data[f.tail_offsets[e] + q * du + i] * unit
                        p = indptr[f.vertex_offsets[u] + i]
                        for j in range(r):
                            y[j] += x * data[p + j]
                    for i in range(dv):
                        x = f.head_data[f.head_offsets[e] + q * dv + i] * unit
                        p = indptr[f.vertex_offsets[v] + i]
                        for j in range(r):
                            y[j] -= x * data[p + j]
                for i in range(r):
                    y[i] *= block_unit
                for i in range(r):
                    z = np.conj(y[i])
                    for j in range(r):
                        out[at + i * r + j] += z * y[j]


@kernel
def largest_columns(lo, hi, f, c, ranks, indptr, data, block_units, out):
    """out[a] = largest squared norm of a column of R_a, in its unit, clusters lo .. hi."""
    for a in range(lo, hi):
        r = ranks[a]
        sums = np.zeros(r)
        for k in range(c.member_ptr[a], c.member_ptr[a + 1]):
            v = c.members[k]
            for i in range(f.vertex_dims[v]):
                p = indptr[f.vertex_offsets[v] + i]
                for j in range(r):
                    sums[j] += abs(data[p + j] * block_units[a]) ** 2
        out[a] = 0
        for j in range(r):
            out[a] = max(out[a], sums[j])


@kernel
def factor(lo, hi, ranks, starts, energy, levels, map_units, block_units, eps, s, out, kept):
    """H_a = B_a* B_a for clusters lo .. hi: B_a = diag(sqrt(mu)) V*, rows with mu <= levels[a] left out.

    ``energy`` and ``levels`` are in units of the cluster, B_a is not; ``out`` may be ``energy``.
    Returns -1, or the first cluster at which LAPACK failed.
    """
    for a in range(lo, hi):
        r = ranks[a]
        at = starts[a]
        kept[a] = 0
        for i in range(r * r):
            s.a[i] = energy[at + i]
        scale = normalized(s.a, r * r)
        if scale == 0:
            continue
        if eigh_lowest(r, r, eps, s, s.reduction) != 0:
            return a
        for j in range(r):
            mu = float(s.w[j]) * scale
            if not mu > levels[a]:
                continue
            root = math.sqrt(mu) / map_units[a] / block_units[a]
            to = at + kept[a] * r
            for i in range(r):
                out[to + i] = root * np.conj(s.z[j * r + i])
            kept[a] += 1
    return -1
