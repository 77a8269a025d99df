"""What a mesh file holds: points and polygons of any size, with the lines where they stand."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._support import offsets, ranges
from sheafcoarsen.io.text import file_error


class Polygons(NamedTuple):
    """Points and faces as a file gives them, faces not checked yet."""

    points: np.ndarray  # (n, 3) of float64
    corners: np.ndarray  # vertices of all faces, one face after the other
    sizes: np.ndarray  # (f,) corners of each face
    lines: np.ndarray | None  # (f,) lines of the file, None where it is no text
    first: int = 0  # what the file calls the first vertex

    def faces(self, path: str) -> np.ndarray:
        """Return the faces as an array; where their sizes differ, cut into triangles."""
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
        """Refuse faces of less than three corners, that do not exist or are named twice."""
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
            self._refuse(path, int(face[bad[0]]), f"names vertex {corner}, but there are {among}")
        order = np.lexsort((self.corners, face))
        same = (np.diff(face[order]) == 0) & (np.diff(self.corners[order]) == 0)
        bad = np.flatnonzero(same)
        if bad.size:
            at = order[bad[0]]
            corner = int(self.corners[at]) + self.first
            self._refuse(path, int(face[at]), f"names vertex {corner} twice")

    def _refuse(self, path: str, f: int, message: str) -> None:
        line = None if self.lines is None else int(self.lines[f])
        raise file_error(path, line, f"face {f} {message}")
