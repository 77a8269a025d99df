"""Operators of a stored sheaf, applied part by part."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator

from sheafcoarsen._support import offsets, range_of_blocks
from sheafcoarsen.distributed._open_store import ENDS, SheafStore, check_store
from sheafcoarsen.operators import apply_coboundary, apply_laplacian, as_columns
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


class Part(NamedTuple):
    """Some edges of a stored sheaf, with the vertices at their ends."""

    sheaf: CellularSheaf
    vertices: np.ndarray  # indices of its vertices in the stored sheaf
    rows: np.ndarray  # indices of its coordinates in a cochain


def parts_of(store: SheafStore) -> Iterator[Part]:
    """Yield the parts of a stored sheaf as sheaves."""
    edges, vertex_dims, edge_dims = store.topology()
    starts = offsets(vertex_dims)
    for p in range(len(store.parts)):
        numbers = store.edges_of(p)
        rows = edge_dims[numbers].astype(np.int64)
        sizes = rows @ vertex_dims[edges[numbers]]
        tail, head = (
            store.maps_at(p, end, int(size)) for end, size in zip(ENDS, sizes, strict=True)
        )
        vertices, ends = np.unique(edges[numbers], return_inverse=True)
        dims = vertex_dims[vertices].astype(np.int64)
        sheaf = trusted_sheaf(ends.reshape(-1, 2), dims, rows, tail, head)
        yield Part(sheaf, vertices, range_of_blocks(starts, vertices))


def laplacian_operator(store: SheafStore) -> LinearOperator:
    """Return the operator x -> delta* (delta x) of a stored sheaf, applied part by part.

    It serves for Rayleigh quotients of lifted modes, and for scipy's iterative methods. Every
    application reads the store once, so apply it to many columns at a time.

    Parameters
    ----------
    store : SheafStore

    Returns
    -------
    LinearOperator, shape (dim_c0, dim_c0)

    Raises
    ------
    TypeError
        If ``store`` is not a SheafStore.
    StoreError
        If the store was rewritten; when the operator is applied, if a chunk is missing or damaged.

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
    """Return norm(delta x)^2 for every column of x."""
    total = np.zeros(x.shape[1])
    for part in parts_of(store):
        total += np.square(np.abs(apply_coboundary(part.sheaf, x[part.rows]))).sum(
            axis=0, dtype=np.float64
        )
    return total
