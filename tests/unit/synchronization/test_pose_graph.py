"""Pose graphs, sheaves read as connections, angles, frames by modes and anchors, positions."""

import dataclasses
import warnings

import networkx as nx
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import sheafcoarsen as sc
from sheafcoarsen.synchronization._pose_graph import connection_from
from sheafcoarsen.synchronization.connection import angles_of, read_connection
from sheafcoarsen.synchronization.fits import nearest_rotations, spectral_frames, with_positions
from tests.support.helpers import assert_residual, subspace_difference
from tests.unit.synchronization.conftest import (
    cost_by_hand,
    plane,
    pose_graph,
    random_rotations,
    reflected,
    ring_with_chords,
    sighted,
)

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


def test_arrays_are_read_only_copies(dim):
    steps = np.ones((3, dim))
    G, _ = pose_graph(dim, EDGES)
    H = dataclasses.replace(G, translations=steps)
    steps[:] = 7
    assert (H.translations == 1).all()
    for name in ("edges", "rotations", "translations", "kappa", "tau"):
        assert not getattr(G, name).flags.writeable


def test_rotations_in_single_precision_are_replaced_by_the_nearest_ones():
    R = random_rotations(3, 3, np.random.default_rng(0)).astype(np.float32)
    G, H = (sc.PoseGraph([[0, 1], [1, 2], [0, 2]], A, np.eye(3)) for A in (R, R.astype(">f4")))
    np.testing.assert_array_equal(G.rotations, H.rotations)
    assert_residual(G.rotations @ G.rotations.swapaxes(1, 2) - np.eye(3), G.rotations, n=3)
    assert_residual(G.rotations - R, R, n=3, eps=np.finfo(np.float32).eps)
    assert dataclasses.replace(G, tau=2.0).tau.tolist() == [2.0] * 3


def test_tiny_translations_are_in_range():
    G = sc.PoseGraph([[0, 1]], [np.eye(2)], [[1e-155, 0.0]])
    assert sc.synchronize(G).translations[1, 0] == 1e-155


def test_isolated_vertices_and_landmarks_that_nobody_sees_are_counted():
    G, _ = pose_graph(2, EDGES, n=5, vertex_labels="abcde")
    assert G.n_vertices == G.sheaf.n_vertices == 5
    assert dataclasses.replace(G, n_vertices=np.uint8(5)).n_vertices == 5
    assert G.sheaf.vertex_labels == tuple("abcde")
    assert repr(G) == "PoseGraph(SE(2), n_vertices=5, n_edges=3, without poses)"
    assert "components</th><td>3" in G._repr_html_()
    assert sc.Sightings([[0, 2], [1, 0]], np.zeros((2, 3)), 1.0).n_landmarks == 3
    assert sc.Sightings([[0, 0]], [[0, 0]], 1, places=np.zeros((4, 2))).n_landmarks == 4


def test_information_determines_the_weights_that_are_not_given(dim):
    size = dim * (dim + 1) // 2
    A = np.random.default_rng(0).standard_normal((3, size, size))
    information = A @ A.swapaxes(1, 2) + np.eye(size)
    information = (information + information.swapaxes(1, 2)) / 2
    G = sc.PoseGraph(EDGES, [np.eye(dim)] * 3, np.ones((3, dim)), information=information)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_read_connection_recovers_transports_and_weights(dtype):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((2, 3, 3, 3)) + 1j * rng.standard_normal((2, 3, 3, 3))
    P, Q = np.linalg.qr(A if np.dtype(dtype).kind == "c" else A.real)[0].astype(dtype)
    weights = np.array([1e-3, 7.0, 2.0], np.float32)
    roots = np.sqrt(weights)[:, None, None]
    edges = [[0, 1], [2, 1], [2, 2]]
    connection = read_connection(sc.CellularSheaf(edges, roots * P, roots * Q))
    eps = np.finfo(dtype).eps
    U = P.conj().swapaxes(1, 2) @ Q
    assert_residual(connection.transports - U, U, n=3, eps=eps)
    assert_residual(connection.weights / weights - 1, n=3, eps=np.finfo(np.float32).eps)
    assert connection.component.tolist() == [0, 0, 0]
    if eps < 1e-10:  # weights that differ by 330 digits
        extreme = sc.CellularSheaf.connection([[0, 1], [1, 2]], [U[0], U[1]], [1e200, 1e-130])
        assert read_connection(extreme).component.tolist() == [0, 0, 0]
    signs = sc.CellularSheaf.signed([[0, 1], [2, 3]], sign=[1, -1])
    assert read_connection(signs).proper.tolist() == [True, True, False, False]  # by component


@pytest.mark.parametrize("angle", [0.0, 1.0])
def test_edges_of_weight_zero_do_not_connect_and_have_angle_nan(angle):
    """They say nothing, so that poses neither agree nor disagree with them."""
    heads, tails = plane(np.array([0, 0, angle, angle])), np.tile(np.eye(2), (4, 1, 1))
    tails[2:] = heads[2:] = 0
    heads[0] = plane(angle)
    S = sc.synchronize(sc.CellularSheaf([(0, 1), (1, 2), (0, 2), (2, 3)], tails, heads))
    assert np.isnan(S.angles).tolist() == [False, False, True, True]
    assert S.edge_costs[2:].tolist() == [0, 0]
    assert S.component.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-8, 0.3, 2.0, np.pi - 1e-9, np.pi])
def test_angles_are_exact_from_zero_to_pi(angle):
    axis = np.array([2.0, -1, 2]) / 3
    turns = Rotation.from_rotvec([angle * axis, -angle * axis]).as_matrix()
    assert_residual(angles_of(turns) - angle, n=3)
    assert_residual(angles_of(plane(np.array([angle, -angle]))) - angle, n=2)


def test_angles_of_other_groups_are_the_largest_rotation_angle():
    block = np.zeros((4, 4))
    block[:2, :2], block[2:, 2:] = plane(0.4), plane(1.1)
    assert_residual(angles_of(block[None]) - 1.1, n=4)
    assert angles_of(np.array([[[1.0]], [[-1.0]]])).tolist() == [0, np.pi]
    assert angles_of(np.diag([1.0, -1])[None]).tolist() == [np.pi]
    assert_residual(angles_of(np.exp([[[0.7j]]])) - 0.7, n=1)


def test_a_rotating_loop_changes_the_eigenvalues_of_a_pair():
    F = sc.CellularSheaf.connection([[0, 0], [0, 1]], plane(np.array([np.pi / 2, 0])))
    values = np.linalg.eigvalsh(sc.laplacian(F).toarray())
    assert_residual(sc.synchronize(F).eigenvalues - values[:3], values[-1], n=4)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_anchored_unitary_frames_equal_those_of_real_rotations(dtype):
    """The holonomy is spread over a cycle of equal weights, as in the plane."""
    phases = np.array([0.3, -0.2, 0.5, 0.1])
    transports = np.exp(1j * phases)[:, None, None].astype(dtype)
    F = sc.CellularSheaf.connection([[0, 1], [1, 2], [2, 3], [3, 0]], transports)
    real = sc.CellularSheaf.connection(F.edges, plane(phases))
    S, T = (sc.synchronize(sheaf, "anchored") for sheaf in (F, real))
    assert S.rotations.dtype == dtype
    tolerance = 100 * np.finfo(dtype).eps
    np.testing.assert_allclose(S.angles, T.angles, rtol=0, atol=tolerance)
    np.testing.assert_allclose(S.rotations[:, 0, 0].real, T.rotations[:, 0, 0], atol=tolerance)


def test_rounded_frames_are_the_nearest_rotations():
    rng = np.random.default_rng(8)
    F = sc.CellularSheaf.connection([[0, k] for k in range(1, 30)], np.tile(np.eye(2), (29, 1, 1)))
    frames = np.eye(2) + 0.4 * rng.standard_normal((30, 2, 2))
    frames[0] = np.eye(2)
    found = nearest_rotations(frames, read_connection(F))
    turns = plane(np.linspace(-np.pi, np.pi, 2001))
    best = turns[np.einsum("vji,aij->va", frames, turns).argmax(axis=1)]
    assert abs(found - best).max() < 4e-3


def test_poses_of_one_or_two_vertices():
    G, _ = pose_graph(3, [[0, 1], [3, 2]], n=5)
    S = sc.synchronize(G)
    assert S.gap == pytest.approx(2 * G.kappa.min())
    assert S.angles.max() < 1e-7
    loop = sc.CellularSheaf.connection([[0, 0]], plane(np.array([1.0])))
    assert sc.synchronize(loop).certify().is_optimal
    minus = sc.CellularSheaf.signed([[0, 1]], sign=[-1])
    Z = sc.synchronize(minus, start=np.ones((2, 1, 1))).certify()
    assert Z.smallest_eigenvalue == pytest.approx(-2)


def test_signs_and_unitary_frames_are_rounded_to_their_groups():
    signs = [1, -1, -1, 1]
    F = sc.CellularSheaf.signed(nx.cycle_graph(4), sign=signs)
    S = sc.synchronize(F)
    assert S.group == "O(1)"
    assert S.rotations.ravel().tolist() == [1, 1, -1, -1]
    rng = np.random.default_rng(2)
    g = np.linalg.qr(rng.standard_normal((6, 2, 2)) + 1j * rng.standard_normal((6, 2, 2)))[0]
    for edges in (ring_with_chords(6, 4), np.array([[0, 1]])):
        U = g[edges[:, 0]].conj().swapaxes(1, 2) @ g[edges[:, 1]]
        S = sc.synchronize(sc.CellularSheaf.connection(edges, U))
        assert S.group == "U(2)"
        assert abs(S.rotations - g[0].conj().T @ g[: S.n_vertices]).max() < 1e-6
        assert S.angles.max() < 1e-6


@pytest.mark.parametrize("n", [6, 300])
@pytest.mark.parametrize(("miss", "told"), [(2e-7, True), (4e-6, False)])
def test_frames_with_nearly_equal_eigenvalues_are_reported_as_undetermined(n, miss, told):
    """Eigenvalues of a cycle that turns by a in all are 2 - 2 cos((2 pi k + a) / n), each twice."""
    turns = plane(np.append(np.pi - miss, np.zeros(n - 1)))
    F = sc.CellularSheaf.connection(ring_with_chords(n, 0), turns)
    with warnings.catch_warnings(record=True, action="always") as caught:
        S = sc.synchronize(F)
    assert [w.category for w in caught] == [sc.SingularProblemWarning] * told
    assert all("eigenvalues 2 and 3" in str(w.message) for w in caught)
    # for a = pi - miss, the gap is 4 miss / pi of the eigenvalue
    assert 0.5 < S.gap / S.eigenvalues[2] / (4 * miss / np.pi) < 2


@pytest.mark.parametrize(
    "graph",
    [nx.grid_2d_graph(14, 11), nx.connected_watts_strogatz_graph(120, 4, 0.2, seed=2)],
    ids=["grid", "random"],
)
@pytest.mark.parametrize(
    ("dim", "noise", "reflects"), [(1, 0, False), (2, 0.2, True), (3, 0.0, True), (3, 0.2, False)]
)
def test_modes_and_gap_match_dense_eigenvalues(graph, dim, noise, reflects):
    """With loops, which may turn, and where one edge reflects."""
    edges = [*nx.convert_node_labels_to_integers(graph).edges, (3, 3), (7, 7)]
    F = sc.gallery.bundle(edges, dim=dim, noise=noise, seed=0)
    F = reflected(F, 5) if reflects else F
    frames, values = spectral_frames(read_connection(F), 0)
    dense, vectors = np.linalg.eigh(sc.laplacian(F).toarray())
    assert_residual(values - dense[: dim + 1], dense[-1], n=len(dense))
    if dense[dim] - dense[dim - 1] > 1e-6 * dense[-1]:
        assert subspace_difference(frames.reshape(-1, dim), vectors[:, :dim]) <= 1e-6


@pytest.mark.parametrize("seed", range(2))
def test_gap_is_accurate_if_weights_span_twelve_decades(seed, dim):
    edges = ring_with_chords(140, 200, seed=seed)
    G, _ = pose_graph(dim, edges, seed=seed, noise=0.01)
    weight = 10 ** np.random.default_rng(seed).uniform(-6, 6, len(edges))
    F = sc.CellularSheaf.connection(edges, G.rotations, weight=weight)
    values = np.linalg.eigvalsh(sc.laplacian(F).toarray())
    assert values[dim] > 1e-12 * values[-1]  # or it says nothing
    S = sc.synchronize(F)
    assert S.eigenvalues[dim] == pytest.approx(values[dim], rel=2e-3)
    assert S.gap == pytest.approx(values[dim] - values[dim - 1], rel=2e-3)


def test_positions_minimize_the_cost_and_landmarks_join_components(dim):
    G, (R, t) = pose_graph(dim, [[0, 1], [1, 0], [2, 3]], noise=0.3)
    seen = [[0, 0], [1, 0], [2, 0]]
    H = sighted(G, (R, t), np.ones((1, dim)), seen, 0.3, [1.0, 2.0, 3.0])
    connection = connection_from(H)
    assert connection_from(G).joined.tolist() == [0, 0, 1, 1]
    assert connection.joined.tolist() == [0] * 5
    places = with_positions(connection, R).positions
    np.testing.assert_array_equal(places[0], 0)
    rng = np.random.default_rng(1)
    for _ in range(5):
        moved = places + 1e-3 * rng.standard_normal(places.shape)
        assert cost_by_hand(H, R, moved) > cost_by_hand(H, R, places)


def test_sightings_by_name_are_those_by_index():
    labels = "a", ("b", 1), 7
    square = [[[1.0, 0.0], [0.0, 1.0]]] * 2, [[1.0, 0.0]] * 2
    points, tau = [[1.0, 0.5], [0.0, 1.0], [2.0, 0.0]], [1.0, 2.0, 3.0]
    graphs = [
        sc.PoseGraph(
            [[0, 1], [1, 2]],
            *square,
            vertex_labels=labels,
            sightings=sc.Sightings(pairs, points, tau),
        )
        for pairs in ([(("b", 1), 0), (7, 1), ("a", 0)], [[1, 0], [2, 1], [0, 0]])
    ]
    assert graphs[0].sightings.edges.tolist() == graphs[1].sightings.edges.tolist()
    assert graphs[0].sightings.edges.dtype == np.int64
    by_name, by_index = (sc.synchronize(G).landmarks for G in graphs)
    np.testing.assert_array_equal(by_name, by_index)
