import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf
from tests.support.errors import raises
from tests.support.helpers import assert_residual
from tests.unit.solve.problems import GRID, SHEAVES


@pytest.mark.parametrize("dtype", [np.float32, complex])
def test_frames_on_a_tree_are_sections(dtype):
    """The identity delta B = 0 holds for any regular maps, orthogonal or not."""
    tree = nx.random_labeled_tree(60, seed=3)
    rng = np.random.default_rng(3)
    maps = [np.eye(3) + 0.3 * rng.standard_normal((59, 3, 3)) for _ in range(2)]
    F = CellularSheaf(np.array(tree.edges), *(m.astype(dtype) for m in maps))
    B = sc.transported_frames(F)
    assert (B.shape, B.dtype) == ((180, 3), dtype)
    assert_residual(sc.coboundary(F) @ B, sc.coboundary(F), B, n=60)
    assert np.array_equal(B[:3], np.eye(3))
    assert np.linalg.matrix_rank(B) == 3


def test_every_component_has_its_own_root_frame():
    F = sc.gallery.bundle(nx.disjoint_union(nx.path_graph(4), nx.cycle_graph(5)), 2, seed=1)
    B = sc.transported_frames(F)
    assert_residual(sc.coboundary(F) @ B, sc.coboundary(F), B, n=2)
    assert np.array_equal(B[:2], np.eye(2))
    assert np.array_equal(B[8:10], np.eye(2))


def test_a_long_chain_of_growing_maps_does_not_overflow():
    n = 3000
    F = CellularSheaf(
        [[i, i + 1] for i in range(n)], np.full((n, 1, 1), 3.0), np.full((n, 1, 1), 1.0)
    )
    B = sc.transported_frames(F)  # 3^k at vertex k, up to a common factor
    assert np.isfinite(B**2).all()
    seen = B[:-1] > 1e-300
    np.testing.assert_allclose(B[1:][seen] / B[:-1][seen], 3, rtol=1e-12)
    assert B[0] == 0
    assert B[-1] > 1e150
    both = sc.disjoint_union([F, CellularSheaf.constant([[0, 1]])])[0]
    np.testing.assert_array_equal(sc.transported_frames(both), np.append(B, [[1], [1]], axis=0))


def test_frames_exist_with_loops_parallel_edges_and_isolated_vertices():
    edges = np.array([[0, 0], [0, 1], [1, 0]])
    F = CellularSheaf.constant(edges, 2, n_vertices=3, weight=None)
    assert np.array_equal(sc.transported_frames(F), np.tile(np.eye(2), (3, 1)))


def test_frames_of_a_noisy_bundle_have_less_energy_than_the_identity():
    F = sc.gallery.bundle(GRID, 3, noise=0.02, seed=4)
    plain = np.tile(np.eye(3), (F.n_vertices, 1))
    assert sc.energy(F, sc.transported_frames(F)).sum() < 0.01 * sc.energy(F, plain).sum()


def test_stalks_of_different_dimensions_raise():
    with pytest.raises(ValueError, match="vertex stalks of the same dimension, but vertex "):
        sc.transported_frames(SHEAVES["mixed stalks"])
    F = CellularSheaf.random(GRID, 2, np.arange(97) % 2 + 1, seed=0)
    with raises("ValueError: edge stalks of the same dimension, but edge 1 has dimension 2"):
        sc.transported_frames(F)
    empty = CellularSheaf(np.zeros((0, 2), int), [], [], vertex_dims=[])
    assert sc.transported_frames(empty).shape == (0, 0)
