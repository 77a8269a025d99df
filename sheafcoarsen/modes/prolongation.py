"""The prolongation R = blockdiag(R_a) (``eq:global_block_prolongation``): K dense blocks, kept in the order of csr.

Row i of R belongs to a stalk coordinate of some vertex v and holds exactly r_a entries, a the
cluster of v. So the csr data is the blocks themselves, row by row, the rows of vertex v
consecutive: kernels read a vertex's d_v x r_a block at ``data[indptr[vertex_offsets[v]]]``, and the
user gets the same memory as a sparse matrix.
"""

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import modes as kernels
from sheafcoarsen._kernels.arrays import scan
from sheafcoarsen._support import SCALARS, offsets, range_limits, ranges, read_only, scalar_array
from sheafcoarsen.operators import canonical_csr, index_dtype
from sheafcoarsen.partition import Clusters, Partition
from sheafcoarsen.sheaf import CellularSheaf


def block_layout(
    sheaf: CellularSheaf, partition: Partition, ranks: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (indptr, indices) of R for the given ranks."""
    count = int((ranks[partition.labels] * sheaf.vertex_dims).sum())
    itype = index_dtype(max(count, int(ranks.sum()), sheaf.dim_c0))
    indptr, indices = np.empty(sheaf.dim_c0 + 1, itype), np.empty(count, itype)
    kernels.block_indices(
        partition.labels, sheaf.vertex_dims, ranks, offsets(ranks), indptr, indices
    )
    return indptr, indices


def as_matrix(indptr, indices, data, n_columns: int) -> scipy.sparse.csr_array:
    """Wrap the blocks as a read-only csr matrix."""
    for array in (indptr, indices, data):
        read_only(array)
    return canonical_csr(data, indices, indptr, (len(indptr) - 1, n_columns))


def coordinates(sheaf: CellularSheaf, partition: Partition, a: int) -> np.ndarray:
    """Return the rows of C^0 that belong to cluster ``a``: vertices ascending, stalk coordinates inside."""
    vertices = partition.cluster(a)
    return ranges(sheaf.vertex_offsets[vertices], sheaf.vertex_dims[vertices])


def cluster_number(partition: Partition, a: int) -> int:
    """Return a valid cluster number, counting from the end where negative as sequences do."""
    K = partition.n_clusters
    if isinstance(a, bool) or not isinstance(a, int | np.integer):
        raise TypeError(f"a cluster is named by an integer, got {a!r}")
    if not -K <= a < K:
        raise IndexError(f"cluster {a} is out of range for {K} clusters")
    return int(a) % K


def check_layout(
    R, sheaf: CellularSheaf, partition: Partition, ranks: np.ndarray, what: str
) -> None:
    """Refuse an R whose rows are not whole rows of blocks, which kernels rely on."""
    if not isinstance(R, scipy.sparse.csr_array) or R.dtype.type not in SCALARS:
        raise TypeError(
            f"{what}: R must be a csr_array of one of the four scalar types, got {type(R).__name__}"
        )
    if R.shape != (sheaf.dim_c0, int(ranks.sum())) or not kernels.has_block_indices(
        partition.labels, sheaf.vertex_dims, ranks, offsets(ranks), R.indptr, R.indices
    ):
        raise ValueError(
            f"{what}: R must hold a full block for every cluster, as local_modes makes it"
        )


def block(R, sheaf: CellularSheaf, partition: Partition, ranks: np.ndarray, a: int) -> np.ndarray:
    """Return R_a, shape (N_a, r_a)."""
    a = cluster_number(partition, a)
    first = int(ranks[:a].sum())
    rows = R[coordinates(sheaf, partition, a)]
    return rows[:, first : first + int(ranks[a])].toarray()


def from_blocks(
    sheaf: CellularSheaf, partition: Partition, clusters: Clusters, basis
) -> scipy.sparse.csr_array:
    """Build R from the user's own blocks R_0 .. R_{K-1}, each of shape (N_a, r_a), in the sheaf's precision."""
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
    dtype = (
        np.result_type(sheaf.dtype, np.complex64) if complex_ones else sheaf.dtype
    )  # the sheaf's own precision
    for a, item in enumerate(blocks):
        if item.ndim != 2 or item.shape[0] != clusters.dims[a]:
            raise ValueError(
                f"`basis[{a}]` must have shape ({clusters.dims[a]}, r), the dimension of its cluster first, got {item.shape}"
            )
        with np.errstate(over="ignore"):
            blocks[a] = np.ascontiguousarray(item, dtype=dtype)
        bad, size = scan(blocks[a].reshape(-1))
        _check_size(sheaf, f"`basis[{a}]`", size, item.shape[0], dtype)
        if bad >= 0:
            raise ValueError(
                f"`basis[{a}]` must be finite as {dtype}, got {item.reshape(-1)[bad]} in row {bad // item.shape[1]}"
            )
    ranks = np.array([item.shape[1] for item in blocks], dtype=np.int64)
    indptr, indices = block_layout(sheaf, partition, ranks)
    data = np.empty(len(indices), dtype)
    for a, item in enumerate(blocks):
        vertices = partition.cluster(a)
        kernels.place_block(
            vertices, sheaf.vertex_offsets, sheaf.vertex_dims, indptr, item.reshape(-1), data
        )
    return as_matrix(indptr, indices, data, int(ranks.sum()))


def _check_size(sheaf: CellularSheaf, name: str, size: float, height: int, dtype) -> None:
    """Refuse blocks of so many rows and such large entries that the squares of the coarse maps might overflow.

    Coarse maps may grow beyond the limit for a caller's own.
    """
    limit, entry = 100 * range_limits(dtype)[1], sheaf.largest_entry
    if size * np.sqrt(max(height, 1)) * max(entry, 1.0) > limit:
        raise ValueError(
            f"{name} has entries up to {size:.3g}: with maps up to {entry:.3g} the coarse maps would exceed {limit:.2g}, "
            f"where squares of {dtype} are safe: rescale the basis"
        )


def in_precision_of(sheaf: CellularSheaf, clusters: Clusters, R) -> scipy.sparse.csr_array:
    """Return the user's own R for another sheaf on the same graph, in that sheaf's precision as ``from_blocks`` casts it.

    Complex zeros beside real numbers do not count: they may come from the old sheaf's maps.
    """
    dtype, data = sheaf.dtype, R.data
    if R.dtype.kind == "c" and dtype.kind != "c":
        if data.imag.any():
            dtype = np.result_type(dtype, np.complex64)
        else:
            data = data.real
    bad, size = scan(R.data)
    if bad >= 0:
        raise ValueError(f"the coarsening's prolongation must be finite, got {R.data[bad]}")
    _check_size(sheaf, "the coarsening's basis", size, int(clusters.dims.max(initial=0)), dtype)
    if R.dtype == dtype:
        return R
    return as_matrix(R.indptr, R.indices, data.astype(dtype), R.shape[1])
