"""Files for the tests of readers."""

import functools
import gzip
import pathlib
import tempfile

import networkx as nx
import numpy as np
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


def read_or_refused(read, path, **options):
    """Return what a reader returns, or None where it raises one line that begins with the path."""
    try:
        return read(path, **options)
    except ValueError as error:
        assert type(error) is ValueError
        assert str(error).startswith(str(path))
        assert "\n" not in str(error)
        return None


@functools.cache
def saved_file(kind):
    """Return the bytes of a file that holds an object of one kind."""
    G = nx.MultiGraph([(0, "b"), ("b", 2), (2, 0), (0, 0), (2, 0)])
    F, P = sc.CellularSheaf.random(G, 2, 1, seed=5), sc.Partition([0, 0, 1])
    ring = sc.CellularSheaf.random(nx.cycle_graph(6), 2, 2, seed=5)
    halves, pairs = sc.Partition([0, 0, 0, 1, 1, 1]), sc.Partition([0, 0, 1, 1, 2, 2])
    club = sc.CellularSheaf.constant(nx.karate_club_graph())
    complete = sc.CellularSheaf.constant(nx.complete_graph(40))
    make = {
        "sheaf": lambda: F,
        "partition": lambda: P,
        "coarsening": lambda: sc.coarsen(ring, halves, 2),
        "coarsening of full rank": lambda: sc.coarsen(ring, halves, 4),
        "coarsening with loops": lambda: sc.coarsen(F, P, 2),
        "compressed": lambda: sc.coarsen(F, P, 2, compress=True),
        "basis": lambda: sc.coarsen(F, P, basis=[np.eye(4, 2), np.eye(2)]),
        "hierarchy": lambda: sc.coarsen_levels(F, partitions=[P, sc.Partition([0, 0])], rank=2),
        "hierarchy of two levels": lambda: sc.coarsen_levels(ring, partitions=[pairs, P], rank=2),
        "elimination": lambda: sc.eliminate(club, keep=[4]),
        "sparsification": lambda: sc.sparsify(complete, 0.9),
    }
    with tempfile.TemporaryDirectory() as folder:
        sc.save(f"{folder}/file.npz", make[kind]())
        return pathlib.Path(folder, "file.npz").read_bytes()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "c.npz"
    path.write_bytes(saved_file("coarsening"))
    return path


def rewrite(path, **changes):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, value in changes.items():
        name = name.replace("__", ".")
        value = value(arrays[name]) if callable(value) else value
        if value is None:
            del arrays[name]
        else:
            arrays[name] = np.asarray(value)
    with open(path, "wb") as stream:
        np.savez(stream, **arrays)
