"""Sparse matrices in canonical form, and when two index arrays are one."""

import numpy as np
import pytest

from sheafcoarsen.operators.csr import canonical_csr, index_dtype, same_array


def test_indices_have_32_bits_while_they_fit():
    assert index_dtype(0) == np.int32
    assert index_dtype(2**31 - 1) == np.int32
    assert index_dtype(2**31) == np.int64


def test_a_matrix_known_to_be_canonical_is_not_sorted_again():
    data, indices, indptr = np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 1, 2])
    A = canonical_csr(data, indices, indptr, (2, 2))
    assert A.has_canonical_format
    assert A.has_sorted_indices
    assert A.data is data or np.shares_memory(A.data, data)
    assert A.toarray().tolist() == [[0.0, 1.0], [2.0, 0.0]]


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (lambda a: a, True),
        (lambda a: a[:], True),
        (lambda a: a.copy(), True),
        (lambda a: a.astype(np.int32), True),
        (lambda a: a + (np.arange(6) == 5), False),
        (lambda a: a[::-1], False),
        (lambda a: a[:-1], False),
        (lambda a: a.reshape(2, 3), False),
        (lambda a: a.tolist(), False),
        (lambda a: None, False),
    ],
    ids=[
        "itself",
        "view",
        "copy",
        "cast",
        "changed",
        "reversed",
        "shorter",
        "reshaped",
        "list",
        "none",
    ],
)
def test_two_arrays_are_the_same_by_what_they_hold(other, same):
    array = np.array([0, 1, 3, 4, 9, 11])
    assert same_array(array, other(array)) is same
