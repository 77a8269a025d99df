"""The command line: what commands print and save, and their exit status."""

import base64
import dataclasses
import gzip
import io
import json
import re
import shlex
import sys

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.cli import main
from sheafcoarsen.cli.compilation import SCALARS
from sheafcoarsen.coarsening import growth_of
from sheafcoarsen.html_report import smooth_cochain
from tests.support.helpers import assert_residual
from tests.support.meshes import CUBE, icosphere
from tests.unit.html_report.conftest import Page

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


def test_coarsen_prints_sizes_losses_and_times(graph_file, run):
    command = ("coarsen", graph_file, "--clusters", 5, "--rank", 2)
    brief, out = run(*command).out, run(*command, "-v").out
    assert "retained crossing" not in brief
    assert brief.splitlines()[:2] == out.splitlines()[:2]
    assert "fine    34 vertices (stalks 1 .. 1), 78 edges, dim C^0 34" in out
    assert "coarse  5 vertices (stalks 2 .. 2)" in out
    words = "truncation loss", "realization loss", "retained crossing", "first discarded eigenvalue"
    assert all(word in out for word in words)
    assert re.search(r"read \S+ s, select \S+ s, local modes \S+ s, coarse maps \d+\.\d+ s", out)
    total = float(re.search(r"its energy was (\S+),", out)[1])
    line = r"^ +(\S+)  (?:retained|discarded|internal|crossing) (?:internal|crossing|coupling)"
    parts = [float(value) for value in re.findall(line, out, re.MULTILINE)]
    assert len(parts) == 6
    assert re.search(r"^ +0  internal coupling", out, re.MULTILINE)  # rounding is not printed
    assert abs(sum(parts) - total) < 1e-3 * sum(map(abs, parts))  # four digits are printed
    assert total > 0


def test_every_option_of_coarsen_is_that_of_the_library(pose_file, tmp_path, run):
    F, out, found = sc.read_g2o(pose_file), tmp_path / "c.npz", []
    for words, selection, reduction in (
        ("", {}, {}),
        ("--weights graph", {"weights": "graph"}, {}),
        ("--weights sheaf", {"weights": "sheaf"}, {}),
        ("--method matching", {"method": "matching"}, {}),
        ("--seed 3", {"seed": 3}, {}),
        ("--local-operator principal", {}, {"local_operator": "principal"}),
        ("-r kernel", {}, {"rank": sc.ranks.kernel()}),
        ("-r budget:9", {}, {"rank": sc.ranks.budget(9)}),
    ):
        run("coarsen", pose_file, "-k", 4, "-r", 3, "-o", out, *words.split())
        expected = sc.coarsen(F, sc.select(F, 4, **selection), **{"rank": 3, **reduction})
        C = sc.load(out)
        np.testing.assert_array_equal(C.partition.labels, expected.partition.labels)
        assert C.sheaf.equals(expected.sheaf)
        found.append(C.sheaf)
    assert not any(sheaf.equals(found[0]) for sheaf in found[2:])
    said = run("coarsen", pose_file, "-k", 4, "-r", "budget:1").err
    assert "discards modes of eigenvalue 0 in 4 of 4 clusters" in said


def test_signed_graphs_require_the_signed_option(tmp_path, run):
    path, out = tmp_path / "signed.txt", tmp_path / "out.npz"
    path.write_text("0 1\n1 2 -4\n2 0\n")
    coarsen = ("coarsen", path, "--clusters", 3, "--rank", 1, "--out", out)
    for command in (("info", path), coarsen):
        assert "--signed" in run(*command, status=2).err
        assert "3 vertices" in run(*command, "--signed").out
    assert sc.load(out).fine.equals(sc.read_graph(path, signed=True))
    assert "--signed is for graphs" in run("info", out, "--signed", status=2).err


def test_saved_coarsening_passes_verify_and_is_coarsened_from_its_coarse_sheaf(
    pose_file, tmp_path, run
):
    options = ("--clusters", 8, "--rank", 3)
    run("coarsen", pose_file, *options, "--out", tmp_path / "c.npz")
    C = sc.load(tmp_path / "c.npz")
    assert (C.sheaf.n_vertices, C.fine.n_vertices) == (8, 20)
    np.testing.assert_array_equal(C.ranks, 3)
    (tmp_path / "c.npz").rename(tmp_path / "c")  # recognized by its content
    for given in ((tmp_path / "c",), (pose_file, *options)):
        said = run("verify", *given).out
        assert "20 -> 8 vertices" in said
        assert "that apply hold" in said
    second = tmp_path / "2.npz"
    run("coarsen", tmp_path / "c", "--clusters", 3, "--rank", 2, "--out", second)
    assert sc.load(second).fine.equals(C.sheaf)


def test_split_multiplets_are_printed_as_a_note_and_counted(tmp_path, run):
    path = tmp_path / "triangles.txt"
    path.write_text("0 1\n1 2\n0 2\n3 4\n4 5\n3 5\n")  # eigenvalues 0, 3, 3 twice
    for rank, tied in ((1, 0), (2, 2)):
        command = ("coarsen", path, "-k", 2, "-r", rank)
        assert json.loads(run(*command, "--json").out)["tied_clusters"] == tied
        said = run(*command)
        note = f"note    the cut splits a multiple eigenvalue in {tied} of 2 clusters"
        assert (note in said.out) == (tied > 0)
        assert "sections may be lost" not in said.out
        assert not said.err
    path.write_text("0 1\n2 3\n")
    said = run("coarsen", path, "-k", 1, "-r", 1)
    assert "not unique; global sections may be lost: take --rank kernel" in said.out


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_bars_are_shown_only_on_a_terminal(terminal, graph_file, run, monkeypatch):
    for options, shown in (([], terminal), (["-q"], False)):
        monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
        said = run("coarsen", graph_file, "-k", 5, "-r", 2, *options).err
        assert ("local modes" in said) == shown


def test_vertices_option_makes_sparse_integers_indices(tmp_path, run):
    path = tmp_path / "sparse.txt"
    path.write_text("5 2\n99 5\n")
    said = run("info", path, "--vertices", 120, "--dim", 2)
    assert "120 vertices (stalks 2 .. 2), 2 edges" in said.out
    assert not said.err


def test_modes_are_saved_with_the_names_of_the_vertices(tmp_path, run):
    path, out = tmp_path / "camps.csv", tmp_path / "modes.npz"
    path.write_text("ann,bob,1\nbob,cy,-2\n")
    run("modes", path, "--signed", "-k", 1, "-o", out)
    with np.load(out) as saved:
        assert saved["vertex_labels"].tolist() == ["ann", "bob", "cy"]
        camps = np.sign(saved["vectors"][:, 0])
    assert (camps * camps[0]).tolist() == [1, 1, -1]


@pytest.fixture
def grid_file(tmp_path):
    """Return a file of a graph whose modes depend on the seed."""
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 41))
    nx.write_edgelist(grid, tmp_path / "grid.edges", data=False)
    return tmp_path / "grid.edges"


def test_modes_are_printed_and_saved(grid_file, tmp_path, run):
    out, F = tmp_path / "modes.npz", sc.read_graph(grid_file)
    said = run("modes", grid_file, "-k", 3, "--seed", 3, "-o", out).out
    expected = sc.eigenmodes(F, 3, seed=3)
    assert all(f"{value:.8g}  residual" in said for value in expected.values[1:])
    assert f"saved   {out}" in said
    with np.load(out) as saved:
        np.testing.assert_array_equal(saved["values"], expected.values)
        np.testing.assert_array_equal(saved["vectors"], expected.vectors)
    values = json.loads(run("modes", grid_file, "-k", 3, "--normalize", "--json").out)["values"]
    assert values == sc.eigenmodes(sc.normalize(F), 3).values.tolist()


@pytest.mark.usefixtures("without_drawing")
def test_levels_are_printed_and_saved(grid_file, tmp_path, run):
    out, page = tmp_path / "levels.npz", tmp_path / "levels.html"
    command = ("levels", grid_file, "--dim", 2, "-o", out)
    assert "1230" in run(*command, "-r", 3, "--report", page).out
    assert "<h1>grid.edges: 1,230 " in page.read_text(encoding="utf-8")
    H = sc.load(out)
    assert (len(H), H[0].ranks.max()) == (2, 3)
    run(*command, "--seed", 3)
    H = sc.load(out)
    assert H[0].ranks.max() == 2
    expected = sc.coarsen_levels(H.fine, rank=2, seed=3)
    np.testing.assert_array_equal(H[0].partition.labels, expected[0].partition.labels)


def test_eliminate_prints_sizes_and_saves_the_result(network, tmp_path, run):
    keep, out = tmp_path / "keep.txt", tmp_path / "left.npz"
    keep.write_text("00  # the feeder\n5\n")
    said = run("eliminate", network, "--keep", keep, "--out", out).out
    assert "left    2 vertices" in said
    assert "        vertices 0, 5\n" in said
    assert "eliminated: 4 in chains" in said
    assert f"saved   {out}" in said
    assert "note" not in said
    assert sc.load(out).kept.tolist() == [0, 5]
    assert "fact-9" in run("verify", out).out
    assert "Elimination(6 -> 2 vertices" in run("info", out).out
    said = run("eliminate", network).out  # a whole path, whose constants nothing fixes
    assert "note    values on the vertices left do not determine" in said
    sc.save(network, sc.load(network).with_labels(list("abcdef")))
    keep.write_text("b d")
    assert "        vertices b, d\n" in run("eliminate", network, "--keep", keep).out


def test_info_and_verify_accept_a_saved_hierarchy(two_levels, run):
    path, H = two_levels
    assert "Hierarchy: 2 levels; stopped because `n_levels` = 2" in run("info", path).out
    assert run("verify", path).out.count("that apply hold") == 2
    said = run("verify", path, "--clusters", 2, "--rank", 1, status=2).err
    assert "already holds a coarsening" in said
    # goes on from the coarsest sheaf
    assert "fine    4 vertices" in run("coarsen", path, "--clusters", 2, "--rank", 1).out
    sc.save(path, sc.Hierarchy(H.fine, ()))
    assert "does not hold a coarsening" in run("verify", path, status=2).err


def test_exit_status_is_1_if_a_check_of_the_report_failed(pose_file, tmp_path, run, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.cli.input_output.write_report", lambda *given: False)
    command = ("coarsen", pose_file, "-k", 4, "-r", 3, "--report", tmp_path / "c.html")
    assert "c.html: a check FAILED" in run(*command, status=1).out


@pytest.mark.parametrize("damaged", [0, 1])
def test_verify_exit_status_is_1_if_any_level_is_damaged(two_levels, run, damaged):
    path, H = two_levels
    levels = [H[0], H[1]]
    R = levels[damaged].prolongation * (1 + 1e-6)
    levels[damaged] = dataclasses.replace(levels[damaged], prolongation=R)
    sc.save(path, dataclasses.replace(H, levels=tuple(levels)))
    said = run("verify", path, status=1).out
    assert said.count("that apply hold") == 1
    assert "FAILED" in said


def test_info_describes_sheaves_and_coarsenings(graph_file, pose_file, tmp_path, run):
    for line, landmarks in (("", ""), ("EDGE_SE2_XY 3 99 1 2 1 0 1\n", ", 1 landmark, 1 sighting")):
        with open(pose_file, "a") as stream:
            stream.write(line)
        graph = f"PoseGraph(SE(2), n_vertices=20, n_edges=21{landmarks}, without poses)\n"
        expected = f"{graph}sheaf   20 vertices (stalks 2 .. 2), 21 edges, dim C^0 40"
        assert run("info", pose_file).out.startswith(expected)
    rotations = tmp_path / "rotations.g2o"  # nothing is known of the translation
    rotations.write_text("EDGE_SE2 0 1 0 0 1 0 0 0 0 0 4\n")
    assert run("info", rotations).out.startswith("sheaf   2 vertices")
    assert "1 component, 0 loops" in run("info", graph_file, "--dim", 2).out
    out = tmp_path / "c.npz"
    run("coarsen", graph_file, "--clusters", 4, "--rank", 3, "--out", out)
    assert "Coarsening(internal modes: 34 -> 4 vertices" in run("info", out).out
    sc.save(out, sc.Partition([0, 1, 0]))
    assert "Partition(n_vertices=3, n_clusters=2" in run("info", out).out


def test_meshes_are_described(tmp_path, run):
    path = tmp_path / "ring.off"
    quads = [f"4 {k} {(k + 1) % 5} {5 + (k + 1) % 5} {5 + k}" for k in range(5)]
    places = [f"{np.cos(k)} {np.sin(k)} {z}" for z in (0, 1) for k in range(5)]
    path.write_text("\n".join(["OFF\n10 5 0", *places, *quads]) + "\n")
    counts = {"vertices": 10, "edges": 15, "faces": 5, "corners": 4, "components": 1}
    more = {"kind": "mesh", "boundary_edges": 10, "euler_characteristic": 0}
    assert json.loads(run("info", path, "--json").out) == counts | more
    assert "boundary edges        10\n" in run("info", path).out
    assert "has its own stalk dimension: omit it" in run("info", path, "--dim", 2, status=2).err


@pytest.mark.parametrize("corners", [3, 4])
def test_a_mesh_is_read_as_its_tangent_bundle(corners, tmp_path, run):
    """With cotan weights for triangles, and areas as masses; other meshes have neither."""
    points, faces = icosphere(1) if corners == 3 else CUBE
    path, out = tmp_path / "m.obj", tmp_path / "modes.npz"
    rows = [f"v {x!r} {y!r} {z!r}" for x, y, z in points.tolist()]
    path.write_text("\n".join(rows + ["f " + " ".join(map(str, f)) for f in faces + 1]) + "\n")
    F = sc.gallery.tangent_bundle(points, faces, weights="cotan" if corners == 3 else "uniform")
    areas = sc.gallery.vertex_areas(points, faces) if corners == 3 else None
    plain, unit = sc.eigenmodes(F, 3, mass=areas), sc.eigenmodes(sc.normalize(F), 3)
    for option, E, has_areas in (([], plain, corners == 3), (["--normalize"], unit, False)):
        said = run("modes", path, "-k", 3, "-o", out, *option).out
        assert ("the areas of the vertices" in said) == has_areas
        with np.load(out) as saved:
            assert_residual(saved["values"] - E.values, E.values, n=F.dim_c0)
    pages = tmp_path / "page.html", tmp_path / "same.html"
    coarsen, eliminate = ("coarsen", "-k", 2, "-r", 2), ("eliminate",)
    for (name, *options), surface in ((coarsen, {"faces": faces}), (eliminate, {})):
        run(name, path, *options, "-o", out, "--report", pages[0])
        assert sc.load(out).fine.equals(F)
        sc.report(sc.load(out), pages[1], pos=points, **surface)
        pictures = [re.search('base64,([^"]*)', page.read_text())[1] for page in pages]
        first, same = (re.findall(b' d="(M [^"]*)"', base64.b64decode(data)) for data in pictures)
        assert first
        assert first == same


def test_compile_selects_scalar_types_and_rare_kernels(monkeypatch, run):
    def compiled(scalars, *, rare, progress):
        asked.append((scalars, rare))

    asked = []
    monkeypatch.setattr("sheafcoarsen.cli.commands.compile_kernels", compiled)
    run("compile")
    said = run("compile", "--all").out
    assert asked == [(("float64",), False), (SCALARS, True)]
    assert "compiled for float64, float32, complex128, complex64 in " in said


def test_demo_prints_consistent_numbers(run):
    out = run("demo").out
    assert "34 members" in out
    members = [list(map(int, re.findall(r"\d+", line))) for line in re.findall("cluster .*", out)]
    assert sum(of for _, of, *_ in members) == 34
    assert all(of == hi + officer for _, of, hi, officer in members)
    karate = nx.karate_club_graph()
    labels = sc.select(sc.CellularSheaf.constant(karate), 5, weights="sheaf").labels
    officers = [karate.nodes[v]["club"] == "Officer" for v in karate]
    assert [row[-1] for row in members] == np.bincount(labels, officers).tolist()
    held, applied = re.search(r"checked here: (\d+) of (\d+) statements", out).groups()
    assert held == applied != "0"
    rows = [re.findall(r"\d\.\d{3}", line) for line in out.splitlines()]
    club, coarse = (np.array(row, float) for row in rows if row)
    assert (coarse >= club).all()
    assert len(club) == 4
    assert max(map(len, out.splitlines())) <= 100


def with_report(graph_file, page, *options):
    return ("coarsen", graph_file, "--clusters", 4, "--rank", 2, "--report", page, *options)


@pytest.mark.usefixtures("without_drawing")
def test_the_report_has_times_and_a_command_that_reproduces_the_coarsening(tmp_path, run):
    path, saved, out = (tmp_path / name for name in ("a signed graph.txt", "c.npz", "r.html"))
    edges = nx.karate_club_graph().edges
    path.write_text("".join(f"{u} {v} {-1 if u % 3 == 0 else 2}\n" for u, v in edges))
    options = ("--dim", 2, "--seed", 3, "--signed", "--vertices", 36, "--out", saved)
    words = with_report(path, out, *options)
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
    said = run(*with_report(graph_file, out), status=2).err
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


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize("quiet", [False, True])
def test_json_output_is_one_object_and_quiet_output_is_empty(quiet, graph_file, tmp_path, run):
    out, page = str(tmp_path / "c.npz"), str(tmp_path / "c.html")

    def printed(*arguments):
        said = run(*arguments, *["-q"] * quiet)
        assert not said.err
        assert bool(said.out) != quiet
        return None if quiet else json.loads(said.out)

    made = printed("coarsen", graph_file, "-k", "5", "-r", "2", "-o", out, "--json")
    about = [printed("info", name, "--json") for name in (graph_file, out)]
    verified = printed("verify", out, "--json")
    C = sc.load(out)
    command = ["coarsen", graph_file, "-k", "5", "-r", "2", "--report", page]
    account = printed(*command, "--json", "-v")
    left = printed("eliminate", graph_file, "-o", out, "--json")
    modes = printed("modes", graph_file, "-k", "3", "--json")
    levels = printed("levels", graph_file, "--report", page, "--json")
    sc.save(tmp_path / "p.npz", C.partition)
    parts = printed("info", str(tmp_path / "p.npz"), "--json")
    if quiet:
        return
    assert "passed" not in made  # nothing was verified
    assert (made["out"], made["report"]) == (out, None)
    ledger = sc.energy_ledger(C, smooth_cochain(C.fine))
    assert account["ledger"] == ledger.lines
    assert account["fine"] == made["fine"]
    assert account["passed"] is True
    assert "ledger" not in made
    K = sc.eliminate(C.fine)
    assert (left["kind"], left["out"]) == ("Elimination", out)
    assert left["coarse"]["vertices"] == K.sheaf.n_vertices
    assert modes["values"] == sc.eigenmodes(C.fine, 3).values.tolist()
    assert len(modes["residuals"]) == 3
    assert [F["vertices"] for F in levels["sheaves"]] == [34]
    assert levels["passed"] is True
    assert list(made["seconds"]) == ["read", "select", "local modes", "coarse maps", "save"]
    assert about[0] == made["fine"] == about[1]["fine"]
    assert made["coarse"] == about[1]["coarse"]
    sizes = {"vertices": 5, "dim_c0": 10, "stalks": [2], "dtype": "float64", "components": 1}
    assert sizes.items() <= made["coarse"].items()
    assert parts == {"kind": "Partition", "vertices": 34, "clusters": 5}
    (level,) = verified["levels"]
    assert verified["passed"]
    assert level["checks"][0]["ratio"] == sc.verify(C).checks[0].ratio


def test_json_output_has_null_for_infinite_numbers(graph_file, run, monkeypatch):
    failed = sc.verify(sc.coarsen(sc.CellularSheaf.constant([[0, 1]]), sc.Partition([0, 1]), 1))
    wrong = dataclasses.replace(failed.checks[0], ratio=np.inf, passed=False)
    monkeypatch.setattr("sheafcoarsen.verify", lambda C: sc.Verification((wrong,)))
    found = json.loads(run("verify", graph_file, "-k", 5, "-r", 2, "--json", status=1).out)
    assert found["passed"] is False
    assert found["levels"][0]["checks"][0]["ratio"] is None


STDIN = {
    ".txt": b"a b 2\nb c\n",
    ".mtx": b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n",
    ".g2o": b"# a pose graph\nEDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\nEDGE_SE2 1 2 1 0 0 1 0 0 1 0 1\n",
    ".gml": b'Creator "me"\ngraph [\n node [ id 0 ] node [ id 1 ] node [ id 2 ]\n'
    b" edge [ source 0 target 1 ] edge [ source 1 target 2 ]\n]\n",
    ".graphml": "\n".join(nx.generate_graphml(nx.path_graph(3))).encode(),
    ".off": b"OFF\n3 1 0\n0 0 0\n1 0 0\n1 1 0\n3 0 1 2\n",
    ".obj": b"# by hand\nv 0 0 0\nv 1 0 0\nv 1 1 0\nf 1 2 3\n",
    ".ply": b"ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
    b"property float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
    b"0 0 0\n1 0 0\n1 1 0\n3 0 1 2\n",
}


def standard_input(data):
    return io.TextIOWrapper(io.BytesIO(data))


@pytest.mark.parametrize("ending", [*STDIN, ".npz"])
def test_standard_input_is_read_like_a_file(ending, tmp_path, run, monkeypatch):
    path = tmp_path / f"in{ending}"
    if ending == ".npz":
        sc.save(path, sc.CellularSheaf.constant(nx.path_graph(3)))
    else:
        path.write_bytes(STDIN[ending])
    expected = run("info", path, "--json").out
    assert json.loads(expected)["vertices"] == 3
    for data in (path.read_bytes(), gzip.compress(path.read_bytes())):
        monkeypatch.setattr("sys.stdin", standard_input(data))
        assert run("info", "-", "--json").out == expected


def test_error_messages_name_standard_input(run, monkeypatch):
    for data, status in ((b"4 5\n", 0), (b"4 5\n5 6 x\n", 2), (gzip.compress(b"0 1\n")[:12], 2)):
        monkeypatch.setattr("sys.stdin", standard_input(data))
        assert run("info", "-", status=status).err.startswith("sheafcoarsen: standard input:")


def test_a_reader_that_exits_ends_a_command_on_standard_input(run, capsys, monkeypatch):
    def printed(args):
        raise BrokenPipeError

    monkeypatch.setattr("sheafcoarsen.cli.commands._info", printed)
    monkeypatch.setattr("sys.stdin", standard_input(b"4 5\n"))
    monkeypatch.setattr("sys.stdout", sys.stdout)  # which `main` replaces
    assert run("info", "-").err == ""
    sys.stdout.close()
    monkeypatch.undo()
    assert capsys.readouterr().err == ""


POSES = ("sphere2500", "torus3d", "parking_garage", "intel", "csail", "m3500")
REAL = [
    *((f"g2o_{name}.g2o.gz", 40, 4) for name in POSES),
    ("g2o_city10000.g2o.gz", 250, 4),
    ("graph_minnesota.mtx.gz", 66, 4),
    ("graph_wing.graph.gz", 1500, 6),
]


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "clusters", "rank"), REAL, ids=[name for name, *_ in REAL])
def test_real_data_coarsens_and_verifies(name, clusters, rank, data_folder, tmp_path, run):
    out = tmp_path / "c.npz"
    run("coarsen", data_folder / name, "--clusters", clusters, "--rank", rank, "--out", out)
    run("verify", out)
