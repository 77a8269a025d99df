"""Projection of surfaces onto the plane: view axes, visibility, shading."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from scipy.spatial import cKDTree

from sheafcoarsen._support import area_vectors, choice, real_number

UpAxis: TypeAlias = Literal["x", "y", "z", "-x", "-y", "-z"]
"""The coordinate axis that points up in a picture, or down with a minus sign."""


class View(NamedTuple):
    """Unit vectors of the view: to the right, up, and towards the viewer."""

    right: np.ndarray
    up: np.ndarray
    toward: np.ndarray

    def project(self, points: np.ndarray) -> np.ndarray:
        """Return the coordinates of points in the picture, shape (..., 2)."""
        return points @ np.stack([self.right, self.up], axis=1)

    def depth(self, points: np.ndarray) -> np.ndarray:
        """Return the depth of points, larger for points closer to the viewer."""
        return points @ self.toward


def checked_view(view: object, up: object) -> tuple[float, float, UpAxis]:
    """Check a view; return its elevation and azimuth in degrees, and the axis that points up."""
    choice("up", up, get_args(UpAxis))
    if not isinstance(view, tuple | list | np.ndarray) or len(view) != 2:
        raise ValueError(f"`view` must be two angles, elevation and azimuth, got {view!r}")
    elevation, azimuth = (real_number("view", angle) for angle in view)
    if not np.isfinite([elevation, azimuth]).all():
        raise ValueError(f"`view` must hold finite angles in degrees, got {view!r}")
    return elevation, azimuth, up  # type: ignore[return-value]


def view_from(elevation: float, azimuth: float, up: UpAxis) -> View:
    """Return the view from a direction in degrees, as defined by matplotlib's ``view_init``."""
    if up.startswith("-"):  # rotate the view from below by half a turn
        down = view_from(-elevation, azimuth, up[1:])  # type: ignore[arg-type]
        return View(-down.right, -down.up, down.toward)
    e, a = np.radians([elevation, azimuth])
    toward = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    # cyclic permutation that maps the third axis to ``up``
    turn = {"z": 0, "y": 2, "x": 1}[up]
    toward, right = np.roll(toward, turn), np.roll(right, turn)
    return View(right, np.cross(toward, right), toward)


def face_normals(points: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Return unit normals of faces by the right-hand rule."""
    area, _ = area_vectors(points, faces)
    length = np.linalg.norm(area, axis=1)
    return area / np.where(length > 0, length, 1.0)[:, None]


def shades(normals: np.ndarray, view: View, least: float = 0.45) -> np.ndarray:
    """Return the brightness of faces, ``least`` to 1, for a two-sided light from the upper left."""
    light = view.toward + 0.55 * view.up - 0.45 * view.right
    light /= np.linalg.norm(light)
    facing = np.where(normals @ view.toward < 0, -1.0, 1.0)
    return least + (1 - least) * np.maximum(facing * (normals @ light), 0.0)


def visible_points(at: np.ndarray, points: np.ndarray, faces: np.ndarray, view: View) -> np.ndarray:
    """Return a mask (k,) of the vertices ``at`` that no face closer to the viewer hides."""
    flat, depth = view.project(points), view.depth(points)
    corners, depths = flat[faces], depth[faces]
    visible = np.ones(len(at), dtype=bool)
    if not len(at):
        return visible
    low, high = corners.min(axis=1), corners.max(axis=1)
    middle, reach = low / 2 + high / 2, np.linalg.norm(high - low, axis=1) / 2
    # search faces of similar size together, so that one search radius fits all of them
    _, size = np.frexp(reach)
    seen_points = cKDTree(flat[at])
    for exponent in np.unique(size).tolist():
        own = np.flatnonzero(size == exponent)
        radius = float(np.ldexp(1.0, exponent))
        pairs = seen_points.sparse_distance_matrix(
            cKDTree(middle[own]), radius, output_type="ndarray"
        )
        i, f = pairs["i"], own[pairs["j"]]
        foreign = (faces[f] != at[i, None]).all(axis=1)
        i, f = i[foreign], f[foreign]
        hidden = _is_behind(flat[at[i]], depth[at[i]], corners[f], depths[f])
        visible[i[hidden]] = False
    return visible


def _is_behind(
    p: np.ndarray, depth: np.ndarray, corners: np.ndarray, depths: np.ndarray
) -> np.ndarray:
    """Return a mask of points inside their polygon in the picture and behind its plane."""
    hidden = np.zeros(len(p), dtype=bool)
    for j in range(1, corners.shape[1] - 1):  # triangles at the first corner
        a, b = corners[:, j] - corners[:, 0], corners[:, j + 1] - corners[:, 0]
        q = p - corners[:, 0]
        area = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
        area = np.where(area == 0, np.inf, area)
        s = (q[:, 0] * b[:, 1] - q[:, 1] * b[:, 0]) / area
        t = (a[:, 0] * q[:, 1] - a[:, 1] * q[:, 0]) / area
        inside = (s >= 0) & (t >= 0) & (s + t <= 1) & np.isfinite(area)
        plane = (1 - s - t) * depths[:, 0] + s * depths[:, j] + t * depths[:, j + 1]
        hidden |= inside & (plane > depth)
    return hidden


def spread_out(points: np.ndarray, count: int) -> np.ndarray:
    """Return ``count`` points by farthest-point sampling; the first is farthest from the mean."""
    if not len(points):
        return np.zeros(0, dtype=np.int64)
    chosen = [int(((points - points.mean(axis=0)) ** 2).sum(axis=1).argmax())]
    distances = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < min(count, len(points)):
        following = int(distances.argmax())
        if distances[following] == 0:
            break
        chosen.append(following)
        distances = np.minimum(distances, ((points - points[following]) ** 2).sum(axis=1))
    return np.array(chosen)


def usual_gap(points: np.ndarray) -> float:
    """Return the median distance of points to their nearest neighbours, or 1 if it is 0."""
    if len(points) < 2:
        return 1.0
    return float(np.median(cKDTree(points).query(points, k=2)[0][:, 1])) or 1.0
