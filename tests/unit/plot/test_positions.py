"""Positions: views of surfaces, visible points, layouts of graphs, discs that do not overlap."""

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.spatial import ConvexHull

from sheafcoarsen.plot import surface
from sheafcoarsen.plot.positions import (
    _apart,
    _off_lines,
    _strongest,
    graph_layout,
    scene_of,
    spread_out,
    usual_gap,
    view_from,
)
from tests.support.helpers import assert_residual
from tests.support.meshes import icosphere


@pytest.mark.parametrize("up", ["x", "y", "z", "-x", "-y", "-z"])
@pytest.mark.parametrize(("elevation", "azimuth"), [(20, -60), (0, 0), (-35, 140)])
def test_view_axes_match_those_of_matplotlib(up, elevation, azimuth):
    """Points in its three-dimensional axes lie in the same directions, without perspective."""
    view = view_from((elevation, azimuth), up)
    axes = np.stack(view[:3])
    assert_residual(axes @ axes.T - np.eye(3), axes, n=3)
    assert np.linalg.det(axes) > 0
    ax = Figure(figsize=(5, 5)).add_subplot(projection="3d", proj_type="ortho")
    upwards = (-1 if up[0] == "-" else 1) * np.eye(3)["xyz".index(up[-1])]
    assert view.up @ upwards > 0
    assert abs(view.toward @ upwards - np.sin(np.radians(elevation))) < 1e-15
    points = np.random.default_rng(4).uniform(-1, 1, (6, 3))
    faces = np.arange(6).reshape(2, 3)
    surface(points, faces, view=(elevation, azimuth), up=up, ax=ax)
    ax.set_box_aspect((1, 1, 1))
    for set_limits in (ax.set_xlim, ax.set_ylim, ax.set_zlim):
        set_limits(-1, 1)
    M = ax.get_proj()
    theirs = (np.c_[points, np.ones(6)] @ M.T)[:, :2] - (np.array([0, 0, 0, 1]) @ M.T)[:2]
    ours = view.project(points)
    ratio = (theirs * ours).sum() / (ours * ours).sum()
    assert ratio > 0
    assert np.abs(theirs - ratio * ours).max() < 1e-6 * np.abs(theirs).max()


def test_shading_does_not_depend_on_the_side_of_a_face():
    points, faces = icosphere(2)
    scenes = (scene_of(points, some, (20, -60), "z") for some in (faces, faces[:, ::-1]))
    light, other = (scene.light for scene in scenes)
    assert_residual(np.abs(light - other).max(), light.max(), n=3)
    assert 0 <= light.min() < light.max() <= 1
    assert np.ptp(light) > 0.5


@pytest.mark.parametrize("coarser", [False, True])
def test_points_behind_another_face_are_not_visible(coarser):
    """Of a small square behind a large one, only the part outside its outline is seen."""
    square = np.array([[0, -1, -1], [0, 1, -1], [0, 1, 1], [0, -1, 1.0]])
    behind = square * [0, 0.4, 0.4] + [-1, 0.9, 0]
    points = np.vstack([square, behind])
    faces = np.array([[0, 1, 2, 3], [4, 5, 6, 7]])
    if coarser:  # as triangles of two sizes
        faces = np.vstack([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
    scene = scene_of(points, faces, (0, 0), "z")  # from x
    visible = scene.visible(np.arange(8))
    assert visible.tolist() == [True] * 4 + [False, True, True, False]
    assert scene.visible(np.arange(0)).shape == (0,)


def test_farthest_point_sampling_spreads_points():
    points = np.random.default_rng(6).random((400, 2))
    chosen = spread_out(points, 30)
    assert len(set(chosen.tolist())) == 30
    gap = usual_gap(points[chosen])
    assert gap > 2 * usual_gap(points[np.arange(30)])
    # every point is near one that is chosen
    distances = np.linalg.norm(points[:, None] - points[chosen][None], axis=2).min(axis=1)
    assert distances.max() < 1.2 * gap
    assert spread_out(np.zeros((5, 3)), 3).tolist() == [0]
    assert len(spread_out(points, 1000)) == 400
    assert usual_gap(np.zeros((1, 3))) == 1.0


def test_positions_are_finite_distinct_and_reproducible():
    paths = nx.path_graph(7), nx.path_graph(2), nx.empty_graph(30)
    G = nx.disjoint_union_all([nx.gnp_random_graph(40, 0.1, seed=2), nx.star_graph(9), *paths])
    edges = np.array(G.edges)
    pos = graph_layout(edges, len(G))
    assert np.isfinite(pos).all()
    assert len(np.unique(pos.round(6), axis=0)) == len(G)
    np.testing.assert_array_equal(graph_layout(edges, len(G)), pos)
    inside = np.linalg.norm(pos[edges[:, 0]] - pos[edges[:, 1]], axis=1).max()
    width, height = np.ptp(pos, axis=0)
    assert inside < max(width, height) / 2
    assert 0.5 < width / height < 2


def layout(G):
    """Return the positions of a graph, and the graph with numbers as names."""
    G = nx.convert_node_labels_to_integers(G)
    return graph_layout(np.array(G.edges), len(G)), G


@pytest.mark.parametrize("sides", [(8, 8), (6, 17), (15, 15), (30, 30), (40, 40)])
def test_layout_of_a_grid_is_parallel_to_the_axes_and_distances_follow_the_graph(sides):
    """Below the size limit of stress and above it; not on a corner, which would leave blanks."""
    pos, G = layout(nx.grid_2d_graph(*sides))
    width, height = np.ptp(pos, axis=0)
    assert ConvexHull(pos).volume > 0.8 * width * height
    assert width >= height
    distances = nx.single_source_shortest_path_length(G, 0)
    steps = np.array([distances[v] for v in range(len(G))])
    assert np.corrcoef(steps, np.linalg.norm(pos - pos[0], axis=1))[0, 1] > 0.95


@pytest.mark.parametrize("kinds", ["gppppp", "ppgppgpp"])
def test_components_fill_their_panel(kinds):
    """A path does not take the room of a square, in any order."""
    pieces = {"g": nx.grid_2d_graph(12, 12), "p": nx.path_graph(40)}
    pos, G = layout(nx.disjoint_union_all([pieces[kind] for kind in kinds]))
    own = [pos[list(members)] for members in nx.connected_components(G)]
    low, high = (np.array([bound(each, axis=0) for each in own]) for bound in (np.min, np.max))
    assert (high - low).prod(axis=1).sum() > 0.45 * np.ptp(pos, axis=0).prod()
    gaps = np.maximum(low[:, None] - high, low - high[:, None]).max(axis=2)
    assert (gaps + np.eye(len(own)) * 99 > 0.5).all()


@pytest.mark.parametrize(
    ("graph", "least", "most"),
    [
        (nx.grid_2d_graph(20, 60), 1.5, 1.7),
        (nx.grid_2d_graph(10, 100), 1.5, 5.2),
        (nx.path_graph(700), 1000, np.inf),
    ],
    ids=["wide", "wider", "a path, which stays a line"],
)
def test_layouts_of_flat_graphs_are_stretched(graph, least, most):
    """But not beyond what shows that the graph is long."""
    width, height = np.ptp(layout(graph)[0], axis=0)
    assert least * height < width < most * height or height == 0 < width


@pytest.mark.parametrize("n", [2, 40])
def test_overlapping_discs_are_separated(n):
    rng = np.random.default_rng(12)
    radii = rng.uniform(1, 5, n)
    centres = _apart(0.1 * rng.random((n, 2)), radii, np.zeros((0, 2), dtype=int))
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=2) + 100 * np.eye(n)
    overlap = radii[:, None] + radii[None] - distances
    assert overlap.max() < 0.1


def test_many_coinciding_discs_are_separated():
    """Also if one of them is far larger than the others."""
    n = 3000
    radii = np.ones(n)
    radii[0] = 60.0
    centres = _apart(np.random.default_rng(2).random((n, 2)), radii, np.zeros((0, 2), dtype=int))
    nearest = np.sort(np.linalg.norm(centres[1:200, None] - centres[None, 1:], axis=2), axis=1)
    assert np.median(nearest[:, 1]) > 1.4


@pytest.mark.parametrize("height", [0.0, -0.3])
def test_a_disc_is_moved_off_a_line_between_two_others(height):
    """And no disc that ends the line, lies on its extension, or is far from it."""
    centres = np.array([[0, 0], [10, 0], [4, height], [12, 0], [5, 5]])
    moved = _off_lines(centres, np.array([[0, 1], [1, 2], [0, 2]]), 1.0)
    np.testing.assert_array_equal(moved[[0, 1, 3, 4]], centres[[0, 1, 3, 4]])
    assert moved[2, 0] == 4
    assert 0.99 < abs(moved[2, 1]) <= 1
    assert moved[2, 1] * height >= 0


def test_linked_discs_are_placed_near_each_other():
    pairs = np.array([[0, 1], [1, 2]])
    centres = _apart(np.array([[0.0, 0], [1, 0], [2, 0]]), np.array([3.0, 5, 1]), pairs)
    between = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    assert (between > [8, 6]).all()
    assert (between < [20, 20]).all()


def test_strongest_links_and_a_spanning_tree_are_drawn():
    """Three of each cluster, and a tree that joins all: no weaker ones."""
    pairs = np.array([(a, b) for a in range(12) for b in range(a + 1, 12)])
    strength = np.random.default_rng(0).uniform(1, 10, len(pairs))
    strength[pairs[:, 0] == 0] = 1e-3  # among the strongest of none
    total = np.array([strength[(pairs == a).any(axis=1)].sum() for a in range(12)])
    relative = strength / np.sqrt(total[pairs].prod(axis=1))
    wanted = np.zeros(len(pairs), bool)
    for a in range(12):
        mine = np.flatnonzero((pairs == a).any(axis=1))
        wanted[mine[np.argsort(relative[mine])[-3:]]] = True
    tree = nx.maximum_spanning_edges(
        nx.Graph((a, b, {"weight": w}) for (a, b), w in zip(pairs.tolist(), relative, strict=True))
    )
    for a, b, _ in tree:
        wanted |= (pairs == sorted((a, b))).all(axis=1)
    assert np.array_equal(_strongest(pairs, strength, 12), wanted)
