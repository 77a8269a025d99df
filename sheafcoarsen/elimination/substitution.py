"""Forward and back substitution, the prolongation, and the kernel of the eliminated block L_ee.

Back substitution, x_v = M^+ (A_u x_u + A_w x_w) as in `eliminate`, does not give the cochain of
minimum norm if M has a kernel, because there is then a section supported on v and the vertices that
depend on it. These sections span the kernel of L_ee, and x_e = L_ee^+ (b_e - L_ek z) is orthogonal
to them.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from sheafcoarsen._kernels import elimination as kernels
from sheafcoarsen._support import linalg, ragged
from sheafcoarsen.operators import Factors

TOGETHER = 64
"""Maximum number of overlapping sections that are orthonormalized by a dense matrix."""


class Substitution(NamedTuple):
    """Forward and back substitution with the steps of an elimination."""

    dims: np.ndarray  # dimensions and offsets of all stalks
    starts: np.ndarray
    steps: kernels.Record
    kept: np.ndarray  # coordinates of the vertices that remain

    def forward(self, b: np.ndarray) -> np.ndarray:
        """Return b, of shape (dim, h), after forward substitution."""
        b = np.array(b, dtype=np.result_type(b.dtype, self.steps.blocks.dtype), order="C")
        kernels.reduce_forward(self.steps, self.dims, self.starts, b)
        return b

    def extend(self, x: np.ndarray, reduced: np.ndarray | None = None) -> np.ndarray:
        """Add G x_neighbors, and W W* b_v, to the rows of eliminated vertices v in place.

        ``reduced`` is the result of `forward`.
        """
        b = np.empty((0, x.shape[1]), x.dtype) if reduced is None else reduced
        kernels.extend_backward(self.steps, self.dims, self.starts, x, b)
        return x

    def extend_sparse(self, X: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Return the result of `extend` for a sparse X."""
        dtype, size = self.steps.blocks.dtype, X.nnz + len(self.steps.blocks) + 16
        while True:
            columns, values = np.empty(size, np.int64), np.empty(size, dtype)
            columns[: X.nnz], values[: X.nnz] = X.indices, X.data
            first, counts = X.indptr[:-1].astype(np.int64), np.diff(X.indptr).astype(np.int64)
            rows, unset = (first, counts, columns, values), np.full(X.shape[1], -1)
            if kernels.substitute_rows(self.steps, self.dims, self.starts, rows, unset):
                break
            size *= 2
        entries, indptr = ragged.ranges(first, counts), ragged.offsets(counts)
        itype = ragged.index_dtype(max(len(entries), *X.shape))
        arrays = values[entries], columns[entries].astype(itype), indptr.astype(itype)
        P = scipy.sparse.csr_array(arrays, shape=X.shape)
        P.sort_indices()
        P.eliminate_zeros()
        return P

    def prolongation(self) -> scipy.sparse.csr_array:
        """Return the matrix of `extend`, with rows for C^0 and columns for the kept stalks."""
        entries = np.ones(len(self.kept)), (self.kept, np.arange(len(self.kept)))
        shape = (int(self.starts[-1]), len(self.kept))
        return self.extend_sparse(scipy.sparse.csr_array(entries, shape=shape))

    def kernel(self) -> scipy.sparse.csr_array:
        """Return orthonormal bases of ker M of all steps as columns, with rows for C^0.

        Since (M* M)^+ = W W*, ker M is the orthogonal complement of the nonzero columns of W.
        """
        vertices = self.steps.vertices
        d = self.dims[vertices].astype(np.int64)
        entries: list[tuple] = [(self.steps.inverses[:0], self.starts[:0], self.starts[:0])]
        for alike, W in ragged.stacks(self.steps.inverses, np.stack([d, d], axis=1)):
            zero = (W == 0).all(axis=1)
            has = zero.any(axis=1)
            if not has.any():
                continue
            W, zero, first = W[has], zero[has], self.starts[vertices[alike[has]]]
            largest = np.abs(W).max(axis=1, keepdims=True)
            # zero columns of W are last; columns of Q in their places are orthogonal to the others
            Q = np.linalg.qr(W / np.where(largest > 0, largest, 1))[0]
            at = first[:, None] + np.arange(W.shape[1])
            chosen = np.broadcast_to(zero[:, None], Q.shape)
            arrays = np.broadcast_arrays(Q, at[:, :, None], at[:, None, :])
            entries.append(tuple(array[chosen] for array in arrays))
        data, row, column = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
        used, column = np.unique(column, return_inverse=True)
        shape = (int(self.starts[-1]), len(used))
        return scipy.sparse.csr_array((data, (row, column)), shape=shape)


class FreeSections(NamedTuple):
    """Substitution that projects out the sections supported on eliminated vertices."""

    plain: Substitution
    start: scipy.sparse.csr_array  # in the kernels at single vertices
    basis: scipy.sparse.csr_array  # sections that extend ``start``, of norm 1
    gram: scipy.sparse.csr_array
    factors: Factors  # of ``gram``
    sizes: np.ndarray  # growth factors of the sections

    def forward(self, b: np.ndarray) -> np.ndarray:
        """Return b after forward substitution and projection.

        The component in the span of the sections accumulates, with rounding errors that grow like
        the sections, at vertices whose M has a kernel.
        """
        reduced = self.plain.forward(b)
        for _ in range(2):  # the second time corrects rounding errors
            coefficients = self.factors.solve(self.start.conj().T @ reduced)
            reduced -= self.plain.forward(self.basis @ coefficients)
        return reduced

    def extend(self, x: np.ndarray, reduced: np.ndarray | None = None) -> np.ndarray:
        """Return the result of back substitution, orthogonal to the sections.

        Their component is removed before substitution, so that values stay small.
        """
        given, x = x, self.plain.extend(x.copy(), reduced)
        for _ in range(2):  # the second time corrects rounding errors
            given = given - self.start @ self.factors.solve(self.basis.conj().T @ x)
            x = self.plain.extend(given.copy(), reduced)
        # what rounding left is removed below
        coefficients = self.factors.solve(self.basis.conj().T @ x)
        largest = abs(x).max(axis=0, initial=0.0)  # scale x, because its squares may overflow
        norms = largest * np.linalg.norm(x / np.where(largest > 0, largest, 1), axis=0)
        # sections with large growth factors are too inaccurate to be subtracted
        coefficients[abs(coefficients) * self.sizes[:, None] > norms] = 0
        return x - self.basis @ coefficients

    def prolongation(self) -> scipy.sparse.csr_array:
        """Return the matrix of `extend`."""
        part = connected_components(abs(self.gram), directed=False)[1]
        P = self.plain.prolongation()
        for _ in range(2):  # the second time corrects rounding errors
            coefficients = scipy.sparse.csr_array(self.basis.conj().T @ P)
            P = scipy.sparse.csr_array(P - self.basis @ self._solve_sparse(coefficients, part))
        P.sort_indices()
        return P

    def _solve_sparse(
        self, coefficients: scipy.sparse.csr_array, part: np.ndarray
    ) -> scipy.sparse.csr_array:
        """Solve a system with the block diagonal Gram matrix for sparse right-hand sides.

        Few columns have entries in one component (for leaves and chains, those of at most two kept
        stalks), so columns with entries in different components share a dense column.
        """
        height, width = coefficients.shape
        rows, columns = scipy.sparse.coo_array(coefficients).coords
        pairs, which = np.unique(part[rows].astype(np.int64) * width + columns, return_inverse=True)
        owner = pairs // max(width, 1)
        starts = np.searchsorted(owner, np.arange(part.max(initial=-1) + 2))
        slot = np.arange(len(pairs)) - starts[owner]
        dense = np.zeros((height, int(slot.max(initial=-1)) + 1), coefficients.dtype)
        dense[rows, slot[which]] = coefficients.data
        solved = self.factors.solve(dense)
        counts = np.diff(starts)[part]
        row = np.repeat(np.arange(height), counts)
        pair = ragged.ranges(starts[part], counts)
        entries = solved[row, slot[pair]], (row, pairs[pair] % max(width, 1))
        return scipy.sparse.csr_array(scipy.sparse.coo_array(entries, shape=(height, width)))


def free_sections(plain: Substitution) -> FreeSections | None:
    """Return the sections that vanish on kept vertices, or None if there are none.

    None is returned as well if the sections overflow or are parallel up to rounding.
    """
    start = plain.kernel()
    if not start.shape[1]:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        basis = plain.extend_sparse(start)
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
    if sizes.max() * rounding * linalg.eps_of(np.float64) >= 1:
        return None
    start = scipy.sparse.csr_array(start @ scipy.sparse.diags_array(scales) @ transform)
    basis = scipy.sparse.csr_array(basis @ transform)
    gram = scipy.sparse.csr_array(basis.conj().T @ basis)
    factors = Factors(gram, linalg.eps_of(np.float64))
    return FreeSections(plain, start, basis, gram, factors, sizes)


def _towards_orthonormal(basis: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return a change of basis that makes unit columns nearly orthonormal where few overlap."""
    gram = scipy.sparse.csr_array(basis.conj().T @ basis)
    part = connected_components(abs(gram), directed=False)[1]
    sizes = np.bincount(part)
    few = (sizes > 1) & (sizes <= TOGETHER)
    alone = np.flatnonzero(~few[part])
    entries: list[tuple] = [(np.ones(len(alone), gram.dtype), alone, alone)]
    for _, members, grams in linalg.diagonal_blocks(gram, part, part, few):
        values, vectors = np.linalg.eigh(grams)
        level = members.shape[1] * linalg.eps_of(np.float64) * values[:, -1:]
        scaled = vectors / np.sqrt(np.maximum(values, level))[:, None]
        across = np.broadcast_arrays(scaled, members[:, :, None], members[:, None, :])
        entries.append(tuple(array.reshape(-1) for array in across))
    data, at, to = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
    return scipy.sparse.csr_array(scipy.sparse.coo_array((data, (at, to)), shape=gram.shape))
