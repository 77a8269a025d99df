"""Projection of surfaces onto the plane: view axes, visibility, distances of points."""

from __future__ import annotations

from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from scipy.spatial import cKDTree

from sheafcoarsen._support import choice, real_number

UpAxis: TypeAlias = Literal["x", "y", "z", "-x", "-y", "-z"]
"""The coordinate axis that points up in a picture, or down with a minus sign."""


class View(NamedTuple):
    """Unit vectors of the view: to the right, up, and towards the viewer."""

    right: np.ndarray
    up: np.ndarray
    toward: np.ndarray
    options: dict  # arguments of matplotlib's view_init for the same view

    def project(self, points: np.ndarray) -> np.ndarray:
        """Return the coordinates of points in the picture, shape (..., 2)."""
        return points @ np.stack([self.right, self.up], axis=1)


def view_from(view: Any, up: Any) -> View:
    """Check elevation and azimuth in degrees and the axis that points up; return their view."""
    choice("up", up, get_args(UpAxis))
    if not isinstance(view, tuple | list | np.ndarray) or len(view) != 2:
        raise ValueError(f"`view` must be two angles, elevation and azimuth, got {view!r}")
    elevation, azimuth = (real_number("view", angle) for angle in view)
    if not np.isfinite([elevation, azimuth]).all():
        raise ValueError(f"`view` must hold finite angles in degrees, got {view!r}")
    options: dict = {"elev": elevation, "azim": azimuth, "vertical_axis": up[-1]}
    if up.startswith("-"):  # the view from below, rotated by half a turn
        options |= {"elev": -elevation, "roll": 180}
    e, a = np.radians([options["elev"], azimuth])
    toward = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([-np.sin(a), np.cos(a), 0.0])
    # cyclic permutation that maps the third axis to ``up``
    turn = {"z": 0, "y": 2, "x": 1}[up[-1]]
    toward, right = np.roll(toward, turn), np.roll(right, turn)
    sign = -1 if "roll" in options else 1
    return View(sign * right, sign * np.cross(toward, right), toward, options)


def visible_points(at: np.ndarray, points: np.ndarray, faces: np.ndarray, view: View) -> np.ndarray:
    """Return a mask (k,) of the vertices ``at`` that no face closer to the viewer hides."""
    flat, depth = view.project(points), points @ view.toward
    visible = np.ones(len(at), dtype=bool)
    if not len(at):
        return visible
    low, high = flat[faces].min(axis=1), flat[faces].max(axis=1)
    reach = np.linalg.norm(high - low, axis=1) / 2
    near = cKDTree(flat[at]).query_ball_point(low / 2 + high / 2, 1.01 * reach)
    f = np.repeat(np.arange(len(faces)), list(map(len, near)))
    i = np.fromiter(chain.from_iterable(near), np.int64, len(f))
    foreign = (faces[f] != at[i, None]).all(axis=1)
    i, f = i[foreign], f[foreign]
    z = flat @ [1, 1j]  # the imaginary part of conj(a) b is the cross product of a and b
    first, q = faces[f, 0], z[at[i]] - z[faces[f, 0]]
    for j in range(1, faces.shape[1] - 1):  # triangles at the first corner
        second, third = faces[f, j], faces[f, j + 1]
        a, b = z[second] - z[first], z[third] - z[first]
        area = (a.conj() * b).imag
        area = np.where(area == 0, np.inf, area)
        s, t = (q.conj() * b).imag / area, (a.conj() * q).imag / area
        inside = (s >= 0) & (t >= 0) & (s + t <= 1) & np.isfinite(area)
        plane = (1 - s - t) * depth[first] + s * depth[second] + t * depth[third]
        visible[i[inside & (plane > depth[at[i]])]] = False
    return visible


def spread_out(points: np.ndarray, count: int) -> np.ndarray:
    """Return ``count`` points by farthest-point sampling; the first is farthest from the mean."""
    chosen: list[int] = []
    distances = ((points - points.mean(axis=0)) ** 2).sum(axis=1) if len(points) else points
    while len(chosen) < min(count, len(points)):
        following = int(distances.argmax())
        if chosen and distances[following] == 0:
            break
        own = ((points - points[following]) ** 2).sum(axis=1)
        distances = np.minimum(distances, own) if chosen else own
        chosen.append(following)
    return np.array(chosen, dtype=np.int64)


def usual_gap(points: np.ndarray) -> float:
    """Return the median distance of points to their nearest neighbours, or 1 if it is 0."""
    if len(points) < 2:
        return 1.0
    return float(np.median(cKDTree(points).query(points, k=2)[0][:, 1])) or 1.0
