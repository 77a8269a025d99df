"""Points in space: checked, scaled so that their squares are safe, joined to pairs."""

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support.arrays import scalar_array


def point_array(value: npt.ArrayLike, columns: int | None = None) -> np.ndarray:
    """Return finite real points, shape (n, d); ``columns`` fixes d."""
    points = scalar_array("points", value)
    if points.dtype.kind == "c":
        raise TypeError(f"`points` must be real, got dtype {points.dtype}")
    if points.ndim != 2 or points.shape[1] == 0 or columns not in (None, points.shape[1]):
        raise ValueError(f"`points` must have shape (n, {columns or 'd'}), got {points.shape}")
    bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if bad.size:
        raise ValueError(f"`points` must be finite, got {points[bad[0]].tolist()} in row {bad[0]}")
    return points


def scaled_points(points: np.ndarray) -> tuple[np.ndarray, int]:
    """Return float64 points over the power of two that makes squares safe, and its exponent."""
    _, exponent = np.frexp(np.abs(points).max(initial=0))
    return np.ldexp(points.astype(np.float64), -int(exponent)), int(exponent)


def unique_pairs(u: np.ndarray, v: np.ndarray, n: int) -> np.ndarray:
    """Return each unordered pair once, smaller vertex first, sorted."""
    return pairs_of_keys(np.unique(pair_keys(u, v, n)), n)


def pair_keys(u: np.ndarray, v: np.ndarray, n: int) -> np.ndarray:
    """Return one integer for each unordered pair of vertices, in the order of the pairs."""
    return np.minimum(u, v) * n + np.maximum(u, v)


def pairs_of_keys(keys: np.ndarray, n: int) -> np.ndarray:
    """Return the pairs that `pair_keys` stands for, smaller vertex first."""
    return np.stack(np.divmod(keys, max(n, 1)), axis=1).astype(np.int64)
