"""``sheafcoarsen synchronize``."""

import gzip
import html

import numpy as np
import pytest

import sheafcoarsen as sc
from tests.unit.synchronization.conftest import pose_graph, random_rotations, ring_with_chords


@pytest.fixture
def measured(tmp_path):
    """Return a file of 20 poses whose edge 30 is wrong, and the graph."""
    G, _ = pose_graph(2, ring_with_chords(20, 15), noise=0.02)
    R, t = G.rotations.copy(), G.translations.copy()
    R[30], t[30] = random_rotations(1, 2, np.random.default_rng(0))[0], [30.0, -20.0]
    G = sc.PoseGraph(G.edges, R, t, 2500.0, 2500.0, vertex_labels=tuple(range(100, 120)))
    sc.write_g2o(tmp_path / "in.g2o", G)
    return tmp_path / "in.g2o", sc.read_g2o(tmp_path / "in.g2o", poses=True)


@pytest.mark.parametrize(("robust", "ending"), [(False, ".g2o"), (True, ".g2o.gz")])
def test_synchronize_writes_the_poses_of_the_library(measured, tmp_path, run, robust, ending):
    path, G = measured
    out = tmp_path / f"out{ending}"
    option = ["--robust"] * robust
    said = run("synchronize", path, "-o", out, *option).out
    S = sc.synchronize(G, refine=True, robust="tls" if robust else None)
    Z = S.certify()
    assert f"{S.cost:.9g} after {len(S.costs) - 1} steps" in said
    assert Z.is_optimal == robust
    verdict = "no poses cost less" if robust else "NOT certified"
    assert f"bound   {Z.lower_bound:.9g}: {verdict}" in said
    assert (f"left    1 of 35 measurements out, also of {out}" in said) == robust
    row = next(line for line in said.splitlines() if line.split()[:1] == ["30"])
    i, j = G.edges[30] + 100
    # in the plane the cost counts the squared angle twice
    squared = S.edge_costs[30] - G.kappa[30] * (2 - 2 * np.cos(S.angles[30]))
    values = [S.suspicion[30], np.sqrt(squared), np.degrees(S.angles[30])][robust:]
    numbers = [f"{value:.3g}" for value in values]
    assert row.split()[: 3 + len(numbers)] == ["30", str(i), str(j), *numbers]
    assert ("suspicion (sd)" in said) == (not robust)
    assert row.split()[-1] == ("0" if robust else f"{S.distances[30]:.3g}")
    assert f"saved   {out}" in said
    with (gzip.open if ending.endswith("gz") else open)(out, "rt") as stream:
        assert stream.readline().startswith("VERTEX_SE2 ")
    again = sc.read_g2o(out, poses=True)
    assert abs(again.poses[1] - S.translations).max() < 1e-9
    assert abs(again.poses[0] - S.rotations).max() < 1e-9
    kept = np.delete(G.edges, 30, axis=0) if robust else G.edges
    assert again.edges.tolist() == kept.tolist()
    quiet = run("synchronize", path, "-q", *option)
    assert ("in a second, robust fit" in said) == (not robust)
    line = (
        "sheafcoarsen: the map is NOT certified: perhaps a local minimum, or measurements "
        "contradict each other: try --robust\n"
    )
    assert quiet == ("", "" if robust else line)


def test_report_of_poses_has_map_certificate_and_worst_edges(measured, tmp_path, run):
    pytest.importorskip("matplotlib")
    path, G = measured
    report = tmp_path / "map.html"
    run("synchronize", path, "--robust", "--report", report)
    page = report.read_text(encoding="utf-8")
    assert "<h1>in.g2o: 20 poses</h1>" in page
    assert "1 of 35 measurements were left out." in page
    assert "n_edges=35 (1 left out), SO(2)" in page
    for words in ("measurements left out", "The computed map", "Certificate</h2>", "--robust"):
        assert words in page
    assert "The map before" not in page  # the file has no poses
    worst = page[page.index("<h2>Worst edges</h2>") :]
    assert worst[: worst.index("</table>")].count("<tr>") == 11  # with its head
    S = sc.synchronize(G, "anchored")
    sc.write_g2o(path, G, S)
    Z = sc.report(sc.synchronize(sc.read_g2o(path, poses=True), "spectral"), report)
    assert not Z.is_optimal
    page = html.unescape(report.read_text(encoding="utf-8"))
    assert 'sc.synchronize(G, method="spectral", refine=False)' in page
    assert "The map before" in page
    assert "a local minimum" in page
    sc.report(sc.synchronize(G.sheaf), report)
    assert "The map" not in report.read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_other_commands_read_toro_files_and_ignore_landmarks(ending, tmp_path, run):
    path = tmp_path / f"drive.graph{ending}"
    text = b"EDGE2 0 1 1 0 0 1 0 1 1 0 0\nLANDMARK2 0 7 1 2 2 0 2\nLANDMARK2 1 7 3 4 1 0 3\n"
    path.write_bytes(gzip.compress(text) if ending else text)
    assert "n_edges=1, 1 landmark, 2 sightings" in run("info", path).out
    said = run("modes", path, "-k", 1)
    assert "only the rotations between poses are used" in said.err
    assert "Eigenmodes(k=1" in said.out
    said = run("synchronize", path, "--robust").out
    assert "sightings of landmarks are never left out" in said
    rows = [line.split() for line in said.splitlines()]
    seen = sorted(row[:3] + row[-1:] for row in rows if row[4:5] == ["-"])
    assert seen == [["1", "0", "7", "1"], ["2", "1", "7", "1"]]  # with weight 1
