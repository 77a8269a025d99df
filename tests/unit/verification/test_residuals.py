"""What the checks rest on: samples of clusters, large clusters, bounded memory."""

import dataclasses
import tracemalloc

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.verification.residuals import Evidence
from tests.support.helpers import eps_of

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_samples_where_all_clusters_would_take_too_long(C, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.verification.residuals.DENSE_BUDGET", 1e5)
    how = {check.label: check.how for check in sc.verify(C).checks}
    assert how["thm:local_spectral_optimality"] == "probe"
    assert sc.verify(C).passed


def test_a_sample_is_large_enough_to_find_what_is_wrong_in_a_quarter_of_all(monkeypatch):
    monkeypatch.setattr("sheafcoarsen.verification.residuals.DENSE_BUDGET", 1000.0)
    labels = np.append(np.arange(117) // 3, 7)  # cluster 7 is the largest
    F = sc.CellularSheaf.random(nx.path_graph(118), 2, 2, seed=3)
    C = sc.coarsen(F, sc.Partition(labels), 3)
    samples = [Evidence(C, seed).sample for seed in range(5)]
    assert all(15 <= len(np.unique(sample)) <= 16 and 7 in sample for sample in samples)
    assert len({tuple(sample) for sample in samples}) == 5
    following = C.modes.next_eigenvalues.copy()
    following[::4] *= 1 + 1e-6
    wrong = dataclasses.replace(C, modes=dataclasses.replace(C.modes, next_eigenvalues=following))
    for seed in range(5):
        assert sc.verify(C, seed).passed
        V = sc.verify(wrong, seed)
        assert V["thm:local_spectral_optimality"].how == "probe"
        assert not V["thm:local_spectral_optimality"].passed


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_clusters_beyond_the_small_solver(dtype):
    F = sc.CellularSheaf.random(nx.random_regular_graph(4, 200, seed=3), 2, 2, seed=1, dtype=dtype)
    C = sc.coarsen(F, sc.select(F, 4), 7)
    V = sc.verify(C)
    assert V.passed, str(V)
    assert C.sheaf.dtype == dtype
    assert max(check.ratio or 0 for check in V.checks) > eps_of(dtype)


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_global_sections_of_few_coordinates_and_many_edges_take_little_memory():
    F = sc.CellularSheaf.random([[0, 1], [1, 2]] * 4000, 1, 1, seed=3)
    C = sc.coarsen(F, sc.Partition([0, 0, 1]), 2)
    sc.verify(C)
    tracemalloc.start()
    V = sc.verify(C)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert V.passed, str(V)
    assert peak < 50e6  # a square factor of the rows would be 512 MB
