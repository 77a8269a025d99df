"""Checks of all statements of the theory on a given coarsening, elimination or sparsification.

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.path_graph(4))
>>> V = sc.verify(sc.coarsen(F, sc.Partition([0, 0, 1, 1]), rank=1))
>>> V.passed, V["thm:Galerkin_realization"].how
(True, 'exact')

``statements`` has one function for each label of the paper, ``reductions`` those about an
elimination or a sparsification. They compare residuals that ``residuals`` computes in batches of
clusters (``cluster_batches``) and divides by norms (``relative_residual``).
"""

from sheafcoarsen.verification._verify import Check, Verification, check_of, verify
from sheafcoarsen.verification.relative_residual import RelativeResidual, relative_residual

__all__ = ["Check", "RelativeResidual", "Verification", "check_of", "relative_residual", "verify"]
