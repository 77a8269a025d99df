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
    """Add G x_neighbors + W W* b_v to x_v for each eliminated v, the last one first.

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
                value = x[row, j]
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
def substitute_rows(record, dims, offsets, rows, position):
    """Add G times the rows of the neighbours to those of each eliminated v, the last one first.

    ``rows`` are (first, counts, columns, values) of a sparse matrix: row i has the next counts[i]
    entries from index first[i] on. ``position`` is -1 for every column. Returns whether the arrays
    are large enough.
    """
    vertices, starts, neighbors = record.vertices, record.starts, record.neighbors
    blocks, (first, counts, columns, values) = record.blocks, rows
    at_G, end = blocks.size, 0
    for i in range(counts.size):
        end += counts[i]
    for step in range(vertices.size - 1, -1, -1):
        v, width = vertices[step], 0
        for p in range(starts[step], starts[step + 1]):
            width += dims[neighbors[p]]
        at_G -= dims[v] * width
        entry = at_G
        for row in range(offsets[v], offsets[v] + dims[v]):
            begin = end
            if end + counts[row] > columns.size:
                return False
            for k in range(first[row], first[row] + counts[row]):
                columns[end], values[end], position[columns[k]] = columns[k], values[k], end
                end += 1
            for p in range(starts[step], starts[step + 1]):
                source = offsets[neighbors[p]]
                for i in range(source, source + dims[neighbors[p]]):
                    x = blocks[entry]
                    entry += 1
                    if end + counts[i] > columns.size:
                        return False
                    for k in range(first[i], first[i] + counts[i]):
                        column = columns[k]
                        if position[column] < begin:  # not in this row yet
                            columns[end], values[end], position[column] = column, 0, end
                            end += 1
                        values[position[column]] += x * values[k]
            first[row], counts[row] = begin, end - begin
    return True
