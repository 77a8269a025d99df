"""Clusters of the next level: enough of them, none far heavier than the others."""

import networkx as nx
import numpy as np

import sheafcoarsen as sc
from sheafcoarsen.sections import clustering


def test_every_component_has_a_cluster_beyond_those_that_sizes_ask_for():
    F = sc.CellularSheaf.constant(nx.path_graph(400))
    assert clustering.cluster_count(F, 1) == 10
    many, _, _ = sc.disjoint_union([F, F, sc.CellularSheaf([], [], [], vertex_dims=[1] * 30)])
    assert clustering.cluster_count(many, 1) == 31 + 21
    assert clustering.cluster_count(many, 4) == 31 + 6


def test_there_are_four_vertices_to_a_cluster_at_least():
    F = sc.CellularSheaf.constant(nx.path_graph(40), dim=100)
    assert clustering.cluster_count(F, 1) == 10


def test_clusters_of_meshes_are_those_of_select():
    F = sc.CellularSheaf.constant(nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30)))
    sheaf, partition, split, is_cut = clustering.choose_clusters(F, 1)
    assert sheaf is F
    assert (split, is_cut) == (None, False)
    labels = sc.select(F, clustering.cluster_count(F, 1), "balls").labels
    assert (partition.labels == labels).all()


def test_a_heap_is_cut_down_to_what_is_allowed(monkeypatch):
    monkeypatch.setattr(clustering, "LAST", 20)
    F = sc.CellularSheaf.constant(nx.star_graph(99), dim=2)
    labels = np.repeat([0, 1], 50)
    partition, is_cut = clustering.cut_heaps(F, sc.Partition(labels), 60)
    assert is_cut
    weights = np.bincount(partition.labels, F.vertex_dims)
    assert weights[:2].tolist() == [60, 60]
    assert set(weights[2:].tolist()) == {2}
    assert partition.labels[0] == 0  # the hub has the most links
    same, is_cut = clustering.cut_heaps(F, sc.Partition(labels), 100)
    assert not is_cut
    assert (same.labels == labels).all()
