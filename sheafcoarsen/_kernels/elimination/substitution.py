"""The record of an elimination, substitution with it, and the prolongation."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.jit import borrowing_kernel

STEPS, NEIGHBORS, BLOCKS, INVERSES = range(4)
"""Indices in ``Record.counters``."""


class Record(NamedTuple):
    """Eliminated vertices in order, and G and W of x_v = G x_neighbors + W W* b_v for each.

    The neighbours are those at the time of its elimination.
    """

    vertices: np.ndarray  # (steps,)
    starts: np.ndarray  # (steps + 1,) offsets of the neighbours
    neighbors: np.ndarray
    blocks: np.ndarray  # G, d_v rows each
    inverses: np.ndarray  # W, d_v x d_v
    counters: np.ndarray  # (4,) used lengths of the arrays


class Anchors(NamedTuple):
    """Kept vertices on which each vertex depends, ascending; for a kept vertex, itself."""

    starts: np.ndarray  # (n,) offsets of the anchors
    counts: np.ndarray  # (n,) number of anchors
    kept: np.ndarray  # anchors of all vertices


@borrowing_kernel
def reduce_forward(record, dims, offsets, b):
    """Add G_u* b_v to b_u for the neighbours u of each eliminated v, in order.

    This is b_kept - L_kv L_vv^+ b_v, vertex by vertex. Columns of b are cochains.
    """
    vertices, starts, neighbors = record.vertices, record.starts, record.neighbors
    blocks = record.blocks
    at, h = 0, b.shape[1]
    for step in range(vertices.size):
        v = vertices[step]
        for a in range(dims[v]):
            row = offsets[v] + a
            for p in range(starts[step], starts[step + 1]):
                to = offsets[neighbors[p]]
                for i in range(dims[neighbors[p]]):
                    x = np.conj(blocks[at])
                    at += 1
                    for j in range(h):
                        b[to + i, j] += x * b[row, j]


@borrowing_kernel
def extend_backward(record, dims, offsets, x, b):
    """Write x_v = G x_neighbors + W W* b_v for each eliminated v, the last one first.

    ``b`` is the result of ``reduce_forward``, or has no rows.
    """
    vertices, starts, neighbors = record.vertices, record.starts, record.neighbors
    blocks, inverses = record.blocks, record.inverses
    at, at_W, zero = blocks.size, inverses.size, x.dtype.type(0)
    for step in range(vertices.size - 1, -1, -1):
        v, width = vertices[step], 0
        d, first = dims[v], offsets[v]
        for p in range(starts[step], starts[step + 1]):
            width += dims[neighbors[p]]
        at -= d * width
        at_W -= d * d
        for j in range(x.shape[1]):
            column = at
            for row in range(first, first + d):
                value = zero
                for p in range(starts[step], starts[step + 1]):
                    source = offsets[neighbors[p]]
                    for i in range(source, source + dims[neighbors[p]]):
                        value += blocks[column] * x[i, j]
                        column += 1
                x[row, j] = value
            for k in range(at_W, at_W + d if b.shape[0] > 0 else at_W):
                value = zero
                for a in range(d):
                    value += np.conj(inverses[k + a * d]) * b[first + a, j]
                for a in range(d):
                    x[first + a, j] += inverses[k + a * d] * value


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
                to = at + count  # insert kept[i] in ascending order, if it is missing
                while to > at and kept[to - 1] > kept[i]:
                    to -= 1
                if to > at and kept[to - 1] == kept[i]:
                    continue
                for j in range(at + count, to, -1):
                    kept[j] = kept[j - 1]
                kept[to] = kept[i]
                count += 1
        starts[v], counts[v] = at, count
        at += count
    return True


@borrowing_kernel
def put_prolongation(record, anchors, dims, sizes, widths, begins, data):
    """Fill the prolongation's rows of eliminated vertices; those of v start at data[begins[v]].

    ``data`` is zero there on entry, and has the unit matrices of kept vertices. ``sizes`` are the
    dimensions of all anchors, and ``widths[v]`` the sum of those of v.
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
