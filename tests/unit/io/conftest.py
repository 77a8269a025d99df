"""Files for the tests of readers."""

import gzip

import networkx as nx
import pytest

import sheafcoarsen as sc


def stored(folder, name, text):
    """Write text or bytes, packed if the name says so, and return the path."""
    content = text if isinstance(text, bytes | bytearray) else text.encode()
    packed = name.lower().endswith(".gz")
    (folder / name).write_bytes(gzip.compress(content) if packed else content)
    return folder / name


@pytest.fixture
def write(tmp_path):
    return lambda text, name="graph.g2o": stored(tmp_path, name, text)


@pytest.fixture
def file(tmp_path):
    F = sc.CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5)
    path = tmp_path / "c.npz"
    sc.save(path, sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2))
    return path
