"""Pose graphs written and read again."""

import dataclasses
import re

import numpy as np
import pytest

import sheafcoarsen as sc
from tests.support.helpers import assert_residual
from tests.unit.synchronization.conftest import pose_graph, ring_with_chords


def graph(dim, poses=True, landmarks=False, **options):
    G, found = pose_graph(dim, ring_with_chords(8, 5), **options)
    if poses:
        G = dataclasses.replace(G, poses=found)
    if landmarks:
        rng = np.random.default_rng(2)
        places = rng.standard_normal((3, dim)) if poses else None
        points = rng.standard_normal((3, dim))
        seen = sc.Sightings([[0, 0], [1, 2], [3, 1]], points, [1.0, 2.0, 0.1], places=places)
        G = dataclasses.replace(G, sightings=seen)
    return G


def assert_equal_graphs(G, H):
    np.testing.assert_array_equal(H.edges, G.edges)
    np.testing.assert_array_equal(H.translations, G.translations)
    for name in ("kappa", "tau"):
        assert_residual(getattr(H, name) / getattr(G, name) - 1, n=6)
    assert_residual(H.rotations - G.rotations, n=G.dim)
    assert (H.poses is None) == (G.poses is None)
    if G.poses is not None:
        assert_residual(H.poses[0] - G.poses[0], n=G.dim)
        np.testing.assert_array_equal(H.poses[1], G.poses[1])


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("poses", [True, False])
@pytest.mark.parametrize("landmarks", [True, False])
@pytest.mark.parametrize("name", ["graph.g2o", "graph.g2o.gz"])
def test_g2o_round_trip(tmp_path, dim, poses, landmarks, name):
    G = graph(dim, poses, landmarks, noise=0.3)
    sc.write_g2o(tmp_path / name, G)
    H = sc.read_g2o(tmp_path / name, poses=True)
    assert_equal_graphs(G, H)
    assert H.vertex_labels == tuple(range(8))
    assert (H.sightings is None) == (not landmarks)
    if landmarks:
        order = list(H.sightings.labels)
        own = [8 + k for k in G.sightings.edges[:, 1]]
        assert [order[k] for k in H.sightings.edges[:, 1]] == own
        np.testing.assert_array_equal(H.sightings.points, G.sightings.points)
        assert_residual(H.sightings.tau / G.sightings.tau - 1, n=dim)
        assert (H.sightings.places is None) == (not poses)
        if poses:
            np.testing.assert_array_equal(H.sightings.places, G.sightings.places)


@pytest.mark.parametrize("dim", [2, 3])
def test_information_matrices_are_kept(tmp_path, dim):
    size = 3 if dim == 2 else 6
    A = np.random.default_rng(7).standard_normal((13, size, size))
    omega = A @ A.swapaxes(1, 2) + np.eye(size)
    G = dataclasses.replace(graph(dim), information=omega, kappa=None, tau=None)
    sc.write_g2o(tmp_path / "g.g2o", G)
    np.testing.assert_array_equal(sc.read_g2o(tmp_path / "g.g2o", poses=True).information, omega)


@pytest.mark.parametrize("dim", [2, 3])
def test_computed_poses_replace_those_of_the_graph(tmp_path, dim):
    """Landmarks without sightings are omitted."""
    G = graph(dim, landmarks=True, noise=0.3)
    seen = dataclasses.replace(G.sightings, edges=[[0, 0], [1, 2], [3, 2]])
    G = dataclasses.replace(G, sightings=seen)
    S = sc.synchronize(G, refine=True)
    sc.write_g2o(tmp_path / "g.g2o", G, S)
    H = sc.read_g2o(tmp_path / "g.g2o", poses=True)
    assert_residual(H.poses[0] - S.rotations, n=dim)
    words = [line.split() for line in (tmp_path / "g.g2o").read_text().splitlines()]
    assert all(float(w[8]) >= 0 for w in words if w[0] == "VERTEX_SE3:QUAT")  # qw
    np.testing.assert_array_equal(H.poses[1], S.translations)
    assert abs(H.poses[1] - G.poses[1]).max() > 0.01
    assert H.sightings.labels == (8, 10)
    np.testing.assert_array_equal(H.sightings.places, S.landmarks[[0, 2]])


def test_equal_graphs_give_equal_files(tmp_path):
    G = graph(3)
    for name in ("a.g2o.gz", "b.g2o.gz"):
        sc.write_g2o(tmp_path / name, G)
    first = (tmp_path / "a.g2o.gz").read_bytes()
    assert first == (tmp_path / "b.g2o.gz").read_bytes()
    assert first[4:8] == bytes(4)  # the time stamp


def test_labels_are_written_as_ids(tmp_path):
    G = graph(2, vertex_labels=(40, 3, 10**30, 7, 8, 9, 11, 12))
    sc.write_g2o(tmp_path / "g.g2o", G)
    assert sc.read_g2o(tmp_path / "g.g2o", poses=True).vertex_labels == G.vertex_labels
    named = dataclasses.replace(G, vertex_labels="abcdefgh")
    with pytest.raises(TypeError, match=re.escape("`G.vertex_labels` must be integers")):
        sc.write_g2o(tmp_path / "g.g2o", named)


def test_unlabelled_landmarks_follow_the_largest_id(tmp_path):
    G = graph(2, True, True, vertex_labels=(40, 3, 50, 7, 8, 9, 11, 12))
    sc.write_g2o(tmp_path / "g.g2o", G)
    H = sc.read_g2o(tmp_path / "g.g2o", poses=True)
    assert H.sightings.labels == (51, 52, 53)
    assert_equal_graphs(G, H)
    np.testing.assert_array_equal(H.sightings.edges[:, 0], G.sightings.edges[:, 0])
    named = dataclasses.replace(G.sightings, labels=(60, 50, 40))
    trees = dataclasses.replace(G.sightings, labels=("a", "b", "c"))
    hint = "dataclasses.replace(G.sightings, labels=None) has numbers instead"
    with pytest.raises(TypeError, match=re.escape(hint)):
        sc.write_g2o(tmp_path / "g.g2o", dataclasses.replace(G, sightings=trees))
    with pytest.raises(ValueError, match=r"labels\[1\]` = 50 is also the id of pose 2"):
        sc.write_g2o(tmp_path / "g.g2o", dataclasses.replace(G, sightings=named))


def test_pose_that_only_sees_a_landmark_is_written(tmp_path):
    G, _ = pose_graph(2, [[0, 1]], n=3)
    seen = sc.Sightings([[2, 0]], [[1.0, 2.0]], [1.0])
    sc.write_g2o(tmp_path / "g.g2o", dataclasses.replace(G, sightings=seen))
    H = sc.read_g2o(tmp_path / "g.g2o", poses=True)
    assert (H.n_vertices, H.vertex_labels[H.sightings.edges[0, 0]]) == (3, 2)
    sc.write_g2o(tmp_path / "g.g2o", G, sc.synchronize(G))  # although nothing places pose 2
    assert sc.read_g2o(tmp_path / "g.g2o", poses=True).n_vertices == 3


@pytest.mark.parametrize("dim", [2, 3])
def test_poses_without_measurements_are_written(tmp_path, dim):
    none, poses = (np.zeros((0, dim, dim)), np.zeros((0, dim))), (np.eye(dim)[None], [[2.0] * dim])
    sc.write_g2o(tmp_path / "g.g2o", sc.PoseGraph([], *none, n_vertices=1, poses=poses))
    H = sc.read_g2o(tmp_path / "g.g2o", poses=True)
    assert (H.n_edges, H.poses[1].tolist()) == (0, [[2.0] * dim])


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["intel", "csail", "parking_garage"])
def test_round_trip_of_real_files(tmp_path, data_folder, name):
    G = sc.read_g2o(data_folder / f"g2o_{name}.g2o.gz", poses=True)
    sc.write_g2o(tmp_path / "g.g2o", G)
    H = sc.read_g2o(tmp_path / "g.g2o", poses=True)
    assert_equal_graphs(G, H)
    np.testing.assert_array_equal(H.information, G.information)
    assert H.vertex_labels == G.vertex_labels
