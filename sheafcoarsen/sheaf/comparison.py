"""Comparison of two sheaves: by graph and stalks, or map by map up to rounding."""

from typing import NamedTuple, TypeAlias

import numpy as np

from sheafcoarsen.sheaf.properties import Views


class Topology(NamedTuple):
    """Edges and stalk dimensions of a sheaf, without its maps."""

    edges: np.ndarray
    vertex_dims: np.ndarray
    edge_dims: np.ndarray


HasTopology: TypeAlias = Views | Topology


def same_array(mine: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two index arrays are equal; an array is not compared with itself."""
    return mine is other or np.array_equal(mine, other)


def same_topology(F: HasTopology, G: HasTopology) -> bool:
    """Return whether two sheaves have the same edges, in the same order, and the same stalks."""
    return all(same_array(getattr(F, name), getattr(G, name)) for name in Topology._fields)


def check_same_topology(F: HasTopology, sheaf: Views, wanted: str, remedy: str) -> None:
    """Raise an error unless a sheaf has the edges and stalks of F, described by ``wanted``."""
    for name in Topology._fields:
        mine, other = getattr(F, name), getattr(sheaf, name)
        if same_array(mine, other):
            continue
        if len(mine) != len(other):
            what = f"there are {len(other)} of them, not {len(mine)}"
        else:
            i = int(np.argmax((mine != other).reshape(len(mine), -1).any(axis=1)))
            what = f"first at index {i}, with {other[i].tolist()} instead of {mine[i].tolist()}"
        raise ValueError(f"`sheaf` must have {wanted}, but its {name} differ, {what}: {remedy}")


def close_maps(mine: np.ndarray, other: np.ndarray, starts: np.ndarray, rtol: float) -> bool:
    """Return whether each pair of maps agrees, relative to its largest absolute value."""
    filled = np.flatnonzero(np.diff(starts))
    if not filled.size:
        return True
    begins = starts[filled]  # reduceat cannot skip empty maps, so they are left out
    sizes = np.maximum(*(np.maximum.reduceat(np.abs(data), begins) for data in (mine, other)))
    with np.errstate(over="ignore"):
        errors = np.maximum.reduceat(np.abs(mine - other), begins)
    return bool((errors <= rtol * sizes).all())
