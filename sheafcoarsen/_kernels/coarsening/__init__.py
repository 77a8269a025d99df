"""Loops of :mod:`sheafcoarsen.coarsening`."""

from sheafcoarsen._kernels.coarsening.crossing import compressed_maps, crossing_maps, uniform_maps
from sheafcoarsen._kernels.coarsening.loops import (
    factor,
    half_factors,
    internal_traces,
    largest_columns,
    retained_energy,
    units,
)

__all__ = [
    "compressed_maps",
    "crossing_maps",
    "factor",
    "half_factors",
    "internal_traces",
    "largest_columns",
    "retained_energy",
    "uniform_maps",
    "units",
]
