"""Poses and landmarks as one sheaf, whose energy is the total cost of SE-Sync.

A pose has the stalk R^(d + 1) with the value X_i = [R_i^T; t_i^T], a landmark the stalk R with its
position as value. With the tail map [[sqrt(kappa) R_ij^T, 0], [sqrt(tau) t_ij^T, sqrt(tau)]] and
the head map diag(sqrt(kappa) I, sqrt(tau)) the energy of an edge is its cost; a sighting has the
maps [sqrt(nu) z^T, sqrt(nu)] and [sqrt(nu)].
"""

from typing import NamedTuple

import numpy as np

from sheafcoarsen.sheaf import CellularSheaf, component_labels, trusted_sheaf


class Displacements(NamedTuple):
    """Measured displacements z: vertex j is about at t_i + R_i z for a pair (i, j)."""

    ends: np.ndarray  # (m + s, 2), measurements, then sightings; landmarks follow poses
    points: np.ndarray  # (m + s, d), z
    tau: np.ndarray  # (m + s,)
    n_vertices: int  # poses and landmarks

    @property
    def roots(self) -> np.ndarray:
        """The first vertex of every component, connected by measurements and sightings."""
        return np.unique(component_labels(self.n_vertices, self.ends), return_index=True)[1]


def joint_sheaf(
    n_poses: int, transports: np.ndarray, kappa: np.ndarray, displacements: Displacements
) -> CellularSheaf:
    """Return the sheaf of measured rotations (m, d, d) and displacements."""
    m, d = transports.shape[:2]
    ends, points, tau, n_vertices = displacements
    s, n_landmarks = len(ends) - m, n_vertices - n_poses
    rotation_roots, translation_roots = np.sqrt(kappa)[:, None], np.sqrt(tau)[:, None]
    tail, head = np.zeros((2, m, d + 1, d + 1))
    tail[:, :d, :d] = rotation_roots[:, :, None] * transports.swapaxes(1, 2)
    tail[:, d, :d], tail[:, d, d] = translation_roots[:m] * points[:m], translation_roots[:m, 0]
    head[:, range(d), range(d)], head[:, d, d] = rotation_roots, translation_roots[:m, 0]
    seen = translation_roots[m:] * np.hstack([points[m:], np.ones((s, 1))])
    return trusted_sheaf(
        ends,
        np.repeat([d + 1, 1], [n_poses, n_landmarks]),
        np.repeat([d + 1, 1], [m, s]),
        np.concatenate([tail.ravel(), seen.ravel()]),
        np.concatenate([head.ravel(), translation_roots[m:].ravel()]),
    )


def joint_cochain(rotations: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the blocks [R_i^T; t_i^T] of poses, then landmarks' positions, as (dim_c0, d)."""
    n, d = rotations.shape[:2]
    poses = np.concatenate([rotations.swapaxes(1, 2), positions[:n, None, :]], axis=1)
    return np.concatenate([poses.reshape(-1, d), positions[n:]])
