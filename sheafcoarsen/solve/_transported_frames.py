"""Frames transported along a spanning tree: near-kernel candidates for other solvers."""

import numpy as np

from sheafcoarsen._kernels import solve as kernels
from sheafcoarsen._support import first_true
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, component_labels, spanning_forest


def transported_frames(sheaf: CellularSheaf) -> np.ndarray:
    """Return frames: the identity at one vertex per component, transported along a spanning tree.

    Along an edge e = (v, w) of a breadth-first tree, a frame X_v becomes X_w = F_{w->e}^+ F_{v->e}
    X_v. Without holonomy the columns span the global sections; with little holonomy they are the
    near-kernel candidates ``B`` that algebraic multigrid (pyamg) needs. If frames of a component
    would overflow the scalar type, all frames of the component are scaled down.

    Parameters
    ----------
    sheaf : CellularSheaf
        All vertex stalks have the same dimension d, and all edge stalks have the same dimension.

    Returns
    -------
    ndarray, shape (dim_c0, d)

    Raises
    ------
    ValueError
        If dimensions of vertex stalks or of edge stalks differ.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.gallery.bundle(nx.grid_2d_graph(10, 10), dim=3, seed=0)
    >>> B = sc.transported_frames(F)
    >>> B.shape, bool(abs(sc.coboundary(F) @ B).max() < 1e-13)
    ((300, 3), True)
    """
    check_sheaf(sheaf)
    n = sheaf.n_vertices
    if n == 0:
        return np.zeros((0, 0), sheaf.dtype)
    d = int(sheaf.vertex_dims[0])
    for what, dims in (("vertex", sheaf.vertex_dims), ("edge", sheaf.edge_dims)):
        if (other := first_true(dims != dims[:1])) is not None:
            raise ValueError(
                f"`sheaf` must have {what} stalks of the same dimension, but {what} "
                f"{other} has dimension {dims[other]} and {what} 0 has {dims[0]}"
            )
    frames = np.zeros((n, d, d), sheaf.dtype)
    frames[:] = np.eye(d)
    component = component_labels(n, sheaf.edges)
    roots = np.unique(component, return_index=True)[1]
    order, parents, edges = spanning_forest(n, sheaf.edges, roots)
    child = np.flatnonzero(parents >= 0)
    if child.size and d and sheaf.edge_dims[0]:
        tails, heads = (
            data.reshape(sheaf.n_edges, -1, d)[edges[child]]
            for data in (sheaf.tail_data, sheaf.head_data)
        )
        at_head = (sheaf.edges[edges[child], 1] == child)[:, None, None]
        near, far = np.where(at_head, heads, tails), np.where(at_head, tails, heads)
        transports = np.zeros_like(frames)
        transports[child] = np.linalg.pinv(near) @ far
        exponents = np.zeros(n, np.int64)
        kernels.carry_frames(order, parents, transports, frames, exponents)
        largest = np.zeros(component.max() + 1, np.int64)
        np.maximum.at(largest, component, exponents)
        most = np.finfo(frames.dtype).maxexp // 2  # halved: squares of entries must not overflow
        excess = np.maximum(largest - most, 0)[component]
        powers = np.ldexp(1.0, np.maximum(exponents - excess, -2000))  # 2.0**-2000 is 0
        frames *= powers[:, None, None].astype(frames.real.dtype)
    return frames.reshape(n * d, d)
