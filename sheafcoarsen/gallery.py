"""Sheaves with known answers, and sheaves from points, meshes and frameworks."""

from collections.abc import Sized

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.spatial import cKDTree

from sheafcoarsen._support import (
    Seed,
    eps_of,
    integer_array,
    random_generator,
    real_number,
    room_for_entries,
    scalar_array,
    single_threaded_blas,
    vertex_count,
    whole_number,
    zero_level,
)
from sheafcoarsen.sheaf import (
    CellularSheaf,
    GraphLike,
    check_unitary,
    graph_arrays,
    random_orthonormal,
    trusted_sheaf,
)

__all__ = ["bar_framework", "bundle", "cycle", "nearest_neighbors", "tangent_bundle"]


def __dir__() -> list[str]:
    """Name the sheaves, not what they are made with."""
    return __all__


def bundle(graph: GraphLike, dim: int, noise: float = 0.0, seed: Seed = None) -> CellularSheaf:
    """Build a constant sheaf in disguise: random orthogonal bases g_v of the stalks, then noise.

    The transports are ``U_e = g_u g_v^T`` for e = (u, v), so that ``x_v = g_v c`` is a section for
    every c: without noise the dimension of H^0 is ``dim`` in every component, and the spectrum is
    that of ``CellularSheaf.constant(graph, dim)``. Noise multiplies each transport by its own
    random rotation ``exp(noise K)``, which leaves it orthogonal.

    Parameters
    ----------
    graph : networkx Graph or MultiGraph, symmetric scipy sparse adjacency, or (m, 2) integer array
        Weights as in :meth:`CellularSheaf.constant`.
    dim : int
        Dimension of every stalk.
    noise : float
        At least 0. K is skew with standard normal entries, so in dimension 2 ``noise`` is the
        standard deviation of the angle; in dimension 1, where no small rotation exists, it has no
        effect.
    seed : None, int or numpy Generator
        One seed gives the same bases g_v with and without noise.

    Returns
    -------
    CellularSheaf

    Raises
    ------
    ValueError, TypeError
        Noise that is negative or not finite; a graph that cannot be read.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> from sheafcoarsen import gallery
    >>> F = gallery.bundle(nx.cycle_graph(3), 2, seed=5)
    >>> F.edges.tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> around = F.head_map(0) @ F.head_map(2) @ F.head_map(1).T  # 0 from 1 from 2 from 0
    >>> np.allclose(around, np.eye(2))
    True
    """
    dim = whole_number("dim", dim, at_least=0)
    noise = real_number("noise", noise)
    if not 0 <= noise < np.inf:
        raise ValueError(f"`noise` must be finite and at least 0, got {noise}")
    arrays = graph_arrays(graph)
    rng = random_generator("seed", seed)
    count = max(arrays.n_vertices, len(arrays.edges), 1)
    with room_for_entries("dim", count * dim * dim):
        gauge = random_orthonormal(rng, arrays.n_vertices, dim, dim, np.dtype(float))
        tails, heads = arrays.edges.T
        transports = gauge[tails] @ gauge[heads].swapaxes(1, 2)
        if noise > 0:
            transports = transports @ _random_rotations(rng, len(transports), dim, noise)
        return CellularSheaf.connection(graph, transports)


@single_threaded_blas()
def _random_rotations(rng: np.random.Generator, count: int, dim: int, noise: float) -> np.ndarray:
    """Return exp(noise K), K = (A - A^T) / sqrt 2 with A standard normal."""
    A = rng.standard_normal((count, dim, dim))
    K = (A - A.swapaxes(1, 2)) / np.sqrt(2)
    if count * dim == 0:
        return K
    # through the Hermitian -iK the result is orthogonal to rounding, however large the noise
    w, V = np.linalg.eigh(-1j * K)
    return ((V * np.exp(1j * noise * w)[:, None, :]) @ V.conj().swapaxes(1, 2)).real


def cycle(n: int, holonomy: npt.ArrayLike) -> CellularSheaf:
    """Build a cycle with identity transports, except on the last edge, which carries the holonomy.

    H^0 is the space of the vectors that the holonomy H fixes, of dimension dim ker(I - H).

    Parameters
    ----------
    n : int
        Number of vertices and of edges ``0 -> 1 -> ... -> n - 1 -> 0``, at least 1: one vertex has
        a loop, two have parallel edges.
    holonomy : float or array_like, shape (d, d)
        The angle of a rotation of the plane, or an orthogonal or unitary matrix.

    Returns
    -------
    CellularSheaf

    Raises
    ------
    ValueError, TypeError
        A holonomy that is neither a finite angle nor an orthogonal or unitary matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from sheafcoarsen import gallery
    >>> F = gallery.cycle(4, np.pi / 3)
    >>> F.edges.tolist()
    [[0, 1], [1, 2], [2, 3], [3, 0]]
    >>> F.head_map(3).round(4)
    array([[ 0.5  , -0.866],
           [ 0.866,  0.5  ]])
    """
    n = whole_number("n", n, at_least=1)
    vertex_count("n", n)
    H = scalar_array("holonomy", holonomy)
    if H.ndim == 0:
        if H.dtype.kind == "c":
            message = f"`holonomy` must be a real angle or a matrix, got {holonomy!r}"
            raise TypeError(f"{message}; for a phase z pass [[z]]")
        angle = float(H)
        if not np.isfinite(angle):
            raise ValueError(f"`holonomy` must be finite, got {angle}")
        c, s = np.cos(angle), np.sin(angle)
        H = np.array([[c, -s], [s, c]])
    if H.ndim != 2 or H.shape[0] != H.shape[1]:
        raise ValueError(f"`holonomy` must be an angle or a square matrix, got shape {H.shape}")
    bad = np.argwhere(~np.isfinite(H))
    if len(bad):
        i, j = bad[0].tolist()
        raise ValueError(f"`holonomy` must be finite, got {H[i, j]} at index {(i, j)}")
    check_unitary(H[None], lambda _: "`holonomy`")
    with room_for_entries("n", n * H.size, H.itemsize):
        vertices = np.arange(n)
        transports = np.tile(np.eye(len(H), dtype=H.dtype), (n, 1, 1))
        transports[-1] = H
        edges = np.stack([vertices, (vertices + 1) % n], axis=1)
        return CellularSheaf.connection(edges, transports)


def tangent_bundle(points: npt.ArrayLike, faces: npt.ArrayLike) -> CellularSheaf:
    """Build parallel transport on a surface mesh: an O(2) connection on its tangent planes.

    Each vertex gets an orthonormal basis T_v of the plane orthogonal to its normal,
    counterclockwise seen from the normal's tip. The transport of an edge (u, v) is the orthogonal
    matrix nearest to ``T_u^T T_v`` (its polar factor), which carries tangent vectors at v to
    tangent vectors at u. Its determinant is the sign of the two normals' scalar product: -1 where
    the orientation flips, as it must somewhere on a one-sided surface.

    Parameters
    ----------
    points : array_like, shape (n, 3)
    faces : array_like of int, shape (f, k)
        Triangles (k = 3) or larger polygons, vertices in order around the face.

    Returns
    -------
    CellularSheaf
        Weight 1; the edges are the sides of the faces, each once, u < v, sorted.

    Notes
    -----
    A vertex's normal is the sum of the normals of its faces, weighted by area. Where that vanishes,
    or there is no face, it is (0, 0, 1). Two neighbours with orthogonal normals have no unique
    transport.

    Examples
    --------
    In a flat mesh, nothing turns:

    >>> from sheafcoarsen import gallery
    >>> corners = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    >>> F = gallery.tangent_bundle(corners, [[0, 1, 2], [0, 2, 3]])
    >>> F.edges.tolist()
    [[0, 1], [0, 2], [0, 3], [1, 2], [2, 3]]
    >>> F.head_map(1)
    array([[1., 0.],
           [0., 1.]])
    """
    points = _points(points, columns=3)
    faces = _faces(faces, len(points))
    edges = _unique_pairs(faces.reshape(-1), np.roll(faces, -1, axis=1).reshape(-1), len(points))
    T = _frames(_vertex_normals(_scaled(points), faces))
    products = T[edges[:, 0]].swapaxes(1, 2) @ T[edges[:, 1]]
    left, _, right = np.linalg.svd(products)
    transports = (left @ right).astype(points.dtype)
    return CellularSheaf.connection(edges, transports, n_vertices=len(points))


def _faces(value: npt.ArrayLike, n: int) -> np.ndarray:
    if isinstance(value, Sized) and len(value) == 0:
        return np.zeros((0, 3), dtype=np.int64)
    faces = integer_array("faces", value, ndim=2)
    if faces.shape[1] < 3:
        raise ValueError(f"`faces` must have at least three columns, got shape {faces.shape}")
    bad = np.flatnonzero(((faces < 0) | (faces >= n)).any(axis=1))
    if bad.size:
        f = int(bad[0])
        face = tuple(faces[f].tolist())
        raise ValueError(f"`faces[{f}]` = {face} is out of range for {n} points (0 .. {n - 1})")
    ascending = np.sort(faces, axis=1)
    bad = np.flatnonzero((ascending[:, 1:] == ascending[:, :-1]).any(axis=1))
    if bad.size:
        f = int(bad[0])
        raise ValueError(f"`faces[{f}]` = {tuple(faces[f].tolist())} names a vertex twice")
    return faces


def _vertex_normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return unit normals, (0, 0, 1) where the faces' area vectors cancel up to rounding."""
    n = len(points)
    sides = points[faces[:, 1:]] - points[faces[:, :1]]
    area = np.cross(sides[:, :-1], sides[:, 1:]).sum(axis=1)  # a fan around the first corner
    lengths = np.linalg.norm(sides, axis=2)
    size = (lengths[:, :-1] * lengths[:, 1:]).sum(axis=1)  # what rounding in `area` is relative to
    corners = faces.reshape(-1)
    k = faces.shape[1]
    at_corners = np.repeat(np.column_stack([area, size]), k, axis=0)
    *normal, sizes = (np.bincount(corners, column, minlength=n) for column in at_corners.T)
    normals = np.stack(normal, axis=1)
    length = np.linalg.norm(normals, axis=1)
    vanishes = length <= zero_level(np.bincount(corners, minlength=n) + k, eps_of(float), sizes)
    normals[vanishes] = (0.0, 0.0, 1.0)
    length[vanishes] = 1.0
    return normals / length[:, None]


def _frames(normals: np.ndarray) -> np.ndarray:
    """Return (n, 3, 2) bases of the planes orthogonal to unit normals, right-handed with them."""
    axis = np.eye(3)[np.abs(normals).argmin(axis=1)]  # the coordinate axis farthest from the normal
    first = np.cross(axis, normals)
    first /= np.linalg.norm(first, axis=1)[:, None]
    return np.stack([first, np.cross(normals, first)], axis=2)


def bar_framework(graph: GraphLike, points: npt.ArrayLike) -> CellularSheaf:
    """Build the sheaf of a framework of bars: which motions of its joints stretch no bar.

    Joint v has the stalk R^d of its velocities, bar e = (u, v) the stalk R^1, and both maps are the
    bar's unit direction from u to v: ``(delta x)_e = direction_e . (x_u - x_v)`` is the rate at
    which the bar gets shorter. H^0 is the space of infinitesimal motions, rigid ones included; L is
    the stiffness matrix of bars of stiffness 1.

    Parameters
    ----------
    graph : networkx Graph or MultiGraph, scipy sparse adjacency, or (m, 2) integer array
        Weights are not used.
    points : array_like, shape (n, d)
        Where the joints are, in vertex order. With an edge array, rows beyond its last vertex are
        joints without a bar.

    Returns
    -------
    CellularSheaf

    Raises
    ------
    ValueError, TypeError
        Points that are not finite, are not one per vertex, or coincide where a bar joins them.

    Examples
    --------
    >>> from sheafcoarsen import gallery
    >>> F = gallery.bar_framework([[0, 1], [1, 2]], [[0.0, 0.0], [5.0, 0.0], [2.0, -4.0]])
    >>> F.tail_map(1), F.head_map(1)
    (array([[-0.6, -0.8]]), array([[-0.6, -0.8]]))
    """
    points = _points(points)
    arrays = graph_arrays(graph)
    n, d = points.shape
    knows_its_size = isinstance(graph, nx.Graph) or scipy.sparse.issparse(graph)
    if n < arrays.n_vertices or (n > arrays.n_vertices and knows_its_size):
        raise ValueError(
            f"`points` must have one row per vertex, {arrays.n_vertices} in all, got {n}"
        )
    scaled = _scaled(points)
    tails, heads = arrays.edges.T
    bars = scaled[heads] - scaled[tails]
    longest = np.abs(bars).max(axis=1, initial=0)
    zero = np.flatnonzero(longest == 0)
    if zero.size:
        e = int(zero[0])
        raise ValueError(
            f"edge {e} {tuple(arrays.edges[e].tolist())} has length zero in `points`, so it has no "
            f"direction: move a point or leave the edge out"
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


def nearest_neighbors(points: npt.ArrayLike, k: int) -> np.ndarray:
    """Return the edges between points of which one is among the k nearest of the other.

    Parameters
    ----------
    points : array_like, shape (n, d)
        Points in the same place are neighbours at distance 0. Among equally distant ones the choice
        is arbitrary.
    k : int
        Neighbours of each point, itself excluded: 1 <= k < n.

    Returns
    -------
    ndarray of int, shape (m, 2)
        Each edge once, u < v, sorted.

    Raises
    ------
    ValueError, TypeError
        Points that are not finite real numbers, or no more than k of them.

    Examples
    --------
    >>> from sheafcoarsen import gallery
    >>> gallery.nearest_neighbors([[0.0], [1.0], [3.0], [7.0]], 1)
    array([[0, 1],
           [1, 2],
           [2, 3]])
    """
    points = _points(points)
    n = len(points)
    k = whole_number("k", k, at_least=1)
    if k >= n:
        raise ValueError(f"`k` must be below the number of points, {n}, got {k}")
    scaled = _scaled(points)
    _, found = cKDTree(scaled).query(scaled, k + 1)
    own = found == np.arange(n)[:, None]
    # where more than k others share its place, a point may be missing among its own nearest
    own[~own.any(axis=1), -1] = True
    return _unique_pairs(np.repeat(np.arange(n), k), found[~own], n)


def _points(value: npt.ArrayLike, columns: int | None = None) -> np.ndarray:
    points = scalar_array("points", value)
    if points.dtype.kind == "c":
        raise TypeError(f"`points` must be real, got dtype {points.dtype}")
    if points.ndim != 2 or points.shape[1] == 0 or columns not in (None, points.shape[1]):
        raise ValueError(f"`points` must have shape (n, {columns or 'd'}), got {points.shape}")
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if bad.size:
        raise ValueError(f"`points` must be finite, got {points[bad[0]].tolist()} in row {bad[0]}")
    return points


def _scaled(points: np.ndarray) -> np.ndarray:
    """Return float64 points times the power of two that makes squares safe."""
    _, exponent = np.frexp(np.abs(points).max(initial=0))
    return np.ldexp(points.astype(np.float64), -int(exponent))


def _unique_pairs(u: np.ndarray, v: np.ndarray, n: int) -> np.ndarray:
    """Return each unordered pair once, smaller vertex first, sorted."""
    keys = np.unique(np.minimum(u, v) * n + np.maximum(u, v))
    return np.stack(np.divmod(keys, max(n, 1)), axis=1).astype(np.int64)
