"""Coboundary as a sparse matrix, energies, and matrix-free products with it and the Laplacian."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._kernels.arrays import SheafArrays
from sheafcoarsen._support import CochainLike, checks, linalg, ragged, threads
from sheafcoarsen.operators._laplacian import SERIAL_BELOW, canonical_csr
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf

SPECIALIZED_ABOVE = 20_000
"""Number of map entries above which kernels are compiled for the stalk dimensions of a sheaf.

One compilation takes as long as about 10,000 products of a smaller sheaf.
"""


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
    indptr = ragged.offsets(np.repeat(width, f.edge_dims))
    itype = ragged.index_dtype(max(int(indptr[-1]), sheaf.dim_c0, sheaf.dim_c1))
    indices = np.empty(int(indptr[-1]), itype)
    data = np.empty(int(indptr[-1]), sheaf.dtype)
    kernels.coboundary_csr(f, indptr, indices, data)
    return canonical_csr(data, indices, indptr.astype(itype), (sheaf.dim_c1, sheaf.dim_c0))


def as_columns(x: np.ndarray) -> np.ndarray:
    """Return a cochain of shape (dim,) or (dim, h) as a view of shape (dim, h)."""
    return x if x.ndim == 2 else x[:, None]


def apply_coboundary(sheaf: CellularSheaf, x: np.ndarray) -> np.ndarray:
    """Return delta x, matrix-free, for a validated x of shape (dim_c0, h)."""
    shape, dtype = (sheaf.dim_c1, x.shape[1]), np.result_type(sheaf.dtype, x.dtype)
    if x.size == 0:
        return np.zeros(shape, dtype)
    if dtype.kind != sheaf.dtype.kind:
        return linalg.by_real_columns(lambda columns: apply_coboundary(sheaf, columns), x)
    x, y = x.astype(dtype, copy=False), np.empty(shape, dtype)
    arrays, (_, lanes, blocks) = without_loops(sheaf), _specialization(sheaf, y)
    threads.run_ranges(
        lambda lo, hi: kernels.apply_coboundary(lo, hi, arrays, lanes, blocks, x, y),
        sheaf.edge_offsets,
        cumulative=True,
        serial_below=SERIAL_BELOW / x.shape[1],
    )
    return y


def without_loops(sheaf: CellularSheaf) -> SheafArrays:
    """Return a sheaf's arrays in which loops have the tail map F_tail - F_head and head map 0."""
    f = sheaf.arrays
    loops = np.flatnonzero(f.edges[:, 0] == f.edges[:, 1])
    if len(loops) == 0:
        return f
    lengths = f.edge_dims[loops] * f.vertex_dims[f.edges[loops, 0]]
    head = ragged.ranges(f.head_offsets[loops], lengths)
    tail_data, head_data = f.tail_data.copy(), f.head_data.copy()
    tail_data[ragged.ranges(f.tail_offsets[loops], lengths)] -= head_data[head]
    head_data[head] = 0
    # read-only as in ``f``: numba would compile the kernels again for writable arrays
    return f._replace(tail_data=ragged.read_only(tail_data), head_data=ragged.read_only(head_data))


def _specialization(
    sheaf: CellularSheaf, out: np.ndarray
) -> tuple[tuple[int, int] | None, tuple, tuple]:
    """Return the map shape for which kernels are compiled, None for any, ``lanes`` and ``blocks``.

    The length of ``lanes`` is the number of columns processed at a time. The lengths of ``blocks``
    are the shape of blocks of maps, and 1 if a map is one block.
    """
    shape = sheaf.map_shape if len(sheaf.tail_data) > SPECIALIZED_ABOVE else None
    widths = (4, 1) if out.dtype.kind == "c" else (8, 4, 1)
    lanes = (out.dtype.type(0),) * next(width for width in widths if width <= out.shape[1])
    sizes = tuple(next((k for k in (4, 3, 2) if n and n % k == 0), 1) for n in shape or (1, 1))
    return shape, lanes, ((0,) * sizes[0], (0,) * sizes[1], (0,) * (shape == sizes))


def edge_energy(sheaf: CellularSheaf, x: CochainLike) -> np.ndarray:
    """Return norm((delta x)_e)^2 for every edge, the summands of ``eq:sheaf-energy``.

    Parameters
    ----------
    sheaf : CellularSheaf
    x : array_like, shape (dim_c0,) or (dim_c0, h)

    Returns
    -------
    ndarray, shape (m,) or (m, h)

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.edge_energy(sc.CellularSheaf.constant([[0, 1], [1, 2]]), [0.0, 1.0, 3.0])
    array([1., 4.])
    """
    x = checks.cochain(check_sheaf(sheaf), x)
    y = apply_coboundary(sheaf, as_columns(x))
    out = np.empty((sheaf.n_edges, y.shape[1]), y.real.dtype)
    kernels.sum_products(sheaf.edge_offsets, y, y, out)
    return out.reshape(sheaf.n_edges, *x.shape[1:])


def energy(sheaf: CellularSheaf, x: CochainLike) -> float | np.ndarray:
    """Return the energy x* L x = norm(delta x)^2 (``eq:sheaf-energy``, ``eq:app-sheaf-energy``).

    The Dirichlet energy x* Delta x (``eq:app-dirichlet-energy-single``) is
    ``energy(normalize(sheaf), x)``; every edge counts once, so there is no factor 1/2
    (``eq:app-dirichlet-energy-edge``). Every column of x has its own energy, and the energy of
    several channels is the sum of these (``eq:app-dirichlet-energy-matrix``).

    Parameters
    ----------
    sheaf : CellularSheaf
    x : array_like, shape (dim_c0,) or (dim_c0, h)

    Returns
    -------
    float, or ndarray of shape (h,)

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.energy(sc.CellularSheaf.constant([[0, 1], [1, 2]]), [0.0, 1.0, 3.0])
    5.0
    """
    total = edge_energy(sheaf, x).sum(axis=0, dtype=np.float64)
    return total if total.ndim else float(total)


def laplacian_operator(sheaf: CellularSheaf) -> LinearOperator:
    """Return the sheaf Laplacian as a matrix-free scipy LinearOperator, x -> delta* (delta x).

    Parameters
    ----------
    sheaf : CellularSheaf

    Returns
    -------
    LinearOperator, shape (dim_c0, dim_c0)

    Examples
    --------
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> A = sc.laplacian_operator(sc.CellularSheaf.constant([[0, 1], [1, 2]]))
    >>> A @ np.array([1.0, 0.0, 0.0])
    array([ 1., -1.,  0.])
    """
    return LaplacianOperator(check_sheaf(sheaf))


class LaplacianOperator(LinearOperator):
    """The result of :func:`laplacian_operator`; its pickle contains only the sheaf."""

    def __init__(self, sheaf: CellularSheaf) -> None:
        super().__init__(sheaf.dtype, (sheaf.dim_c0, sheaf.dim_c0))
        self._sheaf, self._maps = sheaf, without_loops(sheaf)

    def _matmat(self, x: np.ndarray) -> np.ndarray:
        dtype = np.result_type(x.dtype, self.dtype) if x.dtype.kind in "biufc" else x.dtype
        if dtype.type not in checks.SCALARS:
            raise TypeError(
                f"`x` must hold numbers in single or double precision, got dtype {x.dtype}"
            )
        x = np.ascontiguousarray(x, dtype=dtype)
        if x.size and dtype.kind != self.dtype.kind:
            return linalg.by_real_columns(self._matmat, x)
        columns, out = as_columns(x), np.zeros_like(as_columns(x))
        if x.size == 0:
            return out.reshape(x.shape)
        h, maps = columns.shape[1], self._maps
        shape, lanes, blocks = _specialization(self._sheaf, out)
        if h == 1:
            # the kernel is specialized for stalk dimensions up to 8
            stalk = (0,) * shape[1] if shape and shape[1] <= 8 else ()
            kernels.apply_laplacian_column(maps, stalk, columns.reshape(-1), out.reshape(-1))
        else:  # threads process different columns, so that results do not depend on their number
            threads.run_ranges(
                lambda lo, hi: kernels.apply_laplacian(lo, hi, maps, lanes, blocks, columns, out),
                np.full(h // len(lanes), len(lanes) * float(len(self._sheaf.tail_data))),
                serial_below=SERIAL_BELOW,
            )
        return out.reshape(x.shape)

    _matvec = _matmat

    def _adjoint(self) -> LaplacianOperator:
        return self

    def __reduce__(self) -> tuple:
        return laplacian_operator, (self._sheaf,)
