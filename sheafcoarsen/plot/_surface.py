"""Plots of surfaces: numbers as colours, tangent vectors as arrows."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sheafcoarsen._support import checks, surfaces, tables
from sheafcoarsen.gallery import field_indices, tangent_frames
from sheafcoarsen.plot import draw
from sheafcoarsen.plot.positions import Scene, UpAxis, scene_of, spread_out, usual_gap

if TYPE_CHECKING:
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
    >>> i, j = np.divmod(np.arange(24 * 12), 12)
    >>> a, b = 2 * np.pi * i / 24, 2 * np.pi * j / 12
    >>> ring = 2 + np.cos(b)
    >>> torus = np.stack([ring * np.cos(a), ring * np.sin(a), np.sin(b)], axis=1)
    >>> at = lambda i, j: i % 24 * 12 + j % 12
    >>> quads = np.stack([at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)], axis=1)
    >>> ax = sc.plot.surface(torus, quads, np.cos(2 * a), ax=Figure().add_subplot())
    >>> len(ax.collections[0].get_paths()) == len(quads)
    True
    """
    return _draw_surface(scene_of(points, faces, view, up), values, colorbar, ax)


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
    >>> i, j = np.divmod(np.arange(24 * 12), 12)
    >>> a, b = 2 * np.pi * i / 24, 2 * np.pi * j / 12
    >>> ring = 2 + np.cos(b)
    >>> torus = np.stack([ring * np.cos(a), ring * np.sin(a), np.sin(b)], axis=1)
    >>> at = lambda i, j: i % 24 * 12 + j % 12
    >>> quads = np.stack([at(i, j), at(i + 1, j), at(i + 1, j + 1), at(i, j + 1)], axis=1)
    >>> F = sc.gallery.tangent_bundle(torus, quads)
    >>> smoothest = sc.eigenmodes(F, 1).vectors[:, 0]
    >>> ax = sc.plot.field(torus, quads, smoothest, ax=Figure().add_subplot())
    >>> ax.get_title()
    'arrows at 138 of 288 vertices'
    """
    scene = scene_of(points, faces, view, up)
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
    ax = _draw_surface(scene, values, colorbar, ax)
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


def _draw_surface(scene: Scene, values: Any, colorbar: bool, ax: Axes | None) -> Axes:
    """Draw the faces, coloured by numbers, with a colour bar, equal units and no ticks."""
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
    view: Any = draw.axes_or_new(ax, width, 5, ("rectilinear", "3d"))
    if values is None:
        fill_faces(view, scene)
    else:
        if colorbar:
            from matplotlib.cm import ScalarMappable

            style: dict = {"shrink": 0.7, "aspect": 25, "pad": 0.02}
            view.figure.colorbar(ScalarMappable(norm, cmap), ax=view, **style)
        # shade only slightly, since darker colours stand for other values in the colour bar
        fill_faces(view, scene, cmap(norm(values))[:, :3], 0.9)
    view.set_axis_off()
    if view.name == "3d":
        view.set_aspect("equal")
        reach = max(float(np.abs(scene.points).max(initial=0)), 1e-300)
        view.view_init(**scene.view.options)
        view.set(**dict.fromkeys(("xlim", "ylim", "zlim"), (-reach, reach)))
        view.set_box_aspect((1, 1, 1), zoom=1.3)
    else:
        draw.frame(view, scene.flat)
    return view


def fill_faces(
    ax: Any, scene: Scene, colors: Any = (0.86, 0.87, 0.89), least: float = 0.45
) -> None:
    """Draw faces in one colour or in colours (f, 3), shaded to brightness ``least`` or more."""
    lit = colors * (least + (1 - least) * scene.light)[:, None]
    if ax.name == "3d":
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        solid = Poly3DCollection(scene.points[scene.faces], facecolors=lit, edgecolors=lit)
        solid.set_linewidth(0.2)
        ax.computed_zorder = False  # matplotlib's order by mean depth hides arrows
        ax.add_collection(solid)
        return
    _fill(ax, scene.flat[scene.faces[scene.order]], lit[scene.order], "faces")


def fill_cells(ax: Axes, scene: Scene, colors: np.ndarray) -> None:
    """Draw faces in the colours (n, 3) of their vertices, mixed faces as one cell per corner."""
    faces = scene.faces[scene.order]
    corners = scene.flat[faces]
    own = colors[faces] * (0.45 + 0.55 * scene.light[scene.order])[:, None, None]
    middles = corners / 2 + np.roll(corners, -1, axis=1) / 2
    centres = np.broadcast_to(corners.mean(axis=1)[:, None], corners.shape)
    cells = np.stack([corners, middles, centres, np.roll(middles, 1, axis=1)], axis=2)
    polygons: list = []
    fill: list = []
    for f, is_mixed in enumerate((own != own[:, :1]).any(axis=(1, 2)).tolist()):
        polygons += list(cells[f]) if is_mixed else [corners[f]]
        fill += list(own[f]) if is_mixed else [own[f, 0]]
    _fill(ax, polygons, np.reshape(fill, (-1, 3)), "cells")


def _fill(ax: Axes, polygons: Any, colors: np.ndarray, label: str) -> None:
    """Draw polygons, with outlines in their own colours to close gaps between them."""
    from matplotlib.collections import PolyCollection

    style: dict = {"facecolors": colors, "edgecolors": colors, "linewidths": 0.8, "label": label}
    style |= {"rasterized": len(colors) > draw.MARKERS, "zorder": 0}
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
        head = (4.0, 4.4, 4.0) if power == 1 else (0, 0, 0)
        style |= zip(("headwidth", "headlength", "headaxislength"), head, strict=True)
    ax.quiver(*start.T, *arrows.T, **style)
    return len(feet)
