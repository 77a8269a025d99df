"""Certificates enclose fine eigenvalues, and their constants match their definitions."""

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition, gallery
from tests.support import reference
from tests.support.helpers import assert_residual, eps_of, size
from tests.unit.quality.test_spectral_quality import (
    HALVES,
    PATH,
    coarsen,
    coarsenings,
    exact,
    prolongation,
    squared_spectrum,
)


@given(coarsenings(kinds=("internal", "kernel")))
def test_the_interval_encloses_every_fine_eigenvalue(C):
    F, B = C.fine, sc.certificate(C)
    delta = exact(reference.coboundary(F))
    spectra = (squared_spectrum(D) for D in (delta, delta @ prolongation(C)))
    fine, nu = (values * unit * unit for values, unit in spectra)
    lower, upper = B.interval(nu)
    fine = fine[: len(nu)]
    assert lower.shape == upper.shape == nu.shape
    assert (lower >= 0).all()
    for excess in (lower - fine, fine - upper):
        positive = np.maximum(excess, 0)
        assert_residual(positive, delta, delta, n=max(F.dim_c0, 1), eps=eps_of(F.dtype))
    assert upper.tolist() == nu.tolist()
    assert_constants(C, B)
    assert_beta(C, B.beta)


def assert_constants(C, B):
    """Compare the constants of a certificate with their definitions."""
    F, P = C.fine, C.partition
    gaps, levels, eps = [np.inf], [0.0], eps_of(F.dtype)
    for a, r in enumerate(C.ranks.tolist()):
        N = len(reference.cluster_coordinates(F, P, a))
        if r < N:
            values = reference.local_modes(F, P, a, r)[0]
            gaps.append(float(values[r]))
            levels.append(N * eps * size(reference.internal_coboundary(F, P, a)) ** 2)
    if np.isinf(min(gaps)):
        assert B.gamma == np.inf
    else:
        unit = max(levels) / eps if max(levels) else 1.0
        assert_residual(B.gamma - max(min(gaps), 0.0), unit, n=1, eps=eps)
        assert B.gamma <= min(gaps) or B.gamma - min(gaps) <= 4 * max(levels)
    # at least the error of a dense solver on R* L R
    norm = np.linalg.norm(reference.coboundary(F), 2) ** 2 if F.dim_c1 and F.dim_c0 else 0.0
    assert B.rounding >= 0.99 * 30 * C.sheaf.dim_c0 * eps * norm
    if B.gamma == 0:
        assert B.kappa == B.mu == np.inf
        return
    kappa = B.beta / B.gamma * B.beta
    assert B.kappa == pytest.approx(kappa, rel=1e-12)
    if 0 < kappa < 1e150:
        # mu is the root above 1 of (mu - 1)^2 = kappa mu
        assert (B.mu - 1) ** 2 == pytest.approx(kappa * B.mu, rel=1e-6 / min(kappa, 1) ** 0.5)
    assert B.mu >= 1
    for nu in (0.0, B.gamma if np.isfinite(B.gamma) else 1.0):
        lower, upper = B.interval(nu)
        assert isinstance(lower, float)
        assert upper == nu
        assert lower == pytest.approx(nu / (B.mu + nu / B.gamma), rel=1e-12)


def assert_beta(C, beta):
    """Assert that beta is an upper bound on the norm of the crossing rows."""
    squares, unit = squared_spectrum(exact(reference.fine_crossing_coboundary(C.fine, C.partition)))
    true = float(np.sqrt(squares.max(initial=0.0))) * unit
    assert beta >= true * (1 - 1e-13)
    # blocks of equal norm that cancel in the matrix
    assert beta <= true * np.sqrt(max(C.fine.n_vertices, 1)) * (1 + 1e-9)
    assert (beta == 0) == (true == 0)


GRAPHS = {
    "grid": nx.grid_2d_graph(8, 8),
    "star": nx.star_graph(60),
    "random": nx.gnm_random_graph(60, 180, seed=3),
    "tree": nx.random_labeled_tree(60, seed=5),
    "scale free": nx.barabasi_albert_graph(60, 2, seed=7),
}
KINDS = {
    "constant": CellularSheaf.constant,
    "general": lambda G: CellularSheaf.random(G, 2, 3, seed=7, dtype=complex),
    "orthogonal": lambda G: gallery.bundle(G, 3, seed=5),
    "feeder": lambda G: CellularSheaf.random(G, [1 + v % 3 for v in G], 2, seed=7),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("graph", GRAPHS)
def test_beta_is_close_to_the_norm_of_the_crossing_rows(graph, kind):
    G = nx.convert_node_labels_to_integers(GRAPHS[graph])
    n, F = G.number_of_nodes(), KINDS[kind](G)
    labels = np.random.default_rng(3).integers(0, n // 4, n)
    P = Partition(np.unique(labels, return_inverse=True)[1])
    beta = sc.certificate(coarsen(F, P, 1)).beta
    true = np.linalg.norm(reference.fine_crossing_coboundary(F, P), 2)
    assert true * (1 - 1e-13) <= beta <= 1.5 * true


def test_beta_is_exact_on_one_edge_of_any_scale():
    large = CellularSheaf([[0, 1]], [[[3e100, 0], [0, 1e100]]], [[[4e100], [0]]])
    maps = np.array([1e140, 1e-60]).reshape(2, 1, 1)
    weak = CellularSheaf([[0, 1], [1, 2]], maps, maps)  # at the crossing edge alone
    for F, labels, beta in ((large, [0, 1], 5e100), (weak, [0, 0, 1], np.sqrt(2) * 1e-60)):
        C = coarsen(F, Partition(labels), 1)
        assert sc.certificate(C).beta == pytest.approx(beta, rel=1e-12)


def test_gamma_is_infinite_if_nothing_is_discarded_and_zero_if_a_section_is():
    B = sc.certificate(sc.coarsen(PATH, HALVES, 2))
    assert (B.gamma, B.kappa, B.mu) == (np.inf, 0, 1)
    assert B.interval(3.0) == (3, 3)
    B = sc.certificate(coarsen(gallery.bundle(nx.cycle_graph(6), 2, seed=3), Partition([0] * 6), 1))
    assert (B.gamma, B.beta, B.kappa, B.mu) == (0, 0, np.inf, np.inf)
    assert B.interval(3.0) == (0, 3)
    assert B.interval(0.0) == (0, 0)
    assert B.interval(-B.rounding / 2) == (0, 0)
    assert [end.tolist() for end in B.interval([[1, 2]])] == [[[0, 0]], [[1, 2]]]


def test_beta_is_an_upper_bound_in_spite_of_rounding():
    """Without a correction, rounding would put beta below the norm in half of the cases."""
    rng = np.random.default_rng(11)
    for a, b in rng.standard_normal((60, 2)).tolist():
        F = CellularSheaf([[0, 1]], [[[a]]], [[[b]]])
        beta = sc.certificate(coarsen(F, Partition([0, 1]), 1)).beta
        square = Fraction(a) ** 2 + Fraction(b) ** 2
        assert square <= Fraction(beta) ** 2 < square * Fraction(1 + 1e-13)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_gamma_is_the_gap_minus_its_rounding_error(scale):
    """It is then a lower bound, although eigenvalues are computed."""
    F = CellularSheaf.constant(nx.path_graph(6))
    F = F.with_maps(F.tail_data * scale, F.head_data * scale)
    C = sc.coarsen(F, Partition([0, 0, 0, 1, 1, 1]), 1)
    rounding = 4 * 3 * eps_of(F.dtype) * 4  # 4 N_a eps norm(L_a, inf)
    gap = sc.certificate(C).gamma / scale / scale
    assert 1 - 1.5 * rounding < gap < 1 - 0.5 * rounding


def test_gamma_is_a_lower_bound_in_single_precision():
    """The eigenvalues that it comes from are rounded, half of them upwards."""
    P = Partition(np.arange(8) // 4)
    for seed in range(20):
        F = CellularSheaf.random(nx.path_graph(8), 2, 2, seed=seed, dtype=np.float32)
        double = F.with_maps(F.tail_data.astype(float), F.head_data.astype(float))
        gap = sc.local_modes(double, P, 2).next_eigenvalues.min()
        assert sc.certificate(sc.coarsen(F, P, 2)).gamma <= gap
