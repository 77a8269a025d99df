"""Forward and back substitution, the prolongation, and the kernel of the eliminated block L_ee.

Back substitution, x_v = M^+ (A_u x_u + A_w x_w) as in `eliminate`, does not give the cochain of
minimum norm if M has a kernel, because there is then a section supported on v and the vertices that
depend on it. These sections span the kernel of L_ee, and x_e = L_ee^+ (b_e - L_ek z) is orthogonal
to them.
"""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from sheafcoarsen._kernels import elimination as kernels
from sheafcoarsen._support import eps_of, offsets, ranges
from sheafcoarsen.operators import Factors, index_dtype

TOGETHER = 64
"""Maximum number of overlapping sections that are orthonormalized by a dense matrix."""


def forward(dims: np.ndarray, record: kernels.Record, b: np.ndarray) -> np.ndarray:
    """Return b, of shape (dim, h), after forward substitution for stalks of given dimensions."""
    b = np.array(b, dtype=np.result_type(b.dtype, record.blocks.dtype), order="C")
    kernels.reduce_forward(record, dims, offsets(dims), b)
    return b


def backward(
    dims: np.ndarray, record: kernels.Record, x: np.ndarray, reduced: np.ndarray | None
) -> None:
    """Compute x at eliminated vertices by back substitution; ``reduced`` is from `forward`."""
    b = np.empty((0, x.shape[1]), x.dtype) if reduced is None else reduced
    kernels.extend_backward(record, dims, offsets(dims), x, b)


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


class FreeSections:
    """The sections supported on eliminated vertices, as columns of norm 1 in ``basis``.

    In the steps ``widened``, every vertex whose M has a kernel gets an additional last neighbour,
    which holds the coordinates of x_v in that kernel. ``change`` consists of a matrix, whose
    columns are the sections in these coordinates, and of the growth factors of the sections.
    """

    def __init__(
        self,
        basis: scipy.sparse.csr_array,
        change: tuple[scipy.sparse.csr_array, np.ndarray],
        dims: np.ndarray,
        widened: kernels.Record,
    ) -> None:
        self.basis, (self.change, sizes) = basis, change
        self.adjoint = scipy.sparse.csr_array(basis.conj().T)
        self._dims, self._widened = dims, widened
        self._gram = scipy.sparse.csr_array(self.adjoint @ basis)
        self._factors = Factors(self._gram, eps_of(np.float64))
        self._sizes = sizes[:, None]

    def forward(self, b: np.ndarray) -> np.ndarray:
        """Return ``forward`` of b, of shape (dim_c0, h), after projecting out the sections.

        The component of b in the span of the sections accumulates at vertices whose M has a kernel,
        with rounding errors that grow like the sections, and is removed there.
        """
        dim = len(b)
        reduced = self._forward(b)
        for _ in range(2):  # the second time corrects rounding errors
            coefficients = self._factors.solve(self.change.conj().T @ reduced[dim:])
            reduced -= self._forward(self.basis @ coefficients)
        return reduced[:dim]

    def _forward(self, b: np.ndarray) -> np.ndarray:
        """Return the result of ``forward`` at all vertices, followed by kernel coordinates."""
        wide = np.concatenate([b, np.zeros((self.change.shape[0], b.shape[1]), b.dtype)])
        return forward(self._dims, self._widened, wide)

    def extend(self, x: np.ndarray, reduced: np.ndarray | None) -> np.ndarray:
        """Return the result of ``backward`` after projecting out the sections.

        Their component is removed before substitution, so that values stay small.
        """
        dim = len(x)
        wide = np.concatenate([x, np.zeros((self.change.shape[0], x.shape[1]), x.dtype)])
        backward(self._dims, self._widened, wide, reduced)
        for _ in range(2):  # the second time corrects rounding errors
            coefficients = self._factors.solve(self.adjoint @ wide[:dim])
            wide[dim:] -= self.change @ coefficients
            backward(self._dims, self._widened, wide, reduced)
        x = wide[:dim]
        coefficients = self._factors.solve(self.adjoint @ x)  # left by rounding, removed below
        largest = abs(x).max(axis=0, initial=0.0)  # scale x, because its squares may overflow
        norms = largest * np.linalg.norm(x / np.where(largest > 0, largest, 1), axis=0)
        # sections with large growth factors are too inaccurate to be subtracted
        coefficients[abs(coefficients) * self._sizes > norms] = 0
        return x - self.basis @ coefficients

    def project_sparse(self, P: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return sparse columns after projecting out the sections.

        Sections overlap only within a connected component of the eliminated vertices. Few columns
        have entries in one component (for leaves and chains, those of at most two kept stalks), so
        columns with entries in different components are merged into one dense column.
        """
        part = connected_components(abs(self._gram), directed=False)[1]
        for _ in range(2):  # the second time corrects rounding errors
            coefficients = scipy.sparse.csr_array(self.adjoint @ P)
            P = scipy.sparse.csr_array(P - self.basis @ self._solve_sparse(coefficients, part))
        P.sort_indices()
        return P

    def _solve_sparse(
        self, coefficients: scipy.sparse.csr_array, part: np.ndarray
    ) -> scipy.sparse.csr_array:
        """Solve a system with the block diagonal Gram matrix for sparse right-hand sides."""
        height, width = coefficients.shape
        rows, columns = scipy.sparse.coo_array(coefficients).coords
        pairs, which = np.unique(part[rows] * width + columns, return_inverse=True)
        owner = pairs // max(width, 1)
        starts = np.searchsorted(owner, np.arange(part.max(initial=-1) + 2))
        slot = np.arange(len(pairs)) - starts[owner]
        dense = np.zeros((height, int(slot.max(initial=-1)) + 1), coefficients.dtype)
        dense[rows, slot[which]] = coefficients.data
        solved = self._factors.solve(dense)
        counts = np.diff(starts)[part]
        row = np.repeat(np.arange(height), counts)
        pair = ranges(starts[part], counts)
        entries = solved[row, slot[pair]], (row, pairs[pair] % max(width, 1))
        return scipy.sparse.csr_array(scipy.sparse.coo_array(entries, shape=(height, width)))


def free_sections(
    dims: np.ndarray, record: kernels.Record, kept: np.ndarray
) -> FreeSections | None:
    """Return the sections that vanish on kept vertices, or None if there are none.

    None is returned as well if the sections overflow or are parallel up to rounding.
    """
    count = kernel_dims(dims, record)
    if not count.any():
        return None
    blocks = _kernels(dims, record, count)
    n, at = len(dims), np.flatnonzero(count)
    pseudo = n + np.arange(len(at))  # extra vertices, which hold coordinates in ker M
    widened = _with_neighbors(dims, record, (count, pseudo), blocks)
    all_kept = np.append(kept, pseudo)
    all_dims = np.append(dims, count[at])
    with np.errstate(over="ignore", invalid="ignore"):
        both = prolongation_matrix(all_dims, widened, all_kept)
        basis = scipy.sparse.csr_array(both[: int(dims.sum()), int(dims[kept].sum()) :])
        scales = 1 / np.sqrt((abs(basis) ** 2).sum(axis=0))
    if not (scales > 0).all():
        return None
    basis = scipy.sparse.csr_array(basis @ scipy.sparse.diags_array(scales))
    # If maps expand along a tree, all sections from its root approach the direction of largest
    # growth, so the Gram matrix of the original sections would be singular up to rounding.
    transform = scipy.sparse.eye_array(basis.shape[1], format="csr")
    for _ in range(2):  # the second time corrects rounding errors
        transform = scipy.sparse.csr_array(transform @ _towards_orthonormal(basis @ transform))
    sizes = np.sqrt((abs(transform) ** 2).sum(axis=0))
    # Nearly parallel sections count as independent if they differ by more than this many eps
    rounding = 100
    if sizes.max() * rounding * eps_of(np.float64) >= 1:
        return None
    change = scipy.sparse.csr_array(scipy.sparse.diags_array(scales) @ transform), sizes
    return FreeSections(scipy.sparse.csr_array(basis @ transform), change, all_dims, widened)


def _towards_orthonormal(basis: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return a change of basis that makes unit columns nearly orthonormal where few overlap."""
    gram = scipy.sparse.csr_array(basis.conj().T @ basis)
    gram.sum_duplicates()  # before ``indices`` is read: scipy would change it later, in place
    h, columns = gram.shape[0], gram.indices
    rows = np.repeat(np.arange(h), np.diff(gram.indptr))
    part = connected_components(abs(gram), directed=False)[1]
    sizes = np.bincount(part)
    few = (sizes > 1) & (sizes <= TOGETHER)
    order, starts = np.argsort(part, kind="stable"), offsets(sizes)
    index = np.empty(h, np.int64)
    index[order] = np.arange(h) - starts[part[order]]
    alone = np.flatnonzero(~few[part])
    entries = [(np.ones(len(alone), gram.dtype), alone, alone)]
    for k in np.unique(sizes[few]).tolist():
        parts = np.flatnonzero(sizes == k)
        number = np.full(len(sizes), -1)
        number[parts] = np.arange(len(parts))
        own = np.flatnonzero(sizes[part[rows]] == k)
        blocks = np.zeros((len(parts), k, k), gram.dtype)
        blocks[number[part[rows[own]]], index[rows[own]], index[columns[own]]] = gram.data[own]
        values, vectors = np.linalg.eigh(blocks)
        values = np.maximum(values, k * eps_of(np.float64) * values[:, -1:])
        members = order[starts[parts][:, None] + np.arange(k)]
        across = np.broadcast_arrays(members[:, :, None], members[:, None, :])
        entries.append(
            ((vectors / np.sqrt(values)[:, None]).reshape(-1), *(a.reshape(-1) for a in across))
        )
    data, at, to = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
    return scipy.sparse.csr_array(scipy.sparse.coo_array((data, (at, to)), shape=(h, h)))


def kernel_dims(dims: np.ndarray, record: kernels.Record) -> np.ndarray:
    """Return dim ker M of each step.

    Since (M* M)^+ = W W*, ker M is the orthogonal complement of the nonzero columns of W.
    """
    d = dims[record.vertices].astype(np.int64)
    W = record.inverses
    first = offsets(d)
    entry = np.flatnonzero(W)
    step = np.repeat(np.arange(len(d)), d * d)[entry]
    column = first[step] + (entry - offsets(d * d)[step]) % np.maximum(d[step], 1)
    used = np.zeros(int(first[-1]) + 1, np.int64)
    used[column] = 1
    return d - np.add.reduceat(used, first[:-1]) * (d > 0)


def _kernels(dims: np.ndarray, record: kernels.Record, count: np.ndarray) -> np.ndarray:
    """Return orthonormal bases of ker M, of dimension ``count``, flattened and concatenated."""
    d, W = dims[record.vertices].astype(np.int64), record.inverses
    rank, begin = d - count, offsets(d * count)
    out = np.empty(int(begin[-1]), W.dtype)
    deficient = np.flatnonzero(count)
    for size, r in np.unique(np.stack([d, rank], axis=1)[deficient], axis=0).tolist():
        steps = deficient[(d[deficient] == size) & (rank[deficient] == r)]
        entries = offsets(d * d)[steps][:, None] + np.arange(size * size)
        blocks = W[entries].reshape(-1, size, size)[:, :, :r]
        blocks = blocks / np.abs(blocks).max(axis=1, keepdims=True)
        Q = np.linalg.qr(blocks, mode="complete")[0][:, :, r:]
        out[begin[steps][:, None] + np.arange(size * (size - r))] = Q.reshape(len(steps), -1)
    return out


def _with_neighbors(
    dims: np.ndarray,
    record: kernels.Record,
    more: tuple[np.ndarray, np.ndarray],
    blocks: np.ndarray,
) -> kernels.Record:
    """Return the record in which some steps have an additional neighbour with given blocks.

    ``more`` holds the dimension of the additional neighbour of each step, or 0 if there is none,
    and the indices of these new vertices.
    """
    count, vertices = more
    starts, neighbors = record.starts.astype(np.int64), record.neighbors
    d = dims[record.vertices].astype(np.int64)
    total = offsets(dims[neighbors])
    width = total[starts[1:]] - total[starts[:-1]]
    # in every row of G, the new columns follow the old ones
    row_ends = offsets(np.repeat(width, d))[1:]
    merged = np.insert(record.blocks, np.repeat(row_ends, np.repeat(count, d)), blocks)
    has = count > 0
    listed = np.insert(neighbors, starts[1:][has], vertices)
    ends = offsets(np.diff(starts) + has).astype(starts.dtype)
    return record._replace(starts=ends, neighbors=listed, blocks=merged)
