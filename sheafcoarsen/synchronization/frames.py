"""Frames of least energy: the lowest modes, or extended from a fixed vertex; then positions."""

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
from sheafcoarsen.sheaf import CellularSheaf, component_labels
from sheafcoarsen.solve import eigenmodes, harmonic_extension, least_squares
from sheafcoarsen.synchronization.connection import Connection, determinants, sheaf_of
from sheafcoarsen.synchronization.joint_sheaf import joint_sheaf

ACCURATE = 1e-9
"""Tolerance of the modes; errors of frames are about this over the relative gap."""

OPERATIONS = 2e10
"""Number of operations of a factorization, about 10 s, above which an extension is iterated."""


def spectral_frames(connection: Connection, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return frames (n, d, d) by the d lowest modes of each component, and d + 1 eigenvalues.

    The eigenvalues are those of the component with the smallest gap after the d-th; the gap of a
    vertex without edges is inf. Two vertices with one edge between them need no eigensolver.
    """
    d = connection.dim
    frames = np.zeros((connection.n_vertices, d, d), connection.transports.dtype)
    frames[:] = np.eye(d)
    sizes = np.bincount(connection.component)
    joins = (connection.weights > 0) & (connection.edges[:, 0] != connection.edges[:, 1])
    edges = np.flatnonzero(joins)
    counts = np.bincount(connection.component[connection.edges[edges, 0]], minlength=len(sizes))
    lowest = np.append(np.zeros(d), np.inf)
    pairs = edges[(counts == 1)[connection.component[connection.edges[edges, 0]]]]
    loops = (connection.weights > 0) & (connection.edges[:, 0] == connection.edges[:, 1])
    simple = sizes == 2
    simple[connection.component[connection.edges[loops, 0]]] = False
    pairs = pairs[simple[connection.component[connection.edges[pairs, 0]]]]
    if pairs.size:
        heads = connection.edges[pairs, 1]
        frames[heads] = connection.transports[pairs].conj().swapaxes(1, 2)
        lowest[d] = 2 * float(connection.weights[pairs].min())
    others = np.setdiff1d(
        np.flatnonzero(sizes > 1), connection.component[connection.edges[pairs, 0]]
    )
    for c in others:
        vertices = np.flatnonzero(connection.component == c)
        values, vectors = _modes(connection, vertices, seed)
        if len(values) > d and values[d] - values[d - 1] < lowest[d] - lowest[d - 1]:
            lowest = values
        frames[vertices] = vectors.reshape(len(vertices), d, d)
    return frames, lowest


def _modes(
    connection: Connection, vertices: np.ndarray, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the d + 1 lowest eigenvalues of a component, and the first d eigenvectors."""
    d = connection.dim
    sheaf = sheaf_of(component_of(connection, vertices))
    E = eigenmodes(sheaf, d + 1, tol=ACCURATE, seed=seed)
    values, vectors = E.values, E.vectors
    if values[d] - values[d - 1] <= 1e-6 * values[d]:
        warnings.warn(
            f"the frames are not determined: eigenvalues {d} and {d + 1} are {values[d - 1]:.6g} "
            f"and {values[d]:.6g}, so the measurements contradict each other as much as random "
            f"ones would",
            SingularProblemWarning,
            stacklevel=5,
        )
    return values, vectors[:, :d]


def component_of(connection: Connection, vertices: np.ndarray) -> Connection:
    """Return the part of a connection on the vertices of one component, ascending."""
    if len(vertices) == connection.n_vertices and (connection.weights > 0).all():
        return connection
    number = np.full(connection.n_vertices, -1)
    number[vertices] = np.arange(len(vertices))
    mine = np.flatnonzero((number[connection.edges[:, 0]] >= 0) & (connection.weights > 0))
    c = connection.component[vertices[:1]]
    return Connection(
        len(vertices),
        number[connection.edges[mine]],
        connection.transports[mine],
        connection.weights[mine],
        np.zeros(len(vertices), int),
        np.zeros(1, int),
        connection.turns_only[c],
    )


def anchored_frames(connection: Connection) -> np.ndarray:
    """Return frames of least energy with the identity at the first vertex of every component."""
    d = connection.dim
    values = np.tile(np.eye(d), (len(connection.roots), 1))
    sheaf = sheaf_of(connection)
    nothing = np.zeros((sheaf.dim_c1, d), sheaf.dtype)
    return least_energy(sheaf, nothing, connection.roots, values).reshape(-1, d, d)


def joint_rotations(connection: Connection) -> np.ndarray:
    """Return rotations near the frames of least total cost with (I, 0) at the first pose.

    Every component has one such pose. If landmarks connect components of the connection, frames may
    be undetermined, and the solution of least norm is used.
    """
    n, d = connection.n_vertices, connection.dim
    displacements = connection.displacements
    assert displacements is not None
    sheaf = joint_sheaf(n, connection.transports, connection.weights, displacements)
    roots = displacements.roots
    poses = roots[roots < n]
    values = np.zeros((len(poses), d + 1, d))
    values[:, :d] = np.eye(d)
    values = np.concatenate([values.reshape(-1, d), np.zeros((len(roots) - len(poses), d))])
    if len(poses) == len(connection.roots):
        x = least_energy(sheaf, np.zeros((sheaf.dim_c1, d)), roots, values)
    else:
        ends = np.cumsum(sheaf.vertex_dims[roots])[:-1]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SingularProblemWarning)
            x = harmonic_extension(sheaf, roots, np.split(values, ends))
    frames = x[: n * (d + 1)].reshape(n, d + 1, d)[:, :d]
    joined = connection._replace(
        component=component_labels(displacements.n_vertices, displacements.ends)[:n],
        roots=poses,
        turns_only=np.ones(len(poses), bool),
    )
    return nearest_rotations(frames, joined)


def positions_for(connection: Connection, rotations: np.ndarray) -> np.ndarray | None:
    """Return the positions of poses, then landmarks, for given rotations; 0 at the roots.

    They minimize the sum of tau norm(t_j - t_i - R_i z)^2, a least-squares problem on the weighted
    graph for each of the d coordinates.
    """
    if connection.displacements is None:
        return None
    ends, points, tau, n = connection.displacements
    steps = np.einsum("eij,ej->ei", rotations[ends[:, 0]], points)
    sheaf = CellularSheaf.constant(ends, weight=tau, n_vertices=n)
    roots = connection.fixed
    data = -np.sqrt(tau)[:, None] * steps
    return least_energy(sheaf, data, roots, np.zeros((len(roots), connection.dim)))


def least_energy(
    sheaf: CellularSheaf, b: np.ndarray, roots: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return x (dim_c0, h) that minimizes norm(delta x - b), given at a root of each component.

    ``values`` are stacked over the stalks of the roots. Normal equations are factored in double
    precision or, if that is too expensive, solved by :func:`least_squares`.
    """
    dtype = np.result_type(sheaf.dtype, b)
    double = np.result_type(sheaf.dtype, np.float64)
    sheaf = sheaf.with_maps(
        sheaf.tail_data.astype(double, copy=False), sheaf.head_data.astype(double, copy=False)
    ).with_labels(None)  # roots are indices
    fixed = range_of_blocks(sheaf.vertex_offsets, roots)
    x = np.zeros((sheaf.dim_c0, b.shape[1]), np.result_type(sheaf.dtype, b, values))
    free = np.ones(len(x), bool)
    free[fixed] = False
    x[fixed] = values
    if not free.any():
        return x.astype(dtype)
    L = laplacian(sheaf)[free][:, free]
    order = elimination_order(L, OPERATIONS)
    if order.operations > OPERATIONS:
        ends = np.cumsum(sheaf.vertex_dims[roots])[:-1]
        x = least_squares(sheaf, b, vertices=roots, values=np.split(values, ends)).x
    else:
        right = coboundary(sheaf).conj().T @ (b - apply_coboundary(sheaf, x))
        x[free] = Factors(L, 0.0, order).solve(right[free])
    return x.astype(dtype)


def nearest_rotations(frames: np.ndarray, connection: Connection) -> np.ndarray:
    """Return the nearest rotations to the transposed frames, the identity at every root.

    If no transport of a component reflects, its frames are reflected if most have negative
    determinant, then rounded to SO(d); otherwise to O(d) or U(d).
    """
    component = connection.component
    signs = np.sign(determinants(frames).real)
    mirrored = np.bincount(component, signs) < 0
    columns = np.where(mirrored[component], -1.0, 1.0)
    frames = frames.copy()
    frames[:, :, -1] *= columns[:, None]
    left, _, right = np.linalg.svd(frames)
    flip = (determinants(left @ right).real < 0) & connection.turns_only[component]
    left[flip, :, -1] *= -1
    rotations = (left @ right).conj().swapaxes(1, 2)
    at_root = rotations[connection.roots].conj().swapaxes(1, 2)
    return at_root[component] @ rotations
