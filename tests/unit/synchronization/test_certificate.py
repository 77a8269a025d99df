"""The joint sheaf, certificates that poses are the best, and edges that fit the others worst."""

import dataclasses
import pickle
from unittest.mock import Mock

import networkx as nx
import numpy as np
import pytest
from scipy.sparse.linalg import ArpackNoConvergence
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

import sheafcoarsen as sc
from sheafcoarsen.synchronization._pose_graph import connection_from
from sheafcoarsen.synchronization.fits import weighted
from tests.support.helpers import assert_residual, maps_of
from tests.unit.synchronization.conftest import (
    appended,
    cost_by_hand,
    plane,
    planted,
    pose_graph,
    random_rotations,
    rescaled,
    ring_with_chords,
    sighted,
    wrong_first_edge,
)


def landmark_graph(dim, noise=0.1, seed=0):
    """Return a chain of poses that all see most landmarks."""
    rng = np.random.default_rng(seed)
    G, poses = pose_graph(dim, np.arange(19)[:, None] + [0, 1], seed=seed, noise=noise)
    seen = [[i, k] for i in range(20) for k in range(6) if (i + k) % 4]
    marks, tau = 3 * rng.standard_normal((6, dim)), rng.uniform(1, 5, len(seen))
    return sighted(G, poses, marks, seen, noise, tau)


def test_the_energy_of_the_joint_sheaf_is_the_cost(dim):
    G = landmark_graph(dim)
    F = G.joint_sheaf()
    assert F.vertex_dims.tolist() == [dim + 1] * 20 + [1] * 6
    S = sc.synchronize(G)
    wanted = cost_by_hand(G, S.rotations, np.concatenate([S.translations, S.landmarks]))
    assert_residual(S.cost - wanted, wanted, n=F.n_edges)
    assert_residual(sc.energy(F, S.cochain()).sum() - wanted, wanted, n=F.n_edges)
    H, _ = pose_graph(dim, ring_with_chords(15, 10), noise=0.2)
    alone, same = (sc.synchronize(H.sheaf, method) for method in ("joint", "anchored"))
    assert alone.method == "anchored"
    np.testing.assert_array_equal(alone.rotations, same.rotations)
    assert_residual(sc.energy(H.sheaf, alone.cochain()).sum() - alone.cost, alone.cost, n=20)
    assert (alone.translations, alone.distances) == (None, None)


@pytest.mark.parametrize(
    ("scale", "unit"), [(1.0, 1e-100), (1e60, 1e-8), (1e-60, 1e4), (1e60, 1e60)]
)
def test_certified_optima_do_not_depend_on_units(dim, scale, unit):
    """Rotations and translations are solved for together; their sizes may be far apart."""
    G = landmark_graph(dim)
    S, T = (sc.synchronize(graph, refine=True) for graph in (G, rescaled(G, scale, unit)))
    assert len(S.costs) == len(T.costs)
    np.testing.assert_allclose(T.costs, scale * S.costs, rtol=1e-8)
    assert abs(S.rotations - T.rotations).max() < 1e-5
    change = np.linalg.norm(T.translations / unit - S.translations)
    assert change <= 1e-5 * np.linalg.norm(S.translations)
    Z = T.certify()
    assert Z.is_optimal
    assert (Z.lower_bound, Z.gap) == (pytest.approx(T.cost, rel=1e-6), T.cost - Z.lower_bound)
    assert T.certify() is Z
    assert "certified" in repr(T)
    assert "refined, certify() not called" in repr(pickle.loads(pickle.dumps(T)))
    assert ", not converged, certify()" in repr(dataclasses.replace(T, converged=False))


@pytest.mark.large
@pytest.mark.parametrize(
    ("noise", "seed"), [(1e-8, 0), (1e-7, 1), (1e-6, 0), (1e-5, 1), (1e-4, 0), (1e-2, 1), (1e-1, 0)]
)
def test_optima_are_certified_at_every_noise_level(dim, noise, seed):
    """Though costs are rounded before they are optimal: the bound is off by squared gradients."""
    loops, _ = pose_graph(dim, ring_with_chords(40, 30, seed), seed, noise)
    for G in (loops, landmark_graph(dim, noise, seed=seed)):
        S = sc.synchronize(G, refine=True)
        assert S.cost < 1e3 * S.n_edges * noise**2
        assert S.certify().is_optimal


def test_lower_bound_from_any_poses_is_the_minimum_cost(dim):
    """Whatever start it was computed from: it is refined first."""
    G, (R, _) = pose_graph(dim, ring_with_chords(15, 12), noise=0.3)
    best = sc.synchronize(G, refine=True)
    rng = np.random.default_rng(3)
    for spread in (0.0, 0.2, 1.0):
        S = sc.synchronize(G, start=R @ random_rotations(15, dim, rng, spread))
        Z = S.certify()
        assert Z.lower_bound <= best.cost * (1 + 1e-9)
        assert not Z.is_optimal
        if spread < 1:
            assert Z.lower_bound == pytest.approx(best.cost, rel=1e-6)


def half_turned_ring(n=40, turns=1):
    """Return a ring of equal poses, and rotations that wind around it."""
    G = sc.PoseGraph(ring_with_chords(n, 0), plane(np.zeros(n)), np.zeros((n, 2)))
    return G, plane(2 * np.pi * turns * np.arange(n) / n)


@pytest.mark.parametrize("what", ["poses", "rotations"])
@pytest.mark.parametrize("turns", [1, 3])
def test_a_local_minimum_is_not_certified(what, turns):
    """A ring wound too often: mu = -2 (1 - cos(2 pi turns / n))."""
    G, wound = half_turned_ring(turns=turns)
    # in another component, two measurements differ, so that the bound is positive
    turned = plane(np.array([*np.zeros(40), 0.75, -0.75]))
    G = sc.PoseGraph([*G.edges.tolist(), [40, 41], [40, 41]], turned, np.zeros((42, 2)))
    wound = np.concatenate([wound, plane(np.zeros(2))])
    S = sc.synchronize(G if what == "poses" else G.sheaf, refine=True, start=wound)
    turn = 2 * np.pi * turns / 40
    costs = 40 * 4 * (1 - np.cos(turn)), 2 * 4 * (1 - np.cos(0.75))
    assert S.cost == pytest.approx(sum(costs), rel=1e-9)
    Z = S.certify()
    assert not Z.is_optimal
    lowered = (Z.lower_bound - S.cost) / (42 * 2 * Z.smallest_eigenvalue)
    assert 1 - 1e-6 < lowered < 1.1
    assert Z.smallest_eigenvalue == pytest.approx(-2 * (1 - np.cos(turn)), rel=1e-6)
    assert "eigenvalue" not in Z._repr_html_()  # of which matrix, only its docstring can say
    assert f"at most {S.cost - Z.lower_bound:.3g} above the optimum" in repr(S)
    percent = 100 * (S.cost - Z.lower_bound) / S.cost
    assert f"(not certified, gap {percent:.2g} % of the cost, cost={S.cost:.6g}" in repr(Z)


def test_local_minimum_with_landmarks_is_not_certified():
    """Odometry that drifts by turns: the joint start finds the optimum, rotations first do not."""
    n, angle = 120, 2 * np.pi / 60
    R = plane(angle * np.arange(n))
    t = np.cumsum(np.concatenate([np.zeros((1, 2)), R[:-1, :, 0]]), axis=0)
    marks = 12 * np.random.default_rng(0).standard_normal((8, 2)) + t.mean(axis=0)
    turns, steps = plane(np.full(n - 1, angle + 0.1)), np.tile([1.0, 0.0], (n - 1, 1))
    edges = np.arange(n - 1)[:, None] + [0, 1]
    chain = sc.PoseGraph(edges, turns, steps, kappa=20_000.0, tau=100.0)
    seen = [[i, k] for i in range(n) for k in range(8) if (i + k) % 20 == 0]
    G = sighted(chain, (R, t), marks, seen, tau=10.0)
    S, T = (sc.synchronize(G, method, refine=True) for method in ("auto", "spectral"))
    assert S.certify().is_optimal
    assert T.cost > 1.4 * S.cost
    Z = T.certify()
    assert not Z.is_optimal
    assert Z.lower_bound <= S.cost
    assert Z.smallest_eigenvalue < 0


def test_consistent_measurements_are_certified(dim):
    chain, _ = pose_graph(dim, [[0, 1], [1, 2], [3, 4]])
    none = np.zeros((0, 2), int), np.zeros((0, dim, dim)), np.zeros((0, dim))
    lonely = sc.PoseGraph(*none, n_vertices=2)
    seen = sc.Sightings([[1, 0]], np.ones((1, dim)), 1.0, places=np.zeros((2, dim)))
    once = dataclasses.replace(chain, sightings=seen)
    assert sc.synchronize(lonely).gap == np.inf
    for G in (chain, lonely, once):
        for method in ("auto", "joint", "spectral", "anchored"):
            for refine in (False, True):
                S = sc.synchronize(G, method, refine)
                assert S.certify().is_optimal
                assert S.certify().lower_bound <= S.cost < 1e-20
                assert sorted(S.outliers()) == list(range(G.n_edges))


def test_errors_prevent_a_certificate_of_consistent_measurements_unless_they_are_rounding(dim):
    """Rotations of frames are rounded more than those of Gauss-Newton steps."""
    for seed in range(20):
        chain, (R, _) = pose_graph(dim, [[0, 1], [1, 2], [3, 4]], seed)
        for method in ("joint", "spectral"):
            assert sc.synchronize(chain, method).certify().is_optimal
        errors = random_rotations(5, dim, np.random.default_rng(seed), 1e-12)
        assert not sc.synchronize(chain, start=R @ errors).certify().is_optimal


@pytest.mark.parametrize(
    ("d", "scalars"), [(1, float), (4, float), (2, complex), (3, np.float32), (2, np.complex64)]
)
def test_lower_bounds_hold_for_orthogonal_and_unitary_groups(d, scalars):
    """They are not refined, and the bound is a little lower; as in single precision."""
    rng = np.random.default_rng(4)
    edges = ring_with_chords(12, 5)
    g = rng.standard_normal((12 + 17, d, d)).astype(scalars)
    if g.dtype.kind == "c":
        g += 1j * rng.standard_normal(g.shape)
    g = np.linalg.qr(g)[0]
    near = np.eye(d) + 0.02 * g[12:] * (d > 1)
    u, _, v = np.linalg.svd(g[edges[:, 0]].conj().swapaxes(1, 2) @ g[edges[:, 1]] @ near)
    S = sc.synchronize(sc.CellularSheaf.connection(edges, (u @ v).astype(scalars)))
    assert S.rotations.dtype == S.cochain().dtype == scalars
    Z = S.certify()
    assert 0.99 * S.cost <= Z.lower_bound <= S.cost
    assert S.cost > 1e-3 or d == 1
    far = sc.synchronize(S.measurements, start=g[:12][::-1])
    assert far.certify().lower_bound >= 0


def test_subset_keeps_chosen_measurements_all_poses_and_sightings_of_a_whole_mask(dim):
    G = landmark_graph(dim)
    seen = G.sightings
    whole = np.arange(19 + len(seen.edges)) % 7 == 3
    for kept, edges in (([4, 2, 7], [4, 2, 7]), (whole[:19], whole[:19]), (whole, whole[:19])):
        H = G.subset(kept)
        assert (H.n_vertices, H.n_edges) == (20, 3)
        for name in ("edges", "rotations", "translations", "kappa", "tau"):
            np.testing.assert_array_equal(getattr(H, name), getattr(G, name)[edges])
        assert (H.sightings is seen) == (kept is not whole)
    for name in ("edges", "points", "tau"):
        np.testing.assert_array_equal(getattr(H.sightings, name), getattr(seen, name)[whole[19:]])


def test_the_joint_sheaf_has_the_names_of_poses_and_landmarks(dim):
    G = landmark_graph(dim)
    assert G.joint_sheaf().vertex_labels is None
    names = tuple(range(100, 120))
    named = dataclasses.replace(G, vertex_labels=names).joint_sheaf()
    marks = tuple(f"landmark {k}" for k in range(6))
    assert named.vertex_labels == names + marks
    seen = dataclasses.replace(G.sightings, labels=tuple("abcdef"))
    labels = dataclasses.replace(G, sightings=seen).joint_sheaf().vertex_labels
    assert labels == (*range(20), *"abcdef")
    seen = dataclasses.replace(G.sightings, labels=tuple(range(6)))  # names of poses, too
    assert dataclasses.replace(G, sightings=seen).joint_sheaf().vertex_labels is None


@pytest.mark.parametrize(
    ("n", "turns", "tau"), [(101, 17, 1.0), (101, 17, 1e17), (151, 25, 1e17), (301, 1, 1.0)]
)
def test_lower_bounds_of_noisy_wound_rings_are_below_the_optimum(n, turns, tau, monkeypatch):
    """Iterated eigenvalues may be too high, and weights of places hide those of rotations."""
    G, wound = half_turned_ring(n, turns)
    noise = plane(1e-3 * np.random.default_rng(n).standard_normal(n))
    G = dataclasses.replace(G, rotations=noise, tau=tau)
    best = sc.synchronize(G, refine=True).cost
    S = sc.synchronize(G, refine=True, start=wound)
    found = [S.certify()]
    failed = Mock(side_effect=ArpackNoConvergence("", [], []))
    monkeypatch.setattr("sheafcoarsen.synchronization.refinement.eigsh", failed)
    for Z in (*found, S.certify(1e-5)):
        assert not Z.is_optimal
        assert Z.lower_bound <= best * (1 + 1e-9)


@pytest.mark.parametrize(("far", "weight"), [(1e8, 1.0), (1.0, 1e30)])
def test_rounding_of_one_large_measurement_does_not_certify_the_others(far, weight):
    G, wound = half_turned_ring(12)
    weights = np.append(np.ones(12), weight)
    H = appended(G, [[0, 12]], np.eye(2)[None], [[far, 0.0]], weights, weights)
    S = sc.synchronize(H, refine=True, start=np.concatenate([wound, np.eye(2)[None]]))
    assert S.cost > 6
    assert not S.certify().is_optimal
    assert sc.synchronize(H, start=np.tile(np.eye(2), (13, 1, 1))).certify().is_optimal


def test_parts_joined_by_landmarks_are_certified_without_discarded_edges(dim):
    """Wrong edges between them are not needed to hold the graph together."""
    G = landmark_graph(dim, noise=0.05)
    seen = dataclasses.replace(G.sightings, tau=np.full(len(G.sightings.edges), 100.0))
    R = random_rotations(2, dim, np.random.default_rng(0))
    parts, wrong = G.subset(G.edges[:, 0] != 9), [[2, 15], [4, 12]]
    H = appended(parts, wrong, R, np.full((2, dim), 1e4), 100.0, 100.0, sightings=seen)
    S = sc.synchronize(H, robust="tls", refine=True)
    assert np.flatnonzero(S.weights == 0).tolist() == [18, 19]
    best = sc.synchronize(H.subset(S.weights > 0), refine=True)
    assert S.cost == pytest.approx(best.cost, rel=1e-6)
    assert S.certify().is_optimal
    assert S.certify().lower_bound <= best.cost * (1 + 1e-9)


# ---------------------------------------------------------------- edges that fit the others worst
def test_a_zero_map_does_not_connect_poses():
    """The measurement next to it gets a small factor instead of 0."""
    maps = [np.eye(2), np.zeros((2, 2))]
    F = sc.CellularSheaf([[0, 1], [0, 1]], maps, maps)
    kept = weighted(connection_from(F), np.array([0.0, 1.0]))
    assert kept.weights[kept.weights > 0].tolist() == [1e-9]


@pytest.mark.large
@pytest.mark.parametrize("what", ["both", "rotations", "translations"])
def test_planted_outliers_are_ranked_first(dim, what):
    rng = np.random.default_rng(0)
    G, _ = pose_graph(dim, ring_with_chords(60, 80), noise=0.02)
    bad = 60 + rng.choice(80, 12, replace=False)
    G = planted(G, bad, rng, what)
    ranked = sc.synchronize(G).outliers()
    assert sorted(ranked) == list(range(G.n_edges))
    assert np.isin(bad, ranked[:14]).sum() >= 11
    if what == "both":  # where a sheaf has no translations, rotations tell
        assert np.isin(bad, sc.synchronize(G.sheaf).outliers()[:16]).sum() >= 9


@pytest.mark.large
def test_a_wrong_translation_lowers_the_weight_of_its_rotation(dim):
    """Where many chords are wrong, rotations alone would find three quarters of them."""
    found = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        G, _ = pose_graph(dim, ring_with_chords(100, 60), noise=0.1)
        bad = 100 + rng.choice(60, 20, replace=False)
        R, t = G.rotations.copy(), G.translations.copy()
        t[bad] += 2 * t.std() * rng.standard_normal((20, dim))
        turns = Rotation.from_rotvec(np.outer(rng.uniform(0.3, 3, 20), [0, 0, 1])).as_matrix()
        R[bad] = R[bad] @ turns[:, :dim, :dim]
        S = sc.synchronize(dataclasses.replace(G, rotations=R, translations=t))
        found += np.isin(bad, S.outliers()[:20]).sum()
    assert found >= 64


@pytest.mark.large
@pytest.mark.parametrize(("trusted", "seed"), [(None, 0), ("mask", 1), ("none", 0)])
def test_truncated_least_squares_discard_random_loops(dim, trusted, seed):
    rng = np.random.default_rng(seed)
    G, _ = pose_graph(dim, ring_with_chords(100, 100, seed), seed, noise=0.05)
    weights = 1 / 0.05**2 / (dim - 1), 1 / 0.05**2
    clean = dataclasses.replace(G, kappa=weights[0], tau=weights[1])
    edges = np.transpose(rng.choice(100, (2, 40)))
    turns, moves = random_rotations(40, dim, rng), 5 * rng.standard_normal((40, dim))
    H = appended(G, edges, turns, moves, *weights)
    given = {"mask": np.arange(240) < 100, "none": []}.get(trusted)
    S = sc.synchronize(H, robust="tls", refine=True, trusted=given)
    assert (S.weights[200:] < 0.5).all()
    assert (S.weights[:200] < 0.5).sum() <= 2
    best = sc.synchronize(clean.subset(S.weights[:200] > 0), refine=True)
    assert S.cost == pytest.approx(best.cost, rel=1e-6)
    assert S.certify().lower_bound == pytest.approx(best.cost, rel=1e-6)
    assert (np.diff(S.suspicion[S.outliers()]) <= 0).all()
    limit = S.suspicion[S.weights > 0].max()
    assert sorted(S.outliers(threshold=limit)) == np.flatnonzero(S.weights == 0).tolist()
    T = sc.synchronize(rescaled(H, unit=1e3), robust="tls", refine=True, trusted=given)
    np.testing.assert_array_equal(S.weights, T.weights)


def test_only_pose_graphs_have_odometry_that_is_trusted():
    """Edge (0, 1) of a complete graph is wrong: nothing says that it is odometry."""
    F = sc.gallery.bundle(nx.complete_graph(8), 2, seed=0)
    tails, heads = maps_of(F)
    tails[0] = tails[0, ::-1] * [[1], [-1]]  # turned by pi / 2
    S = sc.synchronize(F.with_maps(10 * tails, 10 * heads), robust="tls")
    assert np.flatnonzero(S.weights < 0.5).tolist() == [0]


def test_odometry_joins_consecutive_labels_not_indices():
    """A file may list its poses in any order, and numbers may be skipped."""
    G = wrong_first_edge(nx.complete_graph(8).edges)
    place = np.array([3, 0, 6, 1, 4, 7, 2, 5])
    labels = tuple(3 * int(pose) for pose in np.argsort(place))
    moved = dataclasses.replace(G, edges=place[G.edges])
    named = dataclasses.replace(moved, vertex_labels=labels)
    inverse = G.rotations.swapaxes(1, 2)
    moves = -np.einsum("eij,ej->ei", inverse, G.translations)
    backward = dataclasses.replace(G, edges=G.edges[:, ::-1], rotations=inverse, translations=moves)
    mixed = dataclasses.replace(named, vertex_labels=(*labels[:7], "last"))
    large = dataclasses.replace(named, vertex_labels=[10**30 + label for label in labels])
    graphs = G, named, large, backward, moved, mixed
    left_out = [sc.synchronize(H, robust="tls").weights[0] < 0.5 for H in graphs]
    assert left_out == [False, False, False, False, True, True]


@pytest.mark.parametrize("unmeasured", [[(3, 4)], [(2, 3), (3, 4)]])
def test_odometry_of_several_robots_is_trusted_if_every_pose_has_some(unmeasured):
    graph = nx.complete_graph(8)
    graph.remove_edges_from(unmeasured)  # of two robots with 4 poses each
    S = sc.synchronize(wrong_first_edge(list(graph.edges)), robust="tls")
    assert (S.weights[0] < 0.5) == (len(unmeasured) == 2)


@pytest.mark.large
@pytest.mark.parametrize("refine", [False, True])
def test_precise_translations_do_not_discard_correct_measurements(dim, refine):
    """Rotations are fitted first; their errors times lengths exceed those of translations."""
    G, _ = pose_graph(dim, nx.convert_node_labels_to_integers(nx.grid_2d_graph(9, 9)).edges)
    rng, sigma, fine = np.random.default_rng(0), 0.02, 1e-4
    angles = np.zeros((G.n_edges, 3))
    angles[:, dim - 3 :] = sigma * rng.standard_normal((G.n_edges, 3 if dim == 3 else 1))
    errors = Rotation.from_rotvec(angles).as_matrix()[:, :dim, :dim]
    steps = G.translations + fine * rng.standard_normal(G.translations.shape)
    kappa, tau = 1 / sigma**2 / (dim - 1), 1 / fine**2
    turns = G.rotations @ errors
    H = dataclasses.replace(G, rotations=turns, translations=steps, kappa=kappa, tau=tau)
    S = sc.synchronize(H, robust="tls", refine=refine)
    assert (S.weights < 0.5).sum() <= 1
    bad, none = [20, 90], np.zeros(len(H.edges), bool)
    S = sc.synchronize(planted(H, bad, rng), robust="tls", refine=refine, trusted=none)
    assert (S.weights[bad] == 0).all()
    assert (S.weights < 0.5).sum() <= 3


@pytest.mark.large
def test_correct_loops_of_small_graphs_are_kept(dim):
    """Of 20 loops of 25 poses 3 are wrong; extensions bend so much that right ones look wrong."""
    lost = kept = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        edges = np.append(np.arange(24)[:, None] + [0, 1], rng.integers(25, size=(20, 2)), axis=0)
        G, _ = pose_graph(dim, edges, seed, noise=0.07)
        G = planted(G, range(41, 44), rng)
        H = dataclasses.replace(G, kappa=600.0 if dim == 2 else 300.0, tau=200.0)
        S = sc.synchronize(H, robust="tls", refine=True)
        lost += (S.weights[:-3] < 0.5).sum()
        kept += (S.weights[-3:] >= 0.5).sum()
    assert lost <= 2
    assert kept <= 1


@pytest.mark.parametrize(("factor", "given", "weight"), [(0.99, 5, 1), (1.01, 5, 0), (4.0, 6, 1)])
def test_loops_are_discarded_beyond_a_quantile_of_their_residual(dim, factor, given, weight):
    """Each measurement has dim (dim + 1) / 2 degrees of freedom; the chain is rigid."""
    G, _ = pose_graph(dim, ring_with_chords(6, 0))
    steps, weights, trusted = G.translations.copy(), np.full(6, 1e8), np.arange(6) < given
    steps[5, 0] += np.sqrt(factor * chi2.isf(1e-3, dim * (dim + 1) // 2))
    weights[5] = 1.0
    H = dataclasses.replace(G, translations=steps, kappa=weights, tau=weights)
    S = sc.synchronize(H, robust="tls", refine=True, trusted=trusted)
    assert S.weights.tolist() == [1, 1, 1, 1, 1, weight]


@pytest.mark.parametrize(("factor", "weight"), [(0.97, 1), (1.03, 0)])
def test_errors_of_rotations_times_lengths_explain_errors_of_translations(dim, factor, weight):
    """Without refinement, the variances of both add up: here they are equal."""
    G, _ = pose_graph(dim, ring_with_chords(6, 0))
    steps, weights = G.translations.copy(), np.append(np.full(5, 1e10), 1e4)
    ahead, square = steps[5], steps[5] @ steps[5]
    aside = np.eye(dim)[0] - ahead[0] / square * ahead
    aside *= np.sqrt(square / (aside @ aside))
    error = factor * 2 * chi2.isf(1e-3, dim * (dim + 1) // 2) / weights[5]
    turn = 2 * np.arcsin(np.sqrt(error / square) / 2)
    steps[5] = np.cos(turn) * ahead + np.sin(turn) * aside
    kappa = weights * square / (dim - 1)
    H = dataclasses.replace(G, translations=steps, kappa=kappa, tau=weights)
    S = sc.synchronize(H, robust="tls", trusted=np.arange(6) < 5)
    assert S.weights.tolist() == [1, 1, 1, 1, 1, weight]


def test_correct_precise_measurements_are_kept_without_refinement(dim):
    """The first surrogate is convex, however large the residuals of wrong loops are."""
    G, _ = pose_graph(dim, ring_with_chords(25, 20), noise=1e-5)
    G = planted(G, range(40, 45), np.random.default_rng(0))
    S = sc.synchronize(dataclasses.replace(G, kappa=1e9, tau=1e9), robust="tls")
    assert np.flatnonzero(S.weights < 0.5).tolist() == [40, 41, 42, 43, 44]


def test_suspicion_of_a_loop_is_its_error_in_standard_deviations(dim):
    """The errors of rotations have deviation sigma where kappa = 1 / ((dim - 1) sigma^2)."""
    G, _ = pose_graph(dim, ring_with_chords(6, 0))
    sigma, turn = 1e-3, np.eye(dim)
    turn[:2, :2] = plane(3 * sigma)
    rotations, weights = G.rotations.copy(), np.full(6, 1e8)
    rotations[5] = rotations[5] @ turn
    weights[5] = 1
    kappa = weights / (dim - 1) / sigma**2
    H = dataclasses.replace(G, rotations=rotations, kappa=kappa, tau=weights / sigma**2)
    S = sc.synchronize(H, robust="tls", refine=True, trusted=np.arange(6) < 5)
    assert S.suspicion[5] == pytest.approx(3, rel=1e-5)
    assert S.suspicion[:5].max() < 1e-3


def test_suspicion_with_landmarks_is_measured_at_the_poses(dim):
    """No second fit: its start is the same, but it would weigh sightings less."""
    G, poses = pose_graph(dim, ring_with_chords(8, 6), noise=0.2)
    marks = np.random.default_rng(0).standard_normal((2, dim))
    S = sc.synchronize(sighted(G, poses, marks, [[0, 0], [3, 0], [5, 1], [7, 1]], noise=0.2))
    moves = G.tau * S.distances**2
    squares = (S.edge_costs - moves) / (3 - dim + 1) + moves
    assert_residual(S.suspicion**2 - squares, squares, n=14)


def test_truncated_least_squares_apply_to_rotations_of_a_sheaf():
    F = sc.gallery.bundle(ring_with_chords(60, 80), dim=3, noise=0.02, seed=0)
    tails, heads = maps_of(F)
    bad = 60 + np.arange(0, 80, 8)
    heads[bad] = heads[bad] @ random_rotations(10, 3, np.random.default_rng(0))
    S = sc.synchronize(F.with_maps(1e3**0.5 * tails, 1e3**0.5 * heads), robust="tls")
    assert np.flatnonzero(S.weights == 0).tolist() == bad.tolist()
    assert S.cost == pytest.approx(S.weights @ S.edge_costs)
    assert S.translations is None


def test_a_pose_measured_only_by_outliers_is_placed_by_one_of_them(dim):
    """Its only two measurements contradict trusted ones; one goes, with a tiny weight left."""
    G, _ = pose_graph(dim, ring_with_chords(10, 5), noise=0.01)
    turn = random_rotations(2, dim, np.random.default_rng(1))
    H = appended(G, [[3, 10], [7, 10]], turn, 40 * np.eye(dim)[:2], 100.0, 100.0)
    S = sc.synchronize(H, robust="tls", refine=True)
    assert np.isfinite(S.cochain()).all()
    assert S.weights[:15].min() == 1
    assert sorted(S.weights[15:]) == [0, 1]


def test_sightings_count_where_the_fit_of_lower_cost_is_chosen():
    """Two fits with different edges discarded; the other one's sightings cost 150 more."""
    n, rng = 12, np.random.default_rng(113)
    R, t = plane(np.cumsum(rng.normal(0, 0.6, n))), 3 * np.cumsum(rng.normal(0, 1, (n, 2)), axis=0)
    chords = [rng.choice(n, 2, replace=False) for _ in range(8)]
    edges = np.array([*((i, i + 1) for i in range(n - 1)), *chords])
    turns, steps = [], []
    for e, (i, j) in enumerate(edges):
        wrong = e >= n - 1 and rng.random() < 0.5
        angle = rng.normal(0, 0.05) + (rng.uniform(-1, 1) if wrong else 0)
        turns.append(R[i].T @ R[j] @ plane(angle))
        step = R[i].T @ (t[j] - t[i]) + rng.normal(0, 0.1, 2)
        steps.append(step + (rng.normal(0, 2, 2) if wrong else 0))
    G, marks = sc.PoseGraph(edges, turns, steps, kappa=400.0, tau=100.0), rng.normal(0, 8, (5, 2))
    seen = np.array([(i, k) for i in range(n) for k in range(5) if rng.random() < 0.5])
    G = sighted(G, (R, t), marks, seen, noise=0.1, tau=np.full(len(seen), 100.0))

    def truncated_cost(R, t, marks):
        (i, j), (a, k), c2 = edges.T, seen.T, chi2.ppf(0.999, 3)
        moves = t[j] - t[i] - np.einsum("eij,ej->ei", R[i], steps)
        squares = 400 * np.square(R[j] - R[i] @ turns).sum(axis=(1, 2))
        squares += 100 * np.square(moves).sum(axis=1)
        missed = marks[k] - t[a] - np.einsum("eij,ej->ei", R[a], G.sightings.points)
        return np.minimum(squares, c2).sum() + 100 * np.square(missed).sum()

    S = sc.synchronize(G, robust="tls", refine=False)
    cost = truncated_cost(S.rotations, S.translations, np.nan_to_num(S.landmarks))
    assert cost < 1.5 * truncated_cost(R, t, marks)
