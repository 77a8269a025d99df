"""Number and size of the clusters of the next level."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.sections import _global_sections, clustering


def test_the_number_of_clusters_grows_with_the_number_of_components():
    F = sc.CellularSheaf.constant(nx.path_graph(400))
    assert clustering.cluster_count(F, 1) == 10
    many, _, _ = sc.disjoint_union([F, F, sc.CellularSheaf([], [], [], vertex_dims=[1] * 30)])
    assert clustering.cluster_count(many, 1) == 31 + 21
    assert clustering.cluster_count(many, 4) == 31 + 6


def test_clusters_have_at_least_four_vertices():
    F = sc.CellularSheaf.constant(nx.path_graph(40), dim=100)
    assert clustering.cluster_count(F, 1) == 10


def test_clusters_of_meshes_match_select():
    F = sc.CellularSheaf.constant(nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 30)))
    sheaf, partition, split, is_cut = clustering.choose_clusters(F, 1)
    assert sheaf is F
    assert (split, is_cut) == (None, False)
    labels = sc.select(F, clustering.cluster_count(F, 1), "balls").labels
    assert (partition.labels == labels).all()


def test_clusters_that_are_too_large_are_shrunk(monkeypatch):
    monkeypatch.setattr(clustering, "LAST", 20)
    F = sc.CellularSheaf.constant(nx.star_graph(99), dim=2)
    labels = np.repeat([0, 1], 50)
    partition, is_cut = clustering.shrink_clusters(F, sc.Partition(labels), 60)
    assert is_cut
    weights = np.bincount(partition.labels, F.vertex_dims)
    assert weights[:2].tolist() == [60, 60]
    assert set(weights[2:].tolist()) == {2}
    assert partition.labels[0] == 0  # the hub has the highest degree
    same, is_cut = clustering.shrink_clusters(F, sc.Partition(labels), 100)
    assert not is_cut
    assert (same.labels == labels).all()


def test_shrunk_clusters_keep_the_vertices_with_most_edges_inside(monkeypatch):
    """The last two vertices of a path have many edges, but to the other cluster."""
    path, leaves = list(range(6)), list(range(6, 30))
    graph = nx.path_graph(path)
    graph.add_edges_from((v, leaf) for v in (4, 5) for leaf in leaves)
    graph.add_edges_from([(0, 2), (1, 3), (0, 3)])
    F = sc.CellularSheaf.constant(graph)
    clusters = sc.Partition(np.repeat([0, 1], [6, 24]))
    labels = clustering.shrink_clusters(F, clusters, 4)[0].labels
    assert labels[:4].tolist() == [0, 0, 0, 0]
    assert labels[4] != labels[5] != 0 != labels[4]


def test_coarsening_stops_at_the_size_of_the_last_level():
    F = sc.gallery.bundle(nx.convert_node_labels_to_integers(nx.grid_2d_graph(18, 18)), 2, seed=0)
    S = sc.global_sections(F)
    assert S.levels[0] == 648
    assert len(S.levels) == 2
    assert S.levels[1] <= clustering.LAST
    small = sc.gallery.bundle(nx.path_graph(200), 2, seed=0)
    assert sc.global_sections(small).levels == (clustering.LAST,)


@pytest.mark.parametrize("dim", [1, 3, 6])
def test_clusters_have_about_40_vertices_or_120_dimensions(dim):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(40, 40), dim=dim)
    mean = min(clustering.VERTICES, clustering.DIMENSION / dim)
    for growth in (1, 2):
        count = clustering.cluster_count(F, growth)
        assert abs(1600 / count - growth * mean) < 1
        _, partition, _, is_cut = clustering.choose_clusters(F, growth)
        assert not is_cut
        assert partition.n_clusters == count


def test_the_dimension_of_dense_decompositions_is_bounded(monkeypatch):
    monkeypatch.setattr(_global_sections, "sections_of_full_rank", lambda sheaf: None)
    monkeypatch.setattr(clustering, "LAST", 10)
    monkeypatch.setattr(clustering, "LARGEST_LAST", 19)
    F = sc.CellularSheaf.random(nx.random_regular_graph(4, 20, seed=1), 1, 1, seed=1)
    monkeypatch.setattr(clustering, "cluster_count", lambda sheaf, growth: sheaf.n_vertices)
    with pytest.raises(np.linalg.LinAlgError, match="stalled at dimension 20, .* to dimension 19"):
        sc.global_sections(F)
    monkeypatch.setattr(clustering, "LARGEST_LAST", 20)
    assert sc.global_sections(F).h0 == 0


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_dense_decompositions_have_at_most_6000_dimensions(monkeypatch):
    monkeypatch.setattr(_global_sections, "sections_of_full_rank", lambda sheaf: None)
    F = sc.CellularSheaf.random(nx.random_regular_graph(4, 6002, seed=1), 1, 1, seed=1)
    monkeypatch.setattr(clustering, "cluster_count", lambda sheaf, growth: sheaf.n_vertices)
    with pytest.raises(
        np.linalg.LinAlgError, match="stalled at dimension 6002, .* to dimension 6000"
    ):
        sc.global_sections(F)
