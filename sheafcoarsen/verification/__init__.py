"""Checks of every statement of the theory on a given coarsening or elimination.

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.path_graph(4))
>>> V = sc.verify(sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1))
>>> V.passed, V["thm:Galerkin_realization"].how
(True, 'exact')

``_verify`` has the public function and ``result`` what it returns. ``statements`` has one function
for each label of the paper; they compare the numbers of ``residuals``, computed by batches of
clusters (``cluster_batches``), by dense solvers on small clusters (``dense``) and for the
normalized sheaf (``normalization``), with the norms of ``relative_residual``. ``schur`` has the
statements about an elimination, ``sparse`` those about a sparsification.
"""

from sheafcoarsen.verification._verify import check_of, verify
from sheafcoarsen.verification.relative_residual import (
    RelativeResidual,
    norms_by,
    relative_residual,
)
from sheafcoarsen.verification.result import Check, Verification

__all__ = [
    "Check",
    "RelativeResidual",
    "Verification",
    "check_of",
    "norms_by",
    "relative_residual",
    "verify",
]
