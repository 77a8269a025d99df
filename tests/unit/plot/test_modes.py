"""The picture of eigenmodes."""

import networkx as nx
import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.quiver import Quiver

import sheafcoarsen as sc
from sheafcoarsen import plot
from tests.support.helpers import assert_residual
from tests.support.meshes import icosphere
from tests.unit.plot.test_axes import draw

GRID = nx.grid_2d_graph(5, 6)
POS = {v: v for v in GRID}


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
    assert (
        ax.get_title()
        == "8 lowest modes, the first 6 drawn, 1 section; red and blue: the two signs"
    )


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


# ---------------------------------------------------------------- surfaces


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
