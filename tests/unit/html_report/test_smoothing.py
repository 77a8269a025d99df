"""A smooth cochain is one: of norm 1, always the same, with less energy than a random one."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.html_report.smoothing import random_cochain, smooth_cochain


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_smooth_cochains(scale):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(9, 9), 2)
    F = F.with_maps(scale * F.tail_data, scale * F.head_data)
    rough, smooth = random_cochain(F), smooth_cochain(F)
    for x in (rough, smooth):
        assert abs(np.linalg.norm(x) - 1) < 1e-14
    assert sc.energy(F, smooth) < 0.05 * sc.energy(F, rough)
    np.testing.assert_array_equal(smooth, smooth_cochain(F))


def test_a_sheaf_without_maps():
    F = sc.CellularSheaf.constant(np.zeros((0, 2), int), n_vertices=3)
    np.testing.assert_allclose(smooth_cochain(F), random_cochain(F), rtol=1e-15)
