"""What a pose graph holds, and what it refuses; means of information matrices."""

import dataclasses

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.synchronization import concentrations, isotropic_information
from sheafcoarsen.synchronization._pose_graph import order_of
from tests.support.helpers import assert_residual
from tests.unit.synchronization.conftest import pose_graph

EDGES = [[0, 1], [1, 2], [2, 0]]


def test_true_rotations_are_a_section_of_the_sheaf_weighted_by_kappa(dim):
    G, (R, _) = pose_graph(dim, EDGES)
    section = R.swapaxes(1, 2).reshape(-1, dim)
    delta = sc.coboundary(G.sheaf)
    assert_residual(delta @ section, delta, section, n=dim)
    assert_residual(G.sheaf.tail_data[:: dim**2] ** 2 - G.kappa, G.kappa, n=dim)
    assert (G.dim, G.n_edges, G.sheaf.n_edges, G.sheaf.map_shape) == (dim, 3, 3, (dim, dim))
    H = dataclasses.replace(G, rotations=np.tile(np.eye(dim), (3, 1, 1)))
    assert sc.global_sections(H.sheaf).h0 == dim


@pytest.mark.parametrize(
    ("labels", "order"),
    [
        (None, [0, 1, 2, 3]),
        ([7, -2, 10**30, 3], [2, 0, 3, 1]),
        ([7, "b", 2, 3], [0, 1, 2, 3]),
        (["d", "c", "b", "a"], [0, 1, 2, 3]),
    ],
)
def test_poses_are_ordered_by_ids_if_all_are_integers(labels, order):
    G, _ = pose_graph(2, EDGES, n=4, vertex_labels=labels)
    assert order_of(G).tolist() == order


def test_arrays_are_read_only_copies(dim):
    steps = np.ones((3, dim))
    G, _ = pose_graph(dim, EDGES)
    H = dataclasses.replace(G, translations=steps)
    steps[:] = 7
    assert (H.translations == 1).all()
    for name in ("edges", "rotations", "translations", "kappa", "tau"):
        assert not getattr(G, name).flags.writeable


def test_isolated_vertices_are_counted_and_labelled():
    G, _ = pose_graph(2, EDGES, n=5, vertex_labels="abcde")
    assert G.n_vertices == G.sheaf.n_vertices == 5
    assert dataclasses.replace(G, n_vertices=np.uint8(5)).n_vertices == 5
    assert G.sheaf.vertex_labels == tuple("abcde")
    assert repr(G) == "PoseGraph(SE(2), n_vertices=5, n_edges=3, without poses)"
    assert "components</th><td>3" in G._repr_html_()


def test_information_determines_the_weights_that_are_not_given(dim):
    size = dim * (dim + 1) // 2
    A = np.random.default_rng(0).standard_normal((3, size, size))
    information = A @ A.swapaxes(1, 2) + np.eye(size)
    information = (information + information.swapaxes(1, 2)) / 2
    edges, steps = [[0, 1], [1, 2], [2, 0]], np.ones((3, dim))
    G = sc.PoseGraph(edges, [np.eye(dim)] * 3, steps, information=information)
    traces = [
        np.trace(np.linalg.inv(information[:, s, s]), axis1=1, axis2=2)
        for s in (slice(dim), slice(dim, size))
    ]
    np.testing.assert_allclose(G.tau, dim / traces[0], rtol=1e-12)
    np.testing.assert_allclose(G.kappa, (size - dim) / traces[1] / (dim - 1), rtol=1e-12)
    np.testing.assert_array_equal(dataclasses.replace(G).kappa, G.kappa)
    with pytest.raises(ValueError, match=r"implies .*: omit `tau` .*, or pass information=None"):
        dataclasses.replace(G, tau=(1 + 2e-6) * G.tau)
    np.testing.assert_array_equal(dataclasses.replace(G, tau=(1 + 5e-7) * G.tau).kappa, G.kappa)


def test_landmarks_are_counted():
    seen = sc.Sightings([[0, 2], [1, 0]], np.zeros((2, 3)), 1.0)
    assert seen.n_landmarks == 3
    assert sc.Sightings([[0, 0]], [[0, 0]], 1, places=np.zeros((4, 2))).n_landmarks == 4


def test_concentrations_of_isotropic_information_are_recovered(dim):
    kappa, tau = np.array([2.0, 5e9, 1e-9]), np.array([3.0, 1e-6, 1e12])
    found = concentrations(isotropic_information(kappa, tau, dim), dim)
    assert_residual(found.kappa / kappa - 1, n=dim)
    assert_residual(found.tau / tau - 1, n=dim)
    assert not found.fails.any()


def test_blocks_that_are_not_positive_definite_are_reported(dim):
    size = dim * (dim + 1) // 2
    matrices = np.tile(np.eye(size), (4, 1, 1))
    matrices[1, 0, 0], matrices[2, -1, -1] = 0, -1
    matrices[3, 0, -1] = matrices[3, -1, 0] = 2  # each block is, the whole is not
    found = concentrations(matrices, dim)
    assert found.rotation_fails.tolist() == [False, False, True, False]
    assert found.fails.tolist() == [False, True, True, False]
    assert found.indefinite.tolist() == [False, False, False, True]
