"""Kernels of :mod:`sheafcoarsen.elimination`: block elimination of single vertices.

``half_edges``
    The remaining graph: half-edges at each vertex, and vertices by degree.
``row_qr``, ``gather``
    QR decomposition of stacked rows with an error bound for each row; storage of rows, and the maps
    of the remaining sheaf.
``steps``, ``star_mesh``
    Elimination of vertices with up to two neighbours, and of others by the star-mesh transform.
``substitution``
    The record of an elimination, forward and backward substitution, and the prolongation.
"""

from sheafcoarsen._kernels.elimination.gather import (
    SPARE,
    EliminationWorkspace,
    Maps,
    fill_pool,
    list_edges,
    put_maps,
)
from sheafcoarsen._kernels.elimination.half_edges import DEGREE, KEPT, LOOPS, Links, set_up
from sheafcoarsen._kernels.elimination.row_qr import ZERO_FACTOR, Rows, magnitude
from sheafcoarsen._kernels.elimination.star_mesh import MeshWorkspace
from sheafcoarsen._kernels.elimination.steps import eliminate_vertices
from sheafcoarsen._kernels.elimination.substitution import (
    Record,
    extend_backward,
    reduce_forward,
    substitute_rows,
)

__all__ = [
    "DEGREE",
    "KEPT",
    "LOOPS",
    "SPARE",
    "ZERO_FACTOR",
    "EliminationWorkspace",
    "Links",
    "Maps",
    "MeshWorkspace",
    "Record",
    "Rows",
    "eliminate_vertices",
    "extend_backward",
    "fill_pool",
    "list_edges",
    "magnitude",
    "put_maps",
    "reduce_forward",
    "set_up",
    "substitute_rows",
]
