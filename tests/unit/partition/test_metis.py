"""METIS by pymetis, recent and old, and without it."""

import sys
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest

from sheafcoarsen.partition import select
from tests.unit.partition.test_selection import assert_guarantees


def fake_metis(labels, calls, **more):
    def part_graph(n_clusters, **options):
        calls.append((n_clusters, options))
        return 0, labels

    return SimpleNamespace(part_graph=part_graph, Options=lambda **options: options, **more)


@pytest.mark.parametrize("recent", [True, False])
def test_empty_and_disconnected_parts_of_metis_are_repaired(monkeypatch, recent):
    calls = []
    more = {"CSRAdjacency": lambda starts, ends: (starts, ends)} if recent else {}
    labels = [3, 0, 0, 3, 3, 0, 0, 0, 3, 3, 3, 3]  # 1 and 2 are empty, 0 and 3 in pieces
    monkeypatch.setitem(sys.modules, "pymetis", fake_metis(labels, calls, **more))
    G = nx.path_graph(12)
    G.edges[0, 1]["weight"] = 0.0
    G.edges[1, 2]["weight"] = 2.5
    partition = select(G, 4, method="metis", seed=3)
    select(G, 4, method="metis", seed=4)
    assert_guarantees(partition, 4, 12, list(G.edges))
    (n_clusters, options), (_, other) = calls
    assert n_clusters == 4
    assert ("adjacency" in options) == recent
    weights = np.asarray(options["eweights"])
    assert weights.dtype.kind == "i"
    assert weights.min() == 1
    assert weights.max() == 1000
    assert options["options"]["seed"] != other["options"]["seed"]


def test_metis_without_pymetis_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ImportError, match=r"pip install sheafcoarsen\[metis\]"):
        select(nx.path_graph(5), 2, method="metis")
