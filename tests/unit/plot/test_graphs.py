"""The pictures of coarsenings and eliminations, read back from the artists."""

import warnings

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.figure import Figure

import sheafcoarsen as sc
from sheafcoarsen import plot
from tests.support.helpers import assert_residual, ties_allowed
from tests.support.meshes import icosphere
from tests.support.strategies import sheaves_with_partitions
from tests.unit.plot.test_axes import collections, draw, gaps, names_in, note_of, overlapping_texts

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

HAIRBALL = nx.barabasi_albert_graph(900, 3, seed=7)
# of eliminations: a square with a diagonal, and a leaf
EDGES = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [2, 4], [0, 2]])
PLACES = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1], [2, 2]])


def coarsened(graph, K, rank=1):
    """Return a constant sheaf on a graph, coarsened to K clusters."""
    F = sc.CellularSheaf.constant(graph)
    return sc.coarsen(F, sc.select(F, K), rank)


def panels(C, *where, ax):
    """Draw a coarsening, and return what is in its two panels by label."""
    plot.partition(C, *where, ax=ax)
    return map(collections, ax.child_axes)


def is_red(lines):
    return (lines.get_colors() == mpl.colors.to_rgba("#E41A1C")).all(axis=1)


def test_every_vertex_edge_and_loop_is_drawn_in_proportion_to_its_stalk(C, ax):
    fine, coarse = panels(C, ax=ax)
    assert len(fine["vertices"].get_offsets()) == C.fine.n_vertices
    assert len(fine["internal edges"].get_segments()) == len(C.clusters.internal_edges)
    assert len(fine["crossing edges"].get_segments()) == len(C.clusters.crossing_edges)
    assert len(coarse["vertices"].get_offsets()) == 4
    assert len(coarse["crossing edges"].get_segments()) == C.n_crossing_edges
    assert len(coarse["loop-cells"].get_offsets()) == C.sheaf.n_edges - C.n_crossing_edges
    dims, sizes = C.sheaf.edge_dims, coarse["vertices"].get_sizes()
    np.testing.assert_allclose(sizes / sizes[0], C.ranks / C.ranks[0])
    assert len(set(sizes)) == 4
    widths = np.array(coarse["crossing edges"].get_linewidths())
    np.testing.assert_allclose(widths / widths[0], dims[: len(widths)] / dims[0])
    assert len(set(widths.tolist())) > 1
    rings = np.array(coarse["loop-cells"].get_linewidths())
    expected = np.maximum(dims[len(widths) :] * widths[0] / dims[0], 0.6)  # wide enough to be seen
    np.testing.assert_allclose(rings, expected)
    assert expected.max() > 0.6


def visible_parts(C, *pos):
    """Return the part of every coarse edge between the rings of its vertices, at most 1."""
    ax = plot.partition(C, *pos)
    draw(ax)
    coarse = ax.child_axes[1]
    discs, rings = (collections(coarse)[label] for label in ("vertices", "loop-cells"))
    places = coarse.transData.transform(discs.get_offsets()) * 72 / ax.figure.dpi
    radii = np.sqrt(discs.get_sizes()) / 2
    outer = (np.sqrt(rings.get_sizes()) + rings.get_linewidths()) / 2
    radii[C.sheaf.edges[C.n_crossing_edges :, 0]] = outer
    edges = C.sheaf.edges[: C.n_crossing_edges]
    lengths = np.linalg.norm(places[edges[:, 0]] - places[edges[:, 1]], axis=1)
    mpl.pyplot.close(ax.figure)
    return 1 - radii[edges].sum(axis=1) / lengths


@pytest.mark.large
def test_clusters_in_one_place_are_apart(ax):
    """All distances between the vertices of one side are equal, so their places coincide."""
    F = sc.CellularSheaf.constant(nx.complete_bipartite_graph(50, 700))
    _, coarse = panels(sc.coarsen(F, sc.select(F, 300), 1), ax=ax)
    places = coarse["vertices"].get_offsets()
    assert len(np.unique(places.round(6), axis=0)) == 300
    assert np.isfinite(places).all()


@pytest.mark.parametrize("K", [6, 75])
def test_coarse_edges_are_visible_between_loop_rings(K):
    F = sc.gallery.bundle(nx.grid_2d_graph(20, 20), dim=2, noise=0.1, seed=0)
    C = sc.coarsen(F, sc.select(F, K), sc.ranks.fixed(4).whole_multiplets())
    assert np.mean(visible_parts(C, np.array(list(nx.grid_2d_graph(20, 20)))) > 1 / 3) > 0.9


def test_no_coarse_edge_between_computed_places_is_hidden():
    """The places of clusters that overlap are moved apart."""
    F = sc.CellularSheaf.constant(nx.karate_club_graph(), weight="weight")
    for seed in range(3):
        C = sc.coarsen(F, sc.select(F, 8, weights="sheaf", seed=seed), 2)
        assert visible_parts(C).min() > 0.25


def test_rings_of_small_coarse_vertices_are_visible(ax):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(20, 20))
    C = sc.coarsen(F, sc.select(F, 100), 2)
    plot.partition(C, np.random.default_rng(0).random((400, 2)), ax=ax)
    drawn = collections(ax.child_axes[1])
    discs, rings = drawn["vertices"], drawn["loop-cells"]
    widths = np.asarray(rings.get_linewidths())
    own = C.sheaf.edges[C.n_crossing_edges :, 0]
    outer = np.sqrt(discs.get_sizes()[own]) + discs.get_linewidths()[0]
    assert widths.min() > 0.5
    assert (np.sqrt(rings.get_sizes()) - widths - outer).min() > 0.9  # twice the space between


@pytest.mark.parametrize("n", [30, 60])
def test_vertices_of_a_path_hardly_overlap(n):
    ax = plot.partition(coarsened(nx.path_graph(n), 3))
    draw(ax)
    fine = ax.child_axes[0]
    discs = collections(fine)["vertices"]
    places = fine.transData.transform(discs.get_offsets()) * 72 / ax.figure.dpi
    gaps = np.linalg.norm(np.diff(places, axis=0), axis=1)
    mpl.pyplot.close(ax.figure)
    assert np.sqrt(discs.get_sizes()).max() < 1.3 * np.median(gaps)


def test_given_positions_are_used_and_coarse_ones_are_nearest_to_their_means(C, ax):
    pos = np.random.default_rng(5).standard_normal((34, 2))
    fine, coarse = panels(C, pos, ax=ax)
    np.testing.assert_array_equal(fine["vertices"].get_offsets(), pos)
    e = C.clusters.internal_edges[7]
    ends = [segment.tolist() for segment in fine["internal edges"].get_segments()]
    assert pos[C.fine.edges[e]].tolist() in ends
    for a in range(4):
        own = pos[C.partition.cluster(a)]
        nearest = np.linalg.norm(own - own.mean(axis=0), axis=1).argmin()
        np.testing.assert_array_equal(coarse["vertices"].get_offsets()[a], own[nearest])
    spread = np.ptp(coarse["vertices"].get_offsets(), axis=0)
    limits = np.ptp([ax.child_axes[1].get_xlim(), ax.child_axes[1].get_ylim()], axis=1)
    assert (limits > spread).all()
    assert limits.max() < 1.2 * spread.max()  # the frame is not that of the fine graph
    assert "as given" in note_of(ax.child_axes[0])


@pytest.mark.parametrize("picture", ["partition", "elimination", "modes"])
@pytest.mark.parametrize(
    ("view", "up", "toward", "axes"),
    [((0, 90), "z", 1, [[-1, 0, 0], [0, 0, 1]]), ((0, 0), "y", 2, [[1, 0, 0], [0, 1, 0]])],
    ids=["from the second axis", "from the third axis"],
)
def test_positions_in_space_are_projected_to_the_view(picture, view, up, toward, axes, C, ax):
    """The vertex that is nearest to the viewer is drawn last."""
    pos = np.random.default_rng(5).standard_normal((34, 3))
    made = {"partition": C, "elimination": sc.eliminate(C.fine, keep=range(34))}
    made["modes"] = sc.eigenmodes(C.fine, 1)
    getattr(plot, picture)(made[picture], pos, ax=ax, view=view, up=up)
    panel = ax.child_axes[1 if picture == "modes" else 0]
    [drawn] = [item.get_offsets() for item in panel.collections if len(item.get_offsets()) == 34]
    far_first = np.argsort(pos[:, toward], kind="stable")
    expected = pos @ np.transpose(axes)
    if picture != "elimination":
        expected = expected[far_first]
    assert_residual(drawn - expected, pos, n=3)


def area(paths):
    corners = [path.vertices @ [1, 1j] for path in paths]
    return sum(abs((z[:-1].conj() * z[1:]).imag.sum()) / 2 for z in corners)


@pytest.mark.parametrize("K", [6, 30])
def test_faces_of_a_surface_have_the_colours_of_their_clusters(K, ax):
    points, faces = icosphere(2)
    F = sc.gallery.tangent_bundle(points, faces)
    C = sc.coarsen(F, sc.select(F, K), 2)
    left, right = panels(C, points, faces, ax=ax)
    labels = C.partition.labels[faces]
    mixed = (labels != labels[:, :1]).any(axis=1)
    cells = left["faces"].get_paths()
    assert len(cells) == (~mixed).sum() + 3 * mixed.sum()
    whole = collections(plot.surface(points, faces, ax=Figure().subplots()))["faces"].get_paths()
    assert_residual(area(cells) - area(whole), area(whole), n=len(cells))
    assert "vertices" not in left
    # every disc has the hue of the cell that it stands on, but for light and shade
    discs = right["vertices"]
    fills = left["faces"].get_facecolors()[:, :3]
    corners = np.array([path.vertices[:4] for path in cells])
    for place, color in zip(discs.get_offsets(), discs.get_facecolors()[:, :3], strict=True):
        around = (np.abs(corners - place).max(axis=2) < 1e-12).any(axis=1)
        assert around.any()
        ratios = fills[around] @ color / (color @ color)
        assert np.abs(fills[around] - ratios[:, None] * color).max() < 1e-9
    assert len(discs.get_offsets()) < K
    assert "hidden" in note_of(ax.child_axes[1])
    assert len(right["crossing edges"].get_segments()) < C.n_crossing_edges
    draw(ax)
    named = plot.partition(C, points, faces, names=[50], ax=Figure().subplots())
    assert [text.get_text() for text in named.child_axes[0].texts][-1] == "50"


def joined_pairs(left, right):
    """Return the pairs of clusters that the lines on the left join."""
    places, lines = right["vertices"].get_offsets(), np.array(left["links"].get_segments())
    same = (lines[:, :, None] == places).all(axis=3)
    assert same.any(axis=2).all()
    return same.argmax(axis=2)


def test_a_graph_with_hubs_is_drawn_through_its_quotient(ax):
    """A disc of a cluster contains its vertices, and hardly overlaps with others."""
    C = coarsened(HAIRBALL, 30)
    left, right = panels(C, ax=ax)
    assert "internal edges" not in left
    counts = np.diff(C.clusters.pair_ptr)
    lines = left["links"].get_segments()
    assert 29 <= len(lines) < len(counts)
    # lines join the places of clusters, the more edges they stand for the wider
    ends = joined_pairs(left, right)
    pair = np.searchsorted(C.clusters.pairs @ [30, 1], ends @ [30, 1])
    np.testing.assert_array_equal(C.clusters.pairs[pair], ends)
    widths = np.asarray(left["links"].get_linewidths())
    order = np.argsort(counts[pair], kind="stable")
    assert (np.diff(widths[order]) >= 0).all()
    assert np.ptp(widths) > 0.5
    fine_note, coarse_note = map(note_of, ax.child_axes)
    note = f"lines: {counts[pair].sum():,} of {counts.sum():,} edges between clusters"
    assert note in fine_note
    assert len(right["crossing edges"].get_segments()) == len(lines)
    assert f"{len(counts) - len(lines)} of {len(counts)} edges not drawn" in coarse_note
    draw(ax)
    places = np.asarray(left["vertices"].get_offsets())
    centres = np.asarray(right["vertices"].get_offsets())
    distances = np.linalg.norm(places[:, None] - centres[None], axis=2)
    assert np.mean(distances.argmin(axis=1) == C.partition.labels) > 0.97
    hub = np.bincount(C.fine.edges.ravel()).argmax()
    own = C.partition.labels == C.partition.labels[hub]
    assert distances[hub, C.partition.labels[hub]] == distances[own].min()


def test_links_are_red_if_their_weights_have_a_negative_sum(ax):
    """The sign of a sum of a few small integers is not that of most of them; some sums are zero."""
    weights = np.random.default_rng(1).choice([-3, -2, -1, 1, 2, 3], HAIRBALL.number_of_edges())
    signs = {"sign": np.sign(weights), "weight": np.abs(weights)}
    F = sc.CellularSheaf.signed(list(HAIRBALL.edges), **signs)
    C = sc.coarsen(F, sc.select(F, 30), 1)
    left, right = panels(C, ax=ax)
    sums, counts = np.zeros((2, 30, 30), int)
    pair = tuple(np.sort(C.partition.labels[F.edges], axis=1).T)
    np.add.at(sums, pair, weights)
    np.add.at(counts, pair, np.sign(weights))
    assert (np.sign(sums) != np.sign(counts)).any()
    ends = joined_pairs(left, right)
    red = is_red(left["links"])
    np.testing.assert_array_equal(red, sums[tuple(np.sort(ends, axis=1).T)] < 0)
    assert 0 < red.sum() < len(red)
    assert "red: negative sum of weights" in note_of(ax.child_axes[0])


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize(("weights", "expected"), [([2, 3, -5], False), ([2, 3, -6], True)])
def test_weights_that_cancel_up_to_rounding_are_not_red(weights, expected, scale, ax):
    maps = scale * np.sqrt(np.abs(weights))[:, None, None]
    F = sc.CellularSheaf([[0, 1]] * 3, maps, maps * np.sign(weights)[:, None, None])
    _, right = panels(sc.coarsen(F, sc.Partition([0, 1]), 1), ax=ax)
    assert is_red(right["crossing edges"]).tolist() == [expected]


def test_a_graph_without_hubs_is_drawn_edge_by_edge(ax):
    fine, _ = panels(coarsened(nx.grid_2d_graph(40, 40), 9), ax=ax)
    assert {"internal edges", "crossing edges"} <= set(fine)


@pytest.mark.large
def test_a_large_graph_is_drawn_through_its_quotient(ax):
    number = np.arange(170 * 170).reshape(170, 170)
    pairs = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    plot.partition(coarsened(np.hstack([np.reshape(pair, (2, -1)) for pair in pairs]).T, 50), ax=ax)
    assert len(collections(ax.child_axes[0])["links"].get_segments()) >= 49
    draw(ax)


@pytest.mark.parametrize("K", [4, 20])
def test_neighbouring_clusters_differ_in_greyscale(K, ax):
    C = coarsened(nx.grid_2d_graph(12, 12), K, 2)
    fine, coarse = panels(C, ax=ax)
    colors = coarse["vertices"].get_facecolors()
    grey = colors[:, :3] @ [0.2126, 0.7152, 0.0722]
    a, b = C.clusters.pairs.T
    assert np.abs(grey[a] - grey[b]).min() > 0.05
    np.testing.assert_array_equal(fine["vertices"].get_facecolors(), colors[C.partition.labels])


@pytest.mark.parametrize("K", [4, 12])
def test_clusters_are_numbered_if_they_are_few(K, ax):
    """Inside a coarse vertex or next to it, and next to a vertex of the cluster."""
    C = coarsened(nx.karate_club_graph(), K)
    plot.partition(C, ax=ax)
    fine, coarse = ax.child_axes
    drawn = [collections(panel)["vertices"] for panel in (fine, coarse)]
    clusters = C.partition.labels, np.arange(K)
    for panel, discs, cluster in zip((fine, coarse), drawn, clusters, strict=True):
        assert [text.get_text() for text in panel.texts] == [str(a) for a in range(K)]
        radius = np.sqrt(discs.get_sizes().max()) / 2
        for a, number in enumerate(panel.texts):
            (at,) = np.flatnonzero((discs.get_offsets() == np.array(number.xy)).all(axis=1))
            assert cluster[at] == a
            inside = number.xyann == (0.0, 0.0)
            assert inside == (panel is coarse and K == 4)
            assert inside or np.linalg.norm(number.xyann) > radius + 4


def test_names_are_not_formulas_and_have_escapes_for_surrogates(ax, tmp_path):
    F = sc.CellularSheaf.constant(nx.path_graph(["a$b$", "$\\frac", "\ud800"]))
    C = sc.coarsen(F, sc.Partition([0, 0, 1]), 1)
    plot.partition(C, names=F.vertex_labels, ax=ax)
    names = [text.get_text() for text in names_in(ax.child_axes[0])]
    assert names == ["a$b$", "$\\frac", "\\ud800"]
    sc.report(C, tmp_path / "names.html")


def test_numbers_of_clusters_in_one_place_are_apart(ax):
    """Each is next to a vertex of its own cluster."""
    pos = np.random.default_rng(0).standard_normal((60, 2))
    pos[:10] *= 1e-3
    labels = np.arange(60) % 5
    C = sc.coarsen(sc.CellularSheaf.constant(nx.cycle_graph(60)), sc.Partition(labels), 1)
    plot.partition(C, pos, ax=ax)
    fine = ax.child_axes[0]
    assert not overlapping_texts(fine)
    at = [np.flatnonzero((pos == number.xy).all(axis=1))[0] for number in fine.texts]
    assert labels[at].tolist() == [int(number.get_text()) for number in fine.texts]


def test_all_colours_are_used_about_equally_often():
    """Two would be enough for a tree, but its branches would look like one cluster."""
    for K, most in ((12, 3), (10, 1)):
        axes = plot.partition(coarsened(nx.balanced_tree(2, 6), K), ax=Figure().add_subplot())
        colors = collections(axes.child_axes[1])["vertices"].get_facecolors()
        names = [tuple(color) for color in colors]
        assert len(set(names)) == (6 if K == 12 else 10)
        assert max(map(names.count, names)) <= most


@pytest.mark.parametrize("flip", [False, True])
def test_negative_edges_are_red_in_both_panels(flip, ax):
    G = nx.Graph([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3), (1, 4)])
    negative = [(0, 1), (2, 3), (1, 4)] if flip else []
    nx.set_edge_attributes(G, {e: -2.0 if e in negative else 2.0 for e in G.edges}, "weight")
    C = sc.coarsen(sc.CellularSheaf.signed(G), sc.Partition([0, 0, 0, 1, 1, 1]), 1)
    fine, coarse = panels(C, ax=ax)
    places = np.asarray(fine["vertices"].get_offsets())
    for name, own in (("internal edges", False), ("crossing edges", True)):
        edges = C.fine.edges[(C.fine.edges // 3).sum(axis=1) % 2 == own]
        np.testing.assert_array_equal(fine[name].get_segments(), places[edges])
        expected = [tuple(e) in negative for e in edges.tolist()]
        np.testing.assert_array_equal(is_red(fine[name]), expected)
    assert is_red(coarse["crossing edges"]).tolist() == [flip]
    assert ("red: negative" in note_of(ax.child_axes[0])) == flip


def test_coarse_vertices_with_zero_stalks_are_hollow(ax):
    F = sc.CellularSheaf.constant(nx.path_graph(6))
    _, coarse = panels(sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), [0, 2]), ax=ax)
    drawn = coarse["vertices"]
    assert drawn.get_facecolors()[0, :3].tolist() == [1, 1, 1]
    assert drawn.get_facecolors()[1, :3].tolist() != [1, 1, 1]
    assert 0 < drawn.get_sizes()[0] < drawn.get_sizes()[1]


@given(sheaves_with_partitions())
@settings(max_examples=15)
def test_partitions_of_every_kind_of_sheaf_can_be_drawn(drawn):
    F, P = drawn[:2]
    with ties_allowed():
        C = sc.coarsen(F, P, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for picture in (plot.partition, plot.spectra):
            ax = Figure().subplots()
            picture(C, ax=ax)
            draw(ax)


def segments(ax, label):
    return np.array(collections(ax)[label].get_segments())


def test_eliminated_and_remaining_vertices_are_drawn(ax):
    edges = np.asarray(EDGES)[:, ::-1]
    K = sc.eliminate(sc.CellularSheaf.constant(edges), keep=[0, 1, 2])
    assert plot.elimination(K, PLACES, ax=ax) is ax
    draw(ax)
    fine, left = ax.child_axes
    titles = fine.get_title(), left.get_title()
    assert titles == ("5 vertices, 2 eliminated", "3 vertices, 3 edges")
    np.testing.assert_array_equal(segments(fine, "edges"), PLACES[edges])
    np.testing.assert_array_equal(collections(fine)["eliminated"].get_offsets(), PLACES[[3, 4]])
    for panel in (fine, left):
        np.testing.assert_array_equal(collections(panel)["kept"].get_offsets(), PLACES[:3])
    ways = segments(left, "edges between former neighbours")
    np.testing.assert_array_equal(ways, PLACES[K.sheaf.edges])


def test_new_edges_are_dashed(ax):
    K = sc.eliminate(sc.CellularSheaf.constant(EDGES[:5]), keep=[0, 2])
    plot.elimination(K, dict(enumerate(PLACES)), ax=ax)
    left = collections(ax.child_axes[1])
    new = left["edges through eliminated vertices"]
    np.testing.assert_array_equal(new.get_segments(), PLACES[[[0, 2]]])
    assert new.get_linestyle()[0][1] is not None
    assert "edges between former neighbours" not in left


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
        for v, text in enumerate(panel.texts):
            assert text.arrow_patch or gaps(text, pos[:8]).argmin() == v


def test_junctions_are_hollow_unless_they_are_named_or_all_are():
    """They are kept as well, so that a user who keeps three vertices sees four."""
    F = sc.CellularSheaf.constant([[0, 1], [0, 2], [0, 3], [3, 4]])
    some, more = [1, 2, 4], [0, 1, 2, 4]
    cases = (some, None, [0]), (some, [1, 2], [0]), (more, more, []), ([1, 4], None, [])
    for keep, names, shown in cases:
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
    pos = np.random.default_rng(0).random((3001, 2))
    plot.elimination(sc.eliminate(F, keep=[0, 7]), pos, ax=ax)
    for panel in ax.child_axes:
        assert collections(panel)["kept"].get_sizes()[0] == 30
    assert collections(ax.child_axes[0])["eliminated"].get_sizes()[0] < 3


def test_eliminating_every_vertex_can_be_plotted(ax):
    plot.elimination(sc.eliminate(sc.CellularSheaf.constant(nx.path_graph(4))), ax=ax)
    draw(ax)
    titles = [panel.get_title() for panel in ax.child_axes]
    assert titles == ["4 vertices, 4 eliminated", "0 vertices, 0 edges"]
