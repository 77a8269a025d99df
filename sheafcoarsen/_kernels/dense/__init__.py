"""Dense linear algebra on small row-major matrices, stored in flat arrays.

``scaling``, ``products``
    Scaling by powers of two, norms and phases; the products F* G and F R.
``triangular``
    Triangular factor of the QR decomposition by Householder reflections.
``lapack``
    LAPACK in a form that numba can cache, and workspace for the problems of a range of clusters.
``tridiagonal``, ``hermitian``
    Lowest eigenpairs of Hermitian matrices of the size of a cluster, faster than LAPACK.

>>> from sheafcoarsen._kernels.dense import power_of_two
>>> power_of_two(3.0), power_of_two(0.0)
(4.0, 1.0)
"""

from sheafcoarsen._kernels.dense.hermitian import eigh_lowest, eigvalsh
from sheafcoarsen._kernels.dense.lapack import (
    Workspace,
    gram,
    potrf,
    potrs,
    pstrf,
    singular_rows,
    svd_workspace,
    workspace,
    worth_reducing,
)
from sheafcoarsen._kernels.dense.products import NOT_NEGATIVE, add_gram, put_product
from sheafcoarsen._kernels.dense.scaling import (
    EPS,
    brought_near_one,
    fix_phase,
    inf_norm,
    largest_entry,
    power_of_two,
)
from sheafcoarsen._kernels.dense.triangular import triangular_factor
from sheafcoarsen._kernels.dense.tridiagonal import fill_random, orthonormalize

__all__ = [
    "EPS",
    "NOT_NEGATIVE",
    "Workspace",
    "add_gram",
    "brought_near_one",
    "eigh_lowest",
    "eigvalsh",
    "fill_random",
    "fix_phase",
    "gram",
    "inf_norm",
    "largest_entry",
    "orthonormalize",
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
