"""Conversion of arrays: supported scalar types, integers, and errors about the first bad entry."""

import re

import numpy as np
import pytest
import scipy.sparse

import sheafcoarsen as sc
from sheafcoarsen._support import (
    MAX_DIMENSION,
    SCALARS,
    csr_matrix,
    dimensions,
    integer_array,
    items,
    scalar_array,
    scalar_type,
)


def refuses(error, message):
    return pytest.raises(error, match=re.escape(message))


@pytest.mark.parametrize("dtype", SCALARS)
def test_scalar_arrays_keep_their_type_in_native_byte_order(dtype):
    array = np.array([1, 2], dtype)
    assert scalar_array("x", array) is array
    swapped = array.astype(array.dtype.newbyteorder())
    cast = scalar_array("x", swapped)
    assert cast.dtype == dtype
    assert cast.dtype.isnative
    assert cast.tolist() == [1, 2]
    assert scalar_type("dtype", swapped.dtype) == np.dtype(dtype)
    assert scalar_type("dtype", np.dtype(dtype).name) == np.dtype(dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64])
def test_integer_arrays_become_float64(dtype):
    cast = scalar_array("x", np.array([[1, 2]], dtype))
    assert cast.dtype == np.float64
    assert cast.tolist() == [[1.0, 2.0]]


MODES = sc.eigenmodes(sc.CellularSheaf.constant([[0, 1]]), 1)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (np.ones(2, np.float16), TypeError, "got dtype float16"),
        (np.ones(2, bool), TypeError, "got dtype bool"),
        (["a"], TypeError, "`x` must hold float32, float64"),
        ([None], TypeError, "got dtype object"),
        (Exception(), TypeError, "or integers, got Exception"),
        (MODES, TypeError, "got Eigenmodes: pass a column, such as modes.vectors[:, 0]"),
        ([[1.0], [1.0, 2.0]], ValueError, "`x` must be a rectangular array of numbers"),
        (scipy.sparse.eye_array(2), TypeError, "got a sparse one: use .toarray()"),
    ],
    ids=["half", "bool", "text", "object", "other type", "modes", "ragged", "sparse"],
)
def test_scalar_array_rejects_other_arrays(value, error, message):
    with refuses(error, message):
        scalar_array("x", value)


def test_error_about_text_has_no_hint_by_default():
    with pytest.raises(TypeError) as raised:
        integer_array("edges", ["a"])
    assert "unique" not in str(raised.value)


def test_dimensions_repeats_an_integer():
    assert dimensions("d", 3, 2, "vertex").tolist() == [3, 3]
    assert dimensions("d", np.array(3), 2, "vertex").tolist() == [3, 3]
    assert dimensions("d", [0, 2.0], 2, "vertex").tolist() == [0, 2]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "`d` must have one entry per edge, 2 in all, got 1"),
        ([0, -3], "`d` must not be negative, got -3 at index 1"),
        (-3, "`d` must be at least 0, got -3"),
        (MAX_DIMENSION, f"`d` must sum to at most {MAX_DIMENSION}, got 1.8e+16"),
        (10**400, f"`d` must sum to at most {MAX_DIMENSION}"),
    ],
    ids=["few", "negative", "all negative", "large", "huge"],
)
def test_impossible_dimensions_raise(value, message):
    with refuses(ValueError, message):
        dimensions("d", value, 2, "edge")
    assert dimensions("d", MAX_DIMENSION // 2, 2, "edge").sum() == MAX_DIMENSION


SPARSE = scipy.sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1.5], [0, 1.5, 0]]))

DAMAGE = {
    "large index": ("indices", lambda a: a + 10**9),
    "negative index": ("indices", lambda a: -a),
    "last index": ("indices", lambda a: np.where(a == 2, 3, a)),
    "too few indices": ("indices", lambda a: a[:-1]),
    "descending": ("indptr", lambda a: a[[0, 2, 1, 3]]),
    "too few rows": ("indptr", lambda a: a[:-1]),
    "too many entries": ("indptr", lambda a: a * 2),
    "first row": ("indptr", lambda a: np.maximum(a, 1)),
    "too few values": ("data", lambda a: a[:-1]),
}


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(("attribute", "change"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_csr_csc_and_bsr_matrices_raise(kind, attribute, change):
    A = SPARSE.asformat(kind).copy()
    setattr(A, attribute, change(getattr(A, attribute)))
    with refuses(ValueError, "`A` is a damaged sparse matrix: "):
        csr_matrix("A", A)
    for use in (
        sc.CellularSheaf.constant,
        lambda A: sc.CellularSheaf.from_laplacian(A, 1),
        lambda A: sc.select(A, 2),
        lambda A: sc.HiSP(2, 1)(sc.CellularSheaf.constant(SPARSE), np.ones((3, 1)), A),
        sc.Partition.from_assignment,
    ):
        with pytest.raises(ValueError, match="is a damaged sparse matrix: "):
            use(A)


def test_damaged_matrices_of_other_formats_raise():
    coo, rows, data = SPARSE.tocoo(), SPARSE.tolil(), SPARSE.tolil()
    coo.coords = (coo.coords[0], coo.coords[1] + 1)
    rows.rows[0] = [3]
    data.data[0] = [1.0] * 1000
    row = SPARSE.tocoo()
    row.coords = (row.coords[0] - 1, row.coords[1])
    for A, message in (
        (coo, "entry 2 has the column index 3, out of range for 3 columns"),
        (row, "entry 0 has the row index -1, out of range for 3 rows"),
        (rows, "axis 1 index 3 exceeds matrix dimension 3"),
        (data, "its `rows` and `data` differ in length"),
    ):
        with refuses(ValueError, f"`A` is a damaged sparse matrix: {message}"):
            csr_matrix("A", A)


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_csr_matrix_copies_valid_matrices(kind):
    A = SPARSE.asformat(kind)
    B = csr_matrix("A", A)
    np.testing.assert_array_equal(B.toarray(), SPARSE.toarray())
    B.data[:] = 0
    np.testing.assert_array_equal(A.toarray(), SPARSE.toarray())
    wide = scipy.sparse.coo_array(np.eye(2, 4)).asformat(kind)
    np.testing.assert_array_equal(csr_matrix("A", wide).toarray(), np.eye(2, 4))


def test_items_returns_the_items_of_an_iterable():
    assert items("names", iter("ab"), "names") == ("a", "b")
    for value in ("ab", b"ab", 3, None, SPARSE.tobsr(), SPARSE):
        with refuses(TypeError, f"`names` must be a sequence of names, got {type(value).__name__}"):
            items("names", value, "names")
