"""Forward and back substitution, the prolongation, and the kernel of the eliminated block L_ee.

Back substitution, x_v = M^+ (A_u x_u + A_w x_w) as in `eliminate`, does not give the cochain of
minimum norm if M has a kernel, because there is then a section supported on v and the vertices that
depend on it. These sections span the kernel of L_ee, and x_e = L_ee^+ (b_e - L_ek z) is orthogonal
to them.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components

from sheafcoarsen._kernels import elimination as kernels
from sheafcoarsen._support import linalg, ragged
from sheafcoarsen.operators import Factors, index_dtype

TOGETHER = 64
"""Maximum number of overlapping sections that are orthonormalized by a dense matrix."""


class Substitution(NamedTuple):
    """Forward and back substitution with the steps of an elimination.

    ``dims`` are the dimensions of all stalks; ``kept`` are the vertices that remain.
    """

    dims: np.ndarray
    steps: kernels.Record
    kept: np.ndarray

    def forward(self, b: np.ndarray) -> np.ndarray:
        """Return b, of shape (dim, h), after forward substitution."""
        b = np.array(b, dtype=np.result_type(b.dtype, self.steps.blocks.dtype), order="C")
        kernels.reduce_forward(self.steps, self.dims, ragged.offsets(self.dims), b)
        return b

    def extend(self, x: np.ndarray, reduced: np.ndarray | None = None) -> np.ndarray:
        """Compute x at eliminated vertices, in place; ``reduced`` is the result of `forward`."""
        b = np.empty((0, x.shape[1]), x.dtype) if reduced is None else reduced
        kernels.extend_backward(self.steps, self.dims, ragged.offsets(self.dims), x, b)
        return x

    def prolongation(self) -> scipy.sparse.csr_array:
        """Return the matrix of `extend`, with rows for C^0 and columns for the kept stalks."""
        dims, kept, steps = self.dims, self.kept, self.steps
        n, dim = len(dims), int(dims.sum())
        workspace = len(kept) + len(steps.neighbors) + 16
        while True:
            empty = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(workspace, np.int64)
            anchors = kernels.Anchors(*empty)
            if kernels.find_anchors(steps, kept, anchors):
                break
            workspace *= 2
        columns = ragged.offsets(dims[kept])
        used = int((anchors.starts + anchors.counts).max(initial=0))
        sizes = ragged.offsets(dims[kept][anchors.kept[:used]])
        widths = sizes[anchors.starts + anchors.counts] - sizes[anchors.starts]
        begins = ragged.offsets(dims * widths)
        data = np.zeros(int(begins[-1]), steps.blocks.dtype)
        data[ragged.range_of_blocks(begins, kept)] = ragged.identities(dims[kept])
        kernels.put_prolongation(steps, anchors, dims, np.diff(sizes), widths, begins, data)
        of_anchors = ragged.ranges(columns[anchors.kept[:used]], np.diff(sizes))
        rows = np.repeat(sizes[anchors.starts], dims), np.repeat(widths, dims)
        itype = index_dtype(max(len(data), dim))
        entries = (
            data,
            of_anchors[ragged.ranges(*rows)].astype(itype),
            ragged.offsets(rows[1]).astype(itype),
        )
        P = scipy.sparse.csr_array(entries, shape=(dim, int(columns[-1])))
        P.eliminate_zeros()
        return P

    def kernel_dims(self) -> np.ndarray:
        """Return dim ker M of each step.

        Since (M* M)^+ = W W*, ker M is the orthogonal complement of the nonzero columns of W.
        """
        d = self.dims[self.steps.vertices].astype(np.int64)
        kernel = np.zeros_like(d)
        for alike, W in ragged.stacks(self.steps.inverses, np.stack([d, d], axis=1)):
            kernel[alike] = (W == 0).all(axis=1).sum(axis=1)
        return kernel

    def widened(self, kernel: np.ndarray) -> "Substitution":
        """Return the steps with one more neighbour, the last, at each vertex whose M has a kernel.

        The new vertices, which are kept, hold the coordinates of x_v in an orthonormal basis of
        that kernel, of dimension ``kernel``.
        """
        steps, has = self.steps, np.flatnonzero(kernel)
        starts, neighbors = steps.starts.astype(np.int64), steps.neighbors
        d = self.dims[steps.vertices].astype(np.int64)
        sizes, inverses = d[has], ragged.blocks(steps.inverses, ragged.offsets(d * d), has)
        begins = ragged.offsets(sizes * kernel[has])
        bases = np.empty(int(begins[-1]), inverses.dtype)
        for alike, W in ragged.stacks(inverses, np.stack([sizes, sizes], axis=1)):
            largest = np.abs(W).max(axis=1, keepdims=True)
            # zero columns of W are last; columns of Q in their places are orthogonal to the others
            Q = np.linalg.qr(W / np.where(largest > 0, largest, 1))[0]
            column = np.arange(W.shape[2]) - W.shape[2] + kernel[has[alike], None]
            bases[ragged.range_of_blocks(begins, alike)] = Q[
                np.broadcast_to(column[:, None] >= 0, Q.shape)
            ]
        total = ragged.offsets(self.dims[neighbors])
        # in every row of G, the new columns follow the old ones
        row_ends = ragged.offsets(np.repeat(total[starts[1:]] - total[starts[:-1]], d))[1:]
        new = len(self.dims) + np.arange(len(has))
        wide = steps._replace(
            starts=ragged.offsets(np.diff(starts) + (kernel > 0)).astype(steps.starts.dtype),
            neighbors=np.insert(neighbors, starts[1:][has], new),
            blocks=np.insert(steps.blocks, np.repeat(row_ends, np.repeat(kernel, d)), bases),
        )
        return Substitution(np.append(self.dims, kernel[has]), wide, np.append(self.kept, new))


@dataclass(frozen=True, eq=False)
class FreeSections:
    """Substitution that projects out the sections supported on eliminated vertices.

    They are the columns of ``basis``, of norm 1, with the growth factors ``sizes``; ``change``
    holds their coordinates in the kernels at the vertices that were added to ``wide``.
    """

    basis: scipy.sparse.csr_array
    adjoint: scipy.sparse.csr_array  # of the basis
    gram: scipy.sparse.csr_array
    factors: Factors  # of ``gram``
    change: scipy.sparse.csr_array
    sizes: np.ndarray
    wide: Substitution

    def forward(self, b: np.ndarray) -> np.ndarray:
        """Return b after projection and forward substitution.

        The component of b in the span of the sections accumulates at vertices whose M has a kernel,
        with rounding errors that grow like the sections, and is removed there.
        """
        dim = len(b)
        reduced = self._forward(b)
        for _ in range(2):  # the second time corrects rounding errors
            coefficients = self.factors.solve(self.change.conj().T @ reduced[dim:])
            reduced -= self._forward(self.basis @ coefficients)
        return reduced[:dim]

    def _forward(self, b: np.ndarray) -> np.ndarray:
        """Return the result of ``forward`` at all vertices, followed by kernel coordinates."""
        wide = np.concatenate([b, np.zeros((self.change.shape[0], b.shape[1]), b.dtype)])
        return self.wide.forward(wide)

    def extend(self, x: np.ndarray, reduced: np.ndarray | None = None) -> np.ndarray:
        """Return the result of back substitution, orthogonal to the sections.

        Their component is removed before substitution, so that values stay small.
        """
        dim = len(x)
        wide = np.concatenate([x, np.zeros((self.change.shape[0], x.shape[1]), x.dtype)])
        self.wide.extend(wide, reduced)
        for _ in range(2):  # the second time corrects rounding errors
            coefficients = self.factors.solve(self.adjoint @ wide[:dim])
            wide[dim:] -= self.change @ coefficients
            self.wide.extend(wide, reduced)
        x = wide[:dim]
        coefficients = self.factors.solve(self.adjoint @ x)  # left by rounding, removed below
        largest = abs(x).max(axis=0, initial=0.0)  # scale x, because its squares may overflow
        norms = largest * np.linalg.norm(x / np.where(largest > 0, largest, 1), axis=0)
        # sections with large growth factors are too inaccurate to be subtracted
        coefficients[abs(coefficients) * self.sizes[:, None] > norms] = 0
        return x - self.basis @ coefficients

    def prolongation(self) -> scipy.sparse.csr_array:
        """Return the matrix of `extend`.

        Sections overlap only within a connected component of the eliminated vertices. Few columns
        have entries in one component (for leaves and chains, those of at most two kept stalks), so
        columns with entries in different components are merged into one dense column.
        """
        part = connected_components(abs(self.gram), directed=False)[1]
        both = self.wide.prolongation()
        P = both[: self.basis.shape[0], : both.shape[1] - self.change.shape[0]]
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
    kernel = plain.kernel_dims()
    if not kernel.any():
        return None
    wide = plain.widened(kernel)
    with np.errstate(over="ignore", invalid="ignore"):
        both = wide.prolongation()
        basis = both[: int(plain.dims.sum()), int(plain.dims[plain.kept].sum()) :]
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
    change = scipy.sparse.csr_array(scipy.sparse.diags_array(scales) @ transform)
    basis = scipy.sparse.csr_array(basis @ transform)
    adjoint = scipy.sparse.csr_array(basis.conj().T)
    gram = scipy.sparse.csr_array(adjoint @ basis)
    factors = Factors(gram, linalg.eps_of(np.float64))
    return FreeSections(basis, adjoint, gram, factors, change, sizes, wide)


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
