"""Checks of points and surfaces, pairs of points, and vertex normals."""

import re

import numpy as np
import pytest

from sheafcoarsen._support.surfaces import (
    point_array,
    scaled_points,
    surface_arrays,
    vertex_normals,
)
from tests.support.helpers import assert_residual
from tests.support.meshes import icosphere


def test_vertex_normals_are_weighted_by_area():
    # vertex 0: a large face in the plane z = 0 and a small one in the plane y = 0
    points = np.array([[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 1], [-1, 0, 0.0]])
    normals = vertex_normals(points, np.array([[0, 1, 2], [0, 3, 4]]))
    expected = np.array([0, 0, 8.0]) + np.cross([0, 0, 1], [-1, 0, 0]) / 2
    expected /= np.linalg.norm(expected)
    assert_residual(normals[0] - expected, expected, n=3)


def test_normals_that_cancel_up_to_rounding_are_replaced():
    """Two faces in one plane, of the same area, to which ``signs`` give opposite directions."""
    p, q = np.random.default_rng(0).standard_normal((2, 3))
    points = np.array([0 * p, p, q, p + 0.3 * q, 1.21 * q + 0.7 * p])
    faces, signs = np.array([[0, 1, 2], [0, 3, 4]]), np.outer([1, -1], np.ones(3))
    normals = vertex_normals(points, faces, signs)
    assert normals[0].tolist() == [0, 0, 1]
    assert_residual(normals[1] + normals[3], 1.0, n=3)


def test_error_names_the_first_invalid_face():
    """Three faces at a side: the error names them, for the first such side."""
    points = np.vstack([np.eye(3), -np.eye(3), [[1.0, 1.0, 1.0]]])
    faces = [[0, 1, 2], [3, 4, 5], [1, 0, 6], [3, 5, 0], [0, 1, 4]]
    message = "edge (0, 1) is a side of `faces[0]`, `faces[2]` and `faces[4]`, but a surface has"
    with pytest.raises(ValueError, match=re.escape(message)):
        surface_arrays(points, faces)
    assert len(surface_arrays(points, faces[:4])[1]) == 4


@pytest.mark.parametrize("scale", [1e-160, 1e-3, 1.0, 1e150])
@pytest.mark.parametrize("offset", [0.0, 0.1, 7.3])
def test_faces_without_area_raise_at_every_scale(scale, offset):
    thin = np.array([[0, 0, 0], [1, 0, 0], [0.5, 1e-9, 0]]) + offset
    surface_arrays(scale * thin, [[0, 1, 2]])
    flat = np.array([[0, 0, 0], [2, 4, 6], [1, 2, 3]]) + offset
    with pytest.raises(ValueError, match="has no area, since its corners lie on a line"):
        surface_arrays(scale * flat, [[0, 1, 2]])


def test_faces_are_oriented_like_the_first_of_their_component():
    """Two spheres, one of which is inside out, and a Moebius strip, which is not changed."""
    rng = np.random.default_rng(17)
    points, faces = icosphere(1)
    around = 2 * np.pi * np.arange(5) / 5
    rim = np.stack([np.cos(around), np.sin(around), np.zeros(5)], axis=1)
    strip = np.array([[i, (i + 1) % 5, (i + 2) % 5] for i in range(5)])
    both = np.vstack([points, points + 3, rim + 6])
    wanted = np.vstack([faces, 42 + faces[:, ::-1], 84 + strip])
    given = wanted.copy()
    flipped = np.flatnonzero(rng.random(160) < 0.5)
    flipped = flipped[(flipped != 0) & (flipped != 80)]
    given[flipped] = given[flipped][:, ::-1]

    def cycles(faces):
        first = faces.argmin(axis=1)[:, None]
        return np.take_along_axis(faces, (first + np.arange(3)) % 3, axis=1)

    np.testing.assert_array_equal(cycles(surface_arrays(both, given)[1]), cycles(wanted))
    np.testing.assert_array_equal(surface_arrays(both, wanted)[1], wanted)


# ---------------------------------------------------------------- points and pairs


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1.0, 1e308])
def test_points_are_scaled_by_a_power_of_two(scale):
    points = np.array([[0.75, -0.5], [0.25, 0.0]]) * scale
    scaled, exponent = scaled_points(points)
    assert 0.5 <= np.abs(scaled).max() < 1
    np.testing.assert_array_equal(np.ldexp(scaled, exponent), points)


def test_points_of_another_dimension_raise():
    with pytest.raises(ValueError, match=r"must have shape \(n, 3\), got \(1, 2\)"):
        point_array([[1, 2]], columns=3)
