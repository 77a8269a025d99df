"""Small dense algebra from inside numba: what a cluster's problem is made of.

Matrices are row-major in flat arrays. From the bottom:

``scaling``, ``products``
    Powers of two that bring a matrix near 1 and back; F* G added to a block, and F R.
``triangular``
    Householder's triangular factor of stacked rows, and its inverse.
``workspaces``, ``lapack``
    Workspace allocated once for a range of clusters; LAPACK in the way that numba can cache.
``scatter``
    Numbers without a pattern, to begin iterations with.
``tridiagonal``, ``hermitian``
    The lowest eigenpairs at the size of a cluster, faster than LAPACK finds them.

>>> from sheafcoarsen._kernels.dense import power_of_two
>>> power_of_two(3.0), power_of_two(0.0)
(4.0, 1.0)
"""

from sheafcoarsen._kernels.dense.hermitian import eigh_lowest, eigvalsh
from sheafcoarsen._kernels.dense.lapack import gram, potrf, potrs, pstrf, singular_rows
from sheafcoarsen._kernels.dense.products import NOT_NEGATIVE, add_gram, put_product
from sheafcoarsen._kernels.dense.scaling import (
    EPS,
    brought_near_one,
    fix_phase,
    inf_norm,
    normalized,
    power_of_two,
)
from sheafcoarsen._kernels.dense.scatter import SEED, drawn, following
from sheafcoarsen._kernels.dense.triangular import inverse_of_triangular, triangular_factor
from sheafcoarsen._kernels.dense.workspaces import (
    Workspace,
    svd_workspace,
    workspace,
    worth_reducing,
)

__all__ = [
    "EPS",
    "NOT_NEGATIVE",
    "SEED",
    "Workspace",
    "add_gram",
    "brought_near_one",
    "drawn",
    "eigh_lowest",
    "eigvalsh",
    "fix_phase",
    "following",
    "gram",
    "inf_norm",
    "inverse_of_triangular",
    "normalized",
    "potrf",
    "potrs",
    "power_of_two",
    "pstrf",
    "put_product",
    "singular_rows",
    "svd_workspace",
    "triangular_factor",
    "workspace",
    "worth_reducing",
]
