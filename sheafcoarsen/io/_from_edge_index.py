"""Sheaves from PyTorch Geometric's edge lists, which contain every edge in both directions."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from sheafcoarsen._kernels.arrays import scan
from sheafcoarsen._support import checks, ragged
from sheafcoarsen.sheaf import CellularSheaf, MapsLike, flat_maps, stalk_dims, trusted_sheaf


def from_edge_index(
    edge_index: npt.ArrayLike,
    maps: MapsLike,
    vertex_dims: npt.ArrayLike | None = None,
    n_vertices: int | None = None,
) -> CellularSheaf:
    """Build a sheaf from the ``edge_index`` of PyTorch Geometric.

    It contains every edge in both directions. Column k = (u, v) represents the end u of an edge:
    ``maps[k]`` maps the stalk of u to the edge's stalk, and its partner, a column (v, u), has the
    map of v. Columns are paired as follows:

    - if the second half of the columns is the reversed first half, as in
      ``torch.cat([E, E.flip(0)], 1)``, column k with column m + k;
    - otherwise in order of occurrence: a column is paired with the first unpaired column before it
      that is its reverse. So the i-th (u, v) is paired with the i-th (v, u), and of columns (u, u)
      the first with the second, the third with the fourth;
    - but if some (u, u) occurs an odd number of times, every column (v, v), for all v, is a loop by
      itself, as in coalesced graphs and after ``add_self_loops``. The column is both directions of
      its loop: both ends have its map, so the loop has no energy.

    Edges have the orientation and the order of their first columns.
    The energy of a cochain is half the sum of the squared disagreements of all columns.

    Parameters
    ----------
    edge_index : array_like of int, shape (2, 2 m)
        Anything that numpy can convert, such as a tensor on the CPU.
    maps : array_like, shape (2 m, d_e, d_v), or sequence of 2 m 2-D arrays
        ``maps[k]`` has shape (d_e, d_u), u = ``edge_index[0, k]``.
    vertex_dims : int or array_like of int, shape (n,), optional
        Dimensions of the stalks, by default the numbers of columns of the maps. Needed if vertices
        are isolated and stalks differ.
    n_vertices : int, optional
        Number of vertices, ``data.num_nodes``, needed if any are isolated; their stalks have the
        dimension ``vertex_dims``, or that of all maps.

    Returns
    -------
    CellularSheaf

    Raises
    ------
    ValueError
        For a column without its reverse, a vertex beyond ``n_vertices`` or of unknown dimension,
        and whatever :class:`CellularSheaf` rejects.
    TypeError
        For endpoints that are not integers, or maps that are not numbers.

    See Also
    --------
    CellularSheaf.with_columns : new maps for the same columns, which are paired once.

    Examples
    --------
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> edge_index = [[0, 1, 1, 2], [1, 0, 2, 1]]
    >>> F = sc.from_edge_index(edge_index, np.arange(1.0, 5.0).reshape(4, 1, 1))
    >>> F.edges.tolist()
    [[0, 1], [1, 2]]
    >>> sc.coboundary(F).toarray()
    array([[ 1., -2.,  0.],
           [ 0.,  3., -4.]])

    A loop in one column, and two isolated vertices:

    >>> edge_index = [[0, 1, 1], [1, 0, 1]]
    >>> F = sc.from_edge_index(edge_index, np.ones((3, 1, 1)), n_vertices=4)
    >>> sc.energy(F, [3.0, 1.0, 7.0, 8.0])
    4.0
    """
    columns = checks.integer_array("edge_index", edge_index, ndim=2)
    if columns.shape[0] != 2:
        hint = ": transpose it" if columns.shape[1] == 2 else ""
        raise ValueError(f"`edge_index` must have shape (2, 2 m), got {columns.shape}{hint}")
    columns = np.ascontiguousarray(columns.T)  # rows (u, v)
    if (k := checks.first_true((columns < 0).any(axis=1))) is not None:
        raise ValueError(
            f"column {k} of `edge_index` is {tuple(columns[k].tolist())}, but vertices are "
            f"numbered from 0"
        )
    flat, rows, cols = flat_maps(
        "maps", maps, len(columns), "(2 m, d_e, d_v)", "column of `edge_index`"
    )
    first, second = _pairs(columns)
    if (differ := checks.first_true(rows[first] != rows[second])) is not None:
        i, j = int(first[differ]), int(second[differ])
        raise ValueError(
            f"`maps[{i}]` has {rows[i]} rows and `maps[{j}]`, of the same edge "
            f"{tuple(columns[i].tolist())}, has {rows[j]}: both numbers of rows must be the "
            f"dimension of the edge's stalk"
        )
    other = np.empty(len(columns), np.int64)
    other[first], other[second] = second, first
    vertex_dims = _dimensions(columns, maps, cols, vertex_dims, n_vertices)
    remedy = "pass `n_vertices` if all stalks are equal, or `vertex_dims`"
    dims = stalk_dims(columns, cols, cols[other], vertex_dims, ("maps", "maps"), remedy)
    bad, largest = scan(flat)
    starts = ragged.offsets(rows * cols)
    if bad >= 0:
        k = int(np.searchsorted(starts, bad, side="right")) - 1
        raise ValueError(
            f"`maps[{k}]` (column {tuple(columns[k].tolist())}) must be finite, got {flat[bad]}"
        )
    checks.check_range("maps", largest, flat.dtype)
    tail, head = (ragged.blocks(flat, starts, k) for k in (first, second))
    sheaf = trusted_sheaf(columns[first], dims, rows[first], tail, head)
    object.__setattr__(sheaf, "_columns", ragged.read_only(np.stack([first, second])))
    return sheaf


def _dimensions(
    columns: np.ndarray,
    maps: MapsLike,
    cols: np.ndarray,
    vertex_dims: npt.ArrayLike | None,
    n_vertices: int | None,
) -> npt.ArrayLike | None:
    """Return the dimensions of the vertices, or None if they follow from the maps."""
    n = int(columns.max(initial=-1)) + 1
    if n_vertices is not None:
        n_vertices = checks.whole_number("n_vertices", n_vertices, at_least=0)
        if n > n_vertices:
            k = int(np.flatnonzero(columns.max(axis=1) >= n_vertices)[0])
            raise ValueError(
                f"column {k} of `edge_index`, {tuple(columns[k].tolist())}, has a vertex beyond "
                f"`n_vertices` = {n_vertices}"
            )
        n = n_vertices
        if vertex_dims is None:
            sizes = np.unique(cols) if len(cols) else np.array(getattr(maps, "shape", ())[2:])
            if len(sizes) == 1:
                vertex_dims = int(sizes[0])
            elif n > len(np.unique(columns)):
                raise ValueError(
                    f"isolated vertices require `vertex_dims`, because the numbers of columns of "
                    f"`maps`, {sizes.tolist()}, do not determine their dimension"
                )
    if vertex_dims is None:
        return None
    if n_vertices is None and not checks.is_scalar("vertex_dims", vertex_dims):
        return vertex_dims
    checks.vertex_count("n_vertices" if n_vertices is not None else "edge_index", n)
    return checks.dimensions("vertex_dims", vertex_dims, n, "vertex")


def _pairs(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the second column of every edge, sorted by the first column."""
    m, odd = divmod(len(columns), 2)
    if not odd and np.array_equal(columns[:m], columns[m:, ::-1]):
        return np.arange(m), np.arange(m, 2 * m)
    u, v = columns.T
    order = np.lexsort((np.maximum(u, v), np.minimum(u, v)))  # stable: in order of occurrence
    ahead, back, loops = (
        order[chosen[order]]
        for chosen in (u < v, u > v, u == v)  # (u, v), (v, u), (u, u)
    )
    if not np.array_equal(columns[ahead], columns[back, ::-1]):
        unpaired = Counter(map(tuple, columns[:, ::-1].tolist()))
        for k, (i, j) in enumerate(columns.tolist()):
            if i != j and not unpaired[i, j]:
                raise ValueError(
                    f"column {k} of `edge_index`, {(i, j)}, has no reverse: no column {(j, i)} "
                    f"belongs to it; `edge_index` must hold every edge in both directions"
                )
            unpaired[i, j] -= 1
    alone = (np.unique(u[loops], return_counts=True)[1] % 2).any()
    one, other = (loops, loops) if alone else (loops[::2], loops[1::2])
    ends = np.sort([np.append(ahead, one), np.append(back, other)], axis=0)
    first, second = ends[:, np.argsort(ends[0])]
    return first, second
