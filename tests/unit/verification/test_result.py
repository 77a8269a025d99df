"""Results of `verify`: a table of all statements, and a verdict."""

import dataclasses

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from tests.unit.verification.test_statements import ALWAYS, LOOPLESS, SPECTRAL, with_sheaf

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_every_statement_is_listed_once(C):
    labels = [check.label for check in sc.verify(C).checks]
    assert len(set(labels)) == len(labels)
    assert set(labels) >= SPECTRAL | LOOPLESS | ALWAYS


def test_the_table_shows_all_checks_and_reasons(C):
    V = sc.verify(C)
    for check in V.checks:
        assert check.label in str(V)
        if check.skipped_because:
            assert check.skipped_because in str(V)
            assert (check.ratio, check.how) == (None, None)
        else:
            assert check.how in ("exact", "probe", "dense")
            assert 0 <= check.ratio < check.threshold
    assert "largest ratio" not in str(V)
    assert "that apply hold, 2 do not apply" in str(V)
    assert bool(V)


def test_the_notebook_table_shows_all_checks(C):
    page = sc.verify(C)._repr_html_()
    for check in sc.verify(C).checks:
        assert check.label in page
    assert page.count("<tr>") == len(sc.verify(C).checks) + 1


def test_a_verification_is_true_if_it_passed(C):
    assert bool(sc.verify(C))
    zero = with_sheaf(
        C, tail=np.zeros_like(C.sheaf.tail_data), head=np.zeros_like(C.sheaf.head_data)
    )
    assert not sc.verify(zero)
    assert "FAILED, largest ratio: cluster" in str(sc.verify(zero))


def test_checks_are_indexed_by_label_and_iterated_in_order(C):
    V = sc.verify(C)
    assert len(V) == len(V.checks) == len(list(V))
    assert [V[check.label] for check in V] == list(V.checks)
    assert [V[i] for i in range(len(V))] == list(V.checks)
    assert V[-1] is V.checks[-1]
    assert V[np.int64(0)] is V["section-2"]
    assert V[1:3] == V.checks[1:3]
    assert V["interlacing"] is V["fact-1"]
    with pytest.raises(IndexError):
        V[len(V)]
    with pytest.raises(TypeError):
        V[1.0]
    with pytest.raises(
        KeyError, match=r"no check has the label 'other'; the labels are section-2, "
    ):
        V["other"]


def test_a_check_has_its_error_bound_and_slack(C):
    damaged = dataclasses.replace(
        C, sheaf=C.sheaf.with_maps(C.sheaf.tail_data * (1 + 1e-6), C.sheaf.head_data)
    )
    good, bad = (sc.verify(X)["thm:Galerkin_realization"] for X in (C, damaged))
    for check in (good, bad):
        assert check.error / check.allowed == pytest.approx(check.ratio / check.threshold)
        assert check.slack == check.allowed - check.error
    assert good.slack > 0 > bad.slack
    assert bad.error > 1e-7 > good.error
    skipped = sc.verify(C)["eq:loopless_exact_realization"]
    assert skipped.error is skipped.allowed is skipped.slack is None


def test_errors_and_bounds_scale_with_the_maps():
    F = sc.CellularSheaf.random(nx.cycle_graph(12), 2, 2, seed=3)
    errors = []
    for scale in (1.0, 2.0**100):
        G = F.with_maps(F.tail_data * scale, F.head_data * scale)
        C = sc.coarsen(G, sc.Partition(np.arange(12) // 4), 3)
        errors.append(sc.verify(C)["eq:galerkin_energy_identity"].allowed)
    assert errors[1] == pytest.approx(errors[0] * 2.0**200)
