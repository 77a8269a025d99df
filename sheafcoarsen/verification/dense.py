"""Dense reference computations: modes of clusters, and global sections of small sheaves."""

from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from sheafcoarsen._kernels.modes import BORDER, SHIFT
from sheafcoarsen._support import offsets, range_of_blocks, ranges, scaled_norms
from sheafcoarsen.coarsening import Coarsening
from sheafcoarsen.modes import ClusterPatches, LocalModes, Oversampled
from sheafcoarsen.operators import coboundary, laplacian
from sheafcoarsen.sheaf import CellularSheaf, unit_sheaf
from sheafcoarsen.verification.cluster_batches import part_of
from sheafcoarsen.verification.relative_residual import ZERO, RelativeResidual, relative_residual


def eigenvalue_errors(
    operator: csr_array, sizes: np.ndarray, lo: int, checked: np.ndarray, modes: LocalModes
) -> np.ndarray:
    """Return the largest error of retained and next eigenvalues in ``checked`` clusters, else 0.

    The operator has diagonal blocks of the given sizes, one for each of the clusters from lo on.
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

    Positive scores are compared with Rayleigh quotients of G on R_a, and the next eigenvalue with
    the norm of G on the complement (docs/conventions.md, section 10).
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
