"""Coboundary, Laplacian, energy, normalization."""

from sheafcoarsen.operators.csr import canonical_csr, index_dtype
from sheafcoarsen.operators.delta import (
    apply_coboundary,
    apply_laplacian,
    as_columns,
    coboundary,
    laplacian_operator,
)
from sheafcoarsen.operators.energies import edge_energy, energy
from sheafcoarsen.operators.factors import Factors
from sheafcoarsen.operators.normalization import (
    degree_factors,
    loop_sizes,
    normalize,
    normalized,
)
from sheafcoarsen.operators.ordering import Order, elimination_order, factorization_cost
from sheafcoarsen.operators.pattern import LaplacianPattern, count_nonzeros, laplacian

__all__ = [
    "Factors",
    "LaplacianPattern",
    "Order",
    "apply_coboundary",
    "apply_laplacian",
    "as_columns",
    "canonical_csr",
    "coboundary",
    "count_nonzeros",
    "degree_factors",
    "edge_energy",
    "elimination_order",
    "energy",
    "factorization_cost",
    "index_dtype",
    "laplacian",
    "laplacian_operator",
    "loop_sizes",
    "normalize",
    "normalized",
]
