"""Commands, and files that they read."""

import networkx as nx
import pytest

import sheafcoarsen as sc
from sheafcoarsen.cli import main
from tests.unit.synchronization.conftest import pose_graph, ring_with_chords


@pytest.fixture
def run(capsys):
    """Return a function that runs a command, checks its status, and returns what it prints."""

    def run(*words, status=0):
        capsys.readouterr()
        assert main([str(word) for word in words]) == status
        return capsys.readouterr()

    return run


@pytest.fixture
def pose_file(tmp_path):
    G, _ = pose_graph(2, ring_with_chords(20, 1))
    sc.write_g2o(tmp_path / "loop.g2o", G)
    return tmp_path / "loop.g2o"


@pytest.fixture
def network(tmp_path):
    """Return a file with a path of six vertices."""
    path = tmp_path / "net.npz"
    sc.save(path, sc.CellularSheaf.constant([[k, k + 1] for k in range(5)]))
    return path


@pytest.fixture
def two_levels(tmp_path):
    """Return a file with a hierarchy, and the hierarchy."""
    path = tmp_path / "h.npz"
    H = sc.coarsen_levels(sc.CellularSheaf.constant(nx.grid_2d_graph(8, 8)), 4, 2, rank=3)
    sc.save(path, H)
    return path, H
