"""The weighted links that `select` uses: weights, norms, parallel edges."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

from sheafcoarsen.partition import select
from sheafcoarsen.partition.links import links_of
from sheafcoarsen.sheaf import CellularSheaf
from tests.unit.partition.test_select import (
    BALANCED,
    METHODS,
    assert_guarantees,
    clusters,
    grid,
    sheaf_on,
)

RING = np.stack([np.arange(20), (np.arange(20) + 1) % 20], axis=1)


WEAK = np.where(np.isin(np.arange(20), [4, 14]), 1e-3, 1.0)  # links 4-5 and 14-15


HALVES = frozenset({frozenset(range(5, 15)), frozenset([*range(5), *range(15, 20)])})


@pytest.mark.parametrize(
    ("method", "scale"), list(zip(METHODS, [1e-100, 1.0, 1e100, 1e-100], strict=True))
)
def test_sheaf_weights_cut_weak_links_at_any_scale(method, scale):
    roots = scale * np.sqrt(WEAK)
    F = CellularSheaf(RING, roots[:, None, None] * np.eye(2), roots[:, None, None] * np.eye(2))
    for seed in range(4):
        assert clusters(select(F, 2, method=method, weights="sheaf", seed=seed)) == HALVES
    unaware = [clusters(select(F, 2, method=method, weights="graph", seed=s)) for s in range(4)]
    assert unaware != [HALVES] * 4


@pytest.mark.parametrize("method", METHODS)
def test_graph_weights_are_attributes_or_adjacency_entries(method):
    G = nx.cycle_graph(20)
    for u, v in ((4, 5), (14, 15)):
        G.edges[u, v]["weight"] = 1e-3  # the others are missing: 1
    adjacency = scipy.sparse.coo_array((WEAK, RING.T), shape=(20, 20))
    adjacency = scipy.sparse.csr_array(adjacency + adjacency.T)
    for graph in (G, adjacency):
        for seed in range(4):
            assert clusters(select(graph, 2, method=method, seed=seed)) == HALVES
    assert any(clusters(select(RING, 2, method=method, seed=s)) != HALVES for s in range(4))


@pytest.mark.parametrize("method", METHODS)
def test_scaling_weights_by_powers_of_two_changes_nothing(method):
    edges = np.array(grid(6, 7).edges)
    made = [
        sheaf_on(edges, np.arange(42) % 4, np.full(len(edges), 2), scale=scale)
        for scale in (1.0, 2.0**-332, 2.0**332)
    ]
    labels = [select(F, 5, method=method, weights="sheaf").labels.tolist() for F in made]
    assert labels[0] == labels[1] == labels[2]


@pytest.mark.parametrize(
    ("method", "weight"),
    [*zip(METHODS, [0.0, 5e-324, 1e308, 0.0], strict=True), ("balls", 1e308), ("metis", 5e-324)],
)
def test_equal_weights_give_the_same_partition_at_any_scale(method, weight):
    G = grid(7, 8)
    nx.set_edge_attributes(G, weight, "weight")
    partition = select(G, 6, method=method)
    assert_guarantees(partition, 6, 56, list(G.edges))
    assert partition.sizes.max() <= 22
    if weight > 0:
        assert np.array_equal(partition.labels, select(grid(7, 8), 6, method=method).labels)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_links_are_frobenius_norms_summed_over_parallel_edges(dtype):
    edges = [(0, 1), (1, 0), (2, 2), (1, 2), (3, 1), (0, 1)]
    F = sheaf_on(edges, [2, 3, 1, 0], [2, 1, 2, 3, 2, 0], dtype=dtype)
    links = links_of(F, "sheaf")
    assert links.starts.tolist() == [0, 1, 4, 5, 6]
    assert links.sizes.tolist() == [2, 3, 1, 1]
    norms = [np.linalg.norm(F.tail_map(e).conj().T @ F.head_map(e)) for e in range(6)]
    expected = {(0, 1): norms[0] + norms[1] + norms[5], (1, 2): norms[3], (1, 3): norms[4]}
    top = max(norms[e] for e in (0, 1, 3, 4, 5))
    for u in range(4):
        for p in range(links.starts[u], links.starts[u + 1]):
            v = int(links.ends[p])
            wanted = expected[min(u, v), max(u, v)] / top
            assert abs(links.weights[p] - wanted) <= 30 * np.finfo(dtype).eps * max(wanted, 1)
    assert set(links_of(F, "graph").weights.tolist()) == {3.0, 1.0}


def test_edge_lists_have_unit_weights_and_loops_are_ignored():
    G = nx.MultiGraph([(0, 1), (0, 1), (1, 1), (1, 2)])
    G.edges[0, 1, 1]["weight"] = 4
    assert sorted(links_of(G, "graph").weights.tolist()) == [0.25, 0.25, 1.25, 1.25]
    assert sorted(links_of([[0, 1], [0, 1], [1, 1], [1, 2]], "graph").weights.tolist()) == [
        1,
        1,
        2,
        2,
    ]


LARGE = np.where(np.arange(60) == 30, 1000, 2)  # vertex 30 is heavier than a mean cluster


@pytest.mark.parametrize("method", BALANCED)
@pytest.mark.parametrize(
    ("light", "dims", "kept"),
    [
        ([e for e in range(59) if e % 10 not in (2, 3)], 2, True),
        ([e for e in range(59) if e % 10 not in (2, 3)], LARGE, True),
        (list(range(20)), 2, False),  # the others join too many vertices for one cluster
        ([10, 29, 30], LARGE, False),  # the others join them to fewer groups than clusters
    ],
    ids=["pairs", "pairs and a large stalk", "long chain", "few groups"],
)
def test_links_heavier_than_all_lighter_ones_are_cut_only_for_balance(method, light, dims, kept):
    edges = np.array(nx.path_graph(60).edges)
    heavy = ~np.isin(np.arange(59), light)
    roots = np.sqrt(np.where(heavy, 1e5, 10 + np.arange(59) % 7))
    dims = np.broadcast_to(dims, 60)
    maps = [[r * np.eye(1, dims[v]) for r, v in zip(roots, ends, strict=True)] for ends in edges.T]
    F = CellularSheaf(edges, *maps)
    for n_clusters in range(5, 16):
        P = select(F, n_clusters, method, "sheaf", seed=n_clusters % 3)
        assert_guarantees(P, n_clusters, 60, edges)
        cut = P.labels[edges[heavy, 0]] != P.labels[edges[heavy, 1]]
        assert cut.any() != kept
        heaviest = np.bincount(P.labels, dims).max()
        assert heaviest <= max(2 * dims.sum() / n_clusters, dims.max() + 60)
