"""A coarsening for which all statements hold."""

import networkx as nx
import pytest

import sheafcoarsen as sc


@pytest.fixture(scope="module")
def C():
    graph = nx.random_geometric_graph(60, 0.3, seed=7)
    F = sc.CellularSheaf.random(graph, 3, 2, seed=11)
    return sc.coarsen(F, sc.select(F, 5), 4)
