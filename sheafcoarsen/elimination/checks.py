"""Checks of eliminations: scaled isometries, which star-mesh requires, and consistent parts."""

import numpy as np

from sheafcoarsen._kernels.elimination import Record
from sheafcoarsen._support import checks, linalg, ragged
from sheafcoarsen.sheaf import CellularSheaf, both_ends, check_sheaf


def check_connection(F: CellularSheaf, max_neighbors: int) -> None:
    """Raise if a map A of an edge between two vertices is not a scaled isometry.

    A is a scaled isometry if A* A = a^2 I up to rounding, as for all maps with one column.
    """
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


def check_parts(
    fine: CellularSheaf, sheaf: CellularSheaf, kept: np.ndarray, record: Record
) -> None:
    """Raise unless the parts of an elimination are consistent."""
    check_sheaf(fine, "fine")
    check_sheaf(sheaf, "sheaf")
    if not isinstance(record, Record):
        raise TypeError(f"`steps` must be the steps of an elimination, got {type(record).__name__}")
    n, wrong = fine.n_vertices, "the elimination is inconsistent: "
    counts = np.zeros(n, np.int64)
    for name, vertices in (("kept", kept), ("steps.vertices", record.vertices)):
        if vertices.ndim != 1 or vertices.min(initial=0) < 0 or vertices.max(initial=-1) >= n:
            raise ValueError(f"{wrong}`{name}` must hold vertex indices in 0 .. {n - 1}")
        counts += np.bincount(vertices, minlength=n)
    if (counts != 1).any() or (np.diff(kept) <= 0).any():
        raise ValueError(
            f"{wrong}every vertex must be listed once as kept or eliminated, kept ones ascending, "
            f"got {len(kept)} kept and {len(record.vertices)} eliminated vertices of {n}"
        )
    if not np.array_equal(fine.vertex_dims[kept], sheaf.vertex_dims):
        raise ValueError(f"{wrong}the stalks of `sheaf` are not those of the kept vertices")
    steps, starts, around = len(record.vertices), record.starts, record.neighbors
    if (
        len(starts) != steps + 1
        or starts[0] != 0
        or (np.diff(starts) < 0).any()
        or starts[-1] != len(around)
        or around.min(initial=0) < 0
        or around.max(initial=-1) >= fine.n_vertices
    ):
        raise ValueError(f"{wrong}`steps.starts` and `steps.neighbors` must be lists of neighbours")
    step_of = np.full(fine.n_vertices, steps)
    step_of[record.vertices] = np.arange(steps)
    at = np.repeat(np.arange(steps), np.diff(starts))
    if (step_of[around] <= at).any():
        raise ValueError(f"{wrong}a step refers to a vertex that was eliminated before it")
    dims = fine.vertex_dims[record.vertices]
    sizes = int((dims[at] * fine.vertex_dims[around]).sum()), int((dims**2).sum())
    if (record.blocks.shape, record.inverses.shape) != ((sizes[0],), (sizes[1],)):
        raise ValueError(
            f"{wrong}`steps.blocks` and `steps.inverses` must have sizes {sizes[0]} and {sizes[1]}"
        )
    if not (np.isfinite(record.blocks).all() and np.isfinite(record.inverses).all()):
        raise ValueError(f"{wrong}`steps` must be finite")
