"""Cellular sheaves, and their construction from graphs, maps and matrices.

A sheaf assigns a vector space to every vertex and edge of a graph and a linear map to every
incident pair; it is stored as flat read-only arrays. It is constructed from edges and maps, or from
a graph and values on its edges:

>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]], dim=2, weight=[1.0, 4.0])
>>> F
CellularSheaf(n_vertices=3, n_edges=2, dim_c0=6, dim_c1=4, dtype=float64)
>>> F.head_map(1)
array([[2., 0.],
       [0., 2.]])

Sheaves are immutable; methods return a new sheaf that shares unchanged arrays:

>>> F.with_maps(3 * F.tail_data, 3 * F.head_data).head_map(1)
array([[6., 0.],
       [0., 6.]])
>>> F.with_labels(["a", "b", "c"]).subsheaf([0, 2]).vertex_labels
('a', 'c')

``graphs`` and ``maps`` check what users supply, and ``from_matrices`` finds the maps of a
Laplacian. The class is in three modules: ``properties`` has the arrays and the methods that return
another sheaf, ``from_graphs`` the class methods that take a graph or a Laplacian,
``_cellular_sheaf`` the rest. `trusted_sheaf` and `sheaf_like` build one from arrays without checks.
"""

from sheafcoarsen.sheaf._cellular_sheaf import (
    CellularSheaf,
    check_sheaf,
    checked_sheaf,
    sheaf_rows,
    trusted_sheaf,
)
from sheafcoarsen.sheaf._components import (
    component_count,
    component_labels,
    components,
    disjoint_union,
    spanning_forest,
    split,
)
from sheafcoarsen.sheaf._fit_maps import fit_connection, fit_maps
from sheafcoarsen.sheaf.graphs import (
    GraphLike,
    Topology,
    check_same_topology,
    edge_weights,
    graph_arrays,
    same_array,
    same_topology,
    vertex_names,
)
from sheafcoarsen.sheaf.maps import (
    MapsLike,
    check_unitary,
    flat_maps,
    random_orthonormal,
    stalk_dims,
)
from sheafcoarsen.sheaf.properties import both_ends, edge_subset, sheaf_like, unit_sheaf

__all__ = [
    "CellularSheaf",
    "GraphLike",
    "MapsLike",
    "Topology",
    "both_ends",
    "check_same_topology",
    "check_sheaf",
    "check_unitary",
    "checked_sheaf",
    "component_count",
    "component_labels",
    "components",
    "disjoint_union",
    "edge_subset",
    "edge_weights",
    "fit_connection",
    "fit_maps",
    "flat_maps",
    "graph_arrays",
    "random_orthonormal",
    "same_array",
    "same_topology",
    "sheaf_like",
    "sheaf_rows",
    "spanning_forest",
    "split",
    "stalk_dims",
    "trusted_sheaf",
    "unit_sheaf",
    "vertex_names",
]
