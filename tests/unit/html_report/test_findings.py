"""What a report computes, and what it leaves out."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.html_report import findings
from sheafcoarsen.html_report.findings import findings_of

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def coarsening(n=12):
    F = sc.CellularSheaf.constant(nx.cycle_graph(n))
    return sc.coarsen(F, sc.Partition(np.arange(n) // 3), 2)


def test_findings_are_those_of_the_library():
    C, times = coarsening(), {}
    found = findings_of(C, times)
    assert found.verdict.passed
    rough, smooth = found.ledgers
    assert smooth.fine_energy < rough.fine_energy
    Q, B = found.quality
    np.testing.assert_array_equal(Q.fine, sc.spectral_quality(C, 8).fine)
    assert B.gamma == sc.certificate(C).gamma
    assert list(times) == ["verification", "losses", "eigenvalues"]


def test_eigenvalues_are_left_out_beyond_a_size(monkeypatch):
    monkeypatch.setattr(findings, "QUALITY_BELOW", 12)
    Q, B = findings_of(coarsening(), {}).quality
    assert len(Q.fine) >= 8
    assert B.gamma > 0
    monkeypatch.setattr(findings, "QUALITY_BELOW", 11)
    assert "left out, because dim C^0 = 12 is above 11" in findings_of(coarsening(), {}).quality
