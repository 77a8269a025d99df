"""GraphML and GML, which networkx reads, and what is wrong with others."""

import networkx as nx
import pytest

from sheafcoarsen.io import read_graph
from sheafcoarsen.sheaf import CellularSheaf
from tests.unit.io.test_read_graph import (
    BODY,
    GML,
    GRAPHML,
    VALUE,
    check,
    graphml,
    refuses,
    weights,
)

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


@pytest.mark.parametrize(("text", "line", "message"), BAD_GRAPHML.values(), ids=BAD_GRAPHML)
def test_bad_graphml(write, text, line, message):
    refuses(write(text, "g.graphml"), line, message)
    refuses(write(text, "g.graphml.gz"), line, message)


def test_good_graphml_of_the_same_form(write):
    F = read_graph(write(graphml("double", "6.25"), "g.graphml"))
    check(F, [[0, 1]], [6.25], labels=("a", "b"))


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
