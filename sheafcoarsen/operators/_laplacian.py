"""The sheaf Laplacian as a sparse matrix."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args, overload

import numpy as np
import scipy.sparse

from sheafcoarsen._kernels import operators as kernels
from sheafcoarsen._support import checks, ragged, tables, threads
from sheafcoarsen.sheaf import CellularSheaf, Topology, check_same_topology, check_sheaf, same_array

SERIAL_BELOW = 200_000.0
"""Number of map entries below which a single thread is used."""


def canonical_csr(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, shape: tuple[int, int]
) -> scipy.sparse.csr_array:
    """Return the CSR matrix with the given arrays, whose indices must be sorted and unique."""
    matrix = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
    matrix.has_canonical_format = True
    return matrix


def block_pattern(edges: np.ndarray, n: int) -> kernels.BlockPattern:
    """Return the block sparsity pattern of L by one counting sort, two if edges are not canonical.

    Edges are canonical if they are sorted and distinct, and u < v for each.
    Columns are always read-only, since they may be the indices of L; so kernels compile only once.
    """
    m = len(edges)
    columns = np.empty(n + 2 * m, np.int32)
    codes = np.empty(n + 2 * m, ragged.index_dtype(4 * m))
    row_ptr = np.empty(n + 1, np.int64)
    if kernels.canonical_entries(edges, row_ptr, np.zeros(n, np.int64), columns, codes):
        return kernels.BlockPattern(row_ptr, codes, row_ptr, ragged.read_only(columns))
    by_row, by_column = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    half_edges = np.empty((2, 2 * m), ragged.index_dtype(2 * m))
    count = kernels.sort_half_edges(edges, by_row, by_column, half_edges[0], half_edges[1])
    block_ptr = np.empty(n + 1, np.int64)
    blocks = kernels.group_entries(edges, by_row, half_edges[1], row_ptr, block_ptr, columns, codes)
    if blocks == n + count:
        block_ptr = row_ptr
    columns = ragged.read_only(columns[:blocks])
    return kernels.BlockPattern(row_ptr, codes[: n + count], block_ptr, columns)


def count_nonzeros(sheaf: CellularSheaf) -> int:
    """Return the number of entries that L stores, without computing L."""
    blocks, dims = block_pattern(sheaf.edges, sheaf.n_vertices), sheaf.vertex_dims
    return int(np.repeat(dims, np.diff(blocks.block_ptr)) @ dims[blocks.columns])


Format: TypeAlias = Literal["csr", "bsr"]
"""Sparse formats of a Laplacian."""


class LaplacianPattern:
    """The sparsity pattern of L, determined by the graph and the stalk dimensions.

    It is computed once for any number of sheaves on the same graph: ``fill`` writes values only.
    Special kernels, compiled on first use, fill L for uniform vertex stalks of dimension 1, 2 or 3
    and uniform edge stalks, on a graph without loops and parallel edges. ``fill`` is faster if
    neighbours have nearby indices.

    Parameters
    ----------
    sheaf : CellularSheaf
        Only its graph and dimensions are read.
    format : {"csr", "bsr"}
        "bsr" requires vertex stalks of the same dimension, at least 1.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.random([[0, 1], [1, 2], [2, 3], [0, 3]], 2, 3, seed=5)
    >>> pattern = sc.LaplacianPattern(F)
    >>> L = pattern.fill(F)
    >>> twice = F.with_maps(2 * F.tail_data, 2 * F.head_data)
    >>> L is pattern.fill(twice, out=L)  # the memory of L is reused
    True
    """

    def __init__(self, sheaf: CellularSheaf, format: Format = "csr") -> None:
        check_sheaf(sheaf)
        self.format = checks.choice("format", format, get_args(Format))
        dims = sheaf.vertex_dims
        one_size = len(dims) > 0 and bool((dims == dims[0]).all())
        if format == "bsr" and not (one_size and dims[0]):
            had = "there are no vertices"
            if len(dims):
                v = int(np.argmax(dims != dims[0]))  # 0 if all dimensions are 0
                had = f"vertex {v} has dimension {dims[v]}, vertex 0 has {dims[0]}"
            raise ValueError(
                f'`format` = "bsr" requires equal dimensions of vertex stalks, at least 1; {had}: '
                f'use "csr"'
            )
        self._topology = Topology(sheaf.edges, sheaf.vertex_dims, sheaf.edge_dims)
        self._blocks = blocks = block_pattern(sheaf.edges, sheaf.n_vertices)
        self._row_starts = blocks.block_ptr * int(dims.max(initial=0)) ** 2  # of vertices, in L
        if not one_size and len(dims):
            widths = np.add.reduceat(dims[blocks.columns], blocks.block_ptr[:-1])
            self._row_starts = ragged.offsets(widths * dims)
        self._nnz = int(self._row_starts[-1])
        self.shape = (sheaf.dim_c0, sheaf.dim_c0)
        one_map_shape = sheaf.n_edges == 0 or sheaf.map_shape is not None
        simple_graph = blocks.row_ptr is blocks.block_ptr
        small = one_size and 1 <= dims[0] <= 3
        self._uniform = bool(small and one_map_shape and simple_graph)
        if format == "bsr" or (one_size and dims[0] == 1):
            itype = ragged.index_dtype(max(len(blocks.columns), len(dims)))
            indices = blocks.columns.astype(itype, copy=False)
            indptr = blocks.block_ptr.astype(itype)
        else:
            itype = ragged.index_dtype(max(self._nnz, sheaf.dim_c0))
            indptr, indices = np.empty(sheaf.dim_c0 + 1, itype), np.empty(self._nnz, itype)
            indptr[-1] = self._nnz
            arrays, starts = sheaf.arrays, self._row_starts
            threads.run_ranges(
                lambda lo, hi: kernels.scalar_pattern(
                    lo, hi, arrays, blocks, starts, indptr, indices
                ),
                starts,
                cumulative=True,
                serial_below=SERIAL_BELOW,
            )
        self.indices, self.indptr = ragged.read_only(indices), ragged.read_only(indptr)

    def fill(
        self,
        sheaf: CellularSheaf,
        out: scipy.sparse.csr_array | scipy.sparse.bsr_array | None = None,
    ) -> scipy.sparse.csr_array | scipy.sparse.bsr_array:
        """Return L of a sheaf with the pattern's topology; L shares the pattern's index arrays.

        Parameters
        ----------
        sheaf : CellularSheaf
            The same edges and dimensions as the pattern's.
        out : sparse, optional
            An earlier result of this pattern with the same scalar type, which is overwritten and
            returned. This is faster than allocating memory.

        Returns
        -------
        csr_array or bsr_array, shape (dim_c0, dim_c0)

        Raises
        ------
        ValueError, TypeError
            If the sheaf has another topology, or ``out`` is not a result of this pattern.

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
        check_same_topology(
            self._topology,
            sheaf,
            "the topology of the pattern",
            "make a new LaplacianPattern for another one",
        )
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
                    "`out` must be an earlier result of this pattern, with its original arrays or "
                    "equal ones"
                )
            if out.dtype != sheaf.dtype:
                raise ValueError(
                    f"`out` must have the sheaf's scalar type {sheaf.dtype}, got {out.dtype}"
                )
            data = out.data.reshape(-1)
        arrays, blocks, starts = sheaf.arrays, self._blocks, self._row_starts
        bsr, d = self.format == "bsr", int(sheaf.vertex_dims[0]) if sheaf.n_vertices else 0
        rows = int(sheaf.edge_dims[0]) if sheaf.n_edges else 0
        maps = sheaf.tail_data, sheaf.head_data, rows
        lanes, square = (data.dtype.type(0),) * d, (0,) if rows == d else ()
        threads.run_ranges(
            lambda lo, hi: (
                kernels.fill_uniform(lo, hi, maps, blocks, bsr, lanes, square, data)
                if self._uniform
                else kernels.fill(lo, hi, arrays, blocks, starts, bsr, data)
            ),
            starts,
            cumulative=True,
            serial_below=SERIAL_BELOW,
        )
        if out is not None:
            return out
        if self.format == "bsr":
            matrix = scipy.sparse.bsr_array(
                (data.reshape(-1, d, d), self.indices, self.indptr), shape=self.shape
            )
            matrix.has_sorted_indices = True
            matrix.has_canonical_format = True
            return matrix
        return canonical_csr(data, self.indices, self.indptr, self.shape)

    def __repr__(self) -> str:
        blocks = len(self._blocks.columns)
        return f"LaplacianPattern(format={self.format!r}, blocks={blocks}, entries={self._nnz})"

    def _repr_html_(self) -> str:
        rows = [
            ("format", self.format),
            ("rows", self.shape[0]),
            ("blocks", len(self._blocks.columns)),
            ("entries", self._nnz),
        ]
        return tables.table(rows, caption="LaplacianPattern")


@overload
def laplacian(sheaf: CellularSheaf, format: Literal["csr"] = "csr") -> scipy.sparse.csr_array: ...


@overload
def laplacian(sheaf: CellularSheaf, format: Literal["bsr"]) -> scipy.sparse.bsr_array: ...


def laplacian(
    sheaf: CellularSheaf, format: Format = "csr"
) -> scipy.sparse.csr_array | scipy.sparse.bsr_array:
    """Return the sheaf Laplacian L = delta* delta (``eq:sheaf-laplacian``) as a sparse matrix.

    The diagonal block of v sums F_{v->e}* F_{v->e} over its edges (``eq:app-diagonal-block``) and
    (F_tail - F_head)* (F_tail - F_head) over its loops; block (u, v) sums -F_{u->e}* F_{v->e}
    (``eq:app-off-diagonal-block``).

    Parameters
    ----------
    sheaf : CellularSheaf
    format : {"csr", "bsr"}
        "bsr" requires vertex stalks of the same dimension, at least 1.

    Returns
    -------
    csr_array or bsr_array, shape (dim_c0, dim_c0)
        Exactly Hermitian, sorted indices, no duplicates; every diagonal block is stored.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> sc.laplacian(sc.CellularSheaf.constant([[0, 1], [0, 2]])).toarray()
    array([[ 2., -1., -1.],
           [-1.,  1.,  0.],
           [-1.,  0.,  1.]])
    """
    pattern = LaplacianPattern(sheaf, format)
    matrix = pattern.fill(sheaf)
    # make the index arrays writeable, since the pattern is not used again
    for name in ("indices", "indptr"):
        own = getattr(pattern, name)
        own.setflags(write=True)
        setattr(matrix, name, own)
    return matrix
