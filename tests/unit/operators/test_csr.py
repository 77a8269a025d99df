"""Sparse matrices in canonical form, and their index types."""

import numpy as np

from sheafcoarsen.operators import canonical_csr, index_dtype


def test_index_dtype_is_int32_if_it_suffices():
    assert index_dtype(0) == np.int32
    assert index_dtype(2**31 - 1) == np.int32
    assert index_dtype(2**31) == np.int64


def test_canonical_csr_is_not_sorted_again():
    data, indices, indptr = np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 1, 2])
    A = canonical_csr(data, indices, indptr, (2, 2))
    assert A.has_canonical_format
    assert A.has_sorted_indices
    assert A.data is data or np.shares_memory(A.data, data)
    assert A.toarray().tolist() == [[0.0, 1.0], [2.0, 0.0]]
