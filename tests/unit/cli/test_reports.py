"""``--report``: pages that commands write."""

import re
import shlex

import networkx as nx
import pytest

import sheafcoarsen as sc
from sheafcoarsen.cli import main
from sheafcoarsen.coarsening import growth_of
from tests.unit.html_report.conftest import Page

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def coarsen(graph_file, page, *options):
    return ("coarsen", graph_file, "--clusters", 4, "--rank", 2, "--report", page, *options)


@pytest.mark.usefixtures("without_drawing")
def test_the_report_has_times_and_a_command_that_reproduces_the_coarsening(tmp_path, run):
    path, saved, out = (tmp_path / name for name in ("a signed graph.txt", "c.npz", "r.html"))
    edges = nx.karate_club_graph().edges
    path.write_text("".join(f"{u} {v} {-1 if u % 3 == 0 else 2}\n" for u, v in edges))
    options = ("--dim", 2, "--seed", 3, "--signed", "--vertices", 36, "--out", saved)
    words = coarsen(path, out, *options)
    printed = run(*words).out
    assert f"report  {out}\n" in printed
    assert re.search(r"report \d+\.\d+ s", printed)
    first = sc.load(saved)
    texts = Page(out.read_text(encoding="utf-8")).texts
    assert {"read", "select", "local modes", "coarse maps"} <= set(texts)
    assert "a signed graph.txt: 36 → 4 vertices" in texts
    [command] = [text for text in texts if text.startswith("sheafcoarsen coarsen")]
    saved.unlink()
    assert main(shlex.split(command)[1:]) == 0
    again = sc.load(saved)
    assert again.sheaf.equals(first.sheaf)
    assert again.fine.n_vertices == 36
    assert command == shlex.join(map(str, ["sheafcoarsen", *words]))


def test_coarsen_command_stops_early_without_matplotlib(graph_file, tmp_path, run, monkeypatch):
    def missing():
        raise ImportError('plots need matplotlib: pip install "sheafcoarsen[plot]"')

    out = tmp_path / "r.html"
    out.write_text("precious")
    monkeypatch.setattr("sheafcoarsen._support.checks.check_matplotlib", missing)
    said = run(*coarsen(graph_file, out), status=2).err
    assert said == 'sheafcoarsen: plots need matplotlib: pip install "sheafcoarsen[plot]"\n'
    assert out.read_text() == "precious"


def test_a_coarse_laplacian_with_more_entries_is_noted(tmp_path, run):
    graph = nx.barabasi_albert_graph(120, 2, seed=3)
    F = sc.CellularSheaf.constant(graph)
    full = sc.coarsen(F, sc.select(F, 12), 5)
    remark = growth_of(full)
    sc.report(full, tmp_path / "r.html")
    assert remark in Page((tmp_path / "r.html").read_text(encoding="utf-8")).text
    nx.write_edgelist(graph, tmp_path / "ba.edges", data=False)
    command = ("coarsen", tmp_path / "ba.edges", "--clusters", 12, "--rank")
    assert f"note    {remark}" in run(*command, 5).out
    assert "note    " not in run(*command, 1).out
