"""Forward and back substitution of cochains, and the prolongation as a sparse matrix."""

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import elimination as kernels
from sheafcoarsen._support import offsets, range_of_blocks


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
    steps, n, dim = len(record.vertices), len(dims), int(dims.sum())
    step_of = np.empty(n, np.int64)
    step_of[record.vertices] = np.arange(steps)
    step_of[kept] = -1 - np.arange(len(kept))
    workspace = len(record.neighbors) + 16
    while True:
        anchors = kernels.Anchors(
            step_of,
            np.empty(steps, np.int64),
            np.empty(steps, np.int64),
            np.empty(workspace, np.int64),
        )
        if kernels.find_anchors(record, anchors) >= 0:
            break
        workspace *= 2
    columns = offsets(dims[kept])
    widths = np.ones(n, np.int64)  # entries per row at each vertex; 1 if it is kept
    used = int((anchors.starts + anchors.counts).max(initial=0))
    sizes = offsets(dims[kept][anchors.kept[:used]])
    widths[record.vertices] = sizes[anchors.starts + anchors.counts] - sizes[anchors.starts]
    begins = offsets(dims * widths)
    data = np.empty(int(begins[-1]), record.blocks.dtype)
    kernels.put_prolongation(record, anchors, (dims, columns), begins, data)
    data[range_of_blocks(begins, kept)] = 1
    itype = np.int32 if max(len(data), dim) < np.iinfo(np.int32).max else np.int64
    indices = np.empty(len(data), itype)
    kernels.put_indices(anchors, (dims, columns), begins, indices)
    indptr = offsets(np.repeat(widths, dims)).astype(itype)
    shape = (dim, int(columns[-1]))
    return scipy.sparse.csr_array((data, indices, indptr), shape=shape)
