"""Kernels of :mod:`sheafcoarsen.operators`: assembly, products and factorization of L."""

from sheafcoarsen._kernels.operators.assembly import (
    BlockPattern,
    canonical_entries,
    fill,
    fill_uniform,
    group_entries,
    scalar_pattern,
    sort_half_edges,
)
from sheafcoarsen._kernels.operators.delta import (
    coboundary_csr,
    multiply_maps,
    stacked_factors,
    sum_products,
)
from sheafcoarsen._kernels.operators.factorization import (
    count_operations,
    mark_stalks,
    nested_dissection,
    order_chains,
    solve_factored,
)
from sheafcoarsen._kernels.operators.products import (
    apply_coboundary,
    apply_laplacian,
    apply_laplacian_column,
)

__all__ = [
    "BlockPattern",
    "apply_coboundary",
    "apply_laplacian",
    "apply_laplacian_column",
    "canonical_entries",
    "coboundary_csr",
    "count_operations",
    "fill",
    "fill_uniform",
    "group_entries",
    "mark_stalks",
    "multiply_maps",
    "nested_dissection",
    "order_chains",
    "scalar_pattern",
    "solve_factored",
    "sort_half_edges",
    "stacked_factors",
    "sum_products",
]
