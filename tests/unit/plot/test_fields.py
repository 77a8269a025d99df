"""Pictures of surfaces and of eigenmodes: faces, colours and arrows, read back from the artists."""

import networkx as nx
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

import sheafcoarsen as sc
from sheafcoarsen import plot
from sheafcoarsen.plot.positions import view_from
from tests.support.errors import raises
from tests.support.helpers import assert_residual
from tests.support.meshes import icosphere
from tests.unit.plot.test_axes import collections, draw

POINTS, FACES = icosphere(0)
GRID = nx.grid_2d_graph(5, 6)
POS = {v: v for v in GRID}
VIEW = view_from((20, -60), "z")


def rotation_about_z(points):
    return np.cross([0.0, 0.0, 1.0], points)


def test_near_faces_are_drawn_after_far_ones(ax):
    points, faces = icosphere(1)
    plot.surface(points, faces[:40], ax=ax)
    scaled = points / np.exp2(np.frexp(np.abs(points).max())[1])
    middle = scaled.min(axis=0) / 2 + scaled.max(axis=0) / 2
    paths = collections(ax)["faces"].get_paths()
    places = np.array([path.vertices[:3] for path in paths])
    depth = ((scaled - middle) @ VIEW.toward)[faces[:40]].mean(axis=1)
    expected = VIEW.project(scaled - middle)[faces[:40][np.argsort(depth, kind="stable")]]
    assert_residual(places - expected, scaled, n=3)


@pytest.mark.parametrize(("axis", "ratio"), [(0, 1.8), (1, 0.6)])
def test_new_figures_have_the_shape_of_the_surface(axis, ratio):
    points, faces = icosphere(2)
    points = points * np.where(np.arange(3) == 2 * axis, 2.0, 1.0)  # long in x, or in z
    for values in (None, points[:, 0]):
        view = plot.surface(points, faces, values, view=(0, -90))
        width, height = view.figure.get_size_inches() - [0 if values is None else 1, 0]
        assert abs(width / height - ratio) < 0.25
        pyplot.close(view.figure)


@pytest.mark.parametrize("shift", [0.0, 2.0])
@pytest.mark.parametrize("of_vertices", [False, True])
def test_colour_bar_matches_the_shaded_faces(shift, of_vertices, ax):
    """Where shading makes faces darker, the bar still tells their values, to a tenth."""
    points, faces = icosphere(3)
    values = points[:, 0] + shift
    means = values[faces].mean(axis=1)
    plot.surface(points, faces, values if of_vertices else means, ax=ax)
    [bar] = [other for other in ax.figure.axes if other is not ax]
    scale = bar._colorbar.mappable
    given = values if of_vertices else means
    assert bar.get_ylim()[1] == given.max()
    assert bar.get_ylim()[0] == (given.min() if shift else -given.max())
    ticks = np.linspace(*bar.get_ylim(), 1000)
    colors = ax.collections[0].get_facecolors()[:, None, :3] - scale.to_rgba(ticks)[:, :3]
    read = ticks[(colors**2).sum(axis=2).argmin(axis=1)]
    drawn = means[np.argsort(points[faces].mean(axis=1) @ VIEW.toward, kind="stable")]
    assert np.abs(read - drawn).max() < 0.1 * np.ptp(ticks)
    plot.surface(points, faces, values, colorbar=False, ax=(alone := Figure().add_subplot()))
    assert alone.figure.axes == [alone]


def arrows_of(ax):
    """Return the arrows, and their vectors in the plane."""
    [arrows] = [item for item in ax.collections if item.get_label() == "arrows"]
    return arrows, np.stack([arrows.U, arrows.V], axis=1)


def feet(arrows, points):
    """Return the vertices at which arrows begin; hidden ones have none."""
    scaled = points / np.exp2(np.frexp(np.abs(points).max())[1])
    near = np.flatnonzero(points @ VIEW.toward > -0.3)
    offsets = np.asarray(arrows.get_offsets())
    distances = np.linalg.norm(VIEW.project(scaled[near])[None] - offsets[:, None], axis=2)
    assert distances.min(axis=1).max() < 1e-9
    return near[distances.argmin(axis=1)]


@pytest.mark.parametrize("form", ["space", "coordinates", "cochain", "frames"])
def test_arrows_are_the_projected_vectors(ax, form):
    points, faces = icosphere(2)
    vectors = rotation_about_z(points)
    T = sc.gallery.tangent_frames(points, faces)
    options = {}
    if form == "frames":
        T = T[..., ::-1]
        options["frames"] = T
    x = (T.swapaxes(1, 2) @ vectors[..., None])[..., 0]
    tangent = (T @ x[..., None])[..., 0]
    given = {"space": tangent, "cochain": x.ravel()}.get(form, x)
    plot.field(points, faces, given, ax=ax, n_arrows=50, **options)
    arrows, drawn = arrows_of(ax)
    assert len(arrows.get_offsets()) == 50
    for v, arrow in zip(feet(arrows, points), drawn, strict=True):
        seen = VIEW.project(tangent[v])
        factor = (seen @ arrow) / (seen @ seen)
        assert factor > 0
        assert_residual(arrow - factor * seen, arrow, n=100)
    lengths = np.linalg.norm(drawn, axis=1)
    assert np.ptp(lengths) > 0.3 * lengths.max()
    assert ax.get_title() == "arrows at 50 of 162 vertices"
    draw(ax)


def test_coordinates_refer_to_frames_of_the_points_as_given():
    """Moving and scaling points changes frames by rounding, or altogether where axes tie."""
    points, faces = icosphere(2)
    moved = points + np.array([2.3, 0, 0])
    points, faces = np.vstack([points, moved]), np.vstack([faces, faces + 162])
    x = np.random.default_rng(0).standard_normal((324, 2))
    implied, passed = (
        arrows_of(plot.field(points, faces, x, ax=Figure().subplots(), frames=frames))[1]
        for frames in (None, sc.gallery.tangent_frames(points, faces))
    )
    np.testing.assert_array_equal(implied, passed)


def test_unit_arrows_have_equal_length(ax):
    points, faces = icosphere(2)
    vectors = rotation_about_z(points) * (1 + points[:, :1]) ** 3
    vectors[np.argmax(points @ VIEW.toward)] = 0.0
    plot.field(points, faces, vectors, ax=ax, unit=True, view=(90, 0))
    lengths = np.linalg.norm(arrows_of(ax)[1], axis=1)  # seen from above, where all are horizontal
    assert np.ptp(lengths) < 1e-9


def test_zero_vectors_take_no_arrows(ax):
    points, faces = icosphere(2)
    vectors = rotation_about_z(points)
    few = np.flatnonzero(points @ VIEW.toward > 0.9)
    vectors[np.setdiff1d(np.arange(len(points)), few)] = 0.0
    plot.field(points, faces, vectors, ax=ax)
    assert np.array_equal(np.sort(feet(arrows_of(ax)[0], points)), few)
    assert ax.get_title() == f"arrows at {len(few)} of 162 vertices"
    plot.field(points, faces, 0 * vectors, ax=ax)
    assert ax.get_title() == "arrows at 0 of 162 vertices"
    plot.field(-points, faces[:, ::-1], vectors, ax=ax)
    behind = "arrows at 0 of 162 vertices: the vectors are behind, turn by `view`"
    assert ax.get_title().replace("\n", " ") == behind


@pytest.mark.parametrize("power", [2, 4])
def test_a_field_of_power_k_has_k_arrows_per_vertex(ax, power):
    points, faces = icosphere(1)
    T = sc.gallery.tangent_frames(points, faces)
    angle = np.random.default_rng(3).uniform(0, 6, len(points))
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    plot.field(points, faces, x, ax=ax, power=power, n_arrows=7)
    arrows, drawn = arrows_of(ax)
    assert len(arrows.get_offsets()) == 7 * power
    drawn = drawn.reshape(7, power, 2)
    assert_residual(drawn.sum(axis=1), drawn, n=10)  # at equal angles, they cancel
    for i, v in enumerate(feet(arrows, points)[::power]):
        seen = VIEW.project(T[v] @ [np.cos(angle[v] / power), np.sin(angle[v] / power)])
        cross = seen[0] * drawn[i, :, 1] - seen[1] * drawn[i, :, 0]
        assert np.abs(cross).min() < 1e-9
    assert ax.get_title().startswith(f"{power} directions at 7 of")
    draw(ax)


@pytest.mark.parametrize("form", ["space", "frames"])
@pytest.mark.parametrize("kind", [None, "3d"])
def test_visible_faces_with_an_index_are_marked(kind, form):
    """The gradient of xy on a sphere has two maxima, two minima and two saddles."""
    points, faces = icosphere(2)
    x, y, z = (points + np.array([0.01, 0.02, 0.03])).T
    vectors, options = np.stack([y, x, 0 * z], axis=1), {}
    indices = sc.gallery.field_indices(points, faces, vectors)
    assert [(indices == k).sum() for k in (-1, 1)] == [2, 4]
    if form == "frames":
        T = options["frames"] = sc.gallery.tangent_frames(points, faces)[..., ::-1]
        vectors = (T.swapaxes(1, 2) @ vectors[..., None])[..., 0]
    ax = Figure().add_subplot(projection=kind)
    plot.field(points, faces, vectors, ax=ax, singularities=True, **options)
    middles = points[faces].mean(axis=1)
    a, b, c = points[faces].swapaxes(0, 1)
    seen = np.cross(b - a, c - a) @ VIEW.toward > 0
    marks, labels = ax.get_legend_handles_labels()
    marks, labels = marks[-2:], labels[-2:]
    for k, mark, label in zip((1, -1), marks, labels, strict=True):
        own, shown = indices == k, (indices == k) & seen
        assert 0 < shown.sum() < own.sum()
        assert label == f"index {k:+d}: {own.sum()} faces, {shown.sum()} visible"
        if kind is None:
            scale = 2.0 ** -np.frexp(np.abs(points).max())[1]
            expected = VIEW.project(scale * middles[shown])
            assert np.abs(mark.get_offsets() - expected).max() < 1e-3
    assert len({mark.get_facecolor().tobytes() for mark in marks}) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == labels
    draw(ax)
    assert all((mark.get_facecolor()[:, 3] == 1).all() for mark in marks)  # none is faded in space


def test_a_field_without_singular_faces_has_no_legend(ax):
    plot.field(np.eye(3), [[0, 1, 2]], np.full((3, 3), [1.0, -1, 0]), ax=ax, singularities=True)
    assert ax.get_legend() is None


def test_indices_of_crosses_are_fractions(ax):
    points, faces = icosphere(2)
    x = np.random.default_rng(0).standard_normal((len(points), 2))
    plot.field(points, faces, x, power=4, singularities=True, ax=ax)
    found = sc.gallery.field_indices(points, faces, x, 4)
    assert found.sum() == 8
    labels = ax.get_legend_handles_labels()[1][-2:]
    for label, name, k in zip(labels, ("+1/4", "-1/4"), (1, -1), strict=True):
        assert label.startswith(f"index {name}: {(found == k).sum()} faces")


def test_three_dimensional_axes_contain_all_faces():
    points, faces = icosphere(1)
    ax = Figure().add_subplot(projection="3d")
    assert plot.field(points, faces, rotation_about_z(points), points[:, 2], ax=ax, up="y") is ax
    assert len(ax.collections[0].get_facecolors()) == len(faces)
    assert (ax.elev, ax.azim) == (20, -60)
    draw(ax)
    solid, arrows = ax.collections  # arrows are drawn over the surface, not behind it
    assert not ax.computed_zorder
    assert arrows.get_zorder() > solid.get_zorder()


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_surfaces_of_every_scale_can_be_drawn(scale):
    points, faces = icosphere(1)
    first, second = (Figure().add_subplot() for _ in range(2))
    plot.field(points, faces, rotation_about_z(points), ax=first)
    plot.field(scale * points, faces, scale * rotation_about_z(points), ax=second)
    shown = np.array([np.hypot(*arrows_of(ax)[1].T).max() for ax in (first, second)])
    widths = np.array([np.ptp(ax.get_xlim()) for ax in (first, second)])
    np.testing.assert_allclose(*(shown / widths))


def test_an_empty_surface_can_be_drawn(ax):
    plot.surface(np.zeros((0, 3)), np.zeros((0, 3), int), ax=ax)
    plot.field(np.zeros((0, 3)), np.zeros((0, 3), int), np.zeros((0, 3)), ax=ax)
    draw(ax)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"faces": FACES[:0]}, "ValueError: field on a point cloud by quiver(*points.T"),
        ({"values": np.ones(13)}, "ValueError: one number for each of 12 vertices, or of 20 faces"),
        ({"values": [np.nan] * 12}, "ValueError: `values` must be finite, got nan at index 0"),
        ({"vectors": np.zeros(23)}, "ValueError: must be a cochain of shape (24,)"),
        ({"vectors": np.full((12, 3), np.inf)}, "ValueError: `vectors` must be finite, got inf at"),
        ({"vectors": POINTS, "power": 2}, "ValueError: `power` above 1 requires coordinates"),
        ({"power": 0}, "ValueError: `power` must be at least 1, got 0"),
        ({"n_arrows": 0}, "ValueError: `n_arrows` must be at least 1, got 0"),
        ({"frames": np.zeros((12, 2, 3))}, "ValueError: `frames` must have shape (12, 3, 2)"),
        ({"unit": 1}, "TypeError: `unit` must be True or False, got 1"),
        ({"colorbar": "no"}, "TypeError: `colorbar` must be True or False"),
        ({"up": "Z"}, "ValueError: `up` must be one of 'x', 'y', 'z', '-x', '-y', '-z', got 'Z'"),
        ({"view": (1, 2, 3)}, "ValueError: `view` must be two angles in degrees, elevation and"),
    ],
)
def test_bad_fields_raise(options, error, ax):
    given = {"points": POINTS, "faces": FACES, "vectors": np.zeros((12, 2)), "ax": ax}
    with raises(error):
        plot.field(**(given | options))
    assert not ax.collections


def marks(panel, kind):
    return [mark for mark in panel.collections if type(mark) is kind]


def test_scalar_modes_have_a_colour_map_centred_at_zero(ax):
    E = sc.eigenmodes(sc.CellularSheaf.constant(GRID), 8)
    plot.modes(E, POS, ax=ax)
    draw(ax)
    values, *panels = ax.child_axes
    shown = {line.get_label(): line for line in values.lines}
    assert shown["sections"].get_ydata().tolist() == [0.0]
    np.testing.assert_allclose(values.lines[0].get_ydata(), E.values[1:])
    assert len(panels) == 6
    for i, panel in enumerate(panels):
        [discs] = marks(panel, PathCollection)
        np.testing.assert_allclose(discs.get_array(), E.vectors[:, i])
        assert discs.norm.vmin == -discs.norm.vmax
        assert discs.norm.vmax == pytest.approx(np.abs(E.vectors[:, i]).max())
        np.testing.assert_allclose(discs.get_offsets(), np.array(list(GRID)))
        assert len(marks(panel, LineCollection)[0].get_segments()) == GRID.number_of_edges()
        assert panel.get_title() == f"{i + 1}: " + (f"{E.values[i]:.4g}" if i else "0")
    wanted = "8 lowest modes, the first 6 drawn, 1 section; red and blue: the two signs"
    assert ax.get_title() == wanted


def test_negative_edges_of_modes_plots_are_red(ax):
    signs = np.where(np.arange(GRID.number_of_edges()) % 5 == 2, -1.0, 1.0)
    G = nx.Graph()
    G.add_nodes_from(GRID)
    G.add_edges_from((*e, {"weight": w}) for e, w in zip(GRID.edges, signs, strict=True))
    F = sc.CellularSheaf.signed(G)
    plot.modes(sc.eigenmodes(F, 1), POS, ax=ax)
    _, red = marks(ax.child_axes[1], LineCollection)
    expected = np.array(list(GRID))[F.edges[F.tail_data * F.head_data < 0]]
    np.testing.assert_array_equal(red.get_segments(), expected)
    assert "lines of negative edges red" in ax.get_title()


@pytest.mark.parametrize("n", [40, 700])
def test_panels_of_flat_graphs_fill_the_figure(n):
    ax = plot.modes(sc.eigenmodes(sc.CellularSheaf.constant(nx.path_graph(n)), 4))
    draw(ax)
    boxes = [panel.get_window_extent() for panel in ax.child_axes[1:]]
    assert len({round(box.x0) for box in boxes}) == 1  # one column
    heights = sum(box.height for box in boxes)
    pyplot.close(ax.figure)
    assert heights > 0.6 * ax.bbox.height


@pytest.mark.parametrize("kind", ["plane", "complex"])
def test_modes_with_stalks_of_dimension_2_are_drawn_as_arrows(ax, kind):
    if kind == "plane":
        F = sc.gallery.bundle(GRID, 2, noise=0.1, seed=1)
    else:
        F = sc.CellularSheaf.random(GRID, 1, 1, kind="orthogonal", seed=1, dtype=complex)
    E = sc.eigenmodes(F, 2)
    plot.modes(E, np.array(list(GRID), float), ax=ax)
    draw(ax)
    for i, panel in enumerate(ax.child_axes[1:]):
        [arrows] = marks(panel, Quiver)
        x = E.vectors[:, i]
        x = x.reshape(-1, 2) if kind == "plane" else np.stack([x.real, x.imag], axis=1)
        drawn = np.stack([arrows.U, arrows.V], axis=1)
        scale = np.linalg.norm(drawn) / np.linalg.norm(x)
        assert_residual(drawn - scale * x, scale, x, n=2)
        assert np.linalg.norm(drawn, axis=1).max() == pytest.approx(1.1)  # about a gap


def test_arrows_of_a_mode_on_one_vertex_of_many_are_drawn_and_seen(ax):
    """Loops hold the others: the mode is 0.99 at vertex 500 of 900 and far smaller elsewhere."""
    path, loops = np.stack([np.arange(899), np.arange(1, 900)], axis=1), np.delete(range(900), 500)
    edges = np.concatenate([path, np.stack([loops, loops], axis=1)])
    identity, opposite = np.tile(np.eye(2), (899, 1, 1)), np.tile(-5 * np.eye(2), (899, 1, 1))
    maps = np.concatenate([identity, -opposite]), np.concatenate([identity, opposite])
    places = np.random.default_rng(0).random((900, 2))
    E = sc.eigenmodes(sc.CellularSheaf(edges, *maps), 2)
    plot.modes(E, places, ax=ax)
    for panel in ax.child_axes[1:]:
        [arrows] = marks(panel, Quiver)
        lengths = np.hypot(arrows.U, arrows.V)
        np.testing.assert_allclose(arrows.XY[lengths.argmax()], places[500])
        assert lengths.max() == pytest.approx(0.05, rel=0.02)  # of the panel
        assert len(lengths) <= 410


def test_modes_with_other_stalks_are_drawn_by_their_norms(ax):
    F = sc.CellularSheaf.random(GRID, np.arange(30) % 4, 2, seed=3)
    E = sc.eigenmodes(F, 4)
    plot.modes(E, ax=ax)
    draw(ax)
    for i, panel in enumerate(ax.child_axes[1:]):
        [discs] = marks(panel, PathCollection)
        pieces = np.split(E.vectors[:, i], F.vertex_offsets[1:-1])
        np.testing.assert_allclose(discs.get_array(), [np.linalg.norm(piece) for piece in pieces])
        assert discs.norm.vmin == 0


@pytest.mark.parametrize("dim", [1, 3])
def test_modes_of_a_mesh_colour_its_faces(dim, ax):
    points, faces = icosphere(2)
    F = sc.CellularSheaf.constant(sc.gallery.tangent_bundle(points, faces).edges, dim)
    E = sc.eigenmodes(F, 4 * dim)
    plot.modes(E, points, faces, view=(0, 0), up="x", ax=ax)
    draw(ax)
    flat = plot.modes(E, points, ax=ax.figure.add_subplot())
    alone = plot.surface(points, faces, view=(0, 0), up="x", ax=ax.figure.add_subplot())
    [wanted] = marks(alone, PolyCollection)
    for i, (panel, other) in enumerate(zip(ax.child_axes[1:], flat.child_axes[1:], strict=True)):
        [solid] = marks(panel, PolyCollection)
        assert not marks(panel, LineCollection) + marks(panel, PathCollection)
        places = [path.vertices for path in solid.get_paths()]
        np.testing.assert_array_equal(places, [path.vertices for path in wanted.get_paths()])
        [discs] = marks(other, PathCollection)
        values = E.vectors[:, i].reshape(-1, dim)
        values = values[:, 0] if dim == 1 else np.linalg.norm(values, axis=1)
        colors = discs.cmap(discs.norm(values[faces].mean(axis=1)))[:, :3]
        # faces are drawn in another order, and shaded by a factor from 0.9 to 1
        lit, full = (np.sort(c[:, :3].sum(axis=1)) for c in (solid.get_facecolors(), colors))
        assert (lit <= full + 1e-12).all()
        assert (lit >= 0.9 * full - 1e-12).all()


@pytest.mark.parametrize("is_complex", [False, True])
def test_modes_of_a_tangent_bundle_are_arrows_on_the_faces_of_its_mesh(is_complex, ax):
    points, faces = icosphere(2)
    F = sc.gallery.tangent_bundle(points, faces)
    if is_complex:  # a rotation is a complex number
        turns = F.head_data.reshape(-1, 2, 2)[:, :, 0] @ [1, 1j]
        F = sc.CellularSheaf.connection(F.edges, turns[:, None, None])
    E = sc.eigenmodes(F, 2)
    plot.modes(E, points, faces, ax=ax)
    for i, panel in enumerate(ax.child_axes[1:]):
        [arrows] = marks(panel, Quiver)
        alone = plot.field(points, faces, E.vectors[:, i], n_arrows=150, ax=ax.figure.add_subplot())
        [wanted] = marks(alone, Quiver)
        for name in ("XY", "U", "V"):
            np.testing.assert_array_equal(getattr(arrows, name), getattr(wanted, name))
        assert len(marks(panel, PolyCollection)) == 1
    assert ax.get_title().endswith("arrows: tangent vectors")
