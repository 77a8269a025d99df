"""Fits of poses: frames from modes or extensions, positions, and robust fits by reweighting."""

import dataclasses

import numpy as np
from scipy.special import chdtri

from sheafcoarsen._support import ragged, warned
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.operators import Factors, coboundary, elimination_order, laplacian
from sheafcoarsen.sheaf import CellularSheaf, component_labels, spanning_forest
from sheafcoarsen.solve import eigenmodes, least_squares
from sheafcoarsen.synchronization.connection import Connection, Poses, costs_of
from sheafcoarsen.synchronization.refinement import refined_poses


def spectral_frames(connection: Connection, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return frames (n, d, d) from the d lowest modes of each component, and d + 1 eigenvalues.

    The eigenvalues are those of the component with the smallest gap, which is inf without edges.
    """
    d, component = connection.dim, connection.component
    frames = np.tile(np.eye(d, dtype=connection.transports.dtype), (connection.n_vertices, 1, 1))
    lowest, sheaf = np.append(np.zeros(d), np.inf), connection.without_positions.sheaf
    for c in np.flatnonzero(np.bincount(component) > 1):
        E = eigenmodes(sheaf.subsheaf(component == c), d + 1, tol=1e-9, seed=seed)
        low, high = E.values[d - 1 :]
        if high - low < lowest[d] - lowest[d - 1]:
            lowest = E.values
        frames[component == c] = E.vectors[:, :d].reshape(-1, d, d)
        if high - low <= 1e-6 * high:
            warned.warn(
                f"the frames are not determined, because eigenvalues {d} and {d + 1} nearly "
                f"coincide: {low:.6g} and {high:.6g}. The measurements contradict each other as "
                f"much as random ones would, or weights differ by too many orders of magnitude",
                SingularProblemWarning,
            )
    return frames, ragged.read_only(lowest)


def extended_rotations(connection: Connection) -> np.ndarray:
    """Return rotations nearest to frames of minimum cost, with (I, 0) at every first pose.

    If landmarks connect components, frames may be undetermined; then they have minimum norm.
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
    """Return poses with given rotations and least-squares positions, which are 0 at the roots."""
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

    On entry ``x`` is 0 elsewhere. If it is not ``determined``, normal equations are not factored.
    """
    at_roots = ragged.range_of_blocks(sheaf.vertex_offsets, roots)
    free = np.ones(len(x), bool)
    free[at_roots] = False
    if not free.any():
        return x
    L = laplacian(sheaf)[free][:, free]
    # Number of operations (about 10 s) above which an iterative solver replaces a factorization
    operations = 2e10
    order = elimination_order(L, operations)
    if order.operations > operations or not determined:
        values = np.split(x[at_roots], np.cumsum(sheaf.vertex_dims[roots])[:-1])
        return least_squares(sheaf, b, vertices=roots, values=values).x
    delta = coboundary(sheaf)
    right = delta.conj().T @ (b - delta @ x)
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
    mirrored = np.bincount(component, np.sign(np.linalg.slogdet(frames)[0].real)) < 0
    frames = frames.copy()
    frames[mirrored[component], :, -1] *= -1
    left, _, right = np.linalg.svd(frames)
    flip = (np.linalg.det(left @ right).real < 0) & connection.proper
    left[flip, :, -1] *= -1
    rotations = (left @ right).conj().swapaxes(1, 2)
    at_root = rotations[np.unique(component, return_index=True)[1]].conj().swapaxes(1, 2)
    return at_root[component] @ rotations


def squared_residuals(connection: Connection, poses: Poses) -> np.ndarray:
    """Return squared residuals (m,) in units of variance; chi-squared if errors are Gaussian."""
    turns, moves = costs_of(connection, poses)
    # in the plane kappa is 1 / variance, and norm(R_j - R_i R_ij)_F^2 about twice the squared angle
    return turns * (0.5 if connection.dim == 2 else 1.0) + moves[: len(turns)]


def least_residual_poses(connection: Connection) -> Poses:
    """Return poses that nearly minimize the sum of unsquared residuals, by reweighting.

    Rotations are also weighted by the residuals of their translations, since outliers usually have
    errors in both.
    """
    poses = fit(connection)
    for _ in range(10):  # outliers rank nearly as high after 5, no higher after 20
        by_turn, by_move = (  # the largest residual over each residual, at most 1,000
            1 / np.sqrt(squares / (squares.max(initial=0.0) or 1.0) + 1e-6)
            for squares in costs_of(connection, poses)
        )
        weights = connection.weights * by_turn * by_move[: len(by_turn)]
        poses = fit(dataclasses.replace(connection, weights=weights, tau=connection.tau * by_move))
    return poses


def fit(connection: Connection) -> Poses:
    """Return poses with rotations nearest to frames of minimum energy, and fitted positions.

    Without sightings, the frames ignore displacements.
    """
    has_sightings = len(connection.ends) > len(connection.edges)
    part = connection if has_sightings else connection.without_positions
    return with_positions(connection, extended_rotations(part))


def weighted(connection: Connection, weights: np.ndarray) -> Connection:
    """Return the connection with weights times factors (m,), without edges of factor 0.

    Factors below 1e-9 count as 0, but such edges get the factor 1e-9 if they are needed to connect
    the graph.
    """
    ends, m = connection.ends, len(connection.edges)
    # factor of edges that are needed to connect the graph; smaller factors are set to 0
    bridge = 1e-9
    factors = np.append(np.where(weights < bridge, 0.0, weights), np.ones(len(ends) - m))
    n = connection.n_vertices + connection.n_landmarks
    joins = np.append(connection.weights > 0, np.ones(len(ends) - m, bool))
    parts = component_labels(n, ends[(factors > 0) & joins])[ends]
    cut = np.flatnonzero((parts[:, 0] != parts[:, 1]) & joins)
    roots = np.unique(component_labels(n, parts[cut]), return_index=True)[1]
    links = spanning_forest(n, parts[cut], roots)[2]
    factors[cut[links[links >= 0]]] = bridge
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

    Graduated non-convexity (Yang et al., RA-L 2020) with extensions of minimum energy is least
    sensitive to wrong loops; then, with refined poses, it recovers correct loops and discards more
    of the wrong ones that agree with each other. If measurements are discarded, another start adds
    to the variance of a translation that of its rotation, which is fitted first, times its length;
    the result is the one of lower truncated cost.
    """
    d = connection.dim
    freedom = d**2 if connection.transports.dtype.kind == "c" else max(d * (d - 1) // 2, 1)
    # squared residuals of Gaussian errors exceed c2 with probability 0.001
    c2 = float(chdtri(freedom + connection.points.shape[1], 1e-3))

    turned = connection
    if connection.has_positions:
        lever = np.zeros(len(connection.tau))
        squares = np.square(connection.points[: len(connection.edges)]).sum(axis=1)
        lever[: len(squares)] = squares / ((d - 1) * connection.weights)
        turned = dataclasses.replace(connection, tau=1 / (1 / connection.tau + lever))

    def weights_at(
        poses: Poses, convexity: float = 0.0, whole: Connection = connection
    ) -> np.ndarray:
        """Return weights of a surrogate of min(r^2, c^2), 1 or 0 if its convexity is 0."""
        squares = squared_residuals(whole, poses)
        with np.errstate(divide="ignore", invalid="ignore"):
            weights = (np.sqrt(c2 * (1 + convexity) / squares) - 1) / convexity
        low, high = c2 / (1 + convexity), c2 * (1 + convexity)
        weights = np.where(squares <= low, 1.0, np.where(squares >= high, 0.0, weights))
        return np.where(trusted, 1.0, weights)

    def graduated(poses: Poses, whole: Connection, extends: bool) -> tuple[np.ndarray, Poses]:
        """Return weights and poses fitted to surrogates of decreasing convexity.

        If ``extends``, the first is convex and ``fit`` computes poses, else a Gauss-Newton step.
        """
        largest = squared_residuals(whole, poses)[~trusted].max(initial=0.0)
        # from refined poses, lower than 1,000 would keep wrong loops that agree with each other
        convexity = 2 * largest / c2 - 1 if extends else 1e3
        convexity *= largest > c2
        weights = weights_at(poses, convexity, whole)
        while convexity > 0 and ((weights > 0) & (weights < 1)).any():
            part = weighted(whole, weights)
            poses = fit(part) if extends else refined_poses(part, poses, steps=1)
            convexity /= 2  # the factor 1.4 of gtsam is no better
            weights = weights_at(poses, convexity, whole)
        return weights, poses

    def fitted(whole: Connection) -> tuple[np.ndarray, Poses]:
        """Return weights and poses of a robust fit that begins with the variances of ``whole``."""
        weights, _ = graduated(fit(whole), whole, extends=True)
        poses = fit(weighted(connection, weights))  # poses of the last surrogate may be far off
        if not refine:
            return weights, poses
        # more steps change no result noticeably, and with many wrong edges take most of the time
        poses = refined_poses(weighted(connection, weights), poses, steps=10)
        weights, poses = graduated(poses, connection, extends=False)
        for _ in range(10):  # one is usual, and two are the most that were seen
            poses = refined_poses(weighted(connection, weights), poses)
            before, weights = weights, weights_at(poses)
            if np.array_equal(before, weights):
                break
        return before, poses

    weights, poses = fitted(connection)
    if connection.has_positions and (weights < 1).any():
        fits = [(weights, poses), fitted(turned)]
        # unrefined translations are as inaccurate as the rotations that were fitted first
        whole = connection if refine else turned
        squares = np.array([squared_residuals(whole, poses) for _, poses in fits])
        costs = np.where(trusted, squares, np.minimum(squares, c2)).sum(axis=1)
        m = len(connection.edges)
        costs += [costs_of(whole, poses)[1][m:].sum() for _, poses in fits]  # of sightings
        weights, poses = fits[int(costs.argmin())]
    return ragged.read_only(weights), poses
