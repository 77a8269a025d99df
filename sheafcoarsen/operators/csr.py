"""Sparse matrices in canonical form, and their index types."""

from typing import Any

import numpy as np
import scipy.sparse


def index_dtype(largest: int) -> Any:
    """Return scipy's index type for values up to ``largest``: int32 if it fits, else int64."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def canonical_csr(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> scipy.sparse.csr_array:
    """Return the CSR matrix with the given arrays, whose indices must be sorted and unique."""
    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
    matrix.has_canonical_format = True
    return matrix
