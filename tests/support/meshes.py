"""Meshes of surfaces that several tests share."""

import numpy as np
import scipy.spatial


def icosphere(levels):
    """Return the icosahedron, subdivided ``levels`` times, projected onto the sphere."""
    golden = (1 + np.sqrt(5)) / 2
    points = np.array([[0, a, b * golden] for a in (1, -1) for b in (1, -1)])
    points = np.vstack([np.roll(points, shift, axis=1) for shift in range(3)])
    faces = scipy.spatial.ConvexHull(points).simplices.astype(np.int64)
    inward = np.linalg.det(points[faces]) < 0
    faces[inward] = faces[inward][:, ::-1]
    for _ in range(levels):
        sides = np.sort(np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2))
        pairs, middle = np.unique(sides, axis=0, return_inverse=True)
        middle = len(points) + middle.reshape(-1, 3)
        points = np.vstack([points, points[pairs].mean(axis=1)])
        corners = np.stack([faces, middle, np.roll(middle, 1, axis=1)], axis=2).reshape(-1, 3)
        faces = np.vstack([corners, middle])
    return points / np.linalg.norm(points, axis=1)[:, None], faces


CUBE = (
    np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]),
    np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]),
)
"""Vertices and squares of the cube, seen from outside in positive order."""
