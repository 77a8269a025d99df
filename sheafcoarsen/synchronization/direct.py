"""Laplacians of connections factored, and problems with fixed roots solved by that."""

import numpy as np
import scipy.sparse

from sheafcoarsen.operators import BlockCholesky

OPERATIONS = 2e10
"""Operations of a factorization beyond which iterating is left the choice."""


def factored_laplacian(
    n_vertices: int,
    edges: np.ndarray,
    transports: np.ndarray,
    weights: np.ndarray,
    shift: float = 0.0,
    extra: np.ndarray | None = None,
) -> BlockCholesky | None:
    """Return the factors of a real connection's Laplacian, None where that is not the way.

    ``shift``, times the largest degree (loops count twice), and ``extra`` (n,) are added to the
    diagonal.
    """
    d = transports.shape[1]
    i, j = edges.T
    loops, joins = i == j, i != j
    if transports.dtype != np.float64:
        return None
    factors = BlockCholesky(n_vertices, edges[joins], d)
    if factors.operations > OPERATIONS:
        return None
    degrees = _degrees(n_vertices, edges, weights)
    degrees += shift * degrees.max(initial=0)
    if extra is not None:
        degrees += extra
    diagonal = degrees[:, None, None] * np.eye(d)
    turns = transports[loops]
    np.subtract.at(diagonal, i[loops], weights[loops, None, None] * (turns + turns.swapaxes(1, 2)))
    try:
        factors.factor(diagonal, -weights[joins, None, None] * transports[joins])
    except np.linalg.LinAlgError:
        return None
    return factors


def _degrees(n_vertices: int, edges: np.ndarray, weights: np.ndarray) -> np.ndarray:
    i, j = edges.T
    degrees = np.zeros(n_vertices)
    degrees += np.bincount(i, weights, n_vertices) + np.bincount(j, weights, n_vertices)
    return degrees


def largest_degree(n_vertices: int, edges: np.ndarray, weights: np.ndarray) -> float:
    """Return what `factored_laplacian` multiplies its shift with."""
    return float(_degrees(n_vertices, edges, weights).max(initial=0))


def least_energy(
    n_vertices: int,
    edges: np.ndarray,
    transports: np.ndarray,
    weights: np.ndarray,
    roots: np.ndarray,
    at_roots: np.ndarray,
    data: np.ndarray | None = None,
) -> np.ndarray | None:
    """Return x (n, d, k) that minimizes the sum of w norm(x_i - U x_j - f)^2, given at the roots.

    Every component must have a root. ``data`` f has shape (m, d, k); None is 0. Returns None where
    the Laplacian is not factored.
    """
    if transports.dtype != np.float64:
        return None
    d, k = at_roots.shape[1:]
    i, j = edges.T
    number = np.full(n_vertices, 0)
    number[roots] = -1
    free = np.flatnonzero(number == 0)
    number[free] = np.arange(len(free))
    x = np.zeros((n_vertices, d, k))
    x[roots] = at_roots
    if not free.size:
        return x
    touched = np.flatnonzero((number[i] < 0) | (number[j] < 0))
    f = np.zeros((len(edges), d, k)) if data is None else np.array(data)
    f[touched] -= x[i[touched]] - transports[touched] @ x[j[touched]]
    inner = (number[i] >= 0) & (number[j] >= 0)
    held = np.flatnonzero(~inner & (number[i] != number[j]))  # one end fixed
    extra = np.bincount(np.maximum(number[i[held]], number[j[held]]), weights[held], len(free))
    ends = np.stack([number[i[inner]], number[j[inner]]], axis=1)
    factors = factored_laplacian(len(free), ends, transports[inner], weights[inner], extra=extra)
    if factors is None:
        return None
    f *= weights[:, None, None]
    m = np.arange(len(edges))
    ones = np.ones(len(edges))
    tails = scipy.sparse.csr_array((ones, (i, m)), shape=(n_vertices, len(edges)))
    heads = scipy.sparse.csr_array((ones, (j, m)), shape=(n_vertices, len(edges)))
    pull = tails @ f.reshape(len(edges), -1)
    pull -= heads @ (transports.swapaxes(1, 2) @ f).reshape(len(edges), -1)
    x[free] = factors.solve(pull[free].reshape(-1, k)).reshape(-1, d, k)
    return x
