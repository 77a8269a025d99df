"""Pairs beside the global sections, by each method."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.solve import LowSpectrum, multigrid
from sheafcoarsen.solve import spectrum as spectrum_module
from tests.support.helpers import subspace_difference
from tests.unit.solve.problems import SHEAVES


@pytest.fixture(autouse=True)
def _several_levels(monkeypatch):
    monkeypatch.setattr(multigrid, "COARSEST", 20)


def positive_pairs(F):
    delta = sc.coboundary(F).toarray()
    values, vectors = np.linalg.eigh(delta.conj().T @ delta)
    zeros = int((values <= 1e-10 * values[-1]).sum())
    return values[zeros:], vectors[:, zeros:], zeros


@pytest.mark.parametrize("method", ["direct", "multilevel"])
@pytest.mark.parametrize("name", ["graph", "two components", "noisy bundle", "mixed stalks"])
def test_the_lowest_beside_all_sections(name, method):
    F = sc.sheaf.unit_sheaf(SHEAVES[name])[0]
    values, vectors, zeros = positive_pairs(F)
    spectrum = LowSpectrum(F, 5, 1e-9, positive=True)
    found = spectrum.pairs(method)
    assert found.sections.shape[1] == zeros
    assert np.abs(found.values[:5] - values[:5]).max() <= 1e-9 * values[-1]
    if values[5] - values[4] > 1e-3 * values[-1]:
        assert subspace_difference(found.vectors[:, :5], vectors[:, :5]) < 1e-5
    polished = spectrum.polished(found, 1e-11)
    X = polished.vectors[:, :5]
    residuals = np.linalg.norm(spectrum.L @ X - X * polished.values[:5], axis=0)
    assert residuals.max() <= 1e-11
    assert polished.iterations > found.iterations


def test_beside_many_sections_a_dense_solver_is_asked_for():
    F = SHEAVES["large kernel"]
    left = F.dim_c0 - positive_pairs(F)[2]
    assert LowSpectrum(F, left // 4, 1e-8, positive=True).pairs("multilevel") is None


def test_more_pairs_begin_where_fewer_ended():
    F = sc.sheaf.unit_sheaf(sc.gallery.bundle(nx.grid_2d_graph(12, 12), 3, noise=0.1, seed=3))[0]
    spectrum = LowSpectrum(F, 4, 1e-9, positive=True)
    first = spectrum.pairs("multilevel")
    spectrum.k = 9
    again = spectrum.pairs("multilevel", first.vectors)
    assert np.abs(again.values[:9] - positive_pairs(F)[0][:9]).max() <= 1e-8
    assert again.completeness == "probe"


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
@pytest.mark.parametrize("method", ["direct", "multilevel"])
def test_what_is_only_told_apart_is_rough(method):
    """Two of the five: that there are three before them is known all the same."""
    F = sc.sheaf.unit_sheaf(SHEAVES["noisy bundle"])[0]
    exact = positive_pairs(F)[0]

    def aims(values):
        wanted = np.full(len(values), 1e-10)
        wanted[3:] = np.maximum(wanted[3:], (values[3:] - values[2]) / 8)
        return wanted

    spectrum = LowSpectrum(F, 5, 1e-8, positive=True, aims=aims)
    found = spectrum.pairs(method)
    residuals = spectrum.residuals(found)[:5]
    assert (residuals <= 1.01 * aims(found.values)[:5]).all()
    assert residuals[:3].max() <= 1.01e-10
    assert np.abs(found.values[:3] - exact[:3]).max() <= 1e-13
    assert found.completeness == {"direct": "inertia", "multilevel": "probe"}[method]
    lacking = found.vectors[:, [0, 2, 3, 4]]  # a start without the second
    again = LowSpectrum(F, 5, 1e-8, positive=True, aims=aims).pairs(method, lacking)
    assert np.abs(again.values[:3] - exact[:3]).max() <= 1e-13


def test_what_factors_cost_decides_whatever_the_size():
    rng = np.random.default_rng(1)
    chords = rng.integers(0, 4800, 2500)
    path = np.stack([np.arange(4999), np.arange(1, 5000)], axis=1)
    chords = np.stack([chords, chords + rng.integers(2, 200, 2500)], axis=1)
    for graph, method in (
        (np.concatenate([path, chords]), "direct"),
        (nx.convert_node_labels_to_integers(nx.grid_graph((14, 14, 14))), "multilevel"),
    ):
        F = sc.gallery.bundle(graph, 3, noise=0.02, seed=1)
        assert LowSpectrum(sc.sheaf.unit_sheaf(F)[0], 10, 1e-8).chosen() == method


def test_large_graphs_with_cycles_are_not_counted(monkeypatch):
    monkeypatch.setattr(spectrum_module, "COUNTED_UP_TO", 100)
    counted = []
    real = spectrum_module.elimination_order
    monkeypatch.setattr(
        spectrum_module, "elimination_order", lambda *args: counted.append(args) or real(*args)
    )
    for graph, method, looks in (
        (nx.grid_2d_graph(30, 30), "multilevel", 0),
        (nx.path_graph(900), "direct", 1),
    ):
        F = sc.CellularSheaf.constant(nx.convert_node_labels_to_integers(graph))
        assert LowSpectrum(sc.sheaf.unit_sheaf(F)[0], 3, 1e-8).chosen() == method
        assert len(counted) == looks
