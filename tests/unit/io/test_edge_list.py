"""Edge lists with integers and with names, and invalid ones."""

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.io import read_graph
from tests.unit.io.test_read_graph import check, refuses


@pytest.mark.parametrize("ending", [".txt", ".edges", ".edgelist", ".csv", ".tsv", ".el", ".CSV"])
@pytest.mark.parametrize("separator", [" ", "\t", ",", ", ", " , ", "  "])
def test_edge_list_formats(write, ending, separator):
    lines = [["5", "3", "4"], ["3", "-2"], ["5", "5", "0"], ["3", "5", "1e-2"]]
    text = "# head, with comma\n\n" + "\n".join(separator.join(line) for line in lines)
    F = read_graph(write(text, "g" + ending))
    check(F, [[0, 1], [1, 2], [0, 0], [1, 0]], [4, 1, 0, 0.01], labels=(5, 3, -2))


def test_edge_lists_may_contain_names(write):
    F = read_graph(write("b a\n7 b\n", "g.txt"))
    check(F, [[0, 1], [2, 0]], [1, 1], labels=("b", "a", "7"))
    F = read_graph(write("b a\n7 8\n9 b\n", "g.txt"))  # not headings, because b occurs again
    assert F.vertex_labels == ("b", "a", "7", "8", "9")
    F = read_graph(write("007 8\n7 0\n", "g.txt"))  # codes, not integers
    check(F, [[0, 1], [2, 3]], [1, 1], labels=("007", "8", "7", "0"))
    F = read_graph(write("007 8\n7 0\n", "g.txt"), n_vertices=9)
    check(F, [[7, 8], [7, 0]], [1, 1], n=9)
    F = read_graph(write("01001 01003\n7 8\n8 9\n", "g.txt"))  # not headings
    assert F.n_edges == 3
    F = read_graph(write("1_0 2\n2.0 2\n", "g.txt"))
    check(F, [[0, 1], [2, 1]], [1, 1], labels=("1_0", "2", "2.0"))
    F = read_graph(write("\ufeffé ü\n", "g.txt"))  # byte order mark
    check(F, [[0, 1]], [1], labels=("é", "ü"))


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
    F = read_graph(write(text, name))
    check(F, [[0, 1], [2, 0]], [4, 1], labels=("New York", "St Louis", "Washington, D.C."))


def test_commas_and_blanks_may_be_mixed_in_files_that_are_not_tables(write):
    check(read_graph(write("0,1 4\n1 ,2\n", "g.txt")), [[0, 1], [1, 2]], [4, 1], n=3)
    refuses(write("New York,Boston,3\n", "g.txt"), 1, "got 4 words; put names that contain blanks")


def test_edge_lists_may_contain_comments(write):
    F = read_graph(write("% x\n0 1 # note, that\n  # y\nC# 1 2 %z\n\x0c\n", "g.txt"))
    check(F, [[0, 1], [2, 1]], [1, 2], labels=("0", "1", "C#"))
    F = read_graph(write('0 1 # say "hi"\n"#1" 1 2 % "y\n"a",1 # z\n', "g.txt"))
    check(F, [[0, 1], [2, 1], [3, 1]], [1, 2, 1], labels=("0", "1", "#1", "a"))
    F = read_graph(write("a b,c, 2 # x\n", "g.csv"))
    check(F, [[0, 1]], [2], labels=("a b", "c"))


@pytest.mark.parametrize(
    "first", ["source,target,weight", '"from","to","w"', "\n# c\nu v weight", "source,target"]
)
def test_headings_are_skipped(write, first):
    F = read_graph(write(f"{first}\n2,1,4\n1,0\n", "g.csv"))
    check(F, [[2, 1], [1, 0]], [4, 1], n=3)
    F = read_graph(write(f"{first}\n0,1\n", "g.csv"), n_vertices=3)  # names must be integers
    check(F, [[0, 1]], [1], n=3)


def test_headings_of_names_are_skipped_if_the_weight_is_not_a_number(write):
    F = read_graph(write("source,target,weight\nb,a,4\na,7,1\n", "g.csv"))
    check(F, [[0, 1], [1, 2]], [4, 1], labels=("b", "a", "7"))
    F = read_graph(write("Source,Target\nb,a\n", "g.csv"))
    check(F, [[0, 1]], [1], labels=("b", "a"))
    F = read_graph(write("tail,head\nb,a\n", "g.csv"))  # this may be an edge
    assert F.vertex_labels == ("tail", "head", "b", "a")


def test_edge_lists_may_have_any_line_endings(write):
    for end in ("\n", "\r\n", "\r"):
        check(read_graph(write(f"0 1{end}{end}1 2{end}", "g.txt")), [[0, 1], [1, 2]], [1, 1], n=3)


# ---------------------------------------------------------------- integers are indices


@pytest.mark.parametrize("ending", [".txt", ".csv", ".el.gz"])
def test_integer_names_are_vertex_indices(write, ending):
    """Features and labels of another file match the vertices, whatever the order of edges."""
    F = read_graph(write("4 1\n0 4\n6 1 2.25\n", "g" + ending))
    check(F, [[4, 1], [0, 4], [6, 1]], [1, 1, 2.25], n=7)
    y = np.array([1.0, 5.0, 100.0, -7.0, 2.0, 30.0, 8.0])
    assert sc.energy(F, y) == 3**2 + 1**2 + 2.25 * 3**2


def test_integers_in_float_notation_are_integers(write, tmp_path):
    """The format of numpy.savetxt, with or without a column of weights."""
    edges, weights = [[3, 1], [1, 0], [7, 3]], [0.25, 4.0, 2.0]
    for table, expected in ((edges, [1, 1, 1]), (np.column_stack([edges, weights]), weights)):
        np.savetxt(tmp_path / "g.txt", table)
        assert "3.000000000000000000e+00" in (tmp_path / "g.txt").read_text()
        check(read_graph(tmp_path / "g.txt"), edges, expected, n=8)
    check(
        read_graph(write("3.0 1\n1. 0\n-0.0 2e0\n", "g.txt")),
        [[3, 1], [1, 0], [0, 2]],
        [1] * 3,
        n=4,
    )
    F = read_graph(write("1.0 2\n2.5 1\n", "g.txt"))  # not an integer, so all are names
    check(F, [[0, 1], [2, 3]], [1, 1], labels=("1.0", "2", "2.5", "1"))
    for name in ("1e400", "nan", "inf", "9007199254740992.0", "1_0.0"):
        F = read_graph(write(f"{name} 2\n", "g.txt"))
        check(F, [[0, 1]], [1], labels=(name, "2"))


def test_missing_indices_are_isolated_vertices(write):
    F = read_graph(write("0 2\n", "g.txt"), dim=2)
    assert F.vertex_dims.tolist() == [2, 2, 2]
    message = r"begin with 1, so vertex 0 has no edge\. .*range\(1, F.n_vert.*pass n_vertices=3 to"
    with pytest.warns(UserWarning, match=message) as said:
        F = read_graph(write("1 2\n", "g.txt"), dim=2)
    assert [w.filename for w in said] == [__file__]
    assert F.subsheaf(range(1, F.n_vertices)).edges.tolist() == [[0, 1]]
    assert (F.n_vertices, F.dim_c0, F.vertex_labels) == (3, 6, None)
    assert np.bincount(F.edges.reshape(-1), minlength=3).tolist() == [0, 1, 1]
    F = read_graph(write("1 2\n", "g.txt"), n_vertices=5)
    assert (F.n_vertices, F.vertex_labels) == (5, None)


@pytest.mark.parametrize(("largest", "kept"), [(11, False), (12, True)])
def test_sparse_integers_become_names_with_a_warning(write, largest, kept):
    path = write(
        f"5 2\n{largest} 5\n", "g.txt"
    )  # three vertices: integers of at least 12 are too sparse
    if kept:
        message = rf"3 vertices have numbers up to {largest}, .* n_vertices={largest + 1} to use"
        with pytest.warns(UserWarning, match=message) as said:
            F = read_graph(path)
        assert [w.filename for w in said] == [__file__]
        check(F, [[0, 1], [2, 0]], [1, 1], labels=(5, 2, largest))
    F = read_graph(path, n_vertices=largest + 1)
    check(F, [[5, 2], [largest, 5]], [1, 1], n=largest + 1)
    if not kept:
        with pytest.warns(UserWarning, match="vertices 0 to 1 have no edges"):
            F = read_graph(path)
        check(F, [[5, 2], [largest, 5]], [1, 1], n=largest + 1)


def test_huge_integers_become_names(write):
    path = write(f"{10**30} 7\n7 8\n", "g.txt")
    with pytest.warns(UserWarning, match=r"too sparse for indices, .* as vertex_labels$"):
        F = read_graph(path)
    check(F, [[0, 1], [1, 2]], [1, 1], labels=(10**30, 7, 8))


def test_files_inconsistent_with_n_vertices_raise(write):
    path = write("0 1\n# c\n1 3\n", "g.txt")
    with pytest.raises(ValueError, match=r"g.txt:3: vertex 3 is out of range for `n_vertices` = 3"):
        read_graph(path, n_vertices=3)
    with pytest.raises(ValueError, match="`n_vertices` must be at least 0, got -1"):
        read_graph(path, n_vertices=-1)
    with pytest.raises(TypeError, match="`n_vertices` must be an integer, got 3.0"):
        read_graph(path, n_vertices=3.0)
    with pytest.raises(ValueError, match="`n_vertices` requires .* vertices"):
        read_graph(path, n_vertices=2**40)
    with pytest.raises(ValueError, match=r"g.txt:1: vertex -1 is out of range"):
        read_graph(write("-1 1\n", "g.txt"), n_vertices=3)
    with pytest.raises(ValueError, match=r"requires names that are integers, got 'b'"):
        read_graph(write("0 b\n", "g.txt"), n_vertices=3)
    with pytest.raises(ValueError, match=r"`n_vertices` is for edge lists"):
        read_graph(write("1 1\n2\n\n", "g.graph"), n_vertices=3)


BAD_LISTS = [
    ("0 1 1_000\n", 1, "must be a number, got '1_000'"),
    ("0 1 2\n0 2 \u0661\n", 2, "must be a number, got '\u0661'"),
    ("", None, "no edge"),
    ("# a\n\n", None, "no edge"),
    ("0 1\n2\n", 2, "an edge is `u v [weight]`, separated by white space or commas, got 1 word"),
    ("0 1\n# c\n0 1 2 3\n", 3, "got 4 words"),
    ("0,1\n0,,2\n", 2, "got an empty field"),
    ("0,1,\n", 1, "got an empty field"),
    ("0 1 2\n0 2\n0 3 x\n", 3, "the weight of an edge must be a number, got 'x'"),
    ("source,target,weight\n0,1,2\n1,2,heavy\n", 3, "must be a number, got 'heavy'"),
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
    ('a "b c\n', 1, "a field in quotes cannot be read"),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD_LISTS, ids=[row[-1] for row in BAD_LISTS])
def test_invalid_edge_lists_raise(write, text, line, message):
    said = refuses(write(text, "g.txt"), line, message)
    refuses(write(text, "g.csv.gz"), line, message)
    assert len(said) < 400
