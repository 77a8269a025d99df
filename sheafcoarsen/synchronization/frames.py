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
from sheafcoarsen.solve import eigenmodes, harmonic_extension, least_squares
from sheafcoarsen.synchronization.connection import Connection, Poses, first_vertices

ACCURATE = 1e-9
"""Tolerance of the eigensolver. Frames have errors of about this divided by the relative gap."""

OPERATIONS = 2e10
"""Number of operations (about 10 s) above which an iterative solver replaces a factorization."""


def spectral_frames(connection: Connection, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return frames (n, d, d) from the d lowest modes of each component, and d + 1 eigenvalues.

    The eigenvalues are those of the component with the smallest gap after the d-th; the gap of a
    vertex without edges is inf. Two vertices with one edge between them need no eigensolver.
    """
    d, component = connection.dim, connection.component
    frames = np.tile(np.eye(d, dtype=connection.transports.dtype), (connection.n_vertices, 1, 1))
    lowest = np.append(np.zeros(d), np.inf)
    edges = np.flatnonzero(connection.weights > 0)
    of_edge, sizes = component[connection.edges[edges, 0]], np.bincount(component)
    alone = (sizes == 2) & (np.bincount(of_edge, minlength=len(sizes)) == 1)
    pairs = edges[alone[of_edge]]
    if pairs.size:
        frames[connection.edges[pairs, 1]] = connection.transports[pairs].conj().swapaxes(1, 2)
        lowest[d] = 2 * float(connection.weights[pairs].min())
    for c in np.flatnonzero((sizes > 1) & ~alone):
        vertices = np.flatnonzero(component == c)
        values, vectors = _modes(component_of(connection, vertices), seed)
        if values[d] - values[d - 1] < lowest[d] - lowest[d - 1]:
            lowest = values
        frames[vertices] = vectors.reshape(len(vertices), d, d)
    return frames, lowest


def _modes(connection: Connection, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the d + 1 lowest eigenvalues, and the first d eigenvectors."""
    d = connection.dim
    E = eigenmodes(connection.rotation_sheaf, d + 1, tol=ACCURATE, seed=seed)
    values = E.values
    if values[d] - values[d - 1] <= 1e-6 * values[d]:
        warnings.warn(
            f"the frames are not determined, because eigenvalues {d} and {d + 1} nearly coincide: "
            f"{values[d - 1]:.6g} and {values[d]:.6g}. The measurements contradict each other as "
            f"much as random ones would",
            SingularProblemWarning,
            stacklevel=5,
        )
    return values, E.vectors[:, :d]


def component_of(connection: Connection, vertices: np.ndarray) -> Connection:
    """Return the rotations of a connection restricted to one component; vertices must ascend."""
    if len(vertices) == connection.n_vertices and (connection.weights > 0).all():
        return connection
    number = np.full(connection.n_vertices, -1)
    number[vertices] = np.arange(len(vertices))
    edges = number[connection.edges]
    mine = (edges[:, 0] >= 0) & (connection.weights > 0)
    return Connection(
        len(vertices), edges[mine], connection.transports[mine], connection.weights[mine]
    )


def extended_rotations(connection: Connection) -> np.ndarray:
    """Return rotations nearest to the frames of minimum cost, with the first pose fixed at (I, 0).

    Every component has such a pose. If landmarks connect components of the connection, frames may
    be undetermined, and the solution of minimum norm is used.
    """
    n, d, sheaf = connection.n_vertices, connection.dim, connection.sheaf
    roots = first_vertices(connection.joined)
    poses = roots[roots < n]
    x = np.zeros((sheaf.dim_c0, d))
    x[sheaf.vertex_offsets[poses][:, None] + np.arange(d), np.arange(d)] = 1
    if len(poses) == len(np.unique(connection.component)):
        x = least_energy(sheaf, np.zeros((sheaf.dim_c1, d)), roots, x)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SingularProblemWarning)
            x = harmonic_extension(sheaf, roots, values_at(sheaf, roots, x))
    stalk = int(sheaf.vertex_dims[0])
    frames = x[: n * stalk].reshape(n, stalk, d)[:, :d]
    return nearest_rotations(frames, connection, connection.joined[:n])


def with_positions(connection: Connection, rotations: np.ndarray) -> Poses:
    """Return poses with given rotations and least-squares positions, which are 0 at the roots.

    They minimize the sum of tau norm(t_j - t_i - R_i z)^2, a least-squares problem on the weighted
    graph for each of the d coordinates.
    """
    if connection.displacements is None:
        return Poses(rotations, None)
    ends, points, tau, n = connection.displacements
    data = -np.sqrt(tau)[:, None] * np.einsum("eij,ej->ei", rotations[ends[:, 0]], points)
    sheaf = CellularSheaf.constant(ends, weight=tau, n_vertices=n)
    origin = np.zeros((n, connection.dim))
    return Poses(rotations, least_energy(sheaf, data, first_vertices(connection.joined), origin))


def least_energy(
    sheaf: CellularSheaf, b: np.ndarray, roots: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Return x (dim_c0, h) that minimizes norm(delta x - b), with given values at the roots.

    Normal equations are factored or, if that is too expensive, solved by :func:`least_squares`.
    """
    free = np.ones(len(x), bool)
    free[range_of_blocks(sheaf.vertex_offsets, roots)] = False
    if not free.any():
        return x
    L = laplacian(sheaf)[free][:, free]
    order = elimination_order(L, OPERATIONS)
    if order.operations > OPERATIONS:
        return least_squares(sheaf, b, vertices=roots, values=values_at(sheaf, roots, x)).x
    right = coboundary(sheaf).conj().T @ (b - apply_coboundary(sheaf, x))
    x = x.astype(right.dtype)
    x[free] = Factors(L, 0.0, order).solve(right[free])
    return x


def values_at(sheaf: CellularSheaf, vertices: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    """Return the values of x (dim_c0, h) at the given vertices."""
    starts = sheaf.vertex_offsets
    return [x[starts[v] : starts[v + 1]] for v in vertices]


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
    at_root = rotations[first_vertices(component)].conj().swapaxes(1, 2)
    return at_root[component] @ rotations
