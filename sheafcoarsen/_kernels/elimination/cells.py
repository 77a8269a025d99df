"""The remaining sheaf: one edge for each bundle between kept vertices, and loops."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.elimination.gather import gather, put_edge
from sheafcoarsen._kernels.elimination.half_edges import AFTER, FIRST, HEIGHT, LOOPS, RING
from sheafcoarsen._kernels.elimination.row_qr import magnitude
from sheafcoarsen._kernels.jit import borrowing_kernel, subkernel


class Cells(NamedTuple):
    """Maps of the remaining sheaf, edge by edge."""

    heights: np.ndarray
    tail: np.ndarray
    head: np.ndarray


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
def join_bundles(links, chosen, starts):
    """Join each group of edges chosen[starts[p]] .. chosen[starts[p + 1] - 1] into one bundle."""
    edges = links.edges
    for p in range(starts.size - 1):
        e = chosen[starts[p]]
        for k in range(starts[p] + 1, starts[p + 1]):
            g = chosen[k]
            edges[e, RING], edges[g, RING] = edges[g, RING], edges[e, RING]


@subkernel
def put_cell(rows, height, widths, at, out, signs):
    """Write rows as tail and head maps, scaled so that each row's first large entry is positive."""
    du, dw = widths
    to_tail, to_head = at
    sign_tail, sign_head = signs
    data, stride = rows.data, du + dw
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
            out.tail[to_tail + k * du + j] = sign_tail * (phase * data[begin + j])
        for j in range(dw):
            out.head[to_head + k * dw + j] = sign_head * (phase * data[begin + du + j])


@borrowing_kernel
def put_pairs(links, maps, chosen, pairs, workspace, out):
    """Write the maps of bundle ``chosen[p]``, from pairs[p, 0] to pairs[p, 1]."""
    edges, dims, positions, bundle = links.edges, maps.dims, maps.positions, workspace.bundle
    tail, head, heights = out.tail, out.head, out.heights
    to_tail, to_head = 0, 0
    for p in range(chosen.size):
        e, u, w = chosen[p], pairs[p, 0], pairs[p, 1]
        du, dw, height = dims[u], dims[w], np.int64(edges[e, HEIGHT])
        if positions[e] < 0 and edges[e, RING] == e and height <= du + dw:  # copy input edges
            put_edge(edges, maps, e, u, bundle, 0, (du + dw, 0, du))
            for k in range(height):
                for j in range(du):
                    tail[to_tail + k * du + j] = bundle.data[k * (du + dw) + j]
                for j in range(dw):
                    head[to_head + k * dw + j] = -bundle.data[k * (du + dw) + du + j]
        else:
            height = gather(edges, maps, e, u, workspace, True)
            put_cell(bundle, height, (du, dw), (to_tail, to_head), out, (1, -1))
        heights[p] = height
        to_tail += height * du
        to_head += height * dw


@borrowing_kernel
def put_kept_loops(links, maps, kept, workspace, out):
    """Write the nonzero rows of B / 2 and -B / 2 for the loops at each kept vertex."""
    vertices, dims = links.vertices, maps.dims
    at = 0
    for p in range(kept.size):
        v = kept[p]
        out.heights[p] = 0
        if dims[v] == 0:
            continue
        height = gather(links.edges, maps, np.int64(vertices[v, LOOPS]), v, workspace, True)
        put_cell(workspace.bundle, height, (dims[v], 0), (at, at), out, (0.5, 1))
        for i in range(at, at + height * dims[v]):
            out.head[i] = -out.tail[i]
        out.heights[p] = height
        at += height * dims[v]
