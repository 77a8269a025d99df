"""Synchronization: rotations first, then translations, then both by Gauss-Newton."""

import dataclasses
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import choice, flag, read_only, scalar_array, whole_number
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.synchronization._pose_graph import PoseGraph
from sheafcoarsen.synchronization.connection import Connection, connection_from
from sheafcoarsen.synchronization.frames import anchored_frames, nearest_rotations, spectral_frames
from sheafcoarsen.synchronization.linearization import PoseSheaf
from sheafcoarsen.synchronization.refinement import refine_poses
from sheafcoarsen.synchronization.residuals import angles_of, edge_turns, offsets_of, rotation_costs
from sheafcoarsen.synchronization.result import Synchronization
from sheafcoarsen.synchronization.translations import measured_points, place_roots, places

Method = Literal["spectral", "anchored"]

METHODS = get_args(Method)


def synchronize(
    F: CellularSheaf | PoseGraph,
    method: Method = "spectral",
    refine: bool = False,
    seed: int = 0,
    *,
    start: npt.ArrayLike | None = None,
) -> Synchronization:
    """Find rotations, and places where translations are measured, that agree with the edges.

    Frames that the edges of the connection agree on, n blocks of d x d, are rounded to the nearest
    rotations by their singular value decompositions. Places follow from a linear least-squares
    problem with these rotations. Gauss-Newton then lowers the cost of both together: each step is a
    least-squares problem on the sheaf of small turns and moves, with stalks of dimension 3 in the
    plane and 6 in space.

    Parameters
    ----------
    F : CellularSheaf or PoseGraph
        A connection: both maps of an edge are the same multiple of orthogonal (unitary) matrices.
    method : {"spectral", "anchored"}
        "spectral": the d lowest eigenvectors of every component. "anchored": the frames of least
        energy among those with the identity at the component's first vertex.
    refine : bool
        Run Gauss-Newton: in the plane and in space, where no edge reflects the frames found.
    seed : int
        Of the eigensolver.
    start : array_like, shape (n, d, d) or (dim_c0, d), optional
        Where to begin instead: rotations R_i, or frames as a cochain with d columns, which are
        rounded. ``C.lift`` of a coarse sheaf's low modes gives such frames.

    Returns
    -------
    Synchronization

    Raises
    ------
    ValueError, TypeError
        A sheaf that is no connection, with the first edge that shows it; reflections or other
        dimensions where refinement is asked for.
    NotConverged
        Where the eigensolver or a linear solver does not converge.

    Warns
    -----
    SingularProblemWarning
        Where the frames are not determined, because there is no gap behind their eigenvalues.

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
    choice("method", method, METHODS)
    refine = flag("refine", refine)
    seed = whole_number("seed", seed, at_least=0)
    graph = F if isinstance(F, PoseGraph) else None
    connection = connection_from(F)
    eigenvalues = None
    if start is not None:
        frames = _given_frames(start, connection)
    elif method == "spectral":
        frames, eigenvalues = spectral_frames(connection, seed)
    else:
        frames = anchored_frames(connection)
    rotations = nearest_rotations(frames, connection)
    roots, spots = connection.roots, None
    if graph is not None:
        roots = connection.roots if graph.sightings is None else place_roots(graph)
        spots = places(graph, rotations, roots)
    refined = None
    if refine:
        refined = refine_poses(_pose_sheaf(connection, graph, rotations), rotations, spots, roots)
        rotations, spots = refined.rotations, refined.translations
    found = result_at(F, connection, rotations, spots)
    how: dict[str, Any] = {"method": method if start is None else "start"}
    if eigenvalues is not None:
        how |= {
            "gap": float(eigenvalues[-1] - eigenvalues[-2]),
            "eigenvalues": read_only(eigenvalues),
        }
    if refined is not None:
        how |= {"costs": read_only(np.array(refined.costs)), "converged": refined.converged}
    return dataclasses.replace(found, **how)


def _given_frames(start: npt.ArrayLike, connection: Connection) -> np.ndarray:
    """Return frames (n, d, d) to be rounded, given as rotations (transposed) or as a cochain."""
    n, d = connection.n_vertices, connection.dim
    frames = scalar_array("start", start)
    if frames.dtype.kind == "c" and connection.transports.dtype.kind != "c":
        raise TypeError("`start` must be real, as the connection is, got complex numbers")
    if frames.shape == (n, d, d):
        frames = frames.conj().swapaxes(1, 2)
    elif frames.shape == (n * d, d):
        frames = frames.reshape(n, d, d)
    else:
        raise ValueError(
            f"`start` must be rotations of shape {(n, d, d)} or frames of shape {(n * d, d)}, got "
            f"shape {frames.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(frames).all(axis=(1, 2)))
    if bad.size:
        raise ValueError(f"`start` must be finite, got {frames[bad[0]].tolist()} at {bad[0]}")
    return frames


def _pose_sheaf(
    connection: Connection, graph: PoseGraph | None, rotations: np.ndarray
) -> PoseSheaf:
    """Return the linearized problem, of rotations alone or of whole poses."""
    if connection.dim not in (2, 3) or connection.transports.dtype.kind == "c":
        raise ValueError(
            f"`refine` needs rotations of the plane or of space, got {connection.group}: "
            f"refine=False rounds the frames alone"
        )
    reflects = np.linalg.det(edge_turns(connection, rotations)) < 0
    bad = np.flatnonzero(reflects & (connection.weights > 0))
    if bad.size:
        u, v = connection.edges[bad[0]].tolist()
        raise ValueError(
            f"`refine` needs frames that agree with every edge up to a rotation, but edge {bad[0]} "
            f"({u} -> {v}) reflects: refine=False rounds the frames alone"
        )
    if graph is None:
        return PoseSheaf(connection, None, None, np.zeros((0, 2), np.int64), 0)
    _, points, tau = measured_points(graph)
    if graph.sightings is None:
        return PoseSheaf(connection, points, tau, np.zeros((0, 2), np.int64), 0)
    sighted = graph.sightings.edges + np.array([0, connection.n_vertices])
    return PoseSheaf(connection, points, tau, sighted, graph.sightings.n_landmarks)


def result_at(
    F: CellularSheaf | PoseGraph,
    connection: Connection,
    rotations: np.ndarray,
    spots: np.ndarray | None,
) -> Synchronization:
    """Return the result at given poses: residuals of every edge and the cost."""
    graph = F if isinstance(F, PoseGraph) else None
    n, m = connection.n_vertices, len(connection.edges)
    angles = angles_of(edge_turns(connection, rotations))
    angles[connection.weights == 0] = np.nan
    costs = rotation_costs(connection, rotations)
    cost = float(costs.sum())
    distances = translations = landmarks = None
    if graph is not None and spots is not None:
        ends, points, tau = measured_points(graph)
        squares = np.square(offsets_of(ends, points, rotations, spots)).sum(axis=1)
        distances = read_only(np.sqrt(squares[:m]))
        costs += tau[:m] * squares[:m]
        cost = float(costs.sum() + tau[m:] @ squares[m:])
        translations = read_only(spots[:n])
        landmarks = None if graph.sightings is None else read_only(spots[n:])

    return Synchronization(
        rotations=read_only(rotations),
        translations=translations,
        landmarks=landmarks,
        edges=connection.edges,
        measurements=F,
        angles=read_only(angles),
        distances=distances,
        edge_costs=read_only(costs),
        cost=cost,
        gap=None,
        eigenvalues=None,
        component=read_only(connection.component),
        costs=read_only(np.array([cost])),
        converged=True,
        method="",
        group=connection.group,
        vertex_labels=F.vertex_labels,
    )
