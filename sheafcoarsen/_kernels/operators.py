"""Kernels of the coboundary and the Laplacian: block pattern, numeric fill, and their action on cochains.

``f`` is a ``SheafArrays``; ranges ``lo .. hi`` are vertices or edges, as the first line of each kernel says.
"""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def sort_half_edges(edges, n):
    """Sort all (row, column) incidences by row, then column, then edge, in two counting sorts.

    Entry h is edge ``h >> 1`` seen from its tail (h even: row = tail) or its head (h odd); a loop is seen once.
    Returns the entries and where each row's begin.
    """
    m = edges.shape[0]
    by_column = np.zeros(n + 1, np.int64)
    row_ptr = np.zeros(n + 1, np.int64)
    for e in range(m):
        u, v = edges[e, 0], edges[e, 1]
        row_ptr[u + 1] += 1
        by_column[v + 1] += 1
        if u != v:
            row_ptr[v + 1] += 1
            by_column[u + 1] += 1
    for i in range(n):
        row_ptr[i + 1] += row_ptr[i]
        by_column[i + 1] += by_column[i]
    count = row_ptr[n]
    middle = np.empty(count, np.int64)
    for e in range(m):
        u, v = edges[e, 0], edges[e, 1]
        middle[by_column[v]] = 2 * e
        by_column[v] += 1
        if u != v:
            middle[by_column[u]] = 2 * e + 1
            by_column[u] += 1
    place = row_ptr.copy()
    entries = np.empty(count, np.int64)
    for k in range(count):
        h = middle[k]
        row = edges[h >> 1, h & 1]
        entries[place[row]] = h
        place[row] += 1
    return entries, row_ptr


@kernel
def block_pattern(edges, n, entries, row_ptr):
    """Group sorted entries into blocks, the diagonal included in every row.

    Returns (block_ptr, block_col, entry_ptr): blocks block_ptr[i] .. block_ptr[i+1] stand in row i, with ascending columns;
    block k collects entries entry_ptr[k] .. entry_ptr[k+1].
    """
    block_ptr = np.zeros(n + 1, np.int64)
    block_col = np.empty(entries.size + n, np.int32)
    entry_ptr = np.empty(entries.size + n + 1, np.int64)
    blocks = 0
    for i in range(n):
        last = -1
        diagonal_done = False
        for k in range(row_ptr[i], row_ptr[i + 1]):
            h = entries[k]
            j = edges[h >> 1, 1 - (h & 1)]
            if j > i and not diagonal_done:
                block_col[blocks] = i
                entry_ptr[blocks] = k
                blocks += 1
                diagonal_done = True
            if j != last:
                block_col[blocks] = j
                entry_ptr[blocks] = k
                blocks += 1
                last = j
                if j == i:
                    diagonal_done = True
        if not diagonal_done:
            block_col[blocks] = i
            entry_ptr[blocks] = row_ptr[i + 1]
            blocks += 1
        block_ptr[i + 1] = blocks
    entry_ptr[blocks] = entries.size
    return block_ptr, block_col[:blocks].copy(), entry_ptr[: blocks + 1].copy()


@kernel
def scalar_row_widths(block_ptr, block_col, dims, widths):
    """Number of scalar columns stored in each block row."""
    for i in range(block_ptr.size - 1):
        w = 0
        for k in range(block_ptr[i], block_ptr[i + 1]):
            w += dims[block_col[k]]
        widths[i] = w


@kernel
def scalar_indices(lo, hi, block_ptr, block_col, dims, offsets, row_starts, indices):
    """Fill the scalar column indices of vertices lo .. hi; row_starts[i] is where vertex i's scalar rows begin."""
    for i in range(lo, hi):
        p = row_starts[i]
        for _ in range(dims[i]):
            for k in range(block_ptr[i], block_ptr[i + 1]):
                j = block_col[k]
                for c in range(offsets[j], offsets[j + 1]):
                    indices[p] = c
                    p += 1


@kernel
def add_gram(out, at, stride, a, fa, da, b, fb, db, rows, sign):
    """out[at + i * stride + j] += sign * (A* B)[i, j] for row-major maps A (rows x da) and B (rows x db)."""
    for q in range(rows):
        for i in range(da):
            x = sign * np.conj(a[fa + q * da + i])
            for j in range(db):
                out[at + i * stride + j] += x * b[fb + q * db + j]


@kernel
def add_loop_gram(out, at, stride, a, fa, b, fb, d, rows):
    """Out += (A - B)* (A - B): what a loop with maps A and B adds to the diagonal block."""
    for q in range(rows):
        for i in range(d):
            x = np.conj(a[fa + q * d + i] - b[fb + q * d + i])
            for j in range(d):
                out[at + i * stride + j] += x * (a[fa + q * d + j] - b[fb + q * d + j])


@kernel
def fill(lo, hi, f, block_ptr, block_col, entry_ptr, entries, row_starts, bsr, out):
    """Write the values of L in the rows of vertices lo .. hi.

    With ``bsr`` block k is out[k * d * d ...]; otherwise the scalar rows of vertex i begin at row_starts[i] in CSR order.
    A block and its mirror image sum the same products in the same order, which makes L exactly Hermitian.
    """
    for i in range(lo, hi):
        d = f.vertex_dims[i]
        begin, end = block_ptr[i], block_ptr[i + 1]
        if bsr:
            stride = d
            first = begin * d * d
            total = (end - begin) * d * d
        else:
            stride = 0
            for k in range(begin, end):
                stride += f.vertex_dims[block_col[k]]
            first = row_starts[i]
            total = stride * d
        for z in range(first, first + total):
            out[z] = 0
        diagonal = first
        for k in range(begin, end):
            if block_col[k] == i:
                break
            diagonal += d * d if bsr else f.vertex_dims[block_col[k]]
        at = first
        for k in range(begin, end):
            j = block_col[k]
            dj = f.vertex_dims[j]
            for p in range(entry_ptr[k], entry_ptr[k + 1]):
                e = entries[p] >> 1
                rows = f.edge_dims[e]
                if j == i:
                    add_loop_gram(
                        out, at, stride, f.tail_data, f.tail_offsets[e], f.head_data, f.head_offsets[e], d, rows
                    )
                elif entries[p] & 1 == 0:
                    a, b = f.tail_offsets[e], f.head_offsets[e]
                    add_gram(out, diagonal, stride, f.tail_data, a, d, f.tail_data, a, d, rows, 1)
                    add_gram(out, at, stride, f.tail_data, a, d, f.head_data, b, dj, rows, -1)
                else:
                    a, b = f.head_offsets[e], f.tail_offsets[e]
                    add_gram(out, diagonal, stride, f.head_data, a, d, f.head_data, a, d, rows, 1)
                    add_gram(out, at, stride, f.head_data, a, d, f.tail_data, b, dj, rows, -1)
            at += d * dj if bsr else dj


@kernel
def diagonal_blocks(f, starts, out):
    """Add up the diagonal block of every vertex; block v is out[starts[v] ...], row-major."""
    for e in range(f.edges.shape[0]):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv, rows = f.vertex_dims[u], f.vertex_dims[v], f.edge_dims[e]
        a, b = f.tail_offsets[e], f.head_offsets[e]
        if u == v:
            add_loop_gram(out, starts[u], du, f.tail_data, a, f.head_data, b, du, rows)
        else:
            add_gram(out, starts[u], du, f.tail_data, a, du, f.tail_data, a, du, rows, 1)
            add_gram(out, starts[v], dv, f.head_data, b, dv, f.head_data, b, dv, rows, 1)


@kernel
def multiply_maps(edges, end, edge_dims, vertex_dims, data, data_offsets, roots, root_offsets, out):
    """Out = F_{v->e} W_v for every edge, W_v the d_v x d_v matrix roots[root_offsets[v] ...]."""
    for e in range(edges.shape[0]):
        v = edges[e, end]
        d = vertex_dims[v]
        w = root_offsets[v]
        for q in range(edge_dims[e]):
            at = data_offsets[e] + q * d
            for j in range(d):
                out[at + j] = 0
            for i in range(d):
                x = data[at + i]
                for j in range(d):
                    out[at + j] += x * roots[w + i * d + j]


@kernel
def coboundary_csr(f, indptr, indices, data):
    """Write the coboundary in CSR with sorted columns; indptr is given."""
    for e in range(f.edges.shape[0]):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        ou, ov = f.vertex_offsets[u], f.vertex_offsets[v]
        for q in range(f.edge_dims[e]):
            p = indptr[f.edge_offsets[e] + q]
            a, b = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            if u == v:
                for i in range(du):
                    indices[p + i] = ou + i
                    data[p + i] = f.tail_data[a + i] - f.head_data[b + i]
                continue
            pu, pv = (p, p + du) if u < v else (p + dv, p)
            for i in range(du):
                indices[pu + i] = ou + i
                data[pu + i] = f.tail_data[a + i]
            for i in range(dv):
                indices[pv + i] = ov + i
                data[pv + i] = -f.head_data[b + i]


@kernel
def apply_coboundary(lo, hi, f, x, y):
    """Y = delta x in the rows of edges lo .. hi; x is (dim_c0, h), y is (dim_c1, h)."""
    h = x.shape[1]
    for e in range(lo, hi):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        ou, ov = f.vertex_offsets[u], f.vertex_offsets[v]
        for q in range(f.edge_dims[e]):
            row = f.edge_offsets[e] + q
            a, b = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            for c in range(h):
                y[row, c] = 0
            if u == v:
                for i in range(du):
                    t = f.tail_data[a + i] - f.head_data[b + i]
                    for c in range(h):
                        y[row, c] += t * x[ou + i, c]
                continue
            for i in range(du):
                t = f.tail_data[a + i]
                for c in range(h):
                    y[row, c] += t * x[ou + i, c]
            for i in range(dv):
                t = f.head_data[b + i]
                for c in range(h):
                    y[row, c] -= t * x[ov + i, c]


@kernel
def apply_adjoint(f, y, x):
    """X += delta* y; x is (dim_c0, h), y is (dim_c1, h)."""
    h = x.shape[1]
    for e in range(f.edges.shape[0]):
        u, v = f.edges[e, 0], f.edges[e, 1]
        du, dv = f.vertex_dims[u], f.vertex_dims[v]
        ou, ov = f.vertex_offsets[u], f.vertex_offsets[v]
        for q in range(f.edge_dims[e]):
            row = f.edge_offsets[e] + q
            a, b = f.tail_offsets[e] + q * du, f.head_offsets[e] + q * dv
            if u == v:
                for i in range(du):
                    t = np.conj(f.tail_data[a + i] - f.head_data[b + i])
                    for c in range(h):
                        x[ou + i, c] += t * y[row, c]
                continue
            for i in range(du):
                t = np.conj(f.tail_data[a + i])
                for c in range(h):
                    x[ou + i, c] += t * y[row, c]
            for i in range(dv):
                t = np.conj(f.head_data[b + i])
                for c in range(h):
                    x[ov + i, c] -= t * y[row, c]


@kernel
def sum_products(starts, y, z, out):
    """out[k, c] = Re sum of conj(y[r, c]) z[r, c] over the rows starts[k] .. starts[k+1]."""
    h = y.shape[1]
    for k in range(starts.size - 1):
        for c in range(h):
            out[k, c] = 0
        for r in range(starts[k], starts[k + 1]):
            for c in range(h):
                out[k, c] += (np.conj(y[r, c]) * z[r, c]).real
