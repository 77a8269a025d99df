"""Gauss-Newton refinement of poses: least squares on the sheaf of linearized residuals.

A pose has the stalk (omega, v): a rotation R exp(omega) and a translation t + l R v in its own
frame, l a unit of length: dimension 3 in the plane and 6 in space, 1 and 3 without translations. A
landmark has the stalk v. An edge has the residuals of its rotation and its translation, of the same
dimensions; a sighting that of its translation alone. The rotation's residual is sqrt(8 kappa) times
the vector part sin(angle / 2) axis of the quaternion of U^T R_i^T R_j: its square is kappa norm(R_j
- R_i U)_F^2.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf
from sheafcoarsen.solve import Solver
from sheafcoarsen.synchronization.connection import Connection, Poses, edge_turns

MOST_STEPS = 100
"""Maximum number of Gauss-Newton steps."""

HALVINGS = 20
"""Maximum number of times that a step is halved because it would increase the cost."""


class PoseSheaf:
    """Sheaf of the derivatives of all residuals, whose maps are updated for given poses.

    Formulas are those of space. In the plane only rotations about the third axis remain: the last
    of three coordinates of omega, and the first two of v.

    Attributes
    ----------
    length : float
        The unit of v, a power of two: the length of a translation that changes residuals about as
        much as a rotation by one radian, in any units of positions.
    """

    def __init__(self, connection: Connection) -> None:
        n, m, d = connection.n_vertices, len(connection.edges), connection.dim
        self.connection, self.n_angles = connection, 1 if d == 2 else 3
        self.stalk = self.n_angles + connection.points.shape[1]
        dims = np.repeat([self.stalk, d], [n, connection.n_landmarks])
        edge_dims = np.repeat([self.stalk, d], [m, len(connection.ends) - m])
        tail, head = map(np.zeros, edge_dims @ dims[connection.ends])
        self.sheaf = trusted_sheaf(connection.ends, dims, edge_dims, tail, head)
        self.rotation_roots = np.sqrt(8 * connection.weights)
        self.translation_roots = np.sqrt(connection.tau)
        sizes = self.translation_roots * np.linalg.norm(connection.points, axis=1)
        turns, total = self.rotation_roots.sum() / 2 + sizes.sum(), self.translation_roots.sum()
        self.length = float(2.0 ** np.round(np.log2(turns / total))) if turns > 0 < total else 1.0

    def at(self, poses: Poses) -> tuple[CellularSheaf, np.ndarray]:
        """Return the sheaf and the residuals r at given poses; a step x changes r by -delta x."""
        connection, rotations, positions = self.connection, poses.rotations, poses.positions
        m, a, k, d = len(connection.edges), self.n_angles, self.stalk, connection.dim
        tail, head, residual = np.zeros((m, k, k)), np.zeros((m, k, k)), np.zeros((m, k))
        turns, transports = np.tile(np.eye(3), (2, m, 1, 1))
        turns[:, :d, :d] = edge_turns(connection, rotations)
        transports[:, :d, :d] = connection.transports
        quaternions = np.zeros((m, 4))
        if m:  # scipy before 1.16 refuses an empty array
            quaternions = Rotation.from_matrix(turns).as_quat(canonical=True)
        sines, cosines = quaternions[:, :3], quaternions[:, 3, None, None]
        half = self.rotation_roots[:, None, None] / 2
        signs = np.sign(np.linalg.det(transports))[:, None, None]
        back = signs * transports.swapaxes(1, 2)  # U^T exp(w) U = exp(back w)
        bent, straight = _cross(sines), cosines * np.eye(3)
        tail[:, :a, :a] = (half * (straight - bent) @ back)[:, 3 - a :, 3 - a :]
        head[:, :a, :a] = (half * (straight + bent))[:, 3 - a :, 3 - a :]
        residual[:, :a] = self.rotation_roots[:, None] * sines[:, 3 - a :]
        if not connection.has_positions:
            return self.sheaf.with_maps(tail.ravel(), head.ravel()), residual.ravel()
        i, j = connection.ends.T
        back = rotations[i].swapaxes(1, 2)
        seen = np.einsum("eij,ej->ei", back, positions[j] - positions[i])
        roots = self.translation_roots[:, None]
        moves = roots * (seen - connection.points)
        near = np.zeros((len(seen), d, k))
        near[:, :, :a] = -roots[:, :, None] * _cross(seen)[:, :d, 3 - a :]
        near[:, :, a:] = self.length * roots[:, :, None] * np.eye(d)
        far = self.length * roots[:, :, None] * back
        residual[:, a:], tail[:, a:] = moves[:m], near[:m]
        head[:, a:, a:] = far[:m] @ rotations[j[:m]]
        sheaf = self.sheaf.with_maps(np.append(tail, near[m:]), np.append(head, far[m:]))
        return sheaf, np.append(residual, moves[m:])

    def after(self, poses: Poses, step: np.ndarray) -> Poses:
        """Return the poses and landmarks after a step."""
        (rotations, positions, *_), d, a = poses, self.connection.dim, self.n_angles
        n, k = len(rotations), self.stalk
        steps = step[: n * k].reshape(n, k)
        omegas = np.zeros((n, 3))
        omegas[:, 3 - a :] = steps[:, :a]
        rotated = rotations @ Rotation.from_rotvec(omegas).as_matrix()[:, :d, :d]
        if not self.connection.has_positions:
            return Poses(rotated, positions)
        moves = np.einsum("vij,vj->vi", rotations, steps[:, a:])
        marks = step[n * k :].reshape(-1, d)
        return Poses(rotated, positions + self.length * np.concatenate([moves, marks]))


def _cross(vectors: np.ndarray) -> np.ndarray:
    """Return the matrix of x -> v cross x for each vector v of the plane or of space."""
    x, y, z = np.pad(vectors, [(0, 0), (0, 3 - vectors.shape[1])]).T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)


def refined_poses(connection: Connection, poses: Poses, steps: int = 0) -> Poses:
    """Reduce the cost of poses by Gauss-Newton; the first pose of every component is fixed.

    Every step solves the least-squares problem min norm(delta x - r) of the pose sheaf, refilled at
    the current poses, and is halved until the cost decreases.
    """
    bad = unrefinable(connection, poses.rotations)
    if bad is not None:
        raise ValueError(f"`refine` requires {bad}: use refine=False, which only rounds the frames")
    problem = PoseSheaf(connection)
    sheaf, r = problem.at(poses)
    costs = [float(r @ r)]
    converged, decrease = False, 0.0
    solve = Solver(sheaf, fixed=connection.roots)
    for step in range(steps or MOST_STEPS):
        if step:
            solve.update(sheaf)
        try:
            x = solve(coboundary(sheaf).T @ r, tol=1e-6)  # steps need not be exact
        except NotConverged as error:  # the inexact solution may still reduce the cost
            x = np.asarray(error.result)
        length, cost = 1.0, costs[-1]
        for _ in range(HALVINGS):
            there = problem.after(poses, length * x)
            sheaf, r = problem.at(there)
            new_cost = float(r @ r)
            if new_cost <= cost:
                break
            length /= 2
        else:
            converged = True
            break
        poses, before, decrease = there, decrease, cost - new_cost
        costs.append(new_cost)
        ratio = decrease / before if length == 1 and before > 0 else 1.0
        little = 1e-9 * new_cost  # compared with the further decrease, for geometric decreases
        if decrease <= little or decrease * ratio <= little * (1 - ratio):
            converged = True
            break
    return poses._replace(costs=tuple(costs), converged=converged)


def unrefinable(connection: Connection, rotations: np.ndarray) -> str | None:
    """Return the requirement of Gauss-Newton that is violated, or None."""
    if connection.dim not in (2, 3) or connection.transports.dtype.kind == "c":
        return f"rotations of the plane or of space, got {connection.group}"
    reflects = np.linalg.det(edge_turns(connection, rotations)) < 0
    bad = np.flatnonzero(reflects & (connection.weights > 0))
    if bad.size:
        u, v = connection.edges[bad[0]].tolist()
        return (
            f"frames that agree with every edge up to a rotation, but edge {bad[0]} ({u} -> {v}) "
            f"reflects"
        )
    return None
