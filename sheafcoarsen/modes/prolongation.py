"""The prolongation R = blockdiag(R_a) as K dense blocks (``eq:global_block_prolongation``).

Row i of R belongs to a stalk coordinate of a vertex v and has exactly r_a entries, where a is the
cluster of v. The csr data therefore hold the blocks row by row, and the rows of vertex v are
consecutive: kernels read the d_v x r_a block of v at ``data[indptr[vertex_offsets[v]]]``, and the
sparse matrix that users get shares this memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.arrays import scan
from sheafcoarsen._support import checks, ragged
from sheafcoarsen.operators import canonical_csr
from sheafcoarsen.partition import Clusters, Partition
from sheafcoarsen.sheaf import CellularSheaf


@dataclass(frozen=True, eq=False)
class Prolongation:
    """The map R from coarse stalks of dimensions r_a to C^0 of a sheaf (``eq:coarse_stalk``).

    Its arrays are read-only; :meth:`from_blocks` and :meth:`from_matrix` validate user input.
    """

    sheaf: CellularSheaf
    clusters: Clusters
    ranks: np.ndarray  # (K,) r_a
    indptr: np.ndarray  # (dim_c0 + 1,)
    indices: np.ndarray  # (sum N_a r_a,)
    data: np.ndarray  # (sum N_a r_a,)

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"Prolongation({rows} x {columns}; as a sparse matrix: `prolongation` of its owner)"

    def __post_init__(self) -> None:
        for array in (self.ranks, self.indptr, self.indices, self.data):
            ragged.read_only(array)

    @property
    def dtype(self) -> np.dtype:
        """The scalar type of R."""
        return self.data.dtype

    @cached_property
    def offsets(self) -> np.ndarray:
        """Index of the first column of each cluster, shape (K + 1,)."""
        return ragged.read_only(ragged.offsets(self.ranks))

    @cached_property
    def blocks(self) -> kernels.Blocks:
        """The arrays that compiled kernels read."""
        return kernels.Blocks(self.indptr, self.data, self.ranks)

    @cached_property
    def matrix(self) -> scipy.sparse.csr_array:
        """R as a sparse matrix that shares the memory, shape (dim_c0, sum r_a)."""
        shape = (len(self.indptr) - 1, int(self.offsets[-1]))
        return canonical_csr(self.data, self.indices, self.indptr, shape)

    def is_held_by(self, matrix: scipy.sparse.csr_array) -> bool:
        """Return whether ``matrix`` is this object's own, with its original, read-only arrays."""
        held, own = (
            [array.__array_interface__["data"] for array in (R.indptr, R.indices, R.data)]
            for R in (matrix, self)
        )  # addresses, and whether the arrays are read-only
        return matrix is self.matrix and held == own

    @classmethod
    def from_matrix(
        cls, sheaf: CellularSheaf, clusters: Clusters, ranks: np.ndarray, R: Any, what: str
    ) -> "Prolongation":
        """Return R from a matrix that a user may have altered; raise if a block lacks entries."""
        if not isinstance(R, scipy.sparse.csr_array) or R.dtype not in checks.SCALARS:
            raise TypeError(
                f"{what}: R must be a csr_array of one of the four scalar types, "
                f"got {type(R).__name__}"
            )
        if (
            R.shape != (sheaf.dim_c0, int(ranks.sum()))
            or not len(R.data) == len(R.indices) == int(clusters.dims @ ranks)
            or not all(
                map(np.array_equal, (R.indptr, R.indices), block_layout(sheaf, clusters, ranks))
            )
        ):
            raise ValueError(
                f"{what}: R must hold a full block for every cluster, as returned by local_modes"
            )
        bad = scan(R.data)[0]
        if bad >= 0:
            raise ValueError(f"{what}: `prolongation` must be finite, got {R.data[bad]}")
        given = (R.indptr, R.indices, R.data)
        arrays = [frozen(array) for array in given]
        result = cls(sheaf, clusters, ranks, *arrays)
        if all(one is other for one, other in zip(arrays, given, strict=True)):
            result.__dict__["matrix"] = R
        return result

    @classmethod
    def from_blocks(
        cls, sheaf: CellularSheaf, clusters: Clusters, basis: Sequence
    ) -> "Prolongation":
        """Return R in the sheaf's precision from a user's blocks R_a of shape (N_a, r_a)."""
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
                f"`basis` must hold one array per cluster, {clusters.n_clusters} in all, got "
                f"{count}"
            )
        blocks = [checks.scalar_array(f"basis[{a}]", item) for a, item in enumerate(basis)]
        complex_ones = any(item.dtype.kind == "c" for item in blocks)
        # cast a basis in another precision to the precision of the sheaf
        dtype = np.result_type(sheaf.dtype, np.complex64) if complex_ones else sheaf.dtype
        for a, item in enumerate(blocks):
            if item.ndim != 2 or item.shape[0] != clusters.dims[a]:
                raise ValueError(
                    f"`basis[{a}]` must have shape ({clusters.dims[a]}, r), where "
                    f"{clusters.dims[a]} is the dimension of its cluster, got {item.shape}"
                )
            with np.errstate(over="ignore"):
                blocks[a] = np.ascontiguousarray(item, dtype=dtype)
            bad, size = scan(blocks[a].reshape(-1))
            _check_size(sheaf, f"`basis[{a}]`", size, item.shape[0], dtype)
            if bad >= 0:
                raise ValueError(
                    f"`basis[{a}]` must be finite in {dtype}, got {item.reshape(-1)[bad]} "
                    f"in row {bad // item.shape[1]}"
                )
        ranks = np.array([block.shape[1] for block in blocks], dtype=np.int64)
        indptr, indices = block_layout(sheaf, clusters, ranks)
        flat, data = np.empty(len(indices), dtype), np.empty(len(indices), dtype)
        np.concatenate([block.reshape(-1) for block in blocks] or [flat], out=flat)
        out = kernels.Blocks(indptr, data, ragged.read_only(ranks))
        starts = ragged.offsets(clusters.dims * ranks)
        kernels.put_columns(sheaf.arrays, clusters, flat, starts, ranks, out)
        return cls(sheaf, clusters, ranks, indptr, indices, data)

    def block(self, a: int) -> np.ndarray:
        """Return a copy of R_a, shape (N_a, r_a), with rows by vertex, then by coordinate."""
        begin, end = self.clusters.member_ptr[a : a + 2]
        vertices = self.clusters.members[begin:end]
        starts = self.indptr[ragged.range_of_blocks(self.sheaf.vertex_offsets, vertices)]
        return self.data[starts[:, None] + np.arange(self.ranks[a])]

    def on(self, sheaf: CellularSheaf, clusters: Clusters) -> "Prolongation":
        """Return the same blocks on another sheaf with the same stalks, in its precision.

        Imaginary parts are dropped if all are zero, because complex maps of the old sheaf may be
        the only reason why R is complex.
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
            R.__dict__["matrix"] = self.matrix
        return R


def frozen(array: np.ndarray) -> np.ndarray:
    """Return the array if it is read-only, else a read-only copy."""
    return ragged.read_only(array.copy()) if array.flags.writeable else array


def block_layout(
    sheaf: CellularSheaf,
    clusters: Clusters | Partition,
    ranks: np.ndarray,
    indptr: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the read-only arrays (indptr, indices) of R; ``indptr`` may be known already."""
    if indptr is None:
        indptr = block_rows(sheaf, clusters, ranks)
    first = ragged.offsets(ranks).astype(indptr.dtype)[clusters.labels]
    first = np.repeat(first, sheaf.vertex_dims)
    return indptr, ragged.read_only(ragged.ranges(first, np.diff(indptr), indptr.dtype))


def block_rows(
    sheaf: CellularSheaf, clusters: Clusters | Partition, ranks: np.ndarray
) -> np.ndarray:
    """Return the read-only array ``indptr`` of R for the given ranks."""
    lengths = ranks[clusters.labels]
    largest = max(int(lengths @ sheaf.vertex_dims), int(ranks.sum()), sheaf.dim_c0)
    lengths = np.repeat(lengths.astype(ragged.index_dtype(largest)), sheaf.vertex_dims)
    return ragged.read_only(ragged.offsets(lengths).astype(lengths.dtype))


def _check_size(sheaf: CellularSheaf, name: str, size: float, height: int, dtype: Any) -> None:
    """Raise if squares of coarse maps might overflow, for blocks with entries up to ``size``.

    Coarse maps may exceed the limit that holds for maps passed by a user.
    """
    limit, entry = 100 * checks.range_limits(dtype)[1], sheaf.largest_entry
    if size * np.sqrt(max(height, 1)) * max(entry, 1.0) > limit:
        raise ValueError(
            f"{name} has entries up to {size:.3g}: with maps up to {entry:.3g} the coarse maps "
            f"would exceed {limit:.2g}, up to which squares in {dtype} are safe: rescale the basis"
        )
