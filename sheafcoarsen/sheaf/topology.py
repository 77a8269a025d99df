"""Whether two sheaves differ in their maps alone: one graph, the same stalks."""

from typing import NamedTuple, TypeAlias

import numpy as np

from sheafcoarsen.sheaf.comparison import same_array
from sheafcoarsen.sheaf.container import CellularSheaf


class Topology(NamedTuple):
    """The arrays of a sheaf that say all but its maps, to be kept without the maps."""

    edges: np.ndarray
    vertex_dims: np.ndarray
    edge_dims: np.ndarray

    @classmethod
    def of(cls, sheaf: CellularSheaf) -> "Topology":
        """Return the topology of a sheaf, whose arrays are shared."""
        return cls(sheaf.edges, sheaf.vertex_dims, sheaf.edge_dims)


HasTopology: TypeAlias = CellularSheaf | Topology


def same_topology(F: HasTopology, G: HasTopology) -> bool:
    """Tell whether both have the same edges, in the same order, and the same stalks."""
    return _first_difference(F, G) is None


def check_same_topology(F: HasTopology, sheaf: CellularSheaf, wanted: str, remedy: str) -> None:
    """Refuse a sheaf with other edges or stalks than F's, which the message calls ``wanted``."""
    name = _first_difference(F, sheaf)
    if name is None:
        return
    mine, other = getattr(F, name), getattr(sheaf, name)
    if len(mine) != len(other):
        what = f"there are {len(other)} of them, not {len(mine)}"
    else:
        i = int(np.argmax((mine != other).reshape(len(mine), -1).any(axis=1)))
        what = f"first at index {i}, where {other[i].tolist()} stands for {mine[i].tolist()}"
    raise ValueError(f"`sheaf` must have {wanted}, but its {name} differ, {what}: {remedy}")


def _first_difference(F: HasTopology, G: HasTopology) -> str | None:
    """Return the first field of the topology in which they differ."""
    for name in Topology._fields:
        if not same_array(getattr(F, name), getattr(G, name)):
            return name
    return None
