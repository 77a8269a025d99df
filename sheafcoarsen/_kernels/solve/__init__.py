"""Loops of :mod:`sheafcoarsen.solve`."""

from sheafcoarsen._kernels.solve.blocks import scale_blocks, triangular_roots
from sheafcoarsen._kernels.solve.frames import carry_frames

__all__ = ["carry_frames", "scale_blocks", "triangular_roots"]
