"""Pages about results: well formed, self-contained, escaped, and written whole or not at all."""

import base64
import dataclasses
import html
import html.parser
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure

import sheafcoarsen as sc
from sheafcoarsen.html_report._report import STYLE, _cluster_table, drawn
from sheafcoarsen.html_report.results import (
    SMOOTHING_STEPS,
    call_of,
    percent,
    smooth_cochain,
    spectra_of,
)
from tests.support.helpers import assert_residual
from tests.support.meshes import icosphere
from tests.unit.html_report.conftest import HOSTILE, KARATE, Page, coarsened

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)


def page_of(K, tmp_path, **options):
    passed = getattr(sc.report(K, tmp_path / "page.html", **options), "passed", None)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    Page(text)
    return text, passed


def levels(**options):
    F = sc.CellularSheaf.constant(nx.grid_2d_graph(6, 6))
    return sc.coarsen_levels(F, 3, 2, rank=2, **options)


def test_report_is_one_complete_html_page_without_external_resources(page):
    parsed, path = page
    tags = parsed.tags
    assert tags.count("html") == tags.count("body") == tags.count("h1") == 1
    assert tags.count("h2") == 8
    source = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|@import|url\(", source)
    assert not {"script", "link", "iframe", "object"} & set(tags)
    for name, value in parsed.attributes:
        assert not name.startswith("on")
        if name in ("src", "href"):
            assert value.startswith("data:image/svg+xml;base64,")


def screenshot(page_path, folder, *options):
    """Return the pixels of a page as a browser shows it, (height, width, 3) in 0 .. 1."""
    from matplotlib.image import imread

    picture = folder / "page.png"
    picture.unlink(missing_ok=True)
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    command += ["--window-size=1000,3600", f"--user-data-dir={folder / 'profile'}"]
    command += [f"--screenshot={picture}", *options, page_path.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return imread(picture)[:, :, :3]


@pytest.mark.skipif(BROWSER is None, reason="no chromium here")
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


def test_pictures_have_alternative_texts(page):
    images = page[0].images
    assert len(images) == 4
    for image in images:
        assert len(image["alt"]) > 20
        picture = base64.b64decode(image["src"].split(",", 1)[1])
        assert b"<svg" in picture
        assert len(picture) > 5000
    assert len({image["src"] for image in images}) == 4


def test_vertex_labels_are_escaped(page):
    for label in HOSTILE[:3]:
        assert label[:39] in page[0].text
    assert not [name for name, value in page[0].attributes if value and "alert" in value]


def test_page_shows_sizes_checks_losses_times_and_versions(page, C):
    text, texts = page[0].text, set(page[0].texts)
    for number in (C.fine.n_vertices, C.fine.n_edges, C.sheaf.dim_c0, C.sheaf.dim_c1):
        assert f"{number}" in text
    for check in sc.verify(C).checks:
        assert {check.name, check.label, check.verdict} <= texts
    assert {"retained internal", "discarded crossing", "closure", "mu"} <= texts
    (meaning,) = (text for text in texts if "first discarded eigenvalue of a cluster" in text)
    assert {"lambda", "nu", *vars(sc.certificate(C))} <= set(re.findall(r"\w+", meaning))
    assert {"restricted similarity", "coarsen <it>", "1.250 s"} <= texts
    assert {"<name>: 34 → 4 vertices", "<name>", "type <this>"} <= texts
    for step in ("verification", "losses", "eigenvalues", "pictures"):
        assert f"this report: {step}" in texts
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d[+-]\d\d:\d\d", text)
    for name in ("sheafcoarsen", "numpy", "numba"):
        assert f"{name} {importlib.metadata.version(name)}" in text


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
    drawn(lambda ax: seen.append(sc.plot.spectra(C, ax=ax)) or ax, size=(7.5, 4.2))
    [ax] = seen
    assert 0 < ax.get_legend().get_window_extent().y1 < ax.bbox.y0


def test_clusters_of_a_mesh_are_drawn_on_its_faces(tmp_path, monkeypatch):
    points, faces = icosphere(2)
    F = sc.gallery.tangent_bundle(points, faces)
    H = sc.coarsen_levels(F, 5, 2, rank=2)
    seen = pictures(H, tmp_path, monkeypatch, pos=points, faces=faces, up="y")
    fine, coarse = ([*ax.child_axes] for _, ax in seen if ax.child_axes)
    assert "faces" in [c.get_label() for c in fine[0].collections]
    assert "vertices" in [c.get_label() for c in coarse[0].collections]
    alone = sc.plot.partition(H[0], points, faces, up="y", ax=Figure().subplots())
    assert alone.child_axes[0].get_xlim() == fine[0].get_xlim()
    with pytest.raises(ValueError, match="`faces` require clusters, but got .* Elimination"):
        sc.report(sc.eliminate(F), tmp_path / "r.html", pos=points, faces=faces)


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
    parsed = Page(page_of(make(), tmp_path)[0])
    assert said in parsed.text
    assert len(parsed.images) == n_images


@pytest.mark.usefixtures("without_drawing")
def test_eigenvalues_of_large_sheaves_are_omitted_with_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr("sheafcoarsen.html_report.results.QUALITY_BELOW", 1199)
    v = np.arange(1200)
    F = sc.CellularSheaf.constant(np.stack([v, (v + 1) % 1200], axis=1))
    parsed = Page(page_of(sc.coarsen(F, sc.Partition(v // 12), 2), tmp_path)[0])
    assert "left out, because dim C^0 = 1,200 is above 1,199" in parsed.text
    assert "The first 20 of 100 clusters" in parsed.texts


@pytest.mark.parametrize(
    ("n_clusters", "options", "shown"),
    [
        (4, {"rank": 2}, "rank=2,"),
        (4, {"rank": 3, "local_operator": "principal", "loops": False}, "loops=False"),
        (4, {"rank": 2, "compress": True}, "compress=True"),
        (4, {"rank": 2, "local_operator": "oversampled", "rings": 2, "target": 0.5}, "rings=2"),
        (4, {"rank": sc.ranks.kernel()}, "rank=sc.ranks.kernel(),"),
        (4, {"rank": sc.ranks.budget(11)}, "rank=["),
        (4, {"rank": [0, 1, 4, 1]}, "rank=[0, 1, 4, 1],"),
        (24, {"rank": 2}, "rank=2,"),  # most clusters are single vertices, of dimension 1
        (24, {"rank": np.arange(24) % 2}, "rank=C.ranks,"),
    ],
)
def test_the_shown_call_reproduces_the_coarsening(n_clusters, options, shown):
    P = sc.select(KARATE, n_clusters)
    C = sc.coarsen(KARATE, P, **options)
    assert shown in call_of(C)
    again = eval(call_of(C), {"sc": sc, "F": KARATE, "P": P, "C": C})
    assert again.sheaf.equals(C.sheaf)


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


def test_every_colour_has_a_dark_mode_value():
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)
    names = set(re.findall(r"--\w+", light))
    assert names == set(re.findall(r"--\w+", dark))
    assert set(re.findall(r"var\((--\w+)\)", STYLE)) <= names


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


def damaged(C):
    """Return a coarsening, an elimination or a hierarchy with wrong numbers."""
    if isinstance(C, sc.Hierarchy):
        return dataclasses.replace(C, levels=(C[0], damaged(C[1])))
    if isinstance(C, sc.Elimination):
        blocks = C.steps.blocks.copy()
        blocks[3] += 0.5
        return dataclasses.replace(C, steps=C.steps._replace(blocks=blocks))
    wrong = C.sheaf.with_maps(1.01 * C.sheaf.tail_data, C.sheaf.head_data)
    return dataclasses.replace(C, sheaf=wrong)


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (coarsened, r"(?s)\d+ of \d+ checks of the theory FAILED.*What went in"),
        (levels, r"(?s)\d+ of \d+ checks of the theory FAILED.*<h2>"),
        (lambda: sc.eliminate(KARATE), '(?s)(?=.*a check FAILED).*<p class="failed">Verification:'),
    ],
    ids=["coarsening", "hierarchy", "elimination"],
)
def test_a_failed_check_is_reported_at_the_top_of_the_page(make, said, tmp_path):
    text, passed = page_of(damaged(make()), tmp_path)
    assert not passed
    assert re.search(said, text)


@pytest.mark.usefixtures("without_drawing")
def test_a_hierarchy_with_elimination_has_no_energy_ledger(tmp_path):
    H = levels(eliminate=True)
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
    drawn = [ax for _, ax in seen if ax.child_axes]
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
    drawn = [c.get_segments() for c in ax.collections if hasattr(c, "get_segments")]
    assert set(map(tuple, np.concatenate(drawn).reshape(-1, 2))) == set(map(tuple, places))
    with pytest.raises(ValueError, match="`pos` must hold two or three real coordinates"):
        sc.report(S, tmp_path / "r.html", pos=places[1:])


def test_identifiers_are_printed_without_commas(tmp_path):
    F = sc.gallery.bundle(nx.cycle_graph(1200), 2, noise=0.1, seed=0)
    S = sc.synchronize(F.with_labels(range(5000, 6200)))
    worst = page_of(S, tmp_path, name="ring")[0].partition("<h2>Worst edges</h2>")[2]
    start, end = S.edges[S.outliers()[0]]
    assert f"<td>{S.outliers()[0]}</td><td>{5000 + start}</td><td>{5000 + end}</td>" in worst


@pytest.mark.parametrize("options", [{}, {"refine": True}, {"robust": "tls"}, {"start": None}])
def test_the_call_of_synchronized_poses_can_be_run(options, tmp_path):
    F = sc.gallery.bundle(nx.cycle_graph(6), 2, seed=0)
    plain = sc.synchronize(F)
    if "start" in options:
        options = {"start": plain.rotations}
    S = sc.synchronize(F, **options)
    call = re.search(r"sc\.synchronize\(.*?\)", html.unescape(page_of(S, tmp_path)[0]))
    again = eval(call[0].replace("...", "plain.rotations"))
    assert (again.method, len(again.costs)) == (S.method, len(S.costs))
    assert (again.weights is None) == (S.weights is None)


def test_a_failed_report_leaves_the_old_page_intact(C, tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("precious")

    def fails(*args, **options):
        raise OSError("no space left")

    for place in ("html_report._report.verify", "plot.spectra", "_support.files.os.fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(f"sheafcoarsen.{place}", fails)
            with pytest.raises(OSError, match="no space left"):
                sc.report(C, path)
        assert (os.listdir(tmp_path), path.read_text()) == (["r.html"], "precious")
    sc.report(C, path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert os.listdir(tmp_path) == ["r.html"]


@pytest.mark.parametrize(
    ("where", "options", "error", "message"),
    [
        ("nowhere/r.html", {}, FileNotFoundError, "there is no folder"),
        ("", {}, IsADirectoryError, "is a folder"),
        (3, {}, TypeError, "`path` must be a path"),
        ("r.html", {"name": 3}, TypeError, "`name` must be a string, got int"),
        ("r.html", {"C": KARATE}, TypeError, "`C` must be a Coarsening, got CellularSheaf"),
    ],
)
def test_bad_arguments_raise_before_the_computation(
    where, options, error, message, C, tmp_path, monkeypatch
):
    monkeypatch.setattr("sheafcoarsen.html_report._report.verify", None)
    path = tmp_path / where if isinstance(where, str) else where
    with pytest.raises(error, match=message):
        sc.report(**{"C": C, "path": path} | options)


def test_report_does_not_import_pyplot(tmp_path):
    code = (
        "import sheafcoarsen as sc, sys; F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]]);"
        "sc.report(sc.coarsen(F, sc.Partition([0, 0, 1, 1]), 2), sys.argv[1]); "
        "sys.exit('matplotlib.pyplot' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "r.html")], check=True)


@pytest.fixture
def words_of(tmp_path, without_drawing):
    return lambda C, **options: html.unescape(page_of(C, tmp_path, **options)[0])


@pytest.fixture
def sentence_of(words_of):
    return lambda C: re.search(r'<p class="verdict">(.*?)</p>', words_of(C))[1]


def coarsening():
    F = sc.CellularSheaf.constant(nx.cycle_graph(12))
    return sc.coarsen(F, sc.Partition(np.arange(12) // 3), 2)


def test_energies_and_spectra_match_the_results_of_the_library(words_of):
    C = coarsening()
    rough, smooth = (sc.energy(C.fine, x(C.fine)) for x in (rough_cochain, smooth_cochain))
    assert smooth < rough
    assert f"<th>fine energy</th><td>{smooth:.4g}</td>" in words_of(C)
    Q, B = spectra_of(C)
    np.testing.assert_array_equal(Q.fine, sc.spectral_quality(C, 8).fine)
    assert B.gamma == sc.certificate(C).gamma


def test_losses_of_the_cochains_of_the_user_are_shown(words_of):
    C = coarsening()
    x = np.random.default_rng(1).standard_normal((12, 2))
    for given, words in ((x, "the 2 columns of x, which the picture adds up,"), (5 * x[:, 0], "x")):
        E = sc.energy_ledger(C, given)
        kept = 1 - E.discarded_norm2.sum() / np.linalg.norm(given) ** 2
        page = words_of(C, x=given)
        assert f"{percent(kept)} of the squared norm of x is kept" in page
        assert f"The energy norm(delta x)^2 of {words} and" in page
        energies = "".join(f"<td>{value:.4g}</td>" for value in np.atleast_1d(E.fine_energy))
        assert f"<th>fine energy</th>{energies}" in page
        H = sc.coarsen_levels(C.fine, partitions=[C.partition], rank=2)
        assert f"{percent(kept)} of the squared norm of x is kept" in words_of(H, x=given)
    with pytest.raises(ValueError, match="`x` requires a coarsening or a hierarchy, but got .* El"):
        words_of(sc.eliminate(C.fine, keep=[0]), x=x)
    with pytest.raises(ValueError, match="`x` must have shape"):
        words_of(C, x=x[:3])
    page = words_of(C, x=1e-200 * x[:, 0])  # whose squared norm underflows
    kept = np.linalg.norm(C.pool(x[:, 0])) ** 2 / np.linalg.norm(x[:, 0]) ** 2
    assert f"{percent(kept)} of the squared norm of x is kept" in page


def rough_cochain(F):
    """Return the random cochain of norm 1 that `smooth_cochain` begins with."""
    x = np.random.default_rng(0).standard_normal(F.dim_c0).astype(F.dtype)
    return x / np.linalg.norm(x)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [(np.float32, 1.0), (np.complex128, 1.0), (np.float64, 1e-100), (np.float64, 1e100)],
)
def test_smooth_cochain_has_low_energy_after_steps_divided_by_row_sums(dtype, scale):
    F = sc.gallery.bundle(nx.grid_2d_graph(9, 9), 2, seed=0)
    F = F.with_maps(*((scale * data).astype(dtype) for data in (F.tail_data, F.head_data)))
    rough, smooth = rough_cochain(F), smooth_cochain(F)
    L = sc.laplacian(F).toarray()
    step = np.eye(162) - L / np.abs(L).sum(axis=1)[:, None]
    expected = np.linalg.matrix_power(step, SMOOTHING_STEPS) @ rough
    assert smooth.dtype == dtype
    for x in (rough, smooth):
        assert_residual(np.linalg.norm(x) - 1, n=162, eps=np.finfo(dtype).eps)
    assert_residual(smooth - expected / np.linalg.norm(expected), smooth, n=162)
    assert sc.energy(F, smooth) < 0.05 * sc.energy(F, rough)
    np.testing.assert_array_equal(smooth, smooth_cochain(F))


def test_smoothing_without_edges_changes_nothing():
    F = sc.CellularSheaf.constant(np.zeros((0, 2), int), n_vertices=3)
    np.testing.assert_allclose(smooth_cochain(F), rough_cochain(F), rtol=1e-15)


def karate(rank):
    return sc.coarsen(KARATE, sc.select(KARATE, 5), rank)


def test_verdict_has_the_numbers_of_the_coarsening(sentence_of):
    C = karate(3)
    said = sentence_of(C)
    Q = sc.spectral_quality(C, 10)
    assert f"up to {percent(Q.relative_errors.max())} too high" in said
    assert f"({percent(np.median(Q.relative_errors))} in the median)" in said
    assert "all zero eigenvalues stay" in said
    assert f"dim C^0 is {C.sheaf.dim_c0} instead of 34" in said
    entries = sc.laplacian(C.sheaf).nnz
    assert f"the Laplacian is smaller than it was, {entries} entries instead of 190" in said
    assert re.search(r"all \d+ checks of the theory that apply passed", said)
    assert said.endswith(".")


def test_large_errors_in_the_verdict_are_ratios_of_eigenvalues(sentence_of):
    P = sc.Partition(np.arange(64) // 16)
    C = sc.coarsen(sc.CellularSheaf.constant(nx.cycle_graph(64)), P, 1)
    Q = sc.spectral_quality(C, 4)
    ratios = (Q.coarse / Q.fine)[np.isfinite(Q.coarse)]
    assert ratios.max() > 11
    said = sentence_of(C)
    assert f"up to {ratios.max():,.3g} times the fine ones ({np.median(ratios):,.3g} times" in said


def test_verdict_reports_a_larger_laplacian_and_lost_sections_and_eigenvalues(sentence_of):
    star, path = (sc.CellularSheaf.constant(G) for G in (nx.star_graph(30), nx.path_graph(8)))
    larger = sc.coarsen(star, sc.Partition(np.arange(31) // 4), 3)
    assert "the Laplacian is LARGER than it was" in sentence_of(larger)
    U = [np.array([[1.0], [-1.0]]) / np.sqrt(2)] * 4
    said = sentence_of(sc.coarsen(path, sc.Partition(np.arange(8) // 2), basis=U))
    assert "1 zero eigenvalues are lost" in said
    assert "more have no coarse value" in said


def test_verdict_without_an_isometry_or_eigenvalues(sentence_of):
    C = karate(1)
    doubled = sc.coarsen(C.fine, C.partition, basis=[2 * C.block(a) for a in range(5)])
    assert "is not known, because R is not an isometry" in sentence_of(doubled)
    none = sc.coarsen(C.fine, C.partition, basis=[C.block(a)[:, :0] for a in range(5)])
    assert "eigenvalue" not in sentence_of(none)


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.5, "50 %"),
        (0.12345, "12.3 %"),
        (0.9996, "99.96 %"),
        (1.0, "100 %"),
        (0.0, "0 %"),
        (4.321, "432 %"),
        (9.996, "10 times"),
        (15750.4, "15,750 times"),
        (1 - 1e-7, "99.99999 %"),
        (1 - 2**-53, "99.99999999999999 %"),
    ],
)
def test_percentages_below_one_hundred_do_not_round_to_it(share, shown):
    assert percent(share) == shown
