"""Tuples of arrays that the kernels of global sections read and fill, unpacked at their head."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen._kernels.dense import Workspace


class Ragged(NamedTuple):
    """Dense row-major blocks one after the other: that of item a begins at ``data[starts[a]]``."""

    starts: np.ndarray
    data: np.ndarray


class HalfEdges(NamedTuple):
    """Ends of edges, as 2 e + end, by the vertex or the cluster they belong to."""

    starts: np.ndarray
    halves: np.ndarray


class StalkBases(NamedTuple):
    """Bases of the stalks, blocks d_v x d_v at ``starts``; see ``equilibration.find_vertex_bases``.

    ranks : how many columns of W count; sizes : squared Frobenius norm of the maps at each vertex
    """

    starts: np.ndarray
    ranks: np.ndarray
    W: np.ndarray
    V: np.ndarray
    sizes: np.ndarray


class Cut(NamedTuple):
    """Where a cluster's coordinates stop to be eliminated, and the rounding of the maps."""

    keep: float
    eps: float


class Kept(NamedTuple):
    """What one level makes of its clusters; see ``reduction.reduce_clusters``.

    widths : columns kept; peeled : how many of them, the last ones, are sections of their own;
    columns : (N_a, widths[a]); loops : (loop_rows[a], widths[a] - peeled[a]) at the beginning of
    their blocks; dropped, zeros : (K,) singular values left out and taken for zero
    """

    widths: np.ndarray
    peeled: np.ndarray
    columns: Ragged
    loops: Ragged
    loop_rows: np.ndarray
    dropped: np.ndarray
    zeros: np.ndarray


class ClusterWorkspace(NamedTuple):
    """Workspace for clusters of dimension n that keep k; private to a thread.

    lapack : for matrices n x n; stack : rows of a QR on their way; column, row : for its
    reflections; factor : (k, k); t, z : (n, k)
    """

    lapack: Workspace
    stack: np.ndarray
    column: np.ndarray
    row: np.ndarray
    factor: np.ndarray
    t: np.ndarray
    z: np.ndarray
