"""The waterfall of an energy ledger, of one level and of many; the sizes of all levels."""

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure

import sheafcoarsen as sc
from sheafcoarsen import plot
from tests.support.helpers import assert_residual
from tests.unit.plot.test_axes import cochain, draw

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def bars(ax):
    """Return the bars from top to bottom by the name of their line: (start, signed length)."""
    names = {
        tick: label.get_text()
        for tick, label in zip(ax.get_yticks().tolist(), ax.get_yticklabels(), strict=True)
    }
    return {
        names[round(bar.get_y() + bar.get_height() / 2)]: (bar.get_x(), bar.get_width())
        for bar in sorted(ax.patches, key=lambda bar: bar.get_y())
    }


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
    start, length = drawn["fine energy"]
    assert start == 0
    assert length == np.sum(E.fine_energy)
    assert_residual(end - length, moduli, n=34)
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


# ---------------------------------------------------------------- the picture of a hierarchy


def test_hierarchy_plot_shows_the_sizes_of_all_sheaves(ax):
    H = sc.coarsen_levels(
        sc.CellularSheaf.constant(nx.grid_2d_graph(16, 16)), factor=4, n_levels=3, rank=2
    )
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
