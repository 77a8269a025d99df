"""Whether two sheaves are the same: bit for bit, or but for rounding."""

import numpy as np

from sheafcoarsen._support import RESIDUAL_LIMIT, eps_of
from sheafcoarsen.sheaf.views import Views

SHAPES = ("edges", "vertex_dims", "edge_dims")


def same_array(mine: np.ndarray, other: object) -> bool:
    """Compare two index arrays, at no cost where they are one."""
    if mine is other:
        return True
    if not isinstance(other, np.ndarray) or mine.shape != other.shape:
        return False
    one = (
        mine.dtype == other.dtype
        and mine.strides == other.strides
        and mine.ctypes.data == other.ctypes.data
    )
    return one or np.array_equal(mine, other)


def same_bits(F: Views, G: Views) -> bool:
    """Tell whether scalar type, graph, stalks, names and all bits of the maps are the same."""
    return (
        F.dtype == G.dtype
        and _same_frame(F, G)
        and np.array_equal(F.tail_data.view(np.uint8), G.tail_data.view(np.uint8))
        and np.array_equal(F.head_data.view(np.uint8), G.head_data.view(np.uint8))
    )


def nearly_same(F: Views, G: Views, rtol: float | None) -> bool:
    """Tell whether graph, stalks and names are the same, and every map up to rounding.

    A map may differ by ``rtol`` times its largest modulus; by default ``rtol`` is 30 d eps, where d
    is the largest dimension of a stalk and eps that of the coarser scalar type.
    """
    if not _same_frame(F, G):
        return False
    if rtol is None:
        d = max(int(dims.max(initial=1)) for dims in (F.vertex_dims, F.edge_dims))
        rtol = RESIDUAL_LIMIT * d * max(eps_of(F.dtype), eps_of(G.dtype))
    return _close(F.tail_data, G.tail_data, F.tail_offsets, rtol) and _close(
        F.head_data, G.head_data, F.head_offsets, rtol
    )


def _same_frame(F: Views, G: Views) -> bool:
    """Compare what is not a map."""
    same = all(same_array(getattr(F, name), getattr(G, name)) for name in SHAPES)
    return same and F.vertex_labels == G.vertex_labels


def _close(mine: np.ndarray, other: np.ndarray, starts: np.ndarray, rtol: float) -> bool:
    """Compare maps one by one, each with its own largest modulus."""
    filled = np.flatnonzero(np.diff(starts))
    if not filled.size:
        return True
    begins = starts[filled]  # the maps between two of them are empty
    sizes = np.maximum(*(np.maximum.reduceat(np.abs(data), begins) for data in (mine, other)))
    with np.errstate(over="ignore"):
        errors = np.maximum.reduceat(np.abs(mine - other), begins)
    return bool((errors <= rtol * sizes).all())
