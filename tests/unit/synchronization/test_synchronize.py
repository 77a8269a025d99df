"""Rotations, places and refinement together; what is refused; real pose graphs."""

import dataclasses
import gzip
import warnings
from functools import partial

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.synchronization import concentrations, harmonic_means, refinement
from sheafcoarsen.synchronization._pose_graph import connection_from
from sheafcoarsen.synchronization.connection import Poses
from sheafcoarsen.synchronization.refinement import PoseSheaf
from tests.support.helpers import assert_residual
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
        assert S.n_components == 3
        assert S.component.tolist() == [0] * 8 + [1] * 7 + [2]
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
    S, T = sc.synchronize(F), sc.synchronize(F, refine=True)
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
    x = rng.standard_normal(sheaf.dim_c0)
    slope = sc.coboundary(sheaf) @ x
    h = 1e-5
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
    F = sc.CellularSheaf.connection(
        np.concatenate([G.edges, [[19, 20]]]),
        np.concatenate([G.rotations, R[:1]]),
        weight=np.append(np.ones(20), weight),
    )
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
    sightings = sc.Sightings(
        np.stack([np.searchsorted(poses, seen[:, 0]), mark], axis=1),
        seen[:, 2:4],
        harmonic_means(inverses(seen[:, 4:], 2))[0],
        tuple(marks.astype(int).tolist()),
    )
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
