"""What is left: edges between vertices that were kept, a bundle each, and their loops."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.elimination.gather import gather, put_edge
from sheafcoarsen._kernels.elimination.half_edges import AFTER, FIRST, HEIGHT, LOOPS, RING
from sheafcoarsen._kernels.elimination.row_qr import size_of
from sheafcoarsen._kernels.jit import borrowing_kernel, subkernel


class Cells(NamedTuple):
    """Maps of the sheaf that is left, edge after edge."""

    heights: np.ndarray
    tail: np.ndarray
    head: np.ndarray


@borrowing_kernel
def list_edges(kept, links, chosen, rows):
    """Write one edge for each that stands in the lists of kept vertices, and its bundle's rows.

    Returns how many there are.
    """
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
    """Make one bundle of each group of edges chosen[starts[p]] .. chosen[starts[p + 1] - 1]."""
    edges = links.edges
    for p in range(starts.size - 1):
        e = chosen[starts[p]]
        for k in range(starts[p] + 1, starts[p + 1]):
            g = chosen[k]
            edges[e, RING], edges[g, RING] = edges[g, RING], edges[e, RING]


@subkernel
def put_cell(rows, height, widths, at, out, signs):
    """Write rows as tail and head maps, the first large entry of each row real and positive."""
    du, dw = widths
    to_tail, to_head = at
    sign_tail, sign_head = signs
    data, stride = rows.data, du + dw
    for k in range(height):
        largest, begin = 0.0, k * stride
        for j in range(begin, begin + stride):
            largest = max(largest, size_of(data[j]))
        turn = data[begin] * 0 + 1
        for j in range(begin, begin + stride):
            if size_of(data[j]) >= 0.5 * largest and largest > 0:
                turn = np.conj(data[j] / largest) / abs(data[j] / largest)
                break
        for j in range(du):
            out.tail[to_tail + k * du + j] = sign_tail * (turn * data[begin + j])
        for j in range(dw):
            out.head[to_head + k * dw + j] = sign_head * (turn * data[begin + du + j])


@borrowing_kernel
def put_pairs(links, maps, chosen, pairs, workspace, out):
    """Write the maps of bundle ``chosen[p]`` between the vertices ``pairs[p]``, tail and head."""
    edges, dims, place, bundle = links.edges, maps.dims, maps.place, workspace.bundle
    tail, head, heights = out.tail, out.head, out.heights
    to_tail, to_head = 0, 0
    for p in range(chosen.size):
        e, u, w = chosen[p], pairs[p, 0], pairs[p, 1]
        du, dw, height = dims[u], dims[w], np.int64(edges[e, HEIGHT])
        if place[e] < 0 and edges[e, RING] == e and height <= du + dw:  # as given
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
def put_left_loops(links, maps, kept, workspace, out):
    """Write B / 2 and -B / 2 for the loops at each kept vertex, rows that are not zero."""
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
