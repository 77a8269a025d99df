"""From the last level back up: an orthonormal basis of H^0, and its residual."""

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph

from sheafcoarsen._kernels import sections as kernels
from sheafcoarsen._kernels.dense import svd_workspace
from sheafcoarsen._support import norm, offsets, run_ranges
from sheafcoarsen.coarsening import SERIAL_BELOW
from sheafcoarsen.modes import block_layout
from sheafcoarsen.operators import coboundary
from sheafcoarsen.partition import Partition
from sheafcoarsen.sections.columns import check_status, room_for
from sheafcoarsen.sections.equilibration import Stalks, stalk_columns
from sheafcoarsen.sections.reduction import Level
from sheafcoarsen.sheaf import CellularSheaf

DENSE_ENTRIES, DENSE_COLUMNS = 1 << 22, 16
"""Entries, or columns, up to which the basis is a dense array."""


def lifted(
    F: CellularSheaf, stalks: Stalks, levels: list[Level], last: CellularSheaf, Z: np.ndarray
):
    """Return the orthonormal basis, in the scalar type of F, of what the levels peeled off and of Z on the last."""
    lost = F.vertex_dims - stalks.ranks
    h0 = Z.shape[1] + sum(level.P.shape[1] for level in levels) + int(lost.sum())
    alone = stalk_columns(F, stalks, stalks.V, stalks.ranks, lost)
    if h0 > DENSE_COLUMNS and h0 * F.dim_c0 > DENSE_ENTRIES:
        steps, Q = _orthonormal_steps(stalks, levels, last, Z)
        E = stalk_columns(F, stalks, stalks.V, 0 * lost, stalks.ranks)
        for k, (R, P) in reversed(list(enumerate(steps))):
            R, P = (R, P) if k else (E @ R, E @ P)  # few columns yet
            Q = scipy.sparse.hstack([R @ Q, P], format="csr")
        return scipy.sparse.hstack([Q if steps else E @ Q, alone], format="csr", dtype=F.dtype)
    Y = Z
    for level in reversed(levels):
        Y = np.concatenate([level.R @ Y, level.P.toarray()], axis=1)
    W = stalk_columns(F, stalks, stalks.W, 0 * lost, stalks.ranks)
    for _ in range(2 if Y.shape[1] else 0):
        # in the coordinates where delta has norm 1, so that the residual does not suffer from the
        # condition of W
        triangle = np.linalg.qr(W @ Y, mode="r")
        Y = scipy.linalg.solve_triangular(triangle, Y.T, trans="T", lower=False).T
    return np.concatenate([W @ Y, alone.toarray()], axis=1).astype(F.dtype)


def _orthonormal_steps(stalks: Stalks, levels: list[Level], last: CellularSheaf, Z: np.ndarray):
    """Return what replaces R and P level by level, and what replaces Z, in orthonormal bases of im W_v.

    Going up, every cluster splits what it peels off from what it carries on, orthogonally in the
    true metric, and hands up the triangular factor of the metric of the latter. So sections are
    orthonormal, and as sparse as their clusters are small.
    """
    starts = offsets(stalks.ranks**2)
    factors = np.empty(int(starts[-1]), stalks.W.dtype)
    kernels.stalk_factors(0, len(stalks.ranks), stalks.clusters.dims, stalks.starts, stalks.V, stalks.W, stalks.ranks, starts, factors)  # fmt: skip
    blocks = []
    for level in levels:
        R, P = level.R.copy(), level.P.copy()
        dims, kept, dtype = level.clusters.dims, level.carried + level.peeled, factors.dtype
        new_starts = offsets(level.carried**2)
        new = np.zeros(int(new_starts[-1]), dtype)

        def work(
            lo,
            hi,
            level=level,
            R=R,
            P=P,
            new_starts=new_starts,
            new=new,
            starts=starts,
            factors=factors,
        ):
            n, k = (
                int(level.clusters.dims[lo:hi].max()),
                int((level.carried + level.peeled)[lo:hi].max()),
            )
            return kernels.orthonormal_blocks(
                lo, hi, level.sheaf.arrays, level.clusters, starts, factors, level.carried, level.peeled, R.indptr, R.data,
                P.indptr, P.data, svd_workspace(k, k, factors.dtype, 0), room_for(n, k, n, factors.dtype), new_starts, new,
            )  # fmt: skip

        check_status(
            run_ranges(work, dims * kept * (kept + 1.0) + 1.0, serial_below=SERIAL_BELOW),
            "the sections of cluster",
        )
        blocks.append((R, P))
        starts, factors = new_starts, new
    labels = Partition(np.arange(last.n_vertices))
    indptr, indices = block_layout(last, labels, last.vertex_dims)
    metric = scipy.sparse.csr_array((factors, indices, indptr), shape=(last.dim_c0, last.dim_c0))
    Q = scipy.sparse.csr_array(np.linalg.qr(metric @ Z)[0])
    return blocks, Q


def section_residual(F: CellularSheaf, basis) -> float:
    """Return norm(delta S) / norm(delta), at any scale."""
    if F.largest_entry == 0 or basis.shape[1] == 0:
        return 0.0
    scale = float(2.0 ** np.floor(np.log2(F.largest_entry)))
    delta = coboundary(F)
    dtype = np.result_type(F.dtype, np.float64)
    delta.data = (delta.data.astype(dtype).view(np.float64) / scale).view(dtype)
    image = delta @ basis.astype(dtype)
    size = norm(delta.data)
    return norm(image.data if scipy.sparse.issparse(image) else image) / size if size else 0.0
