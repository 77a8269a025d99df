"""One line and exit status 2 for every mistake on the command line; warnings are one line too."""

import logging
import re
import subprocess
import sys
import warnings

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist

SMALL = ("coarsen", "GRAPH", "--clusters", 2, "--rank", 1)
ELIMINATE = ("eliminate", "NETWORK", "--keep", "KEEP")
STORED = ("coarsen", "STORE", "--clusters", 2, "--rank", 1)
RANKS = ("two", "budget:", "budget:x", "kernel:3")
NOT_A_RANK = "is not a rank: use an integer, kernel or budget:N"
INDICES = "is not a vertex; vertices have indices from 0 to 5"

# words of a command, of which those in capitals are files or what a file holds, and the message
MISTAKES = [
    ((), "arguments are required: command"),
    (("fold", "x"), "invalid choice: 'fold'"),
    (("coarsen", "GRAPH"), "required: -k/--clusters, -r/--rank"),
    (("coarsen", "GRAPH", "--clusters", "three", "--rank", 1), "invalid int value: 'three'"),
    *((("coarsen", "GRAPH", "-k", 4, "-r", r), f"'{r}' {NOT_A_RANK}") for r in RANKS),
    ((*SMALL, "--dim", -2), "`dim` must be at least 0"),
    ((*SMALL, "--method", "magic"), "invalid choice: 'magic'"),
    (("coarsen", "missing.mtx", "--clusters", 2, "--rank", 1), "missing.mtx"),
    (("info", "picture.json"), "read_g2o reads .g2o, read_mesh .off, .obj and .ply, load .npz"),
    (("coarsen", "POSE", "-k", 2, "-r", 1, "--dim", 3), "has its own stalk dimension: omit it"),
    (("coarsen", "BROKEN", "-k", 2, "-r", 1, "--out", "DONE"), "broken.g2o:2: "),
    (("levels", "GRAPH", "--fast"), "arguments: --fast (see sheafcoarsen levels --help)"),
    (("verify", "GRAPH"), "does not hold a coarsening: pass --clusters and --rank"),
    (("verify", "GRAPH", "--method", "balls"), "--method requires --clusters and --rank"),
    (("verify", "GRAPH", "--rank", 1), "--clusters and --rank must be passed together"),
    (("verify", "DONE", "--clusters", 2, "--rank", 1), "already holds a coarsening"),
    (("verify", "CUT"), "cut.npz: "),
    (("info", "some.g2o", "--vertices", 50), "--vertices is for graphs"),
    # files that are written, before anything is computed or an old file is lost
    ((*SMALL, "--out", ""), "--out must name an .npz file"),
    (("modes", "GRAPH", "-k", 2, "--out", "m.csv"), "--out must name an .npz file"),
    (("levels", "GRAPH", "--out", "m.csv"), "--out must name an .npz file"),
    ((*SMALL, "--out", "nowhere/c.npz"), "no folder nowhere"),
    ((*SMALL, "--out", "DONE", "--report", "r.pdf"), "--report must name an .html file"),
    ((*SMALL, "--out", "DONE", "--report", ""), "--report must name"),
    ((*SMALL, "--out", "DONE", "--report", "nowhere/r.html"), "there is no folder"),
    (("eliminate", "NETWORK", "-o", "DONE", "--report", "r.txt"), "--report must name an .html"),
    (("synchronize", "POSE", "-o", "out.npz"), "--out must name an .g2o or .g2o.gz file"),
    (("synchronize", "POSE", "--report", "out.txt"), "--report must name an .html file"),
    (("synchronize", "POSE", "-o", "no/such/folder.g2o"), "--out"),
    # eliminate
    *(((*ELIMINATE, f"0 {v}"), f"'{v}' {INDICES}") for v in ("6", "-1", "a", "0.5")),
    (("eliminate", "NAMED", "--keep", "KEEP", "b 0"), "'0' is not a vertex; vertices have names"),
    ((*ELIMINATE[:3], "1,5"), "--keep: there is no file '1,5'; it must be a text file"),
    (("eliminate", "STAR", "--max-neighbors", 3), "requires a connection"),
    # stores
    (("verify", "STORE"), "holds a sheaf, not a coarsening"),
    (("verify", "STORE", "-k", 4, "-r", 2), "is not a file: for a store, use"),
    (("info", "STORE", "--dim", 2), "--dim applies to graphs, not to stores"),
    (("info", "FOLDER"), "there is no store"),
    (("store", "GRAPH", "STORE"), "exists: remove it"),
    (STORED, "for a store, use coarsen --store"),
    ((*STORED, "--store", "OUT", "--weights", "sheaf"), "be combined with --store: omit it"),
    ((*STORED, "--store", "OUT", "--signed"), "--signed cannot be combined with --store"),
    ((*STORED, "--store", "OUT", "--out", "x.npz"), "--out cannot be combined with --store"),
    ((*STORED, "--store", "OUT", "--dim", 2), "--dim cannot be combined with --store"),
    ((*STORED, "--store", "OUT", "-v"), "--verbose cannot be combined with --store"),
    ((*STORED, "--shards", 2), "--shards requires --store"),
    ((*STORED, "--scheduler", "tcp://127.0.0.1:1"), "--scheduler requires --store"),
    (("coarsen", "OUT", "-k", 2, "-r", 1, "--store", "OTHER"), "there is no store"),
]


@pytest.fixture
def files(graph_file, pose_file, network, tmp_path):
    """Return files by the words that name them."""
    F = sc.load(network)
    broken = "EDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\nEDGE_SE2 1 2 1 zero 0 1 0 0 1 0 1\n"
    (tmp_path / "broken.g2o").write_text(broken)
    sc.save(tmp_path / "cut.npz", sc.Partition([0, 1]))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:99])
    sc.save(tmp_path / "named.npz", F.with_labels(list("abcdef")))
    sc.save(tmp_path / "star.npz", sc.CellularSheaf.random(nx.star_graph(4), 2, 2, seed=3))
    sc.save(tmp_path / "done.npz", sc.coarsen(F, sc.Partition([0, 0, 1, 1, 2, 2]), 1))
    dist.to_store(tmp_path / "store", F)
    names = "broken.g2o cut.npz keep.txt named.npz star.npz done.npz store out other"
    paths = {name.split(".")[0].upper(): str(tmp_path / name) for name in names.split()}
    paths["FOLDER"] = str(tmp_path)
    return paths | {"GRAPH": graph_file, "POSE": str(pose_file), "NETWORK": str(network)}


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=[row[-1] for row in MISTAKES])
def test_a_mistake_prints_one_line_and_exits_with_status_2(
    words, message, files, tmp_path, run, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if "KEEP" in words:  # what the file holds comes last
        *words, held = words
        (tmp_path / "keep.txt").write_text(held)
    before = sorted(tmp_path.rglob("*"))
    said = run(*(files.get(word, word) for word in words), status=2)
    assert said.out == ""
    assert said.err.startswith("sheafcoarsen: ")
    assert message in said.err
    assert said.err.count("\n") == 1
    assert sc.load(files["DONE"]).sheaf.n_vertices == 3  # not overwritten
    assert sorted(tmp_path.rglob("*")) == before


def test_warnings_are_printed_as_single_lines(graph_file, run, monkeypatch):
    def warns(*given, **options):
        assert logging.getLogger("sheafcoarsen").isEnabledFor(logging.WARNING) == (not quiet)
        warnings.warn("take\ncare", UserWarning, stacklevel=2)
        return sc.Partition(np.arange(34) % 2)

    monkeypatch.setattr("sheafcoarsen.select", warns)
    for quiet, expected in ((False, "sheafcoarsen: take care\n"), (True, "")):
        options = ["-q"] * quiet
        assert run("coarsen", graph_file, "-k", 2, "-r", 1, *options).err == expected


def test_python_m_sheafcoarsen_runs_as_a_process(tmp_path):
    command = [sys.executable, "-m", "sheafcoarsen", "info", str(tmp_path / "none.npz")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert re.fullmatch(r"sheafcoarsen: .*none\.npz.*\n", run.stderr)


@pytest.mark.usefixtures("without_drawing")
def test_control_characters_in_files_are_escaped(tmp_path, run):
    path = tmp_path / "\x1b]0;title\x07.txt"
    path.write_text("4 5\n\x1b[2J 0 1 2 3\n")
    assert "title\\x07.txt:2: " in run("info", path, status=2).err
    path.write_text("4 5\n")
    report, out = tmp_path / "\x1b.html", tmp_path / "\x1b.npz"
    outputs = ("--report", report, "--out", out)
    said = run("coarsen", path, "--clusters", 1, "--rank", 1, *outputs)
    assert "title\\x07.txt: numbers begin with 4" in said.err
    assert "\\x1b.npz" in said.out
    assert "\\x1b.html" in said.out
    assert not {"\x1b", "\x07"} & {*said.out, *said.err, *report.read_text(encoding="utf-8")}
    assert "\x1b" not in run("eliminate", path, *outputs).out
    assert "\x9b" not in run("info", tmp_path / "\x9b.npz", status=2).err
