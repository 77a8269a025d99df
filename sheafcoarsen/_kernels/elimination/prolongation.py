"""The prolongation of an elimination: kept vertices that each eliminated vertex depends on."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel, subkernel


class Anchors(NamedTuple):
    """Ascending indices of the kept vertices on which the vertex of each step depends."""

    step: np.ndarray  # (n,) step of an eliminated vertex; -1 - index of a kept vertex
    starts: np.ndarray  # (steps,) offsets of the anchors
    counts: np.ndarray  # (steps,) number of anchors
    kept: np.ndarray  # anchors of all steps


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
def find_anchors(record, anchors):
    """Fill all fields but ``step``; return the number of anchors, -1 if ``kept`` is too small."""
    starts, neighbors = record.starts, record.neighbors
    step_of, begins, counts, kept = anchors
    at = 0
    for step in range(record.vertices.size - 1, -1, -1):
        count = 0
        begins[step] = at
        for p in range(starts[step], starts[step + 1]):
            s = step_of[neighbors[p]]
            if at + count + (1 if s < 0 else counts[s]) > kept.size:
                return -1
            if s < 0:
                count = insert(kept, at, count, -1 - s)
                continue
            for i in range(begins[s], begins[s] + counts[s]):
                count = insert(kept, at, count, kept[i])
        counts[step] = count
        at += count
    return at


@borrowing_kernel
def put_prolongation(record, anchors, sheaf, begins, data):
    """Write the rows of the eliminated vertices; those of v begin at data[begins[v]].

    ``sheaf`` is (vertex_dims, offsets of the kept stalks one after the other).
    """
    dims, kept_offsets = sheaf
    vertices, starts, neighbors = record.vertices, record.starts, record.neighbors
    blocks = record.blocks
    step_of, first, counts, kept = anchors
    at = blocks.size
    for step in range(vertices.size - 1, -1, -1):
        v = vertices[step]
        d, width, q = dims[v], 0, 0
        for p in range(starts[step], starts[step + 1]):
            width += dims[neighbors[p]]
        for i in range(first[step], first[step] + counts[step]):
            q += kept_offsets[kept[i] + 1] - kept_offsets[kept[i]]
        at -= d * width
        out = begins[v]
        for i in range(out, out + d * q):
            data[i] = 0
        column = 0
        for p in range(starts[step], starts[step + 1]):
            u = neighbors[p]
            s, du = step_of[u], dims[u]
            begin, count = -1, 1
            if s >= 0:
                begin, count = first[s], counts[s]
            total = 0
            for i in range(count):
                k = -1 - s if s < 0 else kept[begin + i]
                total += kept_offsets[k + 1] - kept_offsets[k]
            shift, anchor, done = 0, first[step], 0
            for i in range(count):
                k = -1 - s if s < 0 else kept[begin + i]
                size = kept_offsets[k + 1] - kept_offsets[k]
                while kept[anchor] != k:
                    shift += kept_offsets[kept[anchor] + 1] - kept_offsets[kept[anchor]]
                    anchor += 1
                for a in range(d):
                    to = out + a * q + shift
                    for b in range(du):
                        x = blocks[at + a * width + column + b]
                        if s < 0:
                            data[to + b] += x
                            continue
                        source = begins[u] + b * total + done
                        for j in range(size):
                            data[to + j] += x * data[source + j]
                done += size
            column += du


@borrowing_kernel
def put_indices(anchors, sheaf, begins, indices):
    """Write the column indices of the prolongation for the rows of all vertices."""
    dims, kept_offsets = sheaf
    step_of, first, counts, kept = anchors
    for v in range(dims.size):
        s, at = step_of[v], begins[v]
        if s < 0:
            for a in range(dims[v]):
                indices[at + a] = kept_offsets[-1 - s] + a
            continue
        for _ in range(dims[v]):
            for i in range(first[s], first[s] + counts[s]):
                for column in range(kept_offsets[kept[i]], kept_offsets[kept[i] + 1]):
                    indices[at] = column
                    at += 1
