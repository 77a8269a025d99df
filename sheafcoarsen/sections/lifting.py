"""Lifting of sections from the last level to an orthonormal basis of H^0."""

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import linalg, ragged
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sections.clustering import Level
from sheafcoarsen.sections.equilibration import Stalks
from sheafcoarsen.sections.rank_decision import FullRank
from sheafcoarsen.sheaf import CellularSheaf, unit_sheaf

DENSE_ENTRIES, DENSE_COLUMNS = 1 << 22, 16
"""A basis is sparse if it has more entries and more columns than these, and dense otherwise."""


def is_sparse(F: CellularSheaf, h0: int) -> bool:
    """Return whether a basis of H^0 with h0 columns is stored as a sparse matrix."""
    return h0 > DENSE_COLUMNS and h0 * F.dim_c0 > DENSE_ENTRIES


def lift_sections(
    stalks: Stalks, levels: list[Level], last: CellularSheaf, Z: np.ndarray | FullRank
) -> np.ndarray | scipy.sparse.csr_array:
    """Return an orthonormal basis of H^0, from Z and the sections removed on all levels."""
    h0 = Z.shape[1] + sum(int(level.P.offsets[-1]) for level in levels) + stalks.alone.shape[1]
    if is_sparse(stalks.sheaf, h0):
        return _sparse_basis(stalks, levels, last, Z)
    Y = Z.basis() if isinstance(Z, FullRank) else Z
    for level in reversed(levels):
        Y = np.concatenate([level.R.matrix @ Y, level.P.matrix.toarray()], axis=1)
        Y = level.on_original(Y)
    for _ in range(2 if Y.shape[1] else 0):
        # change the basis of Y, so that W is applied last: the residual is independent of cond(W)
        triangle = np.linalg.qr(stalks.W @ Y, mode="r")
        Y = scipy.linalg.solve_triangular(triangle, Y.T, trans="T", lower=False).T
    basis = np.concatenate([stalks.W @ Y, stalks.alone.toarray()], axis=1)
    return basis.astype(stalks.sheaf.dtype)


def _sparse_basis(
    stalks: Stalks, levels: list[Level], last: CellularSheaf, Z: np.ndarray | FullRank
) -> scipy.sparse.csr_array:
    """Return a sparse basis, in which every removed section is supported in its cluster.

    From the finest level on, retained directions are orthogonalized against the removed sections of
    their cluster, and their metric, which is V* W on the first level, is passed to the next one.
    """
    metric, steps = stalks.metric, []  # R and P of each level, in orthonormal bases of im W_v
    for level in levels:
        R, P, metric = _orthonormalize(level, metric)
        steps.append((R, P))
    factors = ragged.block_diagonal(metric, last.vertex_dims)
    Y = Z.basis(factors) if isinstance(Z, FullRank) else np.linalg.qr(factors @ Z)[0]
    Q = scipy.sparse.csr_array(Y)
    for k, (R, P) in reversed(list(enumerate(steps))):
        # multiply by V before Q, since R has few columns
        R, P = (R, P) if k else (stalks.V @ R, stalks.V @ P)
        Q = scipy.sparse.hstack([R @ Q, P], format="csr")
    Q = scipy.sparse.hstack([Q if steps else stalks.V @ Q, stalks.alone], format="csr")
    return Q.astype(stalks.sheaf.dtype, copy=False)


def _orthonormalize(
    level: Level, metric: np.ndarray
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array, np.ndarray]:
    """Return R and P of one level in orthonormal bases, and the metric of retained directions.

    A metric is a triangular factor for each stalk, in sequence.
    """
    R, P, f = level.R, level.P, level.R.sheaf
    if level.split is not None:
        # copies have the metric of their hub, because their values are divided by sqrt(k)
        owners = level.split.owners
        dims = f.vertex_dims[: owners.max(initial=-1) + 1]  # the copies come last
        metric = ragged.blocks(metric, ragged.offsets(dims**2), owners)
    M, clusters = ragged.block_diagonal(metric, f.vertex_dims), np.arange(len(R.ranks))
    Z = scipy.sparse.hstack([M @ P.matrix, M @ R.matrix], format="csr")
    of_rows = np.repeat(R.clusters.labels, f.vertex_dims)
    of_columns = np.concatenate([np.repeat(clusters, S.ranks) for S in (P, R)])
    rows, begins = np.argsort(of_rows, kind="stable"), ragged.offsets(R.clusters.dims)
    ends = ragged.offsets(R.ranks**2)
    new = np.empty(int(ends[-1]), Z.dtype)
    entries: list[tuple] = [(new[:0], ends[:0], ends[:0])]
    for parts, members, blocks in linalg.diagonal_blocks(
        Z, of_rows, of_columns, P.ranks + R.ranks > 0
    ):
        metrics = np.broadcast_to(np.eye(blocks.shape[2]), (len(parts), *blocks.shape[2:] * 2))
        for _ in range(2):  # row by row, since rows may have very different norms
            triangle = np.asarray(np.linalg.qr(blocks, mode="r"))
            blocks = np.linalg.solve(triangle.swapaxes(1, 2), blocks.swapaxes(1, 2)).swapaxes(1, 2)
            metrics = triangle @ metrics
        at = rows[begins[parts][:, None] + np.arange(blocks.shape[1])]
        arrays = np.broadcast_arrays(blocks, at[:, :, None], members[:, None, :])
        entries.append(tuple(array.reshape(-1) for array in arrays))
        kept = np.arange(blocks.shape[2]) >= P.ranks[parts][:, None]  # follow removed ones
        new[ragged.range_of_blocks(ends, parts)] = metrics[kept[:, :, None] & kept[:, None]]
    data, row, column = (np.concatenate(arrays) for arrays in zip(*entries, strict=True))
    Q = scipy.sparse.csr_array((data, (row, column)), shape=Z.shape)
    removed = P.matrix.shape[1]
    return level.on_original(Q[:, removed:]), level.on_original(Q[:, :removed]), new


def section_residual(F: CellularSheaf, basis: np.ndarray | scipy.sparse.csr_array) -> float:
    """Return norm(delta S) / norm(delta) for a basis S, without overflow or underflow."""
    delta = coboundary(unit_sheaf(F)[0])
    image = delta @ basis.astype(delta.dtype)
    size = linalg.norm(delta.data)
    return (
        linalg.norm(image.data if scipy.sparse.issparse(image) else image) / size if size else 0.0
    )
