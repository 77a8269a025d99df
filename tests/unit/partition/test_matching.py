"""Matching along heavy links, level upon level."""

import networkx as nx
import numpy as np

from sheafcoarsen._kernels import partition as kernels
from sheafcoarsen.partition import matching
from sheafcoarsen.partition.links import links_of
from sheafcoarsen.partition.matching import match_levels


def test_heavy_links_are_matched_first():
    G = nx.path_graph(8)
    for u in (0, 2, 4, 6):
        G.edges[u, u + 1]["weight"] = 5.0
    labels = match_levels(links_of(G, "graph"), 4, np.random.default_rng(0))
    assert (labels[0::2] == labels[1::2]).all()
    assert len(np.unique(labels)) == 4


def test_a_group_takes_what_it_has_room_for():
    """A star: pairs alone would stall at once."""
    links = links_of(nx.star_graph(20), "graph")
    groups = np.empty(21, dtype=np.int32)
    count = kernels.match(links, np.arange(21), 1, 7.0, groups)
    assert np.bincount(groups).max() == 7
    assert count == 15


def test_levels_stop_where_groups_are_full():
    labels = match_levels(links_of(nx.star_graph(60), "graph"), 10, np.random.default_rng(1))
    assert 10 < len(np.unique(labels)) < 61


def test_what_was_matched_is_refined(monkeypatch):
    G = nx.random_geometric_graph(1500, 0.05, seed=13)
    links, edges, cuts = links_of(G, "graph"), np.array(G.edges), []
    for refine in (lambda links, labels, n_clusters: None, matching.refine):
        monkeypatch.setattr(matching, "refine", refine)
        labels = match_levels(links, 60, np.random.default_rng(0))
        cuts.append((labels[edges[:, 0]] != labels[edges[:, 1]]).sum())
    assert cuts[1] < 0.97 * cuts[0]
