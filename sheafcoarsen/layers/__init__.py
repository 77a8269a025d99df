"""Layers of a sheaf network with given weights: pooling, readout, and a diffusion step.

``_hisp`` is the paper's pooling layer, one level of coarsening with features. ``_diffusion_step``
holds the layer that precedes it, and the readout, which ends a model with one row per graph.
"""

from sheafcoarsen.layers._diffusion_step import diffusion_step, readout
from sheafcoarsen.layers._hisp import HiSP, Pooling

__all__ = ["HiSP", "Pooling", "diffusion_step", "readout"]
