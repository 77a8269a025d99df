"""The command line: what it prints, its exit status, one line for every mistake."""

import base64
import dataclasses
import gzip
import io
import json
import logging
import re
import subprocess
import sys
import warnings

import networkx as nx
import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.cli import main
from sheafcoarsen.cli.compilation import SCALARS
from sheafcoarsen.html_report import smooth_cochain
from tests.support.helpers import assert_residual
from tests.support.meshes import icosphere

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")


@pytest.fixture
def pose_file(tmp_path):
    rng = np.random.default_rng(7)
    lines = [
        f"EDGE_SE2 {i} {j} 1 0 {rng.uniform(-3, 3):.6f} 1 0 0 1 0 {rng.uniform(1, 9):.6f}"
        for i, j in [*((i, i + 1) for i in range(19)), (19, 0), (3, 12)]
    ]
    path = tmp_path / "loop.g2o"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_coarsen_prints_sizes_losses_and_times(graph_file, capsys):
    assert main(["coarsen", graph_file, "--clusters", "5", "--rank", "2"]) == 0
    brief = capsys.readouterr().out
    assert main(["coarsen", graph_file, "--clusters", "5", "--rank", "2", "-v"]) == 0
    out = capsys.readouterr().out
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


def test_weights_have_the_default_of_select(pose_file, tmp_path):
    out, F = str(tmp_path / "c.npz"), sc.read_g2o(pose_file)
    found = {}
    for weights in ("graph", "sheaf", None):
        option = [] if weights is None else ["--weights", weights]
        assert main(["coarsen", pose_file, "-k", "4", "-r", "2", "-o", out, *option]) == 0
        found[weights] = sc.load(out).partition.labels.tolist()
        expected = sc.select(F, 4) if weights is None else sc.select(F, 4, weights=weights)
        assert found[weights] == expected.labels.tolist()
    assert found["graph"] != found["sheaf"]


@pytest.mark.parametrize(
    ("rank", "rule"), [("2", 2), ("kernel", sc.ranks.kernel()), ("budget:7", sc.ranks.budget(7))]
)
def test_rank_option_accepts_integers_and_rules(rank, rule, graph_file, tmp_path):
    out = tmp_path / "c.npz"
    assert main(["coarsen", graph_file, "-k", "4", "-r", rank, "-o", str(out)]) == 0
    C = sc.load(out)
    assert C.partition.n_clusters == 4
    expected = sc.coarsen(C.fine, C.partition, rule)
    np.testing.assert_array_equal(C.ranks, expected.ranks)


def test_a_budget_that_discards_local_sections_is_warned_about(graph_file, capsys):
    assert main(["coarsen", graph_file, "-k", "4", "-r", "budget:1"]) == 0
    assert "discards modes of eigenvalue 0 in 3 of 4 clusters" in capsys.readouterr().err


@pytest.mark.parametrize("rank", ["two", "budget:", "budget:x", "kernel:3"])
def test_bad_ranks_are_rejected(rank, graph_file, capsys):
    assert main(["coarsen", graph_file, "-k", "4", "-r", rank]) == 2
    said = capsys.readouterr().err
    assert f"{rank!r} is not a rank: use an integer, kernel or budget:N" in said


def test_modes_are_saved_with_the_names_of_the_vertices(tmp_path):
    path, out = tmp_path / "camps.csv", tmp_path / "modes.npz"
    path.write_text("ann,bob,1\nbob,cy,-2\n")
    assert main(["modes", str(path), "--signed", "-k", "1", "-o", str(out)]) == 0
    with np.load(out) as saved:
        assert saved["vertex_labels"].tolist() == ["ann", "bob", "cy"]
        camps = np.sign(saved["vectors"][:, 0])
    assert (camps * camps[0]).tolist() == [1, 1, -1]


def test_modes_are_printed_and_saved(graph_file, tmp_path, capsys):
    out = tmp_path / "modes.npz"
    assert main(["modes", graph_file, "-k", "3", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    expected = sc.eigenmodes(sc.read_graph(graph_file), 3)
    assert all(f"{value:.8g}  residual" in said for value in expected.values[1:])
    assert f"saved   {out}" in said
    with np.load(out) as saved:
        np.testing.assert_array_equal(saved["values"], expected.values)
        assert saved["vectors"].shape == (34, 3)
    assert main(["modes", graph_file, "-k", "3", "--normalize", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["values"]
    expected = sc.eigenmodes(sc.normalize(sc.read_graph(graph_file)), 3).values
    assert values == expected.tolist()
    assert main(["modes", graph_file, "-k", "99"]) == 2


@pytest.mark.usefixtures("without_drawing")
def test_levels_are_printed_and_saved(tmp_path, capsys):
    path, out = tmp_path / "grid.edges", tmp_path / "levels.npz"
    nx.write_edgelist(
        nx.convert_node_labels_to_integers(nx.grid_2d_graph(20, 20)), path, data=False
    )
    page = tmp_path / "levels.html"
    command = ["levels", str(path), "--dim", "2", "-r", "3", "-o", str(out)]
    assert main([*command, "--report", str(page)]) == 0
    assert "<h1>grid.edges: 400 " in page.read_text(encoding="utf-8")
    H = sc.load(out)
    assert "400" in capsys.readouterr().out
    assert (len(H), H[0].ranks.max()) == (1, 3)
    assert main(["levels", str(path), "--dim", "2", "-o", str(out), "--seed", "3"]) == 0
    H = sc.load(out)
    assert H[0].ranks.max() == 2
    expected = sc.coarsen_levels(H.fine, rank=2, seed=3)
    np.testing.assert_array_equal(H[0].partition.labels, expected[0].partition.labels)


def test_modes_have_the_given_seed(tmp_path):
    path, out = str(tmp_path / "grid.edges"), str(tmp_path / "modes.npz")
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(30, 41))
    nx.write_edgelist(grid, path, data=False)
    assert main(["modes", path, "-k", "2", "--seed", "3", "-o", out]) == 0
    with np.load(out) as saved:
        expected = sc.eigenmodes(sc.read_graph(path), 2, seed=3)
        np.testing.assert_array_equal(saved["vectors"], expected.vectors)


def test_signed_graphs_require_the_signed_option(tmp_path, capsys):
    path = tmp_path / "signed.txt"
    path.write_text("0 1\n1 2 -4\n2 0\n")
    for command in (["info"], ["coarsen", "--clusters", "2", "--rank", "1"]):
        assert main([command[0], str(path), *command[1:]]) == 2
        assert "--signed" in capsys.readouterr().err
        assert main([command[0], str(path), *command[1:], "--signed"]) == 0
        assert "3 vertices" in capsys.readouterr().out
    out = tmp_path / "out.npz"
    arguments = [str(path), "--signed", "--clusters", "3", "--rank", "1", "--out", str(out)]
    assert main(["coarsen", *arguments]) == 0
    assert sc.load(out).fine.equals(sc.read_graph(path, signed=True))
    capsys.readouterr()
    assert main(["info", str(out), "--signed"]) == 2
    assert "--signed is for graphs" in capsys.readouterr().err


def test_saved_coarsening_passes_verify_and_is_coarsened_from_its_coarse_sheaf(
    pose_file, tmp_path, capsys
):
    out, second = str(tmp_path / "c.npz"), str(tmp_path / "2.npz")
    assert main(["coarsen", pose_file, "--clusters", "8", "--rank", "3", "--out", out]) == 0
    C = sc.load(out)
    assert (C.sheaf.n_vertices, C.fine.n_vertices) == (8, 20)
    np.testing.assert_array_equal(C.ranks, 3)
    (tmp_path / "c.npz").rename(tmp_path / "c")  # recognized by its content
    for given in ([str(tmp_path / "c")], [pose_file, "--clusters", "8", "--rank", "3"]):
        capsys.readouterr()
        assert main(["verify", *given]) == 0
        said = capsys.readouterr().out
        assert "20 -> 8 vertices" in said
        assert "that apply hold" in said
    command = ["coarsen", str(tmp_path / "c"), "--clusters", "3", "--rank", "2", "--out", second]
    assert main(command) == 0
    assert sc.load(second).fine.equals(C.sheaf)


def test_info_and_verify_accept_a_saved_hierarchy(tmp_path, capsys):
    path = str(tmp_path / "h.npz")
    H = sc.coarsen_levels(sc.CellularSheaf.constant(nx.grid_2d_graph(8, 8)), 4, 2, rank=3)
    sc.save(path, H)
    assert main(["info", path]) == 0
    assert "Hierarchy: 2 levels; stopped because `n_levels` = 2" in capsys.readouterr().out
    assert main(["verify", path]) == 0
    assert capsys.readouterr().out.count("that apply hold") == 2
    assert main(["verify", path, "--clusters", "2", "--rank", "1"]) == 2
    assert "already holds a coarsening" in capsys.readouterr().err
    # goes on from the coarsest sheaf
    assert main(["coarsen", path, "--clusters", "2", "--rank", "1"]) == 0
    assert "fine    4 vertices" in capsys.readouterr().out
    sc.save(path, sc.Hierarchy(H.fine, ()))
    assert main(["verify", path]) == 2
    assert "does not hold a coarsening" in capsys.readouterr().err


def test_every_option_of_coarsen_changes_the_result(graph_file, tmp_path):
    def coarsened(*options):
        path = str(tmp_path / "c.npz")
        assert (
            main(["coarsen", graph_file, "--clusters", "5", "--rank", "2", "--out", path, *options])
            == 0
        )
        return sc.load(path)

    plain = coarsened()
    assert plain.modes.local_operator == "internal"
    assert coarsened("--local-operator", "principal").modes.local_operator == "principal"
    assert coarsened("--dim", "3").fine.dim_c0 == 3 * 34
    assert not np.array_equal(
        coarsened("--method", "matching").partition.labels, plain.partition.labels
    )
    seeds = [coarsened("--seed", str(seed)).partition.labels for seed in range(5)]
    assert any(not np.array_equal(seeds[0], other) for other in seeds[1:])
    np.testing.assert_array_equal(coarsened("--seed", "0").partition.labels, plain.partition.labels)


def test_exit_status_is_1_if_a_check_failed(pose_file, tmp_path, capsys, monkeypatch):
    path = tmp_path / "c.npz"
    command = ["coarsen", pose_file, "--clusters", "4", "--rank", "3", "--out", str(path)]
    monkeypatch.setattr("sheafcoarsen.cli.outputs.write_report", lambda *given: False)
    assert main([*command, "--report", str(tmp_path / "c.html")]) == 1
    assert "c.html: a check FAILED" in capsys.readouterr().out
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays["sheaf.tail_data"] = arrays["sheaf.tail_data"] * (1 + 1e-6)
    np.savez(path, **arrays)
    capsys.readouterr()
    assert main(["verify", str(path)]) == 1
    assert "FAILED" in capsys.readouterr().out


@pytest.mark.parametrize("damaged", [0, 1])
def test_verify_exit_status_is_1_if_any_level_is_damaged(tmp_path, capsys, damaged):
    H = sc.coarsen_levels(sc.CellularSheaf.constant(nx.grid_2d_graph(8, 8)), 4, 2, rank=3)
    levels = [H[0], H[1]]
    R = levels[damaged].prolongation * (1 + 1e-6)
    levels[damaged] = dataclasses.replace(levels[damaged], prolongation=R)
    sc.save(tmp_path / "h.npz", dataclasses.replace(H, levels=tuple(levels)))
    assert main(["verify", str(tmp_path / "h.npz")]) == 1
    said = capsys.readouterr().out
    assert said.count("that apply hold") == 1


def test_info_describes_sheaves_and_coarsenings(graph_file, pose_file, tmp_path, capsys):
    for line, landmarks in (("", ""), ("EDGE_SE2_XY 3 99 1 2 1 0 1\n", ", 1 landmark, 1 sighting")):
        with open(pose_file, "a") as stream:
            stream.write(line)
        assert main(["info", pose_file]) == 0
        out = capsys.readouterr().out
        graph = f"PoseGraph(SE(2), n_vertices=20, n_edges=21{landmarks}, without poses)\n"
        assert out.startswith(f"{graph}sheaf   20 vertices (stalks 2 .. 2), 21 edges, dim C^0 40")
    rotations = tmp_path / "rotations.g2o"  # nothing is known of the translation
    rotations.write_text("EDGE_SE2 0 1 0 0 1 0 0 0 0 0 4\n")
    assert main(["info", str(rotations)]) == 0
    assert capsys.readouterr().out.startswith("sheaf   2 vertices")
    assert main(["info", graph_file, "--dim", "2"]) == 0
    assert "1 component, 0 loops" in capsys.readouterr().out
    out = str(tmp_path / "c.npz")
    main(["coarsen", graph_file, "--clusters", "4", "--rank", "3", "--out", out])
    capsys.readouterr()
    assert main(["info", out]) == 0
    assert "Coarsening(internal modes: 34 -> 4 vertices" in capsys.readouterr().out
    sc.save(tmp_path / "p.npz", sc.Partition([0, 1, 0]))
    assert main(["info", str(tmp_path / "p.npz")]) == 0
    assert "Partition(n_vertices=3, n_clusters=2" in capsys.readouterr().out


def test_compile_selects_scalar_types_and_rare_kernels(monkeypatch, capsys):
    def compiled(scalars, *, rare, progress):
        asked.append((scalars, rare))

    asked = []
    monkeypatch.setattr("sheafcoarsen.cli.commands.compile_kernels", compiled)
    assert main(["compile"]) == main(["compile", "--all"]) == 0
    assert asked == [(("float64",), False), (SCALARS, True)]
    assert "compiled for float64, float32, complex128, complex64 in " in capsys.readouterr().out


def test_demo_prints_consistent_numbers(capsys):
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
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


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize("quiet", [False, True])
def test_json_output_is_one_object_and_quiet_output_is_empty(quiet, graph_file, tmp_path, capsys):
    out, page = str(tmp_path / "c.npz"), str(tmp_path / "c.html")

    def printed(*arguments):
        assert main([*arguments, *["-q"] * quiet]) == 0
        said = capsys.readouterr()
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


def test_json_output_counts_the_clusters_with_a_tie(tmp_path, capsys):
    path = tmp_path / "triangles.txt"
    path.write_text("0 1\n1 2\n0 2\n3 4\n4 5\n3 5\n")  # eigenvalues 0, 3, 3 twice
    for rank, tied in (("2", 2), ("1", 0)):
        assert main(["coarsen", str(path), "-k", "2", "-r", rank, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["tied_clusters"] == tied


def test_json_output_has_null_for_infinite_numbers(graph_file, capsys, monkeypatch):
    failed = sc.verify(sc.coarsen(sc.CellularSheaf.constant([[0, 1]]), sc.Partition([0, 1]), 1))
    wrong = dataclasses.replace(failed.checks[0], ratio=np.inf, passed=False)
    monkeypatch.setattr("sheafcoarsen.cli.stores.verify", lambda C: sc.Verification((wrong,)))
    assert main(["verify", graph_file, "-k", "5", "-r", "2", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
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


@pytest.mark.parametrize("ending", [*STDIN, ".npz"])
def test_standard_input_is_read_like_a_file(ending, tmp_path, capsys, monkeypatch):
    path = tmp_path / f"in{ending}"
    if ending == ".npz":
        sc.save(path, sc.CellularSheaf.constant(nx.path_graph(3)))
    else:
        path.write_bytes(STDIN[ending])
    assert main(["info", str(path), "--json"]) == 0
    expected = capsys.readouterr().out
    assert json.loads(expected)["vertices"] == 3
    for data in (path.read_bytes(), gzip.compress(path.read_bytes())):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert main(["info", "-", "--json"]) == 0
        assert capsys.readouterr().out == expected


def test_error_messages_name_standard_input(capsys, monkeypatch):
    for data, status in ((b"4 5\n", 0), (b"4 5\n5 6 x\n", 2), (gzip.compress(b"0 1\n")[:12], 2)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert main(["info", "-"]) == status
        assert capsys.readouterr().err.startswith("sheafcoarsen: standard input:")


def test_a_reader_that_exits_ends_a_command_on_standard_input(capsys, monkeypatch):
    def printed(args):
        raise BrokenPipeError

    monkeypatch.setattr("sheafcoarsen.cli.commands._info", printed)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"4 5\n")))
    monkeypatch.setattr("sys.stdout", sys.stdout)  # which `main` replaces
    assert main(["info", "-"]) == 0
    sys.stdout.close()
    monkeypatch.undo()
    assert capsys.readouterr().err == ""


def test_meshes_are_described(tmp_path, capsys):
    path = tmp_path / "ring.off"
    quads = [f"4 {k} {(k + 1) % 5} {5 + (k + 1) % 5} {5 + k}" for k in range(5)]
    places = [f"{np.cos(k)} {np.sin(k)} {z}" for z in (0, 1) for k in range(5)]
    path.write_text("\n".join(["OFF\n10 5 0", *places, *quads]) + "\n")
    assert main(["info", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "kind": "mesh",
        "vertices": 10,
        "edges": 15,
        "faces": 5,
        "corners": 4,
        "components": 1,
        "boundary_edges": 10,
        "euler_characteristic": 0,
    }
    assert main(["info", str(path)]) == 0
    assert "boundary edges        10\n" in capsys.readouterr().out
    assert main(["info", str(path), "--dim", "2"]) == 2
    assert "has its own stalk dimension: omit it" in capsys.readouterr().err


@pytest.mark.parametrize("corners", [3, 4])
def test_a_mesh_is_read_as_its_tangent_bundle(corners, tmp_path, capsys):
    """With cotan weights for triangles, and areas as masses; other meshes have neither."""
    points, faces = icosphere(1)
    if corners == 4:
        points = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
        faces = np.array(
            [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
        )
    path, out = tmp_path / "m.obj", tmp_path / "modes.npz"
    rows = [f"v {x!r} {y!r} {z!r}" for x, y, z in points.tolist()]
    path.write_text("\n".join(rows + ["f " + " ".join(map(str, f)) for f in faces + 1]) + "\n")
    F = sc.gallery.tangent_bundle(points, faces, weights="cotan" if corners == 3 else "uniform")
    assert main(["modes", str(path), "-k", "3", "-o", str(out)]) == 0
    areas = sc.gallery.vertex_areas(points, faces) if corners == 3 else None
    assert ("the areas of the vertices" in capsys.readouterr().out) == (corners == 3)
    E = sc.eigenmodes(F, 3, mass=areas)
    with np.load(out) as saved:
        assert_residual(saved["values"] - E.values, E.values, n=F.dim_c0)
    assert main(["modes", str(path), "-k", "3", "--normalize", "-o", str(out)]) == 0
    assert "areas" not in capsys.readouterr().out
    E = sc.eigenmodes(sc.normalize(F), 3)  # without masses
    with np.load(out) as saved:
        assert_residual(saved["values"] - E.values, E.values, n=F.dim_c0)
    page = tmp_path / "page.html"
    options = ["-k", "2", "-r", "2", "-o", str(out), "--report", str(page)]
    assert main(["coarsen", str(path), *options]) == 0
    assert sc.load(out).fine.equals(F)
    sc.report(sc.load(out), tmp_path / "same.html", pos=points, faces=faces)
    first, same = (
        re.search('base64,([^"]*)', file.read_text())[1] for file in (page, tmp_path / "same.html")
    )
    paths = [re.findall(b' d="(M [^"]*)"', base64.b64decode(data)) for data in (first, same)]
    assert paths[0]
    assert paths[0] == paths[1]


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_bars_are_shown_only_on_a_terminal(terminal, graph_file, capsys, monkeypatch):
    for options, shown in (([], terminal), (["-q"], False)):
        monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
        assert main(["coarsen", graph_file, "-k", "5", "-r", "2", *options]) == 0
        assert ("local modes" in capsys.readouterr().err) == shown


def test_split_multiplets_are_printed_as_a_note(tmp_path, capsys):
    path = tmp_path / "ring.txt"
    path.write_text("".join(f"{k} {(k + 1) % 9}\n" for k in range(9)))
    assert main(["coarsen", str(path), "-k", "1", "-r", "2"]) == 0
    said = capsys.readouterr()
    assert "note    the cut splits a multiple eigenvalue in 1 of 1 clusters" in said.out
    assert not said.err


def test_warnings_are_printed_as_single_lines(graph_file, capsys, monkeypatch):
    def warns(*given, **options):
        assert logging.getLogger("sheafcoarsen").isEnabledFor(logging.WARNING) == (not quiet)
        warnings.warn("take\ncare", UserWarning, stacklevel=2)
        return sc.Partition(np.arange(34) % 2)

    monkeypatch.setattr("sheafcoarsen.cli.commands.select", warns)
    for quiet, expected in ((False, "sheafcoarsen: take care\n"), (True, "")):
        options = ["-q"] * quiet
        assert main(["coarsen", graph_file, "-k", "2", "-r", "1", *options]) == 0
        assert capsys.readouterr().err == expected


SMALL = ["coarsen", "GRAPH", "--clusters", "2", "--rank", "1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "arguments are required: command"),
        (["fold", "x"], "invalid choice: 'fold'"),
        (["coarsen", "GRAPH"], "required: -k/--clusters, -r/--rank"),
        (["coarsen", "GRAPH", "--clusters", "three", "--rank", "1"], "invalid int value: 'three'"),
        (["coarsen", "GRAPH", "--clusters", "0", "--rank", "1"], "`n_clusters`"),
        (["coarsen", "GRAPH", "--clusters", "99", "--rank", "1"], "`n_clusters`"),
        (
            ["coarsen", "GRAPH", "--clusters", "2", "--rank", "-1"],
            "`rank` must be at least 0, got -1",
        ),
        ([*SMALL, "--dim", "-2"], "`dim` must be at least 0"),
        ([*SMALL, "--method", "magic"], "invalid choice: 'magic'"),
        (["coarsen", "missing.mtx", "--clusters", "2", "--rank", "1"], "missing.mtx"),
        (
            ["coarsen", "picture.json", "--clusters", "2", "--rank", "1"],
            "gzipped (.gz); read_g2o reads .g2o, read_mesh .off, .obj and .ply, load .npz",
        ),
        (["levels", "GRAPH", "--fast"], "arguments: --fast (see sheafcoarsen levels --help)"),
        (["verify", "GRAPH"], "does not hold a coarsening: pass --clusters and --rank"),
        ([*SMALL, "--out", ""], "--out must name an .npz file"),
        (["modes", "GRAPH", "-k", "2", "--out", "m.csv"], "--out must name an .npz file"),
        (["levels", "GRAPH", "--out", "m.csv"], "--out must name an .npz file"),
        ([*SMALL, "--out", "nowhere/c.npz"], "no folder nowhere"),
        (
            ["coarsen", "POSE", "--clusters", "2", "--rank", "1", "--dim", "3"],
            "has its own stalk dimension: omit it",
        ),
        (["verify", "GRAPH", "--method", "balls"], "--method requires --clusters and --rank"),
        (["verify", "DONE", "--clusters", "2", "--rank", "1"], "already holds a coarsening"),
        (["verify", "GRAPH", "--rank", "1"], "--clusters and --rank must be passed together"),
        (["info", "BROKEN"], "broken.g2o:2: "),
        (["coarsen", "BROKEN", "-k", "2", "-r", "1", "--out", "DONE"], "broken.g2o:2: "),
        (["verify", "CUT"], "cut.npz: "),
    ],
)
def test_bad_input_prints_one_line_and_exits_with_status_2(
    arguments, message, graph_file, pose_file, tmp_path, capsys
):
    done = str(tmp_path / "done.npz")
    main(["coarsen", graph_file, "--clusters", "2", "--rank", "1", "--out", done])
    capsys.readouterr()
    (tmp_path / "broken.g2o").write_text(
        "EDGE_SE2 0 1 1 0 0 1 0 0 1 0 1\nEDGE_SE2 1 2 1 zero 0 1 0 0 1 0 1\n"
    )
    sc.save(tmp_path / "cut.npz", sc.Partition([0, 1]))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "cut.npz").read_bytes()[:99])
    names = {
        "GRAPH": graph_file,
        "BROKEN": str(tmp_path / "broken.g2o"),
        "CUT": str(tmp_path / "cut.npz"),
        "POSE": pose_file,
        "DONE": done,
    }
    assert main([names.get(word, word) for word in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sheafcoarsen: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert sc.load(done).sheaf.n_vertices == 2  # not overwritten


def test_python_m_sheafcoarsen_runs_as_a_process(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "sheafcoarsen", "info", str(tmp_path / "none.npz")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stdout == ""
    assert re.fullmatch(r"sheafcoarsen: .*none\.npz.*\n", run.stderr)


# ---------------------------------------------------------------- real data

REAL = [
    ("g2o_city10000.g2o.gz", 250, 4),
    *(
        (f"g2o_{name}.g2o.gz", 40, 4)
        for name in ("sphere2500", "torus3d", "parking_garage", "intel", "csail", "m3500")
    ),
    ("graph_minnesota.mtx.gz", 66, 4),
    ("graph_wing.graph.gz", 1500, 6),
]


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "clusters", "rank"), REAL, ids=[name for name, *_ in REAL])
def test_real_data_coarsens_and_verifies(name, clusters, rank, data_folder, tmp_path, capsys):
    out = str(tmp_path / "c.npz")
    options = ["--clusters", str(clusters), "--rank", str(rank), "--out", out]
    assert main(["coarsen", str(data_folder / name), *options]) == 0
    assert main(["verify", out]) == 0, capsys.readouterr().out


@pytest.mark.usefixtures("without_drawing")
def test_control_characters_in_files_are_escaped(tmp_path, capsys):
    path = tmp_path / "\x1b]0;title\x07.txt"
    path.write_text("4 5\n\x1b[2J 0 1 2 3\n")
    assert main(["info", str(path)]) == 2
    assert "title\\x07.txt:2: " in capsys.readouterr().err
    path.write_text("4 5\n")
    options = ["--clusters", "1", "--rank", "1"]
    report, out = tmp_path / "\x1b.html", tmp_path / "\x1b.npz"
    command = ["coarsen", str(path), *options, "--report", str(report), "--out", str(out)]
    assert main(command) == 0
    said = capsys.readouterr()
    assert "title\\x07.txt: numbers begin with 4" in said.err
    assert "\\x1b.npz" in said.out
    assert "\\x1b.html" in said.out
    assert not {"\x1b", "\x07"} & {*said.out, *said.err, *report.read_text(encoding="utf-8")}
    assert main(["eliminate", str(path), "--report", str(report), "--out", str(out)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert main(["info", str(tmp_path / "\x9b.npz")]) == 2
    assert "\x9b" not in capsys.readouterr().err


def test_vertices_option_makes_sparse_integers_indices(tmp_path, capsys):
    path = tmp_path / "sparse.txt"
    path.write_text("5 2\n99 5\n")
    assert main(["info", str(path), "--vertices", "120", "--dim", "2"]) == 0
    said = capsys.readouterr()
    assert "120 vertices (stalks 2 .. 2), 2 edges" in said.out
    assert not said.err
    assert main(["info", str(path), "--vertices", "50"]) == 2
    assert "vertex 99 is out of range for `n_vertices` = 50" in capsys.readouterr().err
    assert main(["info", "some.g2o", "--vertices", "50"]) == 2
    assert "--vertices is for graphs" in capsys.readouterr().err
