"""The index arrays of R = blockdiag(R_a), which topology and ranks alone decide."""

from sheafcoarsen._kernels.jit import kernel


@kernel
def block_indices(labels, vertex_dims, ranks, first_columns, indptr, indices):
    """Fill the csr index arrays of R: every row of a vertex in cluster a holds the r_a columns of a."""
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


@kernel
def has_block_indices(labels, vertex_dims, ranks, first_columns, indptr, indices):
    """Whether the index arrays, of the right lengths, are those of ``block_indices``."""
    row, at = 0, 0
    for v in range(labels.size):
        a = labels[v]
        for _ in range(vertex_dims[v]):
            if indptr[row] != at or at + ranks[a] > indices.size:
                return False
            for j in range(ranks[a]):
                if indices[at + j] != first_columns[a] + j:
                    return False
            at += ranks[a]
            row += 1
    return indptr[row] == at and at == indices.size


@kernel
def place_block(vertices, vertex_offsets, vertex_dims, indptr, block, data):
    """Write a cluster's row-major block to the rows of its vertices in R's ``data``."""
    at = 0
    for k in range(vertices.size):
        v = vertices[k]
        begin, end = indptr[vertex_offsets[v]], indptr[vertex_offsets[v] + vertex_dims[v]]
        for p in range(begin, end):
            data[p] = block[at]
            at += 1
