"""Operators of a sheaf: coboundary, Laplacian, energy, normalization; factorization, LOBPCG."""

from sheafcoarsen.operators._coboundary import (
    apply_coboundary,
    as_columns,
    coboundary,
    edge_energy,
    energy,
    laplacian_operator,
)
from sheafcoarsen.operators._laplacian import (
    LaplacianPattern,
    canonical_csr,
    count_nonzeros,
    laplacian,
)
from sheafcoarsen.operators._normalize import change_stalks, degree_factors, loop_norms, normalize
from sheafcoarsen.operators.factorization import (
    Factors,
    Order,
    elimination_order,
    fills_little,
)
from sheafcoarsen.operators.lobpcg import Pairs, lowest_pairs

__all__ = [
    "Factors",
    "LaplacianPattern",
    "Order",
    "Pairs",
    "apply_coboundary",
    "as_columns",
    "canonical_csr",
    "change_stalks",
    "coboundary",
    "count_nonzeros",
    "degree_factors",
    "edge_energy",
    "elimination_order",
    "energy",
    "fills_little",
    "laplacian",
    "laplacian_operator",
    "loop_norms",
    "lowest_pairs",
    "normalize",
]
