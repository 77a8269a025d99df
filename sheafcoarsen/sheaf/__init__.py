"""The container: a cellular sheaf, and the graphs and maps it is read from."""

from sheafcoarsen.sheaf.components import component_count, component_labels
from sheafcoarsen.sheaf.container import (
    CellularSheaf,
    check_sheaf,
    checked_sheaf,
    sheaf_rows,
    trusted_sheaf,
)
from sheafcoarsen.sheaf.graphs import edge_weights, graph_arrays
from sheafcoarsen.sheaf.maps import flat_maps, stalk_dims
from sheafcoarsen.sheaf.unions import disjoint_union, split
from sheafcoarsen.sheaf.units import unit_sheaf

__all__ = [
    "CellularSheaf",
    "check_sheaf",
    "checked_sheaf",
    "component_count",
    "component_labels",
    "disjoint_union",
    "edge_weights",
    "flat_maps",
    "graph_arrays",
    "sheaf_rows",
    "split",
    "stalk_dims",
    "trusted_sheaf",
    "unit_sheaf",
]
