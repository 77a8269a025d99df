"""An upper bound of the number of sections, by elimination along a spanning tree."""

import numpy as np

from sheafcoarsen._support import blocks, eps_of
from sheafcoarsen.sheaf import CellularSheaf, component_labels, spanning_forest, unit_sheaf

CLEAR_RANK = 100
"""A map has full rank for sure where its singular values exceed so many d eps of the largest."""


def section_bound(F: CellularSheaf) -> int:
    """Return a number that h0 cannot exceed, as far as the ranks of single maps are clear.

    A section is determined by its values at the roots of a spanning forest and by what the map at
    the far end of each edge of it kills: F_{v->e} x_v = F_{u->e} x_u, u being nearer to the root.
    No product of maps is taken, so that nothing grows or decays along the way.
    """
    labels = component_labels(F.n_vertices, F.edges)
    by_dimension = np.lexsort((F.vertex_dims, labels))
    roots = by_dimension[np.diff(labels[by_dimension], prepend=-1) > 0]
    parent_edges = spanning_forest(F.n_vertices, F.edges, roots)[2]
    children = np.flatnonzero(parent_edges >= 0)
    edges = parent_edges[children]
    killed = _nullities(F, edges, (F.edges[edges, 1] == children).astype(np.int64))
    return int(F.vertex_dims[roots].sum() + killed.sum())


def exceeds_bound(F: CellularSheaf, h0: int) -> bool:
    """Tell whether h0 is more than there can be; looks closer only where that may be so."""
    if h0 <= max(F.dim_c0 - F.dim_c1, F.vertex_dims.min(initial=0)):
        return False  # there are as many at least, or the bound is not less
    return h0 > section_bound(F)


def _nullities(F: CellularSheaf, edges: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the dimensions of what the maps of half-edges kill, surely or perhaps."""
    out = np.zeros(len(edges), np.int64)
    unit, _ = unit_sheaf(F)
    eps = eps_of(F.dtype)
    columns, rows = F.vertex_dims[F.edges[edges, ends]], F.edge_dims[edges]
    for end, data, starts in (
        (0, unit.tail_data, F.tail_offsets),
        (1, unit.head_data, F.head_offsets),
    ):
        shapes = np.stack([rows, columns], axis=1)[ends == end]
        for p, q in np.unique(shapes, axis=0).tolist():
            here = np.flatnonzero((ends == end) & (rows == p) & (columns == q))
            maps = blocks(data, starts, edges[here]).reshape(len(here), p, q)
            sigma = np.linalg.svd(maps, compute_uv=False)
            level = CLEAR_RANK * max(p, q) * eps * sigma.max(axis=1, initial=0.0)
            out[here] = q - (sigma > level[:, None]).sum(axis=1)
    return out
