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
def put_prolongation(record, anchors, dims, sizes, widths, begins, data):
    """Write the rows of the eliminated vertices, which must be zero; those of v are at begins[v].

    Those of kept vertices, unit matrices, must be written before. ``sizes`` are the dimensions of
    all anchors, and ``widths[v]`` the sum of those of v.
    """
    vertices, steps, neighbors = record.vertices, record.starts, record.neighbors
    blocks = record.blocks
    starts, counts, kept = anchors
    at = blocks.size
    for step in range(vertices.size - 1, -1, -1):
        v = vertices[step]
        d, width, column = dims[v], 0, 0
        for p in range(steps[step], steps[step + 1]):
            width += dims[neighbors[p]]
        at -= d * width
        for p in range(steps[step], steps[step + 1]):
            u = neighbors[p]
            shift, anchor, done = 0, starts[v], 0
            for i in range(starts[u], starts[u] + counts[u]):
                while kept[anchor] != kept[i]:
                    shift += sizes[anchor]
                    anchor += 1
                for a in range(d):
                    to = begins[v] + a * widths[v] + shift
                    for b in range(dims[u]):
                        x = blocks[at + a * width + column + b]
                        source = begins[u] + b * widths[u] + done
                        for j in range(sizes[i]):
                            data[to + j] += x * data[source + j]
                done += sizes[i]
            column += dims[u]
