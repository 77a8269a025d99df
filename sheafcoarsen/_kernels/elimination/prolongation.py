"""The prolongation of an elimination: kept vertices that each vertex depends on."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel, subkernel


class Anchors(NamedTuple):
    """Ascending indices of the kept vertices on which each vertex depends; itself if it is kept."""

    starts: np.ndarray  # (n,) offsets of the anchors
    counts: np.ndarray  # (n,) number of anchors
    kept: np.ndarray  # anchors of all vertices


@subkernel
def insert(kept, begin, count, k):
    """Insert k into the ascending kept[begin : begin + count] if missing; return the new count."""
    i = begin + count
    while i > begin and kept[i - 1] > k:
        i -= 1
    if i > begin and kept[i - 1] == k:
        return count
    for j in range(begin + count, i, -1):
        kept[j] = kept[j - 1]
    kept[i] = k
    return count + 1


@borrowing_kernel
def find_anchors(record, kept_vertices, anchors):
    """Fill the anchors; return whether ``anchors.kept`` is large enough."""
    steps, neighbors = record.starts, record.neighbors
    starts, counts, kept = anchors
    at = kept_vertices.size
    for k in range(at):
        v = kept_vertices[k]
        starts[v], counts[v], kept[k] = k, 1, k
    for step in range(record.vertices.size - 1, -1, -1):
        v, count = record.vertices[step], 0
        for p in range(steps[step], steps[step + 1]):
            u = neighbors[p]
            if at + count + counts[u] > kept.size:
                return False
            for i in range(starts[u], starts[u] + counts[u]):
                count = insert(kept, at, count, kept[i])
        starts[v], counts[v] = at, count
        at += count
    return True


@borrowing_kernel
def put_prolongation(record, anchors, sheaf, begins, data):
    """Write the rows of the eliminated vertices; the rows of v begin at data[begins[v]].

    Those of kept vertices, unit matrices, must be written before. ``sheaf`` is (vertex_dims,
    offsets of the kept stalks one after the other).
    """
    dims, kept_offsets = sheaf
    vertices, steps, neighbors = record.vertices, record.starts, record.neighbors
    blocks = record.blocks
    starts, counts, kept = anchors
    at = blocks.size
    for step in range(vertices.size - 1, -1, -1):
        v = vertices[step]
        d, width, q = dims[v], 0, 0
        for p in range(steps[step], steps[step + 1]):
            width += dims[neighbors[p]]
        for i in range(starts[v], starts[v] + counts[v]):
            q += kept_offsets[kept[i] + 1] - kept_offsets[kept[i]]
        at -= d * width
        out = begins[v]
        for i in range(out, out + d * q):
            data[i] = 0
        column = 0
        for p in range(steps[step], steps[step + 1]):
            u = neighbors[p]
            total = 0
            for i in range(starts[u], starts[u] + counts[u]):
                total += kept_offsets[kept[i] + 1] - kept_offsets[kept[i]]
            shift, anchor, done = 0, starts[v], 0
            for i in range(starts[u], starts[u] + counts[u]):
                size = kept_offsets[kept[i] + 1] - kept_offsets[kept[i]]
                while kept[anchor] != kept[i]:
                    shift += kept_offsets[kept[anchor] + 1] - kept_offsets[kept[anchor]]
                    anchor += 1
                for a in range(d):
                    to = out + a * q + shift
                    for b in range(dims[u]):
                        x = blocks[at + a * width + column + b]
                        source = begins[u] + b * total + done
                        for j in range(size):
                            data[to + j] += x * data[source + j]
                done += size
            column += dims[u]


@borrowing_kernel
def put_indices(anchors, sheaf, begins, indices):
    """Write the column indices of the prolongation for the rows of all vertices."""
    dims, kept_offsets = sheaf
    starts, counts, kept = anchors
    for v in range(dims.size):
        at = begins[v]
        for _ in range(dims[v]):
            for i in range(starts[v], starts[v] + counts[v]):
                for column in range(kept_offsets[kept[i]], kept_offsets[kept[i] + 1]):
                    indices[at] = column
                    at += 1
