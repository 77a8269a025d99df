"""Frames carried along a tree: candidates for the near kernel, for solvers that want some."""

import numpy as np
import scipy.sparse
from scipy.sparse import csgraph

from sheafcoarsen._kernels import solve as kernels
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf

LEAST = -2000
"""Exponents below this are of no account: 2^LEAST is zero."""


def transported_frames(sheaf: CellularSheaf) -> np.ndarray:
    """Return the identity at one vertex of every component, carried to the others along a tree.

    Along an edge e = (v, w) of a breadth-first tree a frame X_v becomes X_w = F_{w->e}^+ F_{v->e}
    X_v, which the edge does not tell from X_v. Where no holonomy disturbs it, the columns span the
    global sections; near that they are what algebraic multigrid (pyamg) asks for as near-kernel
    candidates ``B``. Where they grow beyond the range of the scalar type, the whole component is
    scaled down.

    Parameters
    ----------
    sheaf : CellularSheaf
        With one size of vertex stalks, d, and one size of edge stalks.

    Returns
    -------
    ndarray, shape (dim_c0, d)

    Raises
    ------
    ValueError
        Stalks of several sizes.

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
        other = np.flatnonzero(dims != dims[:1])
        if other.size:
            raise ValueError(
                f"`sheaf` must have one size of {what} stalks for frames to be carried, but {what} "
                f"{other[0]} has dimension {dims[other[0]]} and {what} 0 has {dims[0]}"
            )
    frames = np.zeros((n, d, d), sheaf.dtype)
    frames[:] = np.eye(d)
    order, parents, edges, component = _tree(sheaf)
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
        largest = np.full(component.max() + 1, exponents.min())
        np.maximum.at(largest, component, exponents)
        most = np.finfo(frames.dtype).maxexp // 2  # so that their squares do not overflow
        beyond = np.maximum(largest - most, 0)[component]
        powers = np.ldexp(1.0, np.maximum(exponents - beyond, LEAST))
        frames *= powers[:, None, None].astype(frames.real.dtype)
    return frames.reshape(n * d, d)


def _tree(sheaf: CellularSheaf) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a breadth-first order, and of each vertex its parent, an edge to it, its component.

    Parent and edge are -1 at the roots.
    """
    n = sheaf.n_vertices
    proper = np.flatnonzero(sheaf.edges[:, 0] != sheaf.edges[:, 1])
    u, v = sheaf.edges[proper].T
    # a root beyond the vertices joins all components
    ends = np.concatenate([u, v]), np.concatenate([v, u])
    graph = scipy.sparse.coo_array((np.ones(2 * len(proper)), ends), shape=(n, n)).tocsr()
    component = csgraph.connected_components(graph, directed=False)[1]
    first = np.unique(component, return_index=True)[1]
    rows = np.concatenate([ends[0], np.full(len(first), n)])
    columns = np.concatenate([ends[1], first])
    whole = scipy.sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(n + 1, n + 1))
    order, parents = csgraph.breadth_first_order(whole.tocsr(), n, directed=True)
    order, parents = order[1:].astype(np.int64), parents[:n].astype(np.int64)
    parents[parents == n] = -1
    edges = np.full(n, -1)
    for child, parent in ((u, v), (v, u)):
        own = parents[child] == parent
        edges[child[own]] = proper[own]
    return order, parents, edges, component
