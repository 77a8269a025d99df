"""Patches: a cluster and the rings around it, as index arrays."""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import kernel


class Neighbours(NamedTuple):
    """The graph by vertex: ``ends[starts[v] : starts[v + 1]]`` and how strong the couplings are."""

    starts: np.ndarray  # (n + 1,)
    ends: np.ndarray
    strengths: np.ndarray


class Patches(NamedTuple):
    """The patch of every cluster, and what is needed to find its edges.

    The vertices of patch a are ``members[starts[a] : starts[a] + counts[a]]``, first those of the
    cluster, ascending.
    """

    members: np.ndarray
    starts: np.ndarray  # (K + 1,)
    counts: np.ndarray  # (K,)
    dims: np.ndarray  # (K,) dimension of C^0 on the patch
    low_ptr: np.ndarray  # (n + 1,)
    low_edges: np.ndarray  # (m,) edges by their end of fewer edges, so that no list is long
    diagonal: np.ndarray  # (dim_c0,) diag(L)


class PatchIndex(NamedTuple):
    """One patch, as ``Clusters`` would hold it if it were the only cluster."""

    dims: np.ndarray  # (1,)
    internal_edges: np.ndarray
    internal_ptr: np.ndarray  # (2,)
    local_offsets: np.ndarray  # (n_vertices,) -1 outside
    half_edges: np.ndarray  # (0,) a patch has none
    half_ptr: np.ndarray  # (2,)


@kernel
def diagonal(f, out):
    """Write diag(L)."""
    out[:] = 0
    for e in range(f.edges.shape[0]):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        for q in range(f.edge_dims[e]):
            tail, head = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            if u == v:
                for i in range(du):
                    out[f.vertex_offsets[u] + i] += (
                        float(abs(f.tail_data[tail + i] - f.head_data[head + i])) ** 2
                    )
                continue
            for i in range(du):
                out[f.vertex_offsets[u] + i] += float(abs(f.tail_data[tail + i])) ** 2
            for i in range(dv):
                out[f.vertex_offsets[v] + i] += float(abs(f.head_data[head + i])) ** 2


@kernel
def coarse_number(size):
    """Round to 20 bits, so that equal strengths remain equal where rounding told them apart."""
    if size == 0:
        return 0.0
    fraction, power = math.frexp(size)
    return math.ldexp(math.floor(fraction * 2.0**20 + 0.5), power - 20)


@kernel
def grow_patches(lo, hi, f, c, links, rings, patches):
    """Fill the patches of clusters lo .. hi, ring after ring, while dim T <= 2 dim C.

    Of a ring the neighbours most strongly coupled come first.
    """
    starts, ends, weights = links.starts, links.ends, links.strengths
    members, counts, dims = patches.members, patches.counts, patches.dims
    n_vertices = f.vertex_dims.size
    seen = np.full(n_vertices, -1, np.int64)
    strength = np.zeros(n_vertices)
    candidates = np.empty(n_vertices, np.int64)
    for a in range(lo, hi):
        begin = patches.starts[a]
        count = 0
        for k in range(c.member_ptr[a], c.member_ptr[a + 1]):
            members[begin + count] = c.members[k]
            seen[c.members[k]] = a
            count += 1
        dims[a] = c.dims[a]
        first = 0
        for _ in range(rings):
            found = 0
            for k in range(first, count):
                v = members[begin + k]
                for i in range(starts[v], starts[v + 1]):
                    u = ends[i]
                    if seen[u] == a or f.vertex_dims[u] == 0:
                        continue
                    if strength[u] == 0:  # a coupling of zero may come more than once
                        candidates[found] = u
                        found += 1
                        strength[u] = 5e-324
                    strength[u] += weights[i]
            if found == 0:
                break
            first = count
            ring = candidates[:found]
            ring.sort()
            keys = np.empty(found)
            for k in range(found):
                keys[k] = -coarse_number(strength[ring[k]])
                strength[ring[k]] = 0
            cut = False
            for k in np.argsort(keys, kind="mergesort"):
                u = ring[k]
                if dims[a] + f.vertex_dims[u] > 2 * c.dims[a]:
                    cut = True
                    continue
                members[begin + count] = u
                seen[u] = a
                dims[a] += f.vertex_dims[u]
                count += 1
            if cut:
                break
        counts[a] = count


@kernel
def enter(a, f, p, t):
    """Number the coordinates of patch a and list its edges; return how many rows delta_T has."""
    at = 0
    begin, end = p.starts[a], p.starts[a] + p.counts[a]
    for k in range(begin, end):
        v = p.members[k]
        t.local_offsets[v] = at
        at += f.vertex_dims[v]
    count, rows = 0, 0
    for k in range(begin, end):
        v = p.members[k]
        for i in range(p.low_ptr[v], p.low_ptr[v + 1]):
            e = p.low_edges[i]
            if t.local_offsets[f.edges[e, 0]] >= 0 and t.local_offsets[f.edges[e, 1]] >= 0:
                t.internal_edges[count] = e
                count += 1
                rows += f.edge_dims[e]
    t.dims[0] = at
    t.internal_ptr[1] = count
    return rows


@kernel
def leave(a, p, t):
    """Forget patch a."""
    for k in range(p.starts[a], p.starts[a] + p.counts[a]):
        t.local_offsets[p.members[k]] = -1
