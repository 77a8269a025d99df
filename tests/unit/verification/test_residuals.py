"""Residuals: samples, batches, memory, norms of groups, sections and normalization."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen._support import linalg
from sheafcoarsen.verification import cluster_batches, relative_residual, residuals
from sheafcoarsen.verification.residuals import Evidence, degrees_and_roots
from tests.support.helpers import assert_verified, eps_of, peak_memory
from tests.support.strategies import DTYPES
from tests.unit.verification.test_statements import (
    CROSSING,
    REALIZATION,
    failed,
    with_modes,
    with_sheaf,
)

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_a_sample_finds_errors_that_affect_a_quarter_of_the_clusters(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.verification.residuals.DENSE_BUDGET", 1000.0)
    labels = np.append(np.arange(117) // 3, 7)  # cluster 7 is the largest
    F = sc.CellularSheaf.random(nx.path_graph(118), 2, 2, seed=3)
    C = sc.coarsen(F, sc.Partition(labels), 3)
    samples = [Evidence(C, seed).sample for seed in range(5)]
    assert all(15 <= len(np.unique(sample)) <= 16 and 7 in sample for sample in samples)
    assert len({tuple(sample) for sample in samples}) == 5
    following = C.modes.next_eigenvalues.copy()
    following[::4] *= 1 + 1e-6
    wrong = with_modes(C, next_eigenvalues=following)
    for seed in range(5):
        assert sc.verify(C, seed).passed
        V = sc.verify(wrong, seed)
        assert V["thm:local_spectral_optimality"].how == "probe"
        assert not V["thm:local_spectral_optimality"].passed


@pytest.mark.parametrize("dtype", DTYPES)
def test_coarsenings_with_large_clusters_pass_in_all_scalar_types(dtype):
    F = sc.CellularSheaf.random(nx.random_regular_graph(4, 200, seed=3), 2, 2, seed=1, dtype=dtype)
    C = sc.coarsen(F, sc.select(F, 4), 7)
    assert C.sheaf.dtype == dtype
    assert max(check.ratio or 0 for check in assert_verified(C)) > eps_of(dtype)


EDGES = np.stack(np.triu_indices(100, 1), axis=1)


@pytest.mark.large
@pytest.mark.parametrize(
    ("F", "labels", "rank", "most"),
    [  # a square matrix of the number of rows would take 512 MB, a dense coboundary 24 MB
        (sc.CellularSheaf.random([[0, 1], [1, 2]] * 4000, 1, 1, seed=3), [0, 0, 1], 2, 50e6),
        (sc.CellularSheaf.constant(np.concatenate([EDGES] * 6)), np.zeros(100, int), 1, 15e6),
    ],
    ids=["sections", "one cluster"],
)
def test_many_edges_take_little_memory(F, labels, rank, most):
    C = sc.coarsen(F, sc.Partition(labels), rank)
    sc.verify(C)  # compiles
    assert peak_memory(lambda: assert_verified(C))[1] < most


def test_norms_of_groups_are_accurate_at_any_scale():
    for moduli, groups, norms in (
        *(([3 * c, 1 * c, 4 * c], [2, 0, 2], [c, 0, 5 * c, 0]) for c in (1e-300, 1.0, 1e300)),
        ([1e300, 3e-300, 4e-300], [0, 1, 1], [1e300, 5e-300]),
    ):
        found = linalg.scaled_norms(np.array(moduli), np.array(groups), len(norms))
        np.testing.assert_allclose(found, norms, rtol=1e-15)
    A = np.array([[3.0, 1.0, 0.0], [4.0j, 0.0, 2.0], [0.0, 5.0, 12.0]])
    rows, columns = np.array([0, 0, 1]), np.array([0, 1, 1])
    whole = [np.linalg.norm(A[:2]), np.linalg.norm(A[2:])]
    for M in (A, scipy.sparse.csr_array(A), scipy.sparse.coo_array(A)):
        np.testing.assert_allclose(linalg.norms_by(M, rows, None, 2), whole)
        np.testing.assert_allclose(linalg.norms_by(M, rows, columns, 2), [5.0, 13.0])


def test_the_block_of_the_largest_ratio_is_named():
    errors, pairs = [[1.0, 3.0], [6.0, 0.0], [7.0, 1.0]], ([4, 9, 5], [4, 2, 5])
    for blocks, where in (
        ((), ""),
        (("edge",), "edge 1"),
        (("edge", [4, 9, 5]), "edge 9"),
        (("cluster", *pairs), "cluster 2 and cluster 9"),
    ):
        assert relative_residual(errors, 1, 1.0, [[1.0], [1], [2]], blocks=blocks).where == where
    assert relative_residual(errors, 1, 1.0, blocks=("cluster", *pairs)).where == "cluster 5"
    assert relative_residual([], 1, 1.0, blocks=("vertex",)).where == ""
    assert relative_residual([], 3, 1.0).ratio == 0.0
    assert relative_residual([1.5, 6.0], 3, 1.0, [1.0, 1.0]) == (2.0, 6.0, 3.0, "")
    assert relative_residual([1.5, np.nan], 3, 1.0).ratio == np.inf  # as NaN


def test_a_block_error_is_relative_to_the_larger_cluster():
    F = sc.CellularSheaf.constant(nx.path_graph(6))
    e = Evidence(sc.coarsen(F, sc.Partition([0, 1, 1, 1, 1, 1]), 1), 0)
    e.block_errors["identity"] = np.array([0.0, 0.0, 1e-15])
    factors = np.prod(e.R_norms), np.sqrt(np.prod(e.principal_norms))
    wanted = relative_residual(1e-15, 5, e.eps, *factors)
    assert e.worst_block("identity").ratio == pytest.approx(wanted.ratio)


@pytest.mark.parametrize("size", [30, 10**9])
def test_a_wrong_normalized_edge_is_caught_and_located_at_its_vertices(C, size, monkeypatch):
    def wrong(F):
        G = sc.normalize(F)
        tail = G.tail_data.copy()
        tail[G.tail_offsets[7] : G.tail_offsets[8]] *= 1 + 1e-6
        return G.with_maps(tail, G.head_data)

    monkeypatch.setattr(cluster_batches, "PIECE", size)
    right = sc.verify(C)
    assert max(right[label].ratio for label in ("fact-5", "fact-6")) < 5
    monkeypatch.setattr(residuals, "normalize", wrong)
    V = sc.verify(C)
    assert min(V[label].ratio for label in ("fact-5", "fact-6")) > 30
    u, v = sorted(C.fine.edges[7].tolist())
    assert V["fact-5"].where in {f"vertex {u}", f"vertex {v}", f"vertex {u} and vertex {v}"}


def test_a_wrong_factor_of_a_degree_is_located(C, monkeypatch):
    def wrong(F):
        given, factors = sc.operators.degree_factors(F)
        factors = factors.copy()
        factors[9 * 9 : 10 * 9] *= 1 + 1e-6
        return given, factors

    monkeypatch.setattr(cluster_batches, "PIECE", 30)
    for module in ("verification.residuals", "operators._normalize"):
        monkeypatch.setattr(f"sheafcoarsen.{module}.degree_factors", wrong)
    check = sc.verify(C)["fact-5"]
    assert (check.passed, check.where) == (False, "vertex 9")


def test_degree_roots_ignore_rounding_errors_of_cancelling_maps():
    F = sc.CellularSheaf([[0, 0], [1, 1]], np.ones((2, 1, 1)), [[[1 + 3e-16]], [[-1.0]]])
    assert degrees_and_roots(F, 2.0**-52)[2].tolist() == [0, 0.5]


@pytest.mark.parametrize("size", [1, 40])
def test_ratios_do_not_depend_on_the_batch_size(C, size, monkeypatch):
    whole = sc.verify(C)
    monkeypatch.setattr(cluster_batches, "PIECE", size)
    for ours, theirs in zip(sc.verify(C).checks, whole.checks, strict=True):
        assert (ours.verdict, ours.how) == (theirs.verdict, theirs.how)
        if ours.ratio is not None:
            assert ours.ratio == pytest.approx(theirs.ratio, rel=0.5, abs=1e-2)


@pytest.mark.parametrize(("cluster", "column"), [(1, 0), (0, -1)])
def test_entries_outside_the_diagonal_blocks_of_r_raise(C, cluster, column):
    R = C.prolongation.toarray()
    R[C.fine.vertex_offsets[C.partition.cluster(cluster)[0]], column] = 1e-3
    damaged = scipy.sparse.csr_array(R)
    wrong = sc.coarsen(C.fine, C.partition, C.ranks)
    for name in ("data", "indices", "indptr"):
        setattr(wrong.prolongation, name, getattr(damaged, name))
    for use in (lambda: dataclasses.replace(C, prolongation=damaged), lambda: sc.verify(wrong)):
        with pytest.raises(ValueError, match="R must hold a full block for every cluster"):
            use()


def test_an_error_in_one_of_many_batches_is_caught(monkeypatch):
    monkeypatch.setattr(cluster_batches, "PIECE", 50)
    F = sc.CellularSheaf.random(nx.grid_2d_graph(12, 12), 2, 2, seed=5)
    C = sc.coarsen(F, sc.select(F, 24), 3)
    assert sc.verify(C).passed
    e = C.n_crossing_edges // 2
    tail = C.sheaf.tail_data.copy()
    tail[C.sheaf.tail_offsets[e]] += 1e-6
    assert failed(with_sheaf(C, tail=tail)) == {REALIZATION, CROSSING}


@pytest.mark.large
def test_peak_memory_is_bounded_by_the_batch_size(monkeypatch):
    """Only one number per cluster, edge and block is stored, besides a few batches."""
    monkeypatch.setattr(cluster_batches, "PIECE", 5000)
    F = sc.CellularSheaf.random(nx.grid_2d_graph(60, 60), 3, 3, seed=1)
    C = sc.coarsen(F, sc.select(F, 180), 4)
    arrays = F.tail_data, F.head_data, C.prolongation.data, C.prolongation.indices
    given = sum(array.nbytes for array in arrays)
    sc.verify(C)  # compiles
    assert peak_memory(lambda: assert_verified(C))[1] < 5 * given
