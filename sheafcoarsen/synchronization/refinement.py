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
from sheafcoarsen.synchronization.connection import (
    Connection,
    Poses,
    edge_turns,
    first_vertices,
)

MOST_STEPS = 100
"""Maximum number of Gauss-Newton steps."""

ENOUGH = 1e-9
"""Expected further decrease of the cost, relative to it, below which refinement ends.

It is extrapolated from the last two steps, since the decreases are nearly geometric.
"""

HALVINGS = 20
"""Maximum number of times that a step is halved because it would increase the cost."""

TOLERANCE = 1e-6
"""Tolerance of the linear solver; steps need not be exact."""


class PoseSheaf:
    """Sheaf of the derivatives of all residuals, whose maps are updated for given poses.

    Attributes
    ----------
    length : float
        The unit of v, a power of two: the length of a translation that changes residuals about as
        much as a rotation by one radian, in any units of positions.
    """

    def __init__(self, connection: Connection) -> None:
        n, m, d = connection.n_vertices, len(connection.edges), connection.dim
        moves = connection.displacements
        self.connection, self.n_angles = connection, 1 if d == 2 else 3
        self.stalk = self.n_angles + (0 if moves is None else d)
        self.ends = connection.edges if moves is None else moves.ends
        self.dims = np.repeat([self.stalk, d], [n, 0 if moves is None else moves.n_vertices - n])
        self.edge_dims = np.repeat([self.stalk, d], [m, len(self.ends) - m])
        self.rotation_roots = np.sqrt(8 * connection.weights)
        self.translation_roots = np.sqrt(np.zeros(0) if moves is None else moves.tau)
        self.length = 1.0
        if moves is not None and len(moves.tau):
            sizes = self.translation_roots * np.linalg.norm(moves.points, axis=1)
            turns = self.rotation_roots.sum() / 2 + sizes.sum()
            if turns > 0:
                self.length = float(2.0 ** np.round(np.log2(turns / self.translation_roots.sum())))
        self._sheaf: CellularSheaf | None = None

    def at(self, poses: Poses) -> tuple[CellularSheaf, np.ndarray]:
        """Return the sheaf and the residuals r at given poses; a step x changes r by -delta x."""
        measured, (rotations, positions, *_) = self.connection.displacements, poses
        m, a, k, d = len(self.connection.edges), self.n_angles, self.stalk, self.connection.dim
        tail, head, residual = np.zeros((m, k, k)), np.zeros((m, k, k)), np.zeros((m, k))
        sines, cosines = self._half_angles(rotations)
        residual[:, :a] = self.rotation_roots[:, None] * sines
        self._fill_rotations(tail, head, sines, cosines)
        if measured is None or positions is None:
            return self._filled(tail.ravel(), head.ravel()), residual.ravel()
        i, j = self.ends.T
        back = rotations[i].swapaxes(1, 2)
        seen = np.einsum("eij,ej->ei", back, positions[j] - positions[i])
        roots = self.translation_roots[:, None]
        moves = roots * (seen - measured.points)
        near = np.zeros((len(seen), d, k))
        near[:, :, :a] = -roots[:, :, None] * _moment(seen)
        near[:, :, a:] = self.length * roots[:, :, None] * np.eye(d)
        far = self.length * roots[:, :, None] * back
        residual[:, a:], tail[:, a:] = moves[:m], near[:m]
        head[:, a:, a:] = far[:m] @ rotations[j[:m]]
        sheaf = self._filled(np.append(tail, near[m:]), np.append(head, far[m:]))
        return sheaf, np.append(residual, moves[m:])

    def after(self, poses: Poses, step: np.ndarray) -> Poses:
        """Return the poses and landmarks after a step."""
        (rotations, positions, *_), d, a = poses, self.connection.dim, self.n_angles
        n, k = len(rotations), self.stalk
        steps = step[: n * k].reshape(n, k)
        rotated = rotations @ _exponential(steps[:, :a])
        if positions is None:
            return Poses(rotated, None)
        moves = np.einsum("vij,vj->vi", rotations, steps[:, a:])
        marks = step[n * k :].reshape(-1, d)
        return Poses(rotated, positions + self.length * np.concatenate([moves, marks]))

    def _half_angles(self, rotations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return sin(angle / 2) axis and cos(angle / 2) of the residual rotation of each edge."""
        turns = edge_turns(self.connection, rotations)
        if self.n_angles == 1:
            half = np.arctan2(turns[:, 1, 0], turns[:, 0, 0]) / 2
            return np.sin(half)[:, None], np.cos(half)
        if not len(turns):
            return np.zeros((0, 3)), np.zeros(0)
        quaternions = Rotation.from_matrix(np.array(turns)).as_quat(canonical=True)
        return quaternions[:, :3], quaternions[:, 3]

    def _fill_rotations(
        self, tail: np.ndarray, head: np.ndarray, sines: np.ndarray, cosines: np.ndarray
    ) -> None:
        """Write the derivatives of the rotation residuals; delta x = tail x_i - head x_j."""
        a, transports = self.n_angles, self.connection.transports
        half = self.rotation_roots[:, None, None] / 2
        signs = np.sign(np.linalg.det(transports))[:, None, None]
        bent = np.zeros((1, 1)) if a == 1 else _cross(sines)
        back = signs * (np.eye(1) if a == 1 else transports.swapaxes(1, 2))
        straight = cosines[:, None, None] * np.eye(a)
        tail[:, :a, :a] = half * ((straight - bent) @ back)  # as U^T exp(w) U = exp(back w)
        head[:, :a, :a] = half * (straight + bent)

    def _filled(self, tail: np.ndarray, head: np.ndarray) -> CellularSheaf:
        """Return the sheaf with these maps, built on the first call and updated later."""
        if self._sheaf is None:
            self._sheaf = trusted_sheaf(self.ends, self.dims, self.edge_dims, tail, head)
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
    """Return the matrix of x -> v cross x for each vector v."""
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)


def _moment(points: np.ndarray) -> np.ndarray:
    """Return the derivative of exp(-omega) p with respect to omega at 0."""
    if points.shape[1] == 2:
        return np.stack([points[:, 1], -points[:, 0]], axis=1)[:, :, None]
    return _cross(points)


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
    solve = Solver(sheaf, fixed=first_vertices(connection.joined))
    for step in range(steps or MOST_STEPS):
        if step:
            solve.update(sheaf)
        delta = coboundary(sheaf)
        try:
            x = solve(delta.T @ r, tol=TOLERANCE)
        except NotConverged as error:  # the inexact solution may still reduce the cost
            x = np.asarray(error.result)
        along = delta @ x
        # for an exact step x, norm(r - s delta x)^2 = cost - (2 s - s^2) gain
        gain = float(2 * (r @ along) - along @ along)
        if not gain >= 0:
            break
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
        if decrease <= ENOUGH * new_cost or decrease * ratio <= ENOUGH * new_cost * (1 - ratio):
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
