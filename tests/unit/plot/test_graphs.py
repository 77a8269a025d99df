"""The picture of a coarsening: every vertex, edge and loop, read back from the artists."""

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
from tests.support.strategies import sheaves_with_partitions
from tests.unit.plot.test_axes import collections, draw

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


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
