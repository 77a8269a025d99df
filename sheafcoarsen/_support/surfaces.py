"""Points, pairs of points, and polygon surfaces: checks, areas, normals."""

from __future__ import annotations

from collections.abc import Sized

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from sheafcoarsen._support.checks import first_true, integer_array, real_array, scalar_array
from sheafcoarsen._support.linalg import eps_of, zero_level


def surface_arrays(points: npt.ArrayLike, faces: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Check a surface; return points (n, 3) and faces (f, k), consistently oriented if possible."""
    points = point_array(points, columns=3)
    if isinstance(faces, Sized) and len(faces) == 0:
        faces = np.zeros((0, 3), dtype=np.int64)
    n, faces = len(points), integer_array("faces", faces, ndim=2)
    if faces.shape[1] < 3:
        raise ValueError(f"`faces` must have at least three columns, got shape {faces.shape}")
    if (bad := first_true(((faces < 0) | (faces >= n)).any(axis=1))) is not None:
        raise ValueError(f"{_face(faces, bad)} is out of range for {n} points (0 .. {n - 1})")
    ascending = np.sort(faces, axis=1)
    if (bad := first_true((ascending[:, 1:] == ascending[:, :-1]).any(axis=1))) is not None:
        raise ValueError(f"{_face(faces, bad)} contains a vertex twice")
    scaled, _ = scaled_points(points)
    area, size = area_vectors(scaled, faces)
    corners = scaled[faces]
    # add the rounding errors of corners, which grow with the distance from the origin
    size += np.abs(corners).max(axis=(1, 2)) * np.ptp(corners, axis=1).max(axis=1)
    flat = zero_level(faces.shape[1], eps_of(float), size)
    if (bad := first_true(np.linalg.norm(area, axis=1) <= flat)) is not None:
        raise ValueError(
            f"{_face(faces, bad)} has no area, since its corners lie on a line: omit it, or "
            f"merge coinciding corners"
        )
    sides, disagree = _shared_sides(faces, n)
    if disagree.any():  # orient faces like the first face of their component, if it is orientable
        turned, _ = _reversed(len(faces), sides // faces.shape[1], disagree)
        faces = faces.copy()
        faces[turned, 1:] = faces[turned, :0:-1]
    return points, faces


def corner_signs(faces: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sign of each corner's orientation in its fan, and the fan's index, both (f, k).

    Faces that share an edge at a vertex form a fan. The sign is -1 if the face is oriented unlike
    the first one of its fan, as at the seam of a one-sided surface.
    """
    k = faces.shape[1]
    sides, disagree = _shared_sides(faces, n)
    next_corner = sides - sides % k + (sides + 1) % k
    # both sides begin at the same vertex if their faces disagree
    same = np.where(disagree, sides[1], next_corner[1])
    after = np.where(disagree, next_corner[1], sides[1])
    links = np.stack([np.append(sides[0], next_corner[0]), np.append(same, after)])
    turned, fan = _reversed(faces.size, links, np.tile(disagree, 2))
    return np.where(turned, -1, 1).reshape(faces.shape), fan.reshape(faces.shape)


def _shared_sides(faces: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs (2, p) of sides with a common edge, and whether their faces disagree."""
    keys = side_keys(faces, n)
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    if (at := first_true(keys[2:] == keys[:-2])) is not None:
        edge = tuple(pairs_of_keys(keys[at : at + 1], n)[0].tolist())
        first, second, more = (order[at : at + 3] // faces.shape[1]).tolist()
        raise ValueError(
            f"edge {edge} is a side of `faces[{first}]`, `faces[{second}]` and `faces[{more}]`, "
            f"but a surface has at most two faces at an edge: omit one, or duplicate the edge's "
            f"vertices"
        )
    shared = np.flatnonzero(keys[1:] == keys[:-1])
    sides = np.stack([order[shared], order[shared + 1]])
    ascends = (faces < np.roll(faces, -1, axis=1)).reshape(-1)[sides]
    return sides, ascends[0] == ascends[1]


def _reversed(count: int, links: np.ndarray, disagree: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of items reversed relative to their component's first, and component labels.

    ``links`` (2, p) join items; ``disagree`` marks those that join an item to the other's reverse.
    """
    # graph of two copies of each item, one of them reversed; edges join consistent copies
    (f, g), over = links, np.where(disagree, count, 0)
    ends = np.concatenate([[f, g + over], [f + count, g + count - over]], axis=1)
    joined = csr_array((np.ones(2 * len(f), bool), tuple(ends)), shape=(2 * count, 2 * count))
    side = connected_components(joined, directed=False)[1].reshape(2, count)
    _, first, component = np.unique(side.min(axis=0), return_index=True, return_inverse=True)
    component = component.reshape(-1)
    return side[0] != side[0, first[component]], component


def _face(faces: np.ndarray, f: int) -> str:
    return f"`faces[{int(f)}]` = {tuple(faces[f].tolist())}"


def side_keys(faces: np.ndarray, n: int) -> np.ndarray:
    """Return `pair_keys` of the sides of all faces, shape (f k,); side j begins at corner j."""
    return pair_keys(faces.reshape(-1), np.roll(faces, -1, axis=1).reshape(-1), n)


def area_vectors(points: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return twice the area vector of each face, and the scale of its rounding error."""
    sides = points[faces[:, 1:]] - points[faces[:, :1]]
    area = np.cross(sides[:, :-1], sides[:, 1:]).sum(axis=1)  # triangle fan at the first corner
    lengths = np.linalg.norm(sides, axis=2)
    return area, (lengths[:, :-1] * lengths[:, 1:]).sum(axis=1)


def vertex_normals(
    points: np.ndarray, faces: np.ndarray, signs: np.ndarray | None = None
) -> np.ndarray:
    """Return unit vertex normals; (0, 0, 1) without faces or where areas cancel up to rounding.

    ``signs`` are those of ``corner_signs``, which only one-sided surfaces need.
    """
    n = len(points)
    area, size = area_vectors(points, faces)
    corners, k = faces.reshape(-1), faces.shape[1]
    at_corners = np.repeat(np.column_stack([area, size]), k, axis=0)
    if signs is not None:
        at_corners[:, :3] *= signs.reshape(-1, 1)
    *normal, sizes = (np.bincount(corners, column, minlength=n) for column in at_corners.T)
    normals = np.stack(normal, axis=1)
    length = np.linalg.norm(normals, axis=1)
    vanishes = length <= zero_level(np.bincount(corners, minlength=n) + k, eps_of(float), sizes)
    normals[vanishes] = (0.0, 0.0, 1.0)
    length[vanishes] = 1.0
    return normals / length[:, None]


# ---------------------------------------------------------------- points and pairs


def point_array(value: npt.ArrayLike, columns: int | None = None) -> np.ndarray:
    """Check that points are real, finite and of shape (n, d); ``columns`` prescribes d."""
    points = scalar_array("points", value)
    if points.dtype.kind == "c":
        raise TypeError(f"`points` must be real, got dtype {points.dtype}")
    if points.ndim != 2 or points.shape[1] == 0 or columns not in (None, points.shape[1]):
        raise ValueError(f"`points` must have shape (n, {columns or 'd'}), got {points.shape}")
    if (bad := first_true(~np.isfinite(points).all(axis=1))) is not None:
        raise ValueError(f"`points` must be finite, got {points[bad].tolist()} in row {bad}")
    return points


def scaled_points(points: np.ndarray) -> tuple[np.ndarray, int]:
    """Divide points by a power of two to avoid overflow; return them and the exponent."""
    _, exponent = np.frexp(np.abs(points).max(initial=0))
    return np.ldexp(points.astype(np.float64), -int(exponent)), int(exponent)


def pair_keys(u: np.ndarray, v: np.ndarray, n: int) -> np.ndarray:
    """Return an integer key for each unordered pair of vertices; keys sort like the pairs."""
    return np.minimum(u, v) * n + np.maximum(u, v)


def pairs_of_keys(keys: np.ndarray, n: int) -> np.ndarray:
    """Return the pairs that have the given `pair_keys`, smaller vertex first."""
    return np.stack(np.divmod(keys, max(n, 1)), axis=1).astype(np.int64)


def field_array(vectors: npt.ArrayLike, n: int) -> np.ndarray:
    """Check a tangent field at n vertices; complex numbers become pairs of coordinates."""
    given = scalar_array("vectors", vectors)
    if given.dtype.kind == "c" and given.shape == (n,):
        given = np.stack([given.real, given.imag], axis=1)
    what = (
        f"be a cochain of shape ({2 * n},), complex numbers of shape ({n},), coordinates of shape "
        f"({n}, 2) or vectors of shape ({n}, 3)"
    )
    return real_array("vectors", given, [(2 * n,), (n, 2), (n, 3)], what)
