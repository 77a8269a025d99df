"""Restriction maps as a caller gives them, read as flat data; and random ones."""

from collections.abc import Sequence

import numpy as np

from sheafcoarsen._support import dimensions, integer_array, offsets, ranges, scalar_array


def flat_maps(name: str, maps, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (flat data of our own, rows per map, columns per map)."""
    if hasattr(maps, "__array__"):  # a tensor, too
        maps = np.asarray(maps)
    if isinstance(maps, np.ndarray) and maps.dtype == object:
        raise TypeError(
            f"`{name}` must be an (m, d_e, d_v) array or a list of 2-D arrays, got an object array"
        )
    if isinstance(maps, np.ndarray) and maps.ndim == 3:
        array = scalar_array(name, maps)
        if array.shape[0] != m:
            raise ValueError(
                f"`{name}` must hold one map per edge, {m} in all, got {array.shape[0]}"
            )
        rows, cols = (np.full(m, size, dtype=np.int64) for size in array.shape[1:])
        return np.array(array, order="C").reshape(-1), rows, cols
    if isinstance(maps, np.ndarray) and not (maps.size == 0 and m == 0):
        raise ValueError(f"`{name}` must have shape (m, d_e, d_v), got {maps.shape}")
    if not isinstance(maps, Sequence | np.ndarray) or isinstance(maps, str | bytes):
        raise TypeError(
            f"`{name}` must be an (m, d_e, d_v) array or a sequence of 2-D arrays, got {type(maps).__name__}"
        )
    if len(maps) != m:
        raise ValueError(f"`{name}` must hold one map per edge, {m} in all, got {len(maps)}")
    arrays = [scalar_array(f"{name}[{e}]", item) for e, item in enumerate(maps)]
    for e, array in enumerate(arrays):
        if array.ndim != 2:
            raise ValueError(f"`{name}[{e}]` must be 2-D, got shape {array.shape}")
    if not arrays:
        return np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    shapes = np.array([array.shape for array in arrays], dtype=np.int64)
    return (
        np.concatenate([array.reshape(-1) for array in arrays]),
        shapes[:, 0].copy(),
        shapes[:, 1].copy(),
    )


def check_endpoints(edges, n: int) -> None:
    beyond = np.flatnonzero((edges >= n).any(axis=1))
    if beyond.size:
        e = int(beyond[0])
        raise ValueError(
            f"`edges[{e}]` = {tuple(edges[e].tolist())} is out of range for {n} vertices (0 .. {n - 1})"
        )


def stalk_dims(
    edges, tail_cols, head_cols, vertex_dims, names=("tail_maps", "head_maps")
) -> np.ndarray:
    """Return the stalk dimensions, from ``vertex_dims`` or read off the maps, and check every map against them."""
    if vertex_dims is None:
        ends = edges.reshape(-1)
        n = int(edges.max(initial=-1)) + 1
        if (
            n > len(ends)
        ):  # vertices are missing, perhaps because names were taken for numbers: no array of that length
            touched = np.unique(ends)
            untouched = np.flatnonzero(touched != np.arange(len(touched)))
        else:
            dims = np.full(n, -1, dtype=np.int64)
            cols = np.stack([tail_cols, head_cols], axis=1).reshape(-1)
            dims[ends[::-1]] = cols[::-1]  # the first map that touches a vertex decides
            untouched = np.flatnonzero(dims < 0)
        if untouched.size:
            raise ValueError(
                f"vertex {untouched[0]} touches no edge, so its dimension cannot be read off the maps: pass `vertex_dims`"
            )
        said = "by the first map that touches it"
    else:
        dims = integer_array("vertex_dims", vertex_dims)
        dims = dimensions("vertex_dims", dims, len(dims), "vertex")
        said = "by `vertex_dims`"
    check_endpoints(edges, len(dims))
    for name, cols, end in ((names[0], tail_cols, 0), (names[1], head_cols, 1)):
        differ = np.flatnonzero(cols != dims[edges[:, end]])
        if differ.size:
            e = int(differ[0])
            v = int(edges[e, end])
            raise ValueError(
                f"`{name}[{e}]` has {cols[e]} columns, but vertex {v} has dimension {dims[v]} {said}"
            )
    return dims


def _normal(rng, shape, dtype) -> np.ndarray:
    real = np.zeros(0, dtype).real.dtype
    values = rng.standard_normal(shape).astype(real)
    if dtype.kind == "c":
        values = (values + 1j * rng.standard_normal(shape).astype(real)).astype(dtype)
    return values


def random_maps(rng, rows, cols, kind: str, dtype) -> np.ndarray:
    starts = offsets(rows * cols)
    if kind == "general":
        return _normal(rng, int(starts[-1]), dtype)
    data = np.zeros(int(starts[-1]), dtype)
    shapes, which = np.unique(np.stack([rows, cols], axis=1), axis=0, return_inverse=True)
    for s, (r, c) in enumerate(shapes.tolist()):  # one round per shape, not per edge
        here = np.flatnonzero(which.reshape(-1) == s)
        k = min(r, c)
        maps = np.zeros((len(here), r, c), dtype)
        if kind == "diagonal":
            maps[:, np.arange(k), np.arange(k)] = _normal(rng, (len(here), k), dtype)
        elif k:
            q, t = np.linalg.qr(_normal(rng, (len(here), max(r, c), k), dtype))
            diagonal = np.einsum("eii->ei", t)
            q = q * (diagonal / np.abs(diagonal))[:, None, :]  # makes the distribution uniform
            maps = q if r >= c else q.swapaxes(1, 2)
        data[ranges(starts[:-1][here], np.full(len(here), r * c))] = maps.reshape(-1)
    return data
