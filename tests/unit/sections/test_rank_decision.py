"""Ranks: which singular values are zero, whether that is clear, full ranks, bounds on h0."""

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import assume, given

import sheafcoarsen as sc
from sheafcoarsen.sections import _global_sections, rank_decision
from sheafcoarsen.sections.rank_decision import section_bound, sections_of_full_rank
from tests.support import reference
from tests.support.helpers import assert_residual, dense_rank, maps_of
from tests.support.strategies import sheaves
from tests.unit.sections.conftest import gaussian

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.complex64)


@pytest.mark.parametrize("rows", [5, 1024, 1025, 5000])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("whole", [False, True])
def test_singular_pairs_on_a_subspace_are_resolved_below_the_root_of_eps(whole, rows, dtype):
    rng = np.random.default_rng(rows)
    X = np.linalg.qr(rng.standard_normal((40, 7)).astype(dtype))[0]
    D = rng.standard_normal((rows, 40)).astype(dtype)
    if dtype is complex:
        D, X = D + 1j * rng.standard_normal(D.shape), X * 1j
    D = D - (1 - 1e-11) * (D @ X[:, :1]) @ X[:, :1].conj().T
    sigma, V = rank_decision.singular_pairs(scipy.sparse.csr_array(D), None if whole else X)
    X = np.eye(40) if whole else X
    exact = np.linalg.svd(D @ X, compute_uv=False)[::-1]
    exact = np.append(np.zeros(X.shape[1] - len(exact)), exact)
    assert np.abs(sigma - exact).max() <= 30 * np.finfo(float).eps * exact[-1]
    assert_residual(np.linalg.norm(D @ V, axis=0) - sigma, exact[-1], n=rows)
    assert_residual(V.conj().T @ V - np.eye(X.shape[1]), n=40)
    assert_residual(V - X @ (X.conj().T @ V), n=40)


def test_the_threshold_grows_if_small_singular_values_were_eliminated():
    eps = 2.0**-52
    assert rank_decision.zero_threshold(400, eps, 1.0) == 10 * 400 * eps
    assert rank_decision.zero_threshold(400, eps, 0.01) == 10 * 400 * eps / 0.01
    # errors of single precision do not grow with the dimension
    assert rank_decision.zero_threshold(400, 2.0**-23, 1.0) == 10 * 2.0**-23


@pytest.mark.parametrize(
    ("zero", "nonzero", "threshold", "weight", "dtype", "rows", "clear"),
    [
        (0.0, np.inf, 1e-12, 1.0, DOUBLE, 1, True),
        (1e-15, 0.1, 1e-12, 1.0, DOUBLE, 1, True),
        (1.9e-14, 1.1e-9, 1e-12, 1.0, DOUBLE, 1, True),
        (2.5e-14, 0.1, 1e-12, 1.0, DOUBLE, 1, False),  # above 100 eps
        (1e-15, 0.9e-9, 1e-12, 1.0, DOUBLE, 1, False),  # below 1000 times the threshold
        (2.5e-14, np.inf, 1e-12, 1.0, DOUBLE, 1, False),
        # zeros may be larger if the threshold is far above rounding
        (0.9e-13, 1.0, 1e-10, 1.0, DOUBLE, 1, True),
        (1.1e-13, 1.0, 1e-10, 1.0, DOUBLE, 1, False),
        # zeros above the threshold, due to errors of maps of large weight, also need a gap
        (0.9e-14, 1.1e-11, 1e-15, 1.0, DOUBLE, 1, True),
        (0.9e-14, 0.8e-11, 1e-15, 1.0, DOUBLE, 1, False),
        # single precision needs a smaller gap
        (0.0, 3.1e-5, 1e-5, 1.0, SINGLE, 1, True),
        (0.0, 2.9e-5, 1e-5, 1.0, SINGLE, 1, False),
        (1.1e-5, 1.0, 1e-5, 1.0, SINGLE, 1, True),
        (1.3e-5, 1.0, 1e-5, 1.0, SINGLE, 1, False),
        # zeros of ill-conditioned maps may be larger
        (1e-11, 1.0, 1e-12, 1.0, DOUBLE, 1, False),
        (1e-11, 1.0, 1e-12, 1e3, DOUBLE, 1, True),
        (1e-11, 0.9e-8, 1e-12, 1e3, DOUBLE, 1, False),
        # zeros may be larger if many rows are rounded
        (1e-13, 1.0, 1e-12, 1.0, DOUBLE, 190_000, False),
        (1e-13, 1.0, 1e-12, 1.0, DOUBLE, 210_000, True),
    ],
)
def test_singular_values_near_the_threshold_are_doubtful(
    zero, nonzero, threshold, weight, dtype, rows, clear
):
    reason = rank_decision.doubt(zero, nonzero, threshold, weight, dtype, rows)
    assert (reason is None) == clear
    assert clear or f"counted as zero is {zero:.2g}" in reason


@pytest.mark.large
def test_the_sections_of_a_large_complete_graph_are_clear():
    F = sc.CellularSheaf.constant(nx.complete_graph(700))
    assert sc.global_sections(F).h0 == 1  # without a warning


EXPANDER = nx.random_regular_graph(4, 60, seed=1)


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize(("edge_dim", "h0"), [(1, 60), (2, 0), (3, 0)])
def test_sections_of_full_rank_match_a_dense_decomposition(dtype, edge_dim, h0):
    F = sc.CellularSheaf.random(EXPANDER, 3, edge_dim, seed=2, dtype=dtype)
    F = sc.normalize(F)
    found = sections_of_full_rank(F)
    basis = found.basis()
    assert basis.shape == found.shape == (180, h0)
    delta = reference.coboundary(F)
    assert_residual(delta @ basis, delta, n=180)
    assert_residual(basis.conj().T @ basis - np.eye(h0), n=180)
    sigma = np.linalg.svd(delta, compute_uv=False)
    assert 0.1 * sigma[-1] < found.smallest < 10 * sigma[-1]


def test_unclear_ranks_are_left_to_coarsening(monkeypatch):
    # it has one section more than the full rank gives
    constant = sc.CellularSheaf.constant(EXPANDER)
    assert sections_of_full_rank(constant) is None
    G = nx.convert_node_labels_to_integers(nx.grid_2d_graph(8, 8))
    nearly = sc.gallery.bundle(G, 2, noise=1e-5, seed=3)
    assert sections_of_full_rank(nearly) is None
    clearly = sc.normalize(sc.gallery.bundle(G, 2, noise=0.01, seed=3))
    sigma = np.linalg.svd(reference.coboundary(clearly), compute_uv=False)
    assert 0.1 * sigma[-1] < sections_of_full_rank(clearly).smallest < 10 * sigma[-1] < 0.1
    unseen = sc.CellularSheaf([[0, 1]], [[[1.0, 0.0]]], [[[1.0, 0.0]]])
    assert sections_of_full_rank(unseen).basis().shape == (4, 3)
    nothing = sc.CellularSheaf([[0, 1]], np.zeros((1, 1, 2)), np.zeros((1, 1, 2)))
    assert sections_of_full_rank(nothing) is None
    monkeypatch.setattr(rank_decision, "LARGEST", 100)
    assert sections_of_full_rank(sc.CellularSheaf.random(EXPANDER, 3, 2, seed=2)) is None


def test_matrices_that_look_nearly_singular_are_not_factored(monkeypatch):
    """The smallest eigenvalues are 1e-6 and 1e-2 at sizes where factors take seconds."""
    real, calls = scipy.linalg.cholesky, []
    monkeypatch.setattr("scipy.linalg.cholesky", lambda *a, **k: calls.append(0) or real(*a, **k))
    assert sections_of_full_rank(sc.CellularSheaf.constant(nx.path_graph(2100))) is None
    assert not calls
    star = sc.CellularSheaf(
        [[k, k] for k in range(2100)], *np.ones((2, 2100, 1, 1)) * [[[[2]]], [[[1]]]]
    )
    assert sections_of_full_rank(star).shape == (2100, 0)
    assert calls == [0]


def test_the_rank_is_checked_again_after_a_level_too_large_to_factor(monkeypatch, cluster_sizes):
    cluster_sizes(2, 6, 100)
    F = sc.CellularSheaf.random(EXPANDER, 3, 1, seed=2)
    monkeypatch.setattr(rank_decision, "LARGEST", 80)  # the matrices have 90 rows first, then 70
    S = sc.global_sections(F)
    # the dimensions after the first depend on rounding
    assert (S.h0, S.levels[0], len(S.levels)) == (60, 180, 3)
    assert 180 > S.levels[1] > S.levels[2] > 120


def test_rows_at_rounding_level_do_not_count_as_rank(cluster_sizes):
    """One of two rows of each edge is 1e-16 times the other: there are 240 sections, not 120."""
    cluster_sizes(2, 6, 100)
    maps = np.random.default_rng(3).standard_normal((2, 120, 2, 6))
    maps[:, :, 1] *= 1e-16
    S = sc.global_sections(sc.CellularSheaf(np.array(EXPANDER.edges), *maps))
    assert S.h0 == 240
    assert S.largest_zero < 1e-13 < 0.1 < S.smallest_nonzero


@pytest.mark.parametrize("entries", [0, 1 << 22], ids=["sparse", "dense"])
@pytest.mark.parametrize("condition", [1.0, 1e6])
@pytest.mark.parametrize("dtype", [float, complex])
def test_full_rank_is_used_if_coarsening_stalls(
    monkeypatch, cluster_sizes, dtype, condition, entries
):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", entries)
    cluster_sizes(2, 6, 100)
    calls = []
    monkeypatch.setattr(
        _global_sections,
        "sections_of_full_rank",
        lambda sheaf: calls.append(sheaf.dim_c0) or sections_of_full_rank(sheaf),
    )
    F = sc.CellularSheaf.random(EXPANDER, 3, 1, seed=2, dtype=dtype)
    frames = np.random.default_rng(7).standard_normal((60, 3, 3))
    # the scales are the same for all edges at a vertex
    frames = frames * np.geomspace(1, condition, 3)
    F = F.with_maps(*(maps @ frames[v] for maps, v in zip(maps_of(F), F.edges.T, strict=True)))
    S = sc.global_sections(F)
    assert scipy.sparse.issparse(S.basis) == (entries == 0)
    assert len(calls) == 1
    assert S.h0 == 60
    assert S.levels == (180, calls[0])
    assert 60 < calls[0] < 180  # the dimension after one level
    wanted = reference.global_sections(F)
    B = S.toarray()
    assert_residual(B.conj().T @ B - np.eye(60), n=180)
    assert_residual(B @ B.conj().T - wanted @ wanted.conj().T, 100 * condition, n=180)
    assert S.residual < 1e-14
    assert S.largest_zero < 1e-13 < 1e-3 < S.smallest_nonzero


def chain(n, dim, seed):
    """Return random square maps on a path of n edges, with h0 = dim."""
    return gaussian(np.array(nx.path_graph(n + 1).edges), dim, seed=seed)


@given(sheaves(dtypes=(np.float64, np.complex128)))
def test_the_bound_holds_on_any_sheaf(F):
    sigma = np.linalg.svd(reference.coboundary(F), compute_uv=False)
    largest = sigma.max(initial=0.0)
    assume(not ((sigma > 1e-15 * largest) & (sigma < 1e-6 * largest)).any() or largest == 0)
    h0 = F.dim_c0 - dense_rank(reference.coboundary(F))
    assert h0 <= section_bound(F)
    # it is computed only if h0 is larger
    assert section_bound(F) >= max(F.dim_c0 - F.dim_c1, F.vertex_dims.min(initial=0))


def test_the_bound_matches_known_values():
    F = chain(20, 3, seed=0)
    for scale in (1e-149, 1.0, 1e100):
        assert section_bound(F.with_maps(F.tail_data * scale, F.head_data * scale)) == 3
    scales = np.geomspace(1e-18, 1, 20).repeat(9)  # one for each edge
    assert section_bound(F.with_maps(F.tail_data * scales, F.head_data * scales)) == 3
    assert section_bound(sc.CellularSheaf.constant([[0, 1], [2, 3]], dim=2)) == 4
    # roots have minimum dimension; one map on a stalk of dimension 3 has rank 1
    low = np.ones((2, 3))
    F = sc.CellularSheaf([[0, 1], [1, 0]], [low, np.eye(2)], [np.eye(2), low])
    assert section_bound(F) == 2 + 2
    zero = sc.CellularSheaf([[0, 1]], [np.zeros((2, 2))], [np.zeros((2, 2))])
    assert section_bound(zero) == 4
    assert section_bound(sc.CellularSheaf([], [], [], vertex_dims=[2, 0, 1])) == 3
    assert section_bound(sc.CellularSheaf([[0, 0]], [np.eye(2)], [-np.eye(2)])) == 2
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    for small, bound in ((1e-10, 3), (1e-15, 4)):  # the second is singular up to rounding
        A = turn @ np.diag([1.0, 1.0, small]) @ turn.T
        assert section_bound(sc.CellularSheaf([[0, 1]], [A], [A])) == bound


@pytest.mark.large
@pytest.mark.usefixtures("no_forests")
@pytest.mark.parametrize("function", [sc.global_sections, sc.cohomology_dims])
def test_a_wrong_h0_on_a_long_chain_always_warns(function):
    """Coarsening decides most of these chains by rounding; forests are decided exactly."""
    wrong = 0
    for n, dim in ((600, 1), (1000, 1), (3000, 1), (300, 3), (1000, 3)):
        for seed in range(2):
            with warnings.catch_warnings(record=True, action="always") as caught:
                found = function(chain(n, dim, seed))
            if (found.h0 if function is sc.global_sections else found[0]) == dim:
                continue
            wrong += 1
            assert [w.category for w in caught] == [sc.SingularProblemWarning]
            assert caught[0].filename == __file__
            assert "rounding errors determine" in str(caught[0].message)
    assert wrong >= 4


def valley():
    """Return a path whose maps decay to 1e-40 and grow again, with clear singular values."""
    n = 400
    slope = np.where(np.arange(n) < n // 2, 0.5, 2.0)
    edges = np.stack([np.arange(n), np.arange(1, n + 1)], axis=1)
    return sc.CellularSheaf(edges, slope[:, None, None], np.ones((n, 1, 1)))


def test_h0_above_the_bound_warns_even_if_singular_values_are_clear(monkeypatch):
    S = sc.global_sections(valley())  # by substitution along the tree
    assert S.h0 == 1
    assert S.residual < 1e-15
    monkeypatch.setattr(_global_sections, "forest_sections", lambda F: None)
    with pytest.warns(sc.SingularProblemWarning, match="a spanning tree bounds h0 by 1") as caught:
        S = sc.global_sections(valley())
    assert S.h0 == 2
    assert caught[0].filename == __file__
