"""Pictures hold what they should: read back from the artists, never from pixels."""

import subprocess
import sys
import warnings

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import sheafcoarsen as sc
from sheafcoarsen import plot
from sheafcoarsen.plot.layout import graph_layout
from tests.support.helpers import assert_residual, ties_allowed
from tests.support.strategies import sheaves_with_partitions

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(autouse=True)
def no_figure_is_left_open():
    from matplotlib import pyplot

    mpl.use("Agg")
    yield
    assert pyplot.get_fignums() == []


@pytest.fixture
def C():
    F = sc.CellularSheaf.constant(nx.karate_club_graph())
    return sc.coarsen(F, sc.select(F, 4), [1, 2, 3, 5])


def cochain(C, columns=None):
    shape = (C.fine.dim_c0,) if columns is None else (C.fine.dim_c0, columns)
    return np.random.default_rng(3).standard_normal(shape)


def collections(panel):
    return {collection.get_label(): collection for collection in panel.collections}


def draw(ax):
    """Draw everything, as saving it would."""
    ax.figure.canvas.draw()


def all_pictures(C):
    """Return the functions that draw each kind of picture, of one coarsening."""
    H = sc.Hierarchy(C.fine, (C,))
    return {
        "partition": lambda ax: plot.partition(C, ax=ax),
        "spectra": lambda ax: plot.spectra(C, ax=ax),
        "ledger": lambda ax: plot.ledger(sc.energy_ledger(C, cochain(C)), ax=ax),
        "quality": lambda ax: plot.quality(sc.spectral_quality(C, 2), sc.certificate(C), ax=ax),
        "hierarchy": lambda ax: plot.hierarchy(H, ax=ax),
    }


PICTURES = ("partition", "spectra", "ledger", "quality", "hierarchy")


@pytest.mark.parametrize("name", PICTURES)
def test_the_axes_given_are_drawn_into_and_returned(name, C, ax):
    before = dict(mpl.rcParams)
    assert all_pictures(C)[name](ax) is ax
    assert ax.get_children()
    draw(ax)
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("name", PICTURES)
def test_without_axes_a_figure_is_made(name, C):
    from matplotlib import pyplot

    ax = all_pictures(C)[name](None)
    try:
        assert isinstance(ax, Axes)
        assert pyplot.get_fignums() == [ax.figure.number]
        draw(ax)
    finally:
        pyplot.close(ax.figure)


@pytest.mark.parametrize("name", PICTURES)
def test_axes_carry_labels(name, C, ax):
    all_pictures(C)[name](ax)
    for panel in ax.child_axes or [ax]:
        assert panel.get_title()
        if name != "partition":
            assert panel.get_xlabel()
            assert panel.get_ylabel() or [label.get_text() for label in panel.get_yticklabels()]


@pytest.mark.parametrize("name", PICTURES)
def test_wrong_objects_are_refused(name):
    with pytest.raises(TypeError, match="must be a .*, got str"):
        getattr(plot, name)("C")


def test_something_else_than_axes_is_refused(C):
    with pytest.raises(TypeError, match="`ax` must be matplotlib axes, got Figure"):
        plot.spectra(C, ax=Figure())


# ---------------------------------------------------------------- partition


def test_partition_draws_every_vertex_edge_and_loop(C, ax):
    plot.partition(C, ax=ax)
    fine, coarse = map(collections, ax.child_axes)
    assert len(fine["vertices"].get_offsets()) == C.fine.n_vertices
    assert len(fine["internal edges"].get_segments()) == len(C.clusters.internal_edges)
    assert len(fine["crossing edges"].get_segments()) == len(C.clusters.crossing_edges)
    assert len(coarse["vertices"].get_offsets()) == 4
    assert len(coarse["crossing edges"].get_segments()) == C.n_crossing_edges
    assert len(coarse["loop-cells"].get_offsets()) == C.sheaf.n_edges - C.n_crossing_edges


def test_coarse_vertices_have_areas_in_proportion_to_their_stalks(C, ax):
    plot.partition(C, ax=ax)
    sizes = collections(ax.child_axes[1])["vertices"].get_sizes()
    np.testing.assert_allclose(sizes / sizes[0], C.ranks / C.ranks[0])
    assert len(set(sizes)) == 4


def test_coarse_edges_have_widths_in_proportion_to_their_stalks(C, ax):
    plot.partition(C, ax=ax)
    dims = C.sheaf.edge_dims
    drawn = collections(ax.child_axes[1])
    widths = np.array(drawn["crossing edges"].get_linewidths())
    np.testing.assert_allclose(widths / widths[0], dims[: len(widths)] / dims[0])
    assert len(set(widths.tolist())) > 1
    rings = np.array(drawn["loop-cells"].get_linewidths())
    np.testing.assert_allclose(rings / widths[0], dims[len(widths) :] / dims[0])


@pytest.mark.parametrize("K", [40, 300])
def test_rings_leave_room_for_the_edges_between_them(K):
    F = sc.gallery.bundle(nx.grid_2d_graph(40, 40), dim=2, noise=0.1, seed=0)
    ax = plot.partition(sc.coarsen(F, sc.select(F, K), sc.ranks.fixed(4).whole_multiplets()))
    draw(ax)
    coarse = ax.child_axes[1]
    rings = collections(coarse)["loop-cells"]
    places = coarse.transData.transform(rings.get_offsets()) * 72 / ax.figure.dpi
    nearest = np.sort(np.linalg.norm(places[:, None] - places, axis=2), axis=1)[:, 1]
    outer = np.sqrt(rings.get_sizes()) + rings.get_linewidths()
    mpl.pyplot.close(ax.figure)
    assert np.mean(outer < nearest) > 0.7


def test_given_positions_are_used_and_coarse_ones_are_their_means(C, ax):
    pos = np.random.default_rng(5).standard_normal((34, 2))
    plot.partition(C, pos, ax=ax)
    fine, coarse = map(collections, ax.child_axes)
    np.testing.assert_array_equal(fine["vertices"].get_offsets(), pos)
    e = C.clusters.internal_edges[7]
    ends = [segment.tolist() for segment in fine["internal edges"].get_segments()]
    assert pos[C.fine.edges[e]].tolist() in ends
    for a in range(4):
        mean = pos[C.partition.cluster(a)].mean(axis=0)
        assert_residual(coarse["vertices"].get_offsets()[a] - mean, pos, n=34)
    assert "as given" in ax.child_axes[0].get_xlabel()


def test_positions_by_name(ax):
    G = nx.relabel_nodes(nx.cycle_graph(4), dict(enumerate("dbca")))
    F = sc.CellularSheaf.constant(G)
    places = {name: (i, i * i) for i, name in enumerate("abcd")}
    C = sc.coarsen(F, sc.Partition([0, 0, 1, 1]), 1)
    plot.partition(C, places, ax=ax)
    drawn = collections(ax.child_axes[0])["vertices"].get_offsets()
    np.testing.assert_array_equal(drawn, [places[name] for name in F.vertex_labels])
    with pytest.raises(ValueError, match="no place for 'c'"):
        plot.partition(C, {name: place for name, place in places.items() if name != "c"}, ax=ax)


@pytest.mark.parametrize(
    ("pos", "message"),
    [
        (np.zeros((33, 2)), r"for each of 34 vertices, got shape \(33, 2\)"),
        (np.zeros((34, 3)), r"got shape \(34, 3\)"),
        (
            np.where(np.arange(68).reshape(34, 2) == 9, np.nan, 0),
            "`pos` must be finite, got .* for vertex 4",
        ),
    ],
)
def test_bad_positions_are_refused(pos, message, C, ax):
    with pytest.raises(ValueError, match=message):
        plot.partition(C, pos, ax=ax)


def luminance(colors):
    return np.asarray(colors)[:, :3] @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("K", [4, 20])
def test_neighbouring_clusters_differ_in_grey(K, ax):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(12, 12))
    C = sc.coarsen(F, sc.select(F, K), 2)
    plot.partition(C, ax=ax)
    fine, coarse = map(collections, ax.child_axes)
    grey = luminance(coarse["vertices"].get_facecolors())
    a, b = C.clusters.pairs.T
    assert np.abs(grey[a] - grey[b]).min() > 0.05
    np.testing.assert_array_equal(
        luminance(fine["vertices"].get_facecolors()), grey[C.partition.labels]
    )


def test_few_clusters_carry_their_numbers(C, ax):
    plot.partition(C, ax=ax)
    for panel in ax.child_axes:
        assert [text.get_text() for text in panel.texts] == ["0", "1", "2", "3"]


def test_a_stalk_of_dimension_zero_is_hollow(ax):
    C = sc.coarsen(
        sc.CellularSheaf.constant(nx.path_graph(6)), sc.Partition([0, 0, 0, 1, 1, 1]), [0, 2]
    )
    plot.partition(C, ax=ax)
    drawn = collections(ax.child_axes[1])["vertices"]
    assert drawn.get_facecolors()[0, :3].tolist() == [1, 1, 1]
    assert drawn.get_facecolors()[1, :3].tolist() != [1, 1, 1]
    assert 0 < drawn.get_sizes()[0] < drawn.get_sizes()[1]


@given(sheaves_with_partitions())
@settings(max_examples=15)
def test_any_sheaf_can_be_drawn(drawn):
    F, P = drawn[:2]
    with ties_allowed():
        C = sc.coarsen(F, P, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for picture in (plot.partition, plot.spectra):
            ax = Figure().subplots()
            picture(C, ax=ax)
            draw(ax)


# ---------------------------------------------------------------- layout


def test_places_are_finite_distinct_and_repeatable():
    pieces = [
        nx.gnp_random_graph(40, 0.1, seed=2),
        nx.star_graph(9),
        nx.path_graph(7),
        nx.path_graph(2),
        nx.empty_graph(30),
    ]
    G = nx.disjoint_union_all(pieces)
    edges = np.array(G.edges)
    pos = graph_layout(edges, len(G))
    assert np.isfinite(pos).all()
    assert len(np.unique(pos.round(6), axis=0)) == len(G)
    np.testing.assert_array_equal(graph_layout(edges, len(G)), pos)
    inside = np.linalg.norm(pos[edges[:, 0]] - pos[edges[:, 1]], axis=1).max()
    assert inside < np.ptp(pos, axis=0).max() / 2


@pytest.mark.parametrize("side", [15, 40])
def test_a_grid_looks_like_a_grid(side):
    """Distances in the plane follow those in the graph, below the size limit of stress and above it."""
    G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    pos = graph_layout(np.array(G.edges), len(G))
    distances = nx.single_source_shortest_path_length(G, 0)
    steps = np.array([distances[v] for v in range(len(G))])
    lengths = np.linalg.norm(pos - pos[0], axis=1)
    assert np.corrcoef(steps, lengths)[0, 1] > 0.95


# ---------------------------------------------------------------- spectra


def test_spectra_show_kept_and_discarded_eigenvalues(C, ax):
    plot.spectra(C, ax=ax)
    drawn = collections(ax)
    for a in range(4):
        kept = drawn["kept"].get_offsets()
        assert_residual(
            kept[kept[:, 0] == a, 1] - C.modes.eigenvalues(a), C.modes.operator_norms[a], n=34
        )
    next_ones = np.asarray(drawn["first discarded"].get_offsets())
    finite = np.isfinite(C.modes.next_eigenvalues)
    assert not finite.all()
    np.testing.assert_array_equal(
        next_ones, np.stack([np.arange(4), C.modes.next_eigenvalues])[:, finite].T
    )
    for (_, low), (x, high) in drawn["gap"].get_segments():
        a = int(x)
        assert high == C.modes.next_eigenvalues[a]
        assert_residual(low - C.modes.eigenvalues(a)[-1], C.modes.operator_norms[a], n=34)
    assert "internal" in ax.get_ylabel()


def test_spectra_of_many_clusters_are_sorted(ax):
    F = sc.CellularSheaf.constant(nx.gnm_random_graph(400, 900, seed=4))
    C = sc.coarsen(F, sc.select(F, 90), 2)
    plot.spectra(C, ax=ax)
    (line,) = [line for line in ax.lines if line.get_label() == "first discarded"]
    finite = C.modes.next_eigenvalues[np.isfinite(C.modes.next_eigenvalues)]
    np.testing.assert_array_equal(line.get_ydata(), np.sort(finite))
    kept = collections(ax)["kept"].get_offsets()
    assert len(kept) == C.ranks.sum()
    level = 4 * C.clusters.dims.max() * np.finfo(float).eps * C.modes.operator_norms.max()
    assert_residual(np.sort(kept[:, 1]) - np.sort(C.modes.scores), level, n=1, eps=1.0)


def test_spectra_name_the_operator_and_the_ties(ax):
    C = sc.coarsen(
        sc.CellularSheaf.constant(nx.complete_graph(6)),
        sc.Partition([0, 0, 0, 1, 1, 1]),
        2,
        local_operator="principal",
    )
    assert C.modes.tied.all()
    plot.spectra(C, ax=ax)
    (label,) = [label for label in collections(ax) if "splits a multiple eigenvalue" in label]
    assert "(2)" in label
    np.testing.assert_array_equal(
        collections(ax)[label].get_offsets()[:, 1], C.modes.next_eigenvalues
    )
    assert "principal" in ax.get_ylabel()


def test_a_basis_of_your_own_has_no_spectra(C, ax):
    with pytest.raises(ValueError, match="a basis of your own has no local spectra"):
        plot.spectra(
            sc.coarsen(C.fine, C.partition, basis=[C.modes.basis(a) for a in range(4)]), ax=ax
        )


def test_zeros_stand_at_zero_beside_decades(ax):
    """Eigenvalues over eight decades and zeros: all are inside the axes, and 0 is marked."""
    F = sc.CellularSheaf.constant(nx.path_graph(12), dim=1)
    weights = np.repeat(10.0 ** np.arange(0, -11, -1), 1)
    F = F.with_maps(F.tail_data * weights, F.head_data * weights)
    plot.spectra(sc.coarsen(F, sc.Partition(np.arange(12) // 4), 2), ax=ax)
    draw(ax)
    assert 0.0 in ax.get_yticks()
    low, high = ax.get_ylim()
    values = np.concatenate(
        [
            c.get_offsets()[:, 1]
            for c in (collections(ax)["kept"], collections(ax)["first discarded"])
        ]
    )
    assert low < values.min() == 0
    assert values.max() < high
    assert low < 0


# ---------------------------------------------------------------- ledger


def bars(ax):
    """Return the bars by the name of their line, as (start, signed length)."""
    names = {
        tick: label.get_text()
        for tick, label in zip(ax.get_yticks().tolist(), ax.get_yticklabels(), strict=True)
    }
    return {
        names[round(bar.get_y() + bar.get_height() / 2)]: (bar.get_x(), bar.get_width())
        for bar in ax.patches
    }


@pytest.mark.parametrize("operator", ["internal", "principal"])
@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_the_waterfall_ends_at_the_fine_energy(operator, columns, scale, C, ax):
    F = C.fine.with_maps(C.fine.tail_data * scale, C.fine.head_data * scale)
    E = sc.energy_ledger(
        sc.coarsen(F, C.partition, 2, local_operator=operator), cochain(C, columns)
    )
    plot.ledger(E, ax=ax)
    draw(ax)
    drawn = bars(ax)
    assert set(drawn) == {*E.lines, "fine energy"}
    moduli = sum(abs(length) for _, length in drawn.values())
    for name, value in E.lines.items():
        assert_residual(drawn[name][1] - np.sum(value), moduli, n=6)
    end = 0.0
    for start, length in list(drawn.values())[:-1]:
        assert_residual(start - end, moduli, n=6)
        end = start + length
    start, length = drawn["fine energy"]
    assert start == 0
    assert length == np.sum(E.fine_energy)
    assert_residual(end - length, moduli, n=34)
    assert ("summed over 3 cochains" in ax.get_xlabel()) == (columns == 3)


def test_kept_lines_come_first(C, ax):
    plot.ledger(sc.energy_ledger(C, cochain(C)), ax=ax)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names[:2] == ["retained internal", "retained crossing"]
    assert names[-1] == "fine energy"
    low, high = ax.get_xlim()
    for start, length in bars(ax).values():
        assert low <= min(start, start + length)
        assert max(start, start + length) <= high


def test_a_ledger_of_levels(ax):
    H = sc.coarsen_levels(
        sc.CellularSheaf.constant(nx.grid_2d_graph(12, 12)), factor=4, n_levels=2, rank=2
    )
    E = H.ledger(np.random.default_rng(1).standard_normal(144))
    plot.ledger(E, ax=ax)
    drawn = bars(ax)
    assert set(drawn) == {*E.lines, "fine energy"}
    assert_residual(
        sum(length for name, (_, length) in drawn.items() if name != "fine energy") - E.fine_energy,
        E.fine_energy,
        n=144,
    )


def test_no_energy_at_all(C, ax):
    plot.ledger(sc.energy_ledger(C, np.zeros(34)), ax=ax)
    draw(ax)
    assert all(length == 0 for _, length in bars(ax).values())


# ---------------------------------------------------------------- quality


def points(ax, start):
    (line,) = [line for line in ax.lines if str(line.get_label()).startswith(start)]
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def test_eigenvalues_and_their_band(C, ax):
    Q, B = sc.spectral_quality(C, 6), sc.certificate(C)
    plot.quality(Q, B, ax=ax)
    draw(ax)
    x, y = points(ax, "fine")
    np.testing.assert_array_equal(y, Q.fine)
    np.testing.assert_array_equal(x, 2 + np.arange(len(Q.fine)))  # the first is zero
    np.testing.assert_array_equal(points(ax, "coarse")[1], Q.coarse)
    lower, upper = B.interval(Q.coarse)
    np.testing.assert_allclose([bar.get_y() for bar in ax.patches], lower)
    np.testing.assert_allclose([bar.get_y() + bar.get_height() for bar in ax.patches], upper)
    np.testing.assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in ax.patches], x)
    low, high = ax.get_ylim()
    assert low < min(lower.min(), Q.fine.min())
    assert high > Q.coarse.max()


def test_without_a_certificate_there_is_no_band(C, ax):
    plot.quality(sc.spectral_quality(C, 6), ax=ax)
    assert not ax.patches


def test_the_band_encloses_the_fine_ones_also_where_a_section_is_lost(ax):
    C = sc.coarsen(
        sc.CellularSheaf.constant(nx.path_graph(6)), sc.Partition([0, 0, 0, 1, 1, 1]), [2, 0]
    )
    Q, B = sc.spectral_quality(C, 2), sc.certificate(C)
    assert (Q.kernel_fine, Q.kernel_coarse) == (1, 0)
    plot.quality(Q, B, ax=ax)
    draw(ax)
    fine = dict(zip(*(values.tolist() for values in points(ax, "fine")), strict=True))
    enclosed = 0
    for bar in ax.patches:
        i = round(bar.get_x() + bar.get_width() / 2)
        if i in fine:
            enclosed += 1
            assert bar.get_y() <= fine[i] <= bar.get_y() + bar.get_height()
    assert enclosed


def test_what_the_coarse_space_lacks_is_left_out_and_counted(ax):
    C = sc.coarsen(
        sc.CellularSheaf.constant(nx.complete_graph(6)), sc.Partition([0, 0, 0, 1, 1, 1]), 1
    )
    Q = sc.spectral_quality(C, 1)
    assert np.isinf(Q.coarse).sum() == 4
    plot.quality(Q, sc.certificate(C), ax=ax)
    draw(ax)
    assert len(points(ax, "coarse")[0]) == 1
    assert len(points(ax, "fine")[0]) == 5
    assert "4 have no coarse one" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_a_lower_end_of_zero_stays_out_of_the_logarithm(ax):
    with ties_allowed():
        C = sc.coarsen(
            sc.CellularSheaf.constant(nx.path_graph(6)), sc.Partition([0, 1, 0, 1, 0, 1]), 1
        )
    B = sc.certificate(C)
    assert B.gamma == 0
    Q = sc.spectral_quality(C, 1)
    plot.quality(Q, B, ax=ax)
    draw(ax)
    assert ax.get_ylim()[0] > 1e-5 * Q.fine.min()
    assert "below the axis" in "".join(text.get_text() for text in ax.get_legend().get_texts())


# ---------------------------------------------------------------- hierarchy


def test_hierarchy_shows_the_sizes_of_all_sheaves(ax):
    H = sc.coarsen_levels(
        sc.CellularSheaf.constant(nx.grid_2d_graph(16, 16)), factor=4, n_levels=3, rank=2
    )
    plot.hierarchy(H, ax=ax)
    draw(ax)
    lines = {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in ax.lines}
    assert lines["vertices"] == [F.n_vertices for F in H.sheaves]
    assert lines["$\\dim C^0$"] == [F.dim_c0 for F in H.sheaves]
    assert lines["$\\dim C^1$"] == [F.dim_c1 for F in H.sheaves]
    assert lines["edges, with loops"] == [F.n_edges for F in H.sheaves]
    assert lines["nonzeros of $L$"] == [len(sc.laplacian(F).data) for F in H.sheaves]
    assert [text.get_text() for text in ax.texts] == ["256", "64", "16", "4"]


def test_a_hierarchy_without_levels(ax):
    plot.hierarchy(sc.Hierarchy(sc.CellularSheaf.constant(nx.empty_graph(3)), ()), ax=ax)
    draw(ax)
    assert "0 levels" in ax.get_title()


# ---------------------------------------------------------------- sizes


def test_one_cluster(ax):
    C = sc.coarsen(sc.CellularSheaf.constant(nx.path_graph(5)), sc.Partition([0] * 5), 2)
    for picture in all_pictures(C).values():
        own = Figure().subplots()
        picture(own)
        draw(own)
    plot.partition(C, ax=ax)
    assert len(collections(ax.child_axes[1])["vertices"].get_offsets()) == 1


def test_many_clusters_are_one_collection_and_pixels(ax):
    """So many that lines are left out, which is said; every vertex is there."""
    n = 60_000
    v = np.arange(n)
    F = sc.CellularSheaf.constant(np.stack([v, (v + 1) % n], axis=1))
    C = sc.coarsen(F, sc.Partition(v // 3), 1)
    plot.partition(C, np.stack([np.cos(v / n), np.sin(v / n)], axis=1), ax=ax)
    fine, coarse = map(collections, ax.child_axes)
    assert len(coarse["vertices"].get_offsets()) == 20_000
    assert len(fine["vertices"].get_offsets()) == n
    assert coarse["vertices"].get_rasterized()
    assert "internal edges" not in fine
    assert "60,000 edges not drawn" in ax.child_axes[0].get_xlabel()
    draw(ax)
    own = Figure().subplots()
    plot.spectra(C, ax=own)
    assert len(collections(own)["kept"].get_offsets()) == 20_000
    draw(own)


# ---------------------------------------------------------------- without matplotlib


def test_importing_the_library_does_not_load_matplotlib():
    code = "import sys, sheafcoarsen as sc; sc.plot.ledger; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", PICTURES)
def test_without_matplotlib_the_error_says_what_to_install(name, C, monkeypatch):
    picture = all_pictures(C)[name]
    for module in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [_NoMatplotlib(), *sys.meta_path])
    with pytest.raises(ImportError, match=r'pip install "sheafcoarsen\[plot\]"'):
        picture(None)


class _NoMatplotlib:
    """An import hook that does not find matplotlib."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
