"""Faces of mesh files: collected from lines of text, checked, and converted to an array."""

from collections.abc import Sequence

import numpy as np

from sheafcoarsen._support import first_true, offsets, ranges
from sheafcoarsen.io.text import Words, file_error

Mesh = tuple[np.ndarray, np.ndarray]
"""Points of shape (n, 3) and faces of shape (f, k)."""


def face_array(
    path: str,
    n: int,
    corners: np.ndarray,
    sizes: np.ndarray,
    lines: Sequence[int] | None = None,
    first: int = 0,
) -> np.ndarray:
    """Return the faces with ``sizes`` corners, split into triangles if their sizes differ.

    Faces with less than three corners, with invalid or with repeated vertices are errors, with the
    face's line if known; the file's first vertex has the number ``first``.
    """

    def refuse(f: int, message: str) -> None:
        raise file_error(path, None if lines is None else lines[f], f"face {f} {message}")

    if (f := first_true(sizes < 3)) is not None:
        refuse(f, f"has {sizes[f]} corners, but needs at least 3")
    face = np.repeat(np.arange(len(sizes)), sizes)
    if (bad := first_true((corners < 0) | (corners >= n))) is not None:
        among = f"vertices {first} .. {n - 1 + first}" if n else "no vertex"
        corner = int(corners[bad]) + first
        refuse(int(face[bad]), f"contains vertex {corner}, but there are {among}")
    order = np.lexsort((corners, face))
    again = (np.diff(face[order]) == 0) & (np.diff(corners[order]) == 0)
    if (bad := first_true(again)) is not None:
        at = order[bad]
        refuse(int(face[at]), f"contains vertex {corners[at] + first} twice")
    if not len(sizes):
        return np.zeros((0, 3), dtype=np.int64)
    if (sizes == sizes[0]).all():
        return corners.reshape(-1, int(sizes[0]))
    starts, fan = offsets(sizes)[:-1], sizes - 2
    second = ranges(starts + 1, fan)
    return np.stack([corners[np.repeat(starts, fan)], corners[second], corners[second + 1]], axis=1)


class FaceLines:
    """Points and faces of a text mesh, collected line by line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.points = Words(path, "a coordinate")
        self.corners = Words(path, "a corner of a face")
        self._counts = Words(path, "the number of corners of a face")

    def add_point(self, number: int, words: list[str]) -> None:
        """Append a point, given as three coordinates; ignore other words."""
        if len(words) < 3:
            message = f"a vertex needs 3 coordinates, got {len(words)}"
            raise file_error(self.path, number, message)
        self.points.add(number, words[:3])

    def add_face(self, number: int, words: list[str]) -> None:
        """Append a face, given as the number of corners and the vertices; ignore other words."""
        self._counts.add(number, words[:1])
        # 0 if the word is not a number, for which `mesh` raises an error
        k = int(words[0]) if words and words[0].isascii() and words[0].isdigit() else 0
        if len(words) <= k:
            message = f"a face of {k} corners needs as many vertices, got {len(words) - 1}"
            raise file_error(self.path, number, message)
        self.corners.add(number, words[1 : 1 + k])

    def mesh(self, corners: list[int] | None = None, first: int = 0) -> Mesh:
        """Return points and faces; by default, the vertices of faces are the words of the file."""
        points = self.points.numbers().reshape(-1, 3)
        corners = self.corners.integers() if corners is None else corners
        self._counts.integers()  # raises an error for other words
        # clip huge indices, which are reported as out of range
        vertices = np.array([min(max(v, -1), 2**62) for v in corners], dtype=np.int64)
        sizes = np.diff(np.array([0, *self.corners.ends], dtype=np.int64))
        return points, face_array(
            self.path, len(points), vertices, sizes, self.corners.lines, first
        )
