"""The same graph in every format, and damaged files."""

import functools
import gzip
import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen import CellularSheaf
from sheafcoarsen.io import read_graph
from tests.support import errors
from tests.support.errors import raises
from tests.support.helpers import assert_residual
from tests.support.strategies import examples


def weights(F):
    """Check that a sheaf is constant, and return its weights."""
    d = int(F.vertex_dims.max(initial=1))
    tail, head = F.tail_data.reshape(-1, d, d), F.head_data.reshape(-1, d, d)
    np.testing.assert_array_equal(tail, head)
    np.testing.assert_array_equal(tail, tail[:, :1, :1] * np.eye(d))
    return tail[:, 0, 0] ** 2


# ---------------------------------------------------------------- one graph in every format


EDGES = [[0, 1], [0, 3], [1, 2], [2, 3]]
WEIGHTS, SIGNED = [4.0, 0.25, 1.0, 9.0], [4.0, -0.25, 1.0, -9.0]

FILES = {
    "g.mtx": """%%MatrixMarket matrix coordinate real symmetric
        % comment
        4 4 4
        4 1 0.25
        2 1 4
        3 2 1
        4 3 9
        """.replace("        ", ""),
    "general.mtx": """%%MatrixMarket matrix coordinate real general
        4 4 8
        4 1 0.25
        2 1 4
        1 2 4
        2 3 1
        3 2 1
        4 3 9
        1 4 0.25
        3 4 9
        """.replace("        ", ""),
    "array.mtx": """%%MatrixMarket matrix array real symmetric
        4 4
        0
        4
        0
        0.25
        0
        1
        0
        0
        9
        0
        """.replace("        ", ""),
    "g.graph": "% c\n4 4 1\n2 4 4 0.25\n1 4 3 1\n%c\n 2 1 4 9 \n3 9 1 0.25\n",
    "g.edges": "0 1 4\n0 3 0.25\n1 2\n2 3 9\n",
    "g.graphml": "",  # written below
    "g.gml": """graph [
        node [ id 5 label "0" ]
        node [ id 3 label "1" ]
        node [ id 0 label "2" ]
        node [ id 1 label "3" ]
        edge [ source 5 target 3 weight 4 ]
        edge [ source 5 target 1 weight 0.25 ]
        edge [ source 3 target 0 ]
        edge [ source 0 target 1 weight 9.0 ]
        ]
        """,
}


def content(name, values):
    """Return a file of FILES with WEIGHTS, or with their signs changed to those of SIGNED."""
    if name == "g.graphml":
        graph = nx.Graph()
        graph.add_nodes_from(range(4))
        for (u, v), w in zip(EDGES, values, strict=True):
            graph.add_edge(u, v, **({} if w == 1 else {"weight": w}))
        return "\n".join(nx.generate_graphml(graph))
    text = FILES[name]
    return (
        text
        if values == WEIGHTS
        else re.sub(r"(?<![\d.-])(0\.25|9(?:\.0)?)(?![\d.])", r"-\1", text)
    )


# ---------------------------------------------------------------- signs


@pytest.mark.parametrize("dim", [0, 1, 3])
@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_sheaf(write, name, dim):
    for values, signed, packed in (
        (WEIGHTS, False, ".gz"),
        (WEIGHTS, True, ""),
        (SIGNED, True, ""),
    ):
        path = write(content(name, values), name + packed)
        F = read_graph(path, dim, signed)
        number = range(4) if F.vertex_labels is None else [int(v) for v in F.vertex_labels]
        assert [[number[u], number[v]] for u, v in F.edges.tolist()] == EDGES
        assert F.vertex_dims.tolist() == [dim] * 4
        tail, head = (data.reshape(4, dim, dim) for data in (F.tail_data, F.head_data))
        roots = np.sqrt(np.abs(values))[:, None, None] * np.eye(dim)
        np.testing.assert_array_equal(tail, roots)
        np.testing.assert_array_equal(head, np.sign(values)[:, None, None] * roots)
    with pytest.raises(ValueError, match="must not be negative"):
        read_graph(path, dim)


def test_signed_file_gives_the_signed_sheaf(write):
    path = write("a b -4\nb c 0\nc a\n", "g.txt")
    F = read_graph(path, signed=True)
    G = CellularSheaf.signed([[0, 1], [1, 2], [2, 0]], [-1, 1, 1], [4, 0, 1])
    assert F.equals(G.with_labels(["a", "b", "c"]))
    assert read_graph(write("0 1 2\n", "h.txt"), signed=True).allclose(
        read_graph(write("0 1 2\n", "h.txt"))
    )
    G = nx.Graph([("a", "b", {"sign": -1, "weight": 2.0}), ("b", "c", {"sign": 1, "weight": 3.0})])
    for ending in ("graphml", "gml"):
        text = "\n".join(getattr(nx, f"generate_{ending}")(G))
        found = read_graph(write(text, f"g.{ending}"), signed=True)
        assert found.equals(CellularSheaf.signed(G))
    G.add_edge("c", "a", weight=1.0)
    with pytest.raises(ValueError, match="sign"):
        read_graph(write("\n".join(nx.generate_gml(G)), "h.gml"), signed=True)
    with pytest.raises(TypeError, match="`signed` must be True or False, got 'yes'"):
        read_graph(path, signed="yes")


@pytest.mark.parametrize("signed", [False, True])
def test_stalks_that_exceed_memory_raise_before_allocation(write, signed):
    path = write("0 1\n", "g.txt")
    with raises("ValueError: g.txt: `dim` requires 1e+12 map entries (8e+03 GB)"):
        read_graph(path, 10**6, signed)


def test_non_finite_weights_raise_also_with_signed(write):
    for weight, message in (("nan", "nan"), ("x", "x")):
        path = write(f"a b {weight}\n", "g.txt")
        with pytest.raises(ValueError, match=f"{re.escape(str(path))}:1: .*{message}"):
            read_graph(path, signed=True)
    path = write(graphml("string", "heavy"), "g.graphml")
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read_graph(path, signed=True)


REAL = "%%MatrixMarket matrix coordinate real symmetric\n"


def check(F, edges, expected_weights, labels=None, n=None):
    assert F.edges.tolist() == edges
    assert_residual(weights(F) - expected_weights, np.linalg.norm(expected_weights) or 1, n=1)
    assert F.vertex_labels == labels
    assert F.n_vertices == (n if n is not None else len(labels))
    assert F.dtype == np.float64


refuses = functools.partial(errors.refuses, read_graph)


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n{}\n</graphml>'
KEY = '<key id="w" for="edge" attr.name="weight" attr.type="{}"/>\n'

BODY = (
    '<graph edgedefault="{}"><node id="a"/><node id="b"/>\n<edge source="a" '
    'target="b">{}</edge></graph>'
)

VALUE = '<data key="w">{}</data>'


def graphml(kind, value, default="undirected"):
    return GRAPHML.format(KEY.format(kind) + BODY.format(default, VALUE.format(value)))


GML = (
    "graph [\n{} multigraph 1\nnode [ id 7 {} ]\nnode [ id 8 {} ]\nedge [ source 8 target 7 "
    "weight {} ]\n{}]\n"
)

ENDINGS = [".mtx", ".graph", ".txt", ".csv", ".graphml", ".gml"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_missing_and_damaged_files_raise(tmp_path, ending):
    for name in ("absent" + ending, "absent" + ending + ".gz"):
        with pytest.raises(FileNotFoundError):
            read_graph(tmp_path / name)
    whole = gzip.compress(np.random.default_rng(3).bytes(300))
    path = tmp_path / f"damaged{ending}.gz"
    for content, message in (
        (whole[:150], "the gzip file is truncated"),
        (b"0 1\n", "not a gzip file, or a damaged one"),
        (whole[:-8] + bytes(8), "not a gzip file, or a damaged one"),
    ):
        path.write_bytes(content)
        refuses(path, None, message)
    if ending != ".graphml":
        path = tmp_path / f"binary{ending}"
        path.write_bytes(b"%a\n\xff\n")
        refuses(path, 2, "not a text file: byte 0xff")
        path.write_bytes(whole)
        refuses(path, 1, "not UTF-8; it is gzipped, so its name must end in .gz")


@pytest.mark.filterwarnings("ignore:.*too sparse for indices", "ignore:.*numbers begin with")
@pytest.mark.parametrize("name", FILES)
@given(signed=st.booleans(), data=st.data())
@examples(15)
def test_damaged_files_load_or_raise_one_line_error(tmp_path_factory, name, signed, data):
    """Some parts, or all that follows a position, are replaced by text or bytes."""
    path = tmp_path_factory.mktemp("damaged") / name
    content = (FILES[name] or graphml("double", "1")).encode()
    text = st.text("0123456789 .-e\n%x", max_size=40).map(str.encode)
    special = st.sampled_from([b"\0", "é".encode(), b"1e999", b"9" * 20])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        end = data.draw(st.just(len(content)) | st.integers(at, min(at + 3, len(content))))
        content = content[:at] + data.draw(text | special | st.binary(max_size=9)) + content[end:]
    path.write_bytes(content)
    try:
        F = read_graph(path, signed=signed)
    except ValueError as error:
        assert type(error) is ValueError
        assert str(error).startswith(str(path))
        assert "\n" not in str(error)
    else:
        assert np.isfinite(F.tail_data).all()
        assert signed or (weights(F) >= 0).all()


def test_unknown_file_extension_raises_error_that_lists_known_ones(tmp_path):
    for name in ("graph.net", "graph", "graph.gz", "graph.net.gz"):
        message = refuses(tmp_path / name, None, "unknown file extension")
        for ending in (*ENDINGS, ".edges", ".edgelist", ".tsv", ".el", ".gz"):
            assert ending in message
        assert message.endswith("read_g2o reads .g2o, read_mesh .off, .obj and .ply, load .npz")


@pytest.mark.parametrize(
    ("dim", "message"),
    [
        (-1, "ValueError: `dim` must be at least 0, got -1"),
        (2.0, "TypeError: `dim` must be an integer, got 2.0"),
        ([1, 2], "TypeError: `dim` must be an integer"),
        (True, "TypeError: `dim` must be an integer, got True"),
    ],
)
def test_dim_is_checked_before_the_file(tmp_path, dim, message):
    with raises(message):
        read_graph(tmp_path / "absent.txt", dim)


# ---------------------------------------------------------------- real files


SIZES = {
    "graph_minnesota.mtx.gz": (2642, 3303),
    "graph_airfoil.mtx.gz": (4253, 12289),
    "graph_jagmesh7.mtx.gz": (1138, 3156 + 1138),  # the file holds the diagonal too
    "graph_lesmis.graph.gz": (77, 254),
    "graph_power.graph.gz": (4941, 6594),
    "graph_pgp.graph.gz": (10680, 24316),
    "graph_wing.graph.gz": (62032, 121544),
    "nodes_texas_edges.txt.gz": (183, 279),
    "nodes_wisconsin_edges.txt.gz": (251, 450),
    "nodes_chameleon_edges.txt.gz": (2277, 31371),
    "nodes_actor_edges.txt.gz": (7600, 26659),
    "nodes_cora_edges.txt.gz": (2708, 5278),
    "nodes_tolokers_edges.txt.gz": (11758, 519000),
}


@pytest.mark.real_data
@pytest.mark.parametrize("name", SIZES)
def test_real_graphs_are_read(data_folder, name):
    F = read_graph(data_folder / name)
    assert (F.n_vertices, F.n_edges) == SIZES[name]
    if "nodes" in name:
        assert F.vertex_labels is None
    ends = np.sort(F.edges, axis=1)
    assert len(np.unique(ends, axis=0)) == F.n_edges


@pytest.mark.real_data
def test_les_miserables_equals_the_copy_in_networkx(data_folder):
    w = weights(read_graph(data_folder / "graph_lesmis.graph.gz")).round(9)
    other = [data["weight"] for *_, data in nx.les_miserables_graph().edges(data=True)]
    assert sorted(w) == sorted(other)


# ---------------------------------------------------------------- GraphML


def test_graphml_keeps_names_orientation_and_parallel_edges(tmp_path):
    graph = nx.MultiGraph()
    graph.add_nodes_from(["z", "alone", "a"])
    graph.add_edge("a", "z", weight=2)
    graph.add_edge("z", "a")
    graph.add_edge("a", "a", weight=5)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    F = read_graph(tmp_path / "g.graphml")
    expected = CellularSheaf.constant(nx.read_graphml(tmp_path / "g.graphml"))
    assert F.edges.tolist() == expected.edges.tolist()
    assert F.vertex_labels == ("z", "alone", "a")
    assert sorted(weights(F).round(12)) == [1, 2, 5]


BAD_GRAPHML = {
    "empty": ("", 1, "not XML"),
    "text": ("0 1\n1 2\n", 1, "not XML"),
    "binary": (b"\x80\x00\xff" * 9, 1, "not XML"),
    "truncated": (graphml("double", "1")[:-30], 4, "not XML"),
    "tags": (GRAPHML.format("<graph>\n</grap>"), 3, "not XML: mismatched tag"),
    "other-xml": ("<html></html>", None, "not a GraphML graph"),
    "directed": (graphml("double", "1", "directed"), None, "the graph is directed"),
    "mixed": (
        GRAPHML.format(BODY.format("undirected", "").replace("<edge ", '<edge directed="true" ')),
        None,
        "not a GraphML graph",
    ),
    "word": (graphml("double", "x"), None, "could not convert"),
    "string": (graphml("string", "2"), None, "`weight` must hold"),
    "negative": (graphml("double", "-2"), None, "`weight` must not be negative"),
    "nan": (graphml("double", "NaN"), None, "`weight` must be finite"),
    "unknown-key": (GRAPHML.format(BODY.format("undirected", VALUE.format(1))), None, "GraphML"),
    "unknown-type": (graphml("complex", "1"), None, "not a GraphML graph"),
}


# ---------------------------------------------------------------- GML


@pytest.mark.parametrize(
    ("first", "second", "labels"),
    [
        ('label "Zoë"', 'label "b"', ("Zoë", "b")),
        ('label "8"', 'label "7"', ("8", "7")),
        ('label "a"', 'label "a"', (7, 8)),
        ('label "a"', "", (7, 8)),
        ("", "", (7, 8)),
    ],
)
def test_gml_names_are_labels_if_distinct(write, first, second, labels):
    F = read_graph(write(GML.format("", first, second, 6.25, ""), "g.gml"))
    check(F, [[0, 1]], [6.25], labels)


def test_gml_keeps_parallel_edges_loops_and_isolated_nodes(write):
    more = "edge [ source 7 target 8 weight 4 ]\nedge [ source 8 target 8 ]\nnode [ id 9 ]\n"
    F = read_graph(write(GML.format("", "", "", 9, more), "g.gml"), dim=2)
    check(F, [[0, 1], [0, 1], [1, 1]], [9, 4, 1], labels=(7, 8, 9))


BAD_GML = {
    "empty": ("", None, "input contains no graph"),
    "text": ("0 1\n1 2\n", 1, "expected EOF, found 0"),
    "binary": (b"\x80\x00\xff" * 9, 1, "not a text file"),
    "truncated": (GML.format("", "", "", 1, "")[:-3], 6, "expected ']', found EOF"),
    "token": (GML.format("", "", "", "?", ""), 5, "cannot tokenize"),
    "directed": (GML.format("directed 1", "", "", 1, ""), None, "the graph is directed"),
    "no-id": (GML.format("", "", "", 1, "node [ label 3 ]"), None, "node #2 has no 'id'"),
    "same-id": (GML.format("", "", "", 1, "node [ id 7 ]"), None, "node id 7 is duplicated"),
    "unknown-end": (
        GML.format("", "", "", 1, "edge [ source 7 target 6 ]"),
        None,
        "undefined target 6",
    ),
    "repeated": (
        GML.replace("multi", "x").format("", "", "", 1, "edge [ source 7 target 8 ]"),
        None,
        "is duplicated",
    ),
    "string": (GML.format("", "", "", '"a"', ""), None, "`weight` must hold"),
    "list": (GML.format("", "", "", "[ a 1 ]", ""), None, "`weight` must hold"),
    "negative": (GML.format("", "", "", -2, ""), None, "`weight` must not be negative"),
    "nan": (GML.format("", "", "", "NAN", ""), None, "`weight` must be finite"),
    "inf": (GML.format("", "", "", "+INF", ""), None, "`weight` must be finite"),
    "deep": ("graph " + "[ a " * 10**5, None, "not a GML graph"),
}


@pytest.mark.parametrize(
    ("ending", "text", "line", "message"),
    [
        *((".graphml", *case) for case in BAD_GRAPHML.values()),
        *((".gml", *case) for case in BAD_GML.values()),
    ],
    ids=[*(f"graphml-{name}" for name in BAD_GRAPHML), *(f"gml-{name}" for name in BAD_GML)],
)
def test_invalid_xml_and_gml_raise(write, ending, text, line, message):
    refuses(write(text, "g" + ending), line, message)
    refuses(write(text, f"g{ending}.gz"), line, message)
