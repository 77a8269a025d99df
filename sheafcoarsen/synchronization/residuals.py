"""Residuals and costs of poses, edge by edge."""

import numpy as np

from sheafcoarsen._support import EPS
from sheafcoarsen.synchronization.connection import Connection, determinants


def edge_turns(connection: Connection, rotations: np.ndarray) -> np.ndarray:
    """Return U* R_i* R_j for every edge, the identity if the edge is satisfied."""
    i, j = connection.edges.T
    seen = rotations[i].conj().swapaxes(1, 2) @ rotations[j]
    return connection.transports.conj().swapaxes(1, 2) @ seen


def angles_of(turns: np.ndarray) -> np.ndarray:
    """Return the largest rotation angle, 0 .. pi, of matrices (m, d, d)."""
    d = turns.shape[1]
    proper = determinants(turns).real > 0
    if turns.dtype.kind != "c" and d in (2, 3):
        skew = turns - turns.swapaxes(1, 2)
        sines = np.sqrt(np.einsum("eij,eij->e", skew, skew) / 8)
        cosines = (np.einsum("eii->e", turns) - (d - 2)) / 2
        return np.where(proper, np.arctan2(sines, cosines), np.pi)
    return np.abs(np.angle(np.linalg.eigvals(turns))).max(axis=1, initial=0)


def rotation_costs(connection: Connection, rotations: np.ndarray) -> np.ndarray:
    """Return w norm(R_j - R_i U)_F^2 for every edge."""
    i, j = connection.edges.T
    difference = rotations[j] - rotations[i] @ connection.transports
    squares = np.einsum("eij,eij->e", difference.conj(), difference).real
    return connection.weights * squares


def squared_distances(
    connection: Connection, rotations: np.ndarray, positions: np.ndarray | None
) -> np.ndarray:
    """Return norm(t_j - t_i - R_i z)^2 of displacements (m + s,), or zeros (m,) without them."""
    if connection.displacements is None or positions is None:
        return np.zeros(len(connection.edges))
    ends, points, *_ = connection.displacements
    i, j = ends.T
    offsets = positions[j] - positions[i] - np.einsum("eij,ej->ei", rotations[i], points)
    return np.square(offsets).sum(axis=1)


def costs_of(
    connection: Connection, rotations: np.ndarray, positions: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the costs of rotations (m,) and of displacements (m + s,), sightings last."""
    squares = squared_distances(connection, rotations, positions)
    tau = 0.0 if connection.displacements is None else connection.displacements.tau
    return rotation_costs(connection, rotations), tau * squares


def agree_to_rounding(
    connection: Connection,
    rotations: np.ndarray,
    positions: np.ndarray | None,
) -> bool:
    """Return whether the costs of all measurements and sightings are at rounding level."""
    unit = (8 * EPS) ** 2
    allowed = unit * connection.dim * connection.weights
    agree = bool((rotation_costs(connection, rotations) <= 4 * allowed).all())
    if connection.displacements is None or positions is None:
        return agree
    ends, points, *_ = connection.displacements
    squares = squared_distances(connection, rotations, positions)
    sizes = sum(np.square(x).sum(axis=1) for x in (*positions[ends.T], points))
    return agree and bool((squares <= unit * sizes).all())
