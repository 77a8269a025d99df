"""More components than clusters: the small ones are packed, the large ones are split."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from tests.unit.partition.test_selection import METHODS, assert_guarantees


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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_clusters", [40, 150, 400])
def test_a_large_component_among_hundreds_of_crumbs_is_split(method, n_clusters):
    """As astro-ph is: 16,706 vertices in 1,029 components, of which one has 14,845."""
    graph = crumbs(2000, 450)
    partition = sc.select(graph, n_clusters, method=method)
    assert_guarantees(partition, n_clusters, graph.number_of_nodes(), list(graph.edges))
    largest = max(nx.connected_components(graph), key=len)
    inside = np.unique(partition.labels[list(largest)])
    share = 2000 / graph.number_of_nodes() * n_clusters
    assert abs(len(inside) - share) <= 1
    crossing = partition.labels[np.array(graph.edges)]
    assert (crossing[:, 0] != crossing[:, 1]).any()
    if method != "spectral":
        others = np.setdiff1d(np.arange(n_clusters), inside)
        assert partition.sizes[others].max() <= 1.5 * partition.sizes.mean() + 3
        assert partition.sizes.max() <= 5 * partition.sizes.mean()


@pytest.mark.parametrize("method", METHODS)
def test_components_that_are_all_small_are_packed_evenly(method):
    graph = nx.disjoint_union_all([nx.path_graph(1 + i % 3) for i in range(300)])
    partition = sc.select(graph, 60, method=method)
    assert_guarantees(partition, 60, 600, list(graph.edges))
    assert partition.sizes.min() == partition.sizes.max() == 10


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_stalk_dimensions(method):
    """One vertex outweighs all others together, and can be but one cluster."""
    F = sc.CellularSheaf.from_flat([], [], [], [1000, *[1] * 10], [])
    labels = sc.select(F, 5, method=method).labels
    assert (labels[1:] != labels[0]).all()
    assert np.bincount(labels)[labels[1:]].max() <= 3


def test_with_as_many_clusters_as_components_none_is_joined():
    graph = crumbs(500, 200)
    partition = sc.select(graph, 201)
    for component in nx.connected_components(graph):
        assert len(np.unique(partition.labels[list(component)])) == 1
    assert sc.select(graph, 230).n_clusters == 230


def test_the_same_arguments_give_the_same_partition():
    graph = crumbs(500, 200)
    for method in METHODS:
        one, two = (sc.select(graph, 100, method=method, seed=3).labels for _ in range(2))
        assert (one == two).all()
