"""``sheafcoarsen eliminate``."""

import networkx as nx

import sheafcoarsen as sc


def test_eliminate_prints_sizes_and_saves_the_result(network, tmp_path, run):
    keep, out = tmp_path / "keep.txt", tmp_path / "left.npz"
    keep.write_text("0  # the feeder\n5\n")
    said = run("eliminate", network, "--keep", keep, "--out", out).out
    assert "left    2 vertices" in said
    assert "        vertices 0, 5\n" in said
    assert "eliminated: 4 in chains" in said
    assert f"saved   {out}" in said
    assert "note" not in said
    assert sc.load(out).kept.tolist() == [0, 5]
    assert "fact-9" in run("verify", out).out
    assert "Elimination(6 -> 2 vertices" in run("info", out).out


def test_eliminate_says_if_the_vertices_left_do_not_determine_the_others(network, run):
    said = run("eliminate", network).out  # a whole path, whose constants nothing fixes
    assert "note    values on the vertices left do not determine" in said


def test_keep_file_may_list_vertices_by_name(tmp_path, run):
    named = nx.relabel_nodes(nx.path_graph(5), dict(enumerate("abcde")))
    sc.save(tmp_path / "net.npz", sc.CellularSheaf.constant(named))
    (tmp_path / "keep.txt").write_text("b d")
    said = run("eliminate", tmp_path / "net.npz", "--keep", tmp_path / "keep.txt").out
    assert "left    2 vertices" in said
    assert "        vertices b, d\n" in said
