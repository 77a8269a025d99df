"""What is refused where a sheaf is asked for, and a sheaf of flat data that is checked."""

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen.sheaf._cellular_sheaf import CellularSheaf, trusted_sheaf
from sheafcoarsen.sheaf.maps import edge_arrays, flat_arrays


def check_sheaf(value: object, name: str = "sheaf") -> CellularSheaf:
    """Refuse anything but a sheaf, with the way from what came to one."""
    if isinstance(value, CellularSheaf):
        return value
    remedy = ""
    if isinstance(getattr(value, "sheaf", None), CellularSheaf):
        remedy = ": it has one in its attribute `sheaf`"
    elif (
        isinstance(value, nx.Graph) or scipy.sparse.issparse(value) or isinstance(value, np.ndarray)
    ):
        remedy = ": CellularSheaf.constant(graph) makes one"
    raise TypeError(f"`{name}` must be a CellularSheaf, got {type(value).__name__}{remedy}")


def checked_sheaf(
    edges: npt.ArrayLike,
    tail_data: npt.ArrayLike,
    head_data: npt.ArrayLike,
    vertex_dims: npt.ArrayLike,
    edge_dims: npt.ArrayLike,
    vertex_labels: tuple | None = None,
) -> CellularSheaf:
    """Build of what a file holds: all is checked but the range of the maps.

    A coarse sheaf may be beyond the range that a caller's own maps must keep.
    """
    arrays = flat_arrays(edges, tail_data, head_data, vertex_dims, edge_dims)
    sheaf = trusted_sheaf(*arrays, vertex_labels)
    sheaf._check_finite()
    return sheaf


def checked_edges(
    edges: npt.ArrayLike,
    tail_data: npt.ArrayLike,
    head_data: npt.ArrayLike,
    vertex_dims: np.ndarray,
    edge_dims: npt.ArrayLike,
) -> CellularSheaf:
    """Build of some edges on vertices whose dimensions are right; maps are not copied."""
    edges, rows, tail, head = edge_arrays(edges, tail_data, head_data, vertex_dims, edge_dims)
    sheaf = trusted_sheaf(edges, vertex_dims, rows, tail.view(), head.view())
    sheaf._check_finite()
    return sheaf
