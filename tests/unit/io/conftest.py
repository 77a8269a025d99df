"""Files for the tests of readers."""

import gzip

import networkx as nx
import pytest

import sheafcoarsen as sc


@pytest.fixture
def write(tmp_path):
    def write(text, name="graph.g2o"):
        path = tmp_path / name
        content = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


@pytest.fixture
def file(tmp_path):
    F = sc.CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5)
    path = tmp_path / "c.npz"
    sc.save(path, sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2))
    return path
