import gzip
import re

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen.io import read_graph
from sheafcoarsen.sheaf import CellularSheaf
from tests.support import reference
from tests.support.helpers import assert_residual


@pytest.fixture
def write(tmp_path):
    def write(text, name):
        path = tmp_path / name
        content = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


def weights(F):
    """Return the weights of a constant sheaf, and see that it is one."""
    d = int(F.vertex_dims.max(initial=1))
    tail, head = F.tail_data.reshape(-1, d, d), F.head_data.reshape(-1, d, d)
    np.testing.assert_array_equal(tail, head)
    np.testing.assert_array_equal(tail, tail[:, :1, :1] * np.eye(d))
    return tail[:, 0, 0] ** 2


def check(F, edges, expected_weights, labels=None, n=None):
    assert F.edges.tolist() == edges
    assert_residual(weights(F) - expected_weights, np.linalg.norm(expected_weights) or 1, n=1)
    assert F.vertex_labels == labels
    assert F.n_vertices == (n if n is not None else len(labels))
    assert F.dtype == np.float64


# ---------------------------------------------------------------- one graph in every format

EDGES = [[0, 1], [0, 3], [1, 2], [2, 3]]
WEIGHTS = [4.0, 0.25, 1.0, 9.0]
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


@pytest.fixture(params=FILES)
def same_graph(request, write, tmp_path):
    if request.param == "g.graphml":
        graph = nx.Graph()
        graph.add_nodes_from(range(4))
        for (u, v), w in zip(EDGES, WEIGHTS, strict=True):
            graph.add_edge(u, v, **({} if w == 1 else {"weight": w}))
        nx.write_graphml(graph, tmp_path / "g.graphml")
        return tmp_path / "g.graphml"
    return write(FILES[request.param], request.param)


@pytest.mark.parametrize("dim", [0, 1, 3])
@pytest.mark.parametrize("compressed", [False, True])
def test_every_format_gives_the_constant_sheaf(same_graph, dim, compressed):
    if compressed:
        packed = same_graph.with_name(same_graph.name + ".gz")
        packed.write_bytes(gzip.compress(same_graph.read_bytes()))
        same_graph = packed
    F = read_graph(same_graph, dim)
    adjacency = np.zeros((4, 4))
    for (u, v), w in zip(EDGES, WEIGHTS, strict=True):
        adjacency[u, v] = adjacency[v, u] = w
    expected = np.kron(np.diag(adjacency.sum(axis=1)) - adjacency, np.eye(dim))
    number = range(4)
    if F.vertex_labels is not None:
        number = [int(label) for label in F.vertex_labels]
    order = np.concatenate([np.arange(dim) + dim * v for v in number]).astype(int)
    expected = expected[np.ix_(order, order)]
    assert F.vertex_dims.tolist() == [dim] * 4
    assert_residual(reference.laplacian(F) - expected, 40.0, n=4)
    ends = [[number[u], number[v]] for u, v in F.edges.tolist()]
    assert ends == EDGES


# ---------------------------------------------------------------- MatrixMarket

PATTERN = "%%MatrixMarket matrix coordinate pattern symmetric\n"
REAL = "%%MatrixMarket matrix coordinate real symmetric\n"
GENERAL = "%%MatrixMarket matrix coordinate real general\n"
ARRAY = "%%MatrixMarket matrix array real general\n"


def test_mtx_pattern_diagonal_and_isolated_vertices(write):
    F = read_graph(write(PATTERN + "5 5 3\n3 3\n3 1\n2 1\n", "g.mtx"))
    check(F, [[0, 1], [0, 2], [2, 2]], [1, 1, 1], n=5)


def test_mtx_integers_and_no_entries(write):
    header = "%%MatrixMarket matrix coordinate integer symmetric\n"
    check(
        read_graph(write(header + "2 2 2\n2 1 7\n2 2 3\n", "g.mtx")), [[0, 1], [1, 1]], [7, 3], n=2
    )
    check(read_graph(write(header + "3 3 0\n", "g.mtx")), [], [], n=3)
    check(read_graph(write(ARRAY + "0 0\n", "g.mtx")), [], [], n=0)


def test_mtx_is_symmetric_up_to_rounding(write):
    F = read_graph(write(GENERAL + "2 2 2\n1 2 1.0000000000000002\n2 1 1\n", "g.mtx"))
    check(F, [[0, 1]], [1], n=2)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_mirror_images_that_differ_by_more_than_rounding_are_refused(write, scale):
    text = GENERAL + f"2 2 2\n1 2 {scale!r}\n2 1 {scale * (1 + 1e-14)!r}\n"
    refuses(write(text, "g.mtx"), 3, "but its mirror image (2, 1) is")
    text = f"2 1 1\n2 {scale!r}\n1 {scale * (1 + 1e-14)!r}\n"
    refuses(write(text, "g.graph"), 2, "at its other end (line 3)")


@given(st.integers(1, 8), st.integers(0, 2**32), st.booleans())
def test_what_scipy_writes_is_read_as_the_adjacency(tmp_path_factory, n, seed, as_general):
    A = scipy.sparse.random_array((n, n), density=0.4, rng=seed, format="coo")
    A = scipy.sparse.csr_array(A + A.T)
    path = tmp_path_factory.mktemp("mtx") / "a.mtx"
    scipy.io.mmwrite(path, A, symmetry="general" if as_general else "symmetric", precision=17)
    F, expected = read_graph(path), CellularSheaf.constant(A)
    np.testing.assert_array_equal(F.edges, expected.edges)
    assert_residual(F.tail_data - expected.tail_data, expected.tail_data, n=1)
    assert F.n_vertices == n


BAD_MTX = {
    "empty": ("", 1, "the first line must be"),
    "no-banner": ("4 4 1\n1 2\n", 1, "the first line must be"),
    "symmetry": (
        "%%MatrixMarket matrix coordinate real odd\n1 1 0\n",
        1,
        "an adjacency is symmetric",
    ),
    "skew": (
        REAL.replace("symmetric", "skew-symmetric") + "2 2 1\n2 1 1\n",
        1,
        "an adjacency is symmetric",
    ),
    "layout": (
        "%%MatrixMarket matrix array pattern general\n1 1\n",
        1,
        "unknown layout 'array pattern'",
    ),
    "complex": (
        "%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 1 1 1\n",
        1,
        "weights must be real",
    ),
    "no-size": (REAL + "% 3 3 2\n", None, "no line with its size"),
    "short-size": (
        REAL + "\n3 3\n2 1 1.5\n",
        3,
        "the size line must be `rows columns entries`, got '3 3'",
    ),
    "long-size": (ARRAY + "1 1 1\n2\n", 2, "the size line must be `rows columns`, got '1 1 1'"),
    "negative-size": (REAL + "-3 -3 0\n", 2, "the size line must be"),
    "truncated": (REAL + "3 3 2\n2 1 1.5\n", 2, "promises 2 entries, the file holds 1"),
    "too-many": (REAL + "3 3 1\n2 1 1.5\n3 1 1\n", 2, "promises 1 entries, the file holds 2"),
    "promised": (
        REAL + "9 9 999999999999\n2 1 1\n",
        2,
        "promises 999999999999 entries, the file holds 1",
    ),
    "promised-array": (
        ARRAY + "100000 100000\n1\n",
        2,
        "promises 10000000000 entries, the file holds 1",
    ),
    "array-without-columns": (ARRAY + "3 0\n", 2, "square matrix, got 3 x 0"),
    "word": (
        REAL + "3 3 2\n2 1 1.5\n3 1 x\n",
        4,
        "the weight of an edge must be a number, got 'x'",
    ),
    "no-weight": (
        REAL + "3 3 2\n2 1 1.5\n3 1\n",
        4,
        "an entry is `row column weight`, got 2 words",
    ),
    "a-weight": (PATTERN + "3 3 1\n2 1 1.5\n", 3, "an entry is `row column`, got 3 words"),
    "two-weights": (ARRAY + "1 1\n2 1\n", 3, "an entry is `weight`, got 2 words"),
    "range": (
        REAL + "3 3 1\n4 1 1.5\n",
        3,
        "row or column '4' is out of range; they count from 1 to 3",
    ),
    "zero": (REAL + "3 3 2\n2 1 1\n2 0 1.5\n", 4, "row or column '0' is out of range"),
    "huge": (REAL + "99999999999999999999 3 1\n1 1 1\n", 2, "square matrix"),
    "many": (REAL + "9999999999 9999999999 1\n1 1 1\n", 2, "9999999999 vertices are more than"),
    "rectangular": (GENERAL + "3 2 1\n1 2 5\n", 2, "square matrix, got 3 x 2"),
    "nan": (REAL + "% c\n3 3 2\n2 1 1.5\n3 1 nan\n", 5, "must be finite, got 'nan'"),
    "inf": (REAL + "3 3 2\n2 1 1e400\n3 1 1\n", 3, "must be finite"),
    "negative": (
        REAL + "3 3 2\n2 1 1.5\n\n3 1 -2\n",
        5,
        "entry (3, 1) must not be negative as the weight of an edge",
    ),
    "negative-array": (ARRAY + "2 2\n0\n3\n%\n-3\n0\n", 6, "entry (1, 2) must not be negative"),
    "twice": (REAL + "3 3 3\n2 1 1.5\n3 1 2\n2 1 2\n", 5, "entry (2, 1) occurs a second time"),
    "both": (REAL + "3 3 2\n2 1 1\n1 2 1\n", 4, "occurs a second time"),
    "alone": (
        GENERAL + "3 3 3\n2 1 1\n1 2 1\n3 1 2\n",
        5,
        "entry (3, 1) has no mirror image (1, 3)",
    ),
    "differs": (
        GENERAL + "2 2 2\n1 2 5\n2 1 4\n",
        3,
        "entry (1, 2) is 5, but its mirror image (2, 1) is 4",
    ),
    "differs-array": (
        ARRAY + "2 2\n0\n5\n4\n0\n",
        4,
        "entry (2, 1) is 5, but its mirror image (1, 2) is 4",
    ),
    "range-of-maps": (REAL + "2 2 1\n2 1 1e-305\n", None, "the largest entry of"),
}


@pytest.mark.parametrize(("text", "line", "message"), BAD_MTX.values(), ids=BAD_MTX)
def test_bad_mtx(write, text, line, message):
    refuses(write(text, "g.mtx"), line, message)
    refuses(write(text, "g.mtx.gz"), line, message)


def refuses(path, line, message):
    place = str(path) if line is None else f"{path}:{line}"
    with pytest.raises(ValueError, match=f"^{re.escape(place)}") as caught:
        read_graph(path)
    assert type(caught.value) is ValueError
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ---------------------------------------------------------------- METIS


@pytest.mark.parametrize(
    ("header", "before", "weighted"),
    [
        ("4 4", "", False),
        ("4 4 0", "", False),
        ("4 4 000", "", False),
        ("4 4 1", "", True),
        ("4 4 001", "", True),
        ("4 4 10", "7 ", False),
        ("4 4 010", "2.5 ", False),
        ("4 4 11", "7 ", True),
        ("4 4 011 1", "7 ", True),
        ("4 4 10 3", "1 2 3 ", False),
        ("4 4 11 2", "1 2 ", True),
        ("4 4 100", "9 ", False),
        ("4 4 101", "9 ", True),
        ("4 4 110 2", "9 1 2 ", False),
        ("4 4 111 2", "9 1 2 ", True),
    ],
)
def test_metis_formats(write, header, before, weighted):
    lines = ["4 {a} 2 {b}", "1 {b}", "4 {c}", "1 {a} 3 {c}"]
    values = {"a": "0.25", "b": "4", "c": "9"} if weighted else dict.fromkeys("abc", "")
    body = "\n".join(before + line.format(**values) for line in lines)
    F = read_graph(write(f"{header.replace('4 4', '4 3')}\n{body}\n", "g.graph"))
    expected = [0.25, 4, 9] if weighted else [1, 1, 1]
    check(F, [[0, 3], [0, 1], [2, 3]], expected, n=4)  # in the order of the lines


def test_metis_isolated_vertices_are_empty_lines(write):
    check(read_graph(write("4 1\n\n4\n\n2\n", "g.graph")), [[1, 3]], [1], n=4)
    check(
        read_graph(write("3 1\n2\n1\n\n\n\n", "g.graph")), [[0, 1]], [1], n=3
    )  # spare empty lines
    check(read_graph(write("0 0\n", "g.graph")), [], [], n=0)
    check(read_graph(write("2 0 1\n\n\n", "g.graph")), [], [], n=2)


BAD_METIS = {
    "empty": ("", None, "no header"),
    "comments": ("% a\n%b\n", None, "no header"),
    "header-short": ("% a\n4\n", 2, "the header must be `n m [fmt [ncon]]`, got 1 words"),
    "header-long": ("4 3 1 1 1\n", 1, "got 5 words"),
    "header-word": ("4 x\n", 1, "a number of the header must be a whole number, got 'x'"),
    "header-negative": ("-4 3\n", 1, "negative numbers, got -4"),
    "fmt": ("2 1 2\n2\n1\n", 1, "fmt must be up to three digits 0 or 1, got '2'"),
    "ncon": ("2 1 10 x\n", 1, "whole number, got 'x'"),
    "truncated": ("3 2\n2\n1 3\n", 1, "promises 3 vertices"),
    "too-many-lines": ("2 1\n2\n1\n1\n", 1, "promises 2 vertices, one line each (empty"),
    "too-few-edges": ("3 3\n2\n1 3\n2\n", 1, "promises 3 edges, the lines hold 2"),
    "too-many-edges": ("% c\n3 1\n2\n1 3\n2\n", 2, "promises 1 edges, the lines hold 2"),
    "range": ("3 2\n2\n1 4\n2\n", 3, "neighbour '4' is out of range; vertices count from 1 to 3"),
    "zero": ("2 1\n%\n2\n0\n", 4, "neighbour '0' is out of range"),
    "huge": ("2 1\n2\n99999999999999999999999\n", 3, "is out of range"),
    "word": ("2 1\n2\none\n", 3, "a neighbour must be a whole number, got 'one'"),
    "float": ("2 1\n2.5\n1\n", 2, "whole number, got '2.5'"),
    "loop": ("2 1\n1 2\n1\n", 2, "vertex 1 is its own neighbour"),
    "twice": ("3 2\n2\n1 3 1\n2\n", 3, "vertex 2 has neighbour 1 twice"),
    "one-sided": ("3 2\n2 3\n1\n\n", 2, "vertex 1 has neighbour 3, but vertex 3 (line 4) does not"),
    "weights-differ": (
        "2 1 1\n2 5\n1 4\n",
        2,
        "edge 1 2 has weight 5 here and 4 at its other end (line 3)",
    ),
    "weight-missing": ("2 1 1\n2 5\n1\n", 3, "wants a weight after each neighbour, got 1 numbers"),
    "negative": ("2 1 1\n2 -5\n1 -5\n", 2, "must not be negative, got -5"),
    "nan": ("2 1 1\n2 nan\n1 nan\n", 2, "the weight of an edge must be finite"),
    "weight-word": ("2 1 1\n2 5\n1 v\n", 3, "the weight of an edge must be a number, got 'v'"),
    "vertex-weight-missing": ("2 1 10 2\n1 1 2\n1\n", 3, "wants 2 vertex sizes and weights first"),
    "vertex-weight-word": ("2 1 10\n1 2\nq 1\n", 3, "a vertex size or weight must be a number"),
}


@pytest.mark.parametrize(("text", "line", "message"), BAD_METIS.values(), ids=BAD_METIS)
def test_bad_metis(write, text, line, message):
    refuses(write(text, "g.graph"), line, message)
    refuses(write(text, "g.graph.gz"), line, message)


# ---------------------------------------------------------------- edge list


@pytest.mark.parametrize("ending", [".txt", ".edges", ".edgelist", ".csv", ".tsv", ".el", ".CSV"])
@pytest.mark.parametrize("separator", [" ", "\t", ",", ", ", " , ", "  "])
def test_edge_lists(write, ending, separator):
    lines = [["5", "3", "4"], ["3", "-2"], ["5", "5", "0"], ["3", "5", "1e-2"]]
    text = "# head, with comma\n\n" + "\n".join(separator.join(line) for line in lines)
    F = read_graph(write(text, "g" + ending))
    check(F, [[0, 1], [1, 2], [0, 0], [1, 0]], [4, 1, 0, 0.01], labels=(5, 3, -2))


def test_edge_list_names(write):
    F = read_graph(write("b a\n7 b\n", "g.txt"))
    check(F, [[0, 1], [2, 0]], [1, 1], labels=("b", "a", "7"))
    F = read_graph(write("b a\n7 8\n9 b\n", "g.txt"))  # no headings, for b comes again
    assert F.vertex_labels == ("b", "a", "7", "8", "9")
    F = read_graph(write("007 8\n7 9\n", "g.txt"))  # integers: 007 is 7
    check(F, [[0, 1], [0, 2]], [1, 1], labels=(7, 8, 9))
    F = read_graph(write("1_0 2\n2.0 2\n", "g.txt"))
    check(F, [[0, 1], [2, 1]], [1, 1], labels=("1_0", "2", "2.0"))
    F = read_graph(write("\ufeffé ü\n", "g.txt"))  # byte order mark
    check(F, [[0, 1]], [1], labels=("é", "ü"))


def test_edge_list_comments(write):
    F = read_graph(write("% x\n0 1 # note, that\n  # y\nC# 1 2 %z\n\x0c\n", "g.txt"))
    check(F, [[0, 1], [2, 1]], [1, 2], labels=("0", "1", "C#"))


def test_edge_list_line_ends(write):
    for end in ("\n", "\r\n", "\r"):
        check(
            read_graph(write(f"0 1{end}{end}1 2{end}", "g.txt")),
            [[0, 1], [1, 2]],
            [1, 1],
            (0, 1, 2),
        )


BAD_LISTS = {
    "empty": ("", None, "no edge"),
    "comments": ("# a\n\n", None, "no edge"),
    "one": (
        "0 1\n2\n",
        2,
        "an edge is `u v [weight]`, separated by white space or commas, got 1 words",
    ),
    "four": ("0 1\n# c\n0 1 2 3\n", 3, "got 4 words"),
    "empty-field": ("0,1\n0,,2\n", 2, "got an empty field"),
    "trailing-comma": ("0,1,\n", 1, "got an empty field"),
    "spaces-in-names": ("New York,Boston,3\n", 1, "got 4 words"),
    "weight-word": ("0 1 2\n0 2\n0 3 x\n", 3, "the weight of an edge must be a number, got 'x'"),
    "table": ("source,target,weight\n0,1,2\n", 1, "must be a number, got 'weight'"),
    "headings": ("\nsource target\n0 1\n1 2\n", 2, "'source' and 'target' look like the headings"),
    "negative": ("0 1\n\n0 2 -0.5\n", 3, "must not be negative, got -0.5; CellularSheaf.signed"),
    "nan": ("0 1 nan\n", 1, "the weight of an edge must be finite, got 'nan'"),
    "inf": ("0 1 1e999\n", 1, "must be finite"),
    "range-of-maps": ("0 1 1e307\n", None, "the largest entry of"),
    "long": ("0 1 " + "x" * 1000, 1, "x..."),
}


@pytest.mark.parametrize(("text", "line", "message"), BAD_LISTS.values(), ids=BAD_LISTS)
def test_bad_edge_lists(write, text, line, message):
    said = refuses(write(text, "g.txt"), line, message)
    refuses(write(text, "g.csv.gz"), line, message)
    assert len(said) < 400


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


GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n{}\n</graphml>'
KEY = '<key id="w" for="edge" attr.name="weight" attr.type="{}"/>\n'
BODY = '<graph edgedefault="{}"><node id="a"/><node id="b"/>\n<edge source="a" target="b">{}</edge></graph>'
VALUE = '<data key="w">{}</data>'


def graphml(kind, value, default="undirected"):
    return GRAPHML.format(KEY.format(kind) + BODY.format(default, VALUE.format(value)))


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


@pytest.mark.parametrize(("text", "line", "message"), BAD_GRAPHML.values(), ids=BAD_GRAPHML)
def test_bad_graphml(write, text, line, message):
    refuses(write(text, "g.graphml"), line, message)
    refuses(write(text, "g.graphml.gz"), line, message)


def test_good_graphml_of_the_same_form(write):
    F = read_graph(write(graphml("double", "6.25"), "g.graphml"))
    check(F, [[0, 1]], [6.25], labels=("a", "b"))


# ---------------------------------------------------------------- GML

GML = "graph [\n{} multigraph 1\nnode [ id 7 {} ]\nnode [ id 8 {} ]\nedge [ source 8 target 7 weight {} ]\n{}]\n"


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
def test_gml_names_are_labels_where_they_tell_nodes_apart(write, first, second, labels):
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


@pytest.mark.parametrize(("text", "line", "message"), BAD_GML.values(), ids=BAD_GML)
def test_bad_gml(write, text, line, message):
    refuses(write(text, "g.gml"), line, message)
    refuses(write(text, "g.gml.gz"), line, message)


# ---------------------------------------------------------------- all of them

ENDINGS = [".mtx", ".graph", ".txt", ".csv", ".graphml", ".gml"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_missing_and_damaged_files(tmp_path, ending):
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


START = {
    ".mtx": (REAL + "3 3 2\n2 1 1\n").encode(),
    ".graph": b"3 2 1\n2 1\n1 1 3 ",
    ".txt": b"0 1\n1 2 ",
    ".graphml": graphml("double", "1").encode()[:-60],
    ".gml": GML.format("", "", "", 1, "").encode()[:-4],
}


@pytest.mark.parametrize("ending", START)
@given(tail=st.binary(max_size=60) | st.text("0123456789 .-e\n%x", max_size=40).map(str.encode))
@pytest.mark.parametrize("with_start", [False, True])
def test_whatever_a_file_holds_it_is_a_graph_or_a_valueerror_in_one_line(
    tmp_path_factory, ending, with_start, tail
):
    path = tmp_path_factory.mktemp("any") / f"file{ending}"
    path.write_bytes(START[ending] * with_start + tail)
    F, error = outcome(path)
    if error is None:
        assert (weights(F) >= 0).all()
    else:
        assert type(error) is ValueError
        assert str(error).startswith(str(path))
        assert "\n" not in str(error)


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name]])
@given(data=st.data())
def test_a_damaged_file_is_a_graph_or_a_valueerror_in_one_line(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("damaged") / name
    text = FILES[name]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        new = data.draw(
            st.text("0123456789 .-e\n%x", max_size=3)
            | st.sampled_from(["\0", "é", "1e999", "9" * 20])
        )
        text = text[:at] + new + text[at + data.draw(st.integers(0, 3)) :]
    path.write_text(text, encoding="utf-8")
    F, error = outcome(path)
    assert error is None or (type(error) is ValueError and "\n" not in str(error))
    assert F is None or (weights(F) >= 0).all()


def outcome(path):
    try:
        return read_graph(path), None
    except ValueError as error:
        return None, error


def test_unknown_endings_list_the_known_ones(tmp_path):
    for name in ("graph.net", "graph", "graph.gz", "graph.net.gz"):
        message = refuses(tmp_path / name, None, "unknown ending")
        for ending in (*ENDINGS, ".edges", ".edgelist", ".tsv", ".el", ".gz"):
            assert ending in message
    assert "read_g2o reads pose graphs" in refuses(
        tmp_path / "a.g2o.gz", None, "unknown ending '.g2o'"
    )
    assert "load reads what save wrote" in refuses(
        tmp_path / "a.npz", None, "unknown ending '.npz'"
    )


@pytest.mark.parametrize(
    ("dim", "error", "message"),
    [
        (-1, ValueError, "`dim` must be at least 0, got -1"),
        (2.0, TypeError, "`dim` must be an integer, got 2.0"),
        ([1, 2], TypeError, "`dim` must be an integer"),
        (True, TypeError, "`dim` must be an integer, got True"),
    ],
)
def test_dim_is_checked_before_the_file(tmp_path, dim, error, message):
    with pytest.raises(error, match=re.escape(message)):
        read_graph(tmp_path / "absent.txt", dim)


def test_path_must_be_one():
    with pytest.raises(TypeError, match="NoneType"):
        read_graph(None)


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
def test_real_graphs(data_folder, name):
    F = read_graph(data_folder / name)
    assert (F.n_vertices, F.n_edges) == SIZES[name]
    if "nodes" in name:
        assert sorted(F.vertex_labels) == list(range(F.n_vertices))
    ends = np.sort(F.edges, axis=1)
    assert len(np.unique(ends, axis=0)) == F.n_edges


@pytest.mark.real_data
def test_les_miserables_equals_the_copy_in_networkx(data_folder):
    w = weights(read_graph(data_folder / "graph_lesmis.graph.gz")).round(9)
    other = [data["weight"] for *_, data in nx.les_miserables_graph().edges(data=True)]
    assert sorted(w) == sorted(other)
