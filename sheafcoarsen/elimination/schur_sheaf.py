"""The sheaf on the kept vertices: an edge for each pair that is joined, then the loops."""

import numpy as np

from sheafcoarsen._kernels import elimination as kernels
from sheafcoarsen._support import offsets
from sheafcoarsen.elimination.factorization import Shrunk
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


def sheaf_of(F: CellularSheaf, shrunk: Shrunk) -> CellularSheaf:
    """Return the sheaf that is left of F: edges sorted by (a, b), a < b, then loops sorted by a."""
    links, maps, room, kept = shrunk.links, shrunk.maps, shrunk.room, shrunk.kept
    number = np.full(F.n_vertices, -1)
    number[kept] = np.arange(len(kept))
    chosen, pairs, rows = _bundles(links, kept, number)
    dims = F.vertex_dims[kept]
    a, b = number[pairs].T
    heights = np.minimum(rows, dims[a] + dims[b])
    edges = _cells(heights, dims[a], dims[b], maps.pool.dtype)
    kernels.put_pairs(links, maps, chosen, pairs, room, edges)
    with_loop = np.flatnonzero(links.vertices[kept, kernels.LOOPS] >= 0)
    loops = _cells(dims[with_loop], dims[with_loop], dims[with_loop], maps.pool.dtype)
    kernels.put_left_loops(links, maps, kept[with_loop], room, loops)
    at = with_loop[loops.heights > 0]
    ends = [np.stack([a, b], axis=1), np.stack([at, at], axis=1)]
    edge_dims = np.concatenate([edges.heights, loops.heights[loops.heights > 0]])
    sizes = [
        int((edges.heights * dims[a]).sum()),
        int((edges.heights * dims[b]).sum()),
        int((loops.heights * dims[with_loop]).sum()),
    ]
    unit = shrunk.unit
    tail = np.concatenate([edges.tail[: sizes[0]], loops.tail[: sizes[2]]]) * unit
    head = np.concatenate([edges.head[: sizes[1]], loops.head[: sizes[2]]]) * unit
    labels = None
    if F.vertex_labels is not None:
        labels = tuple(F.vertex_labels[v] for v in kept.tolist())
    dtype = F.dtype
    return trusted_sheaf(
        np.concatenate(ends),
        dims,
        edge_dims,
        tail.astype(dtype, copy=False),
        head.astype(dtype, copy=False),
        labels,
    )


def _bundles(
    links: kernels.Links, kept: np.ndarray, number: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one edge for each pair that is joined, its ends and the rows of all that join it."""
    chosen = np.empty(len(links.edges), np.int64)
    rows = np.empty(len(links.edges), np.int64)
    count = kernels.list_edges(kept, links, chosen, rows)
    chosen, rows = chosen[:count], rows[:count]
    ends = np.sort(links.edges[chosen, :2].astype(np.int64), axis=1)
    keys = number[ends[:, 0]] * len(kept) + number[ends[:, 1]]
    order = np.lexsort((chosen, keys))
    chosen, rows, ends, keys = chosen[order], rows[order], ends[order], keys[order]
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    kernels.join_bundles(links, chosen, np.append(begins, count))
    return chosen[begins], ends[begins], np.diff(np.append(offsets(rows)[begins], rows.sum()))


def _cells(
    heights: np.ndarray, tails: np.ndarray, heads: np.ndarray, dtype: np.dtype
) -> kernels.Cells:
    """Room for maps of up to so many rows."""
    return kernels.Cells(
        heights.copy(),
        np.empty(int((heights * tails).sum()), dtype),
        np.empty(int((heights * heads).sum()), dtype),
    )
