"""What is done with a store a piece at a time: operators, lifting, pooling."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from sheafcoarsen._support import cochain, offsets, range_of_blocks
from sheafcoarsen.distributed.store import SheafStore, check_store
from sheafcoarsen.operators import apply_coboundary, apply_laplacian, as_columns, canonical_csr
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


class Part(NamedTuple):
    """Some edges of a stored sheaf, on the vertices at their ends."""

    sheaf: CellularSheaf
    edges: np.ndarray  # their numbers in the whole
    vertices: np.ndarray  # those of its vertices
    rows: np.ndarray  # where its coordinates stand in a cochain


def parts_of(store: SheafStore) -> Iterator[Part]:
    """Yield a stored sheaf part by part."""
    edges, vertex_dims, edge_dims = store.topology()
    starts = offsets(vertex_dims)
    for p in range(len(store.parts)):
        numbers = store.edges_of(p)
        tail, head = store.maps(p)
        vertices, ends = np.unique(edges[numbers], return_inverse=True)
        sheaf = trusted_sheaf(
            ends.reshape(-1, 2),
            vertex_dims[vertices].astype(np.int64),
            edge_dims[numbers].astype(np.int64),
            tail,
            head,
        )
        yield Part(sheaf, numbers, vertices, range_of_blocks(starts, vertices))


def laplacian_operator(store: SheafStore) -> LinearOperator:
    """Return x -> delta* (delta x) of a stored sheaf, which reads its maps part by part.

    Rayleigh quotients of lifted modes, and any iteration of scipy, run on it; every application
    reads the store once, so give it many columns at a time.

    Parameters
    ----------
    store : SheafStore

    Returns
    -------
    LinearOperator, shape (dim_c0, dim_c0)

    Raises
    ------
    TypeError
        For anything but a SheafStore.
    StoreError
        A store that has been written again; when applied, for a chunk that is missing or damaged.

    Examples
    --------
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> import sheafcoarsen.distributed as dist
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2]])
    >>> A = dist.laplacian_operator(dist.to_store("memory://operator", F))
    >>> A @ np.array([1.0, 0.0, 0.0])
    array([ 1., -1.,  0.])
    """
    check_store(store, "store")

    def matmat(x: np.ndarray) -> np.ndarray:
        x = np.ascontiguousarray(x, dtype=np.result_type(x.dtype, store.dtype))
        flat = as_columns(x)
        out = np.zeros_like(flat)
        for part in parts_of(store):
            out[part.rows] += apply_laplacian(part.sheaf, flat[part.rows])
        return out.reshape(x.shape)

    return LinearOperator(
        shape=(store.dim_c0, store.dim_c0),
        dtype=store.dtype,
        matvec=matmat,
        rmatvec=matmat,
        matmat=matmat,
        rmatmat=matmat,
    )


def energy_of(store: SheafStore, x: np.ndarray) -> np.ndarray:
    """Return norm(delta x)^2 of every column."""
    total = np.zeros(x.shape[1])
    for part in parts_of(store):
        total += np.square(np.abs(apply_coboundary(part.sheaf, x[part.rows]))).sum(
            axis=0, dtype=np.float64
        )
    return total


class Blocks(NamedTuple):
    """The rows of R of one shard."""

    R: scipy.sparse.csr_array  # (coordinates, sum of its ranks)
    rows: np.ndarray  # where its rows stand in the whole
    columns: np.ndarray
    clusters: np.ndarray
    ranks: np.ndarray
    labels: np.ndarray  # of its vertices, among its clusters
    dims: np.ndarray  # of its vertices


def blocks_of(sheaf: SheafStore, fine_dims: np.ndarray) -> Iterator[Blocks]:
    """Yield R shard by shard, from the store of a coarsening."""
    ranks, labels = sheaf.array("vertex_dims").astype(np.int64), sheaf.array("labels")
    row_starts, column_starts = offsets(fine_dims), offsets(ranks)
    for name in sheaf.attributes["basis"]:
        vertices = sheaf.array(f"basis/{name}/vertices")
        clusters = sheaf.array(f"basis/{name}/clusters")
        data = sheaf.array(f"basis/{name}/data")
        here = ranks[clusters]
        local = np.searchsorted(clusters, labels[vertices])
        dims = fine_dims[vertices]
        widths = np.repeat(here[local], dims)
        indptr, starts = offsets(widths), offsets(here)
        column = np.repeat(starts[:-1][local], dims)
        indices = np.arange(len(data)) + np.repeat(column - indptr[:-1], widths)
        R = canonical_csr(data, indices, indptr, (len(widths), int(starts[-1])))
        rows = range_of_blocks(row_starts, vertices)
        columns = range_of_blocks(column_starts, clusters)
        yield Blocks(R, rows, columns, clusters, here, local, dims)


def lifted(sheaf: SheafStore, fine: SheafStore, z: npt.ArrayLike) -> np.ndarray:
    """Return R z, shard by shard."""
    z = cochain(sheaf, z, "z", " of the coarse sheaf")
    x = np.empty((fine.dim_c0, *z.shape[1:]), np.result_type(z, sheaf.dtype))
    for part in blocks_of(sheaf, fine.array("vertex_dims").astype(np.int64)):
        x[part.rows] = part.R @ z[part.columns]
    return x


def pooled(sheaf: SheafStore, fine: SheafStore, x: npt.ArrayLike) -> np.ndarray:
    """Return R* x, shard by shard."""
    x = cochain(fine, x, "x", " of the fine sheaf")
    z = np.empty((sheaf.dim_c0, *x.shape[1:]), np.result_type(x, sheaf.dtype))
    for part in blocks_of(sheaf, fine.array("vertex_dims").astype(np.int64)):
        z[part.columns] = part.R.conj().T @ x[part.rows]
    return z
