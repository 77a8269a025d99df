"""Arguments of `coarsen`, estimates of its cost, and plans of which shard reads which edges."""

import dataclasses
import re
import tracemalloc

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.distributed._estimate import (
    BASE,
    NEED,
    USABLE,
    Request,
    bound_of_ranks,
    check_memory,
    default_shards,
    planned,
)
from sheafcoarsen.distributed.location import place_of
from sheafcoarsen.distributed.plan import Plan
from tests.unit.distributed.cases import FOURS, grid_sheaf, ragged_sheaf


@pytest.fixture
def src(memory):
    return dist.to_store(memory("src"), grid_sheaf(4))


def test_the_fingerprint_depends_on_what_affects_the_result(src):
    P, Q = sc.Partition(FOURS), sc.Partition(np.arange(16) // 8)
    asked = [Request(src, P, rank) for rank in (2, 3, sc.ranks.kernel(), [2, 2, 2, 1])]
    asked += [Request(src, Q, 2), Request(src, P, 2, "principal")]
    asked += [Request(src, P, 2, loops=False), Request(src, P, 2, compress=False)]
    assert len({one.run for one in asked}) == len(asked)
    assert Request(src, P.labels, 2, n_shards=3).run == asked[0].run


BAD = [
    ({"src": "somewhere"}, TypeError, "`src` must be a SheafStore, got str: open one"),
    ({"P": np.zeros(15, int)}, ValueError, r"`P` must label the 16 vertices .* got .* of 15"),
    ({"P": np.arange(16) * 2}, ValueError, "without gaps"),
    ({"local_operator": "oversampled"}, ValueError, '`local_operator` = "oversampled" needs'),
    ({"local_operator": "other"}, ValueError, "`local_operator` must be one of"),
    ({"n_shards": 0}, ValueError, "`n_shards` must be at least 1, got 0"),
    ({"n_shards": 2.5}, TypeError, "`n_shards` must be an integer"),
    ({"loops": 1}, TypeError, "`loops` must be True or False"),
    ({"compress": None}, TypeError, "`compress` must be True or False"),
    ({"rank": "all"}, TypeError, "`rank` must be"),
    ({"rank": [1, 2]}, ValueError, "one integer per cluster, 4 in all, got 2"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD)
def test_invalid_arguments_raise(change, error, message, src):
    given = {"src": src, "P": FOURS, "rank": 2, **change}
    with pytest.raises(error, match=message):
        Request(**given)
    if not {"loops", "compress"} & set(change):
        with pytest.raises(error, match=message):
            dist.estimate(**given)


def asked(memory, n_shards=3):
    F = grid_sheaf(12)
    return dist.estimate(dist.to_store(memory("src"), F, 3000), sc.select(F, 9), 3, n_shards), F


def test_estimates_match_the_sizes_of_the_arrays(memory):
    E, F = asked(memory)
    size = F.tail_data.nbytes + F.head_data.nbytes
    assert (E.source_bytes, E.n_shards) == (size, 3)
    assert size / 3 / 1.5 < E.largest_shard < size / 3 * 1.5
    assert size / 9 < E.largest_cluster < E.largest_shard
    rows = dist.to_store(memory("rows"), grid_sheaf(4)), FOURS
    assert dist.estimate(*rows, 1, 4).border_share == 0.5
    assert E.bytes_moved > 3 * size
    assert E.scratch_bytes > size
    C = sc.coarsen(F, sc.select(F, 9), 3)
    arrays = (C.sheaf.tail_data, C.sheaf.head_data, C.prolongation.data)
    assert E.out_bytes >= sum(array.nbytes for array in arrays)
    for word in ("source", "shards", "memory", "moved", "scratch", "result"):
        assert word in str(E)


def test_estimates_grow_with_borders_and_shards_and_ranks(memory):
    """Principal modes read borders twice; many modes make R as large as the fine maps."""
    F = grid_sheaf(12)
    src, P = dist.to_store(memory("src"), F, 3000), sc.select(F, 9)
    one, two = dist.estimate(src, P, 1, 3), dist.estimate(src, P, 1, 3, "principal")
    assert two.largest_shard > one.largest_shard
    assert two.source_bytes == one.source_bytes
    assert two.bytes_moved > one.bytes_moved
    many = dist.estimate(src, P, 30, 3)
    made = max(np.bincount(P.labels, F.vertex_dims)) * 30 * 8
    assert many.task_bytes > one.task_bytes + 2 * made
    assert one.task_bytes > BASE + NEED * one.largest_shard
    assert many.scratch_bytes <= one.scratch_bytes + 2 * many.border_share * many.source_bytes
    sizes = [dist.estimate(src, sc.select(F, 16), 3, n).largest_shard for n in (1, 4, 16)]
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
def test_bounds_on_ranks_follow_from_the_rule(rule, expected):
    assert bound_of_ranks(rule, np.array([9, 2, 5])).tolist() == expected


def test_the_default_number_of_shards_follows_size_memory_and_workers():
    assert default_shards(10, float("inf")) == 1
    assert default_shards(640_000_000, float("inf")) == 10
    assert default_shards(640_000_000, 5e8) > 30
    assert default_shards(640_000_000, 1e8) == 640
    several = [default_shards(640_000_000, 1e9, n) for n in (1, 2, 3, 8, 40, 1000)]
    assert several == [15, 16, 15, 16, 40, 15]


@pytest.mark.large
@pytest.mark.parametrize("local_operator", ["internal", "principal"])
@pytest.mark.parametrize("per_cluster", [400, 4])  # 5 % and 57 % of the edges cross
def test_planning_needs_about_the_estimated_memory(local_operator, per_cluster, memory, url):
    n = 40_000
    edges = np.concatenate([np.stack([np.arange(n - k), np.arange(k, n)], 1) for k in (1, 200)])
    if per_cluster == 4:
        edges[:, 1] = np.random.default_rng(0).permutation(edges[:, 1])
    F = sc.CellularSheaf.constant(edges)
    src = dist.to_store(memory("src"), F, 200_000)
    request = Request(src, np.arange(n) // per_cluster, 2, local_operator, 4)
    planned(request, np.inf)  # loads kernels, which take memory
    tracemalloc.start()
    plan, E = planned(request, np.inf)
    plan.write(place_of(url("plan")))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert E.driver_bytes / 2 < peak < E.driver_bytes


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_dense_matrices_are_included_in_the_estimate(dtype, memory):
    """Dense matrices have double precision for maps of any precision."""
    F = sc.CellularSheaf.constant([[k, k + 1] for k in range(2999)])
    F = F.with_maps(F.tail_data.astype(dtype), F.head_data.astype(dtype))
    src, P = dist.to_store(memory("src"), F), np.arange(3000) // 1500
    few = dist.estimate(src, P, 3)
    assert few.dense_bytes == 0  # few modes are computed by iteration
    whole = dist.estimate(src, P, sc.ranks.gap(3))
    assert whole.dense_bytes == 5 * np.result_type(dtype, float).itemsize * 1500**2
    assert whole.task_bytes > few.task_bytes + whole.dense_bytes / 2


def test_too_little_memory_raises_and_names_sizes_that_fit(memory):
    E, F = asked(memory, 2)

    def refused(bytes_, message, n_clusters=9, **changes):
        found = dataclasses.replace(E, **changes)
        with pytest.raises(MemoryError, match=message) as error:
            check_memory(found, bytes_ / USABLE, "it has", n_clusters)
        return str(error.value)

    check_memory(E, E.task_bytes / USABLE, "it has", 9)
    fixed = BASE + E.dense_bytes
    for share in (0.6, 0.7):
        few = fixed + share * (E.task_bytes - fixed)
        found = r"`n_shards` = 2: .* but it has .* of which 80% can be used: use (\d+) shards"
        count = int(re.search(found, refused(few, found, largest_part=0))[1])
        assert count > 2
        more = dist.estimate(dist.open_store(memory("src")), sc.select(F, 9), 3, count)
        check_memory(more, few / USABLE, "it has", 9)
    refused(few, r"use 3 shards", n_clusters=3, largest_part=0)
    refused(few, r"`n_shards` = 2: .* used: use more clusters, or", n_clusters=2, largest_part=0)
    refused(BASE, r"`P`: the maps of its largest cluster take .* use more clusters")
    dense = {"dense_bytes": 10**8, "task_bytes": int(3.6e8)}
    refused(3e8, r"`P`: .* need about 360 MB with the dense matrices", **dense)
    large = {"largest_part": 10**9, "task_bytes": int(BASE + NEED * 1e9)}
    refused(1e9, r"`src`: .* largest part take 1 GB.* at most 370 MB \(`part_bytes`\)", **large)


@pytest.mark.parametrize("n_shards", [1, 3, 12, 50])
def test_shards_hold_whole_clusters_and_borders_the_edges_between_them(n_shards, memory):
    F = ragged_sheaf(n=60, m=150)
    P = sc.select(F, 12)
    plan = Plan(dist.to_store(memory("src"), F, 1000), P, n_shards, copies=False)
    assert plan.n_shards == min(n_shards, 12)
    assert np.array_equal(np.unique(plan.shard_of), np.arange(plan.n_shards))
    assert np.array_equal(plan.dims, np.bincount(P.labels, F.vertex_dims))
    assert plan.weights.sum() == len(F.tail_data) + len(F.head_data)
    # an edge between shards goes to the border of the shard of its lower cluster
    ends, S = P.labels[F.edges], plan.n_shards
    shard, low = plan.shard_of[ends], plan.shard_of[ends.min(axis=1)]
    dest = np.where(shard[:, 0] == shard[:, 1], low, S + low)
    sizes = 8 * F.edge_dims * F.vertex_dims[F.edges].sum(axis=1)
    assert np.array_equal(plan.bytes, np.bincount(dest, sizes, 2 * S))
    providers = plan.write(place_of(memory("plan")))
    assert providers == [np.unique(shard[dest == S + s]).tolist() for s in range(S)]


def test_shards_are_balanced_by_the_size_of_maps(memory):
    """The sheaf is a path whose first quarter has large stalks."""
    dims = np.repeat([20, 1], [16, 48])
    edges = np.stack([np.arange(63), np.arange(1, 64)], axis=1)
    data = [np.ones(2 * dims[edges[:, end]].sum()) for end in (0, 1)]
    F = sc.CellularSheaf.from_flat(edges, *data, dims, 2)
    P = sc.Partition(np.arange(64) // 4)
    plan = Plan(dist.to_store(memory("src"), F), P, 2, copies=False)
    sizes = np.bincount(plan.shard_of, plan.weights)
    assert sizes.max() < 1.3 * sizes.mean()
    assert (plan.shard_of[:4] != plan.shard_of[3]).any()
