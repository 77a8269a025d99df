"""MatrixMarket files of all kinds, and invalid ones."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from sheafcoarsen.io import read_graph
from sheafcoarsen.io.graph_files import IDLE
from sheafcoarsen.sheaf import CellularSheaf
from tests.support.helpers import assert_residual
from tests.unit.io.test_read_graph import REAL, check, refuses

PATTERN = "%%MatrixMarket matrix coordinate pattern symmetric\n"
GENERAL = "%%MatrixMarket matrix coordinate real general\n"
ARRAY = "%%MatrixMarket matrix array real general\n"


def test_mtx_patterns_have_unit_weights_loops_and_isolated_vertices(write):
    F = read_graph(write(PATTERN + "5 5 3\n3 3\n3 1\n2 1\n", "g.mtx"))
    check(F, [[0, 1], [0, 2], [2, 2]], [1, 1, 1], n=5)


def test_mtx_may_have_integer_weights_or_no_entries(write):
    header = "%%MatrixMarket matrix coordinate integer symmetric\n"
    check(
        read_graph(write(header + "2 2 2\n2 1 7\n2 2 3\n", "g.mtx")), [[0, 1], [1, 1]], [7, 3], n=2
    )
    check(read_graph(write(header + "3 3 0\n", "g.mtx")), [], [], n=3)
    check(read_graph(write(ARRAY + "0 0\n", "g.mtx")), [], [], n=0)


def test_short_mtx_with_millions_of_vertices_requires_n_vertices(write):
    n = IDLE + 4
    path = write(PATTERN + f"{n} {n} 2\n2 1\n4 3\n", "g.mtx")
    assert read_graph(path).n_vertices == n
    path = write(PATTERN + f"{n + 1} {n + 1} 2\n2 1\n4 3\n", "g.mtx")
    refuses(path, 2, f"{n + 1} vertices, but 2 entries contain at most 4 of them: pass n_vertices=")
    check(read_graph(path, n_vertices=n + 1), [[0, 1], [2, 3]], [1, 1], n=n + 1)
    message = rf"g\.mtx:2: `n_vertices` = {n} contradicts the size line, {n + 1}"
    with pytest.raises(ValueError, match=message):
        read_graph(path, n_vertices=n)


def test_mtx_may_be_unsymmetric_by_rounding_errors(write):
    F = read_graph(write(GENERAL + "2 2 2\n1 2 1.0000000000000002\n2 1 1\n", "g.mtx"))
    check(F, [[0, 1]], [1], n=2)


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_unsymmetric_mtx_raises(write, scale):
    text = GENERAL + f"2 2 2\n1 2 {scale!r}\n2 1 {scale * (1 + 1e-14)!r}\n"
    refuses(write(text, "g.mtx"), 3, "but its mirror image (2, 1) is")
    # relative to the largest weight: 1.4e-15 of 1 / 8, as of a product A^T A
    other = (
        f"1 3 {scale!r}\n3 1 {scale!r}\n1 2 {scale / 8!r}\n2 1 {scale / 8 + 1.4e-15 * scale!r}\n"
    )
    read_graph(write(GENERAL + "3 3 4\n" + other, "g.mtx"))
    text = f"2 1 1\n2 {scale!r}\n1 {scale * (1 + 1e-14)!r}\n"
    refuses(write(text, "g.graph"), 2, "at its other end (line 3)")


@given(st.integers(1, 8), st.integers(0, 2**32), st.booleans())
def test_mtx_written_by_scipy_is_read(tmp_path_factory, n, seed, as_general):
    rng = np.random.default_rng(seed)
    A = scipy.sparse.coo_array(np.where(rng.random((n, n)) < 0.4, rng.random((n, n)), 0.0))
    A = scipy.sparse.csr_array(A + A.T)
    path = tmp_path_factory.mktemp("mtx") / "a.mtx"
    scipy.io.mmwrite(path, A, symmetry="general" if as_general else "symmetric", precision=17)
    F, expected = read_graph(path), CellularSheaf.constant(A)
    np.testing.assert_array_equal(F.edges, expected.edges)
    assert_residual(F.tail_data - expected.tail_data, expected.tail_data, n=1)
    assert F.n_vertices == n


BAD_MTX = [
    ("", 1, "the first line must be"),
    ("4 4 1\n1 2\n", 1, "the first line must be"),
    ("%%MatrixMarket matrix coordinate real odd\n1 1 0\n", 1, "an adjacency is symmetric"),
    (
        REAL.replace("symmetric", "skew-symmetric") + "2 2 1\n2 1 1\n",
        1,
        "an adjacency is symmetric",
    ),
    ("%%MatrixMarket matrix array pattern general\n1 1\n", 1, "unknown layout 'array pattern'"),
    (
        "%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 1 1 1\n",
        1,
        "weights must be real",
    ),
    (REAL + "% 3 3 2\n", None, "no line with its size"),
    (REAL + "\n3 3\n2 1 1.5\n", 3, "the size line must be `rows columns entries`, got '3 3'"),
    (ARRAY + "1 1 1\n2\n", 2, "the size line must be `rows columns`, got '1 1 1'"),
    (REAL + "-3 -3 0\n", 2, "the size line must be"),
    (REAL + "3 3 2\n2 1 1.5\n", 2, "promises 2 entries, the file holds 1"),
    (REAL + "3 3 1\n2 1 1.5\n3 1 1\n", 2, "promises 1 entries, the file holds 2"),
    (REAL + "9 9 999999999999\n2 1 1\n", 2, "promises 999999999999 entries, the file holds 1"),
    (ARRAY + "100000 100000\n1\n", 2, "promises 10000000000 entries, the file holds 1"),
    (ARRAY + "3 0\n", 2, "square matrix, got 3 x 0"),
    (REAL + "3 3 2\n2 1 1.5\n3 1 x\n", 4, "the weight of an edge must be a number, got 'x'"),
    (REAL + "3 3 2\n2 1 1.5\n3 1\n", 4, "an entry is `row column weight`, got 2 words"),
    (PATTERN + "3 3 1\n2 1 1.5\n", 3, "an entry is `row column`, got 3 words"),
    (ARRAY + "1 1\n2 1\n", 3, "an entry is `weight`, got 2 words"),
    (
        REAL + "3 3 1\n4 1 1.5\n",
        3,
        "a row or column is out of range, got '4'; they count from 1 to 3",
    ),
    (REAL + "3 3 2\n2 1 1\n2 0 1.5\n", 4, "a row or column is out of range, got '0'"),
    (REAL + "99999999999999999999 3 1\n1 1 1\n", 2, "square matrix"),
    (REAL + "9999999999 9999999999 1\n1 1 1\n", 2, "9999999999 vertices exceed the maximum"),
    (GENERAL + "3 2 1\n1 2 5\n", 2, "square matrix, got 3 x 2"),
    (REAL + "% c\n3 3 2\n2 1 1.5\n3 1 nan\n", 5, "must be finite, got 'nan'"),
    (REAL + "3 3 2\n2 1 1e400\n3 1 1\n", 3, "must be finite"),
    (
        REAL + "3 3 2\n2 1 1.5\n\n3 1 -2\n",
        5,
        "entry (3, 1) must not be negative as the weight of an edge",
    ),
    (ARRAY + "2 2\n0\n3\n%\n-3\n0\n", 6, "entry (1, 2) must not be negative"),
    (REAL + "3 3 3\n2 1 1.5\n3 1 2\n2 1 2\n", 5, "entry (2, 1) occurs a second time"),
    (REAL + "3 3 2\n2 1 1\n1 2 1\n", 4, "occurs a second time"),
    (GENERAL + "3 3 3\n2 1 1\n1 2 1\n3 1 2\n", 5, "entry (3, 1) has no mirror image (1, 3)"),
    (GENERAL + "2 2 2\n1 2 5\n2 1 4\n", 3, "entry (1, 2) is 5, but its mirror image (2, 1) is 4"),
    (ARRAY + "2 2\n0\n5\n4\n0\n", 4, "entry (2, 1) is 5, but its mirror image (1, 2) is 4"),
    (REAL + "2 2 1\n2 1 1e-305\n", None, "the largest entry of"),
]


@pytest.mark.parametrize(("text", "line", "message"), BAD_MTX, ids=[row[-1] for row in BAD_MTX])
def test_invalid_mtx_raises(write, text, line, message):
    refuses(write(text, "g.mtx"), line, message)
    refuses(write(text, "g.mtx.gz"), line, message)
