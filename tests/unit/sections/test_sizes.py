"""Clusters are of the sizes that are said, and levels end where it is said."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.sections import _global_sections, clustering


def test_levels_end_at_the_size_of_the_last():
    F = sc.gallery.bundle(nx.convert_node_labels_to_integers(nx.grid_2d_graph(18, 18)), 2, seed=0)
    S = sc.global_sections(F)
    assert S.levels[0] == 648
    assert len(S.levels) == 2
    assert S.levels[1] <= clustering.LAST
    small = sc.gallery.bundle(nx.path_graph(200), 2, seed=0)
    assert sc.global_sections(small).levels == (clustering.LAST,)


@pytest.mark.parametrize("dim", [1, 3, 6])
def test_clusters_have_about_forty_vertices_or_120_dimensions(dim):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(40, 40), dim=dim)
    mean = min(clustering.VERTICES, clustering.DIMENSION / dim)
    for growth in (1, 2):
        count = clustering.cluster_count(F, growth)
        assert abs(1600 / count - growth * mean) < 1
        choice = clustering.choose_clusters(F, growth)
        assert not choice.is_cut
        assert choice.partition.n_clusters == count


def test_what_is_decomposed_densely_is_bounded(monkeypatch):
    monkeypatch.setattr(_global_sections, "sections_of_full_rank", lambda sheaf: None)
    monkeypatch.setattr(clustering, "LAST", 10)
    monkeypatch.setattr(clustering, "LARGEST_LAST", 19)
    F = sc.CellularSheaf.random(nx.random_regular_graph(4, 20, seed=1), 1, 1, seed=1)
    monkeypatch.setattr(clustering, "cluster_count", lambda sheaf, growth: sheaf.n_vertices)
    with pytest.raises(np.linalg.LinAlgError, match="no further than dimension 20, .* up to 19"):
        sc.global_sections(F)
    monkeypatch.setattr(clustering, "LARGEST_LAST", 20)
    assert sc.global_sections(F).h0 == 0


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_six_thousand_dimensions_are_decomposed_at_most(monkeypatch):
    monkeypatch.setattr(_global_sections, "sections_of_full_rank", lambda sheaf: None)
    F = sc.CellularSheaf.random(nx.random_regular_graph(4, 6002, seed=1), 1, 1, seed=1)
    monkeypatch.setattr(clustering, "cluster_count", lambda sheaf, growth: sheaf.n_vertices)
    with pytest.raises(np.linalg.LinAlgError, match="than dimension 6002, .* up to 6000"):
        sc.global_sections(F)
