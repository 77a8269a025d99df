"""Sections of networks after elimination of leaves and chains."""

import dataclasses

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.sections import _global_sections
from sheafcoarsen.sections._global_sections import extended, without_chains
from tests.support.helpers import assert_residual
from tests.support.strategies import DTYPES
from tests.unit.sections.conftest import check_basis

pytestmark = pytest.mark.large


def streets(n=600, seed=3):
    """Return a cubic graph with subdivided edges and dead ends, and a separate tree."""
    rng = np.random.default_rng(seed)
    graph = nx.random_regular_graph(3, n, seed=seed)
    for u, v in list(graph.edges):
        between = [graph.number_of_nodes() + k for k in range(rng.integers(3))]
        graph.remove_edge(u, v)
        nx.add_path(graph, [u, *between, v])
    for u in range(0, n, 2):
        graph.add_edge(u, graph.number_of_nodes())
    nx.add_path(graph, graph.number_of_nodes() + np.arange(5))
    return graph


@pytest.mark.parametrize("dtype", DTYPES)
def test_elimination_gives_the_same_sections(dtype, monkeypatch):
    F = sc.gallery.bundle(streets(), 2, seed=3)
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    S = sc.global_sections(F)
    assert S.levels[0] == F.dim_c0
    assert S.levels[1] <= 2 * 602
    monkeypatch.setattr(_global_sections, "without_chains", lambda F: None)
    whole = sc.global_sections(F)
    assert whole.levels[1] < whole.levels[0] != S.levels[1]
    assert S.h0 == whole.h0 == 4
    eps = float(np.finfo(dtype).eps)
    x, y = S.basis, whole.basis
    check_basis(F, S)
    assert_residual(x - y @ (y.conj().T @ x), 1.0, n=100, eps=eps)
    assert S.residual < 10 * eps


def test_sections_vanish_on_components_without_sections():
    F = sc.CellularSheaf.random(streets(), 2, 2, kind="orthogonal", seed=3)
    S = sc.global_sections(F)
    assert S.h0 == 2  # the sections of the tree
    assert S.levels[0] == F.dim_c0
    assert abs(S.basis[: -5 * 2]).max() < 1e-13


def test_elimination_is_not_used_if_it_removes_little():
    dense, long = nx.random_regular_graph(3, 3000, seed=3), nx.cycle_graph(3000)
    assert without_chains(sc.CellularSheaf.constant(dense)) is None
    assert without_chains(sc.CellularSheaf.constant(long)) is None  # too few vertices remain
    assert without_chains(sc.CellularSheaf.constant(streets(200))) is None  # the sheaf is too small
    graph = streets(800)
    assert without_chains(sc.CellularSheaf.constant(graph)) is not None
    wide = sc.CellularSheaf.random(graph, 2, 1, seed=3)
    assert without_chains(wide) is None  # some sections are supported on chains
    nx.add_path(graph, [0, *(graph.number_of_nodes() + np.arange(80))])
    edges = np.sort(np.array(graph.edges), axis=1)
    maps = np.ones((2, len(edges), 1, 1))
    maps[1, edges[:, 1] > graph.number_of_nodes() - 80] = 0.5
    # values double along the chain, so rounding errors grow
    assert without_chains(sc.CellularSheaf(edges, *maps)) is None


def test_extended_sections_with_large_residuals_are_not_used():
    F = sc.CellularSheaf.constant(streets(800))
    K = without_chains(F)
    reduced = sc.global_sections(K.sheaf)
    assert extended(K, reduced).basis.shape == (F.dim_c0, 2)
    basis = reduced.basis + 1e-9 * np.arange(K.sheaf.dim_c0)[:, None]
    assert extended(K, dataclasses.replace(reduced, basis=basis)) is None


@pytest.mark.parametrize(("seed", "dim"), [(0, 2), (1, 3)])
def test_elimination_keeps_one_vertex_per_component(seed, dim):
    """Some components are a single vertex or a single edge."""
    core = nx.random_regular_graph(4, 900, seed=seed)
    for rest in (nx.empty_graph(400), nx.gnm_random_graph(900, 300, seed=seed)):
        graph = nx.disjoint_union(core, rest)
        F = sc.CellularSheaf.constant(graph, dim=dim)
        S = sc.global_sections(F)
        assert S.h0 == dim * nx.number_connected_components(graph)
        check_basis(F, S, locally=True)
        assert S.residual < 1e-15
        assert sc.cohomology_dims(sc.gallery.bundle(graph, dim, seed=seed))[0] == S.h0
