"""The prolongation R = blockdiag(R_a) as dense blocks, row by row in the order of C^0."""

import math
from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import fix_phase
from sheafcoarsen._kernels.jit import borrowing_kernel, subkernel


class Blocks(NamedTuple):
    """Arrays of R: the r_a entries of row i, in cluster a, start at ``data[indptr[i]]``."""

    indptr: np.ndarray  # (dim_c0 + 1,)
    data: np.ndarray  # (sum N_a r_a,)
    ranks: np.ndarray  # (K,) r_a


@borrowing_kernel
def block_indices(labels, vertex_dims, ranks, first_columns, indptr, indices):
    """Fill the csr index arrays of R: rows of vertices in cluster a have the r_a columns of a."""
    row, at = 0, 0
    indptr[0] = 0
    for v in range(labels.size):
        a = labels[v]
        for _ in range(vertex_dims[v]):
            for j in range(ranks[a]):
                indices[at + j] = first_columns[a] + j
            at += ranks[a]
            row += 1
            indptr[row] = at


@subkernel
def put_block(a, f, c, z, at, row_step, column_step, R):
    """Write R_a, whose entry (i, j) is z[at + i row_step + j column_step], to R."""
    indptr, data, r = R.indptr, R.data, R.ranks[a]
    members, member_ptr = c.members, c.member_ptr
    vertex_dims, vertex_offsets = f.vertex_dims, f.vertex_offsets
    for k in range(member_ptr[a], member_ptr[a + 1]):
        v = members[k]
        row = vertex_offsets[v]
        for i in range(vertex_dims[v]):
            p = indptr[row + i]
            for j in range(r):
                data[p + j] = z[at + j * column_step]
            at += row_step


@borrowing_kernel
def put_columns(f, c, z, starts, widths, R):
    """Write all R_a to R: R_a is the first r_a of the widths[a] columns at z[starts[a]]."""
    for a in range(R.ranks.size):
        put_block(a, f, c, z, starts[a], widths[a], 1, R)


@borrowing_kernel
def put_modes(a, n, f, c, z, eps, R):
    """Fix the phases of the first r_a rows of z, of length n; write the rows to R_a as columns."""
    for j in range(R.ranks[a]):
        fix_phase(z, j * n, n, math.sqrt(eps))
    put_block(a, f, c, z, 0, 1, n, R)
