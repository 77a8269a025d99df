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
    in_bases,
    loop_sizes,
    normalize,
    normalized,
)
from sheafcoarsen.operators.csr import canonical_csr, index_dtype
from sheafcoarsen.operators.factorization import Factors
from sheafcoarsen.operators.factorization_cost import fills_little
from sheafcoarsen.operators.ordering import PER_OPERATION, Order, elimination_order

__all__ = [
    "PER_OPERATION",
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
    "fills_little",
    "in_bases",
    "index_dtype",
    "laplacian",
    "laplacian_operator",
    "loop_sizes",
    "normalize",
    "normalized",
]
