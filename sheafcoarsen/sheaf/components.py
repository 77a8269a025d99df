"""The connected components of a graph."""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from sheafcoarsen.sheaf.container import CellularSheaf


def component_labels(n_vertices: int, edges: np.ndarray) -> np.ndarray:
    """Return the component of each vertex, numbered in the order of their first vertices."""
    ones = np.ones(len(edges), np.int8)
    graph = scipy.sparse.coo_array((ones, edges.T), shape=(n_vertices, n_vertices))
    return connected_components(graph.tocsr(), directed=False)[1].astype(np.int64)


def component_count(F: CellularSheaf) -> int:
    """Return the number of connected components of a sheaf's graph."""
    return int(component_labels(F.n_vertices, F.edges).max(initial=-1)) + 1
