"""Flat maps of a caller, checked against the graph and the stalks that they belong to."""

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import dimensions, is_scalar, scalar_array, vertex_count
from sheafcoarsen.sheaf.graphs import edge_array
from sheafcoarsen.sheaf.maps import check_endpoints


def flat_arrays(
    edges: npt.ArrayLike,
    tail_data: npt.ArrayLike,
    head_data: npt.ArrayLike,
    vertex_dims: npt.ArrayLike,
    edge_dims: npt.ArrayLike,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return edges, vertex dims, edge dims, tail data and head data, as arrays of our own."""
    edges = edge_array("edges", edges)
    count = int(edges.max(initial=-1)) + 1
    if not is_scalar("vertex_dims", vertex_dims):
        count = len(np.asarray(vertex_dims))
    vertex_count("edges", count)
    dims = dimensions("vertex_dims", vertex_dims, count, "vertex")
    check_endpoints(edges, len(dims))
    rows = dimensions("edge_dims", edge_dims, len(edges), "edge")
    data = []
    for name, given, end in (("tail_data", tail_data, 0), ("head_data", head_data, 1)):
        flat = scalar_array(name, given).copy()
        # as floats, because integers might wrap around
        wanted = float((rows.astype(np.float64) * dims[edges[:, end]]).sum())
        if flat.shape != (wanted,):
            raise ValueError(
                f"`{name}` must have shape ({wanted:.0f},), the sum of d_e d_v, got {flat.shape}"
            )
        data.append(flat)
    return edges, dims, rows, data[0], data[1]
