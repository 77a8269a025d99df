"""Patches: a cluster and the rings around it, as index arrays."""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import kernel, subkernel


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


@subkernel
def coarse_number(size):
    """Round to 20 bits, so that equal strengths remain equal where rounding told them apart."""
    if size == 0:
        return 0.0
    fraction, power = math.frexp(size)
    return math.ldexp(math.floor(fraction * 2.0**20 + 0.5), power - 20)


@subkernel
def after(u, v, strength):
    """Whether vertex u is coupled less strongly than v, or as strongly and of a higher number."""
    return strength[u] < strength[v] or (strength[u] == strength[v] and u > v)


@subkernel
def sort_by_strength(items, count, strength):
    """Sort ``count`` vertices by strength from above, then by number: a heap, the last on top."""
    for end in range(2 * count - 1, 0, -1):
        # first the heap is built from its middle on, then the last vertex is taken off it
        if end >= count:
            i, size = end - count, count
        else:
            items[0], items[end] = items[end], items[0]
            i, size = 0, end
        v = items[i]
        while True:
            child = 2 * i + 1
            if child >= size:
                break
            other = items[child]
            if child + 1 < size and after(items[child + 1], other, strength):
                child += 1
                other = items[child]
            if not after(other, v, strength):
                break
            items[i] = other
            i = child
        items[i] = v


@kernel
def grow_patches(lo, hi, f, c, links, rings, patches):
    """Fill the patches of clusters lo .. hi, ring after ring, while dim T <= 2 dim C.

    Of a ring the neighbours most strongly coupled come first.
    """
    starts, ends, weights = links.starts, links.ends, links.strengths
    members, counts, dims = patches.members, patches.counts, patches.dims
    vertex_dims, cluster_members, cluster_dims = f.vertex_dims, c.members, c.dims
    member_ptr, begins = c.member_ptr, patches.starts
    n_vertices = vertex_dims.size
    seen = np.full(n_vertices, -1, np.int64)
    strength = np.zeros(n_vertices)
    candidates = np.empty(n_vertices, np.int64)
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
            found = 0
            for k in range(first, count):
                v = members[begin + k]
                for i in range(starts[v], starts[v + 1]):
                    u = ends[i]
                    if seen[u] == a or vertex_dims[u] == 0:
                        continue
                    if strength[u] == 0:  # a coupling of zero may come more than once
                        candidates[found] = u
                        found += 1
                        strength[u] = 5e-324
                    strength[u] += weights[i]
            if found == 0:
                break
            first = count
            for k in range(found):
                u = candidates[k]
                strength[u] = coarse_number(strength[u])
            sort_by_strength(candidates, found, strength)
            cut = False
            for k in range(found):
                u = candidates[k]
                strength[u] = 0
                if dims[a] + vertex_dims[u] > 2 * cluster_dims[a]:
                    cut = True
                    continue
                members[begin + count] = u
                seen[u] = a
                dims[a] += vertex_dims[u]
                count += 1
            if cut:
                break
        counts[a] = count


@subkernel
def enter(a, f, p, t):
    """Number the coordinates of patch a and list its edges; return how many rows delta_T has."""
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
def leave(a, p, t):
    """Forget patch a."""
    members, local, begin = p.members, t.local_offsets, p.starts[a]
    for k in range(begin, begin + p.counts[a]):
        local[members[k]] = -1
