"""Columns of R and work space for one level."""

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._support import eps_of
from sheafcoarsen.modes import as_matrix, block_layout

EPS = eps_of(np.float64)


CHUNK = 64
"""Rows that a QR takes at a time."""


def room_for(n: int, k: int, rows: int, dtype) -> kernels.Room:
    n, k = max(n, 1), max(k, 1)
    sizes = (max(rows * k, k * k), max(rows, k), k, k * k, n * k, n * k)
    return kernels.Room(*(np.empty(size, dtype) for size in sizes))


def check_status(results, what: str) -> None:
    for a in results:
        if a >= 0:
            raise np.linalg.LinAlgError(f"LAPACK failed on {what} {a}")


def columns_of(
    sheaf, partition, clusters, kept, z_starts, z, first, counts
) -> scipy.sparse.csr_array:
    """Return columns first .. first + counts of every cluster's block of z as a block-sparse matrix."""
    indptr, indices = block_layout(sheaf, partition, counts)
    data = np.empty(len(indices), z.dtype)
    f = sheaf.arrays
    kernels.store_columns(
        0, len(counts), f, clusters, kept, z_starts, z, first, counts, indptr, data
    )
    return as_matrix(indptr, indices, data, int(counts.sum()))
