"""The patches of oversampled modes: their size next to hubs, and the workspace."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import CellularSheaf, Partition
from sheafcoarsen.modes import ClusterPatches
from sheafcoarsen.partition import clusters_of
from tests.support import reference
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


@pytest.mark.parametrize("rings", [0, 1, 2, 30])
def test_patches_have_as_many_rings_as_fit(rings):
    """Stalks have dimension 0 .. 3, so that patches are full within some ring or not at all."""
    G = nx.convert_node_labels_to_integers(nx.circular_ladder_graph(12))
    F = CellularSheaf.random(G, np.random.default_rng(10).integers(0, 4, 24), 2, seed=3)
    P = Partition(np.arange(24) // 8)
    T = patches_of(F, P, rings).arrays
    for a in range(3):
        members = T.members[T.starts[a] : T.starts[a] + T.counts[a]]
        assert members.tolist() == reference.patch(F, P, a, rings)


def test_the_workspace_fits_singular_vectors_of_bases_of_a_patch_with_few_rows():
    """Bases up to N x N are decomposed there, too; LAPACK writes past a shorter array."""
    F = CellularSheaf.random(nx.path_graph(4), 5, 1, seed=0, dtype=complex)
    patches = patches_of(F, Partition([0, 0, 1, 1]), 1)
    N = int(patches.dims.max())
    s = patches.allocate(0, 2, 10, False).kernel.s
    assert s.rwork.size >= 5 * N
    assert s.work.size >= 3 * N
    assert min(s.a.size, s.z.size) >= N * N
