"""What all pictures share, read back from the artists, never from pixels; colours."""

import dataclasses
import itertools
import subprocess
import sys
from types import MappingProxyType

import matplotlib as mpl
import networkx as nx
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

import sheafcoarsen as sc
from sheafcoarsen import plot
from sheafcoarsen.plot.draw import NEGATIVE, cluster_colors, number_colors, palette, title
from tests.support.errors import raises, rows

pytestmark = pytest.mark.filterwarnings("ignore::sheafcoarsen.TiedModesWarning")

PICTURES = ("partition", "spectra", "ledger", "quality", "hierarchy")
MORE = ("modes", "elimination", "poses", "surface", "field")
CHAIN = sc.PoseGraph([[0, 1], [1, 2]], np.tile(np.eye(2), (2, 1, 1)), [[1.0, 0.0], [1.0, 1.0]])


def cochain(C, columns=None):
    shape = (C.fine.dim_c0,) if columns is None else (C.fine.dim_c0, columns)
    return np.random.default_rng(3).standard_normal(shape)


def collections(panel):
    return {collection.get_label(): collection for collection in panel.collections}


def note_of(panel):
    """Return the text below a panel, without its line breaks."""
    return " ".join(panel.get_xlabel().split())


def draw(ax):
    """Draw everything, as saving it would."""
    ax.figure.draw_without_rendering()


def overlapping_texts(panel):
    """Return pairs of words that cover each other by more than a pixel, without their lines."""
    draw(panel)
    boxes = {text: Text.get_window_extent(text).padded(-0.5) for text in panel.texts}
    pairs = itertools.combinations(panel.texts, 2)
    return [(a.get_text(), b.get_text()) for a, b in pairs if boxes[a].overlaps(boxes[b])]


def names_in(panel):
    """Draw a panel, and return its texts without the bold numbers of clusters."""
    draw(panel)
    return [text for text in panel.texts if text.get_weight() != "bold"]


def gaps(text, places):
    """Return the distances of a word, without its line, from positions, in pixels."""
    low, high = Text.get_window_extent(text).extents.reshape(2, 2)
    at = text.axes.transData.transform(places)
    return np.linalg.norm(np.maximum(low - at, at - high).clip(0), axis=1)


def all_pictures(C):
    """Return the functions that draw each kind of picture, of one coarsening."""
    H = sc.Hierarchy(C.fine, (C,))
    return {
        "partition": lambda ax: plot.partition(C, ax=ax),
        "spectra": lambda ax: plot.spectra(C, ax=ax),
        "ledger": lambda ax: plot.ledger(sc.energy_ledger(C, cochain(C)), ax=ax),
        "quality": lambda ax: plot.quality(sc.spectral_quality(C, 2), sc.certificate(C), ax=ax),
        "hierarchy": lambda ax: plot.hierarchy(H, ax=ax),
        "modes": lambda ax: plot.modes(sc.eigenmodes(C.fine, 1), ax=ax),
        "elimination": lambda ax: plot.elimination(sc.eliminate(C.fine), ax=ax),
        "poses": lambda ax: plot.poses(sc.synchronize(CHAIN), ax=ax),
        "surface": lambda ax: plot.surface(np.eye(3), [[0, 1, 2]], ax=ax),
        "field": lambda ax: plot.field(np.eye(3), [[0, 1, 2]], np.eye(3), ax=ax),
    }


@pytest.mark.parametrize("name", PICTURES)
def test_plots_draw_into_given_axes_and_return_them(name, C, ax):
    """Also into axes that share x with those of another plot, and have its ticks."""
    before = dict(mpl.rcParams)
    ax.set_xticks([0, 1])
    assert all_pictures(C)[name](ax) is ax
    draw(ax)
    assert dict(mpl.rcParams) == before
    for panel in ax.child_axes or [ax]:
        assert panel.get_title()
        if name != "partition":
            assert panel.get_xlabel()
            assert panel.get_ylabel() or [label.get_text() for label in panel.get_yticklabels()]
    with pytest.raises(TypeError, match="must be an? .*, got str"):
        getattr(plot, name)("C")


@pytest.mark.parametrize("width", [9, 16, 20])
@pytest.mark.parametrize("name", ["partition", "elimination", "spectra", "quality"])
def test_legends_of_small_axes_are_not_wider_than_the_axes(name, width, C):
    axes = Figure(figsize=(width, 5)).subplots(1, 2)
    ax = all_pictures(C)[name](axes[0])
    draw(ax)
    for panel in ax.child_axes or [ax]:
        if legend := panel.get_legend():
            shown = legend.get_window_extent()
            own = panel.get_window_extent()
            columns = len({round(text.get_window_extent().x0) for text in legend.get_texts()})
            assert columns == 1 or own.x0 - 1 < shown.x0 < shown.x1 < own.x1 + 1


@pytest.mark.parametrize("name", [*PICTURES, "modes", "elimination", "field"])
def test_titles_of_panels_of_two_inches_do_not_overlap(name, C):
    def titles(ax):
        panels = [ax] if name == "modes" else ax.child_axes or [ax]
        return [panel.title for panel in panels]

    wide = all_pictures(C)[name](Figure(figsize=(16, 8)).subplots())
    whole = [title.get_text() for title in titles(wide)]
    axes = Figure(figsize=(7, 2)).subplots(1, 3)
    for ax in axes:
        all_pictures(C)[name](ax)
        assert [" ".join(title.get_text().split()) for title in titles(ax)] == whole
    draw(axes[0])
    extents = [title.get_window_extent() for ax in axes for title in titles(ax)]
    for one, following in itertools.pairwise(extents):
        assert one.width > 0
        assert one.x1 <= following.x0


@pytest.mark.parametrize("name", ["partition", "elimination"])
@pytest.mark.parametrize("layout", [None, "constrained"])
def test_names_cover_no_other_text_and_stay_inside_of_the_axes(name, layout):
    names = [f"{'at the frame: ' * (v not in range(2, 6))}name {v}" for v in range(8)]
    F = sc.CellularSheaf.constant(nx.path_graph(names))
    pos = np.array([[0, 0], [0, 9], [4, 4], [4, 5], [5, 4], [5, 5], [9, 0], [9, 9]])
    ax = Figure(figsize=(10, 6), layout=layout).subplots()
    if name == "partition":
        plot.partition(sc.coarsen(F, sc.select(F, 3), 1), pos, ax=ax)
    else:
        plot.elimination(sc.eliminate(F, keep=names), pos, names=names, ax=ax)
    draw(ax)
    for panel in ax.child_axes:
        boxes = [text.get_window_extent() for text in panel.texts]
        assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
        assert panel.bbox.count_contains(np.concatenate(boxes)) == 2 * len(boxes)


@pytest.mark.parametrize("picture", ["partition", "elimination"])
@pytest.mark.parametrize(
    ("names", "chosen", "shown"),
    [
        (list("dbcafe"), None, list("dbcafe")),
        ([0, "x", 2, "y"], None, ["x", "y"]),
        (range(6), None, []),
        ([f"v{v}" for v in range(21)], None, []),
        ([f"v{v}" for v in range(60)], ["v40", "v3"], ["v40", "v3"]),
        (range(60), [40, 3], [40, 3]),
    ],
)
def test_names_of_a_few_or_of_chosen_vertices_stand_at_their_vertices(
    names, chosen, shown, picture, ax
):
    n, last = len(names), names[3]
    F = sc.CellularSheaf.constant(nx.path_graph(names))
    where = {name: (float(v), float(v % 7)) for v, name in enumerate(names)}
    retained, numbers = [], 0
    if picture == "partition":
        C = sc.coarsen(F, sc.Partition(np.arange(n) // 2), 1)
        plot.partition(C, MappingProxyType(where), names=chosen, ax=ax)
        numbers = C.partition.n_clusters if n < 40 else 0
    else:
        plot.elimination(sc.eliminate(F, keep=[last]), where, names=chosen, ax=ax)
        retained = [last] if chosen or isinstance(last, str) else []
    for panel, expected in zip(ax.child_axes, (shown, retained), strict=True):
        words = names_in(panel)
        found = [(text.get_text(), text.xy) for text in words]
        assert found == [(str(name), where[name]) for name in expected]
        assert len(panel.texts) == len(words) + numbers


@pytest.mark.parametrize(("width", "n"), [(10, 3), (20, 132)])
def test_names_are_nearer_to_their_vertex_than_to_others_or_have_a_line(width, n):
    pos = np.random.default_rng(0).random((132, 2))
    if n == 3:
        pos = np.array([[0.0, 0.0], [0.3, 0.0], [10.0, 0.0]])
    F = sc.CellularSheaf.constant(nx.path_graph(n))
    names = np.arange(n)[: 2 if n == 3 else n]
    ax = Figure(figsize=(width, 0.45 * width)).subplots()
    plot.partition(sc.coarsen(F, sc.Partition(np.arange(n) // 44), 1), pos, names=names, ax=ax)
    nearer, words = 0, names_in(ax.child_axes[0])
    assert [text.get_text() for text in words] == [str(v) for v in names]
    for v, text in enumerate(words):
        distances = gaps(text, pos)
        if distances.min() < distances[v]:
            assert text.arrow_patch is not None
            nearer += 1
    assert nearer == 0 if n == 3 else nearer > 5


def test_names_in_a_dense_graph_touch_no_other_vertex_and_their_lines_do_not_cross():
    F = sc.CellularSheaf.constant(nx.les_miserables_graph())
    C = sc.coarsen(F, sc.select(F, 8, method="spectral", seed=6), 1)
    few = ["Javert", "Valjean", "Marius", "Gavroche", "Cosette"]
    for names, size, crowded in ((F.vertex_labels, (22, 11), 2), (few, (12, 6), 0)):
        ax = Figure(figsize=size).subplots()
        plot.partition(C, names=names, ax=ax)
        words = names_in(ax.child_axes[0])
        nearer, lines = [], []
        for v, text in enumerate(words):
            distances = gaps(text, [word.xy for word in words])
            if text.arrow_patch is not None:
                at = text.axes.transData.transform(text.xy)
                lines.append((at, at.clip(*Text.get_window_extent(text).extents.reshape(2, 2))))
            elif distances.min() < distances[v]:
                nearer.append(text.get_text())
        assert len(nearer) <= crowded
        assert not [(p, q) for p, q in itertools.combinations(lines, 2) if crossing(*p, *q)]


def crossing(a, b, c, d):
    """Return whether the line from a to b crosses that from c to d."""

    def side(p, q, r):
        return np.sign(np.cross([*(q - p), 0], [*(r - p), 0])[2])

    return side(a, b, c) != side(a, b, d) and side(c, d, a) != side(c, d, b)


@pytest.mark.parametrize(("gap", "line"), [(1, False), (4, True)])
def test_names_on_one_line_are_half_a_character_apart(gap, line):
    """Names of two vertices stand between them, unless "8" and "13" would read 813."""
    ax = Figure(dpi=72).subplots()
    panel = ax.inset_axes((0, 0, 1, 1))
    panel.set(xlim=(0, ax.bbox.width), ylim=(0, ax.bbox.height))
    words = [plot.draw.text(panel, word, np.zeros(2), np.zeros(2)) for word in ("8", "13")]
    widths = [word.get_window_extent().width for word in words]
    for word in words:
        word.remove()
    places = np.array([[50.0, 50.0], [50 + 8 + sum(widths) + gap + 8, 50]])
    right, left = np.array([[8, 0, 1]]), np.array([[-8, 0, -1], [0, 11, 0]])
    plot.draw.write(panel, [("8", [(0, right)]), ("13", [(1, left)])], places)
    assert [word.get_text() for word in panel.texts] == ["8", "13"]
    assert [word.xyann[1] == 0 for word in panel.texts] == [True, line]


def test_titles_are_broken_between_words_and_outside_of_formulas():
    ax = Figure().add_axes((0, 0, 0.05, 1))
    title(ax, r"a word $\delta \delta \delta \delta x$ b c", 12, pad=3)
    assert ax.get_title() == "a\nword\n$\\delta \\delta \\delta \\delta x$\nb c"
    assert ax.title.get_fontsize() == 8
    title(ax, "short", 7)
    assert (ax.get_title(), ax.title.get_fontsize()) == ("short", 7)
    ax = Figure().subplots()
    title(ax, "one line", 12)
    assert (ax.get_title(), ax.title.get_fontsize()) == ("one line", 12)


@pytest.mark.parametrize("name", PICTURES + MORE)
def test_plots_without_axes_create_a_figure(name):
    """Also of one cluster."""
    from matplotlib import pyplot

    F = sc.CellularSheaf.constant(nx.path_graph(5))
    ax = all_pictures(sc.coarsen(F, sc.Partition([0] * 5), 2))[name](None)
    try:
        assert isinstance(ax, Axes)
        assert pyplot.get_fignums() == [ax.figure.number]
        draw(ax)
    finally:
        pyplot.close(ax.figure)


WRONG = """
plot.elimination("K") -> TypeError: `K` must be an Elimination, got str
plot.elimination(sc.eliminate(C.fine), pos, up="w") -> `up` must be
plot.ledger("E") -> TypeError: `E` must be an EnergyLedger or a HierarchyLedger, got str
plot.modes(C.fine) -> TypeError: `E` must be an Eigenmodes, got CellularSheaf
plot.modes(sc.eigenmodes(C.fine, 1), pos, FACE) -> `pos` must have shape (n, 3), got (34, 2)
plot.partition(named, names=["w"]) -> `names[0]` = 'w' is not the name of a vertex
plot.partition(C, np.zeros((33, 2))) -> for each of 34 vertices, got shape (33, 2)
plot.partition(C, np.where(np.arange(68).reshape(34, 2) == 9, np.nan, 0)) -> `pos` must be finite,
        got nan at index (4, 1): give this vertex a position
plot.partition(C, (np.zeros((34, 3)), np.zeros((5, 3), int))) -> must hold the points of a mesh
        only, got several arrays: pass `points` of `points, faces = read_mesh(path)`
plot.partition(C, dict.fromkeys(range(33), (0, 0))) -> but lacks 33: add one, or omit `pos`
plot.partition(C, dict.fromkeys(range(34), (0, 0)) | {5: None}) -> vertex, but `pos[5]` is None
plot.partition(C, dict.fromkeys(range(34), (0.0, np.nan))) -> `pos[0]` is (0.0, nan)
plot.partition(C, None, FACE) -> `faces` require positions in space
plot.spectra(own) -> a basis of your own has no local spectra
plot.spectra(C, ax=Figure()) -> TypeError: `ax` must be matplotlib axes, got Figure
plot.poses(CHAIN.sheaf) -> TypeError: `S` must be a Synchronization or a PoseGraph, got Cell
plot.poses(sc.synchronize(CHAIN.sheaf)) -> `S` must have translations, but a sheaf was
plot.poses(CHAIN) -> `S` is a pose graph without poses: compute them
plot.poses(known, outliers=1) -> TypeError: `outliers` requires a Synchronization
plot.surface(np.eye(3), FACE, ax=Figure().add_subplot(projection="polar")) -> or axes with
        projection="3d", got axes with projection='polar'
"""
FACE = [[0, 1, 2]]


def test_invalid_arguments_raise(C):
    """With the right article: an E is a letter that is spoken as one."""
    S, pos = sc.synchronize(CHAIN), np.zeros((34, 2))
    known = dataclasses.replace(CHAIN, poses=(S.rotations, S.translations))
    named = sc.coarsen(C.fine.with_labels([f"v{v}" for v in range(34)]), C.partition, 1)
    own = sc.coarsen(C.fine, C.partition, basis=[C.modes.basis(a) for a in range(4)])
    given = {"C": C, "pos": pos, "known": known, "named": named, "own": own}
    for call, error in rows(WRONG):
        with raises(error):
            eval(call, globals() | given)
    for name in (*PICTURES, "modes", "elimination", "poses"):
        with raises("ValueError: `ax` must be plane axes, got axes with projection='3d'"):
            all_pictures(C)[name](Figure().add_subplot(projection="3d"))


def test_many_clusters_are_drawn_as_one_rasterized_collection(ax, monkeypatch):
    """So many that lines are left out, which is said; every vertex is there."""
    monkeypatch.setattr("sheafcoarsen.plot.draw.LINES", 2_900)
    n = 3_000
    v = np.arange(n)
    F = sc.CellularSheaf.constant(np.stack([v, (v + 1) % n], axis=1))
    C = sc.coarsen(F, sc.Partition(v // 3), 1)
    plot.partition(C, np.stack([np.cos(v / n), np.sin(v / n)], axis=1), ax=ax)
    fine, coarse = map(collections, ax.child_axes)
    assert len(coarse["vertices"].get_offsets()) == 1_000
    assert len(fine["vertices"].get_offsets()) == n
    assert coarse["vertices"].get_rasterized()
    assert "internal edges" not in fine
    assert "3,000 edges not drawn" in note_of(ax.child_axes[0])
    draw(ax)
    own = Figure().subplots()
    plot.spectra(C, ax=own)
    assert len(collections(own)["kept"].get_offsets()) == 1_000
    draw(own)


@pytest.mark.parametrize(
    ("graph", "most"),
    [
        (nx.complete_graph(30), 30),
        (nx.star_graph(5000), 6),
        (nx.grid_2d_graph(70, 70), 6),
        (nx.barabasi_albert_graph(3000, 4, seed=3), 12),
        (nx.empty_graph(4), 6),
    ],
    ids=["complete", "star", "grid", "scale-free", "empty"],
)
def test_colouring_clusters_takes_few_colours(graph, most):
    graph = nx.convert_node_labels_to_integers(graph)
    pairs = np.array(graph.edges, dtype=int).reshape(-1, 2)
    loops = np.repeat(np.arange(3)[:, None], 2, axis=1)
    colors = cluster_colors(np.concatenate([pairs, loops]), len(graph))
    assert len(np.unique(colors, axis=0)) <= most
    differences = np.abs(colors[pairs[:, 0]] - colors[pairs[:, 1]]).max(axis=1)
    assert differences.min(initial=1) > 0.02


def test_palette_colours_are_distinct():
    colors = palette(200)
    assert colors.shape == (200, 4)
    distances = np.abs(colors[:, None] - colors[None]).max(axis=2) + np.eye(200)
    assert distances.min() > 0.004
    # an eighth of the distance between black and white
    distances = np.linalg.norm(colors[:20, None] - colors[:20], axis=2) + np.eye(20)
    assert distances.min() > np.sqrt(3) / 8
    # none is as near to the red of negative edges as crimson, "#D74267"
    assert np.linalg.norm(colors[:20, :3] - mpl.colors.to_rgb(NEGATIVE), axis=1).min() > 0.45
    np.testing.assert_array_equal(palette(3), colors[:3])
    assert palette(0).shape == (0, 4)
    assert len(np.unique(palette(400), axis=0)) == 400


@pytest.mark.parametrize(
    ("values", "ends"),
    [
        ([-1.0, 3.0, 0.0], (-3, 3)),
        ([-5.0, 1e-3], (-5, 5)),
        ([-1e-300, 1e-300], (-1e-300, 1e-300)),
        ([0.0, 2.0], (0, 2)),
        ([-2.0, -1.0], (-2, -1)),
        ([-1.0, 0.0], (-1, 0)),
        ([2.0, 2.0], (2, 2)),
        ([], (0, 1)),
    ],
)
def test_colour_maps_of_both_signs_are_centred_at_zero_and_others_sequential(values, ends):
    cmap, norm = number_colors(np.array(values))
    assert cmap.name == ("RdBu_r" if ends[0] == -ends[1] else "viridis")
    assert (norm.vmin, norm.vmax) == ends
    assert np.isfinite(norm(ends[1]))


def test_importing_the_library_does_not_load_matplotlib():
    code = "import sys, sheafcoarsen as sc; sc.plot.ledger; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", PICTURES + MORE)
def test_import_error_without_matplotlib_says_what_to_install(name, C, monkeypatch):
    picture = all_pictures(C)[name]
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # importing it fails
    with pytest.raises(ImportError, match=r'pip install "sheafcoarsen\[plot\]"'):
        picture(None)
