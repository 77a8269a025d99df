"""Example sheaves with known sections or spectra, and sheaves of points, meshes and frameworks.

Methods can be tested against known results. The dimension of the global sections of a bundle
without noise is that of its stalks, whatever the random bases of its stalks:

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> sc.global_sections(sc.gallery.bundle(nx.grid_2d_graph(5, 5), dim=3, seed=0)).h0
3

The tangent planes of a sphere have no parallel field:

>>> octahedron = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]
>>> faces = [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
>>> F = sc.gallery.tangent_bundle(octahedron, faces)
>>> sc.global_sections(F).h0
0

Sheaves with random maps are made by :meth:`sheafcoarsen.CellularSheaf.random`.
"""

from sheafcoarsen.gallery.bundles import bundle, cycle
from sheafcoarsen.gallery.points import bar_framework, connection_from_points, nearest_neighbors
from sheafcoarsen.gallery.surfaces import (
    field_indices,
    tangent_bundle,
    tangent_frames,
    vertex_areas,
)

__all__ = [
    "bar_framework",
    "bundle",
    "connection_from_points",
    "cycle",
    "field_indices",
    "nearest_neighbors",
    "tangent_bundle",
    "tangent_frames",
    "vertex_areas",
]


def __dir__() -> list[str]:
    """Return the names of the functions, without those of the modules."""
    return __all__
