"""Kernels of :mod:`sheafcoarsen.elimination`: block elimination of single vertices.

``row_qr`` is the QR decomposition of stacked rows with an error bound for each row.
``remaining_sheaf`` holds the edges that remain and their rows, and ``steps`` eliminates vertices,
records the steps, and substitutes with this record.
"""

from sheafcoarsen._kernels.elimination.remaining_sheaf import (
    DEGREE,
    KEPT,
    LOOPS,
    SPARE,
    EliminationWorkspace,
    Links,
    Maps,
    fill_pool,
    list_edges,
    put_maps,
    set_up,
)
from sheafcoarsen._kernels.elimination.row_qr import ZERO_FACTOR, Rows, magnitude
from sheafcoarsen._kernels.elimination.steps import (
    MeshWorkspace,
    Record,
    eliminate_vertices,
    extend_backward,
    reduce_forward,
    substitute_rows,
)
