"""Errors for arguments that are not sheaves, and the range of maps in files."""

import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

from sheafcoarsen import CellularSheaf, Partition, coarsen
from sheafcoarsen.sheaf import check_sheaf, checked_sheaf

F = CellularSheaf.constant(nx.path_graph(3))


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        (nx.path_graph(3), "got Graph: CellularSheaf.constant(graph) makes one"),
        (np.eye(3), "got ndarray: CellularSheaf.constant(graph) makes one"),
        (scipy.sparse.eye_array(3), "_array: CellularSheaf.constant(graph) makes one"),
        (coarsen(F, Partition([0, 0, 1]), 1), "got Coarsening: pass its attribute `sheaf`"),
        (None, "got NoneType"),
    ],
    ids=["graph", "array", "sparse", "coarsening", "none"],
)
def test_check_sheaf_suggests_how_to_get_a_sheaf(value, remedy):
    assert check_sheaf(F) is F
    with pytest.raises(TypeError, match="`G` must be a CellularSheaf, ") as raised:
        check_sheaf(value, "G")
    assert remedy in str(raised.value)
    assert str(raised.value).endswith("NoneType") == (value is None)


def test_stored_maps_may_exceed_the_range_but_must_be_finite():
    with pytest.raises(ValueError, match="rescale the maps"):
        CellularSheaf.from_flat([[0, 1]], [1e-200], [0.0], 1, 1)
    G = checked_sheaf([[0, 1]], [1e-200], [0.0], [1, 1], [1], ("a", "b"))
    assert G.tail_data.tolist() == [1e-200]
    assert G.vertex_labels == ("a", "b")
    for bad in (np.inf, np.nan):
        with pytest.raises(ValueError, match=re.escape("`tail_maps[0]` (edge 0 -> 1) must be fin")):
            checked_sheaf([[0, 1]], [bad], [0.0], [1, 1], [1])
    with pytest.raises(ValueError, match="out of range for 1 vert"):
        checked_sheaf([[0, 1]], [1.0], [0.0], [1], [1])
