"""Index arrays of patches, each a cluster and the rings of vertices around it."""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel, subkernel
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
    """Index arrays of one patch, in the memory of a ``Clusters`` with only this cluster."""

    dims: np.ndarray  # (1,)
    internal_edges: np.ndarray
    internal_ptr: np.ndarray  # (2,)
    local_offsets: np.ndarray  # (n_vertices,) -1 outside the patch


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
