"""Forward and back substitution of cochains, and the prolongation as a sparse matrix."""

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import elimination as kernels
from sheafcoarsen._support import offsets, ranges
from sheafcoarsen.operators import index_dtype


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
    n, dim = len(dims), int(dims.sum())
    workspace = len(kept) + len(record.neighbors) + 16
    while True:
        empty = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(workspace, np.int64)
        anchors = kernels.Anchors(*empty)
        if kernels.find_anchors(record, kept, anchors):
            break
        workspace *= 2
    columns = offsets(dims[kept])
    used = int((anchors.starts + anchors.counts).max(initial=0))
    sizes = offsets(dims[kept][anchors.kept[:used]])
    widths = sizes[anchors.starts + anchors.counts] - sizes[anchors.starts]
    begins = offsets(dims * widths)
    data = np.zeros(int(begins[-1]), record.blocks.dtype)
    of_kept = np.repeat(begins[:-1][kept], dims[kept])
    within = ranges(np.zeros(len(kept), np.int64), dims[kept])
    data[of_kept + within * (np.repeat(dims[kept], dims[kept]) + 1)] = 1
    kernels.put_prolongation(record, anchors, dims, np.diff(sizes), widths, begins, data)
    of_anchors = ranges(columns[anchors.kept[:used]], np.diff(sizes))
    indices = of_anchors[ranges(np.repeat(sizes[anchors.starts], dims), np.repeat(widths, dims))]
    itype = index_dtype(max(len(data), dim))
    indices, indptr = indices.astype(itype), offsets(np.repeat(widths, dims)).astype(itype)
    shape = (dim, int(columns[-1]))
    P = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
    P.eliminate_zeros()
    return P
