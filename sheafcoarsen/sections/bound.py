"""An upper bound of the number of sections, by elimination along a spanning tree."""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order

from sheafcoarsen._support import blocks, eps_of
from sheafcoarsen.sheaf import CellularSheaf, component_labels, unit_sheaf

CLEAR_RANK = 100
"""A map has full rank for sure where its singular values exceed so many d eps of the largest."""


def section_bound(F: CellularSheaf) -> int:
    """Return a number that h0 cannot exceed, as far as the ranks of single maps are clear.

    A section is determined by its values at the roots of a spanning forest and by what the map at
    the far end of each edge of it kills: F_{v->e} x_v = F_{u->e} x_u, u being nearer to the root.
    No product of maps is taken, so that nothing grows or decays along the way.
    """
    roots, parent = _spanning_forest(F)
    children = np.flatnonzero(parent >= 0)
    edges = _edges_between(F, children, parent[children])
    killed = _nullities(F, edges, (F.edges[edges, 1] == children).astype(np.int64))
    return int(F.vertex_dims[roots].sum() + killed.sum())


def exceeds_bound(F: CellularSheaf, h0: int) -> bool:
    """Tell whether h0 is more than there can be; looks closer only where that may be so."""
    if h0 <= max(F.dim_c0 - F.dim_c1, F.vertex_dims.min(initial=0)):
        return False  # there are as many at least, or the bound is not less
    return h0 > section_bound(F)


def _spanning_forest(F: CellularSheaf) -> tuple[np.ndarray, np.ndarray]:
    """Return the roots, of least dimension in their components, and parents, -1 for roots."""
    n = F.n_vertices
    labels = component_labels(n, F.edges)
    order = np.lexsort((F.vertex_dims, labels))
    roots = order[np.diff(labels[order], prepend=-1) > 0]
    tails = np.concatenate([F.edges[:, 0], np.full(len(roots), n)])
    heads = np.concatenate([F.edges[:, 1], roots])
    ones = np.ones(len(tails), np.int8)
    graph = scipy.sparse.coo_array((ones, (tails, heads)), shape=(n + 1, n + 1)).tocsr()
    graph.data[:] = 1  # parallel edges add up, and may wrap around to zero
    parent = breadth_first_order(graph, n, directed=False)[1][:n].astype(np.int64)
    parent[roots] = -1
    return roots, parent


def _edges_between(F: CellularSheaf, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return an edge between each pair of neighbours."""
    n = F.n_vertices
    keys, first = np.unique(F.edges.min(axis=1) * n + F.edges.max(axis=1), return_index=True)
    return first[np.searchsorted(keys, np.minimum(u, v) * n + np.maximum(u, v))]


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
