"""Comparison of two sheaves: bit for bit, up to rounding, or by graph and stalks only."""

from typing import NamedTuple, TypeAlias

import numpy as np

from sheafcoarsen._support import RESIDUAL_LIMIT, eps_of
from sheafcoarsen.sheaf.properties import Views

SHAPES = ("edges", "vertex_dims", "edge_dims")


def same_array(mine: np.ndarray, other: object) -> bool:
    """Return whether two index arrays are equal; arrays that share all memory are not read."""
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
    """Return whether two sheaves have the same scalar type, graph, stalks, names and map bits."""
    return (
        F.dtype == G.dtype
        and _same_frame(F, G)
        and np.array_equal(F.tail_data.view(np.uint8), G.tail_data.view(np.uint8))
        and np.array_equal(F.head_data.view(np.uint8), G.head_data.view(np.uint8))
    )


def nearly_same(F: Views, G: Views, rtol: float | None) -> bool:
    """Return whether two sheaves have the same graph, stalks and names, and nearly equal maps.

    A map may differ by ``rtol`` times its largest absolute value; by default ``rtol`` is 30 d eps,
    where d is the largest dimension of a stalk and eps belongs to the less precise scalar type.
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
    """Return whether two sheaves are the same except for their maps."""
    same = all(same_array(getattr(F, name), getattr(G, name)) for name in SHAPES)
    return same and F.vertex_labels == G.vertex_labels


def _close(mine: np.ndarray, other: np.ndarray, starts: np.ndarray, rtol: float) -> bool:
    """Return whether each pair of maps agrees, relative to its largest absolute value."""
    filled = np.flatnonzero(np.diff(starts))
    if not filled.size:
        return True
    begins = starts[filled]  # reduceat cannot skip empty maps, so they are left out
    sizes = np.maximum(*(np.maximum.reduceat(np.abs(data), begins) for data in (mine, other)))
    with np.errstate(over="ignore"):
        errors = np.maximum.reduceat(np.abs(mine - other), begins)
    return bool((errors <= rtol * sizes).all())


class Topology(NamedTuple):
    """Edges and stalk dimensions of a sheaf, without its maps."""

    edges: np.ndarray
    vertex_dims: np.ndarray
    edge_dims: np.ndarray

    @classmethod
    def of(cls, sheaf: Views) -> "Topology":
        """Return the topology of a sheaf, sharing its arrays."""
        return cls(sheaf.edges, sheaf.vertex_dims, sheaf.edge_dims)


HasTopology: TypeAlias = "Views | Topology"


def same_topology(F: HasTopology, G: HasTopology) -> bool:
    """Return whether two sheaves have the same edges, in the same order, and the same stalks."""
    return _first_difference(F, G) is None


def check_same_topology(F: HasTopology, sheaf: Views, wanted: str, remedy: str) -> None:
    """Raise an error unless a sheaf has the edges and stalks of F, described by ``wanted``."""
    name = _first_difference(F, sheaf)
    if name is None:
        return
    mine, other = getattr(F, name), getattr(sheaf, name)
    if len(mine) != len(other):
        what = f"there are {len(other)} of them, not {len(mine)}"
    else:
        i = int(np.argmax((mine != other).reshape(len(mine), -1).any(axis=1)))
        what = f"first at index {i}, with {other[i].tolist()} instead of {mine[i].tolist()}"
    raise ValueError(f"`sheaf` must have {wanted}, but its {name} differ, {what}: {remedy}")


def _first_difference(F: HasTopology, G: HasTopology) -> str | None:
    """Return the name of the first field in which two topologies differ, or None."""
    for name in Topology._fields:
        if not same_array(getattr(F, name), getattr(G, name)):
            return name
    return None
