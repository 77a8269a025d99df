"""Rotations, places and refinement together; real pose graphs; connections, frames, positions."""

import dataclasses
import gzip
import warnings
from functools import partial

import networkx as nx
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import sheafcoarsen as sc
from sheafcoarsen.synchronization import concentrations, harmonic_means, refinement
from sheafcoarsen.synchronization._pose_graph import connection_from
from sheafcoarsen.synchronization.connection import Poses, angles_of, read_connection
from sheafcoarsen.synchronization.fits import nearest_rotations, spectral_frames, with_positions
from sheafcoarsen.synchronization.refinement import PoseSheaf
from tests.support.helpers import assert_residual, subspace_difference
from tests.unit.synchronization.conftest import (
    appended,
    cost_by_hand,
    plane,
    pose_graph,
    random_rotations,
    reflected,
    ring_with_chords,
    sighted,
)


@pytest.mark.parametrize(
    ("method", "refine"),
    [("spectral", False), ("spectral", True), ("anchored", False), ("joint", True)],
)
def test_exact_measurements_recover_the_true_poses(dim, method, refine):
    G, (R, t) = pose_graph(dim, ring_with_chords(30, 20))
    S = sc.synchronize(G, method, refine)
    tolerance = 1e-6 if method == "spectral" else 1e-8  # of the eigensolver
    assert abs(S.rotations - R).max() < tolerance
    assert abs(S.translations - t).max() < 10 * tolerance
    assert (S.method, S.group) == (method, f"SO({dim})")
    assert (S.gap is None) == (method != "spectral")


def test_every_component_has_its_own_frame(dim):
    one, (R, t) = pose_graph(dim, ring_with_chords(8, 6), seed=1)
    two, (Q, s) = pose_graph(dim, ring_with_chords(7, 6), seed=2)
    G = appended(one, two.edges + 8, two.rotations, two.translations, n_vertices=16)
    for S in (sc.synchronize(G), sc.synchronize(G, refine=True), sc.synchronize(G, "anchored")):
        assert (S.n_components, S.component.tolist()) == (3, [0] * 8 + [1] * 7 + [2])
        np.testing.assert_array_equal(S.translations[[0, 8, 15]], 0)  # roots do not move
        assert abs(S.rotations[:15] - np.concatenate([R, Q])).max() < 1e-6
        assert abs(S.translations[:15] - np.concatenate([t, s])).max() < 1e-5
        np.testing.assert_array_equal(S.rotations[15], np.eye(dim))
    ones = [dataclasses.replace(part, kappa=1.0) for part in (one, two)]
    lowest = [sc.synchronize(part).gap for part in ones]
    assert sc.synchronize(G).gap == pytest.approx(min(lowest))


def test_results_are_reproducible_and_independent_of_the_seed(dim):
    G, _ = pose_graph(dim, ring_with_chords(30, 20), noise=0.1)
    first, again, other = (sc.synchronize(G, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.rotations, again.rotations)
    assert abs(first.rotations - other.rotations).max() < 1e-6


def test_residuals_of_edges_match_their_definitions(dim):
    G, _ = pose_graph(dim, ring_with_chords(15, 10), noise=0.2)
    S = sc.synchronize(G)
    i, j = G.edges.T
    off = S.translations[j] - S.translations[i]
    off -= np.einsum("eij,ej->ei", S.rotations[i], G.translations)
    np.testing.assert_allclose(S.distances, np.linalg.norm(off, axis=1), rtol=1e-9)
    seen = S.rotations[i] @ G.rotations
    cosines = (np.einsum("eij,eij->e", seen, S.rotations[j]) - (dim - 2)) / 2
    assert_residual(np.cos(S.angles) - cosines, S.rotations[0], n=G.n_edges)
    costs = G.kappa * np.square(S.rotations[j] - seen).sum(axis=(1, 2))
    costs += G.tau * np.square(off).sum(axis=1)
    assert_residual(S.edge_costs - costs, costs, n=dim)


def test_result_is_read_only_but_not_its_cochain_and_repr_shows_components():
    G, _ = pose_graph(2, [[0, 1], [2, 3]], vertex_labels="abcd")
    S = sc.synchronize(G)
    assert S.vertex_labels == tuple("abcd")
    assert (S.n_vertices, S.n_edges) == (4, 2)
    text = f", 2 components, a frame for each, gap={S.gap:.4g}, cost={S.cost:.6g})"
    assert repr(S).endswith(text)
    assert "2 components, a frame for each" in S._repr_html_()
    assert "not refined, certify() not called" in S._repr_html_()
    for name in ("rotations", "translations", "angles", "distances", "edge_costs", "eigenvalues"):
        assert not getattr(S, name).flags.writeable
    for dim in (1, 2):
        S = sc.synchronize(sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 0]], dim))
        assert S.cochain().flags.writeable
        assert not np.shares_memory(S.cochain(), S.rotations)


def test_given_start_replaces_the_modes(dim):
    G, (R, _) = pose_graph(dim, ring_with_chords(12, 9), noise=0.2)
    S = sc.synchronize(G, start=R)
    assert abs(S.rotations - R).max() < 1e-14
    assert S.method == "start"
    E = sc.eigenmodes(G.sheaf, dim)
    T = sc.synchronize(G, start=E.vectors)
    assert abs(T.rotations - sc.synchronize(G, "spectral").rotations).max() < 1e-5
    single = sc.synchronize(G.sheaf, start=R.astype(np.float32)).rotations  # double again
    assert_residual(single @ single.swapaxes(1, 2) - np.eye(dim), single, n=dim)


def test_a_start_of_exact_rotations_places_parts_that_only_landmarks_join(dim):
    G, (R, t) = pose_graph(dim, [[0, 1], [2, 3]])
    marks = np.random.default_rng(1).standard_normal((dim, dim))
    G = sighted(G, (R, t), marks, [[i, k] for i in (0, 2) for k in range(dim)])
    S = sc.synchronize(G, start=R)
    assert S.n_components == 1
    assert_residual(S.rotations - R, R, n=dim)
    assert_residual(np.sqrt(S.cost), np.sqrt(G.tau), t, n=dim)


def test_the_rotations_of_a_start_do_not_depend_on_its_scale(dim):
    """Mirrored frames are reflected first, by signs of determinants that underflow if small."""
    G, (R, _) = pose_graph(dim, ring_with_chords(12, 8), noise=0.1)
    mirrored = R.swapaxes(1, 2).reshape(-1, dim) * np.append(np.ones(dim - 1), -1)
    for scale in (1.0, 1e-180):
        found = sc.synchronize(G, start=scale * mirrored).rotations
        assert_residual(found - R[0].T @ R, R, n=dim)


@pytest.mark.parametrize("refine", [False, True])
def test_an_edge_of_weight_zero_may_join_a_reflected_frame(refine):
    transports = [np.eye(2), np.diag([1.0, -1.0]), np.eye(2)]
    F = sc.CellularSheaf.connection([[0, 1], [2, 3], [0, 3]], transports, weight=[1.0, 1.0, 0.0])
    S = sc.synchronize(F, refine=refine)
    assert_residual(np.sqrt(S.cost), S.rotations, n=2)
    assert S.certify().is_optimal


@pytest.mark.parametrize("n_landmarks", [1, 2, 3, 4])
def test_undetermined_poses_are_warned_about(dim, n_landmarks):
    """Of two chains that saw the same landmarks: one leaves all rotations about it free."""
    chains, poses = pose_graph(dim, [[0, 1], [1, 2], [3, 4], [4, 5]])
    marks = 3 * np.random.default_rng(5).standard_normal((n_landmarks, dim))
    G = sighted(chains, poses, marks, list(np.ndindex(6, n_landmarks)))
    free = {2: [1, 0, 0, 0], 3: [3, 1, 0, 0]}[dim][n_landmarks - 1]
    with warnings.catch_warnings(record=True, action="always") as caught:
        S = sc.synchronize(G, refine=True)
    assert [w.category for w in caught] == [sc.SingularProblemWarning] * (free > 0)
    if free:
        assert f"can move in {free} way" in str(caught[0].message)
        assert caught[0].filename == __file__
    else:
        assert abs(S.landmarks - marks).max() < 1e-5
    assert S.n_components == 1
    assert S.certify().is_optimal


def test_robust_fits_of_poses_that_are_not_determined_do_not_raise():
    """Near the optimum the right-hand side of a step is mostly rounding, not in the range of L."""
    for seed in (0, 19, 23):
        edges = [[0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5]]
        G, poses = pose_graph(3, edges, seed, noise=1e-4)
        mark = 3 * np.random.default_rng(seed).standard_normal((1, 3))
        G = sighted(G, poses, mark, [(0, 0), (1, 0), (3, 0), (4, 0)], noise=1e-4)
        H = dataclasses.replace(G, kappa=1.0, tau=1.0)
        with pytest.warns(sc.SingularProblemWarning, match="can move in 3 ways"):
            S = sc.synchronize(H, robust="tls", refine=True)
        assert S.cost < 1e-5
        assert (S.weights == 1).all()


def test_refinement_accepts_reflecting_frames_if_all_edges_agree(dim):
    """As in a gauge of orthogonal matrices of both determinants."""
    F = sc.gallery.bundle(ring_with_chords(15, 20), dim=dim, noise=0.2, seed=0)
    S, T = (sc.synchronize(F, refine=refine) for refine in (False, True))
    assert set(np.linalg.det(T.rotations).round(6)) == {-1, 1}
    assert T.cost < S.cost
    again = sc.synchronize(F, refine=True, start=T.rotations)
    assert again.cost == pytest.approx(T.cost, rel=1e-9)
    with pytest.raises(ValueError, match=r"edge \d+ \(\d+ -> \d+\) reflects"):
        sc.synchronize(reflected(F, 3), refine=True)


EDGES = [[0, 1], [2, 1], [2, 3], [3, 0], [0, 2], [1, 1]]
SEEN = [[0, 0], [3, 0], [1, 1]]


@pytest.mark.parametrize("what", ["rotations", "poses", "landmarks"])
def test_coboundary_of_the_pose_sheaf_is_the_derivative_of_residuals(dim, what):
    G, poses = pose_graph(dim, EDGES, noise=0.4)
    rng = np.random.default_rng(11)
    if what == "landmarks":
        G = sighted(G, poses, rng.standard_normal((2, dim)), SEEN, 0.4, [1.0, 2.0, 3.0])
    R, t = random_rotations(4, dim, rng), rng.standard_normal((6, dim))
    problem = PoseSheaf(connection_from(G.sheaf if what == "rotations" else G))
    here = Poses(R, {"rotations": None, "poses": t[:4], "landmarks": t}[what])
    sheaf, r = problem.at(here)
    stalk = (1 if dim == 2 else 3) + dim * (what != "rotations")
    assert sheaf.vertex_dims.tolist() == [stalk] * 4 + [dim] * (2 * (what == "landmarks"))
    cost = sc.synchronize(G.sheaf, start=R).cost if what == "rotations" else cost_by_hand(G, R, t)
    assert_residual(r @ r - cost, cost, n=len(r))
    x, h = rng.standard_normal(sheaf.dim_c0), 1e-5
    slope = sc.coboundary(sheaf) @ x
    ahead, behind = (problem.at(problem.after(here, s * h * x)) for s in (1, -1))
    assert abs(-(ahead[1] - behind[1]) / (2 * h) - slope).max() < 1e-7 * (1 + abs(slope).max())
    assert ahead[0].edges is sheaf.edges
    assert abs(ahead[0].tail_data - sheaf.tail_data).max() > 0
    assert_residual(problem.at(problem.after(here, 0 * x))[1] - r, r, n=len(r))


@pytest.mark.large
def test_refinement_from_any_start_reduces_the_cost(dim):
    G, (R, _) = pose_graph(dim, ring_with_chords(30, 30), noise=0.2)
    S = sc.synchronize(G, refine=True)
    assert S.converged
    assert abs(S.rotations[0] - np.eye(dim)).max() < 1e-15
    starts = [random_rotations(30, dim, np.random.default_rng(seed)) for seed in range(3)]
    for result in (S, *(sc.synchronize(G, refine=True, start=start) for start in (R, *starts))):
        assert result.cost == pytest.approx(result.costs[-1], rel=1e-12)
        assert (np.diff(result.costs) <= 0).all()
        assert result.cost < result.costs[0]


def test_steps_that_would_increase_the_cost_are_halved(monkeypatch, dim):
    """Without halving, a step from a bad start goes too far."""
    G, _ = pose_graph(dim, ring_with_chords(30, 30), noise=0.3)
    start = random_rotations(30, dim, np.random.default_rng(1))
    with monkeypatch.context() as patch:
        patch.setattr(refinement, "LENGTHS", 1)
        assert len(sc.synchronize(G, refine=True, start=start).costs) == 1

        def uphill(solve, b, tol):
            raise sc.NotConverged("", -b)

        patch.setattr(refinement, "solve_in_range", uphill)
        assert not sc.synchronize(G, refine=True, start=start).converged
    one_step = partial(refinement.refined_poses, steps=1)
    monkeypatch.setattr("sheafcoarsen.synchronization._synchronize.refined_poses", one_step)
    S = sc.synchronize(G, refine=True, start=start)
    assert (len(S.costs), S.converged) == (2, False)


@pytest.mark.parametrize("weight", [1e12, 1e15, 1e16, 1e18])
def test_a_heavy_pendant_edge_does_not_stop_refinement_early(dim, weight):
    """Rounding of its residual is larger than the residuals of the ring."""
    G, (R, _) = pose_graph(dim, ring_with_chords(20, 0), noise=0.3)
    turns, weights = np.concatenate([G.rotations, R[:1]]), np.append(np.ones(20), weight)
    F = sc.CellularSheaf.connection([*G.edges, [19, 20]], turns, weight=weights)
    S = sc.synchronize(F, refine=True, start=np.concatenate([R, R[19:]]))
    assert (np.diff(S.costs) <= 0).all()
    if weight < 1e16:  # above, it may end before
        best = sc.synchronize(F, refine=True).cost
        assert S.cost == pytest.approx(best, rel=1e-3)


def real_data(test):
    return pytest.mark.real_data(pytest.mark.large(test))


CERTIFIED = {"sphere2500": 1687, "torus3d": 24230, "parking_garage": 1.263, "city10000": 638.6}
"""Optima of SE-Sync (Rosen et al., IJRR 2019, tables 1 and 2)."""


@real_data
@pytest.mark.parametrize("name", CERTIFIED)
def test_refinement_reaches_the_certified_optimum(data_folder, name):
    G = sc.read_g2o(data_folder / f"g2o_{name}.g2o.gz", poses=True)
    S = sc.synchronize(G, refine=True)
    assert S.cost / CERTIFIED[name] - 1 < 5e-4
    assert S.converged
    assert len(S.costs) <= 8
    assert (np.diff(S.costs) <= 0).all()
    assert S.certify().is_optimal


def victoria_park(folder):
    """Return a truck's way between trees as a pose graph with landmarks: a recipe for its file."""
    with gzip.open(folder / "slam_victoria_park.txt.gz", "rt") as file:
        words = [line.split() for line in file]
    odometry = np.array([row[1:] for row in words if row[:1] == ["ODOMETRY"]], float)
    seen = np.array([row[1:] for row in words if row[:1] == ["LANDMARK"]], float)
    poses, ends = np.unique(odometry[:, :2], return_inverse=True)
    found = concentrations(inverses(odometry[:, 5:], 3), 2)
    marks, mark = np.unique(seen[:, 1], return_inverse=True)
    pairs = np.stack([np.searchsorted(poses, seen[:, 0]), mark], axis=1)
    tau, names = harmonic_means(inverses(seen[:, 4:], 2))[0], tuple(marks.astype(int).tolist())
    sightings = sc.Sightings(pairs, seen[:, 2:4], tau, names)
    turns, moves = plane(odometry[:, 4]), odometry[:, 2:4]
    return sc.PoseGraph(ends.reshape(-1, 2), turns, moves, *found[:2], sightings=sightings)


def inverses(triangles, size):
    """Return the information of covariances given by their upper triangles."""
    upper = np.zeros((len(triangles), size, size))
    upper[:, *np.triu_indices(size)] = triangles
    return np.linalg.inv(upper + np.triu(upper, 1).swapaxes(1, 2))


@real_data
def test_landmarks_correct_a_drifting_odometry(data_folder):
    """From the joint sheaf to the certified optimum; rotations first end in a local minimum."""
    G = victoria_park(data_folder)
    assert (G.n_vertices, G.sightings.n_landmarks, len(G.sightings.edges)) == (6969, 151, 3640)
    S = sc.synchronize(G, refine=True)
    assert (S.method, S.converged, S.certify().is_optimal) == ("joint", True, True)
    assert S.outliers(threshold=5).size == 0  # as the drive has no wrong loops
    T = sc.synchronize(G, "anchored", refine=True)
    assert T.cost > 10 * S.cost
    Z = T.certify()
    assert not Z.is_optimal
    assert Z.lower_bound <= S.cost
    rng = np.random.default_rng(3)
    ends, turns = rng.integers(G.n_vertices, size=(10, 2)), plane(rng.uniform(-3, 3, 10))
    kappa, tau = (np.append(weights, weights[-10:]) for weights in (G.kappa, G.tau))
    moves = 20 * rng.standard_normal((10, 2))
    H = appended(G, ends, turns, moves, kappa, tau, sightings=G.sightings)
    R = sc.synchronize(H, robust="tls", refine=True)
    assert np.flatnonzero(R.weights < 0.5).tolist() == list(range(G.n_edges, H.n_edges))
    assert R.cost == pytest.approx(S.cost, rel=1e-6)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("dim", [2, 3])
def test_a_single_pose_places_the_landmarks_that_it_saw(dim, count):
    none = np.zeros((0, 2), int), np.zeros((0, dim, dim)), np.zeros((0, dim))
    points = np.arange(1.0, dim * count + 1).reshape(count, dim)
    seen = sc.Sightings([[0, k] for k in range(count)], points, np.ones(count))
    S = sc.synchronize(sc.PoseGraph(*none, n_vertices=1, sightings=seen), refine=True)
    assert_residual(S.landmarks - points, points, n=dim + count)


@real_data
@pytest.mark.parametrize("name", ["intel", "sphere2500"])
def test_random_loops_in_real_data_are_discarded(data_folder, name):
    G = sc.read_g2o(data_folder / f"g2o_{name}.g2o.gz", poses=True)
    best, rng, m = sc.synchronize(G, refine=True), np.random.default_rng(0), G.n_edges
    count = m // 5
    edges = rng.integers(G.n_vertices, size=(count, 2))
    turns, moves = random_rotations(count, G.dim, rng), 5 * rng.standard_normal((count, G.dim))
    weights = (np.append(weight, weight[:count]) for weight in (G.kappa, G.tau))
    S = sc.synchronize(appended(G, edges, turns, moves, *weights), robust="tls", refine=True)
    assert (S.outliers()[: count // 2] >= m).mean() > 0.8  # ranked first
    assert (S.weights[m:] < 0.5).all()
    assert (S.weights[:m] < 0.5).mean() <= 0.01
    assert S.edge_costs[:m].sum() == pytest.approx(best.cost, rel=0.01)


# ---------------------------------------------------------------- pose graphs, frames and positions
TRIANGLE = [[0, 1], [1, 2], [2, 0]]


def test_true_rotations_are_a_section_of_the_sheaf_weighted_by_kappa(dim):
    G, (R, _) = pose_graph(dim, TRIANGLE)
    section = R.swapaxes(1, 2).reshape(-1, dim)
    delta = sc.coboundary(G.sheaf)
    assert_residual(delta @ section, delta, section, n=dim)
    assert_residual(G.sheaf.tail_data[:: dim**2] ** 2 - G.kappa, G.kappa, n=dim)
    assert (G.dim, G.n_edges, G.sheaf.n_edges, G.sheaf.map_shape) == (dim, 3, 3, (dim, dim))
    H = dataclasses.replace(G, rotations=np.tile(np.eye(dim), (3, 1, 1)))
    assert sc.global_sections(H.sheaf).h0 == dim


def test_arrays_are_read_only_copies(dim):
    steps = np.ones((3, dim))
    G, _ = pose_graph(dim, TRIANGLE)
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
    G, _ = pose_graph(2, TRIANGLE, n=5, vertex_labels="abcde")
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
    G = sc.PoseGraph(TRIANGLE, [np.eye(dim)] * 3, np.ones((3, dim)), information=information)
    blocks = (information[:, s, s] for s in (slice(dim), slice(dim, size)))
    traces = [np.trace(np.linalg.inv(block), axis1=1, axis2=2) for block in blocks]
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
    assert (S.edge_costs[2:].tolist(), S.component.tolist()) == ([0, 0], [0, 0, 0, 1])


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
    assert (S.group, S.rotations.ravel().tolist()) == ("O(1)", [1, 1, -1, -1])
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
    assert 0.5 < S.gap / S.eigenvalues[2] / (4 * miss / np.pi) < 2  # as a = pi - miss


GRID = nx.convert_node_labels_to_integers(nx.grid_2d_graph(14, 11))
SMALL_WORLD = nx.connected_watts_strogatz_graph(120, 4, 0.2, seed=2)


@pytest.mark.parametrize("graph", [GRID, SMALL_WORLD], ids=["grid", "random"])
@pytest.mark.parametrize(
    ("dim", "noise", "reflects"), [(1, 0, False), (2, 0.2, True), (3, 0.0, True), (3, 0.2, False)]
)
def test_modes_and_gap_match_dense_eigenvalues(graph, dim, noise, reflects):
    """With loops, which may turn, and where one edge reflects."""
    F = sc.gallery.bundle([*graph.edges, (3, 3), (7, 7)], dim=dim, noise=noise, seed=0)
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
    moves = [[0, 1], [1, 2]], [np.eye(2)] * 2, [[1.0, 0.0]] * 2
    points, tau = [[1.0, 0.5], [0.0, 1.0], [2.0, 0.0]], [1.0, 2.0, 3.0]
    names, indices = [(("b", 1), 0), (7, 1), ("a", 0)], [[1, 0], [2, 1], [0, 0]]
    seen = (sc.Sightings(pairs, points, tau) for pairs in (names, indices))
    graphs = [sc.PoseGraph(*moves, vertex_labels=labels, sightings=each) for each in seen]
    assert graphs[0].sightings.edges.tolist() == graphs[1].sightings.edges.tolist()
    assert graphs[0].sightings.edges.dtype == np.int64
    by_name, by_index = (sc.synchronize(G).landmarks for G in graphs)
    np.testing.assert_array_equal(by_name, by_index)
