"""What a run takes, told before it starts."""

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.distributed.sizes import bound_of_ranks, check_memory, default_shards
from tests.unit.distributed.cases import grid_sheaf


def asked(memory, n_shards=3):
    F = grid_sheaf(12)
    return dist.estimate(dist.to_store(memory("src"), F, 3000), sc.select(F, 9), 3, n_shards), F


def test_an_estimate_adds_up(memory):
    E, F = asked(memory)
    size = F.tail_data.nbytes + F.head_data.nbytes
    assert E.source_bytes == size
    assert E.n_shards == 3
    assert size / 3 / 1.5 < E.largest_shard < size / 3 * 1.5
    assert size / 9 < E.largest_cluster < E.largest_shard
    assert 0 < E.border_share < 0.5
    assert E.bytes_moved > 3 * size
    assert E.scratch_bytes > size
    C = sc.coarsen(F, sc.select(F, 9), 3)
    arrays = (C.sheaf.tail_data, C.sheaf.head_data, C.prolongation.data)
    assert E.out_bytes >= sum(array.nbytes for array in arrays)
    for word in ("source", "shards", "memory", "moved", "scratch", "result"):
        assert word in str(E)


def test_principal_modes_read_borders_twice(memory):
    F = grid_sheaf(12)
    src, P = dist.to_store(memory("src"), F, 3000), sc.select(F, 9)
    one = dist.estimate(src, P, 3, 3)
    two = dist.estimate(src, P, 3, 3, "principal")
    assert two.largest_shard > one.largest_shard
    assert two.source_bytes == one.source_bytes
    assert two.bytes_moved > one.bytes_moved


def test_more_shards_take_less_memory(memory):
    F = grid_sheaf(12)
    src, P = dist.to_store(memory("src"), F, 3000), sc.select(F, 16)
    sizes = [dist.estimate(src, P, 3, n).largest_shard for n in (1, 4, 16)]
    assert sizes[0] > 2 * sizes[1] > 3 * sizes[2]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (sc.ranks.fixed(3), [3, 2, 3]),
        (sc.ranks.fixed(3).whole_multiplets(), [3, 2, 3]),
        (sc.ranks.gap(4), [4, 2, 4]),
        (sc.ranks.budget(7), [3, 2, 3]),
        (sc.ranks.kernel(), [9, 2, 5]),
        (sc.ranks.below(1.0), [9, 2, 5]),
    ],
)
def test_what_is_known_of_ranks(rule, expected):
    assert bound_of_ranks(rule, np.array([9, 2, 5])).tolist() == expected


def test_shards_by_default():
    assert default_shards(10, float("inf")) == 1
    assert default_shards(640_000_000, float("inf")) == 10
    assert default_shards(640_000_000, 5e8) > 30
    assert default_shards(640_000_000, 1e8) == 640


def test_what_does_not_fit_is_refused_with_what_would(memory):
    E, _ = asked(memory, 2)
    check_memory(E, E.task_bytes, "it has")
    part = E.__class__(**{**E.__dict__, "largest_part": 0})
    with pytest.raises(MemoryError, match=r"`n_shards` = 2: .* but it has .* shards fit"):
        check_memory(part, 2.5e8 + 5 * (part.largest_shard - 100), "it has")
    with pytest.raises(MemoryError, match=r"`P`: its largest cluster has .* use more clusters"):
        check_memory(E, 2.5e8, "it has")
    large = E.__class__(**{**E.__dict__, "largest_part": 10**9, "task_bytes": 6 * 10**9})
    with pytest.raises(MemoryError, match=r"`src`: its largest part has 1 GB.*part_bytes"):
        check_memory(large, 1e9, "it has")
