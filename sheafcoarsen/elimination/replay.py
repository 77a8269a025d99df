"""Cochains taken through the steps of an elimination, and its prolongation as a sparse matrix."""

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import elimination as kernels
from sheafcoarsen._support import offsets, range_of_blocks
from sheafcoarsen.sheaf import CellularSheaf


def forward(F: CellularSheaf, record: kernels.Record, b: np.ndarray) -> np.ndarray:
    """Return b, of shape (dim_c0, h), with what eliminated vertices pass on to their neighbours."""
    b = np.array(b, dtype=np.result_type(b.dtype, record.blocks.dtype), order="C")
    kernels.reduce_forward(record, F.vertex_dims, F.vertex_offsets, b)
    return b


def backward(
    F: CellularSheaf, record: kernels.Record, x: np.ndarray, passed: np.ndarray | None
) -> None:
    """Fill in x, of shape (dim_c0, h), at eliminated vertices; `forward` left ``passed``."""
    b = np.empty((0, x.shape[1]), x.dtype) if passed is None else passed
    kernels.extend_backward(record, F.vertex_dims, F.vertex_offsets, x, b)


def prolongation_matrix(
    F: CellularSheaf, record: kernels.Record, kept: np.ndarray
) -> scipy.sparse.csr_array:
    """Return the matrix of `backward`: rows in the order of C^0, columns those of kept stalks."""
    steps, n = len(record.vertices), F.n_vertices
    step_of = np.empty(n, np.int64)
    step_of[record.vertices] = np.arange(steps)
    step_of[kept] = -1 - np.arange(len(kept))
    room = len(record.neighbors) + 16
    while True:
        anchors = kernels.Anchors(
            step_of,
            np.empty(steps, np.int64),
            np.empty(steps, np.int64),
            np.empty(room, np.int64),
        )
        if kernels.find_anchors(record, anchors) >= 0:
            break
        room *= 2
    columns = offsets(F.vertex_dims[kept])
    widths = np.ones(n, np.int64)  # entries in a row, for each vertex
    used = int((anchors.starts + anchors.counts).max(initial=0))
    sizes = offsets(F.vertex_dims[kept][anchors.kept[:used]])
    widths[record.vertices] = sizes[anchors.starts + anchors.counts] - sizes[anchors.starts]
    begins = offsets(F.vertex_dims * widths)
    data = np.empty(int(begins[-1]), record.blocks.dtype)
    kernels.put_prolongation(record, anchors, (F.vertex_dims, columns), begins, data)
    data[range_of_blocks(begins, kept)] = 1
    itype = np.int32 if max(len(data), F.dim_c0) < np.iinfo(np.int32).max else np.int64
    indices = np.empty(len(data), itype)
    kernels.put_indices(anchors, (F.vertex_dims, columns), begins, indices)
    indptr = offsets(np.repeat(widths, F.vertex_dims)).astype(itype)
    shape = (F.dim_c0, int(columns[-1]))
    return scipy.sparse.csr_array((data.astype(F.dtype), indices, indptr), shape=shape)
