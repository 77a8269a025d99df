"""Which partition and which ranks a level takes."""

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen import Partition
from sheafcoarsen.hierarchy.level_plan import cluster_count
from tests.unit.hierarchy.test_coarsen_levels import grid

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_given_partitions():
    F = grid()
    first, second = Partition(np.arange(400) % 7), Partition([0, 0, 1, 1, 2, 2, 2])
    rank = [3, sc.ranks.kernel()]
    with pytest.warns(sc.SingularProblemWarning, match="level 1: no cluster has a local section"):
        H = sc.coarsen_levels(F, partitions=iter((first, second)), rank=rank)
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


@pytest.mark.parametrize(
    ("components", "factor", "expected"),
    [
        ([1000], 10, 100),
        ([1001], 10, 101),
        ([10], 10, 1),
        ([11], 10, 2),
        ([1000, *[10] * 70], 10, 100 + 70),
        ([1000, *[11] * 70], 10, 177),  # 1770 vertices
        ([*[11] * 70], 100, 70),
        ([2.0], 1.5, 2),
        ([1000, *[3] * 500], 3.5, 286 + 500),
        ([1, 1, 1], 7, 3),
    ],
)
def test_small_components_are_a_cluster_each_and_the_others_share_theirs(
    components, factor, expected
):
    count = cluster_count(np.array(components, dtype=np.int64), factor)
    assert count == expected
    assert count >= max(np.ceil(sum(components) / factor), len(components))
