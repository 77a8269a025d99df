"""Synchronization: rotations first, then translations, then both by Gauss-Newton."""

import dataclasses
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import choice, counted, flag, read_only, scalar_array, whole_number
from sheafcoarsen.exceptions import SingularProblemWarning
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import CellularSheaf, component_labels
from sheafcoarsen.synchronization._pose_graph import PoseGraph, edge_indices
from sheafcoarsen.synchronization.connection import Connection, connection_from, places_of
from sheafcoarsen.synchronization.frames import (
    anchored_frames,
    joint_rotations,
    nearest_rotations,
    placed,
    spectral_frames,
)
from sheafcoarsen.synchronization.joint_sheaf import Places
from sheafcoarsen.synchronization.linearization import PoseSheaf
from sheafcoarsen.synchronization.refinement import Refined, refined_poses
from sheafcoarsen.synchronization.result import Synchronization, result_at
from sheafcoarsen.synchronization.reweighting import (
    fit,
    squared_residuals,
    truncated_cost,
    truncated_weights,
    truncation,
    weighted,
)

Method = Literal["auto", "joint", "spectral", "anchored"]

METHODS = get_args(Method)

Start: TypeAlias = tuple[str, np.ndarray, np.ndarray | None]
"""A name, rotations, and the lowest eigenvalues where they were computed."""

WIDE = 8.0
"""Multiple of the truncation in the first of other refinements: extended poses fit worse than
refined ones, and right measurements come back; on m3500 wrong ones, too, which cost more.
"""

REWEIGHTED = 10
"""Largest number of refinements with new weights; three are enough on pose graphs at hand."""


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
    """Find rotations, and places where translations are measured, that agree with the edges.

    Frames that the edges agree on, n blocks of d x d, are rounded to the nearest rotations by their
    singular value decompositions. Places follow from a linear least-squares problem with these
    rotations. Gauss-Newton then lowers the cost of both together: each step is a least-squares
    problem on the sheaf of small turns and moves, with stalks of dimension 3 in the plane and 6 in
    space. ``S.certify()`` tells whether what was found is the best.

    Parameters
    ----------
    F : CellularSheaf or PoseGraph
        A connection: both maps of an edge are the same multiple of orthogonal (unitary) matrices.
    method : {"auto", "joint", "spectral", "anchored"}
        "spectral": the d lowest eigenvectors of every component. "anchored": the frames of least
        energy among those with the identity at the component's first vertex. "joint": the same on
        ``G.joint_sheaf()``, with translations and sightings; of a sheaf as "anchored". "auto":
        "spectral" for a sheaf, for a pose graph this or "joint", whichever has the lower cost.
    refine : bool
        Run Gauss-Newton: in the plane and in space, where no edge reflects the frames found.
    seed : int
        Of the eigensolver.
    start : array_like, shape (n, d, d) or (dim_c0, d), optional
        Where to begin instead: rotations R_i, or frames as a cochain with d columns, which are
        rounded. ``C.lift`` of a coarse sheaf's low modes gives such frames.
    robust : {None, "tls"}
        "tls": truncated least squares, by graduated non-convexity (Yang et al. 2020). Measurements
        with residuals that errors of their information would exceed once in a thousand times are
        left out; ``S.weights`` tells which. It has starts of its own, and no ``method``.
    trusted : array_like of int or bool, optional
        Edges, by number or as a mask, that are never left out. By default those from a pose to the
        next, i and i + 1, the odometry, if they connect a pose graph, and the first of parallel
        ones; [] trusts none.

    Returns
    -------
    Synchronization

    Raises
    ------
    ValueError, TypeError
        A sheaf that is no connection, with the first edge that shows it; reflections or other
        dimensions where refinement is asked for; ``start`` with ``robust``, ``trusted`` without.
    NotConverged
        Where the eigensolver or a linear solver does not converge.

    Warns
    -----
    SingularProblemWarning
        Where the frames are not determined, because there is no gap behind their eigenvalues, or
        because too few landmarks join parts of the graph.

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
    connection = connection_from(F)
    places = places_of(F)
    if robust is not None:
        choice("robust", robust, ("tls",))
        if start is not None or method != "auto":
            given = "start" if start is not None else "method"
            raise ValueError(f"`{given}` has no effect with `robust`, which has starts of its own")
        return _robust(F, connection, places, _trusted(F, trusted, connection), refine)
    if trusted is not None:
        raise ValueError("`trusted` has no effect without `robust`: pass robust='tls', too")
    starts: Iterable[Start] = _starts(connection, places, method, seed)
    if start is not None:
        starts = [("start", _given_rotations(start, connection), None)]
    found, eigenvalues = None, None
    for name, rotations, values in starts:
        spots = None if places is None else placed(places, rotations)
        here = result_at(F, connection, places, rotations, spots, method=name)
        found = here if found is None or here.cost < found.cost else found
        eigenvalues = values if eigenvalues is None else eigenvalues
    assert found is not None
    how: dict[str, Any] = {}
    if eigenvalues is not None:
        how["gap"] = float(eigenvalues[-1] - eigenvalues[-2])
        how["eigenvalues"] = read_only(eigenvalues)
    if refine:
        refined = refined_poses(connection, places, found.rotations, found.spots)
        found = _result(F, connection, places, refined, method=found.method)
    _warn_if_loose(connection, places, found)
    return dataclasses.replace(found, **how)


def _warn_if_loose(connection: Connection, places: Places | None, found: Synchronization) -> None:
    """Warn where landmarks join parts of the graph, but leave them free to move."""
    if places is None or found.n_components == len(connection.roots):
        return
    problem = PoseSheaf(connection, places)
    sheaf, _ = problem.at(found.rotations, found.spots)
    roots = places.roots
    rigid = int(sheaf.vertex_dims[roots].sum())
    free = global_sections(sheaf).h0 - rigid
    if free > 0:
        warnings.warn(
            f"poses are not determined: parts of the graph that only landmarks join can move in "
            f"{counted(free, 'way')} without a change of the cost",
            SingularProblemWarning,
            stacklevel=3,
        )


def _starts(
    connection: Connection, places: Places | None, method: Method, seed: int
) -> Iterator[Start]:
    """Return the starts that a method takes."""
    if method in ("auto", "spectral"):
        frames, values = spectral_frames(connection, seed)
        yield "spectral", nearest_rotations(frames, connection), values
    if places is not None and method in ("auto", "joint"):
        yield "joint", joint_rotations(connection, places), None
    elif method in ("joint", "anchored"):
        yield method, nearest_rotations(anchored_frames(connection), connection), None


def _result(
    F: CellularSheaf | PoseGraph,
    connection: Connection,
    places: Places | None,
    poses: Refined,
    **how: Any,
) -> Synchronization:
    """Return the result at refined poses."""
    found = result_at(F, connection, places, poses.rotations, poses.translations, **how)
    costs = np.array(poses.costs or [found.cost])
    return dataclasses.replace(found, costs=read_only(costs), converged=poses.converged)


def _trusted(
    F: CellularSheaf | PoseGraph, trusted: npt.ArrayLike | None, connection: Connection
) -> np.ndarray:
    """Return the mask of trusted edges; by default the odometry, where it connects the poses."""
    edges = connection.edges
    mask = np.zeros(len(edges), bool)
    if trusted is not None:
        mask[edge_indices("trusted", trusted, len(edges))] = True
    elif isinstance(F, PoseGraph):
        steps = np.flatnonzero(abs(edges[:, 1] - edges[:, 0]) == 1)
        # of several measurements between the same poses the first is the odometry
        odometry = steps[np.unique(edges[steps].min(axis=1), return_index=True)[1]]
        parts = component_labels(connection.n_vertices, edges[odometry])
        if parts.max(initial=0) == connection.component.max(initial=0):
            mask[odometry] = True
    return mask


def _robust(
    F: CellularSheaf | PoseGraph,
    connection: Connection,
    places: Places | None,
    trusted: np.ndarray,
    refine: bool,
) -> Synchronization:
    """Return the fit of least truncated squares, with its weights."""
    weights = truncated_weights(connection, places, trusted)
    part, spots = weighted(connection, places, weights)
    poses = Refined(*fit(part, spots), [], True)
    if refine:
        found = [_refitted(connection, places, trusted, poses, first) for first in (1.0, WIDE)]
        _, weights, poses = min(found, key=lambda one: one[0])
    result = _result(F, connection, places, poses, method="tls", weights=read_only(weights))
    _warn_if_loose(connection, places, result)
    return result


def _refitted(
    connection: Connection,
    places: Places | None,
    trusted: np.ndarray,
    poses: Refined,
    width: float,
) -> tuple[float, np.ndarray, Refined]:
    """Return the sum of truncated squares, weights and poses of refinements that agree on weights.

    The first refinement truncates at a multiple of the others' squared residual.
    """
    c2 = truncation(connection, places)
    weights = None
    for _ in range(REWEIGHTED):
        squares = squared_residuals(connection, places, poses.rotations, poses.translations)
        right = trusted | (squares <= width * c2)
        if weights is not None and width == 1 and (right == (weights > 0)).all():
            break
        weights = np.where(right, 1.0, 0.0)
        part, spots = weighted(connection, places, weights)
        poses, width = refined_poses(part, spots, poses.rotations, poses.translations), 1.0
    assert weights is not None
    reached = (poses.rotations, poses.translations)
    return truncated_cost(connection, places, trusted, reached), weights, poses


def _given_rotations(start: npt.ArrayLike, connection: Connection) -> np.ndarray:
    """Return rotations near those given, or near frames given as a cochain."""
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
    return nearest_rotations(frames, connection)
