"""Checks of all statements of the theory on a given coarsening, elimination or sparsification.

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.path_graph(4))
>>> V = sc.verify(sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1))
>>> V.passed, V["thm:Galerkin_realization"].how
(True, 'exact')

``_verify`` contains the public function and the classes that it returns. ``statements`` has one
function for each label of the paper, ``reductions`` has the statements about an elimination and
those about a sparsification. The functions use residuals computed by ``residuals`` in batches of
clusters (``cluster_batches``), and those computed by dense solvers, of small clusters and of the
normalized sheaf (``reference``). ``relative_residual`` divides them by norms.
"""

from sheafcoarsen.verification._verify import Check, Verification, check_of, verify
from sheafcoarsen.verification.relative_residual import RelativeResidual, relative_residual

__all__ = ["Check", "RelativeResidual", "Verification", "check_of", "relative_residual", "verify"]
