"""What a report computes, and its verdict; a smooth cochain has less energy."""

import html
import re

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.html_report.results import (
    SMOOTHING_STEPS,
    percent,
    random_cochain,
    smooth_cochain,
    spectra_of,
)
from tests.support.helpers import assert_residual
from tests.unit.html_report.conftest import KARATE

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def coarsening(n=12):
    F = sc.CellularSheaf.constant(nx.cycle_graph(n))
    return sc.coarsen(F, sc.Partition(np.arange(n) // 3), 2)


@pytest.fixture
def page_of(tmp_path, without_drawing):
    def page_of(C, **options):
        sc.report(C, tmp_path / "page.html", **options)
        return html.unescape((tmp_path / "page.html").read_text("utf-8"))

    return page_of


@pytest.fixture
def sentence_of(page_of):
    return lambda C: re.search(r'<p class="verdict">(.*?)</p>', page_of(C))[1]


def test_energies_and_spectra_match_the_results_of_the_library(page_of):
    C = coarsening()
    rough, smooth = (sc.energy(C.fine, x(C.fine)) for x in (random_cochain, smooth_cochain))
    assert smooth < rough
    assert f"<th>fine energy</th><td>{smooth:.4g}</td>" in page_of(C)
    Q, B = spectra_of(C)
    np.testing.assert_array_equal(Q.fine, sc.spectral_quality(C, 8).fine)
    assert B.gamma == sc.certificate(C).gamma


def test_losses_of_the_cochains_of_the_user_are_shown(page_of):
    C = coarsening()
    x = np.random.default_rng(1).standard_normal((12, 2))
    for given, words in ((x, "the 2 columns of x, which the picture adds up,"), (5 * x[:, 0], "x")):
        E = sc.energy_ledger(C, given)
        kept = 1 - E.discarded_norm2.sum() / np.linalg.norm(given) ** 2
        page = page_of(C, x=given)
        assert f"{percent(kept)} of the squared norm of x is kept" in page
        assert f"The energy norm(delta x)^2 of {words} and" in page
        energies = "".join(f"<td>{value:.4g}</td>" for value in np.atleast_1d(E.fine_energy))
        assert f"<th>fine energy</th>{energies}" in page
        H = sc.coarsen_levels(C.fine, partitions=[C.partition], rank=2)
        assert f"{percent(kept)} of the squared norm of x is kept" in page_of(H, x=given)
    with pytest.raises(ValueError, match="`x` requires a coarsening or a hierarchy, but got .* El"):
        page_of(sc.eliminate(C.fine, keep=[0]), x=x)
    with pytest.raises(ValueError, match="`x` must have shape"):
        page_of(C, x=x[:3])
    page = page_of(C, x=1e-200 * x[:, 0])  # whose squared norm underflows
    kept = np.linalg.norm(C.pool(x[:, 0])) ** 2 / np.linalg.norm(x[:, 0]) ** 2
    assert f"{percent(kept)} of the squared norm of x is kept" in page


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float32, 1.0), (np.complex128, 1.0), (np.float64, 1e-100), (np.float64, 1e100)],
)
def test_smooth_cochain_has_low_energy_after_steps_divided_by_row_sums(dtype, scale):
    F = sc.gallery.bundle(nx.grid_2d_graph(9, 9), 2, seed=0)
    F = F.with_maps(*((scale * data).astype(dtype) for data in (F.tail_data, F.head_data)))
    rough, smooth = random_cochain(F), smooth_cochain(F)
    L = sc.laplacian(F).toarray()
    step = np.eye(162) - L / np.abs(L).sum(axis=1)[:, None]
    expected = np.linalg.matrix_power(step, SMOOTHING_STEPS) @ rough
    assert smooth.dtype == dtype
    for x in (rough, smooth):
        assert_residual(np.linalg.norm(x) - 1, n=162, eps=np.finfo(dtype).eps)
    assert_residual(smooth - expected / np.linalg.norm(expected), smooth, n=162)
    assert sc.energy(F, smooth) < 0.05 * sc.energy(F, rough)
    np.testing.assert_array_equal(smooth, smooth_cochain(F))


@pytest.mark.parametrize("switch", [1.0, 1e8])
def test_one_strong_edge_does_not_keep_others_rough(switch):
    weights = np.ones(99)
    weights[50] = switch
    ends = [[i, i + 1] for i in range(99)]
    F = sc.CellularSheaf.constant(ends, weight=weights)
    rough, smooth = (sc.edge_energy(F, x) for x in (random_cochain(F), smooth_cochain(F)))
    assert np.delete(smooth, 50).sum() < 0.1 * np.delete(rough, 50).sum()


def test_smoothing_without_edges_changes_nothing():
    F = sc.CellularSheaf.constant(np.zeros((0, 2), int), n_vertices=3)
    np.testing.assert_allclose(smooth_cochain(F), random_cochain(F), rtol=1e-15)


def karate(rank):
    return sc.coarsen(KARATE, sc.select(KARATE, 5), rank)


def test_verdict_has_the_numbers_of_the_coarsening(sentence_of):
    C = karate(3)
    said = sentence_of(C)
    Q = sc.spectral_quality(C, 10)
    assert f"up to {percent(Q.relative_errors.max())} too high" in said
    assert f"({percent(np.median(Q.relative_errors))} in the median)" in said
    assert "all zero eigenvalues stay" in said
    assert f"dim C^0 is {C.sheaf.dim_c0} instead of 34" in said
    entries = sc.laplacian(C.sheaf).nnz
    assert f"the Laplacian is smaller than it was, {entries} entries instead of 190" in said
    assert re.search(r"all \d+ checks of the theory that apply passed", said)
    assert said.endswith(".")


def test_large_errors_in_the_verdict_are_ratios_of_eigenvalues(sentence_of):
    P = sc.Partition(np.arange(64) // 16)
    C = sc.coarsen(sc.CellularSheaf.constant(nx.cycle_graph(64)), P, 1)
    Q = sc.spectral_quality(C, 4)
    ratios = (Q.coarse / Q.fine)[np.isfinite(Q.coarse)]
    assert ratios.max() > 11
    said = sentence_of(C)
    assert f"up to {ratios.max():,.3g} times the fine ones ({np.median(ratios):,.3g} times" in said


def test_retained_fraction_in_the_verdict_grows_with_the_rank(sentence_of):
    kept = [float(sentence_of(karate(r)).partition(" %")[0]) for r in (1, 2, 4)]
    assert kept == sorted(kept)
    assert kept[0] < kept[2] <= 100


def test_verdict_reports_a_larger_laplacian(sentence_of):
    F = sc.CellularSheaf.constant(nx.star_graph(30))
    said = sentence_of(sc.coarsen(F, sc.Partition(np.arange(31) // 4), 3))
    assert "the Laplacian is LARGER than it was" in said


def test_verdict_counts_lost_sections_and_eigenvalues(sentence_of):
    F = sc.CellularSheaf.constant(nx.path_graph(8))
    U = [np.array([[1.0], [-1.0]]) / np.sqrt(2)] * 4
    said = sentence_of(sc.coarsen(F, sc.Partition(np.arange(8) // 2), basis=U))
    assert "1 zero eigenvalues are lost" in said
    assert "more have no coarse value" in said


def test_verdict_without_an_isometry_or_eigenvalues(sentence_of):
    C = karate(1)
    doubled = sc.coarsen(C.fine, C.partition, basis=[2 * C.block(a) for a in range(5)])
    assert "is not known, because R is not an isometry" in sentence_of(doubled)
    none = sc.coarsen(C.fine, C.partition, basis=[C.block(a)[:, :0] for a in range(5)])
    assert "eigenvalue" not in sentence_of(none)


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.5, "50 %"),
        (0.12345, "12.3 %"),
        (0.9996, "99.96 %"),
        (1.0, "100 %"),
        (0.0, "0 %"),
        (4.321, "432 %"),
        (9.996, "10 times"),
        (15750.4, "15,750 times"),
        (1 - 1e-7, "99.99999 %"),
        (1 - 2**-53, "99.99999999999999 %"),
    ],
)
def test_percentages_below_one_hundred_do_not_round_to_it(share, shown):
    assert percent(share) == shown
