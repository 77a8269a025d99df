"""Loops of :mod:`sheafcoarsen.sections`."""

from sheafcoarsen._kernels.sections.basis import orthonormal_blocks, stalk_factors
from sheafcoarsen._kernels.sections.equilibration import (
    changed_maps,
    normalized_edges,
    vertex_bases,
)
from sheafcoarsen._kernels.sections.reduction import (
    Room,
    kept_dims,
    reduced,
)

__all__ = [
    "Room",
    "changed_maps",
    "kept_dims",
    "normalized_edges",
    "orthonormal_blocks",
    "reduced",
    "stalk_factors",
    "vertex_bases",
]
