"""The class ``Partition``: a label for each vertex, with non-empty clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import ReadOnly, checks, ragged, tables


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Partition(ReadOnly):
    """A partition of the vertices into non-empty clusters (``eq:vertex_partition``).

    Parameters
    ----------
    labels : array_like of int, shape (n,)
        The cluster of each vertex, 0 .. K-1; every cluster holds at least one vertex.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> P = sc.Partition([0, 1, 0, 1, 1])
    >>> P
    Partition(n_vertices=5, n_clusters=2, sizes 2 .. 3)
    >>> P.cluster(1)
    array([1, 3, 4])
    """

    labels: np.ndarray  # (n,) int64

    def __init__(self, labels: npt.ArrayLike) -> None:
        remedy = (
            "numpy.unique(labels, return_inverse=True)[1] converts names to integers, "
            "Partition.from_clusters takes the vertices of each cluster"
        )
        labels = checks.integer_array("labels", labels, names=remedy)
        if (v := checks.first_true(labels < 0)) is not None:
            raise ValueError(f"`labels` must not be negative, got {labels[v]} for vertex {v}")
        highest = int(labels.max(initial=-1))
        if highest >= len(labels):
            v = int(labels.argmax())
            raise ValueError(
                f"`labels` must be 0 .. K-1 without gaps: vertex {v} has label {highest}, "
                f"but there are only {len(labels)} vertices"
            )
        if (empty := checks.first_true(np.bincount(labels) == 0)) is not None:
            raise ValueError(
                f"`labels` must be 0 .. K-1 without gaps: no vertex has label {empty}, but the "
                f"highest is {highest}; numpy.unique(labels, return_inverse=True)[1] renumbers "
                "them"
            )
        object.__setattr__(self, "labels", ragged.read_only(labels))

    @classmethod
    def from_clusters(cls, clusters: Sequence[Sequence[int] | np.ndarray]) -> Partition:
        """Construct a partition from a list of vertices for each cluster.

        Vertices are indices in the order of ``graph.nodes``. For clusters of networkx node names,
        such as communities, convert the names first, for instance by ``F.vertices_of(names)``.

        Parameters
        ----------
        clusters : sequence of sequences of int
            Must contain every vertex once.

        Returns
        -------
        Partition

        Raises
        ------
        ValueError, TypeError
            A missing or repeated vertex, an empty cluster, or names instead of indices.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.Partition.from_clusters([[0, 2], [1]]).labels
        array([0, 1, 0])
        """
        if isinstance(clusters, dict):  # its keys would be taken for clusters
            raise TypeError("`clusters` must be a sequence of clusters, got dict: pass its values")
        members = [np.zeros(0, np.int64)]
        for a, c in enumerate(checks.items("clusters", clusters, "clusters")):
            name = f"clusters[{a}]"
            listed = checks.items(name, c, "vertices")
            members.append(
                checks.integer_array(name, listed, names="F.vertices_of(names) converts them")
            )
            if not listed:
                raise ValueError(f"`{name}` is empty; every cluster needs a vertex")
        vertices = np.concatenate(members)
        which = np.repeat(np.arange(len(members) - 1), [len(c) for c in members[1:]])
        n = len(vertices)
        if (i := checks.first_true((vertices < 0) | (vertices >= n))) is not None:
            raise ValueError(
                f"`clusters[{which[i]}]` holds vertex {vertices[i]}, but the clusters hold {n} "
                f"vertices in all, which must be 0 .. {n - 1}, each once"
            )
        if (v := checks.first_true(np.bincount(vertices, minlength=n) > 1)) is not None:
            places = which[vertices == v]
            raise ValueError(
                f"`clusters` hold vertex {v} more than once: in clusters {places.tolist()}"
            )
        labels = np.empty(n, dtype=np.int64)
        labels[vertices] = which
        return cls(labels)

    @classmethod
    def from_assignment(cls, S: scipy.sparse.sparray | npt.ArrayLike) -> Partition:
        """Construct a partition from an N x K assignment matrix with a single 1 in each row.

        Parameters
        ----------
        S : array_like or scipy sparse, shape (N, K)

        Returns
        -------
        Partition

        Raises
        ------
        ValueError, TypeError
            Anything but one 1 in each row, and at least one in each column.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.Partition.from_assignment([[1, 0], [0, 1], [1, 0]]).labels
        array([0, 1, 0])
        """
        try:
            matrix: Any = S if scipy.sparse.issparse(S) else np.asarray(S)
        except ValueError as error:  # numpy raises it for ragged nested lists
            raise ValueError(f"`S` must be N x K: {error}") from None
        if matrix.dtype.kind not in "fiub":
            raise TypeError(f"`S` must hold zeros and ones, got dtype {matrix.dtype}")
        if matrix.ndim != 2:
            raise ValueError(f"`S` must be N x K, got shape {matrix.shape}")
        checks.vertex_count("S", max(matrix.shape))
        if scipy.sparse.issparse(matrix):
            matrix = checks.csr_matrix("S", matrix)
        matrix = scipy.sparse.coo_array(matrix.astype(np.float64)).tocsr()  # sums duplicates
        matrix.eliminate_zeros()
        rows, labels = matrix.nonzero()
        if (i := checks.first_true(matrix.data != 1)) is not None:
            raise ValueError(
                "`S` must be a hard assignment of zeros and ones, "
                f"got {matrix.data[i]} at ({rows[i]}, {labels[i]})"
            )
        ones = np.diff(matrix.indptr)
        if (bad := checks.first_true(ones != 1)) is not None:
            raise ValueError(f"`S` must have a single 1 in each row, got {ones[bad]} in row {bad}")
        held = np.bincount(labels, minlength=matrix.shape[1])
        if (bad := checks.first_true(held == 0)) is not None:
            raise ValueError(f"`S` must have a 1 in each column, got none in column {bad}")
        return cls(labels)

    @property
    def n_vertices(self) -> int:
        """Number of vertices n."""
        return len(self.labels)

    @cached_property
    def n_clusters(self) -> int:
        """Number of clusters K."""
        return int(self.labels.max(initial=-1)) + 1

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of vertices in each cluster, shape (K,)."""
        return ragged.read_only(
            np.bincount(self.labels, minlength=self.n_clusters).astype(np.int64)
        )

    @cached_property
    def cluster_offsets(self) -> np.ndarray:
        """Offset of each cluster in ``members``, shape (K + 1,)."""
        return ragged.read_only(ragged.offsets(self.sizes))

    @cached_property
    def members(self) -> np.ndarray:
        """Vertices sorted by cluster, and ascending within each cluster, shape (n,)."""
        return ragged.read_only(np.argsort(self.labels, kind="stable").astype(np.int64))

    def cluster(self, a: int) -> np.ndarray:
        """Return the vertices of cluster ``a``, ascending.

        Parameters
        ----------
        a : int
            Index of the cluster; negative indices count from the end.

        Returns
        -------
        ndarray of int

        Raises
        ------
        IndexError, TypeError
            For anything but the index of a cluster.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.Partition([0, 1, 0]).cluster(0)
        array([0, 2])
        """
        a = checks.item_index("a", a, "cluster", self.n_clusters)
        return self.members[self.cluster_offsets[a] : self.cluster_offsets[a + 1]]

    def assignment_matrix(self) -> scipy.sparse.csr_array:
        """Return the n x K matrix S with S[v, a] = 1 if vertex v is in cluster a, else 0.

        Returns
        -------
        csr_array, shape (n, K)

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> sc.Partition([0, 1, 0]).assignment_matrix().toarray()
        array([[1., 0.],
               [0., 1.],
               [1., 0.]])
        """
        n, K = self.n_vertices, self.n_clusters
        return scipy.sparse.csr_array((np.ones(n), (np.arange(n), self.labels)), shape=(n, K))

    def __repr__(self) -> str:
        spread = f", sizes {self.sizes.min()} .. {self.sizes.max()}" if self.n_clusters else ""
        return f"Partition(n_vertices={self.n_vertices}, n_clusters={self.n_clusters}{spread})"

    def _repr_html_(self) -> str:
        rows: list[tuple] = [("vertices", self.n_vertices), ("clusters", self.n_clusters)]
        if self.n_clusters:
            median = f"{np.median(self.sizes):g} in the median"
            rows.append(("sizes", f"{tables.span(self.sizes)} vertices, {median}"))
        return tables.table(rows, caption="Partition")
