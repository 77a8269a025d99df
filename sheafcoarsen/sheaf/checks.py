"""Checks that an argument is a sheaf, and construction of sheaves from unchecked flat data."""

from __future__ import annotations

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen.sheaf._cellular_sheaf import CellularSheaf, trusted_sheaf
from sheafcoarsen.sheaf.maps import edge_arrays, flat_arrays


def check_sheaf(value: object, name: str = "sheaf") -> CellularSheaf:
    """Check that a value is a sheaf, and return it; the error suggests a fix."""
    if isinstance(value, CellularSheaf):
        return value
    remedy = ""
    if isinstance(getattr(value, "sheaf", None), CellularSheaf):
        remedy = ": pass its attribute `sheaf`"
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
    """Return the sheaf that a file describes, after checking everything but the maps' range.

    A coarse sheaf may exceed the range that is allowed for user-supplied maps.
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
    """Return the sheaf on checked edges and valid vertex dimensions, without copying its maps."""
    edges, rows, tail, head = edge_arrays(edges, tail_data, head_data, vertex_dims, edge_dims)
    sheaf = trusted_sheaf(edges, vertex_dims, rows, tail.view(), head.view())
    sheaf._check_finite()
    return sheaf
