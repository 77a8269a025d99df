"""Any labels become just so many connected clusters."""

import networkx as nx
import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sheafcoarsen.partition import Partition
from sheafcoarsen.partition.links import links_of
from sheafcoarsen.partition.repair import repair_labels
from tests.unit.partition.test_selection import assert_guarantees, problems, sheaf_on

FORKED = [(0, 0), (0, 0), (0, 1), (0, 2), (4, 5), (5, 7), (7, 9), (11, 13), (13, 0), (0, 3), (0, 4)]


@settings(deadline=None, max_examples=300)
@given(problem=problems(), seed=st.integers(0, 99))
@example(problem=(FORKED, [0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0], [0] * 11, 4), seed=0)
def test_repair_mends_any_labels(problem, seed):
    edges, dims, edge_dims, n_clusters = problem
    links = links_of(sheaf_on(edges, dims, edge_dims), "sheaf")
    labels = np.random.default_rng(seed).integers(0, n_clusters, len(dims)).astype(np.int32)
    graph = nx.empty_graph(len(dims))
    graph.add_edges_from(edges)
    components = nx.number_connected_components(graph)
    for balanced in (True, False):
        repaired = Partition(repair_labels(links, labels.copy(), n_clusters, balanced))
        # more components than clusters are for ``pack_small_components``
        assert_guarantees(repaired, max(n_clusters, components), len(dims), edges)


def test_repair_leaves_good_labels_alone():
    labels = np.repeat([0, 1, 2], 4).astype(np.int32)
    repaired = repair_labels(links_of(nx.path_graph(12), "graph"), labels, 3, True)
    assert repaired.tolist() == labels.tolist()


def test_repair_gives_a_fragment_to_its_neighbour_and_the_main_piece_keeps_the_label():
    labels = np.array([0, 0, 0, 0, 1, 1, 0, 1, 1, 1], dtype=np.int32)  # vertex 6 is cut off
    repaired = repair_labels(links_of(nx.path_graph(10), "graph"), labels, 2, True)
    assert repaired.tolist() == [0] * 4 + [1] * 6


def test_repair_merges_a_fragment_before_a_lighter_cluster():
    labels = np.array([0] * 4 + [1] + [2] * 5 + [0] * 2, dtype=np.int32)
    repaired = repair_labels(links_of(nx.path_graph(12), "graph"), labels, 3, False)
    assert repaired.tolist() == [0] * 4 + [1] + [2] * 7


def test_repair_splits_heavy_clusters_and_merges_light_ones_instead():
    labels = np.repeat(np.arange(10), [24] + [4] * 9).astype(np.int32)
    links = links_of(nx.path_graph(60), "graph")
    assert np.bincount(repair_labels(links, labels, 10, True)).max() <= 9
    assert np.bincount(repair_labels(links, labels, 10, False)).max() == 24


def test_repair_leaves_no_light_cluster_beside_a_neighbour():
    """Of 30 vertices in three clusters one has two: it joins its neighbour, the rest is split."""
    labels = np.repeat(np.arange(3), [2, 17, 11]).astype(np.int32)
    links = links_of(nx.path_graph(30), "graph")
    assert np.bincount(repair_labels(links, labels, 3, True)).min() >= 4
    assert np.bincount(repair_labels(links, labels, 3, False)).min() == 2
