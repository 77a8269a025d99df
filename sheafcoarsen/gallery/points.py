"""Points in space: nearest neighbours, the connection of a sampled manifold, bar frameworks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from sheafcoarsen._support import checks, linalg, surfaces, threads
from sheafcoarsen.sheaf import CellularSheaf, GraphLike, graph_arrays, trusted_sheaf

CHUNK = 2**22
"""Maximum number of coordinates of vectors from points to neighbours in memory at a time."""


def nearest_neighbors(points: npt.ArrayLike, k: int) -> np.ndarray:
    """Return the edges between points of which one is among the k nearest neighbours of the other.

    Parameters
    ----------
    points : array_like, shape (n, d)
        Coinciding points are neighbours at distance 0. Ties between distances are broken
        arbitrarily.
    k : int
        Number of nearest neighbours of each point, not counting itself: 1 <= k < n.

    Returns
    -------
    ndarray of int, shape (m, 2)
        Each edge once, u < v, sorted.

    Raises
    ------
    ValueError, TypeError
        If points are not finite real numbers, or there are at most k points.

    Examples
    --------
    >>> from sheafcoarsen import gallery
    >>> gallery.nearest_neighbors([[0.0], [1.0], [3.0], [7.0]], 1)
    array([[0, 1],
           [1, 2],
           [2, 3]])
    """
    return _neighbors(surfaces.point_array(points), k)[0]


def _neighbors(points: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return sorted edges, scaled points, their k nearest neighbours (n, k) and the distances."""
    k, n = checks.whole_number("k", k, at_least=1), len(points)
    if k >= n:
        raise ValueError(f"`k` must be below the number of points, {n}, got {k}")
    scaled, _ = surfaces.scaled_points(points)
    distances, found = cKDTree(scaled).query(scaled, k + 1)
    own = found == np.arange(n)[:, None]
    # if more than k others coincide with a point, it may be missing: drop the last one then
    own[~own.any(axis=1), -1] = True
    found, distances = found[~own].reshape(n, k), distances[~own].reshape(n, k)
    keys = surfaces.pair_keys(np.arange(n)[:, None], found, n)
    return surfaces.pairs_of_keys(np.unique(keys), n), scaled, found, distances


@threads.single_threaded_blas()
def connection_from_points(
    points: npt.ArrayLike, k: int, dim: int
) -> tuple[CellularSheaf, np.ndarray]:
    """Return the connection of the manifold sampled by a point cloud, and the tangent bases.

    This is the construction of vector diffusion maps: the tangent space at a point is spanned by
    the ``dim`` leading directions T_v of its neighbours (local principal components), and the
    transport of an edge (u, v) is the orthogonal matrix nearest to ``T_u^T T_v`` (Procrustes),
    which maps coordinates at v to coordinates at u (``eq:app-connection-restrictions``).

    Parameters
    ----------
    points : array_like, shape (n, D)
        Distinct points.
    k : int
        Number of nearest neighbours of each point: dim <= k < n. An edge joins two points of which
        one is a nearest neighbour of the other, as in :func:`nearest_neighbors`.
    dim : int
        Dimension of the manifold, 1 <= dim <= D.

    Returns
    -------
    F : CellularSheaf
        Stalks of dimension ``dim``; every edge has weight 1.
    frames : ndarray, shape (n, D, dim)
        The bases T_v: orthonormal columns; ``T_v x`` is the vector with coordinates x.

    Raises
    ------
    ValueError, TypeError
        If points are not finite or coincide, ``k`` is below ``dim`` or not below n, ``dim`` is
        above D, or the neighbours of a point span fewer than ``dim`` dimensions.

    See Also
    --------
    tangent_bundle : the same for a surface with faces.

    Notes
    -----
    The offsets of the neighbours x_j of a point x_i are weighted with the square root of
    exp(-5 r^2), where r is the distance relative to that of the farthest neighbour, as in Singer
    and Wu, "Vector Diffusion Maps and the Connection Laplacian" (Communications on Pure and Applied
    Mathematics, 2012). The error of a tangent space is about the farthest distance over the radius
    of curvature, or the square of this ratio if neighbours are evenly distributed around the point.
    The bases are not oriented consistently, so transports may have determinant -1 even on an
    orientable manifold. Across folds of more than 90 degrees, and between the sides of thin parts,
    they contradict every orientation, and eigenvalues do not come in pairs there. Two neighbours
    with orthogonal tangent spaces have no unique transport.

    Examples
    --------
    Points on a circle have one tangent direction each, which form a parallel field:

    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> angle = 2 * np.pi * np.arange(30) / 30
    >>> circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    >>> F, frames = sc.gallery.connection_from_points(circle, k=2, dim=1)
    >>> np.abs(frames[0, :, 0]).round(6)
    array([0., 1.])
    >>> sc.global_sections(F).h0
    1
    """
    points = surfaces.point_array(points)
    n, D = points.shape
    dim = checks.whole_number("dim", dim, at_least=1)
    if dim > D:
        raise ValueError(f"`dim` must be at most {D}, the dimension of the points, got {dim}")
    edges, scaled, found, distances = _neighbors(points, k)
    k = found.shape[1]
    if k < dim:
        raise ValueError(
            f"`k` must be at least `dim` = {dim}, so that neighbours can span the tangent space, "
            f"got {k}"
        )
    if (v := checks.first_true(distances[:, 0] == 0)) is not None:
        raise ValueError(
            f"`points` {v} and {int(found[v, 0])} coincide: remove duplicates with "
            f"numpy.unique(points, axis=0)"
        )
    frames = np.empty((n, D, dim))
    eps, step = linalg.eps_of(points.dtype), max(1, CHUNK // (k * D))
    for start in range(0, n, step):
        at = slice(start, start + step)
        weights = np.exp(-2.5 * (distances[at] / distances[at, -1:]) ** 2)
        offsets = weights[:, :, None] * (scaled[found[at]] - scaled[at, None])
        _, sizes, directions = np.linalg.svd(offsets, full_matrices=False)
        # include the points in the level, because differences inherit their rounding errors
        level = linalg.zero_level(k, eps, sizes[:, 0] + np.abs(scaled[at]).max(axis=1))
        if (v := checks.first_true(sizes[:, dim - 1] <= level)) is not None:
            rank = int((sizes[v] > level[v]).sum())
            raise ValueError(
                f"the {k} nearest neighbours of point {start + v} span {rank} of `dim` = {dim} "
                f"dimensions: increase `k`"
            )
        own = directions[:, :dim].swapaxes(1, 2)
        # fix the arbitrary sign of a principal direction: its largest entry is positive
        largest = np.take_along_axis(own, np.abs(own).argmax(axis=1)[:, None], axis=1)
        frames[at] = own * np.where(largest < 0, -1.0, 1.0)
    left, _, right = np.linalg.svd(frames[edges[:, 0]].swapaxes(1, 2) @ frames[edges[:, 1]])
    transports = (left @ right).astype(points.dtype)
    sheaf = CellularSheaf.connection(edges, transports, n_vertices=n)
    return sheaf, frames.astype(points.dtype)


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
