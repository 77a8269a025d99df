"""Local modes: the low eigenvectors of each cluster's own operator, which become the coarse stalk."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from sheafcoarsen._checks import choice
from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.lapack import workspace
from sheafcoarsen._linalg import eps_of
from sheafcoarsen._ragged import offsets, read_only
from sheafcoarsen._threads import run_ranges, single_threaded_blas
from sheafcoarsen.clusters import Clusters, check_partition, clusters_of
from sheafcoarsen.exceptions import TiedModesWarning
from sheafcoarsen.partition import Partition
from sheafcoarsen.prolongation import as_matrix, block, block_layout
from sheafcoarsen.ranks import as_rule
from sheafcoarsen.sheaf import CellularSheaf

LOCAL_OPERATORS = ("internal", "principal")

MAX_DENSE = 12_000
"""Largest cluster dimension solved as a dense matrix (2.3 GB of work space in double precision)."""

SERIAL_BELOW = 2e6
"""Sum of N_a^3 below which one thread does all."""


@dataclass(frozen=True, eq=False, repr=False)
class LocalModes:
    """The first r_a modes of every cluster (``eq:local_spectral_basis``) and what is known of the next one.

    ``eigenvalues(a)`` and ``basis(a)`` give one cluster's; the arrays below hold all of them.
    """

    sheaf: CellularSheaf
    partition: Partition
    local_operator: str  # "internal" or "principal"
    ranks: np.ndarray  # (K,) r_a
    scores: np.ndarray  # (sum r_a,) eigenvalues of cluster after cluster, ascending inside each
    next_eigenvalues: np.ndarray  # (K,) the first discarded eigenvalue, inf where nothing is discarded
    tied: np.ndarray  # (K,) bool: the cut splits a multiple eigenvalue, so the kept space is not unique
    operator_norms: np.ndarray  # (K,) norm(., inf) of the local operators
    prolongation: scipy.sparse.csr_array  # R = blockdiag(U_a), rows in the order of C^0

    @cached_property
    def rank_offsets(self) -> np.ndarray:
        """Where each cluster begins in ``scores`` and among the columns of R, shape (K + 1,)."""
        return read_only(offsets(self.ranks))

    @cached_property
    def clusters(self) -> Clusters:
        """The index structure of the graph with its partition."""
        return clusters_of(self.sheaf, self.partition)

    def eigenvalues(self, a: int) -> np.ndarray:
        """Return the r_a eigenvalues kept in cluster ``a``, ascending."""
        a = range(len(self.ranks))[a]
        return self.scores[self.rank_offsets[a] : self.rank_offsets[a + 1]]

    def basis(self, a: int) -> np.ndarray:
        """Return U_a, shape (N_a, r_a): rows are the cluster's vertices ascending, stalk coordinates inside."""
        return block(self.prolongation, self.sheaf, self.partition, self.ranks, a)

    def __repr__(self) -> str:
        spread = f"{self.ranks.min()} .. {self.ranks.max()}" if len(self.ranks) else "none"
        return (
            f"LocalModes({self.local_operator!r}, n_clusters={len(self.ranks)}, ranks {spread}, "
            f"dim {self.prolongation.shape[1]} of {self.sheaf.dim_c0}, tied={int(self.tied.sum())})"
        )


def local_modes(
    sheaf: CellularSheaf,
    P: Partition,
    rank,
    local_operator: str = "internal",
    *,
    progress: bool = False,
) -> LocalModes:
    """Return the lowest modes of every cluster's local operator.

    ``"internal"`` takes the internal Laplacian L_a of the paper's theory (``eq:internal_sheaf_laplacian``): edges with both
    ends in the cluster. ``"principal"`` takes the block L[C_a, C_a] of the paper's layer (section 5.1, Reduce), which also holds
    the crossing edges' F* F on boundary vertices; it loses global sections and the low spectrum (docs/conventions.md, section 2).

    Parameters
    ----------
    sheaf : CellularSheaf
    P : Partition
    rank : int, array_like of int of shape (K,), or rule from ``sc.ranks``
        How many modes each cluster keeps, clipped to the cluster's dimension N_a.
    local_operator : {"internal", "principal"}
    progress : bool
        Show a progress bar.

    Returns
    -------
    LocalModes

    Warns
    -----
    TiedModesWarning
        Where the cut splits a multiple eigenvalue: the kept space is then one of many.

    Examples
    --------
    A path cut in the middle; the lowest mode of each half is the constant:

    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(4))
    >>> M = sc.local_modes(F, sc.Partition([0, 0, 1, 1]), 1)
    >>> M.basis(0).round(3)
    array([[0.707],
           [0.707]])
    >>> M.next_eigenvalues
    array([2., 2.])
    """
    modes = compute_modes(sheaf, P, rank, local_operator, progress=progress)
    warn_if_tied(modes, stacklevel=3)
    return modes


def warn_if_tied(modes: LocalModes, stacklevel: int) -> None:
    """Warn once, naming the first cluster whose cut splits a multiple eigenvalue."""
    tied = np.flatnonzero(modes.tied)
    if tied.size:
        a = int(tied[0])
        warnings.warn(
            f"the cut splits a multiple eigenvalue in {tied.size} of {len(modes.ranks)} clusters, first in cluster {a} "
            f"(r = {modes.ranks[a]}, eigenvalue {modes.next_eigenvalues[a]:.4g}): the coarse space is one of many there; "
            f"another rank avoids it",
            TiedModesWarning,
            stacklevel=stacklevel,
        )


def compute_modes(
    sheaf: CellularSheaf, P: Partition, rank, local_operator: str, *, progress: bool = False
) -> LocalModes:
    """Compute the modes without a word about ties."""
    check_partition(sheaf, P)
    choice("local_operator", local_operator, LOCAL_OPERATORS)
    rule = as_rule(rank, P.n_clusters)
    clusters = clusters_of(sheaf, P)
    ranks = rule.ranks(clusters.dims)
    K = clusters.n_clusters
    largest = int(clusters.dims.max(initial=0))
    if largest > MAX_DENSE:
        a = int(clusters.dims.argmax())
        raise ValueError(
            f"cluster {a} has dimension {largest}; local modes are computed densely up to {MAX_DENSE}: use more clusters"
        )
    indptr, indices = block_layout(sheaf, P, ranks)
    real = np.zeros(0, sheaf.dtype).real.dtype
    value_starts = offsets(ranks)
    data = np.empty(len(indices), sheaf.dtype)
    scores = np.empty(int(value_starts[-1]), real)
    next_values, norms, tied = np.empty(K, real), np.empty(K, real), np.zeros(K, np.bool_)
    principal = local_operator == "principal"
    extra_starts = offsets(sheaf.vertex_dims**2 if principal else np.zeros(0))
    extra = np.zeros(int(extra_starts[-1]), sheaf.dtype)
    if principal:
        kernels.crossing_diagonal(sheaf._arrays, clusters, extra_starts, extra)
    sqrt_eps = float(np.sqrt(eps_of(sheaf.dtype)))

    def work(lo, hi):
        room = workspace(int(clusters.dims[lo:hi].max()), int(ranks[lo:hi].max()) + 1, sheaf.dtype)
        return kernels.local_modes(
            lo, hi, sheaf._arrays, clusters, principal, extra_starts, extra, ranks, sqrt_eps, room,
            indptr, data, value_starts, scores, next_values, norms, tied,
        )  # fmt: skip

    with single_threaded_blas():
        failed = run_ranges(
            work,
            clusters.dims.astype(np.float64) ** 3 + 1e3,
            serial_below=SERIAL_BELOW,
            description="local modes",
            progress=progress,
        )
    for a in failed:
        if a >= 0:
            raise np.linalg.LinAlgError(
                f"the eigenproblem of cluster {a} (dimension {clusters.dims[a]}) did not converge"
            )
    R = as_matrix(indptr, indices, data, int(value_starts[-1]))
    for array in (ranks, scores, next_values, norms, tied):
        read_only(array)
    result = LocalModes(sheaf, P, local_operator, ranks, scores, next_values, tied, norms, R)
    result.__dict__["clusters"] = clusters  # not a field, so that dataclasses.replace does not carry it over
    return result
