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
    placed,
)
from sheafcoarsen.synchronization.joint_sheaf import Places
from sheafcoarsen.synchronization.residuals import offsets_of, rotation_costs

ROUNDS = 10
"""Number of fits to the sum of residuals; on planted outliers 5 rank nearly as well, 20 no better.
"""

SMALLEST = 1e-3
"""Residual relative to the largest below which the weight of an edge no longer grows."""

EXCEEDED = 1e-3
"""Share of right measurements with a residual that counts as an outlier's, if errors are Gaussian.
"""

GROWTH = 1.4
"""Factor of the convexity parameter from fit to fit, that of Yang et al. and of gtsam."""

MOST_FITS = 100
"""Largest number of such fits; residuals over ten decades take 70."""

BRIDGE = 1e-9
"""Least weight of an edge without which the graph would fall apart."""


def truncated_cost(
    connection: Connection,
    places: Places | None,
    trusted: np.ndarray,
    poses: tuple[np.ndarray, np.ndarray | None],
) -> float:
    """Return the sum of squared residuals, of measurements that are not trusted at most c^2."""
    turns, moves = _squares(connection, places, *poses)
    squares = squared_residuals(connection, places, *poses)
    truncated = np.where(trusted, squares, np.minimum(squares, truncation(connection, places)))
    return float(truncated.sum() + (0 if moves is None else moves[len(turns) :].sum()))


def squared_residuals(
    connection: Connection,
    places: Places | None,
    rotations: np.ndarray,
    spots: np.ndarray | None,
) -> np.ndarray:
    """Return those of measurements (m,), in units of variance: chi squared for Gaussian errors."""
    turns, moves = _squares(connection, places, rotations, spots)
    return turns if moves is None else turns + moves[: len(turns)]


def _squares(
    connection: Connection,
    places: Places | None,
    rotations: np.ndarray,
    spots: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return squared residuals of rotations (m,) and of places (m + s,), sightings last.

    kappa norm(R_j - R_i R_ij)_F^2 is twice the square of the angle over its variance in the plane,
    where kappa is 1 over the variance, and this square in space, where kappa is half of that.
    """
    turns = rotation_costs(connection, rotations) * (0.5 if connection.dim == 2 else 1.0)
    if places is None or spots is None:
        return turns, None
    offsets = offsets_of(places.ends, places.points, rotations, spots)
    return turns, places.tau * np.square(offsets).sum(axis=1)


def least_residuals(connection: Connection, places: Places | None) -> np.ndarray:
    """Return squared residuals (m,) where the sum of residuals, not of squares, is about least.

    Least squares spreads the error of an outlier over all edges of its cycles. Here poses are
    refitted with every edge weighted by the inverse of its last residual. A rotation is also
    weighted by the residual of its translation: outliers usually have both wrong.
    """
    poses = fit(connection, places)
    for _ in range(ROUNDS):
        turns, moves = _squares(connection, places, *poses)
        weights, trusted = _inverse_roots(turns), places
        if places is not None and moves is not None:
            by_place = _inverse_roots(moves)
            weights = weights * by_place[: len(turns)]
            trusted = places._replace(tau=places.tau * by_place)
        poses = fit(connection._replace(weights=connection.weights * weights), trusted)
    return squared_residuals(connection, places, *poses)


def _inverse_roots(squares: np.ndarray) -> np.ndarray:
    """Return the inverse residuals, at most 1 over ``SMALLEST``, relative to the largest."""
    largest = squares.max(initial=0.0)
    return 1 / np.sqrt(squares / (largest or 1.0) + SMALLEST**2)


def fit(connection: Connection, places: Places | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return rotations and places of least energy, extended from fixed poses."""
    if places is not None and len(places.ends) > len(connection.edges):
        rotations = joint_rotations(connection, places)
    else:
        rotations = nearest_rotations(anchored_frames(connection), connection)
    return rotations, None if places is None else placed(places, rotations)


def weighted(
    connection: Connection, places: Places | None, weights: np.ndarray
) -> tuple[Connection, Places | None]:
    """Return the measurements with weights (m,), without edges of weight 0.

    Where the graph would fall apart, one such edge for each missing link stays with a tiny weight.
    """
    edges, m = connection.edges, len(connection.edges)
    weights = np.where(weights < BRIDGE, 0.0, weights)
    joins = edges[weights > 0]
    n = connection.n_vertices
    if places is not None:
        joins, n = np.concatenate([joins, places.ends[m:]]), places.n_vertices
    parts = component_labels(n, joins)
    ends = np.sort(parts[edges], axis=1)
    cut = np.flatnonzero(ends[:, 0] < ends[:, 1])
    pairs, first = np.unique(ends[cut], axis=0, return_index=True)
    rows, columns = pairs.T.astype(np.int32)  # scipy before 1.15 takes no others
    links = scipy.sparse.coo_array((cut[first] + 1.0, (rows, columns)), shape=(n, n))
    weights[minimum_spanning_tree(links.tocsr()).data.astype(np.int64) - 1] = BRIDGE
    kept = np.flatnonzero(weights > 0)
    part = with_components(
        connection.n_vertices,
        edges[kept],
        connection.transports[kept],
        connection.weights[kept] * weights[kept],
    )
    if places is None:
        return part, None
    rows = np.concatenate([kept, np.arange(m, len(places.ends))])
    scales = np.concatenate([weights[kept], np.ones(len(rows) - len(kept))])
    return part, places._replace(
        ends=places.ends[rows], points=places.points[rows], tau=places.tau[rows] * scales
    )


def truncation(connection: Connection, places: Places | None) -> float:
    """Return the squared residual above which a measurement counts as an outlier."""
    d = connection.dim
    freedom = d**2 if connection.transports.dtype.kind == "c" else d * (d - 1) // 2
    return float(chdtri(max(freedom, 1) + (0 if places is None else d), EXCEEDED))


def truncated_weights(
    connection: Connection, places: Places | None, trusted: np.ndarray
) -> np.ndarray:
    """Return weights (m,) in [0, 1] of a fit of least truncated squares, 1 where trusted (m,).

    By graduated non-convexity (Yang et al., RA-L 2020): surrogates of min(r^2, c^2), at first
    convex, each fitted by an extension of least energy with the weights of the last residuals.
    """
    c2 = truncation(connection, places)
    weights = np.ones(len(trusted))
    mu = 0.0
    for _ in range(MOST_FITS):
        poses = fit(*weighted(connection, places, weights))
        squares = squared_residuals(connection, places, *poses)
        if mu == 0:
            largest = squares[~trusted].max(initial=0.0)
            if largest <= c2:
                return np.ones(len(trusted))
            mu = c2 / (2 * largest - c2)
        weights = surrogate_weights(squares, c2, mu)
        weights[trusted] = 1.0
        if ((weights == 0) | (weights == 1)).all():
            break
        mu *= GROWTH
    return weights


def surrogate_weights(squares: np.ndarray, c2: float, mu: float) -> np.ndarray:
    """Return the weights of the surrogate with the parameter mu; as it grows, r^2 <= c^2."""
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.sqrt(c2 * mu * (mu + 1) / squares) - mu
        low, high = c2 * mu / (mu + 1), c2 * (mu + 1) / mu
    return np.where(squares <= low, 1.0, np.where(squares >= high, 0.0, weights))
