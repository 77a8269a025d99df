"""Level after level: a sheaf coarsened, its coarse sheaf coarsened again, and so on.

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant(nx.path_graph(64))
>>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=3)
>>> [G.n_vertices for G in H.sheaves]  # level i leads from sheaf i to sheaf i + 1
[64, 16, 4]
>>> float(H.lift(H.pool([1.0] * 64)).min().round(9))  # constants survive both ways
1.0

``levels.py`` has the loop over levels, after the plan of ``plan.py``: which partition and which
ranks each of them takes. ``hierarchy.py`` is the result, with the way between any two sheaves, and
``ledger.py`` what becomes of a cochain's energy on it. ``pooling.py`` is the paper's layer, one
level with the features of a graph on it.
"""

from sheafcoarsen.hierarchy.hierarchy import Hierarchy
from sheafcoarsen.hierarchy.ledger import HierarchyLedger
from sheafcoarsen.hierarchy.levels import coarsen_levels, further_levels
from sheafcoarsen.hierarchy.plan import (
    GivenPartitions,
    LevelPlan,
    RankPerLevel,
    SelectedPartitions,
    refuse_beside_partitions,
    tuple_of,
)
from sheafcoarsen.hierarchy.pooling import HiSP, Pooling, readout

__all__ = [
    "GivenPartitions",
    "HiSP",
    "Hierarchy",
    "HierarchyLedger",
    "LevelPlan",
    "Pooling",
    "RankPerLevel",
    "SelectedPartitions",
    "coarsen_levels",
    "further_levels",
    "readout",
    "refuse_beside_partitions",
    "tuple_of",
]
