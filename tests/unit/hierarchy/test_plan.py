"""Which partition and which ranks a level takes."""

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import Partition
from tests.unit.hierarchy.test_levels import grid

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_given_partitions():
    F = grid()
    first, second = Partition(np.arange(400) % 7), Partition([0, 0, 1, 1, 2, 2, 2])
    H = sc.coarsen_levels(F, partitions=iter((first, second)), rank=[3, sc.ranks.kernel()])
    assert [C.partition for C in H] == [first, second]
    assert H.stopped_because == "`partitions` holds 2"
    everything = [Partition(np.arange(400)), Partition(np.zeros(400, int)), Partition([0])]
    H = sc.coarsen_levels(F, partitions=everything, rank=5)
    assert [G.n_vertices for G in H.sheaves] == [400, 400, 1, 1]
    assert [G.dim_c0 for G in H.sheaves] == [800, 800, 5, 5]
    # as asked for
    assert sc.coarsen_levels(F, partitions=everything, rank=0).sheaves[-1].dim_c0 == 0
    assert len(sc.coarsen_levels(F, partitions=[], rank=5)) == 0


def test_ranks_level_by_level():
    F, P, Q = grid(), Partition(np.arange(400) // 100), Partition([0, 0, 1, 1])
    H = sc.coarsen_levels(F, partitions=[P, Q], rank=(2, [1, 3]))
    assert [C.ranks.tolist() for C in H] == [[2] * 4, [1, 3]]
    H = sc.coarsen_levels(F, partitions=[P, Q], rank=[np.array([4, 3, 2, 1]), sc.ranks.budget(3)])
    assert H[0].ranks.tolist() == [4, 3, 2, 1]
    assert H[1].ranks.sum() == 3
    H = sc.coarsen_levels(F, 4, min_vertices=10, rank=[3, 4])
    assert [set(C.ranks.tolist()) for C in H] == [{3}, {4}]
    assert H.stopped_because == "`rank` has entries for 2 levels"
    H = sc.coarsen_levels(F, 10, rank=[3, 4, 5])  # fewer vertices come first
    assert (len(H), H.stopped_because) == (1, "40 vertices are at most `min_vertices` = 100")
