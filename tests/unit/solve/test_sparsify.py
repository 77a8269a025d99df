"""Sparsifications: the bounds hold for all kinds of sheaves at any scale."""

import copy
import dataclasses
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from sheafcoarsen.solve import _sparsify
from tests.support.helpers import covering
from tests.support.strategies import graphs, sheaves

DENSE_GRAPH = nx.gnm_random_graph(100, 2400, seed=0)
LOPSIDED = nx.compose(nx.barbell_graph(60, 3), nx.star_graph(122))
SHEAVES = {
    "graph": CellularSheaf.constant(nx.gnm_random_graph(200, 6000, seed=2)),
    "weights": CellularSheaf.constant(
        np.array(DENSE_GRAPH.edges), weight=np.random.default_rng(0).lognormal(0, 2, 2400)
    ),
    "bridges": CellularSheaf.constant(LOPSIDED, dim=2),
    "bundle": sc.gallery.bundle(nx.gnm_random_graph(120, 4000, seed=1), 2, seed=0),
    "connection": sc.gallery.bundle(DENSE_GRAPH, 3, noise=0.3, seed=0),
    "float32": CellularSheaf.random(DENSE_GRAPH, 2, 2, seed=0, dtype=np.float32),
    "complex64": CellularSheaf.random(DENSE_GRAPH, 2, [1, 3] * 1200, seed=0, dtype=np.complex64),
    "complex128": CellularSheaf.random(
        DENSE_GRAPH, [0, 1, 2, 3] * 25, 2, seed=0, dtype=np.complex128
    ),
    "loops, two components": sc.disjoint_union(
        [CellularSheaf.random(nx.gnm_random_graph(40, 700, seed=s), 2, 2, seed=s) for s in range(2)]
        + [CellularSheaf.random(np.zeros((200, 2), int), 2, 1, seed=3)]
    )[0],
}


def ratios(F, G):
    """Return all generalized eigenvalues of (L', L) on the range of L, and a basis of ker L."""
    double = np.result_type(F.dtype, float)
    deltas = (sc.coboundary(H).astype(double) / F.largest_entry for H in (F, G))
    L, M = ((delta.conj().T @ delta).toarray() for delta in deltas)
    values, V = np.linalg.eigh(L)
    rank = int((values > 1e-10 * values[-1]).sum())
    W = V[:, -rank:] / np.sqrt(values[-rank:])
    return np.linalg.eigvalsh(W.conj().T @ M @ W), V[:, :-rank].T


@pytest.mark.parametrize(("limits", "name"), covering([(0.8, 1e-12), (0.3, 1e12)], SHEAVES))
def test_all_generalized_eigenvalues_are_within_eps(name, limits):
    F, (eps, scale) = SHEAVES[name], limits
    F = F.with_maps(F.tail_data * F.dtype.type(scale), F.head_data * F.dtype.type(scale))
    Z = sc.sparsify(F, eps, seed=1)
    values, kernel = ratios(F, Z.sheaf)
    assert 1 - eps <= values.min()
    assert values.max() <= 1 + eps
    single = np.finfo(F.dtype).eps > 1e-10
    for found in (Z.bounds(), dataclasses.replace(Z, eps=1e-3).bounds()):  # of drawing, or anew
        np.testing.assert_allclose(found, values[[0, -1]], rtol=1e-5 if single else 1e-7)
    assert Z.sheaf.dtype == Z.prolongation.dtype == F.dtype
    assert sc.global_sections(Z.sheaf).h0 == len(kernel)
    assert (np.diff(Z.edges) > 0).all()
    for i in range(0, len(Z.edges), 37):
        root = F.dtype.type(np.sqrt(Z.weights[i]))
        np.testing.assert_array_equal(Z.sheaf.tail_map(i), root * F.tail_map(Z.edges[i]))
        np.testing.assert_array_equal(Z.sheaf.head_map(i), root * F.head_map(Z.edges[i]))
    assert sc.verify(Z).passed


@pytest.mark.large
def test_sparsifying_dense_networks_keeps_few_edges():
    dense = CellularSheaf.constant(nx.gnm_random_graph(500, 30_000, seed=2))
    for F, share in ((dense, 0.3), (SHEAVES["bundle"], 0.55), (SHEAVES["weights"], 0.7)):
        assert sc.sparsify(F, 0.5).sheaf.n_edges <= share * F.n_edges


@pytest.mark.parametrize("eps", [1e-6, 1e-170])
def test_all_edges_are_kept_if_fewer_do_not_suffice(eps):
    Z = sc.sparsify(CellularSheaf.constant(nx.complete_graph(12)), eps)
    assert (Z.sheaf.n_edges, Z.weights.tolist(), Z.bounds()) == (66, [1.0] * 66, (1.0, 1.0))


def test_edges_whose_squares_underflow_are_kept():
    """Two triangles joined by an edge; the maps of the second one are 1e-162."""
    edges = [[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 3]]
    maps = np.repeat([1.0, 1e-162], [4, 3]).reshape(-1, 1, 1)
    F = CellularSheaf(edges, maps, maps)
    assert sc.global_sections(sc.sparsify(F, 0.5).sheaf).h0 == sc.global_sections(F).h0 == 1


def test_bridges_are_kept_with_weight_one():
    Z = sc.sparsify(SHEAVES["bridges"], 0.7)
    lost = sorted(set(range(SHEAVES["bridges"].n_edges)) - set(Z.edges.tolist()))
    assert lost
    bridges = np.flatnonzero(sc.leverages(SHEAVES["bridges"]) > 2 - 1e-9)
    assert set(bridges.tolist()) <= set(Z.edges.tolist())
    assert (Z.weights[np.isin(Z.edges, bridges)] == 1).all()


@given(F=sheaves(graph=graphs(max_vertices=8), spread=False), eps=st.floats(0.05, 0.95))
def test_the_bounds_hold_for_all_kinds_of_sheaves(F, eps):
    Z = sc.sparsify(F, eps)
    assert sc.verify(Z).passed
    lo, hi = Z.bounds()
    assert 1 - eps <= lo <= hi <= 1 + eps


def test_halving_keeps_each_edge_with_probability_one_half_and_balances_degrees():
    edges = np.array([*DENSE_GRAPH.edges, (0, 0), (1, 1), (2, 3), (2, 3)])
    rng, total = np.random.default_rng(0), np.zeros(len(edges))
    for _ in range(400):
        kept = _sparsify._every_second(edges, rng)
        total += kept
        ends = edges[(edges[:, 0] != edges[:, 1])]
        degrees = np.bincount(ends.reshape(-1), minlength=100)
        inside = kept[: len(DENSE_GRAPH.edges)]
        left = np.bincount(np.array(DENSE_GRAPH.edges)[inside].reshape(-1), minlength=100)
        assert abs(2 * left - degrees).max() <= 8
    assert abs(total / 400 - 0.5).max() < 0.13


def test_more_edges_are_drawn_until_the_bounds_hold(monkeypatch):
    monkeypatch.setattr(_sparsify, "FIRST", 0.05)
    Z = sc.sparsify(SHEAVES["connection"], 0.5)
    values, _ = ratios(Z.fine, Z.sheaf)
    assert 0.5 <= values.min() < values.max() <= 1.5


def test_equal_seeds_give_equal_edges_and_other_seeds_differ():
    F = SHEAVES["connection"]
    draws = [sc.sparsify(F, 0.6, seed=seed).edges.tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_results_are_immutable_and_can_be_pickled_and_printed():
    Z = sc.sparsify(SHEAVES["connection"], 0.6)
    lo, hi = Z.bounds()
    head = f"Sparsification(2400 -> {len(Z.edges)} edges"
    assert repr(Z) == f"{head}, {lo:.3g} L <= L' <= {hi:.3g} L)"
    loaded = sc.Sparsification(Z.fine, Z.sheaf, Z.edges, Z.weights)
    assert repr(loaded) == f"{head}, bounds not computed, see bounds())"
    assert loaded.bounds() is loaded.bounds()
    assert "L <= L' <=" in repr(loaded)
    assert "largest weight" in Z._repr_html_()
    for other in (Z, pickle.loads(pickle.dumps(Z)), copy.deepcopy(Z)):
        assert other.bounds() == Z.bounds()
        with pytest.raises(ValueError, match="read-only"):
            other.weights[0] = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        Z.edges = Z.edges
    again = dataclasses.replace(Z)
    np.testing.assert_allclose(again.bounds(), (lo, hi), rtol=1e-12)
    twice = Z.edges.copy()
    twice[1] = twice[0]
    changes = {"edges": Z.edges[::-1]}, {"edges": twice}, {"weights": Z.weights[1:]}
    for change in (*changes, {"fine": Z.sheaf}):
        with pytest.raises(ValueError, match="the sparsification is inconsistent"):
            dataclasses.replace(Z, **change)
    with pytest.raises(ValueError, match="`edges` must be ascending indices of the 2400 edges"):
        dataclasses.replace(Z, edges=twice)


def test_bounds_see_weak_edges_next_to_strong_ones():
    """A path of strong edges, which are all kept, hangs on a complete graph."""
    complete = np.array(nx.complete_graph(60).edges)
    path = np.stack([np.arange(59, 79), np.arange(60, 80)], axis=1)
    edges = np.concatenate([complete, path])
    weights = (np.repeat([1.0, w], [1770, 20]) for w in (1.0, 1e12))
    weak, strong = (CellularSheaf.constant(edges, weight=weight) for weight in weights)
    lo, hi = sc.sparsify(weak, 0.8).bounds()
    assert lo < 0.7
    assert hi > 1.3
    np.testing.assert_allclose(sc.sparsify(strong, 0.8).bounds(), (lo, hi), rtol=1e-4)


@pytest.mark.parametrize(("seed", "decades"), [(19, 10), (40, 15)])
def test_bounds_enclose_eigenvalues_that_are_close_to_each_other(seed, decades):
    """The quotients of cochains that are 1 at some vertices and 0 at others lie between them."""
    edges = np.array(nx.random_regular_graph(8, 16, seed=seed).edges)
    weight = 10 ** np.random.default_rng(seed).uniform(-decades, 0, len(edges))
    F = sc.CellularSheaf.constant(edges, weight=weight)
    Z = sc.sparsify(F, 0.9, seed=0)
    lo, hi = Z.bounds()
    cuts = np.random.default_rng(0).integers(0, 2, (16, 1000)).astype(float)
    cuts = cuts[:, np.ptp(cuts, axis=0) > 0]
    quotients = sc.energy(Z.sheaf, cuts) / sc.energy(F, cuts)
    assert lo - 1e-6 <= quotients.min()
    assert quotients.max() <= hi + 1e-6
    assert sc.verify(Z).passed, str(sc.verify(Z))
