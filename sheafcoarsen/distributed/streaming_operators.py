"""Operators of a store, lift and pool, part by part."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from sheafcoarsen._support import cochain, offsets, range_of_blocks
from sheafcoarsen.distributed._open_store import ENDS, SheafStore, check_entries, check_store
from sheafcoarsen.distributed.location import StoreError
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
        rows = edge_dims[numbers].astype(np.int64)
        sizes = rows @ vertex_dims[edges[numbers]]
        tail, head = (
            store.sized_maps_at(p, end, int(size)) for end, size in zip(ENDS, sizes, strict=True)
        )
        vertices, ends = np.unique(edges[numbers], return_inverse=True)
        dims = vertex_dims[vertices].astype(np.int64)
        sheaf = trusted_sheaf(ends.reshape(-1, 2), dims, rows, tail, head)
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


def clusters_in(sheaf: SheafStore) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the folder of each shard in the store of a coarsening, and the shard's clusters.

    Raises
    ------
    StoreError
        Unless shards have each cluster once.
    """
    seen = np.zeros(sheaf.n_vertices, np.int64)
    for name in sheaf.header.basis:
        clusters = sheaf.numbers(f"basis/{name}/clusters", sheaf.n_vertices)
        if (clusters[1:] <= clusters[:-1]).any():
            raise StoreError(f"{sheaf.url}: the array basis/{name}/clusters does not ascend")
        seen[clusters] += 1
        yield f"basis/{name}", clusters
    if (seen != 1).any():
        raise StoreError(f"{sheaf.url}: its shards hold cluster {np.argmax(seen != 1)} not once")


def labels_of(sheaf: SheafStore, n_fine: int) -> np.ndarray:
    """Return the cluster of each of ``n_fine`` vertices, from the store of a coarsening."""
    return sheaf.numbers("labels", sheaf.n_vertices, (n_fine,))


def blocks_of(sheaf: SheafStore, fine_dims: np.ndarray) -> Iterator[Blocks]:
    """Yield R shard by shard, from the store of a coarsening."""
    ranks, labels = sheaf.vertex_dims().astype(np.int64), labels_of(sheaf, len(fine_dims))
    row_starts, column_starts = offsets(fine_dims), offsets(ranks)
    count = 0
    for folder, clusters in clusters_in(sheaf):
        vertices = sheaf.numbers(f"{folder}/vertices", len(labels))
        ascend = (vertices[1:] > vertices[:-1]).all()
        if not ascend or not np.isin(labels[vertices], clusters).all():
            raise StoreError(
                f"{sheaf.url}: the array {folder}/vertices does not hold vertices of its clusters, "
                f"ascending"
            )
        count += len(vertices)
        here = ranks[clusters]
        local = np.searchsorted(clusters, labels[vertices])
        dims = fine_dims[vertices]
        widths = np.repeat(here[local], dims)
        data = sheaf.array(f"{folder}/data", sheaf.dtype, (int(widths.sum()),))
        check_entries(f"{sheaf.url}: the entries of R in {folder}", data)
        indptr, starts = offsets(widths), offsets(here)
        column = np.repeat(starts[:-1][local], dims)
        indices = np.arange(len(data)) + np.repeat(column - indptr[:-1], widths)
        R = canonical_csr(data, indices, indptr, (len(widths), int(starts[-1])))
        rows = range_of_blocks(row_starts, vertices)
        columns = range_of_blocks(column_starts, clusters)
        yield Blocks(R, rows, columns, clusters, here, local, dims)
    if count != len(labels):
        raise StoreError(f"{sheaf.url}: its shards hold {count} of {len(labels)} fine vertices")


def cluster_values(
    sheaf: SheafStore, name: str, dtype: npt.DTypeLike, counts: np.ndarray | None = None
) -> np.ndarray:
    """Return an array of all clusters from their shards, ``counts`` entries of each or one."""
    starts = offsets(np.ones(sheaf.n_vertices, np.int64) if counts is None else counts)
    out: np.ndarray = np.empty(int(starts[-1]), dtype)
    for folder, clusters in clusters_in(sheaf):
        entries = range_of_blocks(starts, clusters)
        out[entries] = sheaf.array(f"{folder}/{name}", dtype, (len(entries),))
    if np.isnan(out).any():
        raise StoreError(f"{sheaf.url}: the arrays basis/.../{name} hold NaN")
    return out


def lifted(sheaf: SheafStore, fine: SheafStore, z: npt.ArrayLike) -> np.ndarray:
    """Return R z, shard by shard."""
    z = cochain(sheaf, z, "z", " of the coarse sheaf")
    x = np.empty((fine.dim_c0, *z.shape[1:]), np.result_type(z, sheaf.dtype))
    for part in blocks_of(sheaf, fine.vertex_dims().astype(np.int64)):
        x[part.rows] = part.R @ z[part.columns]
    return x


def pooled(sheaf: SheafStore, fine: SheafStore, x: npt.ArrayLike) -> np.ndarray:
    """Return R* x, shard by shard."""
    x = cochain(fine, x, "x", " of the fine sheaf")
    z = np.empty((sheaf.dim_c0, *x.shape[1:]), np.result_type(x, sheaf.dtype))
    for part in blocks_of(sheaf, fine.vertex_dims().astype(np.int64)):
        z[part.columns] = part.R.conj().T @ x[part.rows]
    return z
