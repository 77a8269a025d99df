"""Lifting of sections from the last level to an orthonormal basis of H^0."""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._kernels.modes import Blocks
from sheafcoarsen._support import linalg, ragged, threads
from sheafcoarsen.coarsening import SERIAL_BELOW
from sheafcoarsen.modes import block_layout
from sheafcoarsen.operators import coboundary
from sheafcoarsen.partition import Partition
from sheafcoarsen.sections.equilibration import Stalks, cluster_workspace
from sheafcoarsen.sections.rank_decision import FullRank
from sheafcoarsen.sections.reduction import Level
from sheafcoarsen.sheaf import CellularSheaf, unit_sheaf

DENSE_ENTRIES, DENSE_COLUMNS = 1 << 22, 16
"""A basis is sparse if it has more entries and more columns than these, and dense otherwise."""


def is_sparse(F: CellularSheaf, h0: int) -> bool:
    """Return whether a basis of H^0 with h0 columns is stored as a sparse matrix."""
    return h0 > DENSE_COLUMNS and h0 * F.dim_c0 > DENSE_ENTRIES


def lift_sections(
    stalks: Stalks, levels: list[Level], last: CellularSheaf, Z: np.ndarray | FullRank
) -> np.ndarray | scipy.sparse.csr_array:
    """Return an orthonormal basis of H^0 in the scalar type of the input.

    It spans the common kernels of the maps at single vertices, the sections removed on all levels,
    and the sections Z of the last sheaf.
    """
    F = stalks.sheaf
    h0 = Z.shape[1] + sum(int(level.P.offsets[-1]) for level in levels)
    h0 += int((F.vertex_dims - stalks.bases.ranks).sum())
    if is_sparse(F, h0):
        return _sparse_basis(stalks, levels, last, Z)
    Y = Z.basis() if isinstance(Z, FullRank) else Z
    for level in reversed(levels):
        Y = np.concatenate([level.R.matrix @ Y, level.P.matrix.toarray()], axis=1)
        Y = level.on_original(Y)
    W = stalks.columns(stalks.bases.W)
    for _ in range(2 if Y.shape[1] else 0):
        # change the basis of Y, so that W is applied last: the residual is independent of cond(W)
        triangle = np.linalg.qr(W @ Y, mode="r")
        Y = scipy.linalg.solve_triangular(triangle, Y.T, trans="T", lower=False).T
    return np.concatenate(
        [W @ Y, stalks.columns(stalks.bases.V, alone=True).toarray()], axis=1
    ).astype(F.dtype)


def _sparse_basis(
    stalks: Stalks, levels: list[Level], last: CellularSheaf, Z: np.ndarray | FullRank
) -> scipy.sparse.csr_array:
    """Return a sparse basis, in which every removed section is supported in its cluster.

    Starting at the finest level, the retained directions of every cluster are orthogonalized
    against its removed sections in the metric of C^0, and the triangular factor of the metric on
    the retained directions is passed to the next level.
    """
    metric = _squares(stalks.bases.ranks, stalks.bases.W.dtype)
    kernels.write_stalk_metrics(stalks.sheaf.vertex_dims, stalks.bases, metric)
    steps = []  # R and P of each level, in orthonormal bases of im W_v
    for level in levels:
        R, P, metric = _orthonormalize(level, metric)
        steps.append((R, P))
    indptr, indices = block_layout(last, Partition(np.arange(last.n_vertices)), last.vertex_dims)
    shape = (last.dim_c0, last.dim_c0)
    factors = scipy.sparse.csr_array((metric.data, indices, indptr), shape=shape)
    Y = Z.basis(factors) if isinstance(Z, FullRank) else np.linalg.qr(factors @ Z)[0]
    E, Q = stalks.columns(stalks.bases.V), scipy.sparse.csr_array(Y)
    for k, (R, P) in reversed(list(enumerate(steps))):
        R, P = (R, P) if k else (E @ R, E @ P)  # multiply by E before Q, since R has few columns
        Q = scipy.sparse.hstack([R @ Q, P], format="csr")
    Q = scipy.sparse.hstack(
        [Q if steps else E @ Q, stalks.columns(stalks.bases.V, alone=True)], format="csr"
    )
    return Q.astype(stalks.sheaf.dtype, copy=False)


def _squares(sizes: np.ndarray, dtype: np.dtype) -> kernels.Ragged:
    starts = ragged.offsets(sizes**2)
    return kernels.Ragged(starts, np.zeros(int(starts[-1]), dtype))


def _orthonormalize(level: Level, metric: kernels.Ragged) -> Any:
    """Return R and P of one level in orthonormal bases, and the metric of retained directions.

    The k copies of a hub have the same metric as the hub, because their values are divided by
    sqrt(k).
    """
    if level.split is not None:
        sizes = level.split.sheaf.vertex_dims
        owners, copies = level.split.owners, _squares(sizes, metric.data.dtype)
        metric = copies._replace(data=ragged.blocks(metric.data, metric.starts, owners))
    retained, removed = level.R.ranks, level.P.ranks
    R, P = level.R.matrix.copy(), level.P.matrix.copy()
    columns = Blocks(P.indptr, P.data, removed), Blocks(R.indptr, R.data, retained)
    new = _squares(retained, metric.data.dtype)
    f, clusters, counts = level.R.sheaf.arrays, level.R.clusters, retained + removed

    def work(lo: int, hi: int) -> Any:
        n, k = int(clusters.dims[lo:hi].max()), int(counts[lo:hi].max())
        workspace = cluster_workspace(max(n, k), k, metric.data.dtype)
        return kernels.orthonormalize_columns(
            lo, hi, f, clusters, (metric, new), columns, workspace
        )

    cost = clusters.dims * counts * (counts + 1.0) + 1.0
    threads.run_ranges(work, cost, serial_below=SERIAL_BELOW)
    return level.on_original(R), level.on_original(P), new


def section_residual(F: CellularSheaf, basis: np.ndarray | scipy.sparse.csr_array) -> float:
    """Return norm(delta S) / norm(delta) for a basis S, without overflow or underflow."""
    delta = coboundary(unit_sheaf(F)[0])
    image = delta @ basis.astype(delta.dtype)
    size = linalg.norm(delta.data)
    return (
        linalg.norm(image.data if scipy.sparse.issparse(image) else image) / size if size else 0.0
    )
