"""Forward and back substitution of cochains, and the prolongation as a sparse matrix."""

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import elimination as kernels
from sheafcoarsen._support import offsets, ranges


def forward(
    stalks: tuple[np.ndarray, np.ndarray], record: kernels.Record, b: np.ndarray
) -> np.ndarray:
    """Return b, of shape (dim, h), after forward substitution.

    ``stalks`` holds the dimensions and offsets of the stalks.
    """
    b = np.array(b, dtype=np.result_type(b.dtype, record.blocks.dtype), order="C")
    kernels.reduce_forward(record, *stalks, b)
    return b


def backward(
    stalks: tuple[np.ndarray, np.ndarray],
    record: kernels.Record,
    x: np.ndarray,
    reduced: np.ndarray | None,
) -> None:
    """Compute x at eliminated vertices by back substitution; ``reduced`` is from `forward`."""
    b = np.empty((0, x.shape[1]), x.dtype) if reduced is None else reduced
    kernels.extend_backward(record, *stalks, x, b)


def prolongation_matrix(
    dims: np.ndarray, record: kernels.Record, kept: np.ndarray
) -> scipy.sparse.csr_array:
    """Return the matrix of `backward`, with rows for C^0 and columns for the kept stalks.

    ``dims`` holds the dimensions of all stalks.
    """
    starts, d, members = offsets(dims), dims[record.vertices], dims[record.neighbors]
    width = np.diff(offsets(members)[record.starts])
    widths, lists = np.repeat(width, d), ranges(starts[record.neighbors], members)
    columns = lists[ranges(np.repeat(offsets(width)[:-1], d), widths)]
    rows = np.repeat(ranges(starts[record.vertices], d), widths)
    own, gone = ranges(starts[kept], dims[kept]), np.ones(int(starts[-1]), bool)
    gone[own] = False
    data = np.concatenate([record.blocks, np.ones(len(own), record.blocks.dtype)])
    indices = np.concatenate([rows, own]), np.concatenate([columns, own])
    P = scipy.sparse.csr_array((data, indices), shape=(len(gone), len(gone)))
    while gone[P.indices].any():  # each square doubles the number of steps in one product
        P = scipy.sparse.csr_array(P @ P)
    P = scipy.sparse.csr_array(P[:, own])
    P.sort_indices()
    P.eliminate_zeros()
    return P
