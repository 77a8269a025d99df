"""Estimates of the cost of a factorization."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.operators import Order, factorization
from tests.support.helpers import assert_residual


def chords(n, count, seed=0):
    """Return a path with random chords, which has wide breadth-first levels but little fill."""
    rng = np.random.default_rng(seed)
    path = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    closures = rng.integers(0, n, (count, 2))
    return np.concatenate([path, closures[closures[:, 0] != closures[:, 1]]])


def test_wide_levels_with_little_fill_are_factored():
    """Levels alone would select an iterative solver, which does not converge."""
    F = sc.gallery.bundle(chords(1700, 340), 3, noise=0.1, seed=0)
    L = sc.laplacian(F)
    levels = factorization._level_sizes(abs(L), np.arange(L.shape[0]))
    assert float(levels.max()) ** 3 > factorization.DIRECT_BEFORE * len(levels) * L.nnz
    assert factorization.fills_little(L)
    assert sc.Solver(F, fixed=[0]).method == "direct"
    x = sc.harmonic_extension(F, [0], [np.eye(3)])
    assert_residual((L @ x)[3:], L, x, n=10)


def test_counting_operations_stops_at_the_limit(monkeypatch):
    L = sc.laplacian(sc.CellularSheaf.constant(chords(6000, 2000)))
    assert factorization.fills_little(L)
    monkeypatch.setattr(factorization, "DIRECT_OPERATIONS", 1e4)
    assert not factorization.fills_little(L)


def test_small_matrices_are_factored_regardless_of_fill(monkeypatch):
    for name in ("DIRECT_BEFORE", "DIRECT_OPERATIONS"):
        monkeypatch.setattr(factorization, name, -1)
    for n, little in ((5000, True), (5002, False)):
        L = sc.laplacian(sc.CellularSheaf.constant(nx.random_regular_graph(3, n, seed=1)))
        assert factorization.fills_little(L) == little


def test_surfaces_are_factored_because_their_levels_are_narrow(monkeypatch):
    """Operations are not counted, because that would take longer."""
    monkeypatch.setattr(
        factorization, "elimination_order", lambda L, most: Order(np.arange(0), np.inf, 0)
    )
    for graph, little in (
        (nx.grid_2d_graph(80, 80), True),
        (nx.random_regular_graph(4, 6400, seed=1), False),
    ):
        L = sc.laplacian(sc.CellularSheaf.constant(graph))
        assert factorization.fills_little(L) == little


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_small_matrices_with_full_rows_are_not_factored():
    """For 5000 vertices with 200 edges each, factors take 22 s, an iterative solver 1 s."""
    dense = sc.CellularSheaf.constant(np.random.default_rng(0).integers(0, 3000, (150_000, 2)))
    assert not factorization.fills_little(sc.laplacian(dense))
    assert sc.Solver(dense).method == "multigrid"
    few = sc.CellularSheaf.constant(np.random.default_rng(0).integers(0, 3000, (30_000, 2)))
    assert factorization.fills_little(sc.laplacian(few))
