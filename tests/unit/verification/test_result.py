"""What `verify` returns: every statement once, in a table, and a verdict."""

import numpy as np
import pytest

import sheafcoarsen as sc
from tests.unit.verification.test_statements import ALWAYS, LOOPLESS, SPECTRAL, with_sheaf

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_every_statement_is_listed_once(C):
    labels = [check.label for check in sc.verify(C).checks]
    assert len(set(labels)) == len(labels)
    assert set(labels) >= SPECTRAL | LOOPLESS | ALWAYS


def test_table_says_everything(C):
    V = sc.verify(C)
    for check in V.checks:
        assert check.label in str(V)
        if check.skipped_because:
            assert check.skipped_because in str(V)
            assert (check.ratio, check.how) == (None, None)
        else:
            assert check.how in ("exact", "probe", "dense")
            assert 0 <= check.ratio < check.threshold
    assert "that apply hold, 2 do not apply" in str(V)
    assert bool(V)


def test_table_in_a_notebook(C):
    page = sc.verify(C)._repr_html_()
    for check in sc.verify(C).checks:
        assert check.label in page
    assert page.count("<tr>") == len(sc.verify(C).checks) + 1


def test_truth_is_the_verdict(C):
    assert bool(sc.verify(C))
    zero = with_sheaf(
        C, tail=np.zeros_like(C.sheaf.tail_data), head=np.zeros_like(C.sheaf.head_data)
    )
    assert not sc.verify(zero)
    assert "FAILED" in str(sc.verify(zero))
