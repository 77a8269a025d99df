"""Elimination vertex by vertex into arrays that grow, and the sheaf that remains."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels import elimination as kernels
from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import (
    eps_of,
    integer_array,
    memory_for_entries,
    offsets,
    read_only,
    scalar_array,
)
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf

SPARE = 64
"""Initial number of unused edge slots in the adjacency lists."""


class Shrunk(NamedTuple):
    """Steps of an elimination and the scaled maps of the remaining sheaf.

    ``kept`` holds the remaining vertices, ascending; maps are scaled by 1 / ``unit``.
    """

    record: kernels.Record
    links: kernels.Links
    maps: kernels.Maps
    workspace: kernels.EliminationWorkspace
    kept: np.ndarray
    unit: float


def links_of(F: CellularSheaf, keep: np.ndarray, max_neighbors: int) -> kernels.Links:
    """Return the adjacency lists before the first elimination step."""
    n, m, tallest = F.n_vertices, F.n_edges, int(F.edge_dims.max(initial=0))
    itype = np.int32 if max(4 * (n + m), tallest) < np.iinfo(np.int32).max else np.int64
    most = min(max_neighbors, max(n - 1, 0))
    links = kernels.Links(
        np.empty((m + SPARE, 8), itype),
        np.empty((n, 5), itype),
        np.empty(most + 1, itype),
        np.empty((3, most + 1), itype),
    )
    kernels.set_up(F.arrays, keep, links)
    return links


def shrink(F: CellularSheaf, keep: np.ndarray, links: kernels.Links) -> Shrunk:
    """Eliminate vertices outside the mask ``keep``, overwriting the adjacency lists."""
    m, dtype = F.n_edges, np.result_type(F.dtype, np.float64)
    tallest, largest = int(F.edge_dims.max(initial=0)), int(F.vertex_dims.max(initial=0))
    ids, itype = len(links.edges), links.edges.dtype
    most, unit = len(links.heads) - 1, power_of_two(F.largest_entry)
    counters = np.full(kernels.FREE_BLOCKS + 64, -1)
    counters[:2] = 0, m
    maps = kernels.Maps(
        np.empty(_entries(F) + (1 << 12), dtype), np.empty(ids, np.int64), F.vertex_dims, counters
    )
    workspace = _workspace(largest, tallest, dtype, eps_of(F.dtype))
    mesh = _mesh_workspace(most, largest, dtype) if most > 2 else None
    free = F.n_vertices - int(keep.sum())
    record = kernels.Record(
        np.empty(free, itype),
        np.zeros(free + 1, itype),
        np.empty(min(most, 2) * free, itype),
        np.empty(min(2 * largest**2 * free, len(F.tail_data) + len(F.head_data)), dtype),
        np.empty(int((F.vertex_dims[~keep] ** 2).sum()), dtype),
        np.zeros(5, np.int64),
        unit,
    )
    kernels.fill_pool(F.arrays, unit, eps_of(F.dtype), maps)
    while status := kernels.eliminate_vertices(links, maps, record, workspace, mesh):
        if status == kernels.IDS:
            links = links._replace(edges=_larger(links.edges, SPARE))
            maps = maps._replace(positions=_larger(maps.positions, SPARE))
        elif status == kernels.POOL:
            least = (most + 2) ** 2 * 4 * (2 * largest + 2) ** 2
            maps = maps._replace(pool=_larger(maps.pool, least))
        else:
            record = record._replace(
                neighbors=_larger(record.neighbors, most),
                blocks=_larger(record.blocks, most * largest**2),
            )
    kept = np.flatnonzero(links.vertices[:, kernels.DEGREE] >= kernels.KEPT)
    return Shrunk(_trimmed(record), links, maps, workspace, kept, unit)


def _entries(F: CellularSheaf) -> int:
    """Return the number of stored values: the entries of map rows, and a rounding level per row."""
    loops = F.edges[:, 0] == F.edges[:, 1]
    heads = int((F.edge_dims * F.vertex_dims[F.edges[:, 1]])[~loops].sum())
    return len(F.tail_data) + heads + F.dim_c1


def as_steps(
    F: CellularSheaf,
    vertices: np.ndarray,
    lists: tuple[np.ndarray, np.ndarray],
    blocks: np.ndarray,
    inverses: np.ndarray,
) -> kernels.Record:
    """Return the steps of an elimination from saved arrays, which ``Elimination`` validates.

    ``lists`` are the starts and members of the neighbour lists.
    """
    dtype = np.result_type(F.dtype, np.float64)
    small = 4 * (F.n_vertices + F.n_edges) < np.iinfo(np.int32).max
    itype = np.int32 if small else np.int64

    def numbers(name: str, array: np.ndarray) -> np.ndarray:
        return read_only(integer_array(f"steps.{name}", array).astype(itype))

    return kernels.Record(
        numbers("vertices", vertices),
        numbers("starts", lists[0]),
        numbers("neighbors", lists[1]),
        read_only(scalar_array("steps.blocks", blocks).astype(dtype)),
        read_only(scalar_array("steps.inverses", inverses).astype(dtype)),
        # -1: saved steps do not contain the dimension of the kernel
        np.array([len(vertices), len(lists[1]), len(blocks), len(inverses), -1]),
        power_of_two(F.largest_entry),
    )


def _larger(array: np.ndarray, least: int) -> np.ndarray:
    """Return a copy of an array with more than twice the capacity."""
    out = np.empty((2 * len(array) + least, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def _workspace(
    largest: int, tallest: int, dtype: np.dtype, eps: float
) -> kernels.EliminationWorkspace:
    """Allocate a workspace for vertices with two neighbours and stalk dimensions <= ``largest``."""
    width = max(2 * largest, 1)
    height = 2 * width + max(tallest, width) + 16
    lines = max(3 * largest, 1)
    return kernels.EliminationWorkspace(
        kernels.Rows(np.empty(height * width, dtype), np.empty(height)),
        kernels.Rows(np.empty(height * lines, dtype), np.empty(height)),
        np.empty(lines, np.int64),
        eps,
    )


def _mesh_workspace(most: int, largest: int, dtype: np.dtype) -> kernels.MeshWorkspace:
    with memory_for_entries("max_neighbors", most * largest**2, dtype.itemsize):
        return kernels.MeshWorkspace(
            np.empty((most, largest**2), dtype),
            np.empty(most),
            np.empty(most),
            np.empty(most, np.int64),
        )


def _trimmed(record: kernels.Record) -> kernels.Record:
    """Return the record without unused capacity."""
    steps, neighbors, blocks, inverses, _ = record.counters.tolist()
    return record._replace(
        vertices=_cut(record.vertices, steps),
        starts=_cut(record.starts, steps + 1),
        neighbors=_cut(record.neighbors, neighbors),
        blocks=_cut(record.blocks, blocks),
        inverses=_cut(record.inverses, inverses),
    )


def _cut(array: np.ndarray, length: int) -> np.ndarray:
    out = array if len(array) == length else array[:length].copy()
    out.setflags(write=False)
    return out


def sheaf_of(F: CellularSheaf, shrunk: Shrunk) -> CellularSheaf:
    """Return the remaining sheaf, with edges a < b sorted by (a, b), then loops sorted by a."""
    links, maps, workspace, kept = shrunk.links, shrunk.maps, shrunk.workspace, shrunk.kept
    number = np.full(F.n_vertices, -1)
    number[kept] = np.arange(len(kept))
    chosen, pairs, rows = _bundles(links, kept, number)
    dims = F.vertex_dims[kept]
    a, b = number[pairs].T
    heights = np.minimum(rows, dims[a] + dims[b])
    edges = _cells(heights, dims[a], dims[b], maps.pool.dtype)
    kernels.put_pairs(links, maps, chosen, pairs, workspace, edges)
    with_loop = np.flatnonzero(links.vertices[kept, kernels.LOOPS] >= 0)
    loops = _cells(dims[with_loop], dims[with_loop], dims[with_loop], maps.pool.dtype)
    kernels.put_kept_loops(links, maps, kept[with_loop], workspace, loops)
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
    """Return one edge per adjacent pair, its ends, and the total rows of its parallel edges."""
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
    """Allocate the maps of edges with at most ``heights`` rows."""
    return kernels.Cells(
        heights.copy(),
        np.empty(int((heights * tails).sum()), dtype),
        np.empty(int((heights * heads).sum()), dtype),
    )
