"""Robust fits of poses: measurements that contradict the others get lower weights."""

import dataclasses

import numpy as np
from scipy.special import chdtri

from sheafcoarsen.sheaf import component_labels, spanning_forest
from sheafcoarsen.synchronization.connection import Connection, Poses, costs_of
from sheafcoarsen.synchronization.frames import extended_rotations, with_positions
from sheafcoarsen.synchronization.refinement import refined_poses

ROUNDS = 10
"""Number of reweighted fits. Planted outliers rank nearly as high after 5, no higher after 20."""

SMALLEST = 1e-3
"""Residual, relative to the largest one, below which the weight of an edge stops growing."""

EXCEEDED = 1e-3
"""Probability that a measurement with Gaussian errors is classified as an outlier."""

DECREASE = 2.0
"""Factor by which the convexity decreases from fit to fit. The factor 1.4 of gtsam is no better."""

CONVEXITY = 1e3
"""Initial convexity of fits that start from refined poses.

Residuals up to 30 times the truncation threshold then have positive weights. Smaller values discard
correct loop closures of small graphs.
"""

REWEIGHTED = 10
"""Maximum number of refinements with new weights; the tested pose graphs need three."""

BRIDGE = 1e-9
"""Weight of edges that are needed to connect the graph; smaller weights are set to 0."""


def squared_residuals(connection: Connection, poses: Poses) -> np.ndarray:
    """Return squared residuals (m,) in units of variance; chi-squared if errors are Gaussian."""
    turns, moves = _squares(connection, poses)
    return turns + moves[: len(turns)]


def _squares(connection: Connection, poses: Poses) -> tuple[np.ndarray, np.ndarray]:
    """Return squared residuals of rotations (m,) and of displacements (m + s,), sightings last.

    kappa norm(R_j - R_i R_ij)_F^2 is about twice the squared angle over its variance in the plane,
    with kappa = 1 / variance, and once in space, with kappa half of that.
    """
    turns, moves = costs_of(connection, poses)
    return turns * (0.5 if connection.dim == 2 else 1.0), moves


def least_residuals(connection: Connection) -> np.ndarray:
    """Return squared residuals (m,) at poses that nearly minimize the sum of residuals.

    Least squares distributes the error of an outlier over all edges of its cycles. Here poses are
    refitted with edges weighted by the inverse of the last residual. Rotations are also weighted by
    the residuals of their translations, since outliers usually have errors in both.
    """
    poses = fit(connection)
    for _ in range(ROUNDS):
        turns, moves = _squares(connection, poses)
        by_move = _inverse_roots(moves)
        weights = connection.weights * _inverse_roots(turns) * by_move[: len(turns)]
        poses = fit(dataclasses.replace(connection, weights=weights, tau=connection.tau * by_move))
    return squared_residuals(connection, poses)


def _inverse_roots(squares: np.ndarray) -> np.ndarray:
    """Return 1 / (residual / largest residual) for all residuals, at most 1 / ``SMALLEST``."""
    largest = squares.max(initial=0.0)
    return 1 / np.sqrt(squares / (largest or 1.0) + SMALLEST**2)


def fit(connection: Connection) -> Poses:
    """Return poses of minimum energy with fixed roots; without sightings, fit rotations first."""
    has_sightings = len(connection.ends) > len(connection.edges)
    part = connection if has_sightings else connection.without_positions
    return with_positions(connection, extended_rotations(part))


def weighted(connection: Connection, weights: np.ndarray) -> Connection:
    """Multiply the weights of the measurements by factors (m,), and drop those of weight 0.

    If the graph would become disconnected, edges that connect its parts have the weight BRIDGE.
    """
    ends, m = connection.ends, len(connection.edges)
    factors = np.append(np.where(weights < BRIDGE, 0.0, weights), np.ones(len(ends) - m))
    n = connection.n_vertices + connection.n_landmarks
    parts = component_labels(n, ends[factors > 0])[ends]
    cut = np.flatnonzero(parts[:, 0] != parts[:, 1])
    roots = np.unique(component_labels(n, parts[cut]), return_index=True)[1]
    links = spanning_forest(n, parts[cut], roots)[2]
    factors[cut[links[links >= 0]]] = BRIDGE
    rows = np.flatnonzero(factors > 0)
    kept = rows[rows < m]
    return dataclasses.replace(
        connection,
        ends=ends[rows],
        transports=connection.transports[kept],
        weights=connection.weights[kept] * factors[kept],
        points=connection.points[rows],
        tau=connection.tau[rows] * factors[rows],
    )


def truncated_fit(
    connection: Connection, trusted: np.ndarray, refine: bool
) -> tuple[np.ndarray, Poses]:
    """Return weights (m,), 1 for trusted edges, and poses fitted by truncated least squares.

    Graduated non-convexity (Yang et al., RA-L 2020) is run first with extensions of minimum energy,
    which are least sensitive to wrong loops, then with refined poses, which recover correct loops.
    """
    d, complex_ = connection.dim, connection.transports.dtype.kind == "c"
    freedom = d**2 if complex_ else max(d * (d - 1) // 2, 1)
    c2 = float(chdtri(freedom + connection.points.shape[1], EXCEEDED))  # above: outliers

    def weights_at(poses: Poses, convexity: float = 0.0) -> np.ndarray:
        """Return weights of a surrogate of min(r^2, c^2), 1 or 0 if its convexity is 0."""
        squares = squared_residuals(connection, poses)
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = (np.sqrt(c2 * (1 + convexity) / squares) - 1) / convexity
        low, high = c2 / (1 + convexity), c2 * (1 + convexity)
        weights = np.where(squares <= low, 1.0, np.where(squares >= high, 0.0, weights))
        return np.where(trusted, 1.0, weights)

    def graduated(poses: Poses, extends: bool) -> tuple[np.ndarray, Poses]:
        """Fit surrogates of decreasing convexity, beginning with a convex one if ``extends``."""
        largest = squared_residuals(connection, poses)[~trusted].max(initial=0.0)
        convexity = 2 * largest / c2 - 1 if extends else CONVEXITY
        convexity *= largest > c2
        weights = weights_at(poses, convexity)
        while convexity > 0 and ((weights > 0) & (weights < 1)).any():
            part = weighted(connection, weights)
            poses = fit(part) if extends else refined_poses(part, poses, steps=1)
            convexity /= DECREASE
            weights = weights_at(poses, convexity)
        return weights, poses

    weights, _ = graduated(fit(connection), extends=True)
    poses = fit(weighted(connection, weights))  # poses of the last surrogate may be far off
    if not refine:
        return weights, poses
    weights, poses = graduated(refined_poses(weighted(connection, weights), poses), extends=False)
    for _ in range(REWEIGHTED):
        poses = refined_poses(weighted(connection, weights), poses)
        before, weights = weights, weights_at(poses)
        if np.array_equal(before, weights):
            break
    return before, poses
