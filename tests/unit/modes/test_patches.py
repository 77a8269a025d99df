"""The patches of oversampled modes: hubs, the order of neighbours, rings."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from sheafcoarsen.modes import ClusterPatches
from sheafcoarsen.partition import clusters_of
from tests.unit.modes.test_oversampled import oversampled

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def patches_of(F, P, rings):
    return ClusterPatches(F, clusters_of(F, P), rings)


def test_patches_of_clusters_beside_a_hub_have_bounded_size():
    G = nx.star_graph(60)
    nx.add_path(G, range(1, 61))
    F = CellularSheaf.constant(G)
    P = Partition(np.minimum(np.arange(61) // 6, 9))
    for rings in (1, 2, 5):
        patches = patches_of(F, P, rings)
        assert (patches.dims <= 2 * np.bincount(P.labels)).all()
        assert (patches.dims > np.bincount(P.labels)).all()
        # edges are listed at the end of lower degree
        assert np.diff(patches.arrays.low_ptr).max() <= 3
    assert sc.verify(oversampled(F, P, 2)).passed


@pytest.mark.parametrize("scale", [1e-140, 1.0, 1e140])
def test_the_most_strongly_coupled_neighbours_are_added_first(scale):
    """Vertex 0 has neighbours of strengths 1, 9, 4; one of them fits into its patch."""
    F = CellularSheaf.constant(
        np.array([[0, 1], [2, 0], [0, 3]]), weight=[1.0, 9.0, 4.0], n_vertices=4
    )
    F = F.with_maps(scale * F.tail_data, scale * F.head_data)
    P = Partition([0, 1, 2, 3])
    patches = patches_of(F, P, 1).arrays
    members = np.stack([patches.members[patches.starts[:-1] + k] for k in (0, 1)], axis=1)
    assert members.tolist() == [[0, 2], [1, 0], [2, 0], [3, 0]]
    assert patches.counts.tolist() == [2] * 4


def test_more_rings_add_more_distant_vertices():
    F = CellularSheaf.constant(nx.path_graph(12))
    P = Partition(np.arange(12) // 4)
    counts = [patches_of(F, P, rings).arrays.counts.tolist() for rings in range(5)]
    assert counts == [[4, 4, 4], [5, 6, 5], [6, 8, 6], [7, 8, 7], [8, 8, 8]]


def test_the_workspace_fits_singular_vectors_of_bases_of_a_patch_with_few_rows():
    """Bases up to N x N are decomposed there, too; LAPACK writes past a shorter array."""
    F = CellularSheaf.random(nx.path_graph(4), 5, 1, seed=0, dtype=complex)
    patches = patches_of(F, Partition([0, 0, 1, 1]), 1)
    N = int(patches.dims.max())
    s = patches.allocate(0, 2, 10, False).kernel.s
    assert s.rwork.size >= 5 * N
    assert s.work.size >= 3 * N
    assert min(s.a.size, s.z.size) >= N * N
