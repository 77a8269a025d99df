"""Kernels of :mod:`sheafcoarsen.coarsening`: maps of ``crossing`` edges and of ``loops``."""

from sheafcoarsen._kernels.coarsening.crossing import (
    CoarseMaps,
    FactorWorkspace,
    Noise,
    clear_rounding,
    compressed_maps,
    crossing_maps,
    uniform_maps,
)
from sheafcoarsen._kernels.coarsening.loops import (
    Loops,
    RetainedEnergy,
    factor,
    internal_traces,
    retained_energy,
)

__all__ = [
    "CoarseMaps",
    "FactorWorkspace",
    "Loops",
    "Noise",
    "RetainedEnergy",
    "clear_rounding",
    "compressed_maps",
    "crossing_maps",
    "factor",
    "internal_traces",
    "retained_energy",
    "uniform_maps",
]
