"""The joint sheaf, and certificates that poses are the best."""

import dataclasses
import pickle
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.sparse.linalg import ArpackNoConvergence

import sheafcoarsen as sc
from tests.support.helpers import assert_residual
from tests.unit.synchronization.conftest import (
    appended,
    cost_by_hand,
    plane,
    pose_graph,
    random_rotations,
    rescaled,
    ring_with_chords,
    sighted,
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
    chain = sc.PoseGraph(
        np.arange(n - 1)[:, None] + [0, 1],
        plane(np.full(n - 1, angle + 0.1)),
        np.tile([1.0, 0.0], (n - 1, 1)),
        kappa=20_000.0,
        tau=100.0,
    )
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
    lonely = sc.PoseGraph(
        np.zeros((0, 2), int), np.zeros((0, dim, dim)), np.zeros((0, dim)), n_vertices=2
    )
    once = dataclasses.replace(
        chain, sightings=sc.Sightings([[1, 0]], np.ones((1, dim)), 1.0, places=np.zeros((2, dim)))
    )
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
