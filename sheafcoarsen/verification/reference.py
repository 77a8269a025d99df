"""Independent computation of modes, sections and D_v^{-1/2}, by dense solvers."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sheafcoarsen._kernels.modes import BORDER, SHIFT
from sheafcoarsen._support import linalg, ragged, warned
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.modes import ClusterPatches, LocalModes, Oversampled
from sheafcoarsen.operators import (
    coboundary,
    degree_factors,
    energy,
    laplacian,
    loop_norms,
    normalize,
)
from sheafcoarsen.sheaf import CellularSheaf, both_ends, unit_sheaf
from sheafcoarsen.verification.cluster_batches import Piece, in_batches, part_of
from sheafcoarsen.verification.relative_residual import (
    ZERO,
    RelativeResidual,
    block_norms,
    relative_residual,
)


def eigenvalue_errors(
    operator: csr_array, cluster: np.ndarray, lo: int, checked: np.ndarray, modes: LocalModes
) -> np.ndarray:
    """Return the largest error of retained and next eigenvalues of each cluster in a batch.

    It is 0 for clusters outside the mask ``checked``. The operator is block diagonal; ``cluster``
    is that of each row, minus ``lo``.
    """
    errors = np.zeros(len(checked))
    for here, _, matrices in linalg.diagonal_blocks(operator, cluster, cluster, checked):
        clusters, size = lo + here, matrices.shape[1]
        ranks = modes.ranks[clusters]
        exact = np.linalg.eigvalsh(matrices).clip(min=0)
        ours = np.pad(exact, ((0, 0), (0, 1)))  # a column for clusters that retain all modes
        scores = ragged.blocks(modes.scores, modes.rank_offsets, clusters)
        ours[:, :size][np.arange(size) < ranks[:, None]] = scores
        ours[np.arange(len(here)), ranks] = modes.next_eigenvalues[clusters]
        errors[here] = np.abs(ours[:, :size] - exact).max(axis=1)
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
        outer = whole[ragged.range_of_blocks(F.vertex_offsets, T)] - own > BORDER * own.max()
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
        errors, where = np.abs(found - claimed), f"cluster {a}"
        worst = max(worst, relative_residual(errors, N, rounding, size, blocks=where))
    return worst


def dense_sections(F: CellularSheaf, eps: float, dtype: Any) -> tuple[np.ndarray, float]:
    """Return a basis of ker delta and the smallest nonzero singular value of delta.

    The rank is decided relative to the norm of the maps, since the maps of a loop may cancel.
    """
    F, unit = unit_sheaf(F)
    delta, n = coboundary(F).astype(dtype), F.dim_c0
    if n == 0 or F.largest_entry == 0:
        return np.eye(n, dtype=dtype), 0.0
    triangle = np.zeros((0, n), dtype)
    # QR of a few rows at a time, because there may be many more rows than columns
    for lo in range(0, F.dim_c1, 4 * n):
        rows = np.concatenate([triangle, delta[lo : lo + 4 * n].toarray()])
        triangle = np.linalg.qr(rows, mode="r")  # type: ignore[assignment]
    _, sigma, vh = np.linalg.svd(triangle)
    largest_map = np.max([linalg.ragged_norms(data, starts) for _, data, starts in both_ends(F)])
    rank = int((sigma > max(F.dim_c1, n) * eps * max(sigma[0], largest_map)).sum())
    return vh[rank:].conj().T, float(sigma[rank - 1]) * unit if rank else 0.0


# ---------------------------------------------------------------- normalization


def degrees_and_roots(F: CellularSheaf, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the offsets of all D_v, the products R_v* R_v of their factors, and D_v^{-1/2}."""
    (starts, factors), n = degree_factors(F), F.n_vertices
    sizes = loop_norms(F, np.arange(n), n)
    degrees, roots = np.zeros((2, len(factors)), factors.dtype)
    for own, R in ragged.stacks(factors, np.stack([F.vertex_dims, F.vertex_dims], axis=1)):
        where = ragged.range_of_blocks(starts, own)
        degrees[where] = (R.conj().swapaxes(1, 2) @ R).reshape(-1)
        _, w, V = np.linalg.svd(R)
        size = np.maximum(w.max(axis=1, initial=0), sizes[own])  # the maps of a loop may cancel
        zero = w <= linalg.zero_level(R.shape[1], eps, size[:, None])
        inverse = np.where(zero, 0, 1 / np.where(zero, 1, w))
        roots[where] = ((V.conj().swapaxes(1, 2) * inverse[:, None, :]) @ V).reshape(-1)
    return starts, degrees, roots


def normalization_residuals(
    C: Coarsening, probes: np.ndarray, eps: float
) -> tuple[RelativeResidual, np.ndarray, np.ndarray]:
    """Compare the Laplacian of ``normalize(F)`` with D^{-1/2} L D^{-1/2}.

    Returns the largest relative residual, of all blocks and of the factors R_v* R_v = D_v, and for
    each probe x the error of its energy and an upper bound of norm(D^{-1/2} x)^2 that no
    cancellation makes smaller.
    """
    F, dims = C.fine, C.fine.vertex_dims
    with warned.collected():
        sheaf = normalize(F)
    starts, degrees, roots = degrees_and_roots(F, eps)
    norms, root_norms = linalg.ragged_norms(degrees, starts), linalg.ragged_norms(roots, starts)
    # number of products that are summed in each entry of D_v, at least the dimension of D_v
    terms = np.bincount(F.edges.ravel(), np.repeat(F.edge_dims, 2), minlength=F.n_vertices)
    n = np.maximum(dims, terms)

    def block_diagonal(data: np.ndarray, vertices: np.ndarray) -> csr_array:
        widths = np.repeat(dims[vertices], dims[vertices])
        first = np.repeat(ragged.offsets(dims[vertices])[:-1], dims[vertices])
        entries = (
            ragged.blocks(data, starts, vertices),
            ragged.ranges(first, widths),
            ragged.offsets(widths),
        )
        return csr_array(entries, (len(widths), len(widths)))

    def measure(piece: Piece) -> tuple[RelativeResidual, np.ndarray]:
        L, own, width = piece.L(), piece.own, len(piece.vertices)
        column_vertex = np.repeat(np.arange(width), dims[piece.vertices])
        rows = column_vertex[: piece.n_rows]
        D = block_diagonal(degrees, piece.vertices)[: piece.n_rows]
        errors = linalg.norms_by(L - D, rows, column_vertex, len(own))
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

    found = in_batches(C, measure)
    worst = max([ZERO, *(one for one, _ in found)])
    exact = np.array([energies for _, energies in found]).sum(axis=0)
    # use absolute values, because D^{-1/2} x may be small by cancellation
    spread = np.repeat(root_norms, dims)[:, None] * np.abs(probes)
    norms2 = np.array([linalg.norm(column) for column in spread.T]) ** 2
    return worst, np.abs(exact - energy(sheaf, probes)), norms2
