"""Dense references: blocks cut out right, rank decided against the maps as given."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen.verification.dense import dense_blocks, dense_sections


def test_blocks_of_one_size():
    rng = np.random.default_rng(5)
    parts = [rng.standard_normal((d, d)) for d in (2, 3, 1, 3)]
    matrix = scipy.sparse.csr_array(scipy.sparse.block_diag(parts))
    found = dense_blocks(matrix, np.array([0, 2, 5, 6, 9]), np.array([1, 3]), 3)
    np.testing.assert_array_equal(found, [parts[1], parts[3]])


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_maps_that_cancel_to_rounding_leave_no_rank(scale):
    """The loop's tail - head of 2e-16 is measured against the maps, not against itself."""
    tail, head = scale * np.eye(2), scale * np.diag([1, 1 + 3e-16])
    F = sc.CellularSheaf([[0, 0]], [tail], [head])
    sections, gap = dense_sections(F, np.finfo(float).eps, np.dtype(float))
    assert sections.shape == (2, 2)
    assert gap == 0


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_sections_of_a_bundle(scale):
    F = sc.gallery.bundle(nx.cycle_graph(6), 2, seed=3)
    F = F.with_maps(F.tail_data * scale, F.head_data * scale)
    sections, gap = dense_sections(F, np.finfo(float).eps, np.dtype(float))
    assert sections.shape == (12, 2)
    assert abs(sc.coboundary(F) @ sections).max() < 1e-14 * scale
    assert gap == pytest.approx(scale)
