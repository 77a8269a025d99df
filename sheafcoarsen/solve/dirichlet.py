"""Dirichlet conditions: the block of L at free vertices is again the Laplacian of a sheaf."""

import numpy as np

from sheafcoarsen._support import ranges
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


def grounded(sheaf: CellularSheaf, fixed: np.ndarray) -> CellularSheaf:
    """Return the sheaf on the vertices outside the mask whose Laplacian is the free block of L.

    An edge to a fixed vertex becomes a loop at its other end with head map 0; edges between fixed
    vertices are removed.
    """
    edges = np.flatnonzero(~fixed[sheaf.edges].all(axis=1))
    ends, dims = sheaf.edges[edges], sheaf.vertex_dims[~fixed]
    at_tail, at_head = fixed[ends].T
    ends = (np.cumsum(~fixed) - 1)[np.where(fixed[ends], ends[:, ::-1], ends)]
    data = np.concatenate([sheaf.tail_data, sheaf.head_data])
    tails, heads = sheaf.tail_offsets[edges], len(sheaf.tail_data) + sheaf.head_offsets[edges]
    sizes = sheaf.edge_dims[edges] * dims[ends].T
    tail = data[ranges(np.where(at_tail, heads, tails), sizes[0])]
    head = data[ranges(np.where(at_head, tails, heads), sizes[1])]
    head[np.repeat(at_tail | at_head, sizes[1])] = 0
    return trusted_sheaf(ends, dims, sheaf.edge_dims[edges], tail, head)
