"""What is seen of a surface, and from where."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from sheafcoarsen.plot import surface
from sheafcoarsen.plot._surface import scene_of
from sheafcoarsen.plot.projection import spread_out, usual_gap, view_from, visible_points
from tests.support.helpers import assert_residual
from tests.unit.gallery.test_surfaces import icosphere


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
    light, other = (
        scene_of(points, some, (20, -60), "z").light for some in (faces, faces[:, ::-1])
    )
    assert_residual(np.abs(light - other).max(), light.max(), n=3)
    assert 0 <= light.min() < light.max() <= 1
    assert np.ptp(light) > 0.5


@pytest.mark.parametrize("coarser", [False, True])
def test_points_behind_another_face_are_not_visible(coarser):
    """A small square behind a large one is hidden where it is not beside it."""
    view = view_from((0, 0), "z")  # from x
    square = np.array([[0, -1, -1], [0, 1, -1], [0, 1, 1], [0, -1, 1.0]])
    behind = square * [0, 0.4, 0.4] + [-1, 0.9, 0]
    points = np.vstack([square, behind])
    faces = np.array([[0, 1, 2, 3], [4, 5, 6, 7]])
    if coarser:  # as triangles of two sizes
        faces = np.vstack([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
    visible = visible_points(np.arange(8), points, faces, view)
    assert visible.tolist() == [True] * 4 + [False, True, True, False]
    assert visible_points(np.arange(0), points, faces, view).shape == (0,)


def test_points_of_a_sphere_that_face_the_viewer_are_visible():
    points, faces = icosphere(2)
    view = view_from((20, -60), "z")
    visible = visible_points(np.arange(len(points)), points, faces, view)
    depth = points @ view.toward
    assert visible[depth > 0.15].all()
    assert not visible[depth < -0.3].any()


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
