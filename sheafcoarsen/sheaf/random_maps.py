"""Random restriction maps."""

from typing import Literal, TypeAlias

import numpy as np

from sheafcoarsen._support import offsets, range_of_blocks, single_threaded_blas

MapKind: TypeAlias = Literal["general", "orthogonal", "diagonal"]
"""Kinds of random maps."""


def random_maps(
    rng: np.random.Generator, rows: np.ndarray, cols: np.ndarray, kind: MapKind, dtype: np.dtype
) -> np.ndarray:
    """Return flat data of maps of the given shapes; see :meth:`CellularSheaf.random`."""
    starts = offsets(rows * cols)
    if kind == "general":
        return _normal(rng, int(starts[-1]), dtype)
    data = np.zeros(int(starts[-1]), dtype)
    shapes, which = np.unique(np.stack([rows, cols], axis=1), axis=0, return_inverse=True)
    for s, (r, c) in enumerate(shapes.tolist()):  # one round per shape, not per edge
        here = np.flatnonzero(which.reshape(-1) == s)
        k = min(r, c)
        if kind == "diagonal":
            maps = np.zeros((len(here), r, c), dtype)
            maps[:, np.arange(k), np.arange(k)] = _normal(rng, (len(here), k), dtype)
        elif r >= c:
            maps = random_orthonormal(rng, len(here), r, c, dtype)
        else:
            maps = random_orthonormal(rng, len(here), c, r, dtype).swapaxes(1, 2)
        data[range_of_blocks(starts, here)] = maps.reshape(-1)
    return data


@single_threaded_blas()
def random_orthonormal(
    rng: np.random.Generator, count: int, rows: int, cols: int, dtype: np.dtype
) -> np.ndarray:
    """Return ``count`` uniformly distributed matrices with orthonormal columns, cols <= rows."""
    if count * cols == 0:
        return np.zeros((count, rows, cols), dtype)
    q, r = np.linalg.qr(_normal(rng, (count, rows, cols), dtype))
    diagonal = np.einsum("eii->ei", r)
    return q * (diagonal / np.abs(diagonal))[:, None, :]  # makes the distribution uniform


def _normal(rng: np.random.Generator, shape: int | tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    real = np.zeros(0, dtype).real.dtype
    values = rng.standard_normal(shape).astype(real)
    if dtype.kind == "c":
        values = (values + 1j * rng.standard_normal(shape).astype(real)).astype(dtype)
    return values
