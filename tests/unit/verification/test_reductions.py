"""Checks of eliminations and of sparsifications: they hold at any scale and catch errors."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support.helpers import assert_verified
from tests.support.strategies import graphs, sheaves


@given(F=sheaves(graph=graphs(max_vertices=8), spread=False))
def test_statements_hold_for_all_kinds_of_sheaves(F):
    V = assert_verified(sc.eliminate(F, keep=[0] if F.n_vertices else None))
    labels = ["fact-9", "fact-9-solutions", "fact-9-sections", "fact-9-norm"]
    assert [check.label for check in V] == labels


def test_statements_hold_after_star_mesh_and_for_a_long_chain():
    mesh = CellularSheaf.random(nx.grid_2d_graph(5, 5), 2, 2, kind="orthogonal", seed=3)
    assert_verified(sc.eliminate(mesh, keep=[0, 24], max_neighbors=4), seed=5)
    chain = CellularSheaf.constant(nx.path_graph(2000))
    V = assert_verified(sc.eliminate(chain, keep=[0, 1999]))
    assert "too large" in V["fact-9-norm"].skipped_because
    assert np.isfinite(V["fact-9"].ratio)


def test_light_edges_in_single_precision_do_not_count_as_zero():
    """The extension is constant, hence not orthogonal to vectors that are nearly sections."""
    edges = [*nx.complete_graph(range(1, 20)).edges, (0, 1)]
    weights = np.ones(len(edges), np.float32)
    weights[-1] = 1e-8
    F = CellularSheaf.constant(edges, weight=weights)
    assert_verified(sc.eliminate(F, keep=[0], max_neighbors=20))


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_statements_hold_if_products_of_maps_cancel(dtype):
    """Tail and head maps are orthogonal, so extended values consist of rounding errors."""
    for a, b in np.ndindex(5, 5):
        maps = np.array([[[a + 1], [b + 1]]], dtype), np.array([[[b + 1], [-a - 1]]], dtype)
        assert_verified(sc.eliminate(CellularSheaf([[0, 1]], *maps), keep=[0]))


def damaged(K, what):
    """Return an elimination with an error in one of its parts."""
    if what == "maps":
        left = K.sheaf
        tail = left.tail_data.copy()
        tail[0] *= 1 + 1e-9  # of edge 0
        return dataclasses.replace(K, sheaf=left.with_maps(tail, left.head_data))
    blocks, inverses = K.steps.blocks.copy(), K.steps.inverses.copy()
    if what == "extension":
        blocks[0] += 1e-9
    else:
        inverses[0] *= 1 + 1e-9
    return dataclasses.replace(K, steps=K.steps._replace(blocks=blocks, inverses=inverses))


@pytest.mark.parametrize(
    ("what", "label"),
    [("maps", "fact-9"), ("extension", "fact-9"), ("inverses", "fact-9-solutions")],
)
def test_errors_in_the_tenth_digit_are_caught(what, label):
    F = CellularSheaf.random(nx.karate_club_graph(), 2, 2, seed=3)
    K = sc.eliminate(F)
    assert_verified(K)
    V = sc.verify(damaged(K, what))
    assert not V[label].passed
    assert not V.passed
    ends = K.kept[K.sheaf.edges[0]] if what == "maps" else np.arange(F.n_vertices)
    assert V[label].where in {f"vertex {v}" for v in ends.tolist()}


@pytest.mark.parametrize("seed", range(3))
def test_statements_hold_on_trees_that_enlarge_rounding_errors(seed):
    K = sc.eliminate(CellularSheaf.random(nx.random_labeled_tree(30, seed=seed), 2, 2, seed=seed))
    assert 1e3 < K.growth < 1e8
    assert_verified(K)
    wrong = dataclasses.replace(K, steps=K.steps._replace(inverses=K.steps.inverses * (1 + 1e-9)))
    assert not sc.verify(wrong)["fact-9-solutions"].passed


def test_solutions_are_skipped_if_rounding_errors_grow_too_much():
    F = CellularSheaf.random(nx.random_labeled_tree(3000, seed=0), 2, 2, seed=0)
    V = sc.verify(sc.eliminate(F))
    assert "`growth` = 8e+30" in V["fact-9-solutions"].skipped_because
    assert V.passed


def test_wrong_reduced_right_sides_and_lost_sections_are_caught(monkeypatch):
    K, reduce = sc.eliminate(CellularSheaf.constant(nx.karate_club_graph())), sc.Elimination.reduce
    left = K.sheaf.with_maps(2 * K.sheaf.tail_data, K.sheaf.head_data)
    assert not sc.verify(dataclasses.replace(K, sheaf=left))["fact-9-sections"].passed
    monkeypatch.setattr(sc.Elimination, "reduce", lambda K, b: (1 + 1e-9) * reduce(K, b))
    assert not sc.verify(K)["fact-9-solutions"].passed


@pytest.mark.parametrize("share", [1e-9, 1.0])
def test_extensions_that_do_not_have_minimum_norm_are_caught(share):
    """An eliminated vertex with one equation for two values has a component of zero energy."""
    F = CellularSheaf.random([[0, 1], [1, 2]], [1, 3, 1], 1, seed=3)
    K = sc.eliminate(F, keep=[0, 2])
    check = sc.verify(K)["fact-9-norm"]
    assert (check.passed, check.how) == (True, "dense")
    free = np.cross(F.head_map(0)[0], F.tail_map(1)[0])
    longer = K.prolongation.toarray()
    longer[1:4] += share * free[:, None]
    object.__setattr__(K, "prolongation", scipy.sparse.csr_array(longer))
    V = sc.verify(K)
    assert V["fact-9"].passed  # the energy does not depend on it
    assert not V["fact-9-norm"].passed


F = sc.gallery.bundle(nx.gnm_random_graph(60, 1200, seed=0), 2, seed=0)
LARGE = sc.CellularSheaf.constant(nx.random_regular_graph(60, 1200, seed=0))
SPARSIFIED = pytest.mark.parametrize(
    "fine", [F, pytest.param(LARGE, marks=pytest.mark.large)], ids=["dense", "probe"]
)


def inconsistent(Z, what):
    """Return a sparsification with an error in one of its parts."""
    G, weights = Z.sheaf, Z.weights
    tail, head = G.tail_data.copy(), G.head_data.copy()
    if what == "maps":
        weights = weights * np.where(np.arange(len(weights)) == 5, 1 + 1e-9, 1)
    else:  # make one edge inconsistent
        (tail if what == "tail" else head)[:4] *= 1 + 1e-4
    return dataclasses.replace(Z, sheaf=G.with_maps(tail, head), weights=weights)


@SPARSIFIED
def test_statements_of_sparsifications_report_their_method(fine):
    V = assert_verified(sc.sparsify(fine, 0.6))
    assert [check.label for check in V] == ["fact-12-maps", "fact-12", "fact-12-sections"]
    assert V["fact-12"].how == ("dense" if fine is F else "probe")


def test_changed_maps_and_sections_are_caught():
    Z = sc.sparsify(F, 0.6)
    check = sc.verify(inconsistent(Z, "maps"))["fact-12-maps"]
    assert not check.passed
    assert check.where == f"edge {Z.edges[5]}" != "edge 5"
    for end in ("tail", "head"):
        V = sc.verify(inconsistent(Z, end))
        assert not V["fact-12-maps"].passed
        assert not V["fact-12-sections"].passed


@SPARSIFIED
@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_wrong_bounds_are_caught(fine, factor):
    Z = sc.sparsify(fine, 0.6)
    lo, hi = Z.bounds()
    middle = (lo + hi) / 2 if factor > 1 or fine is LARGE else lo
    wrong = dataclasses.replace(Z)
    wrong.__dict__["_bounds"] = (middle, hi) if factor > 1 else (lo, (lo + hi) / 2)
    assert not sc.verify(wrong)["fact-12"].passed
    assert np.isfinite(sc.verify(wrong)["fact-12"].ratio)
