"""The picture of an elimination, read back from the artists."""

import matplotlib as mpl
import networkx as nx
import numpy as np
from matplotlib.figure import Figure

import sheafcoarsen as sc
from sheafcoarsen import plot
from tests.unit.plot.test_axes import collections, draw, overlapping_texts

# a square with a diagonal, and a leaf
EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [2, 4], [0, 2]])
PLACES = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [2, 2]])


def segments(ax, label):
    return np.array(collections(ax)[label].get_segments())


def test_eliminated_and_remaining_vertices_are_drawn(ax):
    edges = np.asarray(EDGES)[:, ::-1]
    K = sc.eliminate(sc.CellularSheaf.constant(edges), keep=[0, 1, 2])
    assert plot.elimination(K, PLACES, ax=ax) is ax
    draw(ax)
    fine, left = ax.child_axes
    assert fine.get_title() == "5 vertices, 2 eliminated"
    assert left.get_title() == "3 vertices, 3 edges"
    np.testing.assert_array_equal(segments(fine, "edges"), PLACES[edges])
    np.testing.assert_array_equal(collections(fine)["eliminated"].get_offsets(), PLACES[[3, 4]])
    for panel in (fine, left):
        np.testing.assert_array_equal(collections(panel)["kept"].get_offsets(), PLACES[:3])
    np.testing.assert_array_equal(
        segments(left, "edges between former neighbours"), PLACES[K.sheaf.edges]
    )


def test_new_edges_are_dashed(ax):
    K = sc.eliminate(sc.CellularSheaf.constant(EDGES[:5]), keep=[0, 2])
    plot.elimination(K, dict(enumerate(PLACES)), ax=ax)
    left = ax.child_axes[1]
    np.testing.assert_array_equal(
        segments(left, "edges through eliminated vertices"), PLACES[[[0, 2]]]
    )
    assert collections(left)["edges through eliminated vertices"].get_linestyle()[0][1] is not None
    assert "edges between former neighbours" not in collections(left)


def test_crowded_names_are_further_off_with_a_line_to_their_vertices(ax):
    names = [f"substation {v}" for v in range(50)]
    pos = np.random.default_rng(0).random((50, 2))
    pos[:8] = 0.5 + 0.1 * (pos[:8] - 0.5)
    K = sc.eliminate(sc.CellularSheaf.constant(nx.cycle_graph(50)).with_labels(names), range(8))
    plot.elimination(K, pos, names=range(8), ax=ax)
    for panel in ax.child_axes:
        assert [text.get_text() for text in panel.texts] == names[:8]
        assert not overlapping_texts(panel)
        assert any(text.arrow_patch for text in panel.texts)
        at = panel.transData.transform(pos[:8])
        for v, text in enumerate(panel.texts):
            box = mpl.text.Text.get_window_extent(text)
            gaps = np.linalg.norm(np.maximum(box.min - at, at - box.max).clip(0), axis=1)
            assert text.arrow_patch or gaps.argmin() == v


def test_junctions_are_hollow_unless_they_are_named_or_all_are():
    """They are kept as well, so that a user who keeps three vertices sees four."""
    F = sc.CellularSheaf.constant([[0, 1], [0, 2], [0, 3], [3, 4]])
    for keep, names, shown in (
        ([1, 2, 4], None, [0]),
        ([1, 2, 4], [1, 2], [0]),
        ([0, 1, 2, 4], [0, 1, 2, 4], []),
        ([1, 4], None, []),
    ):
        K = sc.eliminate(F, keep)
        ax = plot.elimination(K, PLACES, names=names, ax=Figure().subplots())
        for panel, label in zip(ax.child_axes, ("kept, more than 2 neighbours",) * 2, strict=True):
            marks = collections(panel)[label]
            np.testing.assert_array_equal(marks.get_offsets(), PLACES[shown].reshape(-1, 2))
            labels = [text.get_text() for text in panel.get_legend().get_texts()]
            assert (label in labels) == bool(shown)
    karate = sc.eliminate(sc.CellularSheaf.constant(nx.karate_club_graph()))
    for names in (None, [0]):
        fine = plot.elimination(karate, names=names, ax=Figure().subplots()).child_axes[0]
        assert not len(collections(fine)["kept, more than 2 neighbours"].get_offsets())


def test_loops_are_drawn_as_rings(ax):
    """A leaf whose map is onto too little leaves a loop at its neighbour."""
    one, none = [[1.0]], [[0.0]]
    F = sc.CellularSheaf([[0, 1], [1, 1]], [one, one], [one, none])
    K = sc.eliminate(F, keep=[0])
    plot.elimination(K, ax=ax)
    fine, left = ax.child_axes
    assert left.get_title() == "1 vertex, 0 edges, 1 loop"
    assert fine.get_xlabel() == "1 loop not drawn"
    assert len(collections(left)["loops"].get_offsets()) == 1


def test_few_retained_vertices_of_a_large_graph_are_visible(ax):
    F = sc.CellularSheaf.constant(nx.star_graph(3000))
    plot.elimination(
        sc.eliminate(F, keep=[0, 7]), np.random.default_rng(0).random((3001, 2)), ax=ax
    )
    for panel in ax.child_axes:
        assert collections(panel)["kept"].get_sizes()[0] == 30
    assert collections(ax.child_axes[0])["eliminated"].get_sizes()[0] < 3


def test_eliminating_every_vertex_can_be_plotted(ax):
    plot.elimination(sc.eliminate(sc.CellularSheaf.constant(nx.path_graph(4))), ax=ax)
    draw(ax)
    assert [panel.get_title() for panel in ax.child_axes] == [
        "4 vertices, 4 eliminated",
        "0 vertices, 0 edges",
    ]
