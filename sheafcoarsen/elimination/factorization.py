"""Vertex-by-vertex elimination into growing arrays, and the check that star-mesh requires."""

from typing import Any

import numpy as np

from sheafcoarsen._kernels import elimination as kernels
from sheafcoarsen._support import checks, linalg, ragged
from sheafcoarsen.sheaf import CellularSheaf, both_ends, trusted_sheaf


def factorize(
    F: CellularSheaf, keep: np.ndarray, max_neighbors: int
) -> tuple[kernels.Record, CellularSheaf, np.ndarray]:
    """Eliminate vertices outside the mask ``keep`` that have at most ``max_neighbors`` neighbours.

    Returns the steps, the remaining sheaf, and the remaining vertices, ascending.
    """
    n, m, dtype = F.n_vertices, F.n_edges, np.result_type(F.dtype, np.float64)
    largest, tallest = int(F.vertex_dims.max(initial=0)), int(F.edge_dims.max(initial=0))
    most = min(max_neighbors, max(n - 1, 0))
    itype = ragged.index_dtype(max(4 * (n + m), tallest))
    links = kernels.Links(
        np.empty((m + 64, 8), itype),
        np.empty((n, 6), itype),
        np.empty(most + 1, itype),
        np.empty((3, most + 1), itype),
    )
    kernels.set_up(F.arrays, keep, links)
    entries = len(F.tail_data) + len(F.head_data) + F.dim_c1  # maps, and the noise of each row
    maps = kernels.Maps(
        np.empty(entries + (1 << 12), dtype),
        np.empty(m + 64, np.int64),
        np.zeros(m + 64, np.int64),
        F.vertex_dims,
        np.array([0, m, -1]),
    )
    workspace, mesh = _workspaces(F, most)
    free = n - int(keep.sum())
    record = kernels.Record(
        np.empty(free, itype),
        np.zeros(free + 1, itype),
        np.empty(min(most, 2) * free, itype),
        np.empty(min(2 * largest**2 * free, len(F.tail_data) + len(F.head_data)), dtype),
        np.empty(int((F.vertex_dims[~keep] ** 2).sum()), dtype),
        np.zeros(4, np.int64),
    )
    kernels.fill_pool(F.arrays, linalg.eps_of(F.dtype), maps)
    while not kernels.eliminate_vertices(links, maps, record, workspace, mesh):
        degree = int(np.argmax(links.heads >= 0))  # of the next vertex
        links = links._replace(edges=_larger(links.edges, 64))
        maps = maps._replace(
            pool=_larger(maps.pool, (degree + 2) ** 2 * 8 * (2 * largest + 2) ** 2),
            positions=_larger(maps.positions, 64),
            capacities=_larger(maps.capacities, 64),
        )
        record = record._replace(
            neighbors=_larger(record.neighbors, degree),
            blocks=_larger(record.blocks, degree * largest**2),
        )
    kept = np.flatnonzero(links.vertices[:, kernels.DEGREE] >= kernels.KEPT)
    steps, neighbors, blocks, inverses = record.counters.tolist()
    arrays: list[Any] = list(record)
    for i, length in enumerate((steps, steps + 1, neighbors, blocks, inverses)):
        arrays[i] = ragged.read_only(arrays[i][:length].copy())
    sheaf = _remaining_sheaf(F, kept, links, maps, workspace)
    return kernels.Record(*arrays), sheaf, ragged.read_only(kept)


def as_steps(F: CellularSheaf, arrays: dict[str, np.ndarray]) -> kernels.Record:
    """Return the steps of an elimination from saved arrays, which ``Elimination`` validates."""
    dtype = np.result_type(F.dtype, np.float64)
    itype = ragged.index_dtype(4 * (F.n_vertices + F.n_edges))
    vertices, starts, neighbors = (
        ragged.read_only(checks.integer_array(f"steps.{name}", arrays[name]).astype(itype))
        for name in ("vertices", "starts", "neighbors")
    )
    blocks, inverses = (
        ragged.read_only(checks.scalar_array(f"steps.{name}", arrays[name]).astype(dtype))
        for name in ("blocks", "inverses")
    )
    counters = np.array([len(array) for array in (vertices, neighbors, blocks, inverses)])
    return kernels.Record(vertices, starts, neighbors, blocks, inverses, counters)


def _larger(array: np.ndarray, least: int) -> np.ndarray:
    """Return a copy of an array with more than twice the capacity."""
    out = np.empty((2 * len(array) + least, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def _workspaces(
    F: CellularSheaf, most: int
) -> tuple[kernels.EliminationWorkspace, kernels.MeshWorkspace | None]:
    """Allocate workspaces for vertices with at most 2 and with at most ``most`` neighbours."""
    dtype, largest = np.result_type(F.dtype, np.float64), int(F.vertex_dims.max(initial=0))
    width = max(2 * largest, 1)
    height = 2 * width + max(int(F.edge_dims.max(initial=0)), kernels.SPARE * width) + 16
    lines = max(3 * largest, 1)
    workspace = kernels.EliminationWorkspace(
        kernels.Rows(np.empty(height * width, dtype), np.empty(height)),
        kernels.Rows(np.empty(height * lines, dtype), np.empty(height)),
        np.empty(lines, np.int64),
        linalg.eps_of(F.dtype),
    )
    if most <= 2:
        return workspace, None
    with checks.memory_for_entries("max_neighbors", most * largest**2, dtype.itemsize):
        maps = np.empty((most, largest**2), dtype)
    mesh = kernels.MeshWorkspace(maps, np.empty(most), np.empty(most), np.empty(most, np.int64))
    return workspace, mesh


def _remaining_sheaf(
    F: CellularSheaf,
    kept: np.ndarray,
    links: kernels.Links,
    maps: kernels.Maps,
    workspace: kernels.EliminationWorkspace,
) -> CellularSheaf:
    """Return the remaining sheaf: edges a < b sorted by (a, b), then loops sorted by a."""
    number = np.full(F.n_vertices, -1)
    number[kept] = np.arange(len(kept))
    chosen, heights = np.empty((2, len(links.edges)), np.int64)
    seen = np.empty(F.n_vertices, links.edges.dtype)
    count = kernels.list_edges(kept, links, seen, chosen, heights)
    chosen, heights = chosen[:count], heights[:count]
    pairs = np.sort(links.edges[chosen, :2].astype(np.int64), axis=1)
    order = np.lexsort(pairs.T[::-1])
    chosen, heights, pairs = chosen[order], heights[order], pairs[order]
    with_loop = kept[links.vertices[kept, kernels.LOOPS] >= 0]
    chosen = np.concatenate([chosen, links.vertices[with_loop, kernels.LOOPS]])
    pairs = np.concatenate([pairs, np.stack([with_loop, with_loop], axis=1)])
    dims, is_loop = F.vertex_dims[pairs], pairs[:, 0] == pairs[:, 1]
    heights = np.concatenate([heights, F.vertex_dims[with_loop]])
    heights = np.minimum(heights, dims.sum(axis=1))
    tail, head = (np.empty(size, maps.pool.dtype) for size in heights @ dims)
    kernels.put_maps(links, maps, chosen, pairs, workspace, (heights, tail, head))
    in_use = (heights > 0) | ~is_loop
    tail, head = (
        data[:size].astype(F.dtype) for data, size in zip((tail, head), heights @ dims, strict=True)
    )
    labels = None
    if F.vertex_labels is not None:
        labels = tuple(F.vertex_labels[v] for v in kept.tolist())
    return trusted_sheaf(
        number[pairs[in_use]], F.vertex_dims[kept], heights[in_use], tail, head, labels
    )


# ---------------------------------------------------------------- checks


def check_connection(F: CellularSheaf, max_neighbors: int) -> None:
    """Raise if a map A of an edge between two vertices is no scaled isometry, A* A = a^2 I."""
    for name, (v, data, starts) in zip(("tail", "head"), both_ends(F), strict=True):
        columns = F.vertex_dims[v]
        edges = np.flatnonzero((F.edges[:, 0] != F.edges[:, 1]) & (columns > 1))
        shapes = np.stack([F.edge_dims, columns], axis=1)[edges]
        for alike, maps in ragged.stacks(ragged.blocks(data, starts, edges), shapes):
            d = maps.shape[2]
            scale = np.abs(maps).max(axis=(1, 2), keepdims=True, initial=0)
            maps = maps / np.where(scale > 0, scale, 1)
            gram = maps.conj().swapaxes(1, 2) @ maps
            trace = np.trace(gram, axis1=1, axis2=2).real / d
            off = np.abs(gram - trace[:, None, None] * np.eye(d)).max(axis=(1, 2))
            level = linalg.RESIDUAL_LIMIT * d * linalg.eps_of(F.dtype) * trace
            if (bad := checks.first_true(off > level)) is not None:
                e = int(edges[alike[bad]])
                raise ValueError(
                    f"`max_neighbors` = {max_neighbors} requires a connection, whose maps are "
                    f"scaled isometries, but for the {name} map A of edge {e} "
                    f"({F.edges[e, 0]} -> {F.edges[e, 1]}) A* A "
                    f"differs from a^2 I by {off[bad] / max(trace[bad], 1e-300):.2g} a^2: "
                    f"use `max_neighbors` = 2, which is exact for any maps and keeps all vertices "
                    f"with more neighbours"
                )
