"""The coboundary: as a matrix, and applied without one."""

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._support import offsets, run_ranges
from sheafcoarsen.operators.csr import canonical_csr, index_dtype
from sheafcoarsen.operators.pattern import SERIAL_BELOW
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf


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
    cost = sheaf.edge_dims + 1.0
    serial_below = SERIAL_BELOW / max(x.shape[1], 1)
    run_ranges(
        lambda lo, hi: kernels.apply_coboundary(lo, hi, sheaf.arrays, x, y),
        cost,
        serial_below=serial_below,
    )
    return y


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
        flat = as_columns(x)
        out = np.zeros_like(flat)
        kernels.apply_adjoint(sheaf.arrays, apply_coboundary(sheaf, flat), out)
        return out.reshape(x.shape)

    return LinearOperator(
        shape=(sheaf.dim_c0, sheaf.dim_c0),
        dtype=sheaf.dtype,
        matvec=matmat,
        rmatvec=matmat,
        matmat=matmat,
        rmatmat=matmat,
    )
