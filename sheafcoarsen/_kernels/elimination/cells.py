"""The remaining sheaf: one edge for each bundle between kept vertices, and loops."""

import numpy as np

from sheafcoarsen._kernels.elimination.gather import gather, put_edge
from sheafcoarsen._kernels.elimination.half_edges import AFTER, FIRST, HEIGHT, RING
from sheafcoarsen._kernels.elimination.row_qr import magnitude
from sheafcoarsen._kernels.jit import borrowing_kernel


@borrowing_kernel
def list_edges(kept, links, chosen, rows):
    """Write an edge and the number of rows of each bundle at kept vertices; count the bundles."""
    edges, vertices, _, _ = links
    count = 0
    for i in range(kept.size):
        h = vertices[kept[i], FIRST]
        while h >= 0:
            e, side = h >> 1, h & 1
            if side == 0:
                total, g = np.int64(edges[e, HEIGHT]), edges[e, RING]
                while g != e:
                    total += edges[g, HEIGHT]
                    g = edges[g, RING]
                chosen[count], rows[count] = e, total
                count += 1
            h = edges[e, AFTER + side]
    return count


@borrowing_kernel
def put_maps(links, maps, chosen, pairs, workspace, out):
    """Write the maps of bundle ``chosen[p]``, from pairs[p, 0] to pairs[p, 1], without zero rows.

    Rows are scaled such that their first large entry is positive, but those of input edges are
    copied. For the loops B at a vertex, the maps are B / 2 and -B / 2. ``out`` are the number of
    rows of each bundle, and the maps at the tail and the head.
    """
    edges, dims, positions, bundle = links.edges, maps.dims, maps.positions, workspace.bundle
    heights, tail, head = out
    data, to_tail, to_head = bundle.data, 0, 0
    for p in range(chosen.size):
        e, u, w = np.int64(chosen[p]), pairs[p, 0], pairs[p, 1]
        du, dw, height = dims[u], np.int64(0 if u == w else dims[w]), np.int64(edges[e, HEIGHT])
        stride, copied = du + dw, positions[e] < 0 and edges[e, RING] == e and u != w
        if copied and height <= stride:
            put_edge(edges, maps, e, u, bundle, 0, (stride, 0, du))
            for k in range(height):
                for j in range(du):
                    tail[to_tail + k * du + j] = data[k * stride + j]
                for j in range(dw):
                    head[to_head + k * dw + j] = -data[k * stride + du + j]
        else:
            height, sign = gather(edges, maps, e, u, workspace, True), 0.5 if u == w else 1.0
            for k in range(height):
                largest, begin = 0.0, k * stride
                for j in range(begin, begin + stride):
                    largest = max(largest, magnitude(data[j]))
                phase = data[begin] * 0 + 1
                for j in range(begin, begin + stride):
                    if magnitude(data[j]) >= 0.5 * largest and largest > 0:
                        phase = np.conj(data[j] / largest) / abs(data[j] / largest)
                        break
                for j in range(du):
                    tail[to_tail + k * du + j] = sign * (phase * data[begin + j])
                    if u == w:
                        head[to_head + k * du + j] = -tail[to_tail + k * du + j]
                for j in range(dw):
                    head[to_head + k * dw + j] = -1.0 * (phase * data[begin + du + j])
        heights[p] = height
        to_tail += height * du
        to_head += height * dims[w]
