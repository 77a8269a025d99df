"""METIS graph files of all kinds, and invalid ones."""

import pytest

from sheafcoarsen.io import read_graph
from tests.unit.io.test_read_graph import check, refuses


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


def test_empty_lines_are_isolated_vertices(write):
    check(read_graph(write("4 1\n\n4\n\n2\n", "g.graph")), [[1, 3]], [1], n=4)
    # spare empty lines
    check(read_graph(write("3 1\n2\n1\n\n\n\n", "g.graph")), [[0, 1]], [1], n=3)
    check(read_graph(write("0 0\n", "g.graph")), [], [], n=0)
    check(read_graph(write("2 0 1\n\n\n", "g.graph")), [], [], n=2)


BAD_METIS = [
    ("", None, "no header"),
    ("% a\n%b\n", None, "no header"),
    ("% a\n4\n", 2, "the header must be `n m [fmt [ncon]]`, got 1 word"),
    ("4 3 1 1 1\n", 1, "got 5 words"),
    ("4 x\n", 1, "a number of the header must be a whole number, got 'x'"),
    ("-4 3\n", 1, "negative numbers, got -4"),
    ("2 1 2\n2\n1\n", 1, "fmt must be up to three digits 0 or 1, got '2'"),
    ("2 1 10 x\n", 1, "whole number, got 'x'"),
    ("3 2\n2\n1 3\n", 1, "promises 3 vertices"),
    ("2 1\n2\n1\n1\n", 1, "promises 2 vertices, one line each (empty"),
    ("3 3\n2\n1 3\n2\n", 1, "promises 3 edges, the lines hold 2"),
    ("% c\n3 1\n2\n1 3\n2\n", 2, "promises 1 edges, the lines hold 2"),
    ("3 2\n2\n1 4\n2\n", 3, "neighbour is out of range, got '4'; they count from 1 to 3"),
    ("2 1\n%\n2\n0\n", 4, "a neighbour is out of range, got '0'"),
    ("2 1\n2\n99999999999999999999999\n", 3, "is out of range"),
    ("2 1\n2\none\n", 3, "a neighbour must be a whole number, got 'one'"),
    ("2 1\n2.5\n1\n", 2, "whole number, got '2.5'"),
    ("2 1\n1 2\n1\n", 2, "vertex 1 is its own neighbour"),
    ("3 2\n2\n1 3 1\n2\n", 3, "vertex 2 has neighbour 1 twice"),
    ("3 2\n2 3\n1\n\n", 2, "vertex 1 has neighbour 3, but vertex 3 (line 4) does not"),
    ("2 1 1\n2 5\n1 4\n", 2, "edge 1 2 has weight 5 here and 4 at its other end (line 3)"),
    ("2 1 1\n2 5\n1\n", 3, "requires a weight after each neighbour, got 1 number"),
    ("3 2 1\n2 4\n1 4 3 -5\n2 -5\n", 3, "must not be negative, got -5"),
    ("2 1 1\n2 nan\n1 nan\n", 2, "the weight of an edge must be finite"),
    ("2 1 1\n2 5\n1 v\n", 3, "the weight of an edge must be a number, got 'v'"),
    ("2 1 10 2\n1 1 2\n1\n", 3, "requires 2 vertex sizes and weights first"),
    ("2 1 10\n1 2\nq 1\n", 3, "a vertex size or weight must be a number"),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD_METIS, ids=[row[-1] for row in BAD_METIS])
def test_invalid_metis_files_raise(write, text, line, message):
    refuses(write(text, "g.graph"), line, message)
    refuses(write(text, "g.graph.gz"), line, message)
