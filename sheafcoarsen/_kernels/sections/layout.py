"""NamedTuples of arrays that the kernels of global sections read and fill."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import Workspace


class Ragged(NamedTuple):
    """Dense row-major blocks; that of item a begins at ``data[starts[a]]``."""

    starts: np.ndarray
    data: np.ndarray


class HalfEdges(NamedTuple):
    """Half-edges 2 e + end, grouped by vertex or by cluster."""

    starts: np.ndarray
    halves: np.ndarray


class StalkBases(NamedTuple):
    """Bases of the stalks, blocks d_v x d_v at ``starts``; see ``equilibration.find_vertex_bases``.

    ranks : number of nonzero columns of W; sizes : squared Frobenius norms of the maps at vertices
    """

    starts: np.ndarray
    ranks: np.ndarray
    W: np.ndarray
    V: np.ndarray
    sizes: np.ndarray


class Cut(NamedTuple):
    """Singular value down to which coordinates are eliminated, and the rounding of the maps."""

    keep: float
    eps: float


class Kept(NamedTuple):
    """Output of ``reduction.reduce_clusters`` for all clusters of a level.

    widths : number of retained columns; n_sections : number of sections among them, the last ones;
    columns : (N_a, widths[a]); loops : (loop_rows[a], widths[a] - n_sections[a]) at the start of
    their blocks; dropped, zeros : (K,) smallest eliminated and largest zero singular value
    """

    widths: np.ndarray
    n_sections: np.ndarray
    columns: Ragged
    loops: Ragged
    loop_rows: np.ndarray
    dropped: np.ndarray
    zeros: np.ndarray


class ClusterWorkspace(NamedTuple):
    """Workspace for clusters of dimension n with k retained columns; private to a thread.

    lapack : for matrices n x n; stack : rows of an incremental QR; column, row : for its
    reflections; factor : (k, k); t, z : (n, k)
    """

    lapack: Workspace
    stack: np.ndarray
    column: np.ndarray
    row: np.ndarray
    factor: np.ndarray
    t: np.ndarray
    z: np.ndarray
