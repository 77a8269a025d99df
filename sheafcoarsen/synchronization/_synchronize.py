"""Synchronization: rotations first, then translations, then both by Gauss-Newton."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import checks, tables, warned
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.synchronization._pose_graph import (
    PoseGraph,
    connection_from,
    edge_indices,
    order_of,
)
from sheafcoarsen.synchronization.connection import Connection, costs_of
from sheafcoarsen.synchronization.fits import (
    extended_rotations,
    nearest_rotations,
    spectral_frames,
    truncated_fit,
    with_positions,
)
from sheafcoarsen.synchronization.refinement import PoseSheaf, refined_poses
from sheafcoarsen.synchronization.result import Synchronization, result_at

Method = Literal["auto", "joint", "spectral", "anchored"]


def synchronize(
    F: CellularSheaf | PoseGraph,
    method: Method = "auto",
    refine: bool = False,
    seed: int = 0,
    *,
    start: npt.ArrayLike | None = None,
    robust: Literal["tls"] | None = None,
    trusted: npt.ArrayLike | None = None,
) -> Synchronization:
    """Fit rotations, and positions if translations are measured, to measured relative poses.

    Frames of low energy, n blocks of d x d, are rounded to the nearest rotations. Positions solve a
    linear least-squares problem with these rotations. With ``refine``, Gauss-Newton then reduces
    the total cost. ``S.certify()`` checks whether the result is optimal.

    Parameters
    ----------
    F : CellularSheaf or PoseGraph
        A connection: both maps of an edge are the same multiple of orthogonal (unitary) matrices.
    method : {"auto", "joint", "spectral", "anchored"}
        "spectral": the d lowest eigenvectors of every component. "anchored": the frames of least
        energy among those with the identity at the component's first vertex (chordal
        initialization). "joint": the same on
        ``G.joint_sheaf()``, with translations and sightings; for a sheaf, "anchored". "auto":
        "spectral" for a sheaf; for a pose graph, "spectral" or "joint", whichever has the lower
        cost.
    refine : bool
        Run Gauss-Newton, which requires the plane or space and that no edge reflects the frames.
    seed : int
        Seed of the eigensolver.
    start : array_like, shape (n, d, d) or (dim_c0, d), optional
        Initial rotations R_i, or frames as a cochain with d columns, such as ``C.lift`` of a coarse
        sheaf's low modes, which are rounded.
    robust : {None, "tls"}
        "tls": truncated least squares, by graduated non-convexity (Yang et al. 2020). Measurements
        with residuals that Gaussian errors exceed with probability 0.001 are discarded; their
        ``S.weights`` are 0. Sightings of landmarks never are. It computes its own start. Weights
        must be inverse variances, as :class:`PoseGraph` defines them: a measured rotation alone is
        never discarded if kappa is below 2.7 in the plane or 2 in space, as unit weights are.
    trusted : array_like of int or bool, optional
        Edges that are never discarded, as indices or as a mask. By default none of a sheaf, and of
        a PoseGraph the odometry: the (first) edges of consecutive poses, in the order of their
        labels if these are integers, else of their indices. If a measured pose has no such edge,
        the order means nothing and no edge is trusted.

    Returns
    -------
    Synchronization

    Raises
    ------
    ValueError, TypeError
        If a sheaf is not a connection or cannot be refined, or if options exclude each other.
    NotConverged
        If the eigensolver or a linear solver does not converge.

    Warns
    -----
    SingularProblemWarning
        If poses are not determined: there is no gap after the eigenvalues of the frames, or too few
        landmarks connect parts of the graph.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> F = sc.gallery.bundle(nx.grid_2d_graph(10, 10), dim=3, noise=0.1, seed=0)
    >>> S = sc.synchronize(F, refine=True)
    >>> S.rotations.shape, bool(S.angles.max() < 0.5), bool(S.cost < sc.synchronize(F).cost)
    ((100, 3, 3), True, True)
    """
    checks.choice("method", method, get_args(Method))
    refine = checks.flag("refine", refine)
    seed = checks.whole_number("seed", seed, at_least=0)
    connection = connection_from(F)
    weights = eigenvalues = None
    if robust is not None:
        checks.choice("robust", robust, ("tls",))
        if start is not None or method != "auto":
            given = "start" if start is not None else "method"
            raise ValueError(f"`{given}` has no effect with `robust`, which computes its own start")
        name, edges = "tls", connection.edges
        mask = np.zeros(len(edges), bool)  # of trusted edges: as given, or odometry
        if trusted is not None:
            mask[edge_indices("trusted", trusted, len(edges))] = True
        elif isinstance(F, PoseGraph):
            ordered = order_of(F)[edges]
            steps = np.flatnonzero(np.abs(np.diff(ordered)) == 1)
            # if several measurements join the same poses, only the first counts as odometry
            odometry = steps[np.unique(ordered[steps].min(axis=1), return_index=True)[1]]
            if np.isin(edges, edges[odometry]).all():  # it reaches every measured pose
                mask[odometry] = True
        weights, poses = truncated_fit(connection, mask, refine)
    elif trusted is not None:
        raise ValueError("`trusted` has no effect without `robust`: also pass robust='tls'")
    else:
        starts = {}
        if start is not None and method != "auto":
            raise ValueError("`method` has no effect with `start`, which replaces its rotations")
        if start is not None:
            starts["start"] = _given_rotations(start, connection)
        else:
            if method in ("auto", "spectral"):
                frames, eigenvalues = spectral_frames(connection, seed)
                starts["spectral"] = nearest_rotations(frames, connection)
            if connection.has_positions and method in ("auto", "joint"):
                starts["joint"] = extended_rotations(connection)
            elif method in ("joint", "anchored"):
                starts["anchored"] = extended_rotations(connection.without_positions)
        fits = {name: with_positions(connection, R) for name, R in starts.items()}
        name = min(fits, key=lambda name: sum(map(np.sum, costs_of(connection, fits[name]))))
        poses = refined_poses(connection, fits[name]) if refine else fits[name]
    found = result_at(F, connection, poses, name, weights, eigenvalues)
    if found.n_components != len(np.unique(connection.component)):
        # landmarks connect parts of the graph, but may not determine their relative poses
        sheaf, _ = PoseSheaf(connection).at(poses)
        free = global_sections(sheaf).h0 - int(sheaf.vertex_dims[connection.roots].sum())
        if free > 0:
            warned.warn(
                f"poses are not determined: parts of the graph that only landmarks connect can "
                f"move in {tables.counted(free, 'way')} without changing the cost",
                SingularProblemWarning,
            )
    return found


def _given_rotations(start: npt.ArrayLike, connection: Connection) -> np.ndarray:
    """Return the rotations nearest to ``start``, which holds rotations, or frames as a cochain."""
    n, d = connection.n_vertices, connection.dim
    if isinstance(start, tuple) and len(start) == 2 and np.ndim(start[0]) == 3:
        raise ValueError(
            "`start` must be rotations, got a pair: pass the first of it, as in G.poses[0]; "
            "translations follow from the rotations"
        )
    frames = checks.finite("`start`", checks.scalar_array("start", start))
    frames = frames.astype(np.result_type(frames, np.float64), copy=False)
    if frames.dtype.kind == "c" and connection.transports.dtype.kind != "c":
        raise TypeError("`start` must be real because the connection is real, got complex numbers")
    if frames.shape not in ((n, d, d), (n * d, d)):
        raise ValueError(
            f"`start` must be rotations of shape {(n, d, d)} or frames of shape {(n * d, d)}, got "
            f"shape {frames.shape}"
        )
    if frames.ndim == 2:
        return nearest_rotations(frames.reshape(n, d, d), connection)
    # landmarks relate the rotations of parts that they join
    return nearest_rotations(frames.conj().swapaxes(1, 2), connection, connection.joined[:n])
