"""Conversion of user-supplied restriction maps to checked flat data, and random maps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import checks, linalg, ragged, threads
from sheafcoarsen.sheaf.graphs import edge_array

MapsLike: TypeAlias = npt.ArrayLike | Sequence[npt.ArrayLike]
"""An (m, d_e, d_v) array, or m 2-D arrays."""


def flat_maps(
    name: str, maps: MapsLike, m: int | None, shape: str = "(m, d_e, d_v)", item: str = "edge"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ``m`` maps as owned flat data, with the numbers of rows and columns of each map.

    ``shape`` and ``item`` describe the maps in errors; any number is allowed if ``m`` is None.
    """
    if hasattr(maps, "__array__"):  # for example, a PyTorch tensor
        maps = np.asarray(maps)
    if isinstance(maps, np.ndarray) and maps.dtype == object:
        raise TypeError(
            f"`{name}` must be an {shape} array or a list of 2-D arrays, got an object array"
        )
    if isinstance(maps, np.ndarray) and maps.ndim != 3 and not (maps.size == 0 and m == 0):
        raise ValueError(f"`{name}` must have shape {shape}, got {maps.shape}")
    if not isinstance(maps, Sequence | np.ndarray) or isinstance(maps, str | bytes):
        raise TypeError(
            f"`{name}` must be an {shape} array or a sequence of 2-D arrays, "
            f"got {type(maps).__name__}"
        )
    if m is not None and len(maps) != m:
        raise ValueError(f"`{name}` must hold one map per {item}, {m} in all, got {len(maps)}")
    if isinstance(maps, np.ndarray) and maps.ndim == 3:
        array = checks.scalar_array(name, maps)
        rows, cols = (np.full(len(array), size, dtype=np.int64) for size in array.shape[1:])
        return np.array(array, order="C").reshape(-1), rows, cols
    arrays = [checks.scalar_array(f"{name}[{e}]", item) for e, item in enumerate(maps)]
    for e, array in enumerate(arrays):
        if array.ndim != 2:
            raise ValueError(f"`{name}[{e}]` must be 2-D, got shape {array.shape}")
    if not arrays:
        return np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    rows, cols = np.array([array.shape for array in arrays], np.int64).T.copy()
    return np.concatenate([array.reshape(-1) for array in arrays]), rows, cols


def check_endpoints(edges: np.ndarray, n: int) -> None:
    """Raise an error unless all endpoints of edges are below n."""
    if (e := checks.first_true((edges >= n).any(axis=1))) is not None:
        raise ValueError(
            f"`edges[{e}]` = {tuple(edges[e].tolist())} is out of range for {n} vertices "
            f"(0 .. {n - 1})"
        )


def stalk_dims(
    edges: np.ndarray,
    tail_cols: np.ndarray,
    head_cols: np.ndarray,
    vertex_dims: npt.ArrayLike | None,
    names: tuple[str, str] = ("tail_maps", "head_maps"),
    remedy: str = "pass `vertex_dims`",
) -> np.ndarray:
    """Return ``vertex_dims``, or the numbers of columns of the maps, after checking every map.

    ``remedy`` ends the error about vertices without edges.
    """
    if vertex_dims is None:
        ends = edges.reshape(-1)
        n = int(edges.max(initial=-1)) + 1
        if n > len(ends):
            # avoid a huge array: indices are missing, perhaps because names were passed as indices
            touched = np.unique(ends)
            untouched = np.flatnonzero(touched != np.arange(len(touched)))
        else:
            dims = np.full(n, -1, dtype=np.int64)
            cols = np.stack([tail_cols, head_cols], axis=1).reshape(-1)
            dims[ends[::-1]] = cols[::-1]  # the first map of a vertex is written last
            untouched = np.flatnonzero(dims < 0)
        if untouched.size:
            raise ValueError(
                f"vertex {untouched[0]} has no edges, so the maps do not determine its dimension: "
                f"{remedy}"
            )
        said = "in its first map"
    else:
        dims = checks.integer_array("vertex_dims", vertex_dims)
        dims = checks.dimensions("vertex_dims", dims, len(dims), "vertex")
        said = "in `vertex_dims`"
    check_endpoints(edges, len(dims))
    for name, cols, end in ((names[0], tail_cols, 0), (names[1], head_cols, 1)):
        if (e := checks.first_true(cols != dims[edges[:, end]])) is not None:
            v = int(edges[e, end])
            raise ValueError(
                f"`{name}[{e}]` has {cols[e]} columns, but vertex {v} has dimension {dims[v]} "
                f"{said}"
            )
    return dims


def check_unitary(maps: np.ndarray, name: Callable[[int], str]) -> None:
    """Check that matrices have orthonormal columns up to sqrt(eps); errors use ``name(e)``."""
    eye = np.eye(maps.shape[2], dtype=maps.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.abs(maps.conj().swapaxes(1, 2) @ maps - eye).max(axis=(1, 2), initial=0)
    allowed = np.sqrt(linalg.eps_of(maps.dtype))
    if (e := checks.first_true(~(errors <= allowed))) is not None:
        square = maps.shape[1] == maps.shape[2]
        what = "be orthogonal or unitary" if square else "have orthonormal columns"
        raise ValueError(
            f"{name(e)} must {what}, but an entry of U* U - I is {errors[e]:.3g}, above "
            f"{allowed:.1g}"
        )


def flat_arrays(
    edges: npt.ArrayLike,
    tail_data: npt.ArrayLike,
    head_data: npt.ArrayLike,
    vertex_dims: npt.ArrayLike,
    edge_dims: npt.ArrayLike,
    copy: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return edges, vertex dims, edge dims, tail data and head data, after checking their shapes.

    The data are views, or copies if ``copy`` is set; the other arrays are copies.
    """
    edges = edge_array("edges", edges)
    count = int(edges.max(initial=-1)) + 1
    if not checks.is_scalar("vertex_dims", vertex_dims):
        count = len(np.asarray(vertex_dims))
    checks.vertex_count("edges", count)
    dims = checks.dimensions("vertex_dims", vertex_dims, count, "vertex")
    check_endpoints(edges, count)
    rows = checks.dimensions("edge_dims", edge_dims, len(edges), "edge")
    data = []
    for name, given, end in (("tail_data", tail_data, 0), ("head_data", head_data, 1)):
        flat = checks.scalar_array(name, given)
        # as floats, because integers might overflow
        wanted = float((rows.astype(np.float64) * dims[edges[:, end]]).sum())
        if flat.shape != (wanted,):
            raise ValueError(
                f"`{name}` must have shape ({wanted:.0f},), the sum of d_e d_v, got {flat.shape}"
            )
        data.append(flat.copy() if copy else flat.view())
    return edges, dims, rows, data[0], data[1]


# ---------------------------------------------------------------- random maps


MapKind: TypeAlias = Literal["general", "orthogonal", "diagonal"]
"""Kinds of random maps."""


def random_maps(
    rng: np.random.Generator, rows: np.ndarray, cols: np.ndarray, kind: MapKind, dtype: np.dtype
) -> np.ndarray:
    """Return flat random maps of the given shapes; see :meth:`CellularSheaf.random`."""
    starts = ragged.offsets(rows * cols)
    if kind == "general":
        return linalg.normal(rng, int(starts[-1]), dtype)
    data = np.zeros(int(starts[-1]), dtype)
    shapes, which = np.unique(np.stack([rows, cols], axis=1), axis=0, return_inverse=True)
    for s, (r, c) in enumerate(shapes.tolist()):  # loop over shapes, not edges
        here = np.flatnonzero(which.reshape(-1) == s)
        k = min(r, c)
        if kind == "diagonal":
            maps = np.zeros((len(here), r, c), dtype)
            maps[:, np.arange(k), np.arange(k)] = linalg.normal(rng, (len(here), k), dtype)
        else:
            maps = random_orthonormal(rng, len(here), max(r, c), k, dtype)
            maps = maps if r >= c else maps.swapaxes(1, 2)
        data[ragged.range_of_blocks(starts, here)] = maps.reshape(-1)
    return data


@threads.single_threaded_blas()
def random_orthonormal(
    rng: np.random.Generator, count: int, rows: int, cols: int, dtype: np.dtype
) -> np.ndarray:
    """Return ``count`` uniformly distributed matrices with orthonormal columns, cols <= rows."""
    q, r = np.linalg.qr(linalg.normal(rng, (count, rows, cols), dtype))
    diagonal = np.einsum("eii->ei", r)
    return q * (diagonal / np.abs(diagonal))[:, None, :]  # makes the distribution uniform
