"""Graph files that `read_graph` refuses, with the line of the error, and damaged ones."""

import functools
import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen.io import read_graph
from tests.support import errors
from tests.support.errors import raises
from tests.support.strategies import examples
from tests.unit.io.conftest import read_or_refused
from tests.unit.io.test_read_graph import ARRAY, FILES, GENERAL, GML, MTX, PATTERN, REAL, weights

refuses = functools.partial(errors.refuses, read_graph)

ENDINGS = [".mtx", ".graph", ".txt", ".csv", ".graphml", ".gml"]
SIGNS = (
    "must not be negative, got {} for edge 0 {}; CellularSheaf.signed, "
    "read_graph(path, signed=True) and --signed accept negative weights"
)

EDGE_LISTS = [
    ("0 1 1_000\n", 1, "must be a number, got '1_000'"),
    ("0 1 2\n0 2 \u0661\n", 2, "must be a number, got '\u0661'"),
    ("", None, "no edge"),
    ("0 1\n2\n", 2, "an edge is `u v [weight]`, separated by white space or commas, got 1 word"),
    ("0 1\n# c\n0 1 2 3\n", 3, "got 4 words"),
    ("0,1\n0,,2\n", 2, "got an empty field"),
    ("0 1 2\n0 2\n0 3 x\n", 3, "the weight of an edge must be a number, got 'x'"),
    ("source,target,weight\n0,1,2\n\n1,2,-2\n", 4, "must not be negative, got -2"),
    ("source,target,weight\n", 1, "must be a number, got 'weight'"),
    ("a,b,x\nb,c,2\n", 1, "must be a number, got 'x'"),
    ("0,1,x\n1,2,2\n", 1, "must be a number, got 'x'"),
    ("0 1\n\n0 2 -0.5\n", 3, "must not be negative, got -0.5; CellularSheaf.signed"),
    ("0 1 nan\n", 1, "the weight of an edge must be finite, got 'nan'"),
    ("0 1 1e999\n", 1, "must be finite"),
    ("0 1 1e307\n", None, "the largest entry of"),
    ("0 1 " + "x" * 1000, 1, "x..."),
    ("New York Boston 2\n", 1, "got 4 words; put names that contain blanks in quotes"),
    ('0 1 "2\n', 1, "a field in quotes cannot be read"),
]

METIS = [
    ("", None, "no header"),
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
    ("2 1\n1 2\n1\n", 2, "vertex 1 is its own neighbour"),
    ("3 2\n2\n1 3 1\n2\n", 3, "entry (2, 1) occurs a second time"),
    ("3 2\n2 3\n1\n\n", 2, "entry (1, 3) has no mirror image (3, 1)"),
    ("2 1 1\n2 5\n1 4\n", 2, "entry (1, 2) is 5, but its mirror image (2, 1) is 4"),
    ("2 1 1\n2 5\n1\n", 3, "requires a weight after each neighbour, got 1 number"),
    ("3 2 1\n2 4\n1 4 3 -5\n2 -5\n", 3, "must not be negative as the weight of an edge, got -5"),
    ("2 1 1\n2 nan\n1 nan\n", 2, "the weight of an edge must be finite"),
    ("2 1 10 2\n1 1 2\n1\n", 3, "requires 2 vertex sizes and weights first"),
    ("2 1 10\n1 2\nq 1\n", 3, "a vertex size or weight must be a number"),
]

NEGATIVE = "entry (3, 1) must not be negative as the weight of an edge"

MATRIX_MARKET = [
    ("", 1, "the first line must be"),
    ("4 4 1\n1 2\n", 1, "the first line must be"),
    (MTX + "coordinate real skew-symmetric\n2 2 1\n2 1 1\n", 1, "an adjacency is symmetric"),
    (MTX + "array pattern general\n1 1\n", 1, "unknown layout 'array pattern'"),
    (MTX + "coordinate complex hermitian\n2 2 1\n2 1 1 1\n", 1, "weights must be real"),
    (REAL + "% 3 3 2\n", None, "no line with its size"),
    (REAL + "\n3 3\n2 1 1.5\n", 3, "the size line must be `rows columns entries`, got '3 3'"),
    (ARRAY + "1 1 1\n2\n", 2, "the size line must be `rows columns`, got '1 1 1'"),
    (REAL + "-3 -3 0\n", 2, "the size line must be"),
    (REAL + "3 3 1\n2 1 1.5\n3 1 1\n", 2, "promises 1 entries, the file holds 2"),
    (REAL + "9 9 999999999999\n2 1 1\n", 2, "promises 999999999999 entries, the file holds 1"),
    (ARRAY + "100000 100000\n1\n", 2, "promises 10000000000 entries, the file holds 1"),
    (ARRAY + "3 0\n", 2, "square matrix, got 3 x 0"),
    (REAL + "3 3 2\n2 1 1.5\n3 1 x\n", 4, "the weight of an edge must be a number, got 'x'"),
    (REAL + "3 3 2\n2 1 1.5\n3 1\n", 4, "an entry is `row column weight`, got 2 words"),
    (PATTERN + "3 3 1\n2 1 1.5\n", 3, "an entry is `row column`, got 3 words"),
    (ARRAY + "1 1\n2 1\n", 3, "an entry is `weight`, got 2 words"),
    (REAL + "3 3 2\n2 1 1\n2 0 1.5\n", 4, "a row or column is out of range, got '0'"),
    (REAL + "9999999999 9999999999 1\n1 1 1\n", 2, "9999999999 vertices exceed the maximum"),
    (REAL + "% c\n3 3 2\n2 1 1.5\n3 1 nan\n", 5, "must be finite, got 'nan'"),
    (REAL + "3 3 2\n2 1 1\n\n3 1 -2\n", 5, NEGATIVE),
    (ARRAY + "2 2\n0\n3\n%\n-3\n0\n", 6, "entry (1, 2) must not be negative"),
    (REAL + "3 3 2\n2 1 1\n1 2 1\n", 4, "occurs a second time"),
    (GENERAL + "3 3 3\n2 1 1\n1 2 1\n3 1 2\n", 5, "entry (3, 1) has no mirror image (1, 3)"),
    (GENERAL + "2 2 2\n1 2 5\n2 1 4\n", 3, "entry (1, 2) is 5, but its mirror image (2, 1) is 4"),
    (ARRAY + "2 2\n0\n5\n4\n0\n", 4, "entry (2, 1) is 5, but its mirror image (1, 2) is 4"),
    (REAL + "2 2 1\n2 1 1e-305\n", None, "the largest entry of"),
]

GRAPHML = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n{}\n</graphml>'
KEY = '<key id="w" for="edge" attr.name="weight" attr.type="{}"/>\n'

NODES = '<graph edgedefault="{}"><node id="a"/><node id="b"/>\n'
BODY = NODES + '<edge source="a" target="b">{}</edge></graph>'
VALUE = '<data key="w">{}</data>'


def graphml(kind, value, default="undirected"):
    return GRAPHML.format(KEY.format(kind) + BODY.format(default, VALUE.format(value)))


def gml(weight="1", more="", first="multigraph 1"):
    return GML.replace("multigraph 1", first).format("", "", "", weight, more)


MIXED = BODY.format("undirected", "").replace("<edge ", '<edge directed="true" ')

BAD_GRAPHML = [
    ("", 1, "not XML"),
    (b"\x80\x00\xff" * 9, 1, "not XML"),
    (GRAPHML.format("<graph>\n</grap>"), 3, "not XML: mismatched tag"),
    ("<html></html>", None, "not a GraphML graph"),
    (graphml("double", "1", "directed"), None, "the graph is directed"),
    (GRAPHML.format(MIXED), None, "not a GraphML graph"),
    (graphml("double", "x"), None, "could not convert"),
    (graphml("string", "2"), None, "`weight` must hold"),
    (graphml("double", "-2"), None, SIGNS.format("-2.0", ("a", "b"))),
    (graphml("double", "NaN"), None, "`weight` must be finite"),
    (GRAPHML.format(BODY.format("undirected", VALUE.format(1))), None, "GraphML"),
    (graphml("complex", "1"), None, "not a GraphML graph"),
]

BAD_GML = [
    ("", None, "input contains no graph"),
    ("0 1\n1 2\n", 1, "expected EOF, found 0"),
    (b"\x80\x00\xff" * 9, 1, "not a text file"),
    (gml()[:-3], 6, "expected ']', found EOF"),
    (gml(first="directed 1 multigraph 1"), None, "the graph is directed"),
    (gml(more="node [ id 7 ]"), None, "node id 7 is duplicated"),
    (gml('"a"'), None, "`weight` must hold"),
    (gml("-2"), None, SIGNS.format("-2", (7, 8))),
    (gml("NAN"), None, "`weight` must be finite"),
    ("graph " + "[ a " * 10**5, None, "not a GML graph"),
]

CASES = [
    (*names, *case)
    for names, cases in (
        (("g.txt", "g.csv.gz"), EDGE_LISTS),
        (("g.graph", "g.graph.gz"), METIS),
        (("g.mtx", "g.mtx.gz"), MATRIX_MARKET),
        (("g.graphml", "g.graphml.gz"), BAD_GRAPHML),
        (("g.gml", "g.gml.gz"), BAD_GML),
    )
    for case in cases
]


@pytest.mark.parametrize(
    ("name", "packed", "text", "line", "message"), CASES, ids=[f"{c[0]} {c[-1]}" for c in CASES]
)
def test_invalid_files_raise_one_line(write, name, packed, text, line, message):
    said = refuses(write(text, name), line, message)
    refuses(write(text, packed), line, message)
    assert len(said) < 400


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_unsymmetric_mtx_raises(write, scale):
    text = GENERAL + f"2 2 2\n1 2 {scale!r}\n2 1 {scale * (1 + 1e-14)!r}\n"
    refuses(write(text, "g.mtx"), 3, "but its mirror image (2, 1) is")
    # relative to the largest weight: 1.4e-15 of 1 / 8, as of a product A^T A
    one, other = scale / 8, scale / 8 + 1.4e-15 * scale
    text = f"3 3 4\n1 3 {scale!r}\n3 1 {scale!r}\n1 2 {one!r}\n2 1 {other!r}\n"
    read_graph(write(GENERAL + text, "g.mtx"))


@pytest.mark.parametrize("signed", [False, True])
def test_stalks_that_exceed_memory_raise_before_allocation(write, signed):
    path = write("0 1\n", "g.txt")
    with raises("ValueError: g.txt: `dim` requires 1e+12 map entries (8e+03 GB)"):
        read_graph(path, 10**6, signed)


def test_non_finite_weights_raise_also_with_signed(write):
    refuses(write("a b nan\n", "g.txt"), 1, "nan", signed=True)
    refuses(write("a b x\n", "g.txt"), 1, "x", signed=True)
    refuses(write(graphml("string", "heavy"), "g.graphml"), None, "", signed=True)


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
    if (F := read_or_refused(read_graph, path, signed=signed)) is not None:
        assert np.isfinite(F.tail_data).all()
        assert signed or (weights(F) >= 0).all()


def test_unknown_file_extension_raises_error_that_lists_known_ones(tmp_path):
    for name in ("graph.net", "graph", "graph.gz", "graph.net.gz"):
        message = refuses(tmp_path / name, None, "unknown file extension")
        for ending in (*ENDINGS, ".edges", ".edgelist", ".tsv", ".el", ".gz"):
            assert ending in message
        assert message.endswith("read_g2o reads .g2o, read_mesh .off, .obj and .ply, load .npz")
