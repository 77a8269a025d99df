"""Checks of sparsifications catch errors."""

import dataclasses

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF

LABELS = ["fact-12-maps", "fact-12", "fact-12-sections"]
F = sc.gallery.bundle(nx.gnm_random_graph(60, 1200, seed=0), 2, seed=0)
LARGE = sc.CellularSheaf.constant(nx.random_regular_graph(60, 1200, seed=0))
compiled = pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")


def other(Z, what):
    """Return a sparsification with an error in one of its parts."""
    G, weights = Z.sheaf, Z.weights
    tail, head = G.tail_data.copy(), G.head_data.copy()
    if what == "maps":
        weights = weights * np.where(np.arange(len(weights)) == 5, 1 + 1e-9, 1)
    else:  # make one edge inconsistent
        (tail if what == "tail" else head)[:4] *= 1 + 1e-4
    return dataclasses.replace(Z, sheaf=G.with_maps(tail, head), weights=weights)


@pytest.mark.parametrize("fine", [F, LARGE], ids=["dense", "probe"])
def test_statements_hold_and_report_their_method(fine):
    V = sc.verify(sc.sparsify(fine, 0.6))
    assert V.passed, str(V)
    assert [check.label for check in V] == LABELS
    assert V["fact-12"].how == ("dense" if fine is F else "probe")


def test_changed_maps_and_sections_are_caught():
    Z = sc.sparsify(F, 0.6)
    check = sc.verify(other(Z, "maps"))["fact-12-maps"]
    assert not check.passed
    assert check.where == f"edge {Z.edges[5]}" != "edge 5"
    for end in ("tail", "head"):
        V = sc.verify(other(Z, end))
        assert not V["fact-12-maps"].passed
        assert not V["fact-12-sections"].passed


@pytest.mark.parametrize("fine", [F, pytest.param(LARGE, marks=compiled)], ids=["dense", "probe"])
@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_wrong_bounds_are_caught(fine, factor):
    Z = sc.sparsify(fine, 0.6)
    lo, hi = Z.bounds()
    middle = (lo + hi) / 2 if factor > 1 or fine is LARGE else lo
    wrong = dataclasses.replace(Z)
    wrong.__dict__["_bounds"] = (middle, hi) if factor > 1 else (lo, (lo + hi) / 2)
    assert not sc.verify(wrong)["fact-12"].passed
    assert np.isfinite(sc.verify(wrong)["fact-12"].ratio)
