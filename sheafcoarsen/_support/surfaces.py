"""Surfaces of polygons: checked points and faces, areas, normals."""

from collections.abc import Sized

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support.arrays import integer_array
from sheafcoarsen._support.linalg import eps_of, zero_level
from sheafcoarsen._support.points import (
    pair_keys,
    pairs_of_keys,
    point_array,
    scaled_points,
)


def surface_arrays(points: npt.ArrayLike, faces: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return points (n, 3) and faces (f, k) of a surface: polygons with areas, at most two a side.

    Vertices without a face, boundaries, several components, faces that turn differently and
    one-sided surfaces are allowed.
    """
    points = point_array(points, columns=3)
    faces = _faces(faces, len(points))
    scaled, _ = scaled_points(points)
    area, size = area_vectors(scaled, faces)
    corners = scaled[faces]
    # corners are rounded themselves, each relative to its distance from the origin
    size += np.abs(corners).max(axis=(1, 2), initial=0) * np.ptp(corners, axis=1).max(
        axis=1, initial=0
    )
    flat = zero_level(faces.shape[1], eps_of(float), size)
    bad = np.flatnonzero(np.linalg.norm(area, axis=1) <= flat)
    if bad.size:
        raise ValueError(
            f"{_face(faces, bad[0])} has no area, since its corners lie on a line: leave it out, "
            f"or merge corners in the same place"
        )
    keys = side_keys(faces, len(points))
    order = np.argsort(keys, kind="stable")
    third = np.flatnonzero(keys[order][2:] == keys[order][:-2])
    if third.size:
        at = int(third[0])
        edge = tuple(pairs_of_keys(keys[order[at : at + 1]], len(points))[0].tolist())
        first, second, more = (int(side) // faces.shape[1] for side in order[at : at + 3])
        raise ValueError(
            f"edge {edge} is a side of `faces[{first}]`, `faces[{second}]` and `faces[{more}]`, "
            f"but a surface has at most two faces at an edge: leave one out, or split the edge's "
            f"vertices"
        )
    return points, faces


def _faces(value: npt.ArrayLike, n: int) -> np.ndarray:
    """Return faces whose corners exist and differ, shape (f, k)."""
    if isinstance(value, Sized) and len(value) == 0:
        return np.zeros((0, 3), dtype=np.int64)
    faces = integer_array("faces", value, ndim=2)
    if faces.shape[1] < 3:
        raise ValueError(f"`faces` must have at least three columns, got shape {faces.shape}")
    bad = np.flatnonzero(((faces < 0) | (faces >= n)).any(axis=1))
    if bad.size:
        raise ValueError(f"{_face(faces, bad[0])} is out of range for {n} points (0 .. {n - 1})")
    ascending = np.sort(faces, axis=1)
    bad = np.flatnonzero((ascending[:, 1:] == ascending[:, :-1]).any(axis=1))
    if bad.size:
        raise ValueError(f"{_face(faces, bad[0])} names a vertex twice")
    return faces


def _face(faces: np.ndarray, f: int) -> str:
    return f"`faces[{int(f)}]` = {tuple(faces[f].tolist())}"


def side_keys(faces: np.ndarray, n: int) -> np.ndarray:
    """Return the key of every side of every face, shape (f k,): corner j to corner j + 1."""
    return pair_keys(faces.reshape(-1), np.roll(faces, -1, axis=1).reshape(-1), n)


def area_vectors(points: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return twice the area vectors, shape (f, 3), and what their rounding is relative to, (f,)."""
    sides = points[faces[:, 1:]] - points[faces[:, :1]]
    area = np.cross(sides[:, :-1], sides[:, 1:]).sum(axis=1)  # a fan around the first corner
    lengths = np.linalg.norm(sides, axis=2)
    return area, (lengths[:, :-1] * lengths[:, 1:]).sum(axis=1)


def vertex_normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return unit normals, (0, 0, 1) where the faces' area vectors cancel up to rounding."""
    n = len(points)
    area, size = area_vectors(points, faces)
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
