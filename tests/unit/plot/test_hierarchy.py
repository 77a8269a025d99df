"""The picture of a hierarchy."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import plot
from tests.unit.plot.test_axes import draw

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_hierarchy_shows_the_sizes_of_all_sheaves(ax):
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


def test_a_hierarchy_without_levels(ax):
    plot.hierarchy(sc.Hierarchy(sc.CellularSheaf.constant(nx.empty_graph(3)), ()), ax=ax)
    draw(ax)
    assert "0 levels" in ax.get_title()
