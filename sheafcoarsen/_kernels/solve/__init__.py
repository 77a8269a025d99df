"""Loops of :mod:`sheafcoarsen.solve`."""

from sheafcoarsen._kernels.solve.blocks import (
    carry_frames,
    count_products,
    multiply_blocks,
    scale_blocks,
    triangular_roots,
)
from sheafcoarsen._kernels.solve.combinations import Blocks, combine_blocks

__all__ = [
    "Blocks",
    "carry_frames",
    "combine_blocks",
    "count_products",
    "multiply_blocks",
    "scale_blocks",
    "triangular_roots",
]
