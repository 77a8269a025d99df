"""Points and polygons of a mesh file, with their line numbers for messages."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import offsets, ranges
from sheafcoarsen.io.text import Words, file_error


class Polygons(NamedTuple):
    """Points and faces of a file; faces are not validated yet."""

    points: np.ndarray  # (n, 3) of float64
    corners: np.ndarray  # vertices of all faces, flat
    sizes: np.ndarray  # (f,) number of corners of each face
    lines: np.ndarray | None  # (f,) line numbers, None for binary files
    first: int = 0  # index of the first vertex in the file's numbering

    def faces(self, path: str) -> np.ndarray:
        """Return the faces as an array, split into triangles if their sizes differ."""
        self._check(path)
        if not len(self.sizes):
            return np.zeros((0, 3), dtype=np.int64)
        if (self.sizes == self.sizes[0]).all():
            return self.corners.reshape(-1, int(self.sizes[0]))
        starts = offsets(self.sizes)[:-1]
        fan = self.sizes - 2
        first = np.repeat(starts, fan)
        second = ranges(starts + 1, fan)
        return np.stack([self.corners[first], self.corners[second], self.corners[second + 1]], 1)

    def _check(self, path: str) -> None:
        """Reject faces with less than three corners, or with invalid or repeated vertices."""
        n = len(self.points)
        bad = np.flatnonzero(self.sizes < 3)
        if bad.size:
            f = int(bad[0])
            self._refuse(path, f, f"has {self.sizes[f]} corners, but needs at least 3")
        face = np.repeat(np.arange(len(self.sizes)), self.sizes)
        bad = np.flatnonzero((self.corners < 0) | (self.corners >= n))
        if bad.size:
            corner = int(self.corners[bad[0]]) + self.first
            among = f"vertices {self.first} .. {n - 1 + self.first}" if n else "no vertex"
            self._refuse(
                path, int(face[bad[0]]), f"contains vertex {corner}, but there are {among}"
            )
        order = np.lexsort((self.corners, face))
        same = (np.diff(face[order]) == 0) & (np.diff(self.corners[order]) == 0)
        bad = np.flatnonzero(same)
        if bad.size:
            at = order[bad[0]]
            corner = int(self.corners[at]) + self.first
            self._refuse(path, int(face[at]), f"contains vertex {corner} twice")

    def _refuse(self, path: str, f: int, message: str) -> None:
        line = None if self.lines is None else int(self.lines[f])
        raise file_error(path, line, f"face {f} {message}")


class FaceLines:
    """Points and faces of a text mesh, collected line by line."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.points = Words(path, "a coordinate")
        self.corners = Words(path, "a corner of a face")
        self.lengths = Words(path, "the number of corners of a face")

    def add_face(self, number: int, words: list[str]) -> None:
        """Append a face, given as the number of corners and the vertices; ignore other words."""
        self.lengths.add(number, words[:1])
        # 0 if the word is not a number, for which `polygons` raises an error
        k = int(words[0]) if words and words[0].isascii() and words[0].isdigit() else 0
        if len(words) <= k:
            message = f"a face of {k} corners needs as many vertices, got {len(words) - 1}"
            raise file_error(self.path, number, message)
        self.corners.add(number, words[1 : 1 + k])

    def polygons(self, corners: list[int] | None = None, first: int = 0) -> Polygons:
        """Return the parsed faces; huge indices are clipped and later reported as invalid."""
        corners = self.corners.integers() if corners is None else corners
        return Polygons(
            self.points.numbers().reshape(-1, 3),
            np.array([min(max(v, -1), 2**62) for v in corners], dtype=np.int64),
            np.array([min(max(k, 0), 2**62) for k in self.lengths.integers()], dtype=np.int64),
            np.array(self.lengths.lines, dtype=np.int64),
            first,
        )
