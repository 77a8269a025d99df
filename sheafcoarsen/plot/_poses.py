"""Plot of poses: trajectory, loop closures and landmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen._support import checks, tables
from sheafcoarsen.plot import draw
from sheafcoarsen.plot.draw import DARK, LIGHT
from sheafcoarsen.plot.positions import vertex_places
from sheafcoarsen.sheaf import component_labels
from sheafcoarsen.synchronization import PoseGraph, Synchronization, order_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


def poses(
    S: Synchronization | PoseGraph,
    *,
    outliers: int | None = None,
    pos: ArrayLike | Mapping | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot poses with odometry, loop closures and landmarks.

    Dark lines join consecutive poses (in the order of their labels if these are integers) that were
    measured from each other (odometry), light ones all other pairs (loop closures); crosses are
    landmarks. Components, whose frames are unrelated, are drawn side by side, each with its
    landmarks. Poses in space are drawn in three-dimensional axes, or in given two-dimensional ones
    as projected along the direction of smallest extent.

    Parameters
    ----------
    S : Synchronization or PoseGraph
        It must have translations, unless ``pos`` is given; for a PoseGraph its own poses are
        drawn.
    outliers : int, optional
        Number of the most suspect edges between poses, the first of ``S.outliers()``, not those of
        the largest residuals, to draw dashed and red, with a ring around the middle of each;
        sightings of landmarks are not among them. By
        default the edges that a robust fit left out, those with ``S.weights`` below 1/2, as thin
        lines without rings if there are more than 50. With 0, these are not drawn at all.
    pos : array_like, shape (n, 2) or (n, 3), or dict from vertex labels to positions, optional
        Positions to draw the vertices at, without landmarks, instead of the translations.
    ax : matplotlib Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    TypeError, ValueError
        An object without poses; rotations without translations; a pose graph without poses;
        positions that are not finite, or do not have two or three coordinates for each vertex; axes
        in space for positions in the plane.

    See Also
    --------
    sheafcoarsen.synchronize : what is drawn.
    sheafcoarsen.read_g2o : measurements from a file.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> turn = [[0.0, -1.0], [1.0, 0.0]]
    >>> G = sc.PoseGraph([[0, 1], [1, 2], [2, 3], [3, 0]], [turn] * 4, [[1.0, 0.0]] * 4)
    >>> sc.plot.poses(sc.synchronize(G), ax=Figure().add_subplot()).get_title()
    '4 poses, 4 measurements'
    """
    checks.kind("S", S, Synchronization, PoseGraph)
    if outliers is not None:
        outliers = checks.whole_number("outliers", outliers, at_least=0)
    edges = S.edges
    places, n, component = _places(S, pos)
    weights = S.weights if isinstance(S, Synchronization) else None
    left_out = np.flatnonzero(np.zeros(0) if weights is None else weights < 0.5)
    ringed = 50  # maximum number of edges left out by a robust fit that are drawn with rings
    worst = left_out if outliers is None and len(left_out) <= ringed else left_out[:0]
    if outliers:
        if not isinstance(S, Synchronization):
            raise TypeError("`outliers` requires a Synchronization as `S`, got a PoseGraph")
        worst = S.outliers()[:outliers]
    extent = np.ptp(places[:n], axis=0) if n else np.ones(2)
    flat = len(extent) == 3 and bool(extent[2] < 0.2 * extent.max())
    projections = ("3d", "rectilinear") if places.shape[1] == 3 else ("rectilinear",)
    ax = draw.axes_or_new(ax, 6.5, 4.6 if flat else 6, projections)
    if places.shape[1] == 3 and ax.name != "3d":  # project on the plane of largest extent
        middle = places[:n].sum(axis=0) / max(n, 1)
        plane = np.linalg.eigh((places[:n] - middle).T @ (places[:n] - middle))[1][:, :0:-1].T
        # fix the signs of the eigenvectors, which are arbitrary
        plane = plane * np.sign(plane[[0, 1], np.abs(plane).argmax(axis=1)])[:, None]
        places = (places - middle) @ plane.T
    count = int(component[:n].max(initial=-1)) + 1
    if count > 1:  # translate each component to the right of the previous one
        low, high = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(low, component, places[:, 0])
        np.maximum.at(high, component, places[:, 0])
        gap = 0.1 * float((high - low).max()) or 1.0
        shifts = np.concatenate([[0.0], np.cumsum(high - low + gap)[:-1]]) - low
        places[:, 0] += shifts[component]
    places, landmarks = places[:n], places[n:]
    shown = np.delete(edges, left_out, axis=0)
    proper, order = shown[shown[:, 0] != shown[:, 1]], order_of(S)
    along = np.abs(np.diff(order[proper])[:, 0]) == 1
    width = float(np.clip(600 / max(len(proper), 1), 0.5 if places.shape[1] == 2 else 0.8, 1.6))
    pale = LIGHT if places.shape[1] == 2 else "0.6"  # darker than the grid of axes in space
    ways = (("loop closures", proper[~along], pale, 0.8), ("odometry", proper[along], DARK, 1.3))
    for label, some, color, factor in ways:
        draw.lines(ax, label, places, some, colors=color, linewidths=factor * width)
    alone = np.setdiff1d(np.arange(n), edges)
    if len(alone):
        label = "not measured from other poses"
        draw.marks(ax, label, places[alone], color=DARK, s=9, zorder=1)
    red: dict = {"colors": "#B2182B", "linestyles": (0, (3, 2)), "linewidths": 1.0}
    rest = np.setdiff1d(left_out, worst) if outliers != 0 else left_out[:0]
    if len(rest) > ringed:  # lines in front would hide the poses
        red |= {"linewidths": 0.4, "zorder": 1}
    draw.lines(ax, "left out", places, edges[rest], **red)
    if len(worst):
        label = "left out" if outliers is None else "worst edges"
        rings: dict = {"s": 60, "facecolors": "none", "edgecolors": red["colors"], "zorder": 4}
        if len(rest):  # both have the same lines: "_" hides these from the legend
            rings["label"], label = f"middles of {label}", f"_{label}"
        draw.lines(ax, label, places, edges[worst], **red)
        if ax.name == "3d":  # draw in the order of zorder, so that no path hides the rings
            ax.computed_zorder = False  # type: ignore[attr-defined]
            rings["depthshade"] = False
        ax.scatter(*places[edges[worst]].mean(axis=1).T, **rings)  # make short edges visible
    if len(landmarks):
        draw.marks(ax, "landmarks", landmarks, marker="x", color=DARK, s=14, linewidths=0.8)
    ax.autoscale_view()
    ax.set_aspect("equal")
    if ax.name == "3d":
        space: Any = ax  # its methods for space are not those that Axes declares
        space.locator_params(nbins=4)
        if flat:  # fill the panel, and use one tick, as labels of the short axis overlap
            limits = np.array([space.get_xlim(), space.get_ylim(), space.get_zlim()])
            space.set_box_aspect(np.ptp(limits, axis=1), zoom=1.25)
            top = float(limits[2, 1])
            space.set_zticks([top], [f"{top:.3g}"])
    draw.legend(ax)
    words = [tables.counted(n, "pose"), tables.counted(len(edges), "measurement")]
    words += [f"{len(left_out):,} left out"] if len(left_out) else []
    if count > 1:
        words.append(f"{tables.counted(count, 'component')}, a frame for each")
    draw.title(ax, ", ".join(words))
    return ax


def _places(
    S: Synchronization | PoseGraph, pos: ArrayLike | Mapping | None
) -> tuple[np.ndarray, int, np.ndarray]:
    """Return the positions of poses and then landmarks, the number of poses, and components."""
    marks = component = None
    if pos is not None:
        places = vertex_places(S, pos)
    elif isinstance(S, Synchronization):
        if S.translations is None:
            raise ValueError(
                "`S` must have translations, but a sheaf was synchronized: "
                "read a pose graph with read_g2o(path, poses=True), or pass `pos`"
            )
        places, marks, component = S.translations, S.landmarks, S.component
        if marks is not None:  # landmarks also connect the poses that saw them
            seen: Any = S.measurements.sightings  # type: ignore
            joined = np.concatenate([S.edges, seen.edges + np.array([0, len(places)])])
            component = component_labels(len(places) + len(marks), joined)
    elif S.poses is None:
        raise ValueError("`S` is a pose graph without poses: compute them with synchronize(S)")
    else:
        places = S.poses[1]
        marks = None if S.sightings is None else S.sightings.places
    both = places if marks is None else np.concatenate([places, marks])
    if component is None:  # all are in the same frame
        component = np.zeros(len(both), np.int64)
    known = ~np.isnan(both).any(axis=1)  # landmarks that no pose saw are not
    return both[known], len(places), component[known]
