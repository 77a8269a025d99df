"""Level after level."""

from sheafcoarsen.hierarchy.hierarchy import Hierarchy
from sheafcoarsen.hierarchy.ledger import HierarchyLedger
from sheafcoarsen.hierarchy.levels import coarsen_levels

__all__ = [
    "Hierarchy",
    "HierarchyLedger",
    "coarsen_levels",
]
