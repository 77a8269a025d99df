"""Plots of numbers as colours and vectors as arrows: on surfaces, and eigenmodes."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen._support import checks, surfaces, tables
from sheafcoarsen.gallery import field_indices, tangent_frames
from sheafcoarsen.plot import draw, positions
from sheafcoarsen.plot.positions import Scene, UpAxis, spread_out, usual_gap
from sheafcoarsen.solve import Eigenmodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


def surface(
    points: ArrayLike,
    faces: ArrayLike,
    values: ArrayLike | None = None,
    *,
    view: tuple[float, float] = (20, -60),
    up: UpAxis = "z",
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Plot a surface mesh with filled and shaded faces, coloured by numbers.

    Nearer faces cover those behind them. Numbers of both signs have a diverging colour map centred
    at zero, others a sequential one. Shading hardly changes these colours: values can be read off
    the colour bar to a tenth of its range.

    Parameters
    ----------
    points : array_like, shape (n, 3)
    faces : array_like of int, shape (f, k)
        As in :func:`sheafcoarsen.gallery.tangent_bundle`.
    values : array_like, shape (n,) or (f,), optional
        A real number for each vertex, averaged over the corners of a face, or one for each face
        (for each vertex if n = f).
    view : pair of float
        Elevation and azimuth of the viewer in degrees, as in matplotlib's ``view_init``. Azimuths 0
        and 90 look from +x and +y, with ``up="y"`` from +z and +x, with ``up="x"`` from +y and +z.
    up : {"z", "y", "x", "-z", "-y", "-x"}
        The coordinate axis that points up, or down with a minus sign.
    colorbar : bool
        Whether to add a colour bar.
    ax : matplotlib Axes, optional
        Plane axes show the surface as seen from ``view``; axes with ``projection="3d"`` can be
        rotated, and show all faces.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError, TypeError
        Invalid surfaces; values that are not finite real numbers, one for each vertex or face.

    See Also
    --------
    field : tangent vectors on a surface.
    partition : a surface in its clusters, ``partition(C, points, faces=faces)``.
    sheafcoarsen.read_mesh : points and faces of a file.

    Examples
    --------
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> octahedron = np.vstack([np.eye(3), -np.eye(3)])
    >>> faces = [[a, b, c] for a in (0, 3) for b in (1, 4) for c in (2, 5)]
    >>> ax = sc.plot.surface(octahedron, faces, octahedron[:, 2], ax=Figure().add_subplot())
    >>> len(ax.collections[0].get_paths())
    8
    """
    scene = positions.scene_of(points, faces, view, up)
    checks.flag("colorbar", colorbar)
    if values is not None:
        n, f = len(scene.points), len(scene.faces)
        what = f"be one number for each of {n} vertices, or of {f} faces"
        values = checks.real_array("values", values, [(n,), (f,)], what).astype(np.float64)
        cmap, norm = draw.number_colors(values)
        values = values[scene.faces].mean(axis=1) if len(values) == n else values
    reaches = draw.frame_of(scene.flat)[1]
    width = round(float(np.clip(4.6 * reaches[0] / reaches[1], 3, 8)), 1)
    width += 1.0 if values is not None and colorbar else 0.0
    shown: Any = draw.axes_or_new(ax, width, 5, ("rectilinear", "3d"))
    if values is None:
        fill_faces(shown, scene)
    else:
        if colorbar:
            from matplotlib.cm import ScalarMappable

            style: dict = {"shrink": 0.7, "aspect": 25, "pad": 0.02}
            shown.figure.colorbar(ScalarMappable(norm, cmap), ax=shown, **style)
        # shade only slightly, because darker colours denote other values
        fill_faces(shown, scene, cmap(norm(values))[:, :3], 0.9)
    shown.set_axis_off()
    if shown.name == "3d":
        shown.set_aspect("equal")
        reach = max(float(np.abs(scene.points).max(initial=0)), 1e-300)
        shown.view_init(**scene.view.options)
        shown.set(**dict.fromkeys(("xlim", "ylim", "zlim"), (-reach, reach)))
        shown.set_box_aspect((1, 1, 1), zoom=1.3)
    else:
        draw.frame(shown, scene.flat)
    return shown


def field(  # noqa: PLR0913 (options by keyword)
    points: ArrayLike,
    faces: ArrayLike,
    vectors: ArrayLike,
    values: ArrayLike | None = None,
    *,
    frames: ArrayLike | None = None,
    power: int = 1,
    n_arrows: int = 400,
    unit: bool = False,
    singularities: bool = False,
    view: tuple[float, float] = (20, -60),
    up: UpAxis = "z",
    colorbar: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Plot tangent vectors of a surface mesh as arrows on its filled faces.

    Arrows are evenly distributed over the visible vertices whose vectors are not zero. The longest
    is about as long as the distance between two arrows on the full surface, the others are in
    proportion.

    Parameters
    ----------
    points : array_like, shape (n, 3)
    faces : array_like of int, shape (f, k)
        As in :func:`sheafcoarsen.gallery.tangent_bundle`.
    vectors : array_like, shape (2 n,), (n, 2) or (n, 3), or complex of shape (n,)
        A cochain of the tangent bundle, with coordinates in ``frames``, also as complex numbers, or
        vectors in space.
    values : array_like, shape (n,) or (f,), optional
        Numbers that colour the faces, as in :func:`surface`.
    frames : array_like, shape (n, 3, 2), optional
        Bases T_v, so that coordinates x represent ``T_v x``; by default those of
        :func:`sheafcoarsen.gallery.tangent_frames`.
    power : int
        As in :func:`sheafcoarsen.gallery.tangent_bundle`: with k > 1, k directions are drawn at
        each vertex, without heads.
    n_arrows : int
        Largest number of arrows.
    unit : bool
        Whether all nonzero vectors have arrows of equal length.
    singularities : bool
        Whether to mark the visible faces where the field has an index other than 0, which a legend
        counts: vortices, sources and sinks have +1, saddles -1; with ``power`` k, indices are
        multiples of 1/k, such as +1/4. See :func:`sheafcoarsen.gallery.field_indices`, which
        counts these multiples.
    view, up, colorbar, ax : optional
        As in :func:`surface`.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError, TypeError
        Invalid surfaces; points without faces; vectors of another shape, or not finite; a power
        above 1 with vectors in space; singularities of a one-sided surface.

    See Also
    --------
    surface : numbers on a surface.
    sheafcoarsen.gallery.field_indices : the index of a field at each face.
    sheafcoarsen.gallery.tangent_bundle : the sheaf whose cochains are such fields.
    sheafcoarsen.harmonic_extension : a field from vectors at a few vertices.

    Examples
    --------
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> octahedron = np.vstack([np.eye(3), -np.eye(3)])
    >>> faces = [[a, b, c] for a in (0, 3) for b in (1, 4) for c in (2, 5)]
    >>> rotation = np.cross([1, 2, 3], octahedron)
    >>> ax = sc.plot.field(octahedron, faces, rotation, ax=Figure().add_subplot())
    >>> ax.get_title()
    'arrows at 5 of 6 vertices'
    """
    scene = positions.scene_of(points, faces, view, up)
    n = len(scene.points)
    if n and not len(scene.faces):
        raise ValueError(
            f"`faces` must hold at least one face for {n} points, since arrows are drawn on faces: "
            "draw a field on a point cloud by quiver(*points.T, *arrows.T) of axes with "
            'projection="3d", where arrows[v] = frames[v] @ x_v'
        )
    power = checks.whole_number("power", power, at_least=1)
    n_arrows = checks.whole_number("n_arrows", n_arrows, at_least=1)
    checks.flag("unit", unit)
    checks.flag("singularities", singularities)
    arrows = tangent_vectors(vectors, scene, frames, power)  # shape (n, power, 3)
    indices = np.zeros(0, int)
    if singularities:
        indices = field_indices(scene.points, scene.faces, arrows[:, 0], power)
    ax = surface(points, faces, values, view=view, up=up, colorbar=colorbar, ax=ax)
    drawn = draw_tangents(ax, scene, arrows, n_arrows, unit, values is not None)
    handles = []
    for k in np.unique(indices[indices != 0])[::-1].tolist():  # in units of 1 / power
        marked = scene.faces[indices == k]
        visible = scene.visible(marked.reshape(-1)).reshape(marked.shape)
        seen: np.ndarray = np.all(visible, axis=1)
        places = scene.points[marked[seen]].mean(axis=1)
        label = f"index {'+' if k > 0 else ''}{Fraction(k, power)}: "
        label += f"{tables.counted(len(marked), 'face')}, {seen.sum()} visible"
        style: dict = {"marker": "o", "c": "#D55E00"} if k > 0 else {"marker": "s", "c": "#56B4E9"}
        style |= {"s": 40, "edgecolors": "black", "linewidths": 0.8, "zorder": 5}
        if ax.name == "3d":
            style["depthshade"] = False  # hidden marks are omitted: a faded one would look hidden
        else:
            places = scene.view.project(places)
        handles.append(draw.marks(ax, label, places, **style))
    draw.legend_below(ax, handles, 2, fontsize=9, ncols=2)
    what = "arrows" if power == 1 else f"{power} directions"
    hidden = "" if drawn or not arrows.any() else ": the vectors are behind, turn by `view`"
    draw.title(ax, f"{what} at {drawn:,} of {tables.counted(n, 'vertex', 'vertices')}{hidden}")
    return ax


def modes(
    E: Eigenmodes,
    pos: ArrayLike | Mapping | None = None,
    faces: ArrayLike | None = None,
    *,
    view: tuple[float, float] = (20, -60),
    up: UpAxis = "z",
    ax: Axes | None = None,
) -> Axes:
    """Plot eigenvalues, and up to six of the lowest modes at the positions of the vertices.

    For real stalks of dimension 1 a mode is drawn in colours centred at zero; for real stalks of
    dimension 2 and complex ones of dimension 1 as arrows, in the coordinates of the stalks; for
    others the colour is norm(x_v). The sign of a mode is arbitrary, and so is the basis of the
    modes of one eigenvalue.

    With ``faces``, colours fill the faces of a surface, and arrows are the tangent vectors that
    :func:`field` draws for coordinates in the default frames, with ``power`` 1.

    Parameters
    ----------
    E : Eigenmodes
    pos : array_like, shape (n, 2) or (n, 3), or dict from vertex labels to positions, optional
        By default computed from distances in the graph.
    faces : array_like of int, shape (f, k), optional
        Faces of a surface with the vertices ``pos`` in space, as in :func:`partition`.
    view, up : pair of float, str
        The view of positions in space, as in :func:`surface`.
    ax : matplotlib Axes, optional
        Its area is divided into inset axes, ``child_axes``: the eigenvalues, then one for each
        mode.

    Returns
    -------
    Axes

    Raises
    ------
    ValueError, TypeError
        Positions that are not finite, or do not have two or three coordinates for each vertex;
        faces that are not a surface; axes that are not plane.

    See Also
    --------
    field : tangent vectors on a surface.
    surface : numbers on a surface.
    sheafcoarsen.eigenmodes : computes the eigenvectors.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> from matplotlib.figure import Figure
    >>> E = sc.eigenmodes(sc.CellularSheaf.constant(nx.karate_club_graph()), 3)
    >>> ax = sc.plot.modes(E, ax=Figure(figsize=(11, 5)).add_subplot())
    >>> [panel.get_title() for panel in ax.child_axes[1:]]
    ['1: 0', '2: 1.187', '3: 2.394']
    """
    checks.kind("E", E, Eigenmodes)
    places, order, scene = positions.flat_places(E.sheaf, pos, faces, view, up)
    count = min(len(E.values), 6)
    reach = draw.frame_of(places)[1]
    flat = float(reach[1] / reach[0])
    columns = 1 if flat < 0.4 else min(count, 2 if count == 4 else 3)
    rows = -(-count // columns)
    side = 2.6 if columns > 1 else 4.0
    fresh = ax is None
    ax = draw.axes_or_new(ax, 4 + side * columns, max((side * flat + 0.3) * rows, 3.2) + 0.4)
    if fresh:  # panels are placed explicitly; a layout engine would add margins
        ax.figure.set_layout_engine("none")  # type: ignore[union-attr]
        ax.set_position((0.01, 0.02, 0.98, 0.90))
    ax.set_axis_off()
    left = 0.30 if columns > 1 else 0.42
    panel, values = ax.inset_axes((0.06, 0.12, left - 0.10, 0.76)), E.values.astype(np.float64)
    number = np.arange(1, len(values) + 1)
    style: dict = {"markersize": 5, "clip_on": False}
    zero = number <= E.n_zero
    panel.plot(number[~zero], values[~zero], "o", color=draw.DARK, zorder=3, **style)
    style |= {"markerfacecolor": "white", "markeredgecolor": draw.MIDDLE, "markeredgewidth": 1.4}
    panel.plot(number[zero], values[zero], "o", zorder=4, label="sections", **style)
    draw.scale(panel, values)
    draw.tick_whole_numbers(panel)
    # whether k splits a multiplet
    next_value = " (next eigenvalue equal up to rounding)" if E.tied else ""
    panel.set_xlabel(f"i{next_value}", fontsize=9)
    draw.title(panel, r"eigenvalue $\lambda_i$", fontsize=9, pad=3)
    panel.tick_params(labelsize=8)
    width, height = (1 - left) / columns, 1.0 / rows
    for i in range(count):
        row, column = divmod(i, columns)
        panel = ax.inset_axes(
            (left + column * width, 1 - (row + 1) * height, 0.96 * width, 0.86 * height)
        )
        value = "0" if i < E.n_zero else f"{E.values[i]:.4g}"
        draw.title(panel, f"{i + 1}: {value}", fontsize=9, pad=3)
        how = _draw_mode(panel, E, i, places, order, scene)
        draw.frame(panel, places)
    drawn = "" if count == len(E.values) else f", the first {count} drawn"
    modes = tables.counted(len(E.values), "lowest mode")
    draw.title(ax, f"{modes}{drawn}, {tables.counted(E.n_zero, 'section')}; {how}")
    return ax


# ---------------------------------------------------------------- surfaces


def tangent_vectors(value: Any, scene: Scene, frames: Any, power: int) -> np.ndarray:
    """Return the directions at each vertex as vectors in space, shape (n, power, 3)."""
    n = len(scene.points)
    vectors = surfaces.field_array(value, n)
    # scale first: lengths do not matter, and their squares must not overflow
    vectors = vectors.astype(np.float64) / max(float(np.abs(vectors).max(initial=0)), 1e-300)
    if vectors.shape == (n, 3):
        if power > 1:
            raise ValueError(
                "`power` above 1 requires coordinates, shape (n, 2): vectors in space are "
                "directions already"
            )
        return vectors[:, None]
    if frames is None:
        frames = tangent_frames(scene.given, scene.faces)
    T = checks.real_array("frames", frames, [(n, 3, 2)], f"have shape ({n}, 3, 2)")
    z = vectors.reshape(n, 2) @ [1, 1j]
    length, angle = np.abs(z), np.angle(z)
    angles = (angle[:, None] + 2 * np.pi * np.arange(power)) / power
    roots = length[:, None, None] * np.stack([np.cos(angles), np.sin(angles)], axis=2)
    return roots @ T.swapaxes(1, 2)


def fill_faces(
    ax: Any, scene: Scene, colors: Any = (0.86, 0.87, 0.89), least: float = 0.45
) -> None:
    """Draw faces, shaded to brightness ``least`` or more, with outlines that close gaps.

    They have one colour, colours (f, 3), or colours of their corners (f, k, 3): faces with several
    are divided into a cell for each corner.
    """
    from matplotlib.collections import PolyCollection

    shade = (least + (1 - least) * scene.light)[:, None]
    lit = colors * (shade[:, None] if np.ndim(colors) == 3 else shade)
    if ax.name == "3d":
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        style: dict = {"facecolors": lit, "edgecolors": lit, "linewidths": 0.2}
        ax.computed_zorder = False  # matplotlib's order by mean depth hides arrows
        ax.add_collection(Poly3DCollection(scene.points[scene.faces], **style))
        return
    lit, corners = lit[scene.order], scene.flat[scene.faces[scene.order]]
    polygons: Any = corners
    if lit.ndim == 3:
        middles = corners / 2 + np.roll(corners, -1, axis=1) / 2
        centres = np.broadcast_to(corners.mean(axis=1)[:, None], corners.shape)
        cells = np.stack([corners, middles, centres, np.roll(middles, 1, axis=1)], axis=2)
        mixed = (lit != lit[:, :1]).any(axis=(1, 2))
        parts = zip(mixed.tolist(), cells, corners[:, None], strict=True)
        polygons = [part for split, own, one in parts for part in (own if split else one)]
        lit = lit[mixed[:, None] | (np.arange(lit.shape[1]) == 0)]
    style = {"facecolors": lit, "edgecolors": lit, "linewidths": 0.8, "label": "faces"}
    style |= {"rasterized": len(lit) > draw.MARKERS, "zorder": 0}
    ax.add_collection(PolyCollection(polygons, **style))


def draw_tangents(
    ax: Any, scene: Scene, vectors: np.ndarray, n_arrows: int, unit: bool, halo: bool
) -> int:
    """Draw arrows at evenly spread visible vertices and return the number of these vertices.

    Zero vectors are omitted. In the plane, ``halo`` outlines the arrows in white.
    """
    used = np.unique(scene.faces)
    at = used[scene.visible(used)]
    feet = at[spread_out(scene.points[at], n_arrows)]
    gap = usual_gap(scene.points[feet])
    if not vectors[feet].any(axis=(1, 2)).all():
        at = at[vectors[at].any(axis=(1, 2))]
        feet = at[spread_out(scene.points[at], n_arrows)]
    arrows, power = vectors[feet], vectors.shape[1]
    lengths = np.linalg.norm(arrows, axis=2, keepdims=True)
    longest = lengths if unit else lengths.max(initial=0)
    arrows = arrows * (0.95 if power == 1 else 0.45) * gap / np.where(longest > 0, longest, 1.0)
    start = np.repeat(scene.points[feet], power, axis=0)
    arrows = arrows.reshape(-1, 3)
    style: dict = {"color": "#1B1464", "zorder": 4}
    if ax.name == "3d":
        style |= {"linewidths": 1.0, "arrow_length_ratio": 0.35 if power == 1 else 0.0}
    else:
        start, arrows = scene.view.project(start), scene.view.project(arrows)
        style |= {"angles": "xy", "scale_units": "xy", "scale": 1, "minlength": 0.1}
        style |= {"units": "xy", "width": (0.085 if power == 1 else 0.07) * gap}
        style |= {"edgecolor": "white", "linewidth": 0.4 if halo else 0.0, "label": "arrows"}
        wide, long = (4.0, 4.4) if power == 1 else (0.0, 0.0)
        style |= {"headwidth": wide, "headlength": long, "headaxislength": wide}
    ax.quiver(*start.T, *arrows.T, **style)
    return len(feet)


# ---------------------------------------------------------------- modes


def _draw_mode(
    ax: Axes, E: Eigenmodes, i: int, places: np.ndarray, order: np.ndarray, scene: Scene | None
) -> str:
    """Draw one mode, from back to front, and return a description."""
    x, dims = E.vectors[:, i], E.sheaf.vertex_dims
    is_complex, one = x.dtype.kind == "c", bool((dims == 1).all())
    planar = one if is_complex else bool((dims == 2).all())
    if scene is not None and planar:
        fill_faces(ax, scene)
        draw_tangents(ax, scene, tangent_vectors(x, scene, None, 1), 150, False, False)
        return "arrows: tangent vectors"
    signs, F = "", E.sheaf
    proper = np.flatnonzero(np.not_equal(*F.edges.T))  # loops are not drawn
    if scene is None and len(proper) <= draw.LINES:
        edges, width = F.edges[proper], 0.3 if len(proper) > 4 * draw.MARKERS else 0.6
        draw.lines(ax, "edges", places, edges, color="0.8", linewidths=width)
        negative = edges[draw.signed_weights(F)[proper] < 0]
        draw.lines(ax, "negative edges", places, negative, color=draw.NEGATIVE, linewidths=width)
        signs = ", lines of negative edges red" if len(negative) else ""
    if planar:
        arrows = np.stack([x.real, x.imag], axis=1) if is_complex else x.reshape(-1, 2)
        sizes = np.linalg.norm(arrows, axis=1)
        some = spread_out(places, 400) if len(places) > 400 else np.arange(len(places))
        some = np.union1d(some, np.argsort(sizes)[-10:])
        # longer than the gap between two arrows, but seen if the mode is on a few vertices
        length = max(1.1 * usual_gap(places[some]), 0.05 * float(np.ptp(places, axis=0).max()))
        shown = length * arrows[some] / (float(sizes.max(initial=0.0)) or 1.0)
        style: dict = {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.005}
        style |= {"headwidth": 3.5, "headlength": 4, "headaxislength": 3.5, "pivot": "middle"}
        style["minlength"] = 0  # not dots that look larger than short arrows
        ax.quiver(*places[some].T, *shown.T, color=draw.DARK, zorder=3, label="mode", **style)
        what = "real and imaginary parts" if is_complex else "coordinates in each stalk"
        return f"arrows: {what}"
    owner = np.repeat(np.arange(len(dims)), dims)
    values = x if one else np.sqrt(np.bincount(owner, np.abs(x) ** 2, len(dims)))
    reach = float(np.abs(values).max(initial=0.0)) or 1.0
    cmap, norm = draw.number_colors(np.array([-reach if one else 0.0, reach]))
    how = "red and blue: the two signs" if one else "light: where stalks hold most"
    if scene is not None:
        fill_faces(ax, scene, cmap(norm(values[scene.faces].mean(axis=1)))[:, :3], 0.9)
        return how
    area = draw.disc_area(places, draw.width_in_points(ax) ** 2)
    style = {"cmap": cmap, "norm": norm, "s": area, "edgecolors": "0.35"}
    style |= {"c": values[order], "linewidths": 0.3 if len(places) <= draw.MARKERS else 0.0}
    draw.marks(ax, "mode", places[order], **style)
    return how + signs
