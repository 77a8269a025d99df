"""Bar frameworks and their infinitesimal motions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import checks, surfaces
from sheafcoarsen.sheaf import CellularSheaf, GraphLike, graph_arrays, trusted_sheaf


def bar_framework(graph: GraphLike, points: npt.ArrayLike) -> CellularSheaf:
    """Return the sheaf of a bar framework, whose sections are the motions that stretch no bar.

    Joint v has the stalk R^d of its velocities, bar e = (u, v) the stalk R^1, and both maps are the
    bar's unit direction from u to v: ``(delta x)_e = direction_e . (x_u - x_v)`` is the rate at
    which the bar gets shorter. H^0 is the space of infinitesimal motions, including rigid ones; L
    is the stiffness matrix of bars of stiffness 1.

    Parameters
    ----------
    graph : networkx Graph or MultiGraph, scipy sparse adjacency, or (m, 2) integer array
        Weights are not used.
    points : array_like, shape (n, d)
        Positions of the joints, in vertex order. For an edge array, rows beyond its last vertex
        are joints without bars.

    Returns
    -------
    CellularSheaf

    Raises
    ------
    ValueError, TypeError
        If points are not finite, not one per vertex, or equal at both ends of a bar.

    Examples
    --------
    >>> from sheafcoarsen import gallery
    >>> F = gallery.bar_framework([[0, 1], [1, 2]], [[0.0, 0.0], [5.0, 0.0], [2.0, -4.0]])
    >>> F.tail_map(1), F.head_map(1)
    (array([[-0.6, -0.8]]), array([[-0.6, -0.8]]))
    """
    points = surfaces.point_array(points)
    arrays = graph_arrays(graph)
    n, d = points.shape
    if n < arrays.n_vertices or (n > arrays.n_vertices and arrays.has_all_vertices):
        raise ValueError(
            f"`points` must have one row per vertex, {arrays.n_vertices} in all, got {n}"
        )
    ends = points[arrays.edges].reshape(-1, 2, d)
    _, exponents = np.frexp(np.abs(ends).max(axis=(1, 2), initial=0))
    bars = np.diff(np.ldexp(ends, -exponents[:, None, None]), axis=1)[:, 0]
    longest = np.abs(bars).max(axis=1, initial=0)
    if (e := checks.first_true(longest == 0)) is not None:
        raise ValueError(
            f"edge {e} {tuple(arrays.edges[e].tolist())} has length zero in `points`, so it has no "
            f"direction: move a point or omit the edge"
        )
    bars /= longest[:, None]
    directions = (bars / np.linalg.norm(bars, axis=1)[:, None]).astype(points.dtype).reshape(-1)
    return trusted_sheaf(
        arrays.edges,
        np.full(n, d, dtype=np.int64),
        np.ones(len(arrays.edges), dtype=np.int64),
        directions,
        directions.copy(),
        arrays.labels,
    )
