"""Coboundaries of full rank against dense decompositions."""

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen.sections import rank_decision
from sheafcoarsen.sections.rank_decision import sections_of_full_rank
from tests.support import reference
from tests.support.helpers import assert_residual

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
def test_full_rank_is_used_if_coarsening_stalls(monkeypatch, cluster_sizes, condition, entries):
    monkeypatch.setattr("sheafcoarsen.sections.lifting.DENSE_ENTRIES", entries)
    cluster_sizes(2, 6, 100)
    calls = []
    real = rank_decision.sections_of_full_rank

    def counted(sheaf):
        calls.append(sheaf.dim_c0)
        return real(sheaf)

    monkeypatch.setattr("sheafcoarsen.sections._global_sections.sections_of_full_rank", counted)
    F = sc.CellularSheaf.random(EXPANDER, 3, 1, seed=2)
    frames = np.random.default_rng(7).standard_normal((60, 3, 3))
    # the scales are the same for all edges at a vertex
    frames = frames * np.geomspace(1, condition, 3)
    tails, heads = (F.tail_data.reshape(-1, 1, 3), F.head_data.reshape(-1, 1, 3))
    F = F.with_maps(tails @ frames[F.edges[:, 0]], heads @ frames[F.edges[:, 1]])
    S = sc.global_sections(F)
    assert scipy.sparse.issparse(S.basis) == (entries == 0)
    assert len(calls) == 1
    assert S.h0 == 60
    assert S.levels == (180, calls[0])
    assert 60 < calls[0] < 180  # the dimension after one level
    wanted = reference.global_sections(F)
    B = S.toarray()
    assert_residual(B.T @ B - np.eye(60), n=180)
    assert_residual(B @ B.T - wanted @ wanted.T, 100 * condition, n=180)
    assert S.residual < 1e-14
    assert S.largest_zero < 1e-13 < 1e-3 < S.smallest_nonzero
