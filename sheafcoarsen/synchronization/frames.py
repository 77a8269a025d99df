"""One frame per vertex that the edges agree on: by the lowest modes, or from one that is fixed."""

import warnings

import numpy as np

from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve import eigenmodes, least_squares
from sheafcoarsen.synchronization.connection import Connection


def spectral_frames(connection: Connection, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return frames (n, d, d) by the d lowest modes of every component, and d + 1 eigenvalues.

    They are those of the component with the smallest gap behind the d-th; inf stands for the gap of
    a vertex without edges. Two vertices with one edge between them need no eigensolver.
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
    pairs = pairs[sizes[connection.component[connection.edges[pairs, 0]]] == 2]
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
    E = eigenmodes(component_sheaf(connection, vertices), d + 1, tol=1e-10, seed=seed)
    if E.values[d] - E.values[d - 1] <= 1e-6 * E.values[d]:
        warnings.warn(
            f"the frames are not determined: eigenvalues {d} and {d + 1} are {E.values[d - 1]:.6g} "
            f"and {E.values[d]:.6g}, so the measurements contradict each other as much as random "
            f"ones would",
            SingularProblemWarning,
            stacklevel=4,
        )
    return E.values, E.vectors[:, :d]


def component_sheaf(connection: Connection, vertices: np.ndarray) -> CellularSheaf:
    """Return the connection on the vertices of one component, ascending, as a sheaf."""
    number = np.full(connection.n_vertices, -1)
    number[vertices] = np.arange(len(vertices))
    mine = np.flatnonzero((number[connection.edges[:, 0]] >= 0) & (connection.weights > 0))
    return CellularSheaf.connection(
        number[connection.edges[mine]],
        connection.transports[mine],
        weight=connection.weights[mine],
        n_vertices=len(vertices),
    )


def anchored_frames(connection: Connection) -> np.ndarray:
    """Return frames of least energy with the identity at the first vertex of every component."""
    d = connection.dim
    sheaf = CellularSheaf.connection(
        connection.edges,
        connection.transports,
        weight=connection.weights,
        n_vertices=connection.n_vertices,
    )
    nothing = np.zeros((sheaf.dim_c1, d), sheaf.dtype)
    values = np.broadcast_to(np.eye(d), (len(connection.roots), d, d))
    found = least_squares(sheaf, nothing, vertices=connection.roots, values=values)
    return found.x.reshape(-1, d, d)


def nearest_rotations(frames: np.ndarray, connection: Connection) -> np.ndarray:
    """Return the nearest rotations to the transposed frames, identity at every root.

    Where no transport of a component reflects, its frames are turned so that most of them do not
    either, and rounded to SO(d); elsewhere to O(d) or U(d).
    """
    component = connection.component
    signs = np.sign(np.linalg.det(frames).real)
    mirrored = np.bincount(component, signs) < 0
    columns = np.where((mirrored & connection.turns_only)[component], -1.0, 1.0)
    frames = frames.copy()
    frames[:, :, -1] *= columns[:, None]
    left, _, right = np.linalg.svd(frames)
    flip = (np.linalg.det(left) * np.linalg.det(right)).real < 0
    left[flip & connection.turns_only[component], :, -1] *= -1
    rotations = (left @ right).conj().swapaxes(1, 2)
    at_root = rotations[connection.roots].conj().swapaxes(1, 2)
    return at_root[component] @ rotations
