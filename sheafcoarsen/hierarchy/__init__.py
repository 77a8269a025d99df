"""Repeated coarsening: of a sheaf, then of its coarse sheaf, and so on.

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.path_graph(64))
>>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=3)
>>> [G.n_vertices for G in H.sheaves]  # level i coarsens sheaf i to sheaf i + 1
[64, 16, 4]
>>> float(H.lift(H.pool([1.0] * 64)).min().round(9))  # constants are preserved
1.0

``_coarsen_levels`` determines the partition and the ranks of each level, and contains the loop over
levels. ``_hierarchy`` defines the result, with transfer between the fine sheaf and any level, and
the energy ledger of all levels.
"""

from sheafcoarsen.hierarchy._coarsen_levels import (
    LevelPlan,
    RankPerLevel,
    coarsen_levels,
)
from sheafcoarsen.hierarchy._hierarchy import Hierarchy, HierarchyLedger, at_level

__all__ = [
    "Hierarchy",
    "HierarchyLedger",
    "LevelPlan",
    "RankPerLevel",
    "at_level",
    "coarsen_levels",
]
