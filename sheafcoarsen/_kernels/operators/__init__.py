"""Loops of :mod:`sheafcoarsen.operators`."""

from sheafcoarsen._kernels.operators.blocks import UniformMaps, fill, fill_uniform
from sheafcoarsen._kernels.operators.delta import (
    apply_adjoint,
    apply_coboundary,
    coboundary_csr,
    multiply_maps,
    stacked_factors,
    sum_products,
)
from sheafcoarsen._kernels.operators.ordering import nested_dissection
from sheafcoarsen._kernels.operators.pattern import (
    BlockPattern,
    BlockRows,
    canonical_entries,
    group_entries,
    scalar_pattern,
    scalar_row_widths,
    sort_half_edges,
)

__all__ = [
    "BlockPattern",
    "BlockRows",
    "UniformMaps",
    "apply_adjoint",
    "apply_coboundary",
    "canonical_entries",
    "coboundary_csr",
    "fill",
    "fill_uniform",
    "group_entries",
    "multiply_maps",
    "nested_dissection",
    "scalar_pattern",
    "scalar_row_widths",
    "sort_half_edges",
    "stacked_factors",
    "sum_products",
]
