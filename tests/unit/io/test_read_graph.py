"""What `read_graph` reads: the same graph in every format, and the variants of each format."""

import re

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen import CellularSheaf
from sheafcoarsen.io import read_graph
from sheafcoarsen.io.graph_files import IDLE
from tests.support.errors import raises, refuses
from tests.support.helpers import assert_residual


def weights(F):
    """Check that a sheaf is constant, and return its weights."""
    d = int(F.vertex_dims.max(initial=1))
    tail, head = F.tail_data.reshape(-1, d, d), F.head_data.reshape(-1, d, d)
    np.testing.assert_array_equal(tail, head)
    np.testing.assert_array_equal(tail, tail[:, :1, :1] * np.eye(d))
    return tail[:, 0, 0] ** 2


def check(F, edges, expected_weights, vertices):
    """Compare a constant sheaf with its edges, weights, and the names or number of vertices."""
    assert F.edges.tolist() == edges
    assert_residual(weights(F) - expected_weights, np.linalg.norm(expected_weights) or 1, n=1)
    labels = None if isinstance(vertices, int) else vertices
    assert F.vertex_labels == labels
    assert F.n_vertices == (vertices if labels is None else len(labels))
    assert F.dtype == np.float64


MTX = "%%MatrixMarket matrix "
REAL, GENERAL = MTX + "coordinate real symmetric\n", MTX + "coordinate real general\n"
PATTERN, INTEGER = (MTX + f"coordinate {kind} symmetric\n" for kind in ("pattern", "integer"))
ARRAY = MTX + "array real general\n"

EDGES = [[0, 1], [0, 3], [1, 2], [2, 3]]
WEIGHTS, SIGNED = [4.0, 0.25, 1.0, 9.0], [4.0, -0.25, 1.0, -9.0]

FILES = {
    "g.mtx": REAL + "% comment\n4 4 4\n4 1 0.25\n2 1 4\n3 2 1\n4 3 9\n",
    "general.mtx": GENERAL
    + "4 4 8\n4 1 0.25\n2 1 4\n1 2 4\n2 3 1\n3 2 1\n4 3 9\n1 4 0.25\n3 4 9\n",
    "array.mtx": MTX + "array real symmetric\n4 4\n0\n4\n0\n0.25\n0\n1\n0\n0\n9\n0\n",
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
    if values == WEIGHTS:
        return text
    return re.sub(r"(?<![\d.-])(0\.25|9(?:\.0)?)(?![\d.])", r"-\1", text)


@pytest.mark.parametrize("dim", [0, 1, 3])
@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_sheaf(write, name, dim):
    cases = (WEIGHTS, False, ".gz"), (WEIGHTS, True, ""), (SIGNED, True, "")
    for values, signed, packed in cases:
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
    plain = write("0 1 2\n", "h.txt")
    assert read_graph(plain, signed=True).allclose(read_graph(plain))
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


GML = (
    "graph [\n{} multigraph 1\nnode [ id 7 {} ]\nnode [ id 8 {} ]\nedge [ source 8 target 7 "
    "weight {} ]\n{}]\n"
)
MORE = "edge [ source 7 target 8 weight 4 ]\nedge [ source 8 target 8 ]\nnode [ id 9 ]\n"

INDICES = "0 1\n# c\n1 3\n"
COMMENTS = "% x\n0 1 # note, that\n  # y\nC# 1 2 %z\n\x0c\n"
QUOTED = '0 1 # say "hi"\n"#1" 1 2 % "y\n"a",1 # z\n'

# name of the file, its text, edges, weights, names or number of vertices
VARIANTS = [
    ("g.txt", "b a\n7 b\n", [[0, 1], [2, 0]], [1, 1], tuple("ba7")),
    # not headings, because b occurs again
    ("g.txt", "b a\n7 8\n9 b\n", [[0, 1], [2, 3], [4, 0]], [1, 1, 1], tuple("ba789")),
    # codes, not integers, and not headings
    ("g.txt", "007 8\n7 0\n", [[0, 1], [2, 3]], [1, 1], ("007", "8", "7", "0")),
    ("g.txt", "01 03\n7 8\n8 9\n", [[0, 1], [2, 3], [3, 4]], [1] * 3, ("01", "03", "7", "8", "9")),
    ("g.txt", "1_0 2\n2.0 2\n", [[0, 1], [2, 1]], [1, 1], ("1_0", "2", "2.0")),
    ("g.txt", "\ufeffé ü\n", [[0, 1]], [1], ("é", "ü")),  # byte order mark
    ("g.txt", "0,1 4\n1 ,2\n", [[0, 1], [1, 2]], [4, 1], 3),  # no table, so both separate
    ("g.txt", COMMENTS, [[0, 1], [2, 1]], [1, 2], ("0", "1", "C#")),
    ("g.txt", QUOTED, [[0, 1], [2, 1], [3, 1]], [1, 2, 1], ("0", "1", "#1", "a")),
    ("g.csv", "a b,c, 2 # x\n", [[0, 1]], [2], ("a b", "c")),
    # headings of names, where the weight is not a number; without weights it may be an edge
    ("g.csv", "source,target,weight\nb,a,4\na,7,1\n", [[0, 1], [1, 2]], [4, 1], tuple("ba7")),
    ("g.csv", "Source,Target\nb,a\n", [[0, 1]], [1], ("b", "a")),
    ("g.csv", "tail,head\nb,a\n", [[0, 1], [2, 3]], [1, 1], ("tail", "head", "b", "a")),
    ("g.csv", "tail,head\n0,1\n1,2\n", [[0, 1], [1, 2]], [1, 1], 3),
    ("g.csv", "a,a\n0,1\n1,2\n", [[0, 0], [1, 2], [2, 3]], [1, 1, 1], tuple("a012")),
    # ends of lines
    ("g.txt", "0 1\r\n\r\n1 2\r\n", [[0, 1], [1, 2]], [1, 1], 3),
    # integers are indices, also in the notation of floats; others are names
    ("g.txt", "4 1\n0 4\n6 1 2.25\n", [[4, 1], [0, 4], [6, 1]], [1, 1, 2.25], 7),
    ("g.txt", "3.0 1\n1. 0\n-0.0 2e0\n", [[3, 1], [1, 0], [0, 2]], [1] * 3, 4),
    ("g.txt", "1.0 2\n2.5 1\n", [[0, 1], [2, 3]], [1, 1], ("1.0", "2", "2.5", "1")),
    ("g.txt", "inf 2\n", [[0, 1]], [1], ("inf", "2")),
    ("g.txt", "1_0.0 2\n", [[0, 1]], [1], ("1_0.0", "2")),
    ("g.txt", "9007199254740992.0 2\n", [[0, 1]], [1], ("9007199254740992.0", "2")),
    # empty lines of METIS are isolated vertices, spare ones at the end nothing
    ("g.graph", "4 1\n\n4\n\n2\n", [[1, 3]], [1], 4),
    ("g.graph", "3 1\n2\n1\n\n\n\n", [[0, 1]], [1], 3),
    ("g.graph", "0 0\n", [], [], 0),
    ("g.graph", "2 0 1\n\n\n", [], [], 2),
    # patterns have unit weights; weights may be integers, and unsymmetric by rounding
    ("g.mtx", PATTERN + "5 5 3\n3 3\n3 1\n2 1\n", [[0, 1], [0, 2], [2, 2]], [1, 1, 1], 5),
    ("g.mtx", INTEGER + "2 2 2\n2 1 7\n2 2 3\n", [[0, 1], [1, 1]], [7, 3], 2),
    ("g.mtx", INTEGER + "3 3 0\n", [], [], 3),
    # stored zeros are no edges, as in the adjacency of the same matrix
    ("g.mtx", ARRAY + "3 3\n0\n7\n0\n7\n0\n0\n0\n0\n0\n", [[0, 1]], [7], 3),
    ("g.mtx", ARRAY + "0 0\n", [], [], 0),
    ("g.mtx", GENERAL + "2 2 2\n1 2 1.0000000000000002\n2 1 1\n", [[0, 1]], [1], 2),
    # names of GML are labels if they are distinct
    ("g.gml", GML.format("", 'label "Zoë"', 'label "b"', 6.25, ""), [[0, 1]], [6.25], ("Zoë", "b")),
    ("g.gml", GML.format("", 'label "8"', 'label "7"', 6.25, ""), [[0, 1]], [6.25], ("8", "7")),
    ("g.gml", GML.format("", 'label "a"', 'label "a"', 6.25, ""), [[0, 1]], [6.25], (7, 8)),
    ("g.gml", GML.format("", 'label "a"', "", 6.25, ""), [[0, 1]], [6.25], (7, 8)),
    ("g.gml", GML.format("", "", "", 9, MORE), [[0, 1], [0, 1], [1, 1]], [9, 4, 1], (7, 8, 9)),
]


@pytest.mark.parametrize(
    ("name", "text", "edges", "expected_weights", "vertices"),
    VARIANTS,
    ids=[f"{name} {text!r}" for name, text, *_ in VARIANTS],
)
def test_variants_of_each_format_are_read(write, name, text, edges, expected_weights, vertices):
    check(read_graph(write(text, name), dim=2), edges, expected_weights, vertices)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("g.csv", 'New York,St Louis , 4\n"Washington, D.C.",New York\n'),
        ("g.csv.gz", 'New York,"St Louis",4\n"Washington, D.C.",New York\n# capital, last\n'),
        ("g.csv", '"from","to","weight"\n"New York","St Louis",4\n"Washington, D.C.","New York",1'),
        ("g.tsv", "New York\tSt Louis\t4\nWashington, D.C.\tNew York\n"),
        ("g.txt", '"New York"  "St Louis"\t4\n"Washington, D.C." "New York"\n'),
    ],
)
def test_names_may_contain_blanks_and_commas(write, name, text):
    names = ("New York", "St Louis", "Washington, D.C.")
    check(read_graph(write(text, name)), [[0, 1], [2, 0]], [4, 1], names)


@pytest.mark.parametrize("ending", [".txt", ".edges", ".edgelist", ".csv", ".tsv", ".el", ".CSV"])
@pytest.mark.parametrize("separator", [" ", "\t", ",", ", ", " , ", "  "])
def test_edge_list_formats(write, ending, separator):
    lines = [["5", "3", "4"], ["3", "-2"], ["5", "5", "0"], ["3", "5", "1e-2"]]
    text = "# head, with comma\n\n" + "\n".join(separator.join(line) for line in lines)
    F = read_graph(write(text, "g" + ending))
    check(F, [[0, 1], [1, 2], [0, 0], [1, 0]], [4, 1, 0, 0.01], (5, 3, -2))


@pytest.mark.parametrize(
    "first", ["source,target,weight", '"from","to","w"', "\n# c\nu v weight", "source,target"]
)
def test_headings_are_skipped(write, first):
    check(read_graph(write(f"{first}\n2,1,4\n1,0\n", "g.csv")), [[2, 1], [1, 0]], [4, 1], 3)
    F = read_graph(write(f"{first}\n0,1\n", "g.csv"), n_vertices=3)  # names must be integers
    check(F, [[0, 1]], [1], 3)


@pytest.mark.parametrize(
    ("plain", "weighted", "before"),
    [
        ("", "1", ""),
        ("0", "1", ""),
        ("000", "001", ""),
        ("10", "11", "7 "),
        ("010", "011 1", "2.5 "),
        ("10 3", "11 3", "1 2 3 "),
        ("100", "101", "9 "),
        ("110 2", "111 2", "9 1 2 "),
    ],
)
def test_metis_formats(write, plain, weighted, before):
    lines = ["4 {0} 2 {1}", "1 {1}", "4 {2}", "1 {0} 3 {2}"]
    for fmt, values in ((plain, ["", "", ""]), (weighted, [0.25, 4, 9])):
        body = "\n".join(before + line.format(*values) for line in lines)
        F = read_graph(write(f"4 3 {fmt}\n{body}\n", "g.graph"))
        check(F, [[0, 3], [0, 1], [2, 3]], [w or 1 for w in values], 4)  # in the lines' order


@given(st.integers(1, 8), st.integers(0, 2**32), st.booleans())
def test_mtx_written_by_scipy_is_read(tmp_path_factory, n, seed, as_general):
    rng = np.random.default_rng(seed)
    A = scipy.sparse.coo_array(np.where(rng.random((n, n)) < 0.4, rng.random((n, n)), 0.0))
    A = scipy.sparse.csr_array(A + A.T)
    path = tmp_path_factory.mktemp("mtx") / "a.mtx"
    scipy.io.mmwrite(path, A, symmetry="general" if as_general else "symmetric", precision=17)
    expected = CellularSheaf.constant(A)
    check(read_graph(path), expected.edges.tolist(), weights(expected), n)


def test_graphml_keeps_names_orientation_and_parallel_edges(tmp_path):
    graph = nx.MultiGraph()
    graph.add_nodes_from(["z", "alone", "a"])
    graph.add_edges_from([("a", "z", {"weight": 2}), ("z", "a"), ("a", "a", {"weight": 5})])
    nx.write_graphml(graph, tmp_path / "g.graphml")
    F = read_graph(tmp_path / "g.graphml")
    expected = CellularSheaf.constant(nx.read_graphml(tmp_path / "g.graphml"))
    assert F.edges.tolist() == expected.edges.tolist()
    assert F.vertex_labels == ("z", "alone", "a")
    assert sorted(weights(F).round(12)) == [1, 2, 5]


def test_missing_indices_are_isolated_vertices(write):
    F = read_graph(write("0 2\n", "g.txt"), dim=2)
    assert F.vertex_dims.tolist() == [2, 2, 2]
    message = r"begin with 1, so vertex 0 has no edge\. .*range\(1, F.n_vert.*pass n_vertices=3 to"
    with pytest.warns(UserWarning, match=message) as said:
        F = read_graph(write("1 2\n", "g.txt"), dim=2)
    assert [w.filename for w in said] == [__file__]
    assert F.subsheaf(range(1, F.n_vertices)).edges.tolist() == [[0, 1]]
    assert F.dim_c0 == 6
    check(F, [[1, 2]], [1], 3)
    check(read_graph(write("1 2\n", "g.txt"), n_vertices=5), [[1, 2]], [1], 5)


@pytest.mark.parametrize(("largest", "kept"), [(11, False), (12, True)])
def test_sparse_integers_become_names_with_a_warning(write, largest, kept):
    path = write(f"5 2\n{largest} 5\n", "g.txt")  # 12 is too large for three vertices
    if kept:
        message = rf"3 vertices have numbers up to {largest}, .* n_vertices={largest + 1} to use"
        with pytest.warns(UserWarning, match=message) as said:
            F = read_graph(path)
        assert [w.filename for w in said] == [__file__]
        check(F, [[0, 1], [2, 0]], [1, 1], (5, 2, largest))
    check(read_graph(path, n_vertices=largest + 1), [[5, 2], [largest, 5]], [1, 1], largest + 1)
    if not kept:
        with pytest.warns(UserWarning, match="vertices 0 to 1 have no edges"):
            check(read_graph(path), [[5, 2], [largest, 5]], [1, 1], largest + 1)


def test_huge_integers_become_names(write):
    path = write(f"{10**30} 7\n7 8\n", "g.txt")
    with pytest.warns(UserWarning, match=r"too sparse for indices, .* as vertex_labels$"):
        check(read_graph(path), [[0, 1], [1, 2]], [1, 1], (10**30, 7, 8))


@pytest.mark.parametrize(
    ("name", "text", "n", "message"),
    [
        ("g.txt", INDICES, 3, "ValueError: g.txt:3: vertex 3 is out of range for `n_vertices` = 3"),
        ("g.txt", INDICES, -1, "ValueError: `n_vertices` must be at least 0, got -1"),
        ("g.txt", INDICES, 3.0, "TypeError: `n_vertices` must be an integer, got 3.0"),
        ("g.txt", INDICES, 2**40, f"ValueError: `n_vertices` requires {2**40} vertices"),
        ("g.txt", "-1 1\n", 3, "ValueError: g.txt:1: vertex -1 is out of range"),
        ("g.txt", "0 b\n", 3, "ValueError: requires names that are integers, got 'b'"),
        ("g.graph", "1 1\n2\n\n", 3, "ValueError: `n_vertices` is for edge lists"),
    ],
)
def test_files_inconsistent_with_n_vertices_raise(write, name, text, n, message):
    with raises(message):
        read_graph(write(text, name), n_vertices=n)


def test_short_mtx_with_millions_of_vertices_requires_n_vertices(write):
    n = IDLE + 4
    path = write(PATTERN + f"{n} {n} 2\n2 1\n4 3\n", "g.mtx")
    assert read_graph(path).n_vertices == n
    path = write(PATTERN + f"{n + 1} {n + 1} 2\n2 1\n4 3\n", "g.mtx")
    message = f"{n + 1} vertices, but 2 entries contain at most 4 of them: pass n_vertices="
    refuses(read_graph, path, 2, message)
    check(read_graph(path, n_vertices=n + 1), [[0, 1], [2, 3]], [1, 1], n + 1)
    refuses(read_graph, path, 2, f"`n_vertices` = {n} contradicts the size", n_vertices=n)


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
