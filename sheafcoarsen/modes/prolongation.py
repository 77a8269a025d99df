"""The prolongation R = blockdiag(R_a) (``eq:global_block_prolongation``), K dense blocks.

Row i of R belongs to a stalk coordinate of a vertex v and has exactly r_a entries, with a the
cluster of v. So the csr data are the blocks row by row, with consecutive rows for vertex v: kernels
read a vertex's d_v x r_a block at ``data[indptr[vertex_offsets[v]]]``, and users get the same
memory as a sparse matrix.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.arrays import scan
from sheafcoarsen._support import SCALARS, offsets, range_limits, ranges, read_only, scalar_array
from sheafcoarsen.operators import canonical_csr, index_dtype
from sheafcoarsen.partition import Clusters, Partition
from sheafcoarsen.sheaf import CellularSheaf


@dataclass(frozen=True, eq=False)
class Prolongation:
    """R on C^0 of a sheaf, from the coarse stalks of dimensions r_a (``eq:coarse_stalk``).

    Its arrays are read-only; :meth:`from_blocks` and :meth:`from_matrix` check those of users.
    """

    sheaf: CellularSheaf
    clusters: Clusters
    ranks: np.ndarray  # (K,) r_a
    indptr: np.ndarray  # (dim_c0 + 1,)
    indices: np.ndarray  # (sum N_a r_a,)
    data: np.ndarray  # (sum N_a r_a,)

    def __post_init__(self) -> None:
        for array in (self.ranks, self.indptr, self.indices, self.data):
            read_only(array)

    @property
    def dtype(self) -> np.dtype:
        """The scalar type of R."""
        return self.data.dtype

    @cached_property
    def offsets(self) -> np.ndarray:
        """First column of each cluster, shape (K + 1,)."""
        return read_only(offsets(self.ranks))

    @cached_property
    def blocks(self) -> kernels.Blocks:
        """The arrays for kernels."""
        return kernels.Blocks(self.indptr, self.data, self.ranks)

    @cached_property
    def matrix(self) -> scipy.sparse.csr_array:
        """R as a sparse matrix on the same memory, shape (dim_c0, sum r_a)."""
        shape = (len(self.indptr) - 1, int(self.offsets[-1]))
        return self._given(canonical_csr(self.data, self.indices, self.indptr, shape))

    def _given(self, matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
        """Store the arrays of the matrix that users get, since scipy allows replacing them."""
        self.__dict__["_arrays"] = (matrix.indptr, matrix.indices, matrix.data)
        return matrix

    def is_held_by(self, matrix: scipy.sparse.csr_array) -> bool:
        """Return whether this is the matrix that users got, with its original arrays."""
        if matrix is not self.matrix:
            return False
        held = (matrix.indptr, matrix.indices, matrix.data)
        return all(
            one is other and not one.flags.writeable
            for one, other in zip(held, self.__dict__["_arrays"], strict=True)
        )

    @classmethod
    def from_matrix(
        cls, sheaf: CellularSheaf, clusters: Clusters, ranks: np.ndarray, R: Any, what: str
    ) -> "Prolongation":
        """Return R from a matrix that a user may have altered; raise unless all blocks are full."""
        if not isinstance(R, scipy.sparse.csr_array) or R.dtype.type not in SCALARS:
            raise TypeError(
                f"{what}: R must be a csr_array of one of the four scalar types, "
                f"got {type(R).__name__}"
            )
        layout = (clusters.labels, sheaf.vertex_dims, ranks, offsets(ranks), R.indptr, R.indices)
        shape = (sheaf.dim_c0, int(ranks.sum()))
        if (
            R.shape != shape
            or len(R.indptr) != shape[0] + 1
            or len(R.data) != len(R.indices)
            or not kernels.has_block_indices(*layout)
        ):
            raise ValueError(
                f"{what}: R must hold a full block for every cluster, as local_modes makes it"
            )
        bad = scan(R.data)[0]
        if bad >= 0:
            raise ValueError(f"{what}: `prolongation` must be finite, got {R.data[bad]}")
        given = (R.indptr, R.indices, R.data)
        arrays = [frozen(array) for array in given]
        result = cls(sheaf, clusters, ranks, *arrays)
        if all(one is other for one, other in zip(arrays, given, strict=True)):
            result.__dict__["matrix"] = result._given(R)
        return result

    @classmethod
    def from_blocks(
        cls, sheaf: CellularSheaf, clusters: Clusters, basis: Sequence
    ) -> "Prolongation":
        """Return R from a user's blocks R_a, of shape (N_a, r_a), in the sheaf's precision."""
        blocks = _checked_blocks(sheaf, clusters, basis)
        ranks = np.array([block.shape[1] for block in blocks], dtype=np.int64)
        dtype = blocks[0].dtype if blocks else sheaf.dtype
        indptr, indices = block_layout(sheaf, clusters, ranks)
        flat, data = np.empty(len(indices), dtype), np.empty(len(indices), dtype)
        np.concatenate([block.reshape(-1) for block in blocks] or [flat], out=flat)
        out = kernels.Blocks(indptr, data, read_only(ranks))
        starts = offsets(clusters.dims * ranks)
        kernels.put_columns(sheaf.arrays, clusters, flat, starts, ranks, out)
        return cls(sheaf, clusters, ranks, indptr, indices, data)

    def coordinates(self, a: int) -> np.ndarray:
        """Return the rows of cluster ``a``: vertices ascending, stalk coordinates inside."""
        begin, end = self.clusters.member_ptr[a : a + 2]
        vertices = self.clusters.members[begin:end]
        return ranges(self.sheaf.vertex_offsets[vertices], self.sheaf.vertex_dims[vertices])

    def block(self, a: int) -> np.ndarray:
        """Return a copy of R_a, shape (N_a, r_a)."""
        starts = self.indptr[self.coordinates(a)]
        return self.data[starts[:, None] + np.arange(self.ranks[a])]

    def on(self, sheaf: CellularSheaf, clusters: Clusters) -> "Prolongation":
        """Return the same blocks on another sheaf of the same stalks, in that sheaf's precision.

        Zero imaginary parts are dropped: they may be due to the old sheaf's maps.
        """
        dtype, data = sheaf.dtype, self.data
        if data.dtype.kind == "c" and dtype.kind != "c":
            if data.imag.any():
                dtype = np.result_type(dtype, np.complex64)
            else:
                data = data.real
        bad, size = scan(self.data)
        if bad >= 0:
            raise ValueError(f"the coarsening's prolongation must be finite, got {self.data[bad]}")
        height = int(clusters.dims.max(initial=0))
        _check_size(sheaf, "the coarsening's basis", size, height, dtype)
        data = np.ascontiguousarray(data, dtype=dtype)
        R = Prolongation(sheaf, clusters, self.ranks, self.indptr, self.indices, data)
        if data is self.data:
            R.__dict__["matrix"] = R._given(self.matrix)
        return R


def frozen(array: np.ndarray) -> np.ndarray:
    """Return the array if it is read-only, else a read-only copy."""
    return read_only(array.copy()) if array.flags.writeable else array


def block_layout(
    sheaf: CellularSheaf, clusters: Clusters | Partition, ranks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (indptr, indices) of R for the given ranks, read-only."""
    labels, dims = clusters.labels, sheaf.vertex_dims
    count = int((ranks[labels] * dims).sum())
    itype = index_dtype(max(count, int(ranks.sum()), sheaf.dim_c0))
    indptr, indices = np.empty(sheaf.dim_c0 + 1, itype), np.empty(count, itype)
    kernels.block_indices(labels, dims, ranks, offsets(ranks), indptr, indices)
    return read_only(indptr), read_only(indices)


def cluster_number(partition: Partition, a: int) -> int:
    """Return a valid cluster number; negative ones count from the end, as in sequences."""
    K = partition.n_clusters
    if isinstance(a, bool) or not isinstance(a, int | np.integer):
        raise TypeError(f"a cluster is named by an integer, got {a!r}")
    if not -K <= a < K:
        raise IndexError(f"cluster {a} is out of range for {K} clusters")
    return int(a) % K


def _checked_blocks(sheaf: CellularSheaf, clusters: Clusters, basis: Any) -> list[np.ndarray]:
    """Return a user's blocks, contiguous and in one scalar type."""
    if isinstance(basis, np.ndarray) and basis.dtype == object:
        basis = list(basis)
    try:
        count = len(basis)
    except TypeError:
        raise TypeError(
            f"`basis` must be a sequence of arrays, one per cluster, got {type(basis).__name__}"
        ) from None
    if count != clusters.n_clusters:
        raise ValueError(
            f"`basis` must hold one array per cluster, {clusters.n_clusters} in all, got {count}"
        )
    blocks = [scalar_array(f"basis[{a}]", item) for a, item in enumerate(basis)]
    complex_ones = any(item.dtype.kind == "c" for item in blocks)
    # the sheaf's own precision
    dtype = np.result_type(sheaf.dtype, np.complex64) if complex_ones else sheaf.dtype
    for a, item in enumerate(blocks):
        if item.ndim != 2 or item.shape[0] != clusters.dims[a]:
            raise ValueError(
                f"`basis[{a}]` must have shape ({clusters.dims[a]}, r), "
                f"the dimension of its cluster first, got {item.shape}"
            )
        with np.errstate(over="ignore"):
            blocks[a] = np.ascontiguousarray(item, dtype=dtype)
        bad, size = scan(blocks[a].reshape(-1))
        _check_size(sheaf, f"`basis[{a}]`", size, item.shape[0], dtype)
        if bad >= 0:
            raise ValueError(
                f"`basis[{a}]` must be finite as {dtype}, got {item.reshape(-1)[bad]} "
                f"in row {bad // item.shape[1]}"
            )
    return blocks


def _check_size(sheaf: CellularSheaf, name: str, size: float, height: int, dtype: Any) -> None:
    """Raise if squares of the coarse maps might overflow, by the height and entries of blocks.

    Coarse maps may exceed the limit for a caller's maps.
    """
    limit, entry = 100 * range_limits(dtype)[1], sheaf.largest_entry
    if size * np.sqrt(max(height, 1)) * max(entry, 1.0) > limit:
        raise ValueError(
            f"{name} has entries up to {size:.3g}: with maps up to {entry:.3g} the coarse maps "
            f"would exceed {limit:.2g}, where squares of {dtype} are safe: rescale the basis"
        )
