"""Frames from the lowest modes, or extended from a fixed vertex; positions for rotations."""

import warnings

import numpy as np

from sheafcoarsen._support import range_of_blocks
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.operators import (
    Factors,
    apply_coboundary,
    coboundary,
    elimination_order,
    laplacian,
)
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve import eigenmodes, least_squares
from sheafcoarsen.synchronization.connection import Connection, Poses

ACCURATE = 1e-9
"""Tolerance of the eigensolver. Frames have errors of about this divided by the relative gap."""

OPERATIONS = 2e10
"""Number of operations (about 10 s) above which an iterative solver replaces a factorization."""


def spectral_frames(connection: Connection, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return frames (n, d, d) from the d lowest modes of each component, and d + 1 eigenvalues.

    The eigenvalues are those of the component with the smallest gap after the d-th; the gap of a
    vertex without edges is inf.
    """
    d, component = connection.dim, connection.component
    frames = np.tile(np.eye(d, dtype=connection.transports.dtype), (connection.n_vertices, 1, 1))
    lowest = np.append(np.zeros(d), np.inf)
    for c in np.flatnonzero(np.bincount(component) > 1):
        sheaf = connection.rotation_sheaf.subsheaf(component == c)
        E = eigenmodes(sheaf, d + 1, tol=ACCURATE, seed=seed)
        low, high = E.values[d - 1 :]
        if high - low < lowest[d] - lowest[d - 1]:
            lowest = E.values
        frames[component == c] = E.vectors[:, :d].reshape(-1, d, d)
        if high - low <= 1e-6 * high:
            warnings.warn(
                f"the frames are not determined, because eigenvalues {d} and {d + 1} nearly "
                f"coincide: {low:.6g} and {high:.6g}. The measurements contradict each other as "
                f"much as random ones would",
                SingularProblemWarning,
                stacklevel=4,
            )
    return frames, lowest


def extended_rotations(connection: Connection) -> np.ndarray:
    """Return rotations nearest to the frames of minimum cost, with the first pose fixed at (I, 0).

    Every component has such a pose. If landmarks connect components of the connection, frames may
    be undetermined, and the solution of minimum norm is used.
    """
    n, d, sheaf, roots = connection.n_vertices, connection.dim, connection.sheaf, connection.roots
    poses = roots[roots < n]
    x = np.zeros((sheaf.dim_c0, d))
    x[sheaf.vertex_offsets[poses][:, None] + np.arange(d), np.arange(d)] = 1
    determined = len(poses) == len(np.unique(connection.component))
    x = least_energy(sheaf, np.zeros((sheaf.dim_c1, d)), roots, x, determined)
    stalk = int(sheaf.vertex_dims[0])
    frames = x[: n * stalk].reshape(n, stalk, d)[:, :d]
    return nearest_rotations(frames, connection, connection.joined[:n])


def with_positions(connection: Connection, rotations: np.ndarray) -> Poses:
    """Return poses with given rotations and least-squares positions, which are 0 at the roots.

    They minimize the sum of tau norm(t_j - t_i - R_i z)^2, a least-squares problem on the weighted
    graph for each of the d coordinates.
    """
    origin = np.zeros((connection.n_vertices + connection.n_landmarks, connection.points.shape[1]))
    if not origin.size:
        return Poses(rotations, origin)
    ends, tau = connection.ends, connection.tau
    moves = np.einsum("eij,ej->ei", rotations[ends[:, 0]], connection.points)
    sheaf = CellularSheaf.constant(ends, weight=tau, n_vertices=len(origin))
    data = -np.sqrt(tau)[:, None] * moves
    return Poses(rotations, least_energy(sheaf, data, connection.roots, origin))


def least_energy(
    sheaf: CellularSheaf, b: np.ndarray, roots: np.ndarray, x: np.ndarray, determined: bool = True
) -> np.ndarray:
    """Return x (dim_c0, h) that minimizes norm(delta x - b), with given values at the roots.

    Normal equations are factored or, if that is too expensive or x is not determined, solved by
    :func:`least_squares`.
    """
    at_roots = range_of_blocks(sheaf.vertex_offsets, roots)
    free = np.ones(len(x), bool)
    free[at_roots] = False
    if not free.any():
        return x
    L = laplacian(sheaf)[free][:, free]
    order = elimination_order(L, OPERATIONS)
    if order.operations > OPERATIONS or not determined:
        values = np.split(x[at_roots], np.cumsum(sheaf.vertex_dims[roots])[:-1])
        return least_squares(sheaf, b, vertices=roots, values=values).x
    right = coboundary(sheaf).conj().T @ (b - apply_coboundary(sheaf, x))
    x = x.astype(right.dtype)
    x[free] = Factors(L, 0.0, order).solve(right[free])
    return x


def nearest_rotations(
    frames: np.ndarray, connection: Connection, component: np.ndarray | None = None
) -> np.ndarray:
    """Return the rotations nearest to the transposed frames, with the identity at every root.

    If no transport of a component reflects, its frames are reflected if most have negative
    determinant, then rounded to SO(d); otherwise to O(d) or U(d).
    """
    component = connection.component if component is None else component
    mirrored = np.bincount(component, np.sign(np.linalg.det(frames).real)) < 0
    frames = frames.copy()
    frames[mirrored[component], :, -1] *= -1
    left, _, right = np.linalg.svd(frames)
    flip = (np.linalg.det(left @ right).real < 0) & connection.proper
    left[flip, :, -1] *= -1
    rotations = (left @ right).conj().swapaxes(1, 2)
    at_root = rotations[np.unique(component, return_index=True)[1]].conj().swapaxes(1, 2)
    return at_root[component] @ rotations
