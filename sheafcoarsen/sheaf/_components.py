"""Connected components and spanning forests of a graph."""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order

from sheafcoarsen._kernels.partition import label_components
from sheafcoarsen.sheaf._cellular_sheaf import CellularSheaf, check_sheaf


def components(sheaf: CellularSheaf) -> np.ndarray:
    """Return the label of each vertex's connected component, counted from 0.

    Maps do not matter: an edge with zero maps also joins its ends. Components are numbered in the
    order of their first vertices, so vertex 0 is in component 0.

    Parameters
    ----------
    sheaf : CellularSheaf

    Returns
    -------
    ndarray of int, shape (n,)

    Raises
    ------
    TypeError
        For anything but a sheaf.

    Examples
    --------
    The largest component (the first of several of equal size) as a sheaf:

    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 3], [1, 2], [2, 4]], n_vertices=6)
    >>> labels = sc.components(F)
    >>> labels
    array([0, 1, 1, 0, 1, 2])
    >>> F.subsheaf(labels == np.bincount(labels).argmax())
    CellularSheaf(n_vertices=3, n_edges=2, dim_c0=3, dim_c1=2, dtype=float64)
    """
    check_sheaf(sheaf)
    return component_labels(sheaf.n_vertices, sheaf.edges)


def component_labels(n_vertices: int, edges: np.ndarray) -> np.ndarray:
    """Return each vertex's component label; components are numbered by their first vertices."""
    labels = np.empty(n_vertices, np.int64)
    label_components(np.ascontiguousarray(edges, np.int64).reshape(-1, 2), labels)
    return labels


def spanning_forest(
    n_vertices: int, edges: np.ndarray, roots: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a breadth-first order, the parent of each vertex, and the edge to the parent.

    ``roots`` holds one vertex of every component; their parents and edges are -1.
    """
    n, joins = n_vertices, np.flatnonzero(edges[:, 0] != edges[:, 1])
    u, v = edges[joins].T
    # one search reaches all components from an additional vertex n joined to all roots
    ends = np.concatenate([u, np.full(len(roots), n)]), np.concatenate([v, roots])
    ones = np.ones(len(ends[0]), bool)
    graph = scipy.sparse.coo_array((ones, ends), shape=(n + 1, n + 1)).tocsr()
    order, parents = breadth_first_order(graph, n, directed=False)
    order, parents = order[1:].astype(np.int64), parents[:n].astype(np.int64)
    parents[roots] = -1
    parent_edges = np.full(n, -1)
    for child, parent in ((u, v), (v, u)):
        own = parents[child] == parent
        parent_edges[child[own]] = joins[own]
    return order, parents, parent_edges


def component_count(F: CellularSheaf) -> int:
    """Return the number of connected components of a sheaf's graph."""
    return int(component_labels(F.n_vertices, F.edges).max(initial=-1)) + 1
