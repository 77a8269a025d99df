"""Frames of least energy: the lowest modes, or with the identity at a fixed vertex."""

import warnings

import numpy as np

from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.solve import eigenmodes
from sheafcoarsen.synchronization.connection import Connection, determinants, sheaf_of
from sheafcoarsen.synchronization.lowest_frames import least_energy, lowest_frames

ROUNDS = 8
"""Largest number of Newton steps to the polar factor; frames near a rotation take 3 or 4."""

STILL = 1e-9
"""Step length at which Newton's iteration has converged: the next step is below rounding."""


def spectral_frames(connection: Connection, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return frames (n, d, d) by the d lowest modes of every component, and d + 1 eigenvalues.

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
    part = component_of(connection, vertices)
    found = lowest_frames(part, seed)
    if found is None:
        E = eigenmodes(sheaf_of(part), d + 1, tol=1e-10, seed=seed)
        found = E.values, E.vectors[:, :d]
    values, vectors = found
    if values[d] - values[d - 1] <= 1e-6 * values[d]:
        warnings.warn(
            f"the frames are not determined: eigenvalues {d} and {d + 1} are {values[d - 1]:.6g} "
            f"and {values[d]:.6g}, so the measurements contradict each other as much as random "
            f"ones would",
            SingularProblemWarning,
            stacklevel=4,
        )
    return values, vectors


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
    values = np.broadcast_to(np.eye(d), (len(connection.roots), d, d))
    sheaf = sheaf_of(connection)
    nothing = np.zeros((sheaf.dim_c1, d), sheaf.dtype)
    return least_energy(sheaf, nothing, connection.roots, values).reshape(-1, d, d)


def nearest_rotations(frames: np.ndarray, connection: Connection) -> np.ndarray:
    """Return the nearest rotations to the transposed frames, identity at every root.

    If no transport of a component reflects, its frames are reflected if most have negative
    determinant, then rounded to SO(d); otherwise to O(d) or U(d).
    """
    component = connection.component
    signs = np.sign(determinants(frames).real)
    mirrored = np.bincount(component, signs) < 0
    columns = np.where(mirrored[component], -1.0, 1.0)
    frames = frames.copy()
    frames[:, :, -1] *= columns[:, None]
    turns_only = connection.turns_only[component]
    rotations = polar_factors(frames)
    reflects = turns_only & ~(signs * columns > 0)
    rough = np.flatnonzero(reflects | ~np.isfinite(rotations).all(axis=(1, 2)))
    left, _, right = np.linalg.svd(frames[rough])
    flip = determinants(left @ right).real < 0
    left[flip & turns_only[rough], :, -1] *= -1
    rotations[rough] = left @ right
    rotations = rotations.conj().swapaxes(1, 2)
    at_root = rotations[connection.roots].conj().swapaxes(1, 2)
    return at_root[component] @ rotations


def polar_factors(matrices: np.ndarray) -> np.ndarray:
    """Return the orthogonal matrices nearest to real 2 x 2 and 3 x 3 ones, without an SVD.

    By a formula in the plane, by Newton's iteration in space. NaN if that does not converge, and
    for other matrices.
    """
    factors = np.full_like(matrices, np.nan)
    if matrices.dtype != np.float64 or matrices.shape[1] not in (2, 3):
        return factors
    if matrices.shape[1] == 2:
        (a, b), (p, q) = matrices.transpose(1, 2, 0)
        sign = np.where(a * q - b * p < 0, -1.0, 1.0)
        cosine, sine = a + sign * q, p - sign * b
        length = np.hypot(cosine, sine)
        with np.errstate(all="ignore"):
            cosine, sine = cosine / length, sine / length
        factors[:] = np.stack([cosine, -sign * sine, sine, sign * cosine], 1).reshape(-1, 2, 2)
        return factors
    x = np.ascontiguousarray(matrices.transpose(1, 2, 0))
    after, before = [1, 2, 0], [2, 0, 1]
    with np.errstate(all="ignore"):
        x /= np.sqrt((x * x).sum(axis=(0, 1)) / 3)
        for _ in range(ROUNDS):
            down, up = x[after], x[before]
            inverse = down[:, after] * up[:, before] - down[:, before] * up[:, after]
            inverse /= (x[0] * inverse[0]).sum(axis=0)  # of the transpose
            step = (inverse - x) / 2
            x += step
            moved = np.abs(step).max(axis=(0, 1))
            if moved.max(initial=0) < STILL:
                break
    x[:, :, ~(moved < STILL)] = np.nan
    factors[:] = x.transpose(2, 0, 1)
    return factors
