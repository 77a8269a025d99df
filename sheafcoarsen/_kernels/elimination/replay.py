"""The steps gone through again: right sides forward, values backward."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def reduce_forward(record, dims, offsets, b):
    """b_u += G_u* b_v for the neighbours u of each eliminated v, in order; rows of b are cochains.

    That is b_kept - L_kv L_vv^+ b_v, vertex by vertex.
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


@kernel
def extend_backward(record, dims, offsets, x, b):
    """x_v = G x_neighbors + W W* b_v for each eliminated v, the last one first.

    ``b`` is what ``reduce_forward`` left, or has no rows.
    """
    vertices, starts, neighbors = record.vertices, record.starts, record.neighbors
    blocks, inverses = record.blocks, record.inverses
    at, at_W, h = blocks.size, inverses.size, x.shape[1]
    y = np.zeros(max(h, 1), x.dtype)
    zero = y[0]
    for step in range(vertices.size - 1, -1, -1):
        v = vertices[step]
        d, width, begin, end = dims[v], 0, starts[step], starts[step + 1]
        for p in range(begin, end):
            width += dims[neighbors[p]]
        at -= d * width
        at_W -= d * d
        column = at
        first = offsets[v]
        if h == 1 and d == 1 and width == end - begin:  # the same in numbers, for usual networks
            value = zero
            for p in range(begin, end):
                value += blocks[at + p - begin] * x[offsets[neighbors[p]], 0]
            if b.shape[0] > 0:
                w = inverses[at_W]
                value += w * (np.conj(w) * b[first, 0])
            x[first, 0] = value
            continue
        if h == 1:
            for a in range(d):
                value = zero
                for p in range(begin, end):
                    u = neighbors[p]
                    for i in range(offsets[u], offsets[u] + dims[u]):
                        value += blocks[column] * x[i, 0]
                        column += 1
                x[first + a, 0] = value
            for k in range(at_W, at_W + d if b.shape[0] > 0 else at_W):
                value = zero
                for a in range(d):
                    value += np.conj(inverses[k + a * d]) * b[first + a, 0]
                for a in range(d):
                    x[first + a, 0] += inverses[k + a * d] * value
            continue
        for a in range(d):
            row = first + a
            for j in range(h):
                x[row, j] = 0
            for p in range(starts[step], starts[step + 1]):
                source = offsets[neighbors[p]]
                for i in range(dims[neighbors[p]]):
                    g = blocks[column]
                    column += 1
                    for j in range(h):
                        x[row, j] += g * x[source + i, j]
        if b.shape[0] == 0:
            continue
        for k in range(d):
            for j in range(h):
                y[j] = 0
            for a in range(d):
                w = np.conj(inverses[at_W + a * d + k])
                for j in range(h):
                    y[j] += w * b[first + a, j]
            for a in range(d):
                w = inverses[at_W + a * d + k]
                for j in range(h):
                    x[first + a, j] += w * y[j]
