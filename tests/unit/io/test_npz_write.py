"""What is written: labels of every kind, and no array that the documentation does not name."""

import io
import pathlib
import re
import zipfile

import networkx as nx
import pytest

import sheafcoarsen as sc
from sheafcoarsen.io.npz import VERSION
from tests.unit.io.test_npz import saved

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_labels_of_every_kind(tmp_path):
    graph = nx.Graph([((0, "a"), 3), (3, "three"), ("three", (1.5, (True, None)))])
    F = sc.CellularSheaf.constant(graph)
    sc.save(tmp_path / "f.npz", F)
    assert sc.load(tmp_path / "f.npz").vertex_labels == tuple(graph.nodes)


def test_labels_that_cannot_be_saved(tmp_path):
    F = sc.CellularSheaf.constant(nx.Graph([(frozenset({1}), 2)]))
    with pytest.raises(TypeError, match=r"vertex label frozenset.*cannot be saved.*with_labels"):
        sc.save(tmp_path / "f.npz", F)
    assert list(tmp_path.iterdir()) == []


def test_the_documentation_names_every_array():
    text = (pathlib.Path(__file__).parents[3] / "docs" / "file_format.md").read_text(
        encoding="utf-8"
    )
    assert f"describes version {VERSION}" in text
    for kind in ("sheaf", "partition", "coarsening", "compressed", "basis", "hierarchy"):
        with zipfile.ZipFile(io.BytesIO(saved(kind)[1])) as archive:
            for name in archive.namelist():
                own = re.sub(
                    r"^(fine|sheaf|partition|sheaves\.\d|levels\.\d)\.",
                    "",
                    name.removesuffix(".npy"),
                )
                assert f"`{own.removeprefix('partition.')}`" in text
