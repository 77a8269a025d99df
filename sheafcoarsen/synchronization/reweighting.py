"""Robust fits of poses: measurements that contradict the others are refitted with less weight."""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import chdtri

from sheafcoarsen.sheaf import component_labels
from sheafcoarsen.synchronization.connection import Connection, with_components
from sheafcoarsen.synchronization.frames import (
    anchored_frames,
    joint_rotations,
    nearest_rotations,
    positions_for,
)
from sheafcoarsen.synchronization.refinement import Refined, refined_poses
from sheafcoarsen.synchronization.residuals import costs_of

ROUNDS = 10
"""Number of reweighted fits; on planted outliers 5 rank nearly as well, and 20 no better.
"""

SMALLEST = 1e-3
"""Residual relative to the largest below which the weight of an edge no longer grows."""

EXCEEDED = 1e-3
"""Probability that a measurement with Gaussian errors is classified as an outlier.
"""

GROWTH = 2.0
"""Factor of the convexity parameter between fits; 1.4, as in gtsam, is not better."""

LEAST_CONVEX = 1e-3
"""Initial convexity parameter from refined poses: residuals up to 30 times the truncation have
positive weights. Larger values lose correct loops of small graphs.
"""

REWEIGHTED = 10
"""Largest number of refinements with new weights; the tested pose graphs need three."""

BRIDGE = 1e-9
"""Weight of edges that are needed to connect the graph; smaller weights are set to 0."""


def squared_residuals(
    connection: Connection, rotations: np.ndarray, positions: np.ndarray | None
) -> np.ndarray:
    """Return squared residuals (m,) in units of variance: chi squared for Gaussian errors."""
    turns, moves = _squares(connection, rotations, positions)
    return turns + moves[: len(turns)]


def _squares(
    connection: Connection, rotations: np.ndarray, positions: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return squared residuals of rotations (m,) and of displacements (m + s,), sightings last.

    kappa norm(R_j - R_i R_ij)_F^2 is about twice the squared angle over its variance in the plane,
    with kappa = 1 / variance, and once in space, with kappa half of that.
    """
    turns, moves = costs_of(connection, rotations, positions)
    return turns * (0.5 if connection.dim == 2 else 1.0), moves


def least_residuals(connection: Connection) -> np.ndarray:
    """Return squared residuals (m,) at poses with nearly the least sum of residuals.

    Least squares distributes the error of an outlier over all edges of its cycles. Here poses are
    refitted with edges weighted by the inverse of the last residual. Rotations are also weighted by
    the residuals of their translations, since outliers usually have errors in both.
    """
    poses = fit(connection)
    for _ in range(ROUNDS):
        turns, moves = _squares(connection, *poses)
        weights, measured = _inverse_roots(turns), connection.displacements
        if measured is not None:
            by_move = _inverse_roots(moves)
            weights = weights * by_move[: len(turns)]
            measured = measured._replace(tau=measured.tau * by_move)
        poses = fit(
            connection._replace(weights=connection.weights * weights, displacements=measured)
        )
    return squared_residuals(connection, *poses)


def _inverse_roots(squares: np.ndarray) -> np.ndarray:
    """Return the inverse residuals, at most 1 over ``SMALLEST``, relative to the largest."""
    largest = squares.max(initial=0.0)
    return 1 / np.sqrt(squares / (largest or 1.0) + SMALLEST**2)


def fit(connection: Connection) -> tuple[np.ndarray, np.ndarray | None]:
    """Return rotations and positions of least energy, extended from fixed poses."""
    measured = connection.displacements
    if measured is not None and len(measured.ends) > len(connection.edges):
        rotations = joint_rotations(connection)
    else:
        rotations = nearest_rotations(anchored_frames(connection), connection)
    return rotations, positions_for(connection, rotations)


def weighted(connection: Connection, weights: np.ndarray) -> Connection:
    """Return the measurements with weights (m,), without edges of weight 0.

    If the graph would become disconnected, edges that connect its parts have the weight BRIDGE.
    """
    edges, m = connection.edges, len(connection.edges)
    weights = np.where(weights < BRIDGE, 0.0, weights)
    joins, n, measured = edges[weights > 0], connection.n_vertices, connection.displacements
    if measured is not None:
        joins, n = np.concatenate([joins, measured.ends[m:]]), measured.n_vertices
    parts = component_labels(n, joins)
    ends = np.sort(parts[edges], axis=1)
    cut = np.flatnonzero(ends[:, 0] < ends[:, 1])
    pairs, first = np.unique(ends[cut], axis=0, return_index=True)
    rows, columns = pairs.T.astype(np.int32)  # scipy before 1.15 needs int32
    links = scipy.sparse.coo_array((cut[first] + 1.0, (rows, columns)), shape=(n, n))
    weights[minimum_spanning_tree(links.tocsr()).data.astype(np.int64) - 1] = BRIDGE
    kept = np.flatnonzero(weights > 0)
    if measured is not None:
        rows = np.concatenate([kept, np.arange(m, len(measured.ends))])
        scales = np.append(weights[kept], np.ones(len(rows) - len(kept)))
        measured = measured._replace(
            ends=measured.ends[rows], points=measured.points[rows], tau=measured.tau[rows] * scales
        )
    return with_components(
        connection.n_vertices,
        edges[kept],
        connection.transports[kept],
        connection.weights[kept] * weights[kept],
        measured,
    )


def truncation(connection: Connection) -> float:
    """Return the squared residual above which a measurement counts as an outlier."""
    d = connection.dim
    freedom = d**2 if connection.transports.dtype.kind == "c" else d * (d - 1) // 2
    moves = 0 if connection.displacements is None else d
    return float(chdtri(max(freedom, 1) + moves, EXCEEDED))


def truncated_fit(
    connection: Connection, trusted: np.ndarray, refine: bool
) -> tuple[np.ndarray, Refined]:
    """Return weights (m,) in [0, 1] by truncated least squares, 1 if trusted (m,), and poses.

    By graduated non-convexity, first with extensions of least energy, which are least sensitive to
    wrong loops, then with refined poses, which recover correct loops.
    """
    weights, poses = _graduated(connection, trusted, None)
    if not refine:
        return weights, Refined(*fit(weighted(connection, weights)), [], True)
    first = _refitted(connection, trusted, poses)
    second = _refitted(connection, trusted, _graduated(connection, trusted, first[1])[1])
    return min(first, second, key=lambda one: _truncated_cost(connection, trusted, one[1]))


def _graduated(
    connection: Connection, trusted: np.ndarray, poses: Refined | None
) -> tuple[np.ndarray, Refined]:
    """Return weights and poses by graduated non-convexity (Yang et al., RA-L 2020).

    Surrogates of min(r^2, c^2) are fitted, the first one convex, by extensions of least energy;
    from given poses, from LEAST_CONVEX on, by Gauss-Newton steps.
    """
    c2, extends = truncation(connection), poses is None
    poses = poses or Refined(*fit(connection), [], True)
    weights = np.ones(len(trusted))
    squares = squared_residuals(connection, *poses[:2])
    largest = squares[~trusted].max(initial=0.0)
    mu = (c2 / (2 * largest - c2) if extends else LEAST_CONVEX) if largest > c2 else np.inf
    while mu < np.inf:
        weights = np.where(trusted, 1.0, surrogate_weights(squares, c2, mu))
        if ((weights == 0) | (weights == 1)).all():
            break
        part = weighted(connection, weights)
        if extends:
            poses = Refined(*fit(part), [], True)
        else:
            poses = refined_poses(part, *poses[:2], steps=1)
        squares = squared_residuals(connection, *poses[:2])
        mu *= GROWTH
    return weights, poses


def _refitted(
    connection: Connection, trusted: np.ndarray, poses: Refined
) -> tuple[np.ndarray, Refined]:
    """Return refined poses and weights, 0 for measurements with large residuals at these poses."""
    c2 = truncation(connection)
    weights = np.zeros(0)
    for _ in range(REWEIGHTED):
        inliers = trusted | (squared_residuals(connection, *poses[:2]) <= c2)
        if np.array_equal(inliers, weights):
            break
        weights = inliers.astype(float)
        poses = refined_poses(weighted(connection, weights), *poses[:2])
    return weights, poses


def _truncated_cost(connection: Connection, trusted: np.ndarray, poses: Refined) -> float:
    """Return the sum of squared residuals, of measurements that are not trusted at most c^2."""
    turns, moves = _squares(connection, *poses[:2])
    squares, seen = turns + moves[: len(turns)], moves[len(turns) :]
    return float(
        np.where(trusted, squares, np.minimum(squares, truncation(connection))).sum() + seen.sum()
    )


def surrogate_weights(squares: np.ndarray, c2: float, mu: float) -> np.ndarray:
    """Return the weights of the surrogate with parameter mu; as mu grows, those of r^2 <= c^2."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.sqrt(c2 * mu * (mu + 1) / squares) - mu
        low, high = c2 * mu / (mu + 1), c2 * (mu + 1) / mu
    return np.where(squares <= low, 1.0, np.where(squares >= high, 0.0, weights))
