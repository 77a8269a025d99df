"""The verdict says what was kept, how far the spectrum is off, and whether the Laplacian grew."""

import dataclasses
import re

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.html_report.results import findings_of
from sheafcoarsen.html_report.summary import percent, verdict_of

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def sentence_of(C):
    return verdict_of(C, findings_of(C, {}))


def karate(rank, **options):
    F = sc.CellularSheaf.constant(nx.karate_club_graph())
    return sc.coarsen(F, sc.select(F, 5), rank, **options)


def test_its_numbers_are_those_of_the_coarsening():
    C = karate(3)
    said = sentence_of(C)
    Q = sc.spectral_quality(C, 10)
    assert f"at most {percent(Q.relative_errors.max())} too high" in said
    assert f"({percent(np.median(Q.relative_errors))} in the median)" in said
    assert "all zero eigenvalues stay" in said
    assert f"dim C^0 is {C.sheaf.dim_c0} instead of 34" in said
    entries = sc.laplacian(C.sheaf).nnz
    assert f"the Laplacian is smaller than it was, {entries} entries instead of 190" in said
    assert re.search(r"all \d+ checks of the theory that apply passed", said)
    assert said.endswith(".")


def test_what_is_kept_grows_with_the_rank():
    kept = [float(sentence_of(karate(r)).partition(" %")[0]) for r in (1, 2, 4)]
    assert kept == sorted(kept)
    assert kept[0] < kept[2] <= 100


def test_a_laplacian_that_grew_is_said():
    F = sc.CellularSheaf.constant(nx.star_graph(30))
    said = sentence_of(sc.coarsen(F, sc.Partition(np.arange(31) // 4), 3))
    assert "the Laplacian is LARGER than it was" in said


def test_lost_sections_and_eigenvalues_are_counted():
    F = sc.CellularSheaf.constant(nx.path_graph(8))
    U = [np.array([[1.0], [-1.0]]) / np.sqrt(2)] * 4
    said = sentence_of(sc.coarsen(F, sc.Partition(np.arange(8) // 2), basis=U))
    assert "1 zero eigenvalues are lost" in said
    assert "more have no coarse one" in said


def test_without_an_isometry_or_eigenvalues():
    C = karate(1)
    doubled = sc.coarsen(C.fine, C.partition, basis=[2 * C.block(a) for a in range(5)])
    assert "is not known, because R is no isometry" in sentence_of(doubled)
    none = sc.coarsen(C.fine, C.partition, basis=[C.block(a)[:, :0] for a in range(5)])
    assert "eigenvalue" not in sentence_of(none)


def test_a_check_that_failed_is_counted():
    C = karate(2)
    wrong = dataclasses.replace(
        C, sheaf=C.sheaf.with_maps(1.01 * C.sheaf.tail_data, C.sheaf.head_data)
    )
    assert re.search(r"\d+ of \d+ checks of the theory FAILED", sentence_of(wrong))


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.5, "50 %"),
        (0.12345, "12.3 %"),
        (0.9996, "99.96 %"),
        (1.0, "100 %"),
        (0.0, "0 %"),
        (4.321, "432 %"),
        (123.4, "1.234e+04 %"),
        (1 - 1e-7, "99.99999 %"),
    ],
)
def test_shares_do_not_look_like_all_where_they_are_not(share, shown):
    assert percent(share) == shown
