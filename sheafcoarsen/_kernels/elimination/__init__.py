"""Loops of :mod:`sheafcoarsen.elimination`: vertices solved for one by one, and put back.

``half_edges``
    the graph as it shrinks: lists of edges at vertices, and which vertex is next;
``row_qr``, ``gather``
    stacked rows reduced by reflections, each judged against the maps that it came from; the rows
    of a bundle of edges brought together;
``steps``, ``star_mesh``, ``record``
    one vertex after the other: up to two neighbours for any maps, star-mesh beyond; what is written
    down of it;
``cells``
    the maps of the sheaf that is left;
``substitution``, ``prolongation``
    right sides forward and values backward through the steps; the prolongation.
"""

from sheafcoarsen._kernels.elimination.cells import (
    Cells,
    join_bundles,
    list_edges,
    put_left_loops,
    put_pairs,
)
from sheafcoarsen._kernels.elimination.gather import (
    FREE_BLOCKS,
    EliminationWorkspace,
    Maps,
    fill_pool,
)
from sheafcoarsen._kernels.elimination.half_edges import DEGREE, KEPT, LOOPS, Links, set_up
from sheafcoarsen._kernels.elimination.prolongation import (
    Anchors,
    find_anchors,
    put_indices,
    put_prolongation,
)
from sheafcoarsen._kernels.elimination.record import (
    BLOCKS,
    FREE,
    INVERSES,
    NEIGHBORS,
    STEPS,
    Record,
)
from sheafcoarsen._kernels.elimination.row_qr import ZERO_FACTOR, Rows, size_of
from sheafcoarsen._kernels.elimination.star_mesh import MeshWorkspace
from sheafcoarsen._kernels.elimination.steps import DONE, IDS, POOL, RECORD, eliminate_vertices
from sheafcoarsen._kernels.elimination.substitution import (
    extend_backward,
    reduce_forward,
)

__all__ = [
    "BLOCKS",
    "DEGREE",
    "DONE",
    "FREE",
    "FREE_BLOCKS",
    "IDS",
    "INVERSES",
    "KEPT",
    "LOOPS",
    "NEIGHBORS",
    "POOL",
    "RECORD",
    "STEPS",
    "ZERO_FACTOR",
    "Anchors",
    "Cells",
    "EliminationWorkspace",
    "Links",
    "Maps",
    "MeshWorkspace",
    "Record",
    "Rows",
    "eliminate_vertices",
    "extend_backward",
    "fill_pool",
    "find_anchors",
    "join_bundles",
    "list_edges",
    "put_indices",
    "put_left_loops",
    "put_pairs",
    "put_prolongation",
    "reduce_forward",
    "set_up",
    "size_of",
]
