"""Spectral clustering: unequal and large blocks, long paths."""

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen._kernels.jit import JIT_IS_OFF
from sheafcoarsen.partition import select, spectral

# ---------------------------------------------------------------- single methods


def test_spectral_finds_unequal_cliques_that_balance_would_cut():
    G = nx.disjoint_union(nx.complete_graph(30), nx.complete_graph(5))
    G.add_edge(0, 30)
    partition = select(G, 2, method="spectral")
    assert sorted(partition.sizes.tolist()) == [5, 30]


@pytest.mark.skipif(JIT_IS_OFF, reason="a size for compiled kernels")
def test_spectral_finds_large_blocks_by_lanczos():
    sizes = [300, 400, 500]
    G = nx.stochastic_block_model(sizes, 0.002 + 0.05 * np.eye(3), seed=11)
    truth = np.repeat([0, 1, 2], sizes)
    partition = select(np.array(G.edges), 3, method="spectral")
    table = np.zeros((3, 3))
    np.add.at(table, (truth, partition.labels), 1)
    assert table.max(axis=1).sum() >= 0.98 * 1200


def test_spectral_cuts_a_long_path_evenly():
    sizes = select(nx.path_graph(3000), 4, method="spectral").sizes  # eigenvalues 1e-7 apart
    assert sizes.min() >= 500


# ---------------------------------------------------------------- arguments


def test_spectral_refuses_many_clusters_and_names_balls():
    with pytest.raises(
        ValueError, match=r'`n_clusters` must be at most 500 .* got 501; use "balls"'
    ):
        select(nx.path_graph(600), 501, method="spectral")


@pytest.mark.parametrize(("n", "called"), [(1000, 0), (1001, 1)])
def test_all_eigenvectors_of_small_components_are_computed_and_a_few_of_large_ones(
    n, called, monkeypatch
):
    calls, few = [], spectral._largest_eigenvectors
    monkeypatch.setattr(
        spectral, "_largest_eigenvectors", lambda *args: calls.append(1) or few(*args)
    )
    graph = nx.random_regular_graph(4, n, seed=1)
    assert select(graph, 3, "spectral").n_clusters == 3
    assert len(calls) == called
