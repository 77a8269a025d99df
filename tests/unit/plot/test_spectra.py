"""Pictures of eigenvalues hold those that they are given."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure

import sheafcoarsen as sc
from sheafcoarsen import plot
from tests.support.helpers import assert_residual, ties_allowed
from tests.unit.plot.test_axes import collections, draw

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


# ---------------------------------------------------------------- spectra


def halves(graph, rank, **options):
    """Return a constant sheaf on a graph of six vertices, coarsened to its two halves."""
    F = sc.CellularSheaf.constant(graph)
    return sc.coarsen(F, sc.Partition(np.arange(6) // 3), rank, **options)


def test_spectra_show_kept_and_discarded_eigenvalues(C, ax):
    plot.spectra(C, ax=ax)
    drawn = collections(ax)
    for a in range(4):
        kept = drawn["kept"].get_offsets()
        assert_residual(
            kept[kept[:, 0] == a, 1] - C.modes.eigenvalues(a), C.modes.operator_norms[a], n=34
        )
    next_ones = np.asarray(drawn["first discarded"].get_offsets())
    # a circle close to a dot does not cover it
    assert drawn["first discarded"].get_zorder() < drawn["kept"].get_zorder()
    finite = np.isfinite(C.modes.next_eigenvalues)
    assert not finite.all()
    np.testing.assert_array_equal(
        next_ones, np.stack([np.arange(4), C.modes.next_eigenvalues])[:, finite].T
    )
    for (_, low), (x, high) in drawn["gap"].get_segments():
        a = int(x)
        assert high == C.modes.next_eigenvalues[a]
        assert_residual(low - C.modes.eigenvalues(a)[-1], C.modes.operator_norms[a], n=34)
    assert "internal" in ax.get_ylabel()


def test_spectra_of_many_clusters_are_sorted(ax):
    F = sc.CellularSheaf.constant(nx.gnm_random_graph(400, 900, seed=4))
    C = sc.coarsen(F, sc.select(F, 90), 2)
    plot.spectra(C, ax=ax)
    (line,) = [line for line in ax.lines if line.get_label() == "first discarded"]
    finite = C.modes.next_eigenvalues[np.isfinite(C.modes.next_eigenvalues)]
    np.testing.assert_array_equal(line.get_ydata(), np.sort(finite))
    kept = collections(ax)["kept"].get_offsets()
    assert len(kept) == C.ranks.sum()
    level = 4 * C.clusters.dims.max() * np.finfo(float).eps * C.modes.operator_norms.max()
    assert_residual(np.sort(kept[:, 1]) - np.sort(C.modes.scores), level, n=1, eps=1.0)


def test_spectra_plot_names_the_operator_and_ties(ax):
    C = halves(nx.complete_graph(6), 2, local_operator="principal")
    assert C.modes.tied.all()
    plot.spectra(C, ax=ax)
    (label,) = [label for label in collections(ax) if "splits a multiple eigenvalue" in label]
    assert "(2)" in label
    crosses, dots = (collections(ax)[name].get_sizes() for name in (label, "kept"))
    assert crosses.min() > dots.max()  # stand out from dots that they mark
    np.testing.assert_array_equal(
        collections(ax)[label].get_offsets()[:, 1], C.modes.next_eigenvalues
    )
    assert "principal" in ax.get_ylabel()


def test_rounding_level_eigenvalues_are_zero_and_multiplets_are_counted(ax):
    F = sc.CellularSheaf.constant(nx.complete_graph(5))
    C = sc.coarsen(F, sc.Partition(np.zeros(5, int)), 4)
    scores = np.array([3e-16, 5.0, 5.0 * (1 + 1e-15), 6.0])
    modes = dataclasses.replace(C.modes, scores=scores, next_eigenvalues=np.array([6.0 + 1e-3]))
    plot.spectra(dataclasses.replace(C, modes=modes), ax=ax)
    assert collections(ax)["kept"].get_offsets()[:, 1].tolist() == [0, *scores[1:]]
    assert [(text.get_text(), text.xy[1]) for text in ax.texts] == [(r"$\times$2", 5.0)]


def test_eight_decades_fit_into_the_axes_and_zero_is_marked(ax):
    F = sc.CellularSheaf.constant(nx.path_graph(12), dim=1)
    weights = np.repeat(10.0 ** np.arange(0, -11, -1), 1)
    F = F.with_maps(F.tail_data * weights, F.head_data * weights)
    plot.spectra(sc.coarsen(F, sc.Partition(np.arange(12) // 4), 2), ax=ax)
    draw(ax)
    assert 0.0 in ax.get_yticks()
    low, high = ax.get_ylim()
    drawn = collections(ax)
    marks = [drawn[name].get_offsets() for name in ("kept", "first discarded")]
    values = np.concatenate(marks)[:, 1]
    assert low < values.min() == 0
    assert values.max() < high


# ---------------------------------------------------------------- quality


def points(ax, start):
    (line,) = [line for line in ax.lines if str(line.get_label()).startswith(start)]
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def test_quality_plot_shows_eigenvalues_and_certificate_bars(C, ax):
    Q, B = sc.spectral_quality(C, 6), sc.certificate(C)
    plot.quality(Q, B, ax=ax)
    draw(ax)
    x, y = points(ax, "fine")
    np.testing.assert_array_equal(y, Q.fine)
    np.testing.assert_array_equal(x, 2 + np.arange(len(Q.fine)))  # the first is zero
    np.testing.assert_array_equal(points(ax, "coarse")[1], Q.coarse)
    lower, upper = B.interval(Q.coarse)
    np.testing.assert_allclose([bar.get_y() for bar in ax.patches], lower)
    np.testing.assert_allclose([bar.get_y() + bar.get_height() for bar in ax.patches], upper)
    np.testing.assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in ax.patches], x)
    low, high = ax.get_ylim()
    assert low < min(lower.min(), Q.fine.min())
    assert high > Q.coarse.max()
    assert ax.get_yscale() == "log"
    assert not plot.quality(Q, ax=Figure().subplots()).patches


def test_certificate_bars_enclose_fine_eigenvalues_if_a_section_is_lost(ax):
    C = halves(nx.path_graph(6), [2, 0])
    Q, B = sc.spectral_quality(C, 2), sc.certificate(C)
    assert (Q.kernel_fine, Q.kernel_coarse) == (1, 0)
    plot.quality(Q, B, ax=ax)
    draw(ax)
    fine = dict(zip(*(values.tolist() for values in points(ax, "fine")), strict=True))
    assert sorted(fine) == [2, 3]  # counted with the zero
    enclosed = 0
    for bar in ax.patches:
        i = round(bar.get_x() + bar.get_width() / 2)
        if i in fine:
            enclosed += 1
            assert bar.get_y() <= fine[i] <= bar.get_y() + bar.get_height()
    assert enclosed


def test_fine_eigenvalues_without_coarse_values_are_counted(ax):
    C = halves(nx.complete_graph(6), 1)
    Q = sc.spectral_quality(C, 1)
    assert np.isinf(Q.coarse).sum() == 4
    plot.quality(Q, sc.certificate(C), ax=ax)
    draw(ax)
    assert len(points(ax, "coarse")[0]) == 1
    assert len(points(ax, "fine")[0]) == 5
    assert "4 have no coarse value" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_an_interval_that_begins_at_zero_is_clipped_on_logarithmic_axes(ax):
    with ties_allowed():
        C = sc.coarsen(
            sc.CellularSheaf.constant(nx.path_graph(6)), sc.Partition([0, 1, 0, 1, 0, 1]), 1
        )
    B = sc.certificate(C)
    assert B.gamma == 0
    Q = sc.spectral_quality(C, 1)
    plot.quality(Q, B, ax=ax)
    draw(ax)
    assert ax.get_ylim()[0] > 1e-5 * Q.fine.min()
    assert "below the axis" in "".join(text.get_text() for text in ax.get_legend().get_texts())
