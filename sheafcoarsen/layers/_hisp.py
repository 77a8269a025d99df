"""The pooling layer of the paper's section 5.1: Select, Reduce, Connect and Lift."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import CochainLike, ReadOnly, checks, ragged, tables
from sheafcoarsen.coarsening import Coarsening, check_topology, coarsen, refresh_coarsening
from sheafcoarsen.modes import LocalOperatorLike, compute_modes, local_operator_of, warn_if_tied
from sheafcoarsen.partition import METHODS, Method, Partition, check_partition, select
from sheafcoarsen.sheaf import CellularSheaf, Topology, check_sheaf, graph_arrays, same_topology

SelfLoops: TypeAlias = Literal["remove", "keep"]
"""Treatment of the diagonal of a pooled adjacency matrix."""

# the usual advice is to change a rule, which layers do not have
_TIED = {
    "name": "`out.coarsening.modes.tied`",
    "advice": "try another `n_modes`, or more clusters if these hold many components of the graph",
}


@dataclass(frozen=True, eq=False, repr=False)
class Pooling(ReadOnly):
    """Features pooled by :class:`HiSP`, and the adjoint operation :meth:`lift`.

    Another layer takes ``coarsening.sheaf``, ``x_lifted`` and ``adjacency`` as inputs.

    Attributes
    ----------
    coarsening : Coarsening
        The prolongation R and the coarse sheaf, which the paper's layer does not construct.
    x_lifted : ndarray, shape (sum r_a, h)
        The cochain R* X of the coarse sheaf, where r_a = min(n_modes, N_a).
    x : ndarray, shape (K, M h)
        The values of ``x_lifted`` as one row per cluster, where M = ``n_modes``. Channel c of mode
        i is at position i h + c and zero if i >= r_a.
    adjacency : csr_array, shape (K, K)
        A_c = S^T A S, exactly symmetric, without its diagonal unless ``self_loops`` is "keep".
    n_modes : int
        Number of modes M per cluster.
    node_major : bool
        Whether X had shape (N, d h), in which case :meth:`lift` returns this shape; otherwise X
        was lifted.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> import numpy as np
    >>> F = sc.CellularSheaf.constant(nx.path_graph(6), dim=2)
    >>> out = sc.HiSP(n_modes=2, n_clusters=3)(F, np.ones((6, 4)))
    >>> out.x.shape, out.x_lifted.shape, out.lift(out.x).shape
    ((3, 4), (6, 2), (6, 4))
    """

    coarsening: Coarsening
    x_lifted: np.ndarray
    adjacency: scipy.sparse.csr_array
    n_modes: int
    node_major: bool

    @property
    def partition(self) -> Partition:
        """The clusters, computed by Select or passed by the user."""
        return self.coarsening.partition

    @cached_property
    def x(self) -> np.ndarray:
        """Pooled features, with U_a* X_a zero-padded to M modes in row a, shape (K, M h)."""
        ranks, h = self.coarsening.ranks, self.x_lifted.shape[1]
        shape = (len(ranks), self.n_modes * h)
        if (ranks == self.n_modes).all():
            return self.x_lifted.reshape(shape)
        x = np.zeros((len(ranks) * self.n_modes, h), self.x_lifted.dtype)
        x[self._kept_rows] = self.x_lifted
        return ragged.read_only(x.reshape(shape))

    @property
    def _kept_rows(self) -> np.ndarray:
        """Indices of the rows of x, reshaped to (K M, h), that are not padding."""
        ranks = self.coarsening.ranks
        return ragged.ranges(self.n_modes * np.arange(len(ranks)), ranks)

    def lift(self, x: CochainLike) -> np.ndarray:
        """Return the fine features R x, in the same layout as X.

        Parameters
        ----------
        x : array_like, shape (K, M g) or (sum r_a, g)
            Coarse features in the layout of ``x`` or ``x_lifted``, with any number g of channels.
            Padding is ignored, so that Lift is the adjoint of Reduce. If K = sum r_a and M > 1, h
            columns mean the layout of ``x_lifted`` and M h that of ``x``; others are an error.

        Returns
        -------
        ndarray, shape (N, d g) or, if X was lifted, (dim_c0, g)

        Raises
        ------
        ValueError, TypeError
            If ``x`` has another shape.

        Examples
        --------
        >>> import numpy as np
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 3]])
        >>> out = sc.HiSP(1, 2, local_operator="internal")(F, [[1.0], [3.0], [5.0], [5.0]])
        >>> out.lift(out.x).round(12)
        array([[2.],
               [2.],
               [5.],
               [5.]])
        """
        x = feature_array("x", x)
        C, M = self.coarsening, self.n_modes
        K, dim, width = len(C.ranks), C.sheaf.dim_c0, x.shape[1]
        h = self.x_lifted.shape[1]
        if dim == K and M > 1 and len(x) == K and width not in (h, M * h):
            raise ValueError(
                f"the layout of `x` is ambiguous: its shape {x.shape} can be (K, M g) or "
                f"(sum r_a, g), because both have {K} rows; use `coarsening.lift(z)` for lifted z"
            )
        if len(x) == dim and not (dim == K and width == M * h):
            z = x
        elif len(x) == K and width % M == 0:
            z = x.reshape(K * M, width // M)[self._kept_rows]
        else:
            raise ValueError(
                f"`x` must have shape (K, M g) = ({K}, {M} g) or, lifted, (sum r_a, g) = ({dim}, "
                f"g), got {x.shape}"
            )
        result = C.prolongation @ checks.cochain(C.sheaf, z, "x", " of the coarse sheaf")
        if self.node_major:
            n = C.fine.n_vertices
            result = result.reshape(n, C.fine.dim_c0 // n * result.shape[1])
        return result

    def refresh(self, sheaf: CellularSheaf, X: CochainLike) -> Pooling:
        """Pool again with new maps on the same graph, for example between two training steps.

        Clusters, the adjacency matrix (with the old loops) and all index arrays are reused. Index
        arrays are recomputed if loops differ, as those of a coarse sheaf may, which has no loops at
        clusters without internal energy.

        Parameters
        ----------
        sheaf : CellularSheaf
            A sheaf on the graph of the fine sheaf, with stalks of the same dimensions; its loops
            may differ.
        X : array_like
            Features, as in the call of :class:`HiSP`.

        Returns
        -------
        Pooling

        Warns
        -----
        TiedModesWarning
            As in the call of :class:`HiSP`.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.random([[i, i + 1] for i in range(11)], 2, 2, seed=0)
        >>> X = [[1.0] * 4] * 12
        >>> out = sc.HiSP(n_modes=2, n_clusters=3)(F, X)
        >>> again = out.refresh(F.with_maps(2 * F.tail_data, 2 * F.head_data), X)
        >>> again.partition is out.partition, again.adjacency is out.adjacency
        (True, True)
        """
        C = self.coarsening
        new_loops = not same_topology(C.fine, check_sheaf(sheaf))
        if new_loops:
            rest = []  # what must be equal
            for F in (C.fine, sheaf):
                proper = F.edges[:, 0] != F.edges[:, 1]
                rest.append(Topology(F.edges[proper], F.vertex_dims, F.edge_dims[proper]))
            if not same_topology(*rest):
                check_topology(C.fine, sheaf, "HiSP")  # raises an error
        lifted, node_major = _lifted(sheaf, X)
        C = refresh_coarsening(C, sheaf, new_loops=new_loops)
        if C.modes is not None:
            warn_if_tied(C.modes.tied, C.modes._discards_zero, **_TIED)
        x = ragged.read_only(C.pool(lifted))
        return Pooling(C, x, self.adjacency, self.n_modes, node_major)

    def __repr__(self) -> str:
        C, (dim, h) = self.coarsening, self.x_lifted.shape
        return (
            f"Pooling({C.fine.n_vertices} -> {len(C.ranks)} vertices, {self.n_modes} modes, "
            f"{h} channels, dim C^0 {C.fine.dim_c0} -> {dim})"
        )

    def _repr_html_(self) -> str:
        C, (dim, h) = self.coarsening, self.x_lifted.shape
        rows = [
            ("vertices", C.fine.n_vertices, len(C.ranks)),
            ("dim C^0", C.fine.dim_c0, dim),
            ("channels", h, h),
            ("modes per cluster", "", f"{self.n_modes}, kept {tables.span(C.ranks)}"),
            ("entries of the adjacency", "", self.adjacency.nnz),
        ]
        return tables.table(rows, head=("", "fine", "pooled"), caption="Pooling")


@dataclass(frozen=True)
class HiSP:
    """The hierarchical sheaf pooling layer of the paper's section 5.1, called to pool features.

    *Select* partitions the vertices. *Reduce* computes U_a* X_a, the coefficients of each cluster's
    features in its M lowest modes. *Connect* computes the coarse adjacency matrix S^T A S, whose
    diagonal counts an internal edge twice and an input self-loop once. *Lift* applies R =
    blockdiag(U_a).

    On the trivial scalar sheaf, with ``local_operator="internal"``, Reduce is the pooling of
    EigenPool (``eq:local_spectral_reduction``). Pooling commutes with disjoint unions of sheaves
    and partitions, up to the basis of multiple eigenvalues, and except with "oversampled" modes,
    whose target depends on all clusters.

    Parameters
    ----------
    n_modes : int
        Number of modes M per cluster. A cluster of dimension N_a < M retains N_a modes, and its
        pooled features are padded with zeros.
    n_clusters : int
        Number of clusters K; ignored if a partition is passed.
    method : {"auto", "balls", "matching", "spectral", "metis"}
        See :func:`select`. "spectral" is the paper's choice; it is slow on large graphs and allows
        at most a few hundred clusters. It clusters the graph; for the modes of the sheaf pass
        ``partition=select(sheaf, K, method="spectral")``.
    local_operator : {"internal", "principal", "oversampled"}
        See :func:`local_modes`. "principal" is the operator of the paper's layer; "internal" is
        that of its theory and preserves global sections.
    self_loops : {"remove", "keep"}
        Treatment of the diagonal of S^T A S.
    seed : int
        Random seed of Select.

    Examples
    --------
    Two layers and a readout; the coarse sheaf of the first layer is the input of the second:

    >>> import networkx as nx
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.random(nx.grid_2d_graph(6, 6), 2, 2, seed=0)
    >>> # 5 channels on each of 2 stalk coordinates
    >>> X = np.random.default_rng(0).standard_normal((36, 2 * 5))
    >>> first = sc.HiSP(n_modes=3, n_clusters=9)(F, X)
    >>> coarse = first.coarsening.sheaf
    >>> second = sc.HiSP(n_modes=3, n_clusters=2)(coarse, first.x_lifted, first.adjacency)
    >>> first.x.shape, second.x.shape, sc.readout(second.x, "mean").shape
    ((9, 15), (2, 15), (15,))
    >>> first.lift(second.lift(second.x)).shape
    (36, 10)
    """

    n_modes: int
    n_clusters: int
    method: Method = "auto"
    local_operator: LocalOperatorLike = "principal"
    self_loops: SelfLoops = "remove"
    seed: int = 0

    def __post_init__(self) -> None:
        checks.choice("method", self.method, METHODS)
        local_operator_of(self.local_operator)
        checks.choice("self_loops", self.self_loops, get_args(SelfLoops))
        for name, least in (("n_modes", 1), ("n_clusters", 1), ("seed", 0)):
            vars(self)[name] = checks.whole_number(name, getattr(self, name), at_least=least)

    def _repr_html_(self) -> str:
        rows = [(item.name, str(getattr(self, item.name))) for item in fields(self)]
        return tables.table(rows, caption="HiSP")

    def __call__(
        self,
        sheaf: CellularSheaf,
        X: CochainLike,
        adjacency: scipy.sparse.sparray | npt.ArrayLike | None = None,
        partition: Partition | None = None,
    ) -> Pooling:
        """Pool a sheaf and its features.

        Parameters
        ----------
        sheaf : CellularSheaf
        X : array_like, shape (N, d h) or (dim_c0, h)
            Features. If all stalks have the same dimension d, X may have one row per vertex, with
            channel c of stalk coordinate i at position i h + c.
        adjacency : scipy sparse or array_like, shape (N, N), optional
            Symmetric weights for Connect and Select. By default every edge of the sheaf's graph has
            weight 1; parallel edges are summed, and a loop counts once on the diagonal.
        partition : Partition, optional
            Clusters that replace those of Select.

        Returns
        -------
        Pooling

        Raises
        ------
        ValueError
            If the features, the adjacency matrix or the partition do not match the size of the
            sheaf, or :func:`select` raises an error.

        Warns
        -----
        TiedModesWarning
            If the cut after M modes splits a multiple eigenvalue.
        SmallComponentsWarning
            As in :func:`select`.
        """
        check_sheaf(sheaf)
        lifted, node_major = _lifted(sheaf, X)
        matrix, edges, weights = None, sheaf.edges, np.ones(sheaf.n_edges)
        if adjacency is not None:
            matrix = _adjacency_matrix(sheaf, adjacency)
            try:
                arrays = graph_arrays(matrix)  # the upper triangle, checked to be symmetric
            except ValueError as error:  # name this argument in errors about entries
                raise ValueError(str(error).replace("`graph`", "`adjacency`")) from None
            edges = arrays.edges
            weights = checks.scalar_array("adjacency", arrays.attribute("weight"))
        if partition is None:
            if (e := checks.first_true(weights < 0)) is not None:
                raise ValueError(
                    f"`adjacency` must be nonnegative for Select, got {weights[e]} at "
                    f"{tuple(edges[e].tolist())}: pass `partition` to allow negative weights"
                )
            graph = matrix
            if matrix is None:  # not the sheaf itself, whose modes "spectral" would take
                graph = CellularSheaf.constant(sheaf.edges, n_vertices=sheaf.n_vertices)
            partition = select(graph, self.n_clusters, self.method, seed=self.seed)
        else:
            check_partition(sheaf, partition, "partition")
        entries = float(self.n_modes) * partition.n_clusters * lifted.shape[1]
        if entries * lifted.itemsize > checks.physical_memory():
            raise ValueError(
                f"`n_modes` = {self.n_modes} pads the pooled features to {entries:.3g} entries, "
                "which do not fit in memory: use a smaller `n_modes`"
            )
        operator = local_operator_of(self.local_operator)
        modes = compute_modes(sheaf, partition, self.n_modes, operator)
        warn_if_tied(modes.tied, modes._discards_zero, **_TIED)
        C = coarsen(sheaf, partition, modes)
        A_c = _connect(edges, weights, partition, keep_loops=self.self_loops == "keep")
        return Pooling(C, ragged.read_only(C.pool(lifted)), A_c, self.n_modes, node_major)


def _lifted(sheaf: CellularSheaf, X: Any) -> tuple[np.ndarray, bool]:
    """Return X as (dim_c0, h), and whether its shape was (N, d h)."""
    X = feature_array("X", X)
    n, dims, dim = sheaf.n_vertices, sheaf.vertex_dims, sheaf.dim_c0
    if len(X) == dim:
        return checks.cochain(sheaf, X, "X"), False
    if (v := checks.first_true(dims != dims[:1])) is not None:
        raise ValueError(
            f"`X` must have the lifted shape (dim_c0, h) with dim_c0 = {dim}, because vertex {v} "
            f"has dimension {dims[v]} and vertex 0 has {dims[0]}, got shape {X.shape}: stack the "
            "(d_v, h) blocks of all vertices by numpy.concatenate(blocks)"
        )
    d, h = dim // max(n, 1), X.size // max(dim, 1)
    if len(X) != n or X.size != dim * h:
        raise ValueError(
            f"`X` must have shape (N, d h) = ({n}, {d} h) or, lifted, (dim_c0, h) = ({dim}, h), "
            f"got {X.shape}"
        )
    return checks.cochain(sheaf, X.reshape(dim, h), "X"), True


def _adjacency_matrix(sheaf: CellularSheaf, adjacency: Any) -> Any:
    """Check the shape and type of an adjacency matrix, and return it as a sparse matrix."""
    if isinstance(adjacency, nx.Graph):
        raise TypeError(
            "`adjacency` must be a matrix, got a networkx graph: pass "
            "nx.to_scipy_sparse_array(graph)"
        )
    is_sparse, n = scipy.sparse.issparse(adjacency), sheaf.n_vertices
    if not is_sparse and not isinstance(adjacency, np.ndarray):
        adjacency = checks.scalar_array("adjacency", adjacency)
    if adjacency.shape != (n, n):
        raise ValueError(f"`adjacency` must have shape (N, N) = ({n}, {n}), got {adjacency.shape}")
    if adjacency.dtype.kind not in "biu" and adjacency.dtype.type not in (np.float32, np.float64):
        raise TypeError(
            "`adjacency` must hold real numbers of single or double precision, got "
            f"{adjacency.dtype}"
        )
    if is_sparse:
        return adjacency
    native = adjacency.dtype.newbyteorder("=")  # the only byte order that scipy takes
    return scipy.sparse.csr_array(adjacency.astype(native, copy=False))


def _connect(
    edges: np.ndarray, weights: np.ndarray, partition: Partition, *, keep_loops: bool
) -> scipy.sparse.csr_array:
    """Return A_c = S^T A S from the upper triangle of A, exactly symmetric and read-only."""
    K = partition.n_clusters
    ends = np.sort(partition.labels[edges], axis=1)
    internal, proper = ends[:, 0] == ends[:, 1], edges[:, 0] != edges[:, 1]
    with np.errstate(over="ignore"):  # overflow raises an error below
        weights = np.where(internal & proper, 2 * weights, weights)
        if not keep_loops:
            ends, weights = ends[~internal], weights[~internal]
        doubles = weights.astype(np.float64)  # sums in single precision would lose digits
        # the conversion to csr sums duplicates
        upper = scipy.sparse.csr_array((doubles, (ends[:, 0], ends[:, 1])), shape=(K, K))
        A_c = scipy.sparse.csr_array(upper + scipy.sparse.triu(upper, 1).T).astype(weights.dtype)
    A_c.sum_duplicates()  # has none, but is then marked as canonical
    if not np.isfinite(A_c.data).all():
        raise ValueError(f"sums of `adjacency` exceed the range of {A_c.dtype}: rescale it")
    for array in (A_c.data, A_c.indices, A_c.indptr):
        ragged.read_only(array)
    return A_c


def feature_array(name: str, value: Any) -> np.ndarray:
    """Check features and return them as a C-ordered 2-D array, so that reshaping is a view."""
    array = checks.scalar_array(name, value)
    if array.ndim != 2:
        advice = f"{name}[:, None] for a single channel"
        if array.ndim == 3:
            advice = f"{name}.reshape(-1, {array.shape[2]}) for signals of shape (n, d, f)"
        raise ValueError(f"`{name}` must be 2-dimensional, got shape {array.shape}: pass {advice}")
    return checks.finite(f"`{name}`", np.ascontiguousarray(array))
