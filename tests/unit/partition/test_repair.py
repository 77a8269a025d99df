"""Repair of arbitrary labels to a given number of connected clusters."""

import re
import warnings

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sheafcoarsen as sc
from sheafcoarsen.partition import Partition
from sheafcoarsen.partition.links import links_of
from sheafcoarsen.partition.methods import clusters_needed, repair_labels
from tests.unit.partition.test_select import METHODS, assert_guarantees, problems, sheaf_on

FORKED = [(0, 0), (0, 0), (0, 1), (0, 2), (4, 5), (5, 7), (7, 9), (11, 13), (13, 0), (0, 3), (0, 4)]


@settings(max_examples=4 * settings().max_examples)
@given(problem=problems(), seed=st.integers(0, 99))
@example(problem=(FORKED, [0, 0, 0, 2, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0], [0] * 11, 4), seed=0)
def test_repair_makes_any_labels_valid(problem, seed):
    edges, dims, edge_dims, n_clusters = problem
    links = links_of(sheaf_on(edges, dims, edge_dims), "sheaf")
    labels = np.random.default_rng(seed).integers(0, n_clusters, len(dims)).astype(np.int32)
    graph = nx.empty_graph(len(dims))
    graph.add_edges_from(edges)
    components = nx.number_connected_components(graph)
    for balanced in (True, False):
        found = Partition(repair_labels(links, labels.copy(), n_clusters, balanced))
        # more components than clusters are for ``pack_small_components``
        assert_guarantees(found, max(n_clusters, components), len(dims), edges)


def repaired(n, labels, n_clusters, balanced):
    """Return repaired labels of a path."""
    links = links_of(nx.path_graph(n), "graph")
    return repair_labels(links, np.array(labels, np.int32), n_clusters, balanced)


@pytest.mark.parametrize(
    ("labels", "balanced", "expected"),
    [
        ([0] * 4 + [1] * 4 + [2] * 4, True, [0] * 4 + [1] * 4 + [2] * 4),
        # fragments are merged into neighbours, before light clusters are
        ([0] * 4 + [1] * 2 + [0] + [1] * 3, True, [0] * 4 + [1] * 6),
        ([0] * 4 + [1] + [2] * 5 + [0] * 2, False, [0] * 4 + [1] + [2] * 7),
    ],
    ids=["valid labels", "a fragment", "a fragment and a light cluster"],
)
def test_repair_keeps_valid_labels_and_merges_fragments(labels, balanced, expected):
    assert repaired(len(labels), labels, max(labels) + 1, balanced).tolist() == expected


def test_repair_splits_heavy_clusters_and_merges_light_ones():
    heavy = np.repeat(np.arange(10), [24] + [4] * 9)
    assert np.bincount(repaired(60, heavy, 10, True)).max() <= 9
    assert np.bincount(repaired(60, heavy, 10, False)).max() == 24
    # a cluster of 2 among 30 vertices is merged with its neighbour; another one is split
    light = np.repeat(np.arange(3), [2, 17, 11])
    assert np.bincount(repaired(30, light, 3, True)).min() >= 4
    assert np.bincount(repaired(30, light, 3, False)).min() == 2
    dims = [3, 2, 1, 2, 1, 2, 1]  # parts of the first cluster outweigh the others
    F = sheaf_on([(v, v + 1) for v in range(6)], dims, np.ones(6, int))
    labels = np.array([0, 0, 0, 0, 0, 1, 2], dtype=np.int32)
    found = repair_labels(links_of(F, "sheaf"), labels, 4, True)
    assert np.bincount(found, dims).tolist() == [3] * 4


def crumbs(large, small, seed=0):
    """A connected graph of ``large`` vertices among ``small`` triangles, pairs and singles."""
    parts = [nx.cycle_graph(3), nx.path_graph(2), nx.empty_graph(1)]
    rng = np.random.default_rng(seed)
    graph = nx.disjoint_union_all(
        [nx.barabasi_albert_graph(large, 2, seed=seed)]
        + [parts[i] for i in rng.integers(3, size=small)]
    )
    order = rng.permutation(graph.number_of_nodes()).tolist()
    return nx.convert_node_labels_to_integers(nx.relabel_nodes(graph, dict(enumerate(order))))


@pytest.mark.parametrize(
    ("method", "n_clusters"),
    [("balls", 120), ("balls", 20), ("matching", 120), ("spectral", 20), ("metis", 120)],
)
def test_large_component_among_many_small_ones_is_split(method, n_clusters):
    """Like astro-ph: 16,706 vertices in 1,029 components, one of which has 14,845."""
    graph = crumbs(800, 180)
    partition = sc.select(graph, n_clusters, method=method)
    assert_guarantees(partition, n_clusters, graph.number_of_nodes(), list(graph.edges))
    again = sc.select(graph, n_clusters, method=method)
    np.testing.assert_array_equal(again.labels, partition.labels)
    largest = max(nx.connected_components(graph), key=len)
    inside = np.unique(partition.labels[list(largest)])
    share = 800 / graph.number_of_nodes() * n_clusters
    assert abs(len(inside) - share) <= 1
    crossing = partition.labels[np.array(graph.edges)]
    assert (crossing[:, 0] != crossing[:, 1]).any()
    if method != "spectral":
        others = np.setdiff1d(np.arange(n_clusters), inside)
        assert partition.sizes[others].max() <= 1.5 * partition.sizes.mean() + 3
        assert partition.sizes.max() <= 5 * partition.sizes.mean()


@pytest.mark.parametrize(("single", "bins"), [(20, 2), (24, 2), (26, 3)])
def test_components_heavier_than_the_mean_are_not_packed(single, bins):
    """Single vertices, five components of 15 and one of 105; 20 clusters with mean weight 10."""
    sizes = [1] * single + [15] * 5 + [105]
    graph = nx.disjoint_union_all([nx.path_graph(n) for n in sizes])
    labels = sc.select(graph, 20).labels
    component = np.repeat(np.arange(single + 6), sizes)
    for c in range(single, single + 6):
        inside = labels[component == c]
        assert not np.isin(labels[component != c], inside).any()
    assert len(np.unique(labels[component < single])) == bins  # their weight over the mean, rounded


@pytest.mark.parametrize("method", METHODS)
def test_vertex_weights_are_stalk_dimensions(method):
    """One vertex outweighs all others together, but can form only one cluster."""
    F = sc.CellularSheaf.from_flat([], [], [], [1000, *[1] * 10], [])
    labels = sc.select(F, 5, method=method).labels
    assert (labels[1:] != labels[0]).all()
    assert np.bincount(labels)[labels[1:]].max() <= 3


@pytest.mark.filterwarnings("ignore::sheafcoarsen.SmallComponentsWarning")
def test_components_are_not_joined_if_there_are_enough_clusters():
    graph = crumbs(500, 200)
    partition = sc.select(graph, 201)
    for component in nx.connected_components(graph):
        assert len(np.unique(partition.labels[list(component)])) == 1
    assert sc.select(graph, 230).n_clusters == 230


def with_pairs(large=1500, pairs=100):
    """A graph of degree 4 and many pairs."""
    big = nx.random_regular_graph(4, large, seed=1)
    return nx.disjoint_union_all([big] + [nx.path_graph(2)] * pairs)


@pytest.mark.parametrize(
    ("method", "extra"), [("balls", 0), ("matching", 1), ("matching", 10), ("balls", 20)]
)
def test_warning_states_a_sufficient_number_of_clusters(method, extra):
    graph, n_clusters = with_pairs(), 101 + extra
    with pytest.warns(sc.SmallComponentsWarning) as caught:
        P = sc.select(graph, n_clusters, method)
    assert_guarantees(P, n_clusters, 1700, list(graph.edges))
    (said,) = caught
    assert said.filename == __file__
    text = str(said.message)
    assert f"one cluster has {P.sizes.max()} of 1700 vertices" in text
    assert "100 of 101 components are smaller than the mean cluster" in text
    assert "or fewer than 101 to let small components share clusters" in text
    (enough,) = map(int, re.findall(r"n_clusters=(\d+)", text))
    assert enough == -(-2 * 1700 * 100 // (2 * 1700 - 1500))  # 100 / k + 1500 / (2 * 1700) <= 1
    for better in (enough, 100):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sizes = sc.select(graph, better, method).sizes
        assert sizes.max() <= 3 * sizes.mean() < P.sizes.max()


def test_warning_appears_exactly_below_the_threshold():
    """140 is the minimum k with 100 / k + 1500 / (4 * 1700) <= 1, up to a cluster or two."""
    graph = with_pairs()
    least = int(np.ceil(100 / (1 - 1500 / (4 * 1700))))
    sc.select(graph, least)  # warnings are errors here
    with pytest.warns(sc.SmallComponentsWarning):
        sc.select(graph, least - 5)


def test_warning_depends_on_vertex_weights():
    """Stalks of dimension 5 on the large component: 1500 of 2300 dimensions, not of 1100."""
    edges = np.array(with_pairs(300, 400).edges)
    dims = np.repeat([5, 1], [300, 800])
    maps = [np.ones((1, d)) for d in dims[edges[:, 0]]]
    F = sc.CellularSheaf(edges, maps, maps, vertex_dims=dims)
    with pytest.warns(sc.SmallComponentsWarning, match="400 of 401 components") as caught:
        sc.select(F, 410)
    assert f"n_clusters={-(-2 * 2300 * 400 // (2 * 2300 - 1500))} " in str(caught[0].message)


def test_indivisible_components_do_not_warn():
    F = sc.CellularSheaf.from_flat([], [], [], [1000, *[1] * 10], [])
    assert sc.select(F, 11).n_clusters == 11
    graph = nx.disjoint_union(nx.path_graph(100), nx.empty_graph(2))
    assert sorted(sc.select(graph, 3).sizes) == [1, 1, 100]  # 100 is less than 4 means of 34


def test_clusters_needed_is_the_minimum():
    rng = np.random.default_rng(5)
    for _ in range(50):
        n_vertices = rng.integers(1, 40, size=rng.integers(1, 30))
        weight = n_vertices * rng.integers(1, 4, size=len(n_vertices))
        for most in (2.0, 4.0):
            held = [
                np.maximum(1, np.minimum(n_vertices, weight * k / (most * weight.sum()))).sum() <= k
                for k in range(1, n_vertices.sum() + 1)
            ]
            k = clusters_needed(weight, n_vertices, most)
            assert held.index(True) + 1 == k >= len(weight)
            assert all(held[k - 1 :])  # and all larger ones are enough too
            assert k <= 2 * len(weight)
