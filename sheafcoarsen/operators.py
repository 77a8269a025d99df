"""The linear operators of a sheaf: coboundary, Laplacian, normalization, energy."""

import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

from sheafcoarsen._checks import choice, cochain, real_number
from sheafcoarsen._kernels import laplacian as assembly
from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._linalg import eps_of, zero_level
from sheafcoarsen._ragged import offsets, ranges, read_only
from sheafcoarsen._threads import run_ranges
from sheafcoarsen.exceptions import SingularDegreeWarning
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf

SERIAL_BELOW = 200_000.0
"""Map entries below which one thread does all: handing ranges to threads costs more."""


def index_dtype(largest: int):
    """Return the index type scipy uses for matrices of this many entries: int32 while it fits."""
    return np.int32 if largest <= np.iinfo(np.int32).max else np.int64


def coboundary(sheaf: CellularSheaf) -> scipy.sparse.csr_array:
    """Return the coboundary delta (``eq:coboundary``) as a sparse matrix.

    Row block e = (u, v) holds F_{u->e} in the columns of u and -F_{v->e} in those of v; a loop holds F_tail - F_head.

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
    f = check_sheaf(sheaf)._arrays
    tails, heads = f.edges[:, 0], f.edges[:, 1]
    width = f.vertex_dims[tails] + np.where(tails != heads, f.vertex_dims[heads], 0)
    indptr = offsets(np.repeat(width, f.edge_dims))
    itype = index_dtype(max(int(indptr[-1]), sheaf.dim_c0, sheaf.dim_c1))
    indices = np.empty(int(indptr[-1]), itype)
    data = np.empty(int(indptr[-1]), sheaf.dtype)
    kernels.coboundary_csr(f, indptr, indices, data)
    return canonical_csr(data, indices, indptr.astype(itype), (sheaf.dim_c1, sheaf.dim_c0))


def canonical_csr(data, indices, indptr, shape) -> scipy.sparse.csr_array:
    """Wrap arrays that are known to have sorted indices and no duplicates."""
    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
    matrix.has_sorted_indices = True
    matrix.has_canonical_format = True
    return matrix


def as_columns(x: np.ndarray) -> np.ndarray:
    """View a cochain of shape (dim,) or (dim, h) as (dim, h)."""
    return x if x.ndim == 2 else x[:, None]


def apply_coboundary(sheaf: CellularSheaf, x: np.ndarray) -> np.ndarray:
    """Return delta x for a checked x of shape (dim_c0, h), straight from the maps."""
    y = np.empty((sheaf.dim_c1, x.shape[1]), np.result_type(sheaf.dtype, x.dtype))
    cost = sheaf.edge_dims + 1.0
    serial_below = SERIAL_BELOW / max(x.shape[1], 1)
    run_ranges(lambda lo, hi: kernels.apply_coboundary(lo, hi, sheaf._arrays, x, y), cost, serial_below=serial_below)
    return y


class BlockPattern(NamedTuple):
    """The blocks of L, row by row with ascending columns, and the half-edges that make them, coded as in the kernels."""

    row_ptr: np.ndarray  # (n + 1,) int64, where each row's codes begin
    codes: np.ndarray  # int32 while it fits
    block_ptr: (
        np.ndarray
    )  # (n + 1,) int64, where each row's blocks begin; row_ptr itself where there is a code per block
    columns: np.ndarray  # int32, the block's column


def block_pattern(edges, n: int) -> BlockPattern:
    """Return which blocks of L stand where; one counting sort for canonical edges, two for others."""
    m = len(edges)
    columns = np.empty(n + 2 * m, np.int32)
    codes = np.empty(n + 2 * m, index_dtype(4 * m))
    row_ptr = np.empty(n + 1, np.int64)
    if assembly.canonical_entries(edges, row_ptr, np.zeros(n, np.int64), columns, codes):
        return BlockPattern(row_ptr, codes, row_ptr, columns)
    by_row, by_column = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    half_edges = np.empty((2, 2 * m), index_dtype(2 * m))
    count = assembly.sort_half_edges(edges, by_row, by_column, half_edges[0], half_edges[1])
    block_ptr = np.empty(n + 1, np.int64)
    blocks = assembly.group_entries(edges, by_row, half_edges[1], row_ptr, block_ptr, columns, codes)
    if blocks == n + count:
        block_ptr = row_ptr
    return BlockPattern(row_ptr, codes[: n + count], block_ptr, columns[:blocks])


def count_nonzeros(sheaf: CellularSheaf) -> int:
    """Return how many entries L stores, without L."""
    blocks, dims = block_pattern(sheaf.edges, sheaf.n_vertices), sheaf.vertex_dims
    return int(np.repeat(dims, np.diff(blocks.block_ptr)) @ dims[blocks.columns])


def same_array(mine, other) -> bool:
    """Compare two index arrays, at no cost where they are one."""
    if mine is other:
        return True
    if not isinstance(other, np.ndarray) or mine.shape != other.shape:
        return False
    one = mine.dtype == other.dtype and mine.strides == other.strides and mine.ctypes.data == other.ctypes.data
    return one or np.array_equal(mine, other)


class LaplacianPattern:
    """Which blocks of L stand where: depends on the topology and the dimensions alone.

    Computed once, it serves any number of sheaves on the same graph: ``fill`` writes values only. Uniform stalks of dimension 1, 2 and 3
    on a graph without loops and parallel edges have kernels of their own, compiled on first use. Vertices numbered so that neighbours
    are near each other fill faster.

    Parameters
    ----------
    sheaf : CellularSheaf
        Only its graph and dimensions are read.
    format : {"csr", "bsr"}
        "bsr" needs all vertex stalks of one size, at least 1.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.random(nx.cycle_graph(4), 2, 3, seed=5)
    >>> pattern = sc.LaplacianPattern(F)
    >>> L = pattern.fill(F)
    >>> L is pattern.fill(F.with_maps(2 * F.tail_data, 2 * F.head_data), out=L)  # the memory of L is reused
    True
    """

    def __init__(self, sheaf: CellularSheaf, format: str = "csr"):
        check_sheaf(sheaf)
        self.format = choice("format", format, ("csr", "bsr"))
        self._edges, self._vertex_dims, self._edge_dims = sheaf.edges, sheaf.vertex_dims, sheaf.edge_dims
        n = sheaf.n_vertices
        dims = sheaf.vertex_dims
        odd = np.flatnonzero(dims != dims[0]) if n else dims
        if format == "bsr" and (n == 0 or dims[0] == 0 or odd.size):
            v = int(odd[0]) if odd.size else 0
            had = f"vertex {v} has dimension {dims[v]}, vertex 0 has {dims[0]}" if n else "there are no vertices"
            raise ValueError(f'`format` = "bsr" needs all vertex stalks of one size, at least 1; {had}: use "csr"')
        self._blocks = blocks = block_pattern(sheaf.edges, n)
        self.shape = (sheaf.dim_c0, sheaf.dim_c0)
        if n and not odd.size:
            d = int(dims[0])
            self._row_starts = blocks.block_ptr * (d * d)
        else:
            d = -1
            widths = np.empty(n, np.int64)
            assembly.scalar_row_widths(blocks.block_ptr, blocks.columns, dims, widths)
            self._row_starts = offsets(widths * dims)
        one_map_shape = len(self._edge_dims) == 0 or sheaf._map_shape is not None
        self._small = 1 <= d <= 3 and one_map_shape and blocks.row_ptr is blocks.block_ptr
        self._nnz = int(self._row_starts[-1])
        if format == "bsr" or d == 1:
            itype = index_dtype(max(len(blocks.columns), n))
            indices, indptr = blocks.columns.astype(itype, copy=False), blocks.block_ptr.astype(itype)
        else:
            itype = index_dtype(max(self._nnz, sheaf.dim_c0))
            indptr, indices = np.empty(sheaf.dim_c0 + 1, itype), np.empty(self._nnz, itype)
            indptr[-1] = self._nnz
            run_ranges(
                lambda lo, hi: assembly.scalar_pattern(
                    lo, hi, blocks.block_ptr, blocks.columns, dims, sheaf.vertex_offsets, self._row_starts, indptr, indices
                ),
                self._row_starts,
                cumulative=True,
                serial_below=SERIAL_BELOW,
            )  # fmt: skip
        self.indices, self.indptr = read_only(indices), read_only(indptr)

    def fill(self, sheaf: CellularSheaf, out=None) -> scipy.sparse.csr_array | scipy.sparse.bsr_array:
        """Return L of a sheaf on the same topology; its index arrays are shared with the pattern.

        Parameters
        ----------
        sheaf : CellularSheaf
            The same edges and dimensions as the pattern's.
        out : sparse, optional
            An earlier result of this pattern with the same scalar type; its memory is reused and it is returned. New memory takes
            longer to fill: the system hands it out page by page.

        Returns
        -------
        csr_array or bsr_array, shape (dim_c0, dim_c0)

        Raises
        ------
        ValueError, TypeError
            A sheaf with another topology, or an ``out`` that this pattern did not make.

        Examples
        --------
        >>> import sheafcoarsen as sc
        >>> F = sc.CellularSheaf.constant([[0, 1]])
        >>> pattern = sc.LaplacianPattern(F)
        >>> L = pattern.fill(F)
        >>> pattern.fill(F.with_maps(3 * F.tail_data, 3 * F.head_data), out=L) is L
        True
        >>> L.toarray()
        array([[ 9., -9.],
               [-9.,  9.]])
        """
        check_sheaf(sheaf)
        for name, mine, other in (
            ("edges", self._edges, sheaf.edges),
            ("vertex_dims", self._vertex_dims, sheaf.vertex_dims),
            ("edge_dims", self._edge_dims, sheaf.edge_dims),
        ):
            if not same_array(mine, other):
                raise ValueError(f"`sheaf` must have the topology of the pattern, but its {name} differ")
        if out is None:
            data = np.empty(self._nnz, sheaf.dtype)
        else:
            wanted = scipy.sparse.bsr_array if self.format == "bsr" else scipy.sparse.csr_array
            if not (
                isinstance(out, wanted)
                and out.shape == self.shape
                and out.data.size == self._nnz
                and same_array(self.indptr, out.indptr)
                and same_array(self.indices, out.indices)
                and out.data.flags.c_contiguous
                and out.data.flags.writeable
            ):
                raise ValueError(
                    "`out` must be an earlier result of this pattern, with its own memory unchanged in layout"
                )
            if out.dtype != sheaf.dtype:
                raise ValueError(f"`out` must have the sheaf's scalar type {sheaf.dtype}, got {out.dtype}")
            data = out.data.reshape(-1)
        run_ranges(self._filler(sheaf, data), self._row_starts, cumulative=True, serial_below=SERIAL_BELOW)
        if out is not None:
            return out
        if self.format == "bsr":
            d = int(self._vertex_dims[0])
            matrix = scipy.sparse.bsr_array((data.reshape(-1, d, d), self.indices, self.indptr), shape=self.shape)
            matrix.has_sorted_indices = True
            matrix.has_canonical_format = True
            return matrix
        return canonical_csr(data, self.indices, self.indptr, self.shape)

    def _filler(self, sheaf, data):
        """Return the function that writes the rows of a range of vertices."""
        blocks, bsr = self._blocks, self.format == "bsr"
        if self._small:
            rows = int(self._edge_dims[0]) if len(self._edge_dims) else 0
            columns = (0,) * int(self._vertex_dims[0])
            square = (0,) if rows == len(columns) else ()
            return lambda lo, hi: assembly.fill_uniform(
                lo,
                hi,
                sheaf.tail_data,
                sheaf.head_data,
                rows,
                blocks.block_ptr,
                blocks.codes,
                bsr,
                columns,
                square,
                data,
            )
        return lambda lo, hi: assembly.fill(lo, hi, sheaf._arrays, *blocks, self._row_starts, bsr, data)

    def __repr__(self) -> str:
        return f"LaplacianPattern(format={self.format!r}, blocks={len(self._blocks.columns)}, entries={self._nnz})"


def laplacian(sheaf: CellularSheaf, format: str = "csr") -> scipy.sparse.csr_array | scipy.sparse.bsr_array:
    """Return the sheaf Laplacian L = delta* delta (``eq:sheaf-laplacian``), assembled block by block.

    The diagonal block of v sums F_{v->e}* F_{v->e} over its edges (``eq:app-diagonal-block``) and
    (F_tail - F_head)* (F_tail - F_head) over its loops; block (u, v) sums -F_{u->e}* F_{v->e}
    (``eq:app-off-diagonal-block``).

    Parameters
    ----------
    sheaf : CellularSheaf
    format : {"csr", "bsr"}
        "bsr" where all vertex stalks have one size.

    Returns
    -------
    csr_array or bsr_array, shape (dim_c0, dim_c0)
        Exactly Hermitian, sorted indices, no duplicates; every diagonal block is stored.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> sc.laplacian(sc.CellularSheaf.constant(nx.star_graph(2))).toarray()
    array([[ 2., -1., -1.],
           [-1.,  1.,  0.],
           [-1.,  0.,  1.]])
    """
    pattern = LaplacianPattern(sheaf, format)
    matrix = pattern.fill(sheaf)
    for name in ("indices", "indptr"):  # nobody shares them; scipy may hold a view, which stays frozen
        own = getattr(pattern, name)
        own.setflags(write=True)
        setattr(matrix, name, own)
    return matrix


def laplacian_operator(sheaf: CellularSheaf) -> LinearOperator:
    """Return x -> delta* (delta x) straight from the maps, as a scipy LinearOperator; L is never formed.

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

    def matmat(x):
        x = np.ascontiguousarray(x, dtype=np.result_type(x.dtype, sheaf.dtype))
        flat = as_columns(x)
        out = np.zeros_like(flat)
        kernels.apply_adjoint(sheaf._arrays, apply_coboundary(sheaf, flat), out)
        return out.reshape(x.shape)

    return LinearOperator(
        shape=(sheaf.dim_c0, sheaf.dim_c0),
        dtype=sheaf.dtype,
        matvec=matmat,
        rmatvec=matmat,
        matmat=matmat,
        rmatmat=matmat,
    )


def edge_energy(sheaf: CellularSheaf, x) -> np.ndarray:
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
    x = cochain(check_sheaf(sheaf), x)
    y = apply_coboundary(sheaf, as_columns(x))
    out = np.empty((sheaf.n_edges, y.shape[1]), y.real.dtype)
    kernels.sum_products(sheaf.edge_offsets, y, y, out)
    return out.reshape(sheaf.n_edges, *x.shape[1:])


def energy(sheaf: CellularSheaf, x) -> float | np.ndarray:
    """Return the energy x* L x = norm(delta x)^2 (``eq:sheaf-energy``).

    The Dirichlet energy x* Delta x (``eq:app-dirichlet-energy-single``) is ``energy(normalize(sheaf), x)``; every edge counts
    once, so there is no factor 1/2.

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
    per_edge = edge_energy(sheaf, x)
    total = per_edge.sum(axis=0, dtype=np.float64)
    return float(total) if per_edge.ndim == 1 else total.astype(per_edge.dtype)


def normalize(sheaf: CellularSheaf, singular: str = "pinv", eps: float = 1e-8) -> CellularSheaf:
    """Return the sheaf with maps F_{v->e} D_v^{-1/2}, whose Laplacian is D^{-1/2} L D^{-1/2}.

    That is the normalized sheaf Laplacian (``eq:app-normalized-sheaf-laplacian``); D_v is the diagonal block of L, loops
    included, so everything else in the library runs on the normalized sheaf as on any other.

    Parameters
    ----------
    sheaf : CellularSheaf
    singular : {"pinv", "regularize", "augment"}
        What to do about singular D_v: take the pseudo-inverse; use D + eps max_v norm(D_v) I; or use D + I.
    eps : float
        For "regularize", relative to the largest Frobenius norm of a block.

    Returns
    -------
    CellularSheaf

    Warns
    -----
    SingularDegreeWarning
        With "pinv", where a block is singular to working accuracy.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> sc.laplacian(sc.normalize(sc.CellularSheaf.constant(nx.path_graph(2)))).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return normalized(sheaf, singular, eps, stacklevel=3)


def normalized(sheaf: CellularSheaf, singular: str = "pinv", eps: float = 1e-8, *, stacklevel: int) -> CellularSheaf:
    """Return what ``normalize`` returns; a warning points ``stacklevel`` calls up."""
    check_sheaf(sheaf)
    choice("singular", singular, ("pinv", "regularize", "augment"))
    if not 0 < real_number("eps", eps) < np.inf:
        raise ValueError(f"`eps` must be positive and finite, got {eps!r}")
    f = sheaf._arrays
    starts = offsets(f.vertex_dims**2)
    # in double precision also for single, where a shift of 1e-8 would drown
    blocks = np.zeros(int(starts[-1]), np.result_type(sheaf.dtype, np.float64))
    kernels.diagonal_blocks(f, starts, blocks)
    roots = np.zeros_like(blocks)
    machine_eps = eps_of(sheaf.dtype)
    grouped = []
    shift = 1.0 if singular == "augment" else 0.0
    for d in np.unique(f.vertex_dims[f.vertex_dims > 0]).tolist():  # one batch per dimension
        vertices = np.flatnonzero(f.vertex_dims == d)
        where = ranges(starts[vertices], np.full(len(vertices), d * d))
        values, vectors = np.linalg.eigh(blocks[where].reshape(-1, d, d))
        grouped.append((d, vertices, where, values, vectors))
        if singular == "regularize":  # the Frobenius norm of a block is that of its eigenvalues
            largest = values[:, -1:].clip(min=np.finfo(values.dtype).tiny)
            shift = max(shift, float(eps * (largest[:, 0] * np.linalg.norm(values / largest, axis=1)).max()))
    first_singular, n_singular = sheaf.n_vertices, 0
    for d, vertices, where, values, vectors in grouped:
        values = values.clip(min=0) + values.dtype.type(shift)
        zero = values <= (zero_level(d, machine_eps, values[:, -1:]) if singular == "pinv" else 0)
        inverse = np.where(zero, 0, 1 / np.sqrt(np.where(zero, 1, values)))
        roots[where] = ((vectors * inverse[:, None, :]) @ vectors.conj().swapaxes(1, 2)).reshape(-1)
        bad = vertices[zero.any(axis=1)]
        if bad.size:
            first_singular, n_singular = min(first_singular, int(bad[0])), n_singular + bad.size
    if n_singular and singular == "pinv":
        warnings.warn(
            f"the diagonal block of the Laplacian is singular at {n_singular} of {sheaf.n_vertices} vertices, first at "
            f"vertex {first_singular}: the pseudo-inverse was taken "
            f'(normalize(..., singular="regularize") or "augment" would shift it; an isolated vertex always counts)',
            SingularDegreeWarning,
            stacklevel=stacklevel,
        )
    scaled = []
    for end, data, begins in ((0, f.tail_data, f.tail_offsets), (1, f.head_data, f.head_offsets)):
        out = np.empty_like(data)
        kernels.multiply_maps(f.edges, end, f.edge_dims, f.vertex_dims, data, begins, roots, starts, out)
        scaled.append(out)
    return CellularSheaf._trusted(
        sheaf.edges, sheaf.vertex_dims, sheaf.edge_dims, scaled[0], scaled[1], sheaf.vertex_labels
    )
