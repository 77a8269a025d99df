"""The cost of a factorization is counted, not guessed, before it is done."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen._kernels.sections import count_operations
from sheafcoarsen.operators import Factors
from sheafcoarsen.sections import fill
from tests.support.helpers import assert_residual


def chords(n, count, seed=0):
    """A path of n poses that closes loops at random: wide breadth-first levels, little fill."""
    rng = np.random.default_rng(seed)
    path = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    closures = rng.integers(0, n, (count, 2))
    return np.concatenate([path, closures[closures[:, 0] != closures[:, 1]]])


@pytest.mark.parametrize("seed", range(5))
def test_operations_are_those_of_a_dense_cholesky_factor(seed):
    rng = np.random.default_rng(seed)
    graph = nx.gnm_random_graph(30, 45, seed=seed)
    L = scipy.sparse.csr_array(nx.laplacian_matrix(graph)).astype(float)
    place = rng.permutation(30)
    order = np.argsort(place)
    # maps in general position, so that no fill cancels
    weights = rng.uniform(1, 2, (30, 30))
    dense = np.where(L.toarray() != 0, weights + weights.T, 0)[np.ix_(order, order)]
    factor = np.linalg.cholesky(dense + 100 * np.eye(30))
    lengths = (abs(factor) > 1e-14).sum(axis=0)
    arrays = (a.astype(np.int64) for a in (L.indptr, L.indices, place))
    assert count_operations(*arrays, 10**9) == (lengths**2).sum()


def test_counting_ends_where_it_is_too_much():
    L = scipy.sparse.csr_array(np.ones((50, 50)))
    everything = sum(k**2 for k in range(51))
    assert fill.operations(L, 1e9) == everything
    assert 1000 < fill.operations(L, 1000) < everything


def test_the_order_is_that_of_the_factorization():
    L = sc.laplacian(sc.CellularSheaf.constant(nx.random_regular_graph(3, 300, seed=1)))
    factors = Factors(L, 1.0)._factors
    lengths = np.diff(factors.L.indptr)
    assert fill.operations(L, 1e9) == (lengths.astype(float) ** 2).sum()


def test_wide_levels_with_little_fill_are_factored():
    """What a look at the levels alone would iterate on, without getting there."""
    F = sc.gallery.bundle(chords(3000, 600), 3, noise=0.1, seed=0)
    L = sc.laplacian(F)
    levels = fill._level_sizes(abs(L), np.arange(L.shape[0]))
    assert float(levels.max()) ** 3 > fill.DIRECT_BEFORE * len(levels) * L.nnz
    assert fill.fills_little(L)
    assert sc.Solver(F, fixed=[0]).method == "direct"
    x = sc.harmonic_extension(F, [0], [np.eye(3)])
    assert_residual((L @ x)[3:], L, x, n=10)


def test_what_is_spent_is_bounded(monkeypatch):
    L = sc.laplacian(sc.CellularSheaf.constant(chords(6000, 2000)))
    assert fill.fills_little(L)
    monkeypatch.setattr(fill, "DIRECT_OPERATIONS", 1e4)
    assert not fill.fills_little(L)
    monkeypatch.undo()
    monkeypatch.setattr(fill, "ORDERED_UP_TO", 5999)
    assert not fill.fills_little(L)


def test_few_unknowns_are_factored_whatever_they_fill(monkeypatch):
    for name in ("DIRECT_CYCLES", "DIRECT_BEFORE", "DIRECT_OPERATIONS"):
        monkeypatch.setattr(fill, name, -1)
    for n, little in ((5000, True), (5002, False)):
        L = sc.laplacian(sc.CellularSheaf.constant(nx.random_regular_graph(3, n, seed=1)))
        assert fill.fills_little(L) == little


def test_surfaces_are_factored_for_the_sake_of_their_narrow_levels(monkeypatch):
    """Without a count, which large ones do not have."""
    monkeypatch.setattr(fill, "ORDERED_UP_TO", 0)
    for graph, little in (
        (nx.grid_2d_graph(80, 80), True),
        (nx.random_regular_graph(4, 6400, seed=1), False),
    ):
        L = sc.laplacian(sc.CellularSheaf.constant(graph))
        assert fill.fills_little(L) == little


@pytest.mark.parametrize(("closures", "little"), [(990, True), (1100, False)])
def test_graphs_with_few_cycles_are_factored(closures, little, monkeypatch):
    """They are nearly forests, whatever their levels and the count say."""
    for name in ("DIRECT_BEFORE", "DIRECT_OPERATIONS"):
        monkeypatch.setattr(fill, name, 0)
    L = sc.laplacian(sc.CellularSheaf.constant(chords(6000, closures)))
    assert fill.fills_little(L) == little
