"""Operators of a sheaf: coboundary, Laplacian, energy, normalization, and sparse factorization."""

from sheafcoarsen.operators._coboundary import (
    apply_coboundary,
    apply_laplacian,
    as_columns,
    coboundary,
    laplacian_operator,
)
from sheafcoarsen.operators._energy import edge_energy, energy
from sheafcoarsen.operators._laplacian import LaplacianPattern, count_nonzeros, laplacian
from sheafcoarsen.operators._normalize import (
    degree_factors,
    loop_sizes,
    normalize,
    normalized,
)
from sheafcoarsen.operators.csr import canonical_csr, index_dtype
from sheafcoarsen.operators.factorization import Factors
from sheafcoarsen.operators.ordering import Order, elimination_order, factorization_cost

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
