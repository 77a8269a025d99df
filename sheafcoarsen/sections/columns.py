"""Columns of R and work space for one level."""

import numpy as np

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._kernels.modes import Blocks, put_columns
from sheafcoarsen._support import eps_of, read_only
from sheafcoarsen.modes import Prolongation, block_layout

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


def columns_of(sheaf, clusters, kept, z_starts, z, first, counts) -> Prolongation:
    """Return columns first .. first + counts of every cluster's block of z as a prolongation."""
    counts = read_only(counts.copy())
    indptr, indices = block_layout(sheaf, clusters, counts)
    data = np.empty(len(indices), z.dtype)
    blocks = Blocks(indptr, data, counts)
    put_columns(sheaf.arrays, clusters, z, z_starts[:-1] + first, kept, blocks)
    return Prolongation(sheaf, clusters, counts, indptr, indices, data)
