"""Local modes: the low eigenvectors of each cluster's own operator, which become the coarse stalk."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from sheafcoarsen import _html
from sheafcoarsen._checks import MAX_DIMENSION, choice, flag, real_number, whole_number
from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels import oversampled as oversampled_kernels
from sheafcoarsen._kernels.lapack import svd_workspace, workspace
from sheafcoarsen._linalg import eps_of, zero_level
from sheafcoarsen._ragged import offsets, read_only
from sheafcoarsen._threads import run_ranges, single_threaded_blas
from sheafcoarsen.clusters import Clusters, check_partition, clusters_of, crossing_half_edges
from sheafcoarsen.exceptions import TiedModesWarning
from sheafcoarsen.operators import laplacian
from sheafcoarsen.oversampled import Patches
from sheafcoarsen.partition import Partition
from sheafcoarsen.prolongation import as_matrix, block, block_layout, check_layout, cluster_number
from sheafcoarsen.ranks import Budget, Rule, Spectra, as_rule
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.sparse_modes import SPARSE_ABOVE, SPARSE_SHARE, local_sheaf, lowest_sparse

LOCAL_OPERATORS = ("internal", "principal", "oversampled")

MAX_DENSE = 12_000
"""Largest cluster dimension solved as a dense matrix: five times its square of work space, 5.8 GB in double precision."""

SERIAL_BELOW = 2e6
"""Sum of N_a^3 below which one thread does all."""

KEEP_BELOW = 2**26
"""Sum of N_a^2 up to which a rule that looks at spectra of oversampled modes keeps G of every cluster instead of computing it twice."""

PILOT_SHARE = 20
"""One mode in so many goes into the pilot that finds a target."""

PILOT_NUMBER = 10
"""The target is the pilot's positive eigenvalue of this number."""

PILOT_DENSE = 600
"""Dimension up to which a pilot is solved as a dense matrix."""


@dataclass(frozen=True, eq=False, repr=False)
class LocalModes:
    """The first r_a modes of every cluster (``eq:local_spectral_basis``) and what is known of the next one.

    ``eigenvalues(a)`` and ``basis(a)`` give one cluster's; the arrays below hold those of all K clusters.

    Attributes
    ----------
    sheaf, partition : what the modes were computed for
    local_operator : {"internal", "principal", "oversampled"}
    ranks : ndarray of int, shape (K,)
        How many modes each cluster keeps, r_a.
    scores : ndarray, shape (sum r_a,)
        The kept eigenvalues, cluster after cluster, ascending inside each.
    next_eigenvalues : ndarray, shape (K,)
        The first discarded eigenvalue, inf where nothing is discarded.
    tied : ndarray of bool, shape (K,)
        Where the cut splits a multiple eigenvalue, so that the kept space is one of many.
    operator_norms : ndarray, shape (K,)
        norm(., inf) of the local operators, against which a tie is judged; of the patches' for oversampled modes.
    prolongation : csr_array, shape (dim_c0, sum r_a)
        R = blockdiag(U_a), rows in the order of C^0.
    singular : bool
        Whether the modes are singular vectors of the local coboundary, as for kernels, or eigenvectors.
    rings, target : int and float, or None
        Of oversampled modes: rings of neighbours in a patch, and the largest eigenvalue of interest.
    pilot : bool
        Whether a pilot found ``target``; :meth:`Coarsening.recoarsen` then finds it again for new maps.
    over_budget : int
        By how many modes the kernels of oversampled modes alone exceed ``ranks.budget``.

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
    local_operator: str  # one of LOCAL_OPERATORS
    ranks: np.ndarray  # (K,) r_a
    scores: np.ndarray  # (sum r_a,) eigenvalues of cluster after cluster, ascending inside each
    next_eigenvalues: np.ndarray  # (K,) the first discarded eigenvalue, inf where nothing is discarded
    tied: np.ndarray  # (K,) bool: the cut splits a multiple eigenvalue, so the kept space is not unique
    operator_norms: np.ndarray  # (K,) norm(., inf) of the local operators
    prolongation: scipy.sparse.csr_array  # R = blockdiag(U_a), rows in the order of C^0
    singular: bool = False  # singular vectors of the local coboundary rather than eigenvectors
    rings: int | None = None  # of oversampled modes
    target: float | None = None  # of oversampled modes: the one in use
    pilot: bool = False  # whether it was found rather than given
    over_budget: int = 0  # modes by which kernels exceed the budget

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
        own = "" if self.target is None else f", rings={self.rings}, target={self.target:.3g}"
        over = f", kernels {self.over_budget} over budget" if self.over_budget else ""
        return (
            f"LocalModes({self.local_operator!r}, n_clusters={len(self.ranks)}, ranks {spread}, "
            f"dim {self.prolongation.shape[1]} of {self.sheaf.dim_c0}, tied={int(self.tied.sum())}{own}{over})"
        )

    def _repr_html_(self) -> str:
        return _html.table(self._rows(), caption="LocalModes")

    def _rows(self) -> list[tuple]:
        """What they are, in names and values."""
        discarded = self.next_eigenvalues[np.isfinite(self.next_eigenvalues)]
        dims = np.bincount(self.partition.labels, self.sheaf.vertex_dims, len(self.ranks))
        zero = zero_level(dims, eps_of(self.sheaf.dtype), self.operator_norms)
        kept = np.where(self.scores <= np.repeat(zero, self.ranks), 0, self.scores)
        return [
            ("clusters", len(self.ranks)),
            ("local operator", self.local_operator),
            ("modes per cluster", _html.span(self.ranks)),
            ("dimension kept", f"{self.prolongation.shape[1]:,} of {self.sheaf.dim_c0:,}"),
            ("kept eigenvalues", _html.span(kept)),
            ("first discarded eigenvalues", _html.span(discarded)),
            ("clusters whose cut splits a multiple eigenvalue", int(self.tied.sum())),
        ]


def local_modes(
    sheaf: CellularSheaf,
    P: Partition,
    rank,
    local_operator: str = "internal",
    *,
    rings: int | None = None,
    target: float | None = None,
    progress: bool = False,
) -> LocalModes:
    """Return the lowest modes of every cluster's local operator.

    ``"internal"`` takes the internal Laplacian L_a of the paper's theory (``eq:internal_sheaf_laplacian``): edges with both
    ends in the cluster. ``"principal"`` takes the block L[C_a, C_a] of the paper's layer (section 5.1, Reduce), which also holds
    the crossing edges' F* F on boundary vertices; it loses global sections and the low spectrum (docs/conventions.md, section 2).

    ``"oversampled"`` describes best what a cluster answers to sources at the border of a patch T around it, and to sources inside of the
    size of the eigenvalues wanted (docs/conventions.md, section 5.7): with A = L_T + 0.1 s I, X = A^{-1} P_C* and Y = A^{-1} X, first
    the sections of T restricted to the cluster, then the leading eigenvectors of G = X_b* X_b + s^2 Y* Y in their complement. The
    scores, and so ``eigenvalues``, are 0 and then (eigenvalue of G)^{-1/2}. The low spectrum of the coarse sheaf is then closer,
    by orders of magnitude where many modes are kept, most so with ``sc.ranks.budget`` (docs/fidelity.md).

    Parameters
    ----------
    sheaf : CellularSheaf
    P : Partition
    rank : int, array_like of int of shape (K,), or rule from ``sc.ranks``
        How many modes each cluster keeps, clipped to the cluster's dimension N_a.
    local_operator : {"internal", "principal", "oversampled"}
    rings : int, optional
        For "oversampled", 1 by default: a patch is the cluster and so many rings of neighbours, those most strongly coupled to it first,
        of at most twice its dimension.
    target : float, optional
        For "oversampled": s, the largest eigenvalue of interest. By default that of a pilot: the 10th positive eigenvalue of a coarsening with
        N_a / 20 internal modes per cluster.
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
    modes = compute_modes(sheaf, P, rank, local_operator, rings=rings, target=target, progress=progress)
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
    sheaf: CellularSheaf,
    P: Partition,
    rank,
    local_operator: str,
    *,
    rings=None,
    target=None,
    found: float | None = None,
    progress: bool = False,
) -> LocalModes:
    """Compute the modes without a word about ties; ``found`` is the target of a pilot on a finer level, instead of one here."""
    check_partition(sheaf, P)
    rings, target = check_oversampling(local_operator, rings, target)
    flag("progress", progress)
    rule = as_rule(rank, P.n_clusters)
    local = _problems(sheaf, P, local_operator, progress, rings, found if target is None else target)
    ranks = rule.ranks(local.spectra(rule))
    if isinstance(local, _OversampledProblems):
        local.pilot = target is None
        local.over_budget = max(0, int(ranks.sum()) - rule.total) if isinstance(rule, Budget) else 0
    return local.modes(ranks, singular=rule.needs_kernels)


def check_oversampling(local_operator: str, rings, target) -> tuple[int, float | None]:
    """Return the arguments of oversampled modes; refuse them beside another local operator."""
    choice("local_operator", local_operator, LOCAL_OPERATORS)
    if local_operator != "oversampled":
        for name, value in (("rings", rings), ("target", target)):
            if value is not None:
                raise ValueError(
                    f'`{name}` is for `local_operator` = "oversampled", got {value!r} with {local_operator!r}: leave it out'
                )
        return 1, None
    rings = 1 if rings is None else min(whole_number("rings", rings, at_least=0), MAX_DIMENSION)
    if target is not None:
        number = real_number("target", target)
        if not 0 < number < np.inf:
            raise ValueError(
                f"`target` must be positive and finite, got {target!r}: it is the largest eigenvalue of interest, and None finds one"
            )
        target = number
    return rings, target


def refresh_modes(
    modes: LocalModes, sheaf: CellularSheaf, *, new_edges: bool = False, target: float | None = None
) -> LocalModes:
    """Compute as many modes of the same operator, in the same way, for a sheaf on the same vertices.

    Index arrays are shared unless it has ``new_edges``. ``target`` stands for that of a pilot.
    """
    check_modes(modes, "the modes of the coarsening")
    like = None if new_edges else modes
    target = target if modes.pilot else modes.target
    local = _problems(sheaf, modes.partition, modes.local_operator, False, modes.rings, target, like=like)
    if isinstance(local, _OversampledProblems):
        local.pilot, local.over_budget = modes.pilot, modes.over_budget
    return local.modes(modes.ranks, singular=modes.singular)


def check_modes(modes: LocalModes, what: str) -> None:
    """Refuse modes whose fields do not fit together, as after ``dataclasses.replace``: kernels rely on them."""
    if _is_as_made(modes):
        return
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
    check_settings(modes, what)
    dims = np.bincount(modes.partition.labels, modes.sheaf.vertex_dims, minlength=K)
    if (ranks > dims).any():
        a = int(np.argmax(ranks > dims))
        raise ValueError(f"{what}: `ranks[{a}]` = {ranks[a]} is more than the cluster's dimension {dims[a]:.0f}")
    bad = np.flatnonzero(~np.isfinite(modes.prolongation.data))
    if bad.size:
        raise ValueError(f"{what}: `prolongation` must be finite, got {modes.prolongation.data[bad[0]]}")


def _is_as_made(modes: LocalModes) -> bool:
    """Whether the modes come from here as they are: ``replace`` makes others, and R is frozen but may be given other arrays."""
    R, made = modes.prolongation, modes.__dict__.get("_made", ())
    return len(made) == 3 and all(
        one is other and not one.flags.writeable for one, other in zip(made, (R.indptr, R.indices, R.data), strict=True)
    )


def check_settings(modes: LocalModes, what: str) -> None:
    """Refuse settings of modes that do not fit together."""
    for name in ("singular", "pilot"):
        if not isinstance(getattr(modes, name), bool):
            raise TypeError(f"{what}: `{name}` must be True or False, got {getattr(modes, name)!r}")
    try:
        if modes.local_operator != "oversampled" or modes.target != 0:  # 0: a pilot found no energy at all
            check_oversampling(modes.local_operator, modes.rings, modes.target)
        if modes.local_operator == "oversampled" and (modes.rings is None or modes.target is None):
            raise ValueError("oversampled modes have `rings` and a `target`")
        whole_number("over_budget", modes.over_budget, at_least=0)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{what}: {error}") from None


class _LocalProblems:
    """The local operators of all clusters, solved range by range in private workspaces."""

    def __init__(self, sheaf: CellularSheaf, P: Partition, local_operator: str, progress: bool, like=None):
        self.sheaf, self.partition, self.local_operator, self.progress = sheaf, P, local_operator, progress
        self.like = like  # LocalModes of another sheaf on the same graph, whose index arrays serve here too
        self.clusters = clusters_of(sheaf, P) if like is None else like.clusters
        self.work = sheaf  # in the precision of the work
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
        ties = np.sqrt(self.eps) * norms.astype(np.float64)
        return Spectra(c.dims, starts, scores, dims, np.repeat(ties, c.dims) if rule.needs_scores else ties[:0])

    def modes(self, ranks: np.ndarray, *, singular: bool) -> LocalModes:
        """Compute the lowest modes: eigenvectors, or right singular vectors where kernels must be exact."""
        K = self.clusters.n_clusters
        if self.like is None:
            indptr, indices = block_layout(self.sheaf, self.partition, ranks)
        else:
            indptr, indices = self.like.prolongation.indptr, self.like.prolongation.indices
        starts = offsets(ranks)
        # frozen before kernels see them, which would be compiled for either kind of array
        read_only(ranks)
        read_only(indptr)
        numbers = np.zeros(0, self.work.dtype).real.dtype
        data, scores = np.empty(len(indices), self.work.dtype), np.empty(int(starts[-1]), numbers)
        next_values, norms, tied = np.empty(K, numbers), np.empty(K, numbers), np.zeros(K, np.bool_)
        own = self.compute(ranks, singular, (indptr, data, starts, scores, next_values, norms, tied))
        R = as_matrix(indptr, indices, data.astype(self.sheaf.dtype, copy=False), int(starts[-1]))
        scores, next_values, norms = (
            read_only(array.astype(self.real, copy=False)) for array in (scores, next_values, norms)
        )
        modes = LocalModes(
            self.sheaf,
            self.partition,
            self.local_operator,
            ranks,
            scores,
            next_values,
            read_only(tied),
            norms,
            R,
            **own,
        )
        modes.__dict__.update(clusters=self.clusters, half_edges=self.half_edges, _made=(R.indptr, R.indices, R.data))
        return modes

    def compute(self, ranks: np.ndarray, singular: bool, out) -> dict:
        """Fill the arrays ``out`` of ``kernels.local_modes``; return the other fields of the result."""
        f, c = self.sheaf._arrays, self.clusters
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
            return {"singular": True}
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
        return {}

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


class _OversampledProblems(_LocalProblems):
    """The same for oversampled modes."""

    def __init__(self, sheaf, P, progress, rings: int, target: float | None, like=None):
        super().__init__(sheaf, P, "oversampled", progress, like)
        self.rings, self.pilot, self.over_budget = rings, target is None, 0
        double = np.result_type(sheaf.dtype, np.float64)
        if sheaf.dtype != double:  # A may be too ill-conditioned for single precision
            self.work = sheaf.with_maps(sheaf.tail_data.astype(double), sheaf.head_data.astype(double))
        self.patches = Patches(self.work, self.clusters, rings)
        if self.patches.dims.max(initial=0) > MAX_DENSE:
            a = int(self.patches.dims.argmax())
            raise ValueError(
                f"the patch of cluster {a} has dimension {self.patches.dims[a]} (the cluster itself {self.clusters.dims[a]}); oversampled "
                f"modes need dense matrices, which are limited to dimension {MAX_DENSE}: use more clusters"
            )
        self.target = pilot_target(self.work, P) if target is None else target
        self.least = float(np.finfo(self.real).tiny)
        none = np.zeros(0, np.int64)
        self.kept = (none, np.zeros(0, self.work.dtype), none, np.zeros((0, 3)))  # by `spectra`, for `compute`

    def run_patches(self, what: str, work, wanted: np.ndarray) -> None:
        """Call ``work(lo, hi, patch room, workspace)`` as ``run`` does."""
        self.run(
            what,
            lambda lo, hi, rooms: work(lo, hi, *rooms),
            self.patches.dims,
            lambda lo, hi: self.patches.room(lo, hi, self.map_size, wanted),
        )

    def spectra(self, rule: Rule) -> Spectra:
        """Return what the rule must be shown."""
        f, c = self.work._arrays, self.clusters
        starts, dims = offsets(c.dims), np.zeros(c.n_clusters, np.int64)
        if not (rule.needs_scores or rule.needs_kernels):
            return Spectra(c.dims, starts, np.zeros(0, self.real), dims, np.zeros(0))
        scores = np.zeros(int(starts[-1]))
        if np.square(c.dims, dtype=np.float64).sum() <= KEEP_BELOW:
            kept_starts = offsets(c.dims**2)
            self.kept = (
                kept_starts,
                np.empty(int(kept_starts[-1]), self.work.dtype),
                dims,
                np.empty((c.n_clusters, 3)),
            )
        self.run_patches(
            "local spectra",
            lambda lo, hi, room, s: oversampled_kernels.oversampled_spectra(
                lo, hi, f, c, self.patches.arrays, self.target, self.eps, self.least, room, s, starts, scores,
                *self.kept[:2], dims, self.kept[3],
            ),
            np.ones(c.n_clusters),
        )  # fmt: skip
        ties = np.sqrt(self.eps) * np.append(scores[1:], 0)
        return Spectra(c.dims, starts, scores, dims, ties)

    def compute(self, ranks: np.ndarray, singular: bool, out) -> dict:
        """Fill the arrays ``out`` of ``kernels.local_modes``; return the other fields of the result."""
        f, c = self.work._arrays, self.clusters
        self.run_patches(
            "local modes",
            lambda lo, hi, room, s: oversampled_kernels.oversampled_modes(
                lo, hi, f, c, self.patches.arrays, self.target, self.eps, self.least, room, s, *self.kept, ranks, *out
            ),
            c.dims,  # eigenvectors: K_C may be of any dimension
        )
        return {"rings": self.rings, "target": self.target, "pilot": self.pilot, "over_budget": self.over_budget}


def _problems(sheaf, P, local_operator: str, progress: bool, rings, target, like=None) -> _LocalProblems:
    """Return the local problems of an operator."""
    if local_operator == "oversampled":
        return _OversampledProblems(sheaf, P, progress, rings, target, like)
    return _LocalProblems(sheaf, P, local_operator, progress, like)


def pilot_target(sheaf: CellularSheaf, P: Partition) -> float:
    """Return an estimate, from above, of the 10th positive eigenvalue of L; 0 where L = 0.

    It is that of R* L R for R of N_a / 20 internal modes of each cluster, and at least its kernel (interlacing). Of fewer positive ones the
    largest counts; where there is none, norm(L, inf).
    """
    local = _LocalProblems(sheaf, P, "internal", False)
    dims, eps = local.clusters.dims, eps_of(sheaf.dtype)
    least = -(-dims // PILOT_SHARE)
    # a few more, so that a cut need not split a multiplet, of which rounding would choose a part
    modes = local.modes(np.minimum(least + max(int(sheaf.vertex_dims.max(initial=0)) - 1, 1), dims), singular=False)
    zero = zero_level(dims, eps, modes.operator_norms)
    short = (modes.next_eigenvalues <= zero) & (modes.ranks < dims)
    if short.any():
        spectra = local.spectra(Rule())
        kernels = np.bincount(
            np.repeat(np.arange(len(dims)), dims)[spectra.scores <= np.repeat(zero, dims)], minlength=len(dims)
        )
        modes = local.modes(np.maximum(modes.ranks, kernels), singular=False)
    cluster = np.repeat(np.arange(len(dims)), modes.ranks)
    place = np.arange(len(cluster)) - modes.rank_offsets[cluster]
    following = np.append(modes.scores[1:], 0)
    following[place == modes.ranks[cluster] - 1] = modes.next_eigenvalues[modes.ranks > 0]
    apart = following - modes.scores > np.sqrt(eps) * modes.operator_norms[cluster]
    ends = np.flatnonzero(apart & (place >= least[cluster] - 1))
    cut = modes.ranks.copy()
    np.minimum.at(cut, cluster[ends], place[ends] + 1)
    L, R = laplacian(sheaf), modes.prolongation[:, np.flatnonzero(place < cut[cluster])]
    coarse = scipy.sparse.csr_array(R.conj().T @ (L @ R))
    top = float(abs(L).sum(axis=1).max(initial=0.0))
    m = coarse.shape[0]
    if top == 0 or m == 0:
        return top
    coarse = coarse / top
    level = zero_level(max(int(dims.max()), m), eps, 1.0)
    count = 2 * PILOT_NUMBER
    while m > PILOT_DENSE and 3 * count <= m:
        try:
            values = lowest_sparse(coarse, count, eps)[0]
        except np.linalg.LinAlgError:
            break
        values = values[values > level]
        if len(values) >= PILOT_NUMBER:
            return float(values[PILOT_NUMBER - 1]) * top
        count *= 4
    with single_threaded_blas():
        values = np.linalg.eigvalsh(coarse.toarray())
    values = values[values > level]
    return float(values[:PILOT_NUMBER][-1]) * top if len(values) else top
