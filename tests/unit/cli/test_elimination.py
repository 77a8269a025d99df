"""``sheafcoarsen eliminate``."""

import networkx as nx
import pytest

import sheafcoarsen as sc
from sheafcoarsen.cli import main

NAMED = nx.relabel_nodes(nx.path_graph(5), dict(enumerate("abcde")))


@pytest.fixture
def network(tmp_path):
    F = sc.CellularSheaf.constant([[k, k + 1] for k in range(5)])
    sc.save(tmp_path / "net.npz", F)
    return tmp_path / "net.npz"


def test_eliminate_prints_sizes_and_saves_the_result(network, tmp_path, capsys):
    keep, out = tmp_path / "keep.txt", tmp_path / "left.npz"
    keep.write_text("0  # the feeder\n5\n")
    assert main(["eliminate", str(network), "--keep", str(keep), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "left    2 vertices" in said
    assert "        vertices 0, 5\n" in said
    assert "eliminated: 4 in chains" in said
    assert f"saved   {out}" in said
    assert "note" not in said
    assert sc.load(out).kept.tolist() == [0, 5]
    assert main(["verify", str(out)]) == 0
    assert "fact-9" in capsys.readouterr().out
    assert main(["info", str(out)]) == 0
    assert "Elimination(6 -> 2 vertices" in capsys.readouterr().out


def test_eliminate_says_if_the_vertices_left_do_not_determine_the_others(network, capsys):
    assert main(["eliminate", str(network)]) == 0  # a whole path, whose constants nothing fixes
    assert "note    values on the vertices left do not determine" in capsys.readouterr().out


def test_keep_file_may_list_vertices_by_name(tmp_path, capsys):
    sc.save(tmp_path / "net.npz", sc.CellularSheaf.constant(NAMED))
    (tmp_path / "keep.txt").write_text("b d")
    arguments = ["eliminate", str(tmp_path / "net.npz"), "--keep", str(tmp_path / "keep.txt")]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "left    2 vertices" in said
    assert "        vertices b, d\n" in said
    (tmp_path / "keep.txt").write_text("b 0")
    assert main(arguments) == 2
    assert "'0' is not a vertex; vertices have names" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["6", "-1", "a", "0.5"])
def test_unknown_vertices_in_the_keep_file_print_one_line(network, tmp_path, capsys, word):
    (tmp_path / "keep.txt").write_text(f"0 {word}")
    assert main(["eliminate", str(network), "--keep", str(tmp_path / "keep.txt")]) == 2
    said = capsys.readouterr().err
    assert f"{word!r} is not a vertex; vertices have indices from 0 to 5" in said
    assert said.count("\n") == 1


def test_a_missing_keep_file_prints_what_the_option_takes(network, capsys):
    assert main(["eliminate", str(network), "--keep", "1,5"]) == 2
    assert "--keep: there is no file '1,5'; it must be a text file" in capsys.readouterr().err


def test_max_neighbors_above_two_requires_a_connection(tmp_path, capsys):
    sc.save(tmp_path / "star.npz", sc.CellularSheaf.random(nx.star_graph(4), 2, 2, seed=3))
    arguments = ["eliminate", str(tmp_path / "star.npz"), "--max-neighbors", "3"]
    assert main(arguments) == 2
    assert "requires a connection" in capsys.readouterr().err
