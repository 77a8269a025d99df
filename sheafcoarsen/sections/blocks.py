"""Dense blocks of clusters: room to work in, and their columns as a prolongation."""

import numpy as np

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._kernels.dense import svd_workspace
from sheafcoarsen._kernels.modes import Blocks, put_columns
from sheafcoarsen._support import read_only
from sheafcoarsen.modes import Prolongation, block_layout
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf


def room_for(n: int, k: int, dtype: np.dtype, map_size: int = 0) -> kernels.Room:
    """Allocate a workspace for clusters of dimension at most n that keep at most k.

    ``map_size``: entries of both maps of an edge, where operators are assembled.
    """
    lapack = svd_workspace(n, n, dtype, map_size)
    n, k = max(n, 1), max(k, 1)
    rows = max(n, 2 * k, k + kernels.STACKED_ROWS)
    sizes = (rows * k, rows, k, k * k, n * k, n * k)
    return kernels.Room(lapack, *(np.empty(size, dtype) for size in sizes))


def check_status(failed: list[int], what: str) -> None:
    """Say which vertex or cluster LAPACK failed on, the first number that is not -1."""
    for a in failed:
        if a >= 0:
            raise np.linalg.LinAlgError(f"LAPACK failed on {what} {a}")


def block_columns(
    sheaf: CellularSheaf,
    clusters: Clusters,
    widths: np.ndarray,
    blocks: kernels.Ragged,
    first: np.ndarray,
    counts: np.ndarray,
) -> Prolongation:
    """Return columns first .. first + counts of every cluster's N_a x widths[a] block."""
    indptr, indices = block_layout(sheaf, clusters, counts)
    data = np.empty(len(indices), blocks.data.dtype)
    out = Blocks(indptr, data, read_only(counts))
    put_columns(sheaf.arrays, clusters, blocks.data, blocks.starts[:-1] + first, widths, out)
    return Prolongation(sheaf, clusters, counts, indptr, indices, data)
