"""Notes in repr and HTML on coarse Laplacians with more entries than the fine one."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from sheafcoarsen.coarsening import growth_of

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

HUB = CellularSheaf.constant(nx.star_graph(40), 2)
"""Few entries: its arms meet in the middle alone."""


def test_a_larger_coarse_laplacian_is_noted_with_counts_and_a_suggestion():
    ring = nx.circulant_graph(40, [1, 7, 11])
    F, P = CellularSheaf.random(ring, 1, 1, seed=3), Partition(np.arange(40) // 4)
    C = sc.coarsen(F, P, 4)
    fine, coarse = (sc.laplacian(G).nnz for G in (F, C.sheaf))
    assert coarse > fine
    note = growth_of(C)
    assert f"{coarse:,} entries, the fine one {fine:,}" in note
    for text in (repr(C), C._repr_html_()):
        assert note in text
    for remedy in ("fewer modes", "larger clusters"):
        assert remedy in note
    for better in (sc.coarsen(F, P, 1), sc.coarsen(F, Partition(np.arange(40) // 20), 4)):
        assert growth_of(better) is None


@pytest.mark.parametrize("rank", [1, 2])
def test_a_coarse_laplacian_that_is_not_larger_is_not_noted(rank):
    P = Partition(np.arange(41) // 10)
    C = sc.coarsen(HUB, P, rank)
    assert sc.laplacian(C.sheaf).nnz <= sc.laplacian(HUB).nnz
    assert growth_of(C) is None
    assert "Laplacian" not in repr(C) + C._repr_html_()
    same = sc.coarsen(HUB, Partition(np.arange(41)), 2)
    assert growth_of(same) is None
