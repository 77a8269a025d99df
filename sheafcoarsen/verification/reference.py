"""Independent computation of modes, sections and D_v^{-1/2}, by dense solvers."""

import warnings
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from sheafcoarsen._kernels.modes import BORDER, SHIFT
from sheafcoarsen._support import (
    blocks,
    offsets,
    range_of_blocks,
    ranges,
    scaled_norms,
    zero_level,
)
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.exceptions import SingularDegreeWarning
from sheafcoarsen.modes import ClusterPatches, LocalModes, Oversampled
from sheafcoarsen.operators import (
    coboundary,
    degree_factors,
    energy,
    laplacian,
    loop_sizes,
    normalize,
)
from sheafcoarsen.sheaf import CellularSheaf, unit_sheaf
from sheafcoarsen.verification.cluster_batches import Piece, Pieces, part_of
from sheafcoarsen.verification.relative_residual import (
    ZERO,
    RelativeResidual,
    block_norms,
    relative_residual,
)


def eigenvalue_errors(
    operator: csr_array, sizes: np.ndarray, lo: int, checked: np.ndarray, modes: LocalModes
) -> np.ndarray:
    """Return the largest error of retained and next eigenvalues of each cluster.

    It is 0 for clusters that are not ``checked``. The operator has diagonal blocks of the given
    sizes, one for each of the clusters from lo on.
    """
    starts, errors = offsets(sizes), np.zeros(len(sizes))
    for size in np.unique(sizes[checked - lo]).tolist():  # batch clusters of equal size
        members = checked[sizes[checked - lo] == size]
        for clusters in np.array_split(members, -(-len(members) * size**2 // 2_000_000)):
            first, ranks, count = starts[clusters - lo], modes.ranks[clusters], len(clusters)
            rows = coo_array(operator[ranges(first, np.full(count, size))])
            block, i = np.divmod(rows.coords[0], size)
            blocks = np.zeros((count, size, size), rows.dtype)
            blocks[block, i, rows.coords[1] - first[block]] = rows.data
            exact = np.linalg.eigvalsh(blocks).clip(min=0)
            ours = np.full((count, size + 1), np.inf)
            kept = np.arange(size) < ranks[:, None]
            ours[:, :size][kept] = modes.scores[ranges(modes.rank_offsets[:-1][clusters], ranks)]
            ours[np.arange(count), ranks] = modes.next_eigenvalues[clusters]
            known = np.arange(size) <= ranks[:, None]
            gaps = np.abs(np.where(known, ours[:, :size], exact) - exact)
            errors[clusters - lo] = gaps.max(axis=1)
    return errors


def worst_response(C: Coarsening, sample: np.ndarray, eps: float) -> RelativeResidual:
    """Return the largest error of the scores of oversampled modes on a ``sample`` of clusters.

    For positive scores s, s^-2 is compared with Rayleigh quotients of G on R_a, and for the next
    eigenvalue with the norm of G on the complement (docs/conventions.md, section 10).
    """
    modes, worst = C.modes, ZERO
    assert modes is not None
    assert isinstance(modes.operator, Oversampled)
    assert modes.target is not None
    F, unit = unit_sheaf(C.fine)
    patches = ClusterPatches(F, C.clusters, modes.operator.rings).arrays
    whole = laplacian(F).diagonal().real
    for a in sample.tolist():
        U, r = C.block(a).astype(F.dtype), int(C.ranks[a])
        begin = patches.starts[a]
        T = patches.members[begin : begin + patches.counts[a]]
        inside = np.zeros(F.n_vertices, bool)
        inside[T] = True
        edges = np.flatnonzero(inside[F.edges].all(axis=1))
        A = laplacian(part_of(F, edges, T)).toarray()
        n, N, own = len(U), len(A), A.diagonal().real.copy()
        if own.max() == 0:
            continue
        outer = whole[range_of_blocks(F.vertex_offsets, T)] - own > BORDER * own.max()
        lowest, highest = 40 * N * np.finfo(float).eps * own.max(), 1e8 * own.max()
        target = min(max(modes.target / unit / unit, lowest), highest)
        A += SHIFT * target * np.eye(N)
        X = np.linalg.solve(A, np.eye(N, n))
        M = full = np.concatenate([X[outer], target * np.linalg.solve(A, X)])
        scores = modes.eigenvalues(a).astype(np.float64) / unit / unit
        K, V = U[:, scores == 0], U[:, scores > 0]
        M = M - (M @ K) @ K.conj().T
        found = np.sum(np.abs(M @ V) ** 2, axis=0)
        claimed = scores[scores > 0] ** -2
        following = float(modes.next_eigenvalues[a]) / unit / unit
        if following > 0 and r < n:
            found = np.append(found, np.linalg.norm(M - (M @ V) @ V.conj().T, 2) ** 2)
            claimed = np.append(claimed, following**-2)
        rounding = max(eps, np.finfo(float).eps * np.linalg.cond(A))
        size = np.linalg.norm(full) * np.linalg.norm(M)
        one = relative_residual(np.abs(found - claimed), N, rounding, size)
        worst = max(worst, one._replace(where=f"cluster {a}"))
    return worst


def dense_sections(F: CellularSheaf, eps: float, dtype: Any) -> tuple[np.ndarray, float]:
    """Return a basis of ker delta and the smallest nonzero singular value of delta.

    The rank is decided relative to the norm of the maps, since the maps of a loop may cancel.
    """
    delta, largest = coboundary(F).astype(dtype), F.largest_entry
    m, n = delta.shape
    if n == 0 or largest == 0:
        return np.eye(n, dtype=dtype), 0.0
    which = np.repeat(np.arange(F.n_edges), np.diff(F.tail_offsets))
    given = scaled_norms(np.abs(F.tail_data), which, F.n_edges).max(initial=0.0) / largest
    which = np.repeat(np.arange(F.n_edges), np.diff(F.head_offsets))
    given = max(given, scaled_norms(np.abs(F.head_data), which, F.n_edges).max() / largest)
    triangle = np.zeros((0, n), dtype)
    # QR of a few rows at a time, because there may be many more rows than columns
    for lo in range(0, m, 4 * n):
        rows = delta[lo : lo + 4 * n].toarray() / largest
        triangle = np.linalg.qr(np.concatenate([triangle, rows]), mode="r")  # type: ignore[assignment]
    _, sigma, vh = np.linalg.svd(triangle)
    rank = int((sigma > max(m, n) * eps * max(float(sigma[0]), given)).sum())
    return vh[rank:].conj().T, float(sigma[rank - 1]) * largest if rank else 0.0


# ---------------------------------------------------------------- normalization


class Degrees:
    """Factors R_v* R_v = D_v of the diagonal blocks of L, checked against L, and D_v^{-1/2}."""

    def __init__(self, C: Coarsening, eps: float, dtype: Any) -> None:
        F = C.fine
        self.C, self.eps, self.dtype = C, eps, dtype
        self.starts = offsets(F.vertex_dims**2)
        self.roots = np.zeros(int(self.starts[-1]), dtype)  # all D_v^{-1/2}, flattened
        self.norms, self.factor_errors = np.zeros((2, F.n_vertices))  # norm(D_v)_F
        self.factors, self.loop_sizes = degree_factors(F)[1], loop_sizes(F)
        # number of products that are summed in each entry of D_v, at least the dimension of D_v
        terms = np.bincount(F.edges.ravel(), np.repeat(F.edge_dims, 2), minlength=F.n_vertices)
        self.n = np.maximum(F.vertex_dims, terms)

    def measure(self, piece: Piece, L: csr_array) -> None:
        """Compute D_v^{-1/2} in a batch, and the errors of the factors."""
        vertex = piece.row_vertex
        row = np.repeat(np.arange(piece.n_rows), np.diff(L.indptr))
        every = np.append(vertex, -1)
        inside = vertex[row] == every[np.minimum(L.indices, piece.n_rows)]
        i, j, value = row[inside], L.indices[inside], L.data[inside]
        dims = self.C.fine.vertex_dims[piece.own]
        first = offsets(dims)
        self.norms[piece.own] = scaled_norms(np.abs(value), vertex[i], len(dims))
        for d in np.unique(dims[dims > 0]).tolist():  # batch stalks of equal dimension
            members = np.flatnonzero(dims == d)
            own, count = piece.own[members], len(members)
            here = dims[vertex[i]] == d
            v = vertex[i[here]]
            D = np.zeros((count, d, d), self.dtype)
            at = np.searchsorted(members, v), i[here] - first[v], j[here] - first[v]
            D[at] = value[here]
            where = range_of_blocks(self.starts, own)
            R = self.factors[where].reshape(D.shape)
            error = np.abs(R.conj().swapaxes(1, 2) @ R - D).reshape(-1)
            which = np.repeat(np.arange(count), d * d)
            self.factor_errors[own] = scaled_norms(error, which, count)
            self.roots[where] = inverse_roots(R, self.eps, self.loop_sizes[own]).reshape(-1)

    @property
    def worst_factor(self) -> RelativeResidual:
        """Largest residual of the factors of D_v."""
        factors = self.n, self.eps, self.norms
        return relative_residual(self.factor_errors, *factors, blocks=("vertex",))

    @cached_property
    def root_norms(self) -> np.ndarray:
        """norm(D_v^{-1/2})_F of every vertex, shape (n,)."""
        which = np.repeat(np.arange(len(self.norms)), np.diff(self.starts))
        return scaled_norms(np.abs(self.roots), which, len(self.norms))


def inverse_roots(R: np.ndarray, eps: float, sizes: np.ndarray) -> np.ndarray:
    """Return the pseudo-inverse of (R* R)^{1/2}; ``sizes`` are the norms of the maps of loops."""
    _, w, V = np.linalg.svd(R)
    zero = w <= zero_level(R.shape[1], eps, np.maximum(w[:, 0], sizes)[:, None])
    inverse = np.where(zero, 0, 1 / np.where(zero, 1, w))
    return (V.conj().swapaxes(1, 2) * inverse[:, None, :]) @ V


def normalization_residuals(
    degrees: Degrees, pieces: Pieces, probes: np.ndarray
) -> tuple[RelativeResidual, np.ndarray]:
    """Compare the Laplacian of ``normalize(F)`` with D^{-1/2} L D^{-1/2}.

    Returns the largest relative residual, of all blocks and of the factors of D_v, and the errors
    of energies, one for each probe.
    """
    F = degrees.C.fine
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularDegreeWarning)
        sheaf = normalize(F)
    norms, root_sizes = degrees.root_norms, np.sqrt(degrees.norms)

    def measure(piece: Piece) -> tuple[RelativeResidual, np.ndarray]:
        dims, L = F.vertex_dims[piece.vertices], piece.L()
        # blockdiag(D_v^{-1/2}) over the vertices of the batch
        data = blocks(degrees.roots, degrees.starts, piece.vertices)
        first, widths = np.repeat(offsets(dims)[:-1], dims), np.repeat(dims, dims)
        entries = (data, ranges(first, widths), offsets(widths))
        roots = csr_array(entries, (len(widths), len(widths)))
        y = roots @ probes[piece.coordinates]
        energies = np.real(np.sum(np.conj(y[: piece.n_rows]) * (L @ y), axis=0))
        change = csr_array(roots[: piece.n_rows, : piece.n_rows] @ L @ roots)
        del L, piece.sheaf, piece.coarse  # to need less memory
        part = laplacian(part_of(sheaf, piece.edges, piece.vertices))[: piece.n_rows]
        width = len(piece.vertices)
        column_vertex = np.repeat(np.arange(width), dims)
        u, v, sizes = block_norms(change - part, piece.row_vertex, column_vertex, width)
        u, v = piece.vertices[u], piece.vertices[v]
        factors = (norms[u], norms[v], root_sizes[u], root_sizes[v])
        n, pairs = np.maximum(degrees.n[u], degrees.n[v]), ("vertex", u, v)
        return relative_residual(sizes, n, degrees.eps, *factors, blocks=pairs), energies

    found = pieces.each(measure)
    exact = np.array([energies for _, energies in found]).sum(axis=0)
    worst = max([ZERO, degrees.worst_factor, *(one for one, _ in found)])
    return worst, np.abs(exact - energy(sheaf, probes))
