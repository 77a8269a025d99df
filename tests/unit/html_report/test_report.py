"""The page about a coarsening, and tables in notebooks.

The page is well formed, self-contained, escaped, and written whole or not at all.
"""

import base64
import dataclasses
import html
import html.parser
import importlib.metadata
import os
import re
import shlex
import shutil
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure

import sheafcoarsen as sc
from sheafcoarsen.cli import main
from sheafcoarsen.coarsening import growth_of
from sheafcoarsen.html_report import write_report
from sheafcoarsen.html_report._report import STYLE, _cluster_table, call_of, drawn
from sheafcoarsen.html_report.results import percent, smooth_cochain
from tests.support.meshes import icosphere

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

HOSTILE = (
    "<script>alert(1)</script>",
    "a \"quoted\" & 'single' name",
    "</td></table><img src=x onerror=alert(2)>",
    "\ud800 alone",
)

EMPTY_TAGS = {"meta", "img", "br", "!doctype"}


class Page(html.parser.HTMLParser):
    """Reads a page and refuses tags that do not close in order."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.images, self.texts, self.attributes = [], [], [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in EMPTY_TAGS:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(self.texts)


def coarsened(graph=None, rank=(1, 2, 3, 2), **options):
    F = sc.CellularSheaf.constant(nx.karate_club_graph() if graph is None else graph)
    return sc.coarsen(F, sc.select(F, 4), np.array(rank), **options)


@pytest.fixture(scope="module")
def C():
    names = dict(enumerate(HOSTILE))
    return coarsened(nx.relabel_nodes(nx.karate_club_graph(), names))


@pytest.fixture(scope="module")
def page(C, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "karate.html"
    assert write_report(C, path, times={"coarsen <it>": 1.25}).passed
    return Page(path.read_text(encoding="utf-8")), path


def test_report_is_one_complete_html_page(page):
    tags = page[0].tags
    assert tags.count("html") == tags.count("body") == tags.count("h1") == 1
    assert tags.count("h2") == 8


def test_page_loads_no_external_resources(page):
    parsed, path = page
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|@import|url\(", source)
    assert not {"script", "link", "iframe", "object"} & set(parsed.tags)
    for name, value in parsed.attributes:
        assert not name.startswith("on")
        if name in ("src", "href"):
            assert value.startswith("data:image/svg+xml;base64,")


def test_pictures_have_alternative_texts(page):
    images = page[0].images
    assert len(images) == 4
    for image in images:
        assert len(image["alt"]) > 20
        picture = base64.b64decode(image["src"].split(",", 1)[1])
        assert b"<svg" in picture
        assert len(picture) > 5000
    assert len({image["src"] for image in images}) == 4


def test_verification_table_lists_every_check(page, C):
    for check in sc.verify(C).checks:
        assert check.name in page[0].texts
        assert check.label in page[0].texts
        assert check.verdict in page[0].texts


def test_vertex_labels_are_escaped(page):
    for label in HOSTILE[:3]:
        assert label[:39] in page[0].text
    assert "script" not in page[0].tags
    assert not [name for name, value in page[0].attributes if value and "alert" in value]


def test_page_shows_sizes_losses_and_times(page, C):
    text = page[0].text
    for number in (C.fine.n_vertices, C.fine.n_edges, C.sheaf.dim_c0, C.sheaf.dim_c1):
        assert f"{number}" in text
    for line in (
        "retained internal",
        "discarded crossing",
        "closure",
        "restricted similarity",
        "mu",
    ):
        assert line in page[0].texts
    assert "coarsen <it>" in page[0].texts
    assert "1.250 s" in page[0].texts
    for step in ("verification", "losses", "eigenvalues", "pictures"):
        assert f"this report: {step}" in page[0].texts


def damaged(C):
    wrong = C.sheaf.with_maps(1.01 * C.sheaf.tail_data, C.sheaf.head_data)
    return dataclasses.replace(C, sheaf=wrong)


@pytest.mark.usefixtures("without_drawing")
def test_a_failed_check_is_reported_at_the_top_of_the_page(C, tmp_path):
    assert not sc.report(damaged(C), tmp_path / "r.html").passed
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert re.search(r"\d+ of \d+ checks of the theory FAILED", text)
    assert text.index("FAILED") < text.index("What went in")


def pictures(result, tmp_path, monkeypatch, **options):
    """Return the axes of all pictures of a page, each with the function that drew it."""
    seen = []

    def recorded(draw, *what, size):
        seen.append((getattr(draw, "func", draw), draw(*what, ax=Figure().subplots())))
        return "data:,"

    monkeypatch.setattr("sheafcoarsen.html_report._report.drawn", recorded)
    sc.report(result, tmp_path / "r.html", **options)
    return seen


def drawn_points(ax):
    """Return the rounded positions of all vertices in the picture of a fine graph."""
    dots = [np.asarray(c.get_offsets()) for c in ax.child_axes[0].collections]
    return {tuple(xy) for offsets in dots for xy in offsets.round(9)}


@pytest.mark.parametrize("made", ["coarsening", "elimination"])
def test_picture_of_the_graph_uses_the_given_positions(made, C, tmp_path, monkeypatch):
    made = C if made == "coarsening" else sc.eliminate(C.fine)
    places = np.random.default_rng(0).uniform(size=(C.fine.n_vertices, 2)).round(9)
    [ax] = [ax for _, ax in pictures(made, tmp_path, monkeypatch, pos=places) if ax.child_axes]
    assert set(map(tuple, places)) <= drawn_points(ax)
    with pytest.raises(ValueError, match="`pos` must hold two or three real coordinates"):
        sc.report(made, tmp_path / "other.html", pos=places[1:])
    assert not (tmp_path / "other.html").exists()


def test_legends_of_reports_are_below_the_axes(C):
    seen = []

    def picture(ax):
        seen.append(sc.plot.spectra(C, ax=ax))
        return ax

    drawn(picture, size=(7.5, 4.2))
    (ax,) = seen
    assert 0 < ax.get_legend().get_window_extent().y1 < ax.bbox.y0


def test_clusters_of_a_mesh_are_drawn_on_its_faces(tmp_path, monkeypatch):
    points, faces = icosphere(2)
    F = sc.gallery.tangent_bundle(points, faces)
    H = sc.coarsen_levels(F, 5, 2, rank=2)
    seen = pictures(H, tmp_path, monkeypatch, pos=points, faces=faces, up="y")
    fine, coarse = ([*ax.child_axes] for _, ax in seen if ax.child_axes)
    assert "cells" in [c.get_label() for c in fine[0].collections]
    assert "vertices" in [c.get_label() for c in coarse[0].collections]
    alone = sc.plot.partition(H[0], points, faces, up="y", ax=Figure().subplots())
    assert alone.child_axes[0].get_xlim() == fine[0].get_xlim()
    with pytest.raises(ValueError, match="`faces` require clusters, but got .* Elimination"):
        sc.report(sc.eliminate(F), tmp_path / "r.html", pos=points, faces=faces)


@pytest.mark.parametrize(
    ("command", "label"), [(("coarsen", "-k", "6", "-r", "2"), "cells"), (("eliminate",), "kept")]
)
def test_commands_draw_a_mesh_at_its_points(command, label, tmp_path, monkeypatch, capsys):
    points, faces = icosphere(1)
    rows = [f"{len(points)} {len(faces)} 0", *(" ".join(map(str, p)) for p in points)]
    (tmp_path / "m.off").write_text(
        "OFF\n" + "\n".join([*rows, *(f"3 {a} {b} {c}" for a, b, c in faces)])
    )
    seen = []

    def recorded(draw, *what, size):
        seen.append(draw(*what, ax=Figure().subplots()))
        return "data:,"

    monkeypatch.setattr("sheafcoarsen.html_report._report.drawn", recorded)
    name, *options = command
    page = str(tmp_path / "r.html")
    assert main([name, str(tmp_path / "m.off"), *options, "--report", page]) == 0
    [panels] = [ax.child_axes for ax in seen if ax.child_axes]
    assert label in [c.get_label() for c in panels[0].collections]


def of_basis(factor):
    C = coarsened()
    return sc.coarsen(C.fine, C.partition, basis=[factor * C.block(a) for a in range(4)])


def complex_one():
    F = sc.CellularSheaf.random(nx.cycle_graph(8), 2, 2, seed=1, dtype=complex)
    return sc.coarsen(F, sc.Partition([0, 0, 0, 0, 1, 1, 1, 1]), 2)


@pytest.mark.parametrize(
    ("make", "said", "n_images", "is_drawn"),
    [
        (lambda: of_basis(1), "sc.coarsen(F, P, basis=blocks, loops=True", 3, True),
        (lambda: of_basis(2), "the ledger requires orthonormal columns", 1, False),
        (lambda: coarsened(local_operator="principal"), "principal", 4, False),
        (lambda: coarsened(loops=False), "retained internal energy is omitted", 4, True),
        (lambda: coarsened(compress=True), "edge stalks are compressed", 4, False),
        (complex_one, "complex128", 4, True),
        (lambda: coarsened(rank=[0] * 4), "the coarse C^0 has dimension 0", 3, True),
    ],
)
def test_every_kind_of_coarsening_has_a_report(make, said, n_images, is_drawn, tmp_path, request):
    if not is_drawn:  # as others are
        request.getfixturevalue("without_drawing")
    sc.report(make(), tmp_path / "r.html")
    parsed = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert said in parsed.text
    assert len(parsed.images) == n_images


@pytest.mark.usefixtures("without_drawing")
def test_eigenvalues_of_large_sheaves_are_omitted_with_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.html_report.results.QUALITY_BELOW", 1199)
    v = np.arange(1200)
    F = sc.CellularSheaf.constant(np.stack([v, (v + 1) % 1200], axis=1))
    sc.report(sc.coarsen(F, sc.Partition(v // 12), 2), tmp_path / "r.html")
    parsed = Page((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "left out, because dim C^0 = 1,200 is above 1,199" in parsed.text
    assert "The first 20 of 100 clusters" in parsed.texts


# ---------------------------------------------------------------- the same again


@pytest.mark.parametrize(
    "options",
    [
        {"rank": 2},
        {"rank": 3, "local_operator": "principal", "loops": False},
        {"rank": 2, "compress": True},
        {"rank": 2, "local_operator": "oversampled", "rings": 2, "target": 0.5},
        {"rank": sc.ranks.kernel()},
        {"rank": sc.ranks.budget(11)},
        {"rank": [0, 1, 4, 1]},
    ],
)
def test_the_shown_call_reproduces_the_coarsening(options):
    F = sc.CellularSheaf.constant(nx.karate_club_graph())
    P = sc.select(F, 4)
    C = sc.coarsen(F, P, **options)
    again = eval(call_of(C), {"sc": sc, "F": F, "P": P})
    assert again.sheaf.equals(C.sheaf)


@pytest.mark.usefixtures("without_drawing")
def test_name_and_command_are_escaped(C, tmp_path):
    write_report(C, tmp_path / "r.html", "<name>", "type <this>")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for text in ("<h1>&lt;name&gt;: 34", "<td>&lt;name&gt;</td>", "type &lt;this&gt;"):
        assert text in page


def test_page_shows_the_date_and_versions(page):
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d[+-]\d\d:\d\d", page[0].text)
    for name in ("sheafcoarsen", "numpy", "numba"):
        assert f"{name} {importlib.metadata.version(name)}" in page[0].text
    assert "sc.coarsen(F, P, rank=[1, 2, 3, 2], " in page[0].text


@pytest.mark.parametrize("rank", [0, 1])
def test_eigenvalues_of_sections_are_shown_as_zero(rank):
    """Not what rounding leaves of it, such as 8e-16."""
    G = sc.CellularSheaf.constant(nx.grid_2d_graph(12, 12), weight=None)
    C = sc.coarsen(G, sc.select(G, 4), rank)
    assert ((C.modes.scores if rank else C.modes.next_eigenvalues) != 0).any()
    rows = re.findall(r"<tr><td>\d.*?</tr>", _cluster_table(C))
    assert {re.findall("<td>(.*?)</td>", row)[5 - rank] for row in rows} == {"0"}
    name = "kept eigenvalues" if rank else "first discarded eigenvalues"
    assert f"<th>{name}</th><td>0</td>" in C.modes._repr_html_()


def test_the_table_of_clusters_names_up_to_50_members_of_each():
    F = sc.CellularSheaf.constant(nx.path_graph(101))
    table = _cluster_table(sc.coarsen(F, sc.Partition(np.arange(101) // 51), 1))
    first, second = re.findall("<td>([^<]*)</td></tr>", table)
    assert first == ", ".join(map(str, range(50))) + ", … (51 in all)"
    assert second == ", ".join(map(str, range(51, 101)))


# ---------------------------------------------------------------- light and dark, wide and narrow


def test_every_colour_has_a_dark_mode_value():
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)
    names = set(re.findall(r"--\w+", light))
    assert names == set(re.findall(r"--\w+", dark))
    assert set(re.findall(r"var\((--\w+)\)", STYLE)) <= names


# ---------------------------------------------------------------- eliminations

KARATE = sc.CellularSheaf.constant(nx.karate_club_graph())


def page_of(K, tmp_path, **options):
    passed = sc.report(K, tmp_path / "page.html", **options).passed
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    Page(text)
    return text, passed


def test_elimination_report_shows_eliminated_and_remaining_vertices(tmp_path):
    text, passed = page_of(sc.eliminate(KARATE), tmp_path, name="a <club>")
    assert passed
    assert "<h1>a &lt;club&gt;: 34 → 22 vertices</h1>" in text
    assert "12 of 34 vertices are solved for" in text
    assert "the Laplacian of the others has 71% of the nonzeros" in text
    assert "all checks passed" in text
    for wanted in ("11 in chains", "fact-9", "data:image/svg+xml;base64,", "max_neighbors=2"):
        assert wanted in text
    assert "sections live on" not in text


def test_elimination_report_shows_the_growth_of_rounding_errors(tmp_path):
    n, one = 40, np.ones((39, 1, 1))
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    K = sc.eliminate(sc.CellularSheaf(edges, 2 * one, one), keep=[0])
    text, _ = page_of(K, tmp_path)
    assert f"up to {K.growth:.3g} times" in text
    text, _ = page_of(sc.eliminate(sc.CellularSheaf.constant(edges)), tmp_path)
    assert "nothing is left to solve" in text
    assert "some sections live on eliminated vertices alone" in text


def test_a_failed_check_of_an_elimination_is_reported(tmp_path):
    K = sc.eliminate(KARATE)
    blocks = K.steps.blocks.copy()
    blocks[3] += 0.5
    wrong = dataclasses.replace(K, steps=K.steps._replace(blocks=blocks))
    text, passed = page_of(wrong, tmp_path)
    assert not passed
    assert "a check FAILED" in text
    assert '<p class="failed">Verification:' in text


def test_eliminate_command_writes_a_report(tmp_path, capsys):
    sc.save(tmp_path / "net.npz", KARATE)
    page = tmp_path / "net.html"
    (tmp_path / "keep.txt").write_text("0 33")
    words = ["eliminate", str(tmp_path / "net.npz"), "--keep", str(tmp_path / "keep.txt")]
    assert main([*words, "--report", str(page)]) == 0
    assert f"report  {page}" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert "sheafcoarsen eliminate" in text
    assert "eliminate" in text
    assert "--keep" in text
    assert "net.npz: 34 → 22 vertices" in text
    assert main([*words, "--report", "page.txt"]) == 2


# ---------------------------------------------------------------- levels and rotations


def levels(**options):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(6, 6))
    return sc.coarsen_levels(F, 3, 2, rank=2, **options)


def test_a_hierarchy_has_a_report(tmp_path):
    H = levels()
    text, passed = page_of(H, tmp_path, name="a <grid>")
    assert passed
    n, _, k = (F.n_vertices for F in H.sheaves)
    assert f"<h1>a &lt;grid&gt;: {n} → {k} vertices</h1>" in text
    assert f"{n} vertices become {k} in 2 levels" in text
    kept = float(np.linalg.norm(H.pool(smooth_cochain(H.fine))) ** 2)
    assert f"{percent(kept)} of the squared norm" in text
    assert f"dim C^0 is {H.sheaves[-1].dim_c0} instead of {H.fine.dim_c0}" in text
    assert re.findall("<h2>(Level .)</h2>", text) == ["Level 0", "Level 1"]
    for i, C in enumerate(H):
        assert f"level {i}: {html.escape(call_of(C))}" in text
        for check in sc.verify(C):
            assert f"<td>level {i}: {check.name}</td>" in text
    assert len(Page(text).images) == 4


@pytest.mark.usefixtures("without_drawing")
def test_a_failed_check_of_a_level_is_reported(tmp_path):
    H = levels()
    text, passed = page_of(dataclasses.replace(H, levels=(H[0], damaged(H[1]))), tmp_path)
    assert not passed
    assert "of the theory FAILED" in text


@pytest.mark.usefixtures("without_drawing")
def test_a_hierarchy_with_elimination_has_no_energy_ledger(tmp_path):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(6, 6))
    H = sc.coarsen_levels(F, 3, 2, rank=2, eliminate=True)
    assert isinstance(H[0], sc.Elimination)
    text, passed = page_of(H, tmp_path)
    assert passed
    assert "requires isometric prolongations" in text
    assert "of the squared norm" not in text


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize("eps", [0.6, None])
def test_a_sparsified_level_shows_its_edges_and_its_call(eps, tmp_path):
    F = sc.gallery.bundle(nx.random_regular_graph(12, 300, seed=0), 1, noise=0.3, seed=0)
    H = sc.coarsen_levels(F, 10, 2, rank=3, sparsify=0.6)
    Z = dataclasses.replace(H[1], eps=eps)
    H = sc.Hierarchy(F, (H[0], Z, sc.coarsen(Z.sheaf, H[2].partition, 2)))
    text, passed = page_of(H, tmp_path, pos=np.zeros((300, 2)))
    assert passed
    assert f"level 1: sc.sparsify(F, {eps or 'eps'})\n" in text
    assert f"<td>{Z.fine.n_edges:,}</td><td>{Z.sheaf.n_edges:,}</td>" in text
    assert text.count('<figure class="partition">') == 2


@pytest.mark.parametrize("eliminate", [False, True])
def test_positions_are_carried_to_all_levels(eliminate, tmp_path, monkeypatch):
    H = levels(eliminate=eliminate)
    places = {name: (3.0 * name[0], name[1]) for name in H.fine.vertex_labels}
    seen = pictures(H, tmp_path, monkeypatch, pos=places)
    expected = np.array(list(places.values()))
    drawn = [ax for draw, ax in seen if draw in (sc.plot.partition, sc.plot.elimination)]
    assert len(drawn) == len(H) == 2 + eliminate
    for C, ax in zip(H, drawn, strict=True):
        assert {tuple(xy) for xy in expected.round(9)} <= drawn_points(ax)
        if isinstance(C, sc.Elimination):
            expected = expected[C.kept]
        else:
            members = map(C.partition.cluster, range(C.partition.n_clusters))
            expected = np.array([expected[v].mean(axis=0) for v in members])


def test_synchronized_rotations_have_a_map_if_positions_are_given(tmp_path, monkeypatch):
    turns = np.tile(np.eye(2), (6, 1, 1))
    G = sc.CellularSheaf.connection(nx.cycle_graph(6), turns)
    S = sc.synchronize(G)
    assert not [draw for draw, _ in pictures(S, tmp_path, monkeypatch) if draw is sc.plot.poses]
    places = np.random.default_rng(0).uniform(size=(6, 2))
    ((draw, ax),) = pictures(S, tmp_path, monkeypatch, pos=places)
    assert draw is sc.plot.poses
    lines = [
        path for c in ax.collections if hasattr(c, "get_segments") for path in c.get_segments()
    ]
    assert {tuple(xy) for path in lines for xy in path} == {tuple(xy) for xy in places}
    with pytest.raises(ValueError, match="`pos` must hold two or three real coordinates"):
        sc.report(S, tmp_path / "r.html", pos=places[1:])


def test_identifiers_are_printed_without_commas(tmp_path):
    F = sc.gallery.bundle(nx.cycle_graph(1200), 2, noise=0.1, seed=0)
    S = sc.synchronize(F.with_labels(range(5000, 6200)))
    sc.report(S, tmp_path / "r.html", "ring")
    worst = (tmp_path / "r.html").read_text(encoding="utf-8").partition("<h2>Worst edges</h2>")[2]
    start, end = S.edges[S.outliers()[0]]
    assert f"<td>{S.outliers()[0]}</td><td>{5000 + start}</td><td>{5000 + end}</td>" in worst


@pytest.mark.parametrize("options", [{}, {"refine": True}, {"robust": "tls"}, {"start": None}])
def test_the_call_of_synchronized_poses_can_be_run(options, tmp_path):
    F = sc.gallery.bundle(nx.cycle_graph(6), 2, seed=0)
    plain = sc.synchronize(F)
    if "start" in options:
        options = {"start": plain.rotations}
    S = sc.synchronize(F, **options)
    sc.report(S, tmp_path / "r.html")
    call = re.search(r"sc\.synchronize\(.*?\)", html.unescape((tmp_path / "r.html").read_text()))
    again = eval(call[0].replace("...", "plain.rotations"))
    assert (again.method, len(again.costs)) == (S.method, len(S.costs))
    assert (again.weights is None) == (S.weights is None)


# ---------------------------------------------------------------- all or nothing


def test_a_failed_report_leaves_the_old_page_intact(C, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("precious")

    def fails(*args, **options):
        raise OSError("no space left")

    for place in (
        "sheafcoarsen.html_report._report.verify",
        "sheafcoarsen.plot.spectra",
        "sheafcoarsen._support.files.os.fsync",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(place, fails)
            with pytest.raises(OSError, match="no space left"):
                sc.report(C, path)
        assert os.listdir(tmp_path) == ["r.html"]
        assert path.read_text() == "precious"
    sc.report(C, path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert os.listdir(tmp_path) == ["r.html"]


def test_bad_paths_and_names_raise_before_the_computation(C, tmp_path, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.html_report._report.verify", None)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        sc.report(C, tmp_path / "nowhere" / "r.html")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        sc.report(C, tmp_path)
    with pytest.raises(TypeError, match="`path` must be a path"):
        sc.report(C, 3)
    with pytest.raises(TypeError, match="`name` must be a string, got int"):
        sc.report(C, tmp_path / "r.html", name=3)
    with pytest.raises(TypeError, match="`C` must be a Coarsening, got CellularSheaf"):
        sc.report(C.fine, tmp_path / "r.html")


def test_report_does_not_import_pyplot(C, tmp_path):
    code = (
        "import networkx as nx, sheafcoarsen as sc, sys; F = "
        "sc.CellularSheaf.constant(nx.path_graph(6));"
        "sc.report(sc.coarsen(F, sc.Partition([0, 0, 0, 1, 1, 1]), 2), sys.argv[1]); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "r.html")], check=True)


# ---------------------------------------------------------------- command line


def run(graph_file, page, *options):
    words = ["--clusters", "4", "--rank", "2", "--report", str(page), *options]
    return main(["coarsen", graph_file, *words])


def test_coarsen_command_writes_a_report_with_times(graph_file, tmp_path, capsys):
    out = tmp_path / "r.html"
    assert run(graph_file, out) == 0
    printed = capsys.readouterr().out
    assert f"report  {out}\n" in printed
    assert re.search(r"report \d+\.\d+ s", printed)
    texts = Page(out.read_text(encoding="utf-8")).texts
    for stage in ("read", "select", "local modes", "coarse maps"):
        assert stage in texts
    assert "karate.edges: 34 → 4 vertices" in texts


@pytest.mark.usefixtures("without_drawing")
def test_the_shown_command_reproduces_the_coarsening(tmp_path, capsys):
    path = tmp_path / "a signed graph.txt"
    edges = nx.karate_club_graph().edges
    path.write_text("".join(f"{u} {v} {-1 if u % 3 == 0 else 2}\n" for u, v in edges))
    saved, out = tmp_path / "c.npz", tmp_path / "r.html"
    options = ["--clusters", "4", "--rank", "2", "--dim", "2", "--seed", "3", "--signed"]
    more = ["--vertices", "36", "--out", str(saved), "--report", str(out)]
    assert main(["coarsen", str(path), *options, *more]) == 0
    first = sc.load(saved)
    parsed = Page(out.read_text(encoding="utf-8"))
    [command] = [text for text in parsed.texts if text.startswith("sheafcoarsen coarsen")]
    saved.unlink()
    assert main(shlex.split(command)[1:]) == 0
    again = sc.load(saved)
    assert again.sheaf.equals(first.sheaf)
    assert again.fine.n_vertices == 36
    assert command == shlex.join(["sheafcoarsen", "coarsen", str(path), *options, *more])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("r.pdf", "--report must name an .html file"),
        ("", "--report must name"),
        ("nowhere/r.html", "there is no folder"),
    ],
)
def test_bad_report_paths_stop_the_command_before_the_computation(
    name, message, graph_file, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "c.npz"
    assert run(graph_file, name, "--out", str(out)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert not out.exists()


def test_coarsen_command_stops_early_without_matplotlib(graph_file, tmp_path, capsys, monkeypatch):
    out = tmp_path / "r.html"
    out.write_text("precious")

    def missing():
        raise ImportError('plots need matplotlib: pip install "sheafcoarsen[plot]"')

    monkeypatch.setattr("sheafcoarsen.cli.outputs.check_matplotlib", missing)
    assert run(graph_file, out) == 2
    said = 'sheafcoarsen: plots need matplotlib: pip install "sheafcoarsen[plot]"\n'
    assert capsys.readouterr().err == said
    assert out.read_text() == "precious"


# ---------------------------------------------------------------- a real browser

BROWSER = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


needs_browser = pytest.mark.skipif(
    BROWSER is None, reason="no chromium here: the page is not looked at in a browser"
)


def browse(page_path, folder, *options):
    """Open a page in a browser, and return what it writes."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu"]
    command += [f"--user-data-dir={folder / 'profile'}", *options, page_path.as_uri()]
    return subprocess.run(command, check=True, capture_output=True, timeout=120).stdout.decode()


def screenshot(page_path, folder, *options):
    """Return the pixels of a page as a browser shows it, (height, width, 3) in 0 .. 1."""
    from matplotlib.image import imread

    picture = folder / "page.png"
    picture.unlink(missing_ok=True)
    size = ("--hide-scrollbars", "--window-size=1000,3600")
    browse(page_path, folder, f"--screenshot={picture}", *size, *options)
    return imread(picture)[:, :, :3]


@needs_browser
def test_a_browser_renders_the_page_in_light_and_dark_mode(page, tmp_path):
    light = screenshot(page[1], tmp_path)
    dark = screenshot(page[1], tmp_path, "--blink-settings=preferredColorScheme=0")
    margin_light, margin_dark = light[:, :10].mean(), dark[:, :10].mean()
    assert margin_light > 0.95
    assert margin_dark < 0.15
    # pictures have colours in both, and no white card shines out of the dark page
    bare = tmp_path / "bare.html"
    bare.write_text(re.sub("<img[^>]*>", "", page[1].read_text(encoding="utf-8")), encoding="utf-8")
    without = (np.ptp(screenshot(bare, tmp_path), axis=2) > 0.3).mean()
    for shown in (light, dark):
        assert (np.ptp(shown, axis=2) > 0.3).mean() > without + 0.002
    assert (dark.min(axis=2) > 0.9).mean() < 0.05
    assert (light.min(axis=2) > 0.9).mean() > 0.7
    # text stands out from the page in both
    head = slice(20, 400)
    assert light[head].min() < 0.35
    assert dark[head].max() > 0.8


@needs_browser
def test_a_browser_shows_hostile_labels_as_text(page, tmp_path):
    dom = browse(page[1], tmp_path, "--dump-dom")
    assert "&lt;script&gt;alert(1)" in dom
    assert "<script" not in dom
    assert "onerror=alert(2)>" not in dom


# ---------------------------------------------------------------- notebooks


@pytest.fixture(scope="module")
def objects():
    names = dict(enumerate(HOSTILE))
    C = coarsened(nx.relabel_nodes(nx.karate_club_graph(), names))
    x = np.random.default_rng(0).standard_normal((34, 12))
    H = sc.coarsen_levels(C.fine, factor=3, n_levels=2, rank=2)
    return {
        "CellularSheaf": (C.fine, ["34", "78", "float64", "vertex labels"]),
        "Partition": (C.partition, ["34", "4"]),
        "LocalModes": (C.modes, ["internal", "1 .. 3", "8 of 34"]),
        "Coarsening": (C, ["34", "fine", "coarse", "internal operator"]),
        "EnergyLedger": (sc.energy_ledger(C, x[:, 0]), ["retained internal", "closure"]),
        "EnergyLedger of many": (sc.energy_ledger(C, x), ["sums over 12 columns"]),
        "HierarchyLedger": (H.ledger(x[:, 0]), ["coarsest energy", "level 1: discarded crossing"]),
        "Hierarchy": (H, ["34", "12", "4", "nonzeros"]),
        "Pooling": (sc.HiSP(2, 4)(C.fine, x[:, :3]), ["34", "4", "3"]),
        "HiSP": (sc.HiSP(2, 4, seed=7), ["n_modes", "2", "7", "principal"]),
        "GlobalSections": (sc.global_sections(C.fine), ["h0", "1", "dense, 34 x 1, float64"]),
        "LaplacianPattern": (sc.LaplacianPattern(C.fine), ["csr", "34", "190"]),
        "Fixed": (sc.ranks.fixed(5), ["5"]),
        "WholeMultiplets": (sc.ranks.budget(9).whole_multiplets(), ["Budget(total=9)"]),
        "SpectralQuality": (
            sc.spectral_quality(C, 3),
            ["principal angle", "restricted similarity"],
        ),
        "Certificate": (sc.certificate(C), ["gamma", "mu"]),
        "Verification": (sc.verify(C), ["energy identity", "fact-1"]),
    }


def test_notebook_representations_are_small_tables(objects):
    for name, (obj, words) in objects.items():
        source = obj._repr_html_()
        parsed = Page(source)
        assert len(source) < 6000
        assert set(parsed.tags) <= {"table", "caption", "thead", "tbody", "tr", "th", "td", "p"}
        assert parsed.attributes == []  # no colours of its own, so that light and dark themes serve
        assert [word for word in words if word not in parsed.text] == []
        assert name == "Verification" or name.split()[0] in parsed.texts[0]


def test_notebook_tables_show_the_numbers_of_their_objects(objects):
    Q = objects["SpectralQuality"][0]
    texts = Page(Q._repr_html_()).texts
    assert f"{Q.fine[0]:.4g}" in texts
    assert f"{Q.coarse[0]:.4g}" in texts
    E = objects["EnergyLedger"][0]
    assert Page(E._repr_html_()).texts.count(f"{E.fine_energy:.4g}") == 1


def test_notebook_tables_of_large_objects_stay_small():
    v = np.arange(1000)
    G = nx.Graph()
    G.add_edges_from((f"{'long ' * 100}{i}", f"{'long ' * 100}{i + 1}") for i in range(99))
    F = sc.CellularSheaf.constant(G)
    large = sc.CellularSheaf.constant(np.stack([v[:-1], v[1:]], axis=1))
    C = sc.coarsen(large, sc.Partition(v // 5), 1)
    for obj in (
        F,
        large,
        C,
        C.partition,
        C.modes,
        sc.energy_ledger(C, np.ones((1000, 50))),
        sc.spectral_quality(C, 40),
    ):
        assert len(obj._repr_html_()) < 6000


# ---------------------------------------------------------------- a coarse Laplacian that is fuller


def test_a_coarse_laplacian_with_more_entries_is_noted(tmp_path, capsys):
    graph = nx.barabasi_albert_graph(120, 2, seed=3)
    F = sc.CellularSheaf.constant(graph)
    full = sc.coarsen(F, sc.select(F, 12), 5)
    remark = growth_of(full)
    sc.report(full, tmp_path / "r.html")
    page = html.unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert remark in page
    nx.write_edgelist(graph, tmp_path / "ba.edges", data=False)
    main(["coarsen", str(tmp_path / "ba.edges"), "--clusters", "12", "--rank", "5"])
    assert f"note    {remark}" in capsys.readouterr().out
    main(["coarsen", str(tmp_path / "ba.edges"), "--clusters", "12", "--rank", "1"])
    assert "note    " not in capsys.readouterr().out
