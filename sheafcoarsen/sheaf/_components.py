"""Connected components and spanning forests of a graph; disjoint unions of sheaves."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.csgraph import breadth_first_order

from sheafcoarsen._kernels.partition import label_components
from sheafcoarsen._support import checks, ragged
from sheafcoarsen.sheaf._cellular_sheaf import CellularSheaf, check_sheaf, trusted_sheaf


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
    labels, edges = np.empty(n_vertices, np.int64), np.asarray(edges).reshape(-1, 2)
    tails, heads = edges.T.astype(np.int32, order="C")
    label_components(tails, heads, np.ones(len(edges), bool), labels)
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


def disjoint_union(
    sheaves: Iterable[CellularSheaf],
) -> tuple[CellularSheaf, np.ndarray, np.ndarray]:
    """Return the disjoint union of several sheaves.

    Parameters
    ----------
    sheaves : sequence of CellularSheaf

    Returns
    -------
    union : CellularSheaf
        In the common scalar type, with vertices and edges in the order of the parts, without
        labels.
    vertex_starts, edge_starts : ndarray of int, shape (k + 1,)
        Index of the first vertex and edge of each part.

    Raises
    ------
    TypeError
        For anything but a sequence of sheaves.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> parts = [sc.CellularSheaf.constant(nx.path_graph(n)) for n in (2, 3)]
    >>> F, vertex_starts, edge_starts = sc.disjoint_union(parts)
    >>> vertex_starts, edge_starts
    (array([0, 2, 5]), array([0, 1, 3]))
    """
    given = checks.items("sheaves", sheaves, "sheaves")
    parts = [check_sheaf(part, f"sheaves[{i}]") for i, part in enumerate(given)]
    vertex_starts = ragged.offsets([part.n_vertices for part in parts])
    edge_starts = ragged.offsets([part.n_edges for part in parts])
    types = [part.dtype for part in parts]
    dtype = np.result_type(np.float32, *types) if parts else np.dtype(float)
    # empty arrays first, because np.concatenate requires at least one
    numbers, scalars = np.zeros(0, np.int64), np.zeros(0, dtype)
    shifted = [part.edges + start for part, start in zip(parts, vertex_starts, strict=False)]
    union = trusted_sheaf(
        np.concatenate([numbers.reshape(0, 2), *shifted]),
        np.concatenate([numbers, *(part.vertex_dims for part in parts)]),
        np.concatenate([numbers, *(part.edge_dims for part in parts)]),
        np.concatenate([scalars, *(part.tail_data for part in parts)]),
        np.concatenate([scalars, *(part.head_data for part in parts)]),
    )
    return union, vertex_starts, edge_starts


def split(sheaf: CellularSheaf, vertex_starts: npt.ArrayLike) -> list[CellularSheaf]:
    """Split a disjoint union into its parts.

    Parameters
    ----------
    sheaf : CellularSheaf
    vertex_starts : array_like of int, shape (k + 1,)
        Part i holds the vertices ``vertex_starts[i] .. vertex_starts[i + 1] - 1``; no edge may join
        two parts.

    Returns
    -------
    list of CellularSheaf

    Raises
    ------
    ValueError
        Starts that do not ascend from 0 to n, or an edge between two parts.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1]])
    >>> union, vertex_starts, _ = sc.disjoint_union([F, F])
    >>> sc.split(union, vertex_starts)
    [CellularSheaf(n_vertices=2, n_edges=1, dim_c0=2, dim_c1=1, dtype=float64),
    CellularSheaf(n_vertices=2, n_edges=1, dim_c0=2, dim_c1=1, dtype=float64)]
    """
    check_sheaf(sheaf)
    starts = checks.integer_array("vertex_starts", vertex_starts)
    n = sheaf.n_vertices
    if len(starts) == 0 or starts[0] != 0 or starts[-1] != n or (np.diff(starts) < 0).any():
        raise ValueError(
            f"`vertex_starts` must ascend from 0 to {n}, the number of vertices, "
            f"got {starts.tolist()}"
        )
    part = np.searchsorted(starts, sheaf.edges, side="right") - 1
    if (e := checks.first_true(part[:, 0] != part[:, 1])) is not None:
        raise ValueError(
            f"edge {e} {tuple(sheaf.edges[e].tolist())} joins parts {part[e, 0]} and "
            f"{part[e, 1]} of `vertex_starts`"
        )
    order = np.argsort(part[:, 0], kind="stable")
    edge_starts = ragged.offsets(np.bincount(part[:, 0], minlength=len(starts) - 1))
    pieces = []
    for i, (lo, hi) in enumerate(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)):
        chosen = order[edge_starts[i] : edge_starts[i + 1]]
        pieces.append(sheaf._part(np.arange(lo, hi), chosen, sheaf.edges[chosen] - lo))
    return pieces
