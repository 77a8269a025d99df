"""The pose sheaf: the residuals of edges linearized in the poses.

A pose has the stalk (omega, v): a rotation R exp(omega) and a translation t + l R v in its own
frame, l a unit of length: dimension 3 in the plane and 6 in space, 1 and 3 without translations. A
landmark has the stalk v. An edge has the residuals of its rotation and its translation, of the same
dimensions; a sighting that of its translation alone. The rotation's residual is sqrt(8 kappa) times
the vector part sin(angle / 2) axis of the quaternion of U^T R_i^T R_j: its square is kappa norm(R_j
- R_i U)_F^2.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf
from sheafcoarsen.synchronization.connection import Connection
from sheafcoarsen.synchronization.residuals import edge_turns

QUARTER = np.array([[0.0, -1.0], [1.0, 0.0]])
"""The generator of rotations of the plane."""


class PoseSheaf:
    """The sheaf of the derivatives of all residuals, refilled at given poses.

    Parameters
    ----------
    connection : Connection
        A connection of rotations in the plane or in space.

    Attributes
    ----------
    length : float
        The unit of v, a power of two, such that rotations and translations change residuals about
        equally in any units of positions.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        m = len(connection.edges)
        moves = connection.displacements
        self.points = None if moves is None else moves.points
        self.sightings = np.zeros((0, 2), np.int64) if moves is None else moves.ends[m:]
        self.n_landmarks = 0 if moves is None else moves.n_vertices - connection.n_vertices
        self.dim = connection.dim
        self.n_angles = 1 if self.dim == 2 else 3
        self.stalk = self.n_angles + (0 if moves is None else self.dim)
        self.rotation_roots = np.sqrt(8 * connection.weights)
        self.translation_roots = np.sqrt(np.zeros(0) if moves is None else moves.tau)
        self.length = 1.0 if moves is None else self._unit_of_length(moves.points)
        self._sheaf: CellularSheaf | None = None

    def _unit_of_length(self, points: np.ndarray) -> float:
        """Return the length of a translation that costs as much as a rotation by one radian."""
        moves = self.translation_roots.mean() if len(points) else 0.0
        if not moves > 0:
            return 1.0
        turns = self.rotation_roots.mean() / 2 if len(self.rotation_roots) else 0.0
        turns += (self.translation_roots * np.linalg.norm(points, axis=1)).mean()
        return float(2.0 ** np.round(np.log2(turns / moves))) if turns > 0 else 1.0

    def at(
        self, rotations: np.ndarray, translations: np.ndarray | None
    ) -> tuple[CellularSheaf, np.ndarray]:
        """Return the sheaf and the 1-cochain r: residuals after a step x are r - delta x."""
        m, a, k = len(self.connection.edges), self.n_angles, self.stalk
        tail, head = np.zeros((m, k, k)), np.zeros((m, k, k))
        residual = np.zeros((m, k))
        sines, cosines = self._half_angles(rotations)
        residual[:, :a] = self.rotation_roots[:, None] * sines
        self._fill_rotations(tail, head, sines, cosines)
        if self.points is None or translations is None:
            return self._filled(tail.ravel(), head.ravel()), residual.ravel()
        i, j = self.connection.edges.T
        back = rotations[i].swapaxes(1, 2)
        seen = np.einsum("eij,ej->ei", back, translations[j] - translations[i])
        roots = self.translation_roots[:m, None]
        residual[:, a:] = roots * (seen - self.points[:m])
        tail[:, a:, :a] = -roots[:, :, None] * _moment(seen)
        tail[:, a:, a:] = self.length * roots[:, :, None] * np.eye(self.dim)
        head[:, a:, a:] = self.length * roots[:, :, None] * (back @ rotations[j])
        if not len(self.sightings):
            return self._filled(tail.ravel(), head.ravel()), residual.ravel()
        i, j = self.sightings.T
        back = rotations[i].swapaxes(1, 2)
        seen = np.einsum("eij,ej->ei", back, translations[j] - translations[i])
        roots = self.translation_roots[m:, None]
        ahead = np.broadcast_to(self.length * np.eye(self.dim), back.shape)
        near = np.concatenate([-_moment(seen), ahead], axis=2)
        sheaf = self._filled(
            np.concatenate([tail.ravel(), (roots[:, :, None] * near).ravel()]),
            np.concatenate([head.ravel(), (self.length * roots[:, :, None] * back).ravel()]),
        )
        rest = roots * (seen - self.points[m:])
        return sheaf, np.concatenate([residual.ravel(), rest.ravel()])

    def after(
        self, rotations: np.ndarray, translations: np.ndarray | None, step: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return poses, then landmarks, after a step."""
        n, d, a = len(rotations), self.dim, self.n_angles
        poses = step[: n * self.stalk].reshape(n, self.stalk)
        rotated = rotations @ _exponential(poses[:, :a])
        if translations is None:
            return rotated, None
        moves = np.einsum("vij,vj->vi", rotations, poses[:, a:])
        marks = step[n * self.stalk :].reshape(-1, d)
        return rotated, translations + self.length * np.concatenate([moves, marks])

    def _half_angles(self, rotations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sin(angle / 2) axis and cos(angle / 2) of the residual rotation of each edge."""
        turns = edge_turns(self.connection, rotations)
        if self.dim == 2:
            half = np.arctan2(turns[:, 1, 0], turns[:, 0, 0]) / 2
            return np.sin(half)[:, None], np.cos(half)
        if not len(turns):
            return np.zeros((0, 3)), np.zeros(0)
        quaternions = Rotation.from_matrix(np.array(turns)).as_quat(canonical=True)
        return quaternions[:, :3], quaternions[:, 3]

    def _fill_rotations(
        self, tail: np.ndarray, head: np.ndarray, sines: np.ndarray, cosines: np.ndarray
    ) -> None:
        """Write the derivatives of the rotations' residuals; delta x = tail x_i - head x_j."""
        a = self.n_angles
        half = self.rotation_roots[:, None, None] / 2
        straight = cosines[:, None, None] * np.eye(a)
        signs = np.sign(np.linalg.det(self.connection.transports))[:, None, None]
        if self.dim == 2:
            tail[:, :a, :a] = half * signs * straight
            head[:, :a, :a] = half * straight
        else:
            bent = _cross(sines)
            back = signs * self.connection.transports.swapaxes(1, 2)  # U^T exp(w) U = exp(back w)
            tail[:, :a, :a] = half * ((straight - bent) @ back)
            head[:, :a, :a] = half * (straight + bent)

    def _filled(self, tail: np.ndarray, head: np.ndarray) -> CellularSheaf:
        """Return the sheaf with these maps, built at the first call and refilled later."""
        if self._sheaf is None:
            n, m, s = self.connection.n_vertices, len(self.connection.edges), len(self.sightings)
            dims = np.repeat([self.stalk, self.dim], [n, self.n_landmarks])
            edge_dims = np.repeat([self.stalk, self.dim], [m, s])
            edges = np.concatenate([self.connection.edges, self.sightings])
            self._sheaf = trusted_sheaf(edges, dims, edge_dims, tail, head)
        else:
            self._sheaf = self._sheaf.with_maps(tail, head)
        return self._sheaf


def _exponential(omegas: np.ndarray) -> np.ndarray:
    """Return the rotations exp(omega), of the plane or of space."""
    if omegas.shape[1] == 1:
        cosines, sines = np.cos(omegas[:, 0]), np.sin(omegas[:, 0])
        return np.stack([cosines, -sines, sines, cosines], axis=1).reshape(-1, 2, 2)
    return Rotation.from_rotvec(omegas).as_matrix()


def _cross(vectors: np.ndarray) -> np.ndarray:
    """Return the matrices of x -> v cross x."""
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)


def _moment(points: np.ndarray) -> np.ndarray:
    """Return the derivative of exp(-omega) p with respect to omega at 0."""
    if points.shape[1] == 2:
        return -(points @ QUARTER.T)[:, :, None]
    return _cross(points)
