"""Commands, and files that they read."""

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.cli import main


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
    rng = np.random.default_rng(7)
    lines = [
        f"EDGE_SE2 {i} {j} 1 0 {rng.uniform(-3, 3):.6f} 1 0 0 1 0 {rng.uniform(1, 9):.6f}"
        for i, j in [*((i, i + 1) for i in range(19)), (19, 0), (3, 12)]
    ]
    path = tmp_path / "loop.g2o"
    path.write_text("\n".join(lines) + "\n")
    return path


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
