"""Polygons of a file are checked, and cut into triangles where they differ in size."""

import numpy as np
import pytest

from sheafcoarsen.io.polygons import Polygons


def polygons(faces, n=9, lines=None, first=0):
    corners = np.array([v for face in faces for v in face], dtype=np.int64)
    sizes = np.array([len(face) for face in faces], dtype=np.int64)
    return Polygons(np.zeros((n, 3)), corners, sizes, lines, first)


def test_a_fan_keeps_the_turn_and_the_area_of_a_polygon():
    angle = 2 * np.pi * np.arange(7) / 7
    points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    faces = polygons([[0, 1, 2, 3, 4, 5, 6], [1, 0, 8]]).faces("a.off")
    assert faces.shape == (6, 3)
    a, b = points[faces[:5, 1]] - points[faces[:5, 0]], points[faces[:5, 2]] - points[faces[:5, 0]]
    doubled = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    assert (doubled > 0).all()
    assert abs(doubled.sum() - 7 * np.sin(2 * np.pi / 7)) < 1e-12
    assert faces[5].tolist() == [1, 0, 8]


def test_faces_of_one_size_stay_whole():
    assert polygons([[0, 1, 2, 3], [3, 2, 1, 8]]).faces("a").shape == (2, 4)
    assert polygons([]).faces("a").shape == (0, 3)


@pytest.mark.parametrize(
    ("faces", "message"),
    [
        ([[0, 1, 2], [0, 1]], "^a.off:17: face 1 has 2 corners, but needs at least 3$"),
        (
            [[0, 1, 2], [0, 1, 9]],
            "^a.off:17: face 1 names vertex 10, but there are",
        ),
        ([[0, 1, 2], [4, 1, 2, 4]], "^a.off:17: face 1 names vertex 5 twice$"),
    ],
)
def test_the_first_offender_is_named_as_the_file_does(faces, message):
    with pytest.raises(ValueError, match=message):
        polygons(faces, lines=np.array([12, 17]), first=1).faces("a.off")
