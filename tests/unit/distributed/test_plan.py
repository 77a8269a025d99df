"""Destinations of edges: shards of whole clusters, borders, and copies for principal modes."""

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from sheafcoarsen.distributed.plan import Plan
from tests.unit.distributed.cases import ragged_sheaf


def laid_out(memory, n_shards, copies=False, part_bytes=1000):
    F = ragged_sheaf(n=60, m=150)
    P = sc.select(F, 12)
    src = dist.to_store(memory("src"), F, part_bytes=part_bytes)
    return F, P, Plan(src, P, n_shards, copies=copies)


@pytest.mark.parametrize("n_shards", [1, 3, 12, 50])
def test_shards_hold_whole_clusters(n_shards, memory):
    F, P, plan = laid_out(memory, n_shards)
    assert plan.n_shards == min(n_shards, 12)
    assert np.array_equal(np.unique(plan.shard_of[:-1]), np.arange(plan.n_shards))
    assert np.array_equal(plan.dims, np.bincount(P.labels, F.vertex_dims))
    assert plan.weights.sum() == len(F.tail_data) + len(F.head_data)


def test_shards_are_balanced_by_the_size_of_maps(memory):
    """The sheaf is a path whose first quarter has large stalks."""
    dims = np.repeat([20, 1], [16, 48])
    edges = np.stack([np.arange(63), np.arange(1, 64)], axis=1)
    data = [np.ones(2 * dims[edges[:, end]].sum()) for end in (0, 1)]
    F = sc.CellularSheaf.from_flat(edges, *data, dims, 2)
    P = sc.Partition(np.arange(64) // 4)
    plan = Plan(dist.to_store(memory("src"), F), P, 2, copies=False)
    sizes = np.bincount(plan.shard_of[:-1], plan.weights)
    assert sizes.max() < 1.3 * sizes.mean()
    assert (plan.shard_of[:4] != plan.shard_of[3]).any()


@pytest.mark.parametrize("copies", [False, True])
def test_shards_and_borders_cover_the_topology_of_the_sheaf(copies, memory):
    """An edge goes to its shard, or to the border of its lower cluster and perhaps to copies."""
    F, P, plan = laid_out(memory, 3, copies)
    S, shard = 3, plan.shard_of[P.labels[F.edges]]
    low = np.where(P.labels[F.edges[:, 0]] < P.labels[F.edges[:, 1]], shard[:, 0], shard[:, 1])
    inner = shard[:, 0] == shard[:, 1]
    sizes = 8 * F.edge_dims * F.vertex_dims[F.edges].sum(axis=1)
    assert (~inner).any()
    assert np.array_equal(plan.starts[:, -1], (plan.tails + plan.heads).sum(axis=1))
    assert len(plan.bytes) == (3 if copies else 2) * S
    supplies = {}
    for s in range(S):
        told = plan.border_arrays(s, supplies)
        edges = np.flatnonzero(~inner & (low == s))
        assert plan.bytes[S + s] == sizes[edges].sum()
        ends = told["clusters"][told["labels"][told["ends"]]]
        assert np.array_equal(ends, P.labels[F.edges[edges]])
        assert np.array_equal(told["dims"][told["ends"]], F.vertex_dims[F.edges[edges]])
        assert np.array_equal(told["edge_dims"], F.edge_dims[edges])
        assert np.array_equal(told["providers"], np.unique(plan.shard_of[ends]))
    for s in range(S):
        told = plan.shard_arrays(s, supplies.get(s, []))
        own = told["vertices"]
        assert np.array_equal(own, np.flatnonzero(plan.shard_of[P.labels] == s))
        assert np.array_equal(told["clusters"][told["labels"][: len(own)]], P.labels[own])
        assert (len(told["dims"]) > len(own)) == (
            copies and (~inner)[(shard == s).any(axis=1)].any()
        )
        edges = np.flatnonzero((shard == s).any(axis=1) if copies else inner & (low == s))
        assert plan.bytes[s :: S if copies else 2 * S].sum() == sizes[edges].sum()
        ends = told["clusters"][told["labels"][told["ends"]]]
        assert np.array_equal(ends, P.labels[F.edges[edges]])
        assert (told["supply"] < len(own)).all()
        assert len(told["consumers"]) == len(told["supply_ptr"]) - 1
