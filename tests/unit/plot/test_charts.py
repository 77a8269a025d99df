"""Pictures of eigenvalues, of energy ledgers, and of the sizes of all levels."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure

import sheafcoarsen as sc
from sheafcoarsen import plot
from tests.support.helpers import assert_residual, ties_allowed
from tests.unit.plot.test_axes import cochain, collections, draw

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def halves(graph, rank, **options):
    """Return a constant sheaf on a graph of six vertices, coarsened to its two halves."""
    F = sc.CellularSheaf.constant(graph)
    return sc.coarsen(F, sc.Partition(np.arange(6) // 3), rank, **options)


def test_spectra_show_kept_and_discarded_eigenvalues(C, ax):
    plot.spectra(C, ax=ax)
    drawn = collections(ax)
    kept, norms = drawn["kept"].get_offsets(), C.modes.operator_norms
    for a in range(4):
        assert_residual(kept[kept[:, 0] == a, 1] - C.modes.eigenvalues(a), norms[a], n=34)
    next_ones = np.asarray(drawn["first discarded"].get_offsets())
    # a circle close to a dot does not cover it
    assert drawn["first discarded"].get_zorder() < drawn["kept"].get_zorder()
    finite = np.isfinite(C.modes.next_eigenvalues)
    assert not finite.all()
    expected = np.stack([np.arange(4), C.modes.next_eigenvalues], axis=1)
    np.testing.assert_array_equal(next_ones, expected[finite])
    for (_, low), (x, high) in drawn["gap"].get_segments():
        a = int(x)
        assert high == C.modes.next_eigenvalues[a]
        assert_residual(low - C.modes.eigenvalues(a)[-1], norms[a], n=34)
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
    crosses, dots = (collections(ax)[name] for name in (label, "kept"))
    assert crosses.get_sizes().min() > dots.get_sizes().max()  # stand out from dots that they mark
    np.testing.assert_array_equal(crosses.get_offsets()[:, 1], C.modes.next_eigenvalues)
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
    weights = 10.0 ** np.arange(0, -11, -1)
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
    assert [len(points(ax, name)[0]) for name in ("coarse", "fine")] == [1, 5]
    assert "4 have no coarse value" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_an_interval_that_begins_at_zero_is_clipped_on_logarithmic_axes(ax):
    F = sc.CellularSheaf.constant(nx.path_graph(6))
    with ties_allowed():
        C = sc.coarsen(F, sc.Partition([0, 1, 0, 1, 0, 1]), 1)
    B = sc.certificate(C)
    assert B.gamma == 0
    Q = sc.spectral_quality(C, 1)
    plot.quality(Q, B, ax=ax)
    draw(ax)
    assert ax.get_ylim()[0] > 1e-5 * Q.fine.min()
    assert "below the axis" in "".join(text.get_text() for text in ax.get_legend().get_texts())


def bars(ax):
    """Return the bars from top to bottom by the name of their line: (start, signed length)."""
    labels = [label.get_text() for label in ax.get_yticklabels()]
    names = dict(zip(ax.get_yticks().tolist(), labels, strict=True))
    found = sorted(ax.patches, key=lambda bar: bar.get_y())
    middles = [round(bar.get_y() + bar.get_height() / 2) for bar in found]
    sizes = [(bar.get_x(), bar.get_width()) for bar in found]
    return {names[middle]: size for middle, size in zip(middles, sizes, strict=True)}


def ledger_of(C, operator="internal", columns=None, scale=1.0):
    F = C.fine.with_maps(C.fine.tail_data * scale, C.fine.head_data * scale)
    D = sc.coarsen(F, C.partition, 2, local_operator=operator)
    return sc.energy_ledger(D, cochain(C, columns))


LEDGERS = {
    "tiny": lambda C: ledger_of(C, scale=1e-100),
    "huge": lambda C: ledger_of(C, "principal", scale=1e100),
    "3 cochains": lambda C: ledger_of(C, "principal", 3),
    "zero": lambda C: sc.energy_ledger(C, np.zeros(34)),
    "levels": lambda C: sc.coarsen_levels(C.fine, 3, 2, rank=2).ledger(cochain(C)),
}


@pytest.mark.parametrize("name", LEDGERS)
def test_waterfall_ends_at_the_fine_energy(name, C, ax):
    E = LEDGERS[name](C)
    plot.ledger(E, ax=ax)
    draw(ax)
    drawn = bars(ax)
    assert set(drawn) == {*E.lines, "fine energy"}
    moduli = sum(abs(length) for _, length in drawn.values())
    assert (moduli == 0) == (name == "zero")
    for line, value in E.lines.items():
        assert_residual(drawn[line][1] - np.sum(value), moduli, n=6)
    end = 0.0
    for start, length in list(drawn.values())[:-1]:
        assert_residual(start - end, moduli, n=6)
        end = start + length
    assert drawn["fine energy"] == (0, np.sum(E.fine_energy))
    assert_residual(end - np.sum(E.fine_energy), moduli, n=34)
    low, high = ax.get_xlim()
    for start, length in drawn.values():
        assert low <= min(start, start + length)
        assert max(start, start + length) <= high
    assert ("summed over 3 cochains" in ax.get_xlabel()) == (name == "3 cochains")


def test_retained_lines_are_drawn_first(C, ax):
    plot.ledger(sc.energy_ledger(C, cochain(C)), ax=ax)
    names = [label.get_text() for label in ax.get_yticklabels()]
    said = dict(zip(names, [text.get_text() for text in ax.texts], strict=True))
    assert said["internal coupling"] == "0, to rounding"
    assert said["fine energy"].endswith("(100.00 %)")
    assert names[:2] == ["retained internal", "retained crossing"]
    assert names[-1] == "fine energy"


@pytest.mark.parametrize("layout", [None, "constrained"])
@pytest.mark.parametrize("width", [5, 8])
def test_names_of_ledger_lines_are_inside_the_figure(layout, width, C):
    figure = Figure(figsize=(width, 4), layout=layout)
    ax = plot.ledger(sc.energy_ledger(C, cochain(C)), ax=figure.add_subplot())
    draw(ax)
    assert min(label.get_window_extent().x0 for label in ax.get_yticklabels()) >= 0
    assert ax.bbox.x1 <= figure.bbox.x1


def test_hierarchy_plot_shows_the_sizes_of_all_sheaves(ax):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(16, 16))
    H = sc.coarsen_levels(F, factor=4, n_levels=3, rank=2)
    plot.hierarchy(H, ax=ax)
    draw(ax)
    lines = {line.get_label(): np.asarray(line.get_ydata()).tolist() for line in ax.lines}
    assert lines["vertices"] == [F.n_vertices for F in H.sheaves]
    assert lines["$\\dim C^0$"] == [F.dim_c0 for F in H.sheaves]
    assert lines["$\\dim C^1$"] == [F.dim_c1 for F in H.sheaves]
    assert lines["edges, with loops"] == [F.n_edges for F in H.sheaves]
    assert lines["nonzeros of $L$"] == [len(sc.laplacian(F).data) for F in H.sheaves]
    assert [text.get_text() for text in ax.texts] == ["256", "64", "16", "4"]
    none = sc.Hierarchy(sc.CellularSheaf.constant(nx.empty_graph(3)), ())
    ax = plot.hierarchy(none, ax=Figure().subplots())
    draw(ax)
    assert "0 levels" in ax.get_title()
