"""Local modes: the low eigenvectors of each cluster's own operator, which become the coarse stalk."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from sheafcoarsen._checks import choice, flag
from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.lapack import svd_workspace, workspace
from sheafcoarsen._linalg import eps_of
from sheafcoarsen._ragged import offsets, read_only
from sheafcoarsen._threads import run_ranges, single_threaded_blas
from sheafcoarsen.clusters import Clusters, check_partition, clusters_of, crossing_half_edges
from sheafcoarsen.exceptions import TiedModesWarning
from sheafcoarsen.operators import laplacian
from sheafcoarsen.partition import Partition
from sheafcoarsen.prolongation import as_matrix, block, block_layout, check_layout, cluster_number
from sheafcoarsen.ranks import Rule, Spectra, as_rule
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.sparse_modes import SPARSE_ABOVE, SPARSE_SHARE, local_sheaf, lowest_sparse

LOCAL_OPERATORS = ("internal", "principal")

MAX_DENSE = 12_000
"""Largest cluster dimension solved as a dense matrix: five times its square of work space, 5.8 GB in double precision."""

SERIAL_BELOW = 2e6
"""Sum of N_a^3 below which one thread does all."""


@dataclass(frozen=True, eq=False, repr=False)
class LocalModes:
    """The first r_a modes of every cluster (``eq:local_spectral_basis``) and what is known of the next one.

    ``eigenvalues(a)`` and ``basis(a)`` give one cluster's; the arrays below hold those of all K clusters.

    Attributes
    ----------
    sheaf, partition : what the modes were computed for
    local_operator : {"internal", "principal"}
    ranks : ndarray of int, shape (K,)
        How many modes each cluster keeps, r_a.
    scores : ndarray, shape (sum r_a,)
        The kept eigenvalues, cluster after cluster, ascending inside each.
    next_eigenvalues : ndarray, shape (K,)
        The first discarded eigenvalue, inf where nothing is discarded.
    tied : ndarray of bool, shape (K,)
        Where the cut splits a multiple eigenvalue, so that the kept space is one of many.
    operator_norms : ndarray, shape (K,)
        norm(., inf) of the local operators, against which a tie is judged.
    prolongation : csr_array, shape (dim_c0, sum r_a)
        R = blockdiag(U_a), rows in the order of C^0.
    singular : bool
        Whether the modes are singular vectors of the local coboundary, as for kernels, or eigenvectors.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F, P = sc.CellularSheaf.constant(nx.path_graph(5)), sc.Partition([0, 0, 0, 1, 1])
    >>> M = sc.local_modes(F, P, rank=2)
    >>> M.ranks, abs(M.scores).round(12), M.next_eigenvalues.round(12)
    (array([2, 2]), array([0., 1., 0., 2.]), array([ 3., inf]))
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
    singular: bool = False  # singular vectors of the local coboundary rather than eigenvectors

    @cached_property
    def rank_offsets(self) -> np.ndarray:
        """Where each cluster begins in ``scores`` and among the columns of R, shape (K + 1,)."""
        return read_only(offsets(self.ranks))

    @cached_property
    def clusters(self) -> Clusters:
        """The index structure of the graph with its partition."""
        return clusters_of(self.sheaf, self.partition)

    @cached_property
    def half_edges(self) -> tuple[np.ndarray, np.ndarray]:
        """What the local operator holds beyond the internal edges, as ``crossing_half_edges`` gives it."""
        principal = self.local_operator == "principal"
        return crossing_half_edges(self.sheaf, self.partition, self.clusters, principal=principal)

    def eigenvalues(self, a: int) -> np.ndarray:
        """Return the r_a eigenvalues kept in cluster ``a``, ascending.

        Parameters
        ----------
        a : int
            The cluster.

        Returns
        -------
        ndarray, shape (r_a,)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F, P = sc.CellularSheaf.constant(nx.path_graph(5)), sc.Partition([0, 0, 0, 1, 1])
        >>> M = sc.local_modes(F, P, rank=2)
        >>> abs(M.eigenvalues(1)).round(12)
        array([0., 2.])
        """
        a = cluster_number(self.partition, a)
        return self.scores[self.rank_offsets[a] : self.rank_offsets[a + 1]]

    def basis(self, a: int) -> np.ndarray:
        """Return U_a, shape (N_a, r_a): rows are the cluster's vertices ascending, stalk coordinates inside.

        Parameters
        ----------
        a : int
            The cluster.

        Returns
        -------
        ndarray, shape (N_a, r_a)

        Examples
        --------
        >>> import networkx as nx
        >>> import sheafcoarsen as sc
        >>> F, P = sc.CellularSheaf.constant(nx.path_graph(5)), sc.Partition([0, 0, 0, 1, 1])
        >>> M = sc.local_modes(F, P, rank=2)
        >>> abs(M.basis(1)).round(3)
        array([[0.707, 0.707],
               [0.707, 0.707]])
        """
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


def warn_if_tied(modes: LocalModes, stacklevel: int, where: str = "") -> None:
    """Warn once, naming the first cluster whose cut splits a multiple eigenvalue; ``where`` comes first."""
    tied = np.flatnonzero(modes.tied)
    if tied.size:
        a = int(tied[0])
        warnings.warn(
            f"{where}the cut splits a multiple eigenvalue in {tied.size} of {len(modes.ranks)} clusters, first in cluster {a} "
            f"(r = {modes.ranks[a]}, eigenvalue {modes.next_eigenvalues[a]:.4g}): the coarse space is one of many there; "
            f"rank rules have .whole_multiplets(), which keeps multiplets whole",
            TiedModesWarning,
            stacklevel=stacklevel,
        )


def compute_modes(
    sheaf: CellularSheaf, P: Partition, rank, local_operator: str, *, progress: bool = False
) -> LocalModes:
    """Compute the modes without a word about ties."""
    check_partition(sheaf, P)
    choice("local_operator", local_operator, LOCAL_OPERATORS)
    flag("progress", progress)
    rule = as_rule(rank, P.n_clusters)
    local = _LocalProblems(sheaf, P, local_operator, progress)
    ranks = rule.ranks(local.spectra(rule))
    return local.modes(ranks, singular=rule.needs_kernels)


def refresh_modes(modes: LocalModes, sheaf: CellularSheaf, *, new_edges: bool = False) -> LocalModes:
    """Compute as many modes of the same operator, in the same way, for a sheaf on the same vertices.

    Index arrays are shared unless it has ``new_edges``.
    """
    check_modes(modes, "the modes of the coarsening")
    like = None if new_edges else modes
    local = _LocalProblems(sheaf, modes.partition, modes.local_operator, False, like=like)
    return local.modes(modes.ranks, singular=modes.singular)


def check_modes(modes: LocalModes, what: str) -> None:
    """Refuse modes whose fields do not fit together, as after ``dataclasses.replace``: kernels rely on them."""
    choice("local_operator", modes.local_operator, LOCAL_OPERATORS)
    K = modes.partition.n_clusters
    ranks = modes.ranks
    if not isinstance(ranks, np.ndarray) or ranks.dtype != np.int64 or ranks.shape != (K,) or (ranks < 0).any():
        raise ValueError(f"{what}: `ranks` must hold {K} integers of at least 0")
    check_layout(modes.prolongation, modes.sheaf, modes.partition, ranks, what)
    real = np.zeros(0, modes.sheaf.dtype).real.dtype
    for name, length in (("scores", int(ranks.sum())), ("next_eigenvalues", K), ("operator_norms", K)):
        values = getattr(modes, name)
        if not isinstance(values, np.ndarray) or values.dtype != real or values.shape != (length,):
            raise ValueError(f"{what}: `{name}` must hold {length} numbers of type {real}")
        bad = np.flatnonzero(np.isnan(values) | (np.isinf(values) if name != "next_eigenvalues" else False))
        if bad.size:
            raise ValueError(f"{what}: `{name}` must be finite, got {values[bad[0]]} at index {bad[0]}")
    if not isinstance(modes.tied, np.ndarray) or modes.tied.dtype != np.bool_ or modes.tied.shape != (K,):
        raise ValueError(f"{what}: `tied` must hold {K} booleans")
    if not isinstance(modes.singular, bool):
        raise TypeError(f"{what}: `singular` must be True or False, got {modes.singular!r}")
    dims = np.bincount(modes.partition.labels, modes.sheaf.vertex_dims, minlength=K)
    if (ranks > dims).any():
        a = int(np.argmax(ranks > dims))
        raise ValueError(f"{what}: `ranks[{a}]` = {ranks[a]} is more than the cluster's dimension {dims[a]:.0f}")
    bad = np.flatnonzero(~np.isfinite(modes.prolongation.data))
    if bad.size:
        raise ValueError(f"{what}: `prolongation` must be finite, got {modes.prolongation.data[bad[0]]}")


class _LocalProblems:
    """The local operators of all clusters, solved range by range in private workspaces."""

    def __init__(self, sheaf: CellularSheaf, P: Partition, local_operator: str, progress: bool, like=None):
        self.sheaf, self.partition, self.local_operator, self.progress = sheaf, P, local_operator, progress
        self.like = like  # LocalModes of another sheaf on the same graph, whose index arrays serve here too
        self.clusters = clusters_of(sheaf, P) if like is None else like.clusters
        self.real = np.zeros(0, sheaf.dtype).real.dtype
        self.eps = eps_of(sheaf.dtype)
        self.map_size = int((np.diff(sheaf.tail_offsets) + np.diff(sheaf.head_offsets)).max(initial=0))
        principal = local_operator == "principal"
        self.half_edges = (
            crossing_half_edges(sheaf, P, self.clusters, principal=principal) if like is None else like.half_edges
        )

    def check_dense(self, dims: np.ndarray, why: str) -> None:
        """Refuse a cluster that is too large for a dense matrix."""
        if dims.max(initial=0) > MAX_DENSE:
            a = int(dims.argmax())
            raise ValueError(
                f"cluster {a} has dimension {dims[a]}; {why} needs dense matrices, which are limited to dimension {MAX_DENSE}: "
                f"use more clusters, or keep few modes by an integer `rank`"
            )

    def stack_rows(self) -> np.ndarray:
        """Return the number of rows of the matrix G_a with G_a* G_a = local operator, shape (K,)."""
        f, K = self.sheaf, self.clusters.n_clusters
        inner, halves = self.clusters.internal_edges, self.half_edges[1]
        rows = np.bincount(self.partition.labels[f.edges[inner, 0]], f.edge_dims[inner], minlength=K)
        cluster = self.partition.labels[f.edges[halves >> 1, halves & 1]]
        return (rows + np.bincount(cluster, f.edge_dims[halves >> 1], minlength=K)).astype(np.int64)

    def run(self, what: str, work, dims: np.ndarray, room) -> None:
        """Call ``work(lo, hi, workspace)`` over all clusters with BLAS at one thread; name the cluster where LAPACK failed.

        ``dims`` are the sizes of the dense problems, ``room(lo, hi)`` allocates the workspace of a range.
        """
        with single_threaded_blas():
            failed = run_ranges(
                lambda lo, hi: work(lo, hi, room(lo, hi)),
                dims.astype(np.float64) ** 3 + 1e3,
                serial_below=SERIAL_BELOW,
                description=what,
                progress=self.progress,
            )
        for a in failed:
            if a >= 0:
                raise np.linalg.LinAlgError(
                    f"{what}: the problem of cluster {a} (dimension {dims[a]}) did not converge"
                )

    def room(self, dims, wanted):
        """Return a function that allocates work space for a range of clusters."""
        return lambda lo, hi: workspace(
            int(dims[lo:hi].max()), int(wanted[lo:hi].max()), self.sheaf.dtype, self.map_size
        )

    def svd_room(self, rows):
        """Return the same for singular value decompositions."""
        dims = self.clusters.dims
        return lambda lo, hi: svd_workspace(
            int(rows[lo:hi].max()), int(dims[lo:hi].max()), self.sheaf.dtype, self.map_size
        )

    def spectra(self, rule: Rule) -> Spectra:
        """Return what the rule must be shown."""
        f, c = self.sheaf._arrays, self.clusters
        if rule.needs_scores or rule.needs_kernels:
            self.check_dense(c.dims, "a rule that looks at whole spectra")
        K = c.n_clusters
        starts = offsets(c.dims)
        scores, norms = np.zeros(int(starts[-1]) if rule.needs_scores else 0, self.real), np.zeros(K, self.real)
        if rule.needs_scores:
            self.run(
                "local spectra",
                lambda lo, hi, s: kernels.local_spectra(
                    lo, hi, f, c, *self.half_edges, self.eps, s, starts, scores, norms
                ),
                c.dims,
                self.room(c.dims, np.ones(K)),
            )
        dims = np.zeros(K, np.int64)
        if rule.needs_kernels:
            rows = self.stack_rows()
            self.run(
                "local kernels",
                lambda lo, hi, s: kernels.kernel_dims(lo, hi, f, c, *self.half_edges, rows, self.eps, s, dims),
                c.dims,
                self.svd_room(rows),
            )
        return Spectra(c.dims, starts, scores, dims, np.sqrt(self.eps) * norms.astype(np.float64))

    def modes(self, ranks: np.ndarray, *, singular: bool) -> LocalModes:
        """Compute the lowest modes: eigenvectors, or right singular vectors where kernels must be exact."""
        f, c, K = self.sheaf._arrays, self.clusters, self.clusters.n_clusters
        if self.like is None:
            indptr, indices = block_layout(self.sheaf, self.partition, ranks)
        else:
            indptr, indices = self.like.prolongation.indptr, self.like.prolongation.indices
        starts = offsets(ranks)
        # frozen before kernels see them, which would be compiled for either kind of array
        read_only(ranks)
        read_only(indptr)
        data, scores = np.empty(len(indices), self.sheaf.dtype), np.empty(int(starts[-1]), self.real)
        next_values, norms, tied = np.empty(K, self.real), np.empty(K, self.real), np.zeros(K, np.bool_)
        out = (indptr, data, starts, scores, next_values, norms, tied)
        if singular:
            rows = self.stack_rows()
            self.run(
                "local modes",
                lambda lo, hi, s: kernels.singular_modes(
                    lo, hi, f, c, *self.half_edges, rows, ranks, self.eps, s, *out
                ),
                c.dims,
                self.svd_room(rows),
            )
        else:
            wanted = np.minimum(ranks + 1, c.dims)
            large = (c.dims > SPARSE_ABOVE) & (SPARSE_SHARE * wanted <= c.dims)
            self.check_dense(np.where(large, 0, c.dims), "keeping so large a share of its modes")
            with single_threaded_blas():
                for a in np.flatnonzero(large).tolist():  # each is larger than SPARSE_ABOVE, so they are few
                    try:
                        self.large_modes(a, int(ranks[a]), *out)
                    except np.linalg.LinAlgError:
                        if c.dims[a] > MAX_DENSE:
                            raise
                        large[a] = False
            dense = np.where(large, 0, c.dims)
            self.run(
                "local modes",
                lambda lo, hi, s: kernels.local_modes(lo, hi, f, c, *self.half_edges, ranks, large, self.eps, s, *out),
                dense,
                self.room(dense, wanted),
            )
        R = as_matrix(indptr, indices, data, int(starts[-1]))
        for array in (scores, next_values, norms, tied):
            read_only(array)
        modes = LocalModes(
            self.sheaf, self.partition, self.local_operator, ranks, scores, next_values, tied, norms, R, singular
        )
        modes.__dict__.update(clusters=c, half_edges=self.half_edges)
        return modes

    def large_modes(self, a, r, indptr, data, value_starts, values, next_values, norms, tied) -> None:
        """Compute what ``kernels.local_modes`` computes for one cluster that is too large for a dense matrix."""
        halves = self.half_edges[1][self.half_edges[0][a] : self.half_edges[0][a + 1]]
        local, unit = local_sheaf(self.sheaf, self.clusters, a, halves)
        A = laplacian(local)
        top = float(abs(A).sum(axis=1).max())
        if top == 0:  # every vector is an eigenvector
            w, Z = np.zeros(r + 1), np.eye(A.shape[0], r)
        else:
            try:
                w, Z = lowest_sparse(A, r + 1, eps_of(A.dtype))
            except np.linalg.LinAlgError as error:
                raise np.linalg.LinAlgError(f"local modes of cluster {a} (dimension {A.shape[0]}): {error}") from None
        w = w.clip(min=0)
        values[value_starts[a] : value_starts[a + 1]] = w[:r] / unit / unit
        next_values[a] = w[r] / unit / unit
        norms[a] = top / unit / unit
        tied[a] = r > 0 and w[r] - w[r - 1] <= np.sqrt(self.eps) * top
        rows = np.ascontiguousarray(Z[:, :r].T, dtype=data.dtype)
        kernels.store_rows(a, r, self.sheaf._arrays, self.clusters, rows.reshape(-1), self.eps, indptr, data)
