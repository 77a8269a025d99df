"""Tangent bundles of surface meshes: tangent planes, transport, vertex areas, indices of fields."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import checks, linalg, surfaces, threads
from sheafcoarsen.sheaf import CellularSheaf, check_unitary

SurfaceWeights: TypeAlias = Literal["uniform", "cotan"]
"""Kinds of edge weights on a surface mesh."""


def tangent_frames(points: npt.ArrayLike, faces: npt.ArrayLike) -> np.ndarray:
    """Return an orthonormal basis of the tangent plane at every vertex of a surface mesh.

    If T_v is the basis at v, a tangent vector t has the coordinates ``T_v^T t``, as in cochains of
    :func:`tangent_bundle`, and coordinates x represent the vector ``T_v x``.

    Parameters
    ----------
    points : array_like, shape (n, 3)
    faces : array_like of int, shape (f, k)
        As in :func:`tangent_bundle`.

    Returns
    -------
    ndarray, shape (n, 3, 2)
        The two columns of T_v are counterclockwise as seen from the tip of the normal, which is
        their cross product.

    Raises
    ------
    ValueError, TypeError
        As in :func:`tangent_bundle`.

    See Also
    --------
    tangent_bundle : the transport between these planes.

    Notes
    -----
    A vertex's normal is the sum of the normals of its faces, weighted by area; adjacent faces are
    first oriented consistently (on a one-sided surface, around each vertex). If the sum vanishes,
    or there is no face, the normal is (0, 0, 1). The first column is orthogonal to the coordinate
    axis farthest from the normal; like any choice of bases on a sphere, this one is discontinuous,
    which the transport accounts for.

    Examples
    --------
    >>> import numpy as np
    >>> from sheafcoarsen import gallery
    >>> T = gallery.tangent_frames([[0, 0, 0], [1, 0, 0], [0, 1, 1]], [[0, 1, 2]])
    >>> np.cross(T[0, :, 0], T[0, :, 1]).round(4) + 0.0
    array([ 0.    , -0.7071,  0.7071])
    """
    points, faces = surfaces.surface_arrays(points, faces)
    signs, _ = surfaces.corner_signs(faces, len(points))
    normals = surfaces.vertex_normals(surfaces.scaled_points(points)[0], faces, signs)
    return _frames(normals).astype(points.dtype)


def _frames(normals: np.ndarray) -> np.ndarray:
    """Return bases (n, 3, 2) of planes; the cross product of their columns is the unit normal."""
    axis = np.eye(3)[np.abs(normals).argmin(axis=1)]  # the coordinate axis farthest from the normal
    first = np.cross(axis, normals)
    first /= np.linalg.norm(first, axis=1)[:, None]
    return np.stack([first, np.cross(normals, first)], axis=2)


@threads.single_threaded_blas()
def tangent_bundle(
    points: npt.ArrayLike,
    faces: npt.ArrayLike,
    frames: npt.ArrayLike | None = None,
    weights: SurfaceWeights = "uniform",
    power: int = 1,
) -> CellularSheaf:
    """Return parallel transport on a surface mesh: an O(2) connection on its tangent planes.

    Each vertex has an orthonormal basis T_v of its tangent plane, by default that of
    :func:`tangent_frames`. The transport of an edge (u, v) maps tangent vectors at v to tangent
    vectors at u: it is the rotation nearest to ``T_u^T T_v``, its polar factor if the normals are
    less than 90 degrees apart (``eq:app-connection-restrictions``). Where the frames of u and v
    have opposite orientations, as somewhere on a one-sided surface, it is the nearest reflection.
    Faces may be oriented inconsistently: each is reoriented to match the first of its component.

    Parameters
    ----------
    points : array_like, shape (n, 3)
    faces : array_like of int, shape (f, k)
        Vertices of each face in cyclic order; faces are triangles (k = 3) or larger polygons.
    frames : array_like, shape (n, 3, 2), optional
        Bases T_v with orthonormal columns, in which cochains have their coordinates.
    weights : {"uniform", "cotan"}
        ``"uniform"``: every edge has weight 1. ``"cotan"``: w = (cot a + cot b) / 2, where a and b
        are the angles opposite to the edge, for triangles only; L is then the cotan Laplacian with
        transport, which accounts for nonuniform meshes. For smoothest fields take it with the
        masses of :func:`vertex_areas`: uniform weights concentrate fields where the mesh is finest.
    power : int
        An integer k of at least 1: the transport rotates by k times the angle, so that a section is
        a field of k directions at equal angles, invariant under rotation by 1/k of the circle
        (k-RoSy: k = 2 for lines, 4 for crosses). As complex numbers in the basis, the directions at
        v are the k-th roots of x_v.

    Returns
    -------
    CellularSheaf
        The edges are the sides of the faces, each once, u < v, sorted.

    Raises
    ------
    ValueError, TypeError
        If points are not finite, faces are out of range, repeat a vertex or have no area, an edge
        has more than two faces, frames are not orthonormal, or cotan weights are requested for
        polygons other than triangles.

    See Also
    --------
    tangent_frames : the bases T_v.
    vertex_areas : the diagonal mass matrix to use with cotan weights.

    Notes
    -----
    Two neighbours with opposite normals have no unique transport. Where parts of a surface touch in
    a vertex only, its plane is oriented like the larger part, and edges of the other one reflect.

    If the angles opposite to an edge sum to more than pi, its cotan weight is negative, which is
    impossible in a sheaf, since L = delta* delta: such an edge gets weight 0 but is not removed.
    This disconnects no component: the cotan weights across a cut of the mesh sum to the energy of
    the piecewise linear function that is 1 on one side and 0 on the other, so one of them is
    positive.

    Examples
    --------
    In a flat mesh the transport is the identity:

    >>> from sheafcoarsen import gallery
    >>> corners = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    >>> F = gallery.tangent_bundle(corners, [[0, 1, 2], [0, 2, 3]])
    >>> F.edges.tolist()
    [[0, 1], [0, 2], [0, 3], [1, 2], [2, 3]]
    >>> F.head_map(1)
    array([[1., 0.],
           [0., 1.]])

    With cotan weights the diagonal, opposite to two right angles, has weight zero:

    >>> F = gallery.tangent_bundle(corners, [[0, 1, 2], [0, 2, 3]], weights="cotan")
    >>> [round(float(F.tail_map(e)[0, 0]) ** 2, 9) for e in range(5)]
    [0.5, 0.0, 0.5, 0.5, 0.5]
    """
    points, faces = surfaces.surface_arrays(points, faces)
    checks.choice("weights", weights, get_args(SurfaceWeights))
    power = checks.whole_number("power", power, at_least=1)
    checks.real_number("power", power)
    n = len(points)
    scaled, _ = surfaces.scaled_points(points)
    keys, at, side = np.unique(surfaces.side_keys(faces, n), return_index=True, return_inverse=True)
    edges, (signs, fan) = surfaces.pairs_of_keys(keys, n), surfaces.corner_signs(faces, n)
    normals = surfaces.vertex_normals(scaled, faces, signs)
    # signs: -1 if the faces of a fan are oriented against the normal of their vertex
    areas = signs[:, :, None] * surfaces.area_vectors(scaled, faces)[0][:, None]
    toward = np.bincount(fan.reshape(-1), (areas * normals[faces]).sum(axis=2).reshape(-1))
    signs = np.where(toward[fan] < 0, -signs, signs)
    # 1 if the orientations at both ends agree in a face at the edge, else -1
    alike = (signs * np.roll(signs, -1, axis=1)).reshape(-1)[at]
    if frames is None:
        T = _frames(normals)
    else:
        T = _own_frames(frames, n)
        outward = np.where((np.cross(T[:, :, 0], T[:, :, 1]) * normals).sum(axis=1) < 0, -1, 1)
        alike = alike * outward[edges].prod(axis=1)
    c = _transports(T, edges, alike) ** power
    c /= np.abs(c)
    # 0 - x is never -0
    transports = np.stack([c.real, 0 - alike * c.imag, c.imag, alike * c.real], axis=1)
    weight = _cotan_weights(scaled, faces, side.reshape(-1)) if weights == "cotan" else None
    transports = transports.reshape(-1, 2, 2).astype(points.dtype)
    return CellularSheaf.connection(edges, transports, weight=weight, n_vertices=n)


def _transports(T: np.ndarray, edges: np.ndarray, alike: np.ndarray | int = 1) -> np.ndarray:
    """Return the O(2) matrices of determinants ``alike`` nearest to T_u^T T_v, as unit numbers c.

    They are z -> c z, or z -> c conj(z) for determinant -1; c is 1 if no matrix is nearest.
    """
    M = T[edges[:, 0]].swapaxes(1, 2) @ T[edges[:, 1]]
    c = M[:, 0, 0] + alike * M[:, 1, 1] + 1j * (M[:, 1, 0] - alike * M[:, 0, 1])
    c = np.where(c == 0, 1, c)
    return c / np.abs(c)


def _own_frames(frames: npt.ArrayLike, n: int) -> np.ndarray:
    """Check bases of planes, (n, 3, 2) with orthonormal columns, and return them as float64."""
    T = checks.real_array("frames", frames, [(n, 3, 2)], f"have shape (n, 3, 2) for n = {n} points")
    check_unitary(T, lambda v: f"`frames[{v}]`")
    return T.astype(np.float64)


def _cotan_weights(points: np.ndarray, faces: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Return (cot a + cot b) / 2, at least 0, for each edge; ``side`` holds the edges of faces."""
    if faces.shape[1] != 3:
        raise ValueError(
            f"`weights`='cotan' needs triangles, but `faces` has {faces.shape[1]} columns: cut "
            f"each polygon into triangles, or use 'uniform'"
        )
    corners = points[faces]
    # side j, from corner j to corner j + 1, is opposite to corner j + 2
    opposite = np.roll(corners, -2, axis=1)
    a, b = corners - opposite, np.roll(corners, -1, axis=1) - opposite
    area = np.linalg.norm(np.cross(a, b), axis=2)
    cotan = (a * b).sum(axis=2) / area
    one_over_sine = np.linalg.norm(a, axis=2) * np.linalg.norm(b, axis=2) / area
    weights = np.bincount(side, cotan.reshape(-1)) / 2
    # weights up to this level are rounding errors, as of edges opposite to two right angles
    size = np.bincount(side, one_over_sine.reshape(-1))
    rounding = linalg.zero_level(1, linalg.eps_of(float), size)
    return np.where(weights <= rounding, 0.0, weights)


def vertex_areas(points: npt.ArrayLike, faces: npt.ArrayLike) -> np.ndarray:
    """Return the area of each vertex: a face adds 1 / k of its area to each of its k vertices.

    The vertex areas sum to the area of the surface. With ``eigenmodes(F, k, mass=areas)`` the
    eigenvalues approximate those of the surface even if the mesh is nonuniform.

    Parameters
    ----------
    points : array_like, shape (n, 3)
    faces : array_like of int, shape (f, k)
        As in :func:`tangent_bundle`. The area of a polygon that is not flat is the area of its
        projection along its normal.

    Returns
    -------
    ndarray, shape (n,)
        Zero at vertices without a face.

    Raises
    ------
    ValueError, TypeError
        As in :func:`tangent_bundle`, or if areas overflow or underflow.

    See Also
    --------
    tangent_bundle : with ``weights="cotan"``, the operator to use with these areas.

    Examples
    --------
    >>> from sheafcoarsen import gallery
    >>> corners = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    >>> 6 * gallery.vertex_areas(corners, [[0, 1, 2], [0, 2, 3]])
    array([2., 1., 2., 1.])
    """
    points, faces = surfaces.surface_arrays(points, faces)
    scaled, exponent = surfaces.scaled_points(points)
    area, _ = surfaces.area_vectors(scaled, faces)
    share = np.linalg.norm(area, axis=1) / (2 * faces.shape[1])
    shares = np.repeat(share, faces.shape[1])
    areas = np.bincount(faces.reshape(-1), shares, minlength=len(points))
    with np.errstate(over="ignore"):
        returned = np.ldexp(areas, 2 * exponent).astype(points.dtype)
    lost = ~np.isfinite(returned) | ((returned == 0) & (areas > 0))
    if (v := checks.first_true(lost)) is not None:
        raise ValueError(
            f"`points` has coordinates up to 2**{exponent}, so that the area of vertex {v} is not "
            f"representable in {points.dtype}: rescale the points"
        )
    return returned


def field_indices(
    points: npt.ArrayLike,
    faces: npt.ArrayLike,
    vectors: npt.ArrayLike,
    power: int = 1,
    frames: npt.ArrayLike | None = None,
) -> np.ndarray:
    """Return the index of a tangent field at each face: its number of turns around the face.

    It is 0 except at singularities. From corner to corner the field turns by an angle in (-pi, pi]
    relative to the connection of :func:`tangent_bundle`; around a face these angles and the face's
    curvature sum to 2 pi times the index (Knoeppel, Crane, Pinkall, Schroeder, ACM TOG 2013). The
    curvature, the connection's holonomy, is the signed area of the spherical polygon of normals.
    With ``power`` p, all angles and the curvature are those of the p-th power, so that index 1 is
    1 / p of a turn: lines (p = 2) and crosses (p = 4) have such singularities.

    Parameters
    ----------
    points : array_like, shape (n, 3)
    faces : array_like of int, shape (f, k)
        As in :func:`tangent_bundle`, of a surface with two sides.
    vectors : array_like, shape (2 n,), (n, 2) or (n, 3), or complex of shape (n,)
        A cochain of ``tangent_bundle(points, faces, power=power, frames=frames)``, also as complex
        numbers, or vectors in space, one of the ``power`` directions at each vertex, whose
        tangential parts are used. Zero vectors are replaced by the first basis vector.
    power : int
        As in :func:`tangent_bundle`: 1 for vectors, 2 for lines, 4 for crosses.
    frames : array_like, shape (n, 3, 2), optional
        The bases of a cochain; by default :func:`tangent_frames`.

    Returns
    -------
    ndarray of int64, shape (f,)
        On a closed surface the indices sum to ``power`` times the Euler characteristic (Poincare
        and Hopf), unless the mesh is so coarse that its normals do not follow those of the surface.
        This holds for any vectors, so that the sum does not show a wrong ``power``.

    Raises
    ------
    ValueError, TypeError
        As in :func:`tangent_bundle`, or if the surface is one-sided or the vectors are invalid.

    Examples
    --------
    A field around the z axis has a vortex at each pole:

    >>> from sheafcoarsen import gallery
    >>> points = [[1, 0, -1], [-1, 1, -1], [-1, -1, -1], [1, 0, 1], [-1, 1, 1], [-1, -1, 1]]
    >>> faces = [[0, 2, 1], [3, 4, 5], [0, 1, 4], [0, 4, 3], [1, 2, 5], [1, 5, 4], [2, 0, 3],
    ...          [2, 3, 5]]
    >>> gallery.field_indices(points, faces, [[-y, x, 0] for x, y, z in points])
    array([1, 1, 0, 0, 0, 0, 0, 0])
    """
    points, faces = surfaces.surface_arrays(points, faces)
    power = checks.whole_number("power", power, at_least=1)
    checks.real_number("power", power)
    n = len(points)
    given = surfaces.field_array(vectors, n).astype(np.float64)
    after = np.roll(faces, -1, axis=1)
    ends, side = np.unique(surfaces.side_keys(faces, n), return_inverse=True)
    edges, ascends = surfaces.pairs_of_keys(ends, n), faces < after
    ahead = np.bincount(side.reshape(-1), np.where(ascends, 1, -1).reshape(-1))
    if (np.abs(ahead) > 1).any():
        u, v = edges[np.abs(ahead) > 1][0].tolist()
        raise ValueError(
            f"`faces` must form an orientable surface, since indices need a sense of rotation: the "
            f"two faces at edge ({u}, {v}) have inconsistent orientations"
        )
    normals = surfaces.vertex_normals(surfaces.scaled_points(points)[0], faces)
    T = _frames(normals)
    in_space = given.shape == (n, 3)
    if frames is not None and not in_space:
        own = _own_frames(frames, n)
        angles = np.angle(given.reshape(n, 2) @ [1, 1j]) / power
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        given, in_space = np.einsum("vik,vk->vi", own, directions), True
    if in_space:
        given = np.einsum("vik,vi->vk", T, given)
    x = given.reshape(n, 2)
    x = x / np.where(scales := np.abs(x).max(axis=1, initial=0), scales, 1)[:, None]
    z = np.where(scales > 0, x[:, 0] + 1j * x[:, 1], 1.0)
    z /= np.abs(z)  # powers of other numbers may overflow
    z = z**power if in_space else z
    u, v = edges.T
    turns = _transports(T, edges) ** power
    angles = np.angle(turns * z[v] * z[u].conj())[side.reshape(faces.shape)]
    N = normals[faces]
    first, second, third = N[:, :1], N[:, 1:-1], N[:, 2:]
    volume = (first * np.cross(second, third)).sum(axis=2)
    cosines = [(a * b).sum(axis=2) for a, b in ((first, second), (second, third), (third, first))]
    areas = 2 * np.arctan2(volume, 1 + np.sum(cosines, axis=0))
    total = np.where(ascends, angles, -angles).sum(axis=1) + power * areas.sum(axis=1)
    return np.rint(total / (2 * np.pi)).astype(np.int64)
