"""Kernels of :mod:`sheafcoarsen.elimination`: block elimination of single vertices.

``half_edges``
    The remaining graph: half-edges at each vertex, and vertices by degree.
``row_qr``, ``gather``
    QR decomposition of stacked rows with an error bound for each row; storage of rows.
``steps``, ``star_mesh``
    Elimination of vertices with up to two neighbours, and of others by the star-mesh transform.
``record``, ``prolongation``
    The record of an elimination, forward and backward substitution; the prolongation.
``cells``
    The maps of the remaining sheaf.
"""

from sheafcoarsen._kernels.elimination.cells import list_edges, put_maps
from sheafcoarsen._kernels.elimination.gather import (
    FREE_BLOCKS,
    EliminationWorkspace,
    Maps,
    fill_pool,
)
from sheafcoarsen._kernels.elimination.half_edges import DEGREE, KEPT, LOOPS, RING, Links, set_up
from sheafcoarsen._kernels.elimination.prolongation import (
    Anchors,
    find_anchors,
    put_prolongation,
)
from sheafcoarsen._kernels.elimination.record import (
    FREE,
    Record,
    extend_backward,
    reduce_forward,
)
from sheafcoarsen._kernels.elimination.row_qr import ZERO_FACTOR, Rows, magnitude
from sheafcoarsen._kernels.elimination.star_mesh import MeshWorkspace
from sheafcoarsen._kernels.elimination.steps import eliminate_vertices

__all__ = [
    "DEGREE",
    "FREE",
    "FREE_BLOCKS",
    "KEPT",
    "LOOPS",
    "RING",
    "ZERO_FACTOR",
    "Anchors",
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
    "list_edges",
    "magnitude",
    "put_maps",
    "put_prolongation",
    "reduce_forward",
    "set_up",
]
