"""Loops of :mod:`sheafcoarsen.solve`."""

from sheafcoarsen._kernels.solve.blocks import (
    count_products,
    multiply_blocks,
    scale_blocks,
    triangular_roots,
)
from sheafcoarsen._kernels.solve.combinations import Blocks, combine_blocks
from sheafcoarsen._kernels.solve.frames import carry_frames

__all__ = [
    "Blocks",
    "carry_frames",
    "combine_blocks",
    "count_products",
    "multiply_blocks",
    "scale_blocks",
    "triangular_roots",
]
