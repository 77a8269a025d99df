"""What a report computes, and what it leaves out; a smooth cochain has less energy."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.html_report.results import (
    SMOOTHING_STEPS,
    findings_of,
    random_cochain,
    smooth_cochain,
)

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def coarsening(n=12):
    F = sc.CellularSheaf.constant(nx.cycle_graph(n))
    return sc.coarsen(F, sc.Partition(np.arange(n) // 3), 2)


def test_findings_are_those_of_the_library():
    C, times = coarsening(), {}
    found = findings_of(C, times)
    assert found.verdict.passed
    both, smooth = found.ledgers
    assert both.fine_energy[1] == pytest.approx(smooth.fine_energy, rel=1e-14)
    assert smooth.fine_energy < both.fine_energy[0]
    Q, B = found.quality
    np.testing.assert_array_equal(Q.fine, sc.spectral_quality(C, 8).fine)
    assert B.gamma == sc.certificate(C).gamma
    assert list(times) == ["verification", "losses", "eigenvalues"]


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_smooth_cochains(scale):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(9, 9), 2)
    F = F.with_maps(scale * F.tail_data, scale * F.head_data)
    rough, smooth = random_cochain(F), smooth_cochain(F)
    for x in (rough, smooth):
        assert abs(np.linalg.norm(x) - 1) < 1e-14
    assert sc.energy(F, smooth) < 0.05 * sc.energy(F, rough)
    np.testing.assert_array_equal(smooth, smooth_cochain(F))


def test_the_steps_are_half_of_what_the_largest_eigenvalue_allows():
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(7, 7))
    L = sc.laplacian(F).toarray()
    top = np.linalg.eigvalsh(L)[-1]
    step = np.eye(49) - L / (2 * top)
    expected = np.linalg.matrix_power(step, SMOOTHING_STEPS) @ random_cochain(F)
    expected /= np.linalg.norm(expected)
    assert sc.energy(F, smooth_cochain(F)) == pytest.approx(sc.energy(F, expected), rel=0.15)


def test_a_sheaf_without_maps():
    F = sc.CellularSheaf.constant(np.zeros((0, 2), int), n_vertices=3)
    np.testing.assert_allclose(smooth_cochain(F), random_cochain(F), rtol=1e-15)
