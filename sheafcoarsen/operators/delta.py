"""The coboundary: as a matrix, and applied without one."""

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._support import offsets, run_ranges
from sheafcoarsen.operators.csr import canonical_csr, index_dtype
from sheafcoarsen.operators.pattern import SERIAL_BELOW
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf

LANES = 4
"""Columns of a cochain that are worked on at a time: as many doubles as a register holds."""


def coboundary(sheaf: CellularSheaf) -> scipy.sparse.csr_array:
    """Return the coboundary delta (``eq:coboundary``) as a sparse matrix.

    Row block e = (u, v) holds F_{u->e} in the columns of u and -F_{v->e} in those of v; a loop
    holds F_tail - F_head.

    Parameters
    ----------
    sheaf : CellularSheaf

    Returns
    -------
    csr_array, shape (dim_c1, dim_c0)
        Sorted indices, no duplicates.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.coboundary(sc.CellularSheaf.constant([[0, 1], [2, 1]])).toarray()
    array([[ 1., -1.,  0.],
           [ 0., -1.,  1.]])
    """
    f = check_sheaf(sheaf).arrays
    tails, heads = f.edges[:, 0], f.edges[:, 1]
    width = f.vertex_dims[tails] + np.where(tails != heads, f.vertex_dims[heads], 0)
    indptr = offsets(np.repeat(width, f.edge_dims))
    itype = index_dtype(max(int(indptr[-1]), sheaf.dim_c0, sheaf.dim_c1))
    indices = np.empty(int(indptr[-1]), itype)
    data = np.empty(int(indptr[-1]), sheaf.dtype)
    kernels.coboundary_csr(f, indptr, indices, data)
    return canonical_csr(data, indices, indptr.astype(itype), (sheaf.dim_c1, sheaf.dim_c0))


def as_columns(x: np.ndarray) -> np.ndarray:
    """View a cochain of shape (dim,) or (dim, h) as (dim, h)."""
    return x if x.ndim == 2 else x[:, None]


def apply_coboundary(sheaf: CellularSheaf, x: np.ndarray) -> np.ndarray:
    """Return delta x for a checked x of shape (dim_c0, h), straight from the maps."""
    y = np.empty((sheaf.dim_c1, x.shape[1]), np.result_type(sheaf.dtype, x.dtype))
    given, result = _as_the_maps(sheaf, x.astype(y.dtype, copy=False)), _as_the_maps(sheaf, y)
    columns = _columns(sheaf)
    arrays, enough = sheaf.arrays, SERIAL_BELOW / max(x.shape[1], 1)

    def apply(part: tuple[int, int], lanes: tuple) -> None:
        def to_edges(lo: int, hi: int) -> None:
            kernels.apply_coboundary(lo, hi, arrays, part, lanes, columns, given, result)

        run_ranges(to_edges, sheaf.edge_offsets, cumulative=True, serial_below=enough)

    for part, lanes in _parts(result):
        apply(part, lanes)
    return y


def apply_laplacian(sheaf: CellularSheaf, x: np.ndarray) -> np.ndarray:
    """Return delta* (delta x) for a checked x of shape (dim_c0, h), straight from the maps.

    Threads share the columns, so that sums are the same whatever their number.
    """
    out = np.zeros(x.shape, np.result_type(sheaf.dtype, x.dtype))
    given, result = _as_the_maps(sheaf, x.astype(out.dtype, copy=False)), _as_the_maps(sheaf, out)
    columns = _columns(sheaf)
    if result.shape[1] == 1 and columns and not (sheaf.edges[:, 0] == sheaf.edges[:, 1]).any():
        rows = int(sheaf.edge_dims[0])
        square = (0,) if rows == len(columns) else ()
        flat, total = given.reshape(-1), result.reshape(-1)
        kernels.apply_laplacian_column(sheaf.arrays, rows, columns, square, flat, total)
        return out
    arrays = sheaf.arrays

    def apply(part: tuple[int, int], lanes: tuple) -> None:
        begin, width = part[0], len(lanes)

        def in_columns(lo: int, hi: int) -> None:
            lo, hi = begin + lo * width, begin + hi * width
            kernels.apply_laplacian(lo, hi, arrays, lanes, columns, given, result)

        cost = np.full((part[1] - begin) // width, width * float(len(sheaf.tail_data)))
        run_ranges(in_columns, cost, serial_below=SERIAL_BELOW)

    for part, lanes in _parts(result):
        apply(part, lanes)
    return out


def _columns(sheaf: CellularSheaf) -> tuple[int, ...]:
    """Return as many zeros as all maps have columns, none where they differ or are more than 3.

    Kernels are compiled for each length, with their loops unrolled.
    """
    d = sheaf.map_shape[1] if sheaf.map_shape else 0
    return (0,) * d if d <= 3 else ()


def _parts(out: np.ndarray) -> list[tuple[tuple[int, int], tuple]]:
    """Return ranges of columns, and for each as many zeros as are worked on at a time."""
    zero, h = out.dtype.type(0), out.shape[1]
    whole = 0 if out.dtype.kind == "c" else h - h % LANES
    parts = [((0, whole), (zero,) * LANES), ((whole, h), (zero,))]
    return [(part, lanes) for part, lanes in parts if part[0] < part[1]]


def _as_the_maps(sheaf: CellularSheaf, x: np.ndarray) -> np.ndarray:
    """View complex columns on real maps as twice as many real ones."""
    if x.dtype.kind == "c" and sheaf.dtype.kind != "c":
        return x.reshape(-1).view(x.real.dtype).reshape(x.shape[0], 2 * x.shape[1])
    return x


def laplacian_operator(sheaf: CellularSheaf) -> LinearOperator:
    """Return x -> delta* (delta x) straight from the maps, as a scipy LinearOperator.

    Parameters
    ----------
    sheaf : CellularSheaf

    Returns
    -------
    LinearOperator, shape (dim_c0, dim_c0)

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> A = sc.laplacian_operator(sc.CellularSheaf.constant(nx.path_graph(3)))
    >>> A @ np.array([1.0, 0.0, 0.0])
    array([ 1., -1.,  0.])
    """
    check_sheaf(sheaf)

    def matmat(x: np.ndarray) -> np.ndarray:
        x = np.ascontiguousarray(x, dtype=np.result_type(x.dtype, sheaf.dtype))
        return apply_laplacian(sheaf, as_columns(x)).reshape(x.shape)

    return LinearOperator(
        shape=(sheaf.dim_c0, sheaf.dim_c0),
        dtype=sheaf.dtype,
        matvec=matmat,
        rmatvec=matmat,
        matmat=matmat,
        rmatmat=matmat,
    )
