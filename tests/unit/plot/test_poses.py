"""The picture of poses, read back from the artists."""

import dataclasses

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import sheafcoarsen as sc
from sheafcoarsen import plot
from tests.support.helpers import assert_residual
from tests.unit.plot.test_axes import collections, draw
from tests.unit.plot.test_graphs import segments
from tests.unit.synchronization.conftest import pose_graph, ring_with_chords


def test_odometry_and_loop_closures_join_their_poses(ax):
    G, _ = pose_graph(2, [*ring_with_chords(6, 0), [0, 3], [4, 4]], noise=0.1)
    S = sc.synchronize(G)
    assert plot.poses(S, ax=ax) is ax
    draw(ax)
    t = S.translations
    np.testing.assert_array_equal(segments(ax, "odometry"), t[G.edges[:5]])
    np.testing.assert_array_equal(segments(ax, "loop closures"), t[G.edges[5:7]])
    assert (ax.dataLim.min <= t.min(axis=0)).all()
    assert (ax.dataLim.max >= t.max(axis=0)).all()
    assert (ax.get_aspect(), ax.get_title()) == (1, "6 poses, 8 measurements")


def test_a_pose_graph_is_drawn_with_its_own_poses(ax):
    G, found = pose_graph(2, ring_with_chords(6, 0))
    plot.poses(dataclasses.replace(G, poses=found), ax=ax)
    np.testing.assert_array_equal(segments(ax, "odometry"), found[1][G.edges[:5]])
    reverse = dataclasses.replace(G, poses=found, vertex_labels=(0, 9, 2, 8, 4, 6))
    ways = segments(plot.poses(reverse, ax=Figure().add_subplot()), "odometry")
    np.testing.assert_array_equal(ways, found[1][G.edges[4:5]])


def test_the_worst_edges_are_ringed_and_others_left_out_stay_dashed(ax):
    G, _ = pose_graph(2, ring_with_chords(20, 20), noise=0.01)
    turned = G.rotations.copy()
    turned[[22, 30, 35]] = turned[[22, 30, 35]] @ [[0.0, -1.0], [1.0, 0.0]]
    S = sc.synchronize(dataclasses.replace(G, rotations=turned, kappa=1e4, tau=1e4), robust="tls")
    assert np.flatnonzero(S.weights < 0.5).tolist() == [22, 30, 35]
    plot.poses(S, outliers=2, ax=ax)
    worst = S.outliers()[:2]
    np.testing.assert_array_equal(segments(ax, "_worst edges"), S.translations[G.edges[worst]])
    rings = ax.collections[-1].get_offsets()
    np.testing.assert_allclose(rings, segments(ax, "_worst edges").mean(axis=1), rtol=1e-12)
    shown = [text.get_text() for text in ax.get_legend().get_texts()]
    assert shown[-2:] == ["left out", "middles of worst edges"]
    assert ax.get_title() == "20 poses, 40 measurements, 3 left out"
    rest = np.setdiff1d([22, 30, 35], worst)
    np.testing.assert_array_equal(segments(ax, "left out"), S.translations[G.edges[rest]])
    without = plot.poses(S, outliers=0, ax=Figure().add_subplot())
    assert set(collections(without)) == {"odometry", "loop closures"}
    ways = [segments(without, label) for label in collections(without)]
    assert sum(map(len, ways)) == 40 - 3


def test_many_edges_left_out_are_thin_and_not_ringed(ax):
    G, _ = pose_graph(2, ring_with_chords(40, 60))
    S = dataclasses.replace(sc.synchronize(G), weights=np.where(np.arange(100) < 40, 1.0, 0.4))
    plot.poses(S, ax=ax)
    lines = collections(ax)
    assert len(lines["left out"].get_segments()) == 60
    assert lines["left out"].get_zorder() < lines["odometry"].get_zorder()
    assert set(lines) == {"odometry", "loop closures", "left out"}


def test_poses_without_measurements_are_dots(ax):
    S = sc.synchronize(sc.PoseGraph([[0, 2]], [np.eye(2)], [[1.0, 0.0]], n_vertices=4))
    plot.poses(S, ax=ax)
    dots = collections(ax)["not measured from other poses"].get_offsets()
    assert len(dots) == 2
    assert len({*map(tuple, dots), *map(tuple, segments(ax, "loop closures")[0])}) == 4


@pytest.mark.parametrize(("layout", "inside"), [(None, True), ("constrained", False)])
def test_legends_are_inside_where_nothing_makes_space_below(layout, inside):
    G, _ = pose_graph(2, ring_with_chords(6, 3), noise=0.1)
    ax = plot.poses(sc.synchronize(G), ax=Figure(layout=layout).add_subplot())
    draw(ax)
    box = ax.get_legend().get_window_extent()
    assert (box.y0 > ax.bbox.y0) == inside
    assert box.y0 >= -2  # pixels


def test_components_are_side_by_side_each_with_the_landmarks_that_it_observed(ax):
    """Landmarks may join what measurements do not."""
    G, _ = pose_graph(2, [[0, 1], [1, 2], [3, 4], [4, 5]])
    seen, points = [[0, 0], [5, 1], [0, 2]], [[1, 2], [3, 4], [40, 0]]
    seen = sc.Sightings(seen, points, 1, labels=tuple("abcd"))
    S = sc.synchronize(dataclasses.replace(G, sightings=seen))
    plot.poses(S, ax=ax)
    ways, marks = segments(ax, "odometry"), collections(ax)["landmarks"].get_offsets()
    assert ways[:2, :, 0].max() < ways[2:, :, 0].min()
    assert ax.get_title() == "6 poses, 4 measurements, 2 components, a frame for each"
    here, there = ways[0, 0] - S.translations[0], ways[3, 1] - S.translations[5]
    assert there[0] > here[0] + 40
    assert_residual(marks - S.landmarks[:3] - [here, there, here], ways, n=6)
    assert np.isnan(S.landmarks[3]).all()  # no pose saw it
    assert np.isfinite(S.cochain()).all()
    one = sc.Sightings([[0, 0], [5, 0]], [[1, 2]] * 2, 1)
    with pytest.warns(sc.SingularProblemWarning, match="can move in 1 way"):
        joined = sc.synchronize(dataclasses.replace(G, sightings=one))
    other = plot.poses(joined, ax=Figure().add_subplot())
    np.testing.assert_array_equal(segments(other, "odometry")[3, 1], joined.translations[5])
    np.testing.assert_array_equal(collections(other)["landmarks"].get_offsets(), joined.landmarks)


@pytest.mark.parametrize("height", [0.01, 1.0])
def test_flat_poses_in_space_fill_their_panel(height):
    """With equal units; labels of a short vertical axis would overlap."""
    G, found = pose_graph(3, ring_with_chords(9, 4))
    G = dataclasses.replace(G, poses=(found[0], found[1] * [1, 1, height]))
    ax = plot.poses(G)
    draw(ax)
    spans = [np.ptp(limits()) for limits in (ax.get_xlim, ax.get_ylim, ax.get_zlim)]
    assert_residual(ax._box_aspect / ax._box_aspect[0] - spans / spans[0], 1.0, n=3)
    assert (len(ax.get_zticks()) == 1) == (height < 1)
    assert (ax.figure.get_figheight() < 5) == (height < 1)
    pyplot.close(ax.figure)


def test_spatial_poses_are_projected_onto_flat_axes(ax):
    G, _ = pose_graph(3, ring_with_chords(9, 4))
    G = dataclasses.replace(G, sightings=sc.Sightings([[0, 0]], [[1, 2, 3]], 1))
    S = sc.synchronize(G)
    solid = plot.poses(S, outliers=2)
    assert solid.name == "3d"
    draw(solid)
    # rings are above the path, and as opaque behind as in front
    rings = max(solid.collections, key=lambda item: item.get_zorder())
    assert rings.get_sizes() == [60]
    assert not solid.computed_zorder
    assert (rings.get_edgecolors()[:, 3] == 1).all()
    pyplot.close(solid.figure)
    plot.poses(S, ax=ax)
    draw(ax)
    lengths = np.linalg.norm(np.diff(segments(ax, "odometry"), axis=1), axis=2)
    whole = np.linalg.norm(np.diff(S.translations[:9], axis=0), axis=1)
    assert (lengths[:, 0] <= whole * (1 + 1e-12)).all()
    assert (lengths[:, 0] < 0.999 * whole).any()


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("n", [0, 1])
def test_a_single_pose_or_none_can_be_drawn(n, dim, ax, tmp_path):
    turns = np.zeros((0, dim, dim)), np.tile(np.eye(dim), (n, 1, 1))
    poses = turns[1], np.zeros((n, dim))
    G = sc.PoseGraph(np.zeros((0, 2), int), turns[0], np.zeros((0, dim)), poses=poses)
    plot.poses(sc.synchronize(G) if n else G, ax=ax)
    draw(ax)
    if n:
        sc.report(sc.synchronize(G), tmp_path / "pose.html")


@pytest.mark.large
@pytest.mark.parametrize("dim", [2, 3])
def test_legend_lines_of_a_large_plot_are_distinguishable(dim):
    G, _ = pose_graph(dim, ring_with_chords(2000, 600), noise=0.01)
    projection = {"projection": "3d"} if dim == 3 else {}
    ax = plot.poses(sc.synchronize(G), outliers=5, ax=Figure().add_subplot(**projection))
    legend = ax.get_legend()
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["loop closures", "odometry", "worst edges"]
    drawn = [line.get_linewidth() for line in legend.legend_handles]
    assert min(drawn) >= 1.5
