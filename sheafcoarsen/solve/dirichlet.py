"""Dirichlet conditions: the block of L at free vertices is again the Laplacian of a sheaf."""

import numpy as np

from sheafcoarsen._support import offsets, ranges
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


def grounded(sheaf: CellularSheaf, fixed: np.ndarray) -> CellularSheaf:
    """Return the sheaf on the free vertices whose Laplacian is the free block of L.

    An edge to a fixed vertex becomes a loop at its other end with head map 0; edges between fixed
    vertices are removed.

    Parameters
    ----------
    sheaf : CellularSheaf
    fixed : ndarray of bool, shape (n,)
    """
    number = np.cumsum(~fixed) - 1
    at_tail, at_head = fixed[sheaf.edges[:, 0]], fixed[sheaf.edges[:, 1]]
    edges = np.flatnonzero(~(at_tail & at_head))
    ends = sheaf.edges[edges].copy()
    at_tail, at_head = at_tail[edges], at_head[edges]
    ends[at_tail, 0] = ends[at_tail, 1]
    ends[at_head, 1] = ends[at_head, 0]
    begins = np.where(at_tail, sheaf.head_offsets[edges], sheaf.tail_offsets[edges])
    dims = sheaf.vertex_dims[~fixed]
    ends = number[ends]
    sizes = sheaf.edge_dims[edges] * dims[ends[:, 0]]
    starts = offsets(sizes)
    tail = np.empty(int(starts[-1]), sheaf.dtype)
    for source, mine in ((sheaf.tail_data, ~at_tail), (sheaf.head_data, at_tail)):
        tail[ranges(starts[:-1][mine], sizes[mine])] = source[ranges(begins[mine], sizes[mine])]
    loops = at_tail | at_head
    head_sizes = sheaf.edge_dims[edges] * dims[ends[:, 1]]
    head_starts = offsets(head_sizes)
    head = np.zeros(int(head_starts[-1]), sheaf.dtype)
    inner = ~loops
    head[ranges(head_starts[:-1][inner], head_sizes[inner])] = sheaf.head_data[
        ranges(sheaf.head_offsets[edges][inner], head_sizes[inner])
    ]
    return trusted_sheaf(ends, dims, sheaf.edge_dims[edges], tail, head)
