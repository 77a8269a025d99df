"""Independent computation of modes, sections and D_v^{-1/2}, by dense solvers."""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from sheafcoarsen._kernels.modes import BORDER, SHIFT
from sheafcoarsen._support import (
    blocks,
    norm,
    norms_by,
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
    loop_norms,
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
            ours = np.pad(exact, ((0, 0), (0, 1)))  # a column for clusters that retain all modes
            scores = modes.scores[ranges(modes.rank_offsets[:-1][clusters], ranks)]
            ours[:, :size][np.arange(size) < ranks[:, None]] = scores
            ours[np.arange(count), ranks] = modes.next_eigenvalues[clusters]
            errors[clusters - lo] = np.abs(ours[:, :size] - exact).max(axis=1)
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


def degrees_and_roots(F: CellularSheaf, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the offsets of all D_v, the products R_v* R_v of their factors, and D_v^{-1/2}."""
    (starts, factors), n = degree_factors(F), F.n_vertices
    sizes = loop_norms(F, np.arange(n), n)
    degrees, roots = np.zeros((2, len(factors)), factors.dtype)
    for d in np.unique(F.vertex_dims[F.vertex_dims > 0]).tolist():  # batch stalks of equal size
        own = np.flatnonzero(F.vertex_dims == d)
        where = range_of_blocks(starts, own)
        R = factors[where].reshape(-1, d, d)
        degrees[where] = (R.conj().swapaxes(1, 2) @ R).reshape(-1)
        roots[where] = inverse_roots(R, eps, sizes[own]).reshape(-1)
    return starts, degrees, roots


def inverse_roots(R: np.ndarray, eps: float, sizes: np.ndarray) -> np.ndarray:
    """Return the pseudo-inverse of (R* R)^{1/2}; ``sizes`` are the norms of the maps of loops."""
    _, w, V = np.linalg.svd(R)
    zero = w <= zero_level(R.shape[1], eps, np.maximum(w[:, 0], sizes)[:, None])
    inverse = np.where(zero, 0, 1 / np.where(zero, 1, w))
    return (V.conj().swapaxes(1, 2) * inverse[:, None, :]) @ V


def normalization_residuals(
    C: Coarsening, pieces: Pieces, probes: np.ndarray, eps: float
) -> tuple[RelativeResidual, np.ndarray, np.ndarray]:
    """Compare the Laplacian of ``normalize(F)`` with D^{-1/2} L D^{-1/2}.

    Returns the largest relative residual, of all blocks and of the factors R_v* R_v = D_v, and for
    each probe x the error of its energy and an upper bound of norm(D^{-1/2} x)^2 that no
    cancellation makes smaller.
    """
    F, dims = C.fine, C.fine.vertex_dims
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SingularDegreeWarning)
        sheaf = normalize(F)
    starts, degrees, roots = degrees_and_roots(F, eps)
    norms, root_norms = (
        scaled_norms(np.abs(x), np.repeat(np.arange(F.n_vertices), np.diff(starts)), F.n_vertices)
        for x in (degrees, roots)
    )
    # number of products that are summed in each entry of D_v, at least the dimension of D_v
    terms = np.bincount(F.edges.ravel(), np.repeat(F.edge_dims, 2), minlength=F.n_vertices)
    n = np.maximum(dims, terms)

    def block_diagonal(data: np.ndarray, vertices: np.ndarray) -> csr_array:
        widths = np.repeat(dims[vertices], dims[vertices])
        first = np.repeat(offsets(dims[vertices])[:-1], dims[vertices])
        entries = (blocks(data, starts, vertices), ranges(first, widths), offsets(widths))
        return csr_array(entries, (len(widths), len(widths)))

    def measure(piece: Piece) -> tuple[RelativeResidual, np.ndarray]:
        L, own, rows, width = piece.L(), piece.own, piece.row_vertex, len(piece.vertices)
        column_vertex = np.repeat(np.arange(width), dims[piece.vertices])
        D = block_diagonal(degrees, piece.vertices)[: piece.n_rows]
        errors = norms_by(L - D, rows, column_vertex, len(own))
        factor = relative_residual(errors, n[own], eps, norms[own], blocks=("vertex", own))
        roots_here = block_diagonal(roots, piece.vertices)
        y = roots_here @ probes[piece.coordinates]
        energies = np.real(np.sum(np.conj(y[: piece.n_rows]) * (L @ y), axis=0))
        change = csr_array(roots_here[: piece.n_rows, : piece.n_rows] @ L @ roots_here)
        del D, L, piece.sheaf, piece.coarse  # to need less memory
        part = laplacian(part_of(sheaf, piece.edges, piece.vertices))[: piece.n_rows]
        u, v, errors = block_norms(change - part, rows, column_vertex, width)
        u, v = piece.vertices[u], piece.vertices[v]
        products = (root_norms[u], root_norms[v], np.sqrt(norms[u]), np.sqrt(norms[v]))
        pairs = ("vertex", u, v)
        block = relative_residual(errors, np.maximum(n[u], n[v]), eps, *products, blocks=pairs)
        return max(factor, block), energies

    found = pieces.each(measure)
    worst = max([ZERO, *(one for one, _ in found)])
    exact = np.array([energies for _, energies in found]).sum(axis=0)
    # use absolute values, because D^{-1/2} x may be small by cancellation
    spread = np.repeat(root_norms, dims)[:, None] * np.abs(probes)
    norms2 = np.array([norm(column) for column in spread.T]) ** 2
    return worst, np.abs(exact - energy(sheaf, probes)), norms2
