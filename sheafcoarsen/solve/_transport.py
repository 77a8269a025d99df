"""Transport of vectors by the vector heat method, and of frames along a spanning tree."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import dijkstra

from sheafcoarsen._kernels import solve as kernels
from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import Vertices, checks, labels, linalg, threads
from sheafcoarsen.operators import Factors, laplacian
from sheafcoarsen.partition import relative_strengths
from sheafcoarsen.sections import given_values
from sheafcoarsen.sheaf import (
    CellularSheaf,
    check_sheaf,
    component_labels,
    spanning_forest,
    unit_sheaf,
)
from sheafcoarsen.solve._solver import vertex_at
from sheafcoarsen.solve.eigensolver import unit_mass


def transport(
    sheaf: CellularSheaf,
    vertex: Hashable | Vertices,
    value: npt.ArrayLike,
    t: float | None = None,
    *,
    mass: npt.ArrayLike | None = None,
) -> np.ndarray:
    """Return vectors transported from one or more vertices to all others along shortest paths.

    The vector heat method (Sharp, Soliman, Crane, ACM TOG 2019): heat y = (M + t L)^{-1} b of the
    given vectors b has the direction of parallel transport where t is small. Its length comes from
    two solves with the graph's own Laplacian L_0, for the lengths and for ones at the sources::

        x_v = y_v / norm(y_v) u_v / p_v,  u = (M + t L_0)^{-1} norm(b),  p = (M + t L_0)^{-1} 1_b

    M is the identity, and the length of a path its number of edges, unless a ``mass`` is given. On
    a mesh with cotan weights take the areas of the vertices: lengths are then those on the surface.

    Parameters
    ----------
    sheaf : CellularSheaf
        A connection: both maps of an edge are sqrt(w) times orthogonal (unitary) d x d matrices.
    vertex : int or name, or list or array of k of them
        The vertices at which vectors are given.
    value : array_like, shape (d,), or (k, d) for several vertices
    t : float, optional
        Diffusion time, above 0, in units of M / L. The default is mean(M) / mean(w) with the mean
        of positive weights, about one hop, or longer if heat would otherwise underflow at the
        farthest vertex. A smaller t gives more accurate directions near the vertex; between
        several vertices, a larger t averages lengths more widely.
    mass : array_like, shape (n,), optional
        Positive weights m_v of the vertices, as of :func:`eigenmodes`: M = blockdiag(m_v I).

    Returns
    -------
    ndarray, shape (dim_c0,)
        Zero at vertices that no path of positive weights reaches.

    Raises
    ------
    ValueError, TypeError
        If the maps are not a connection, vertices do not exist, values have the wrong shape, a mass
        or t is not positive, or t is so small that heat does not reach all vertices, or so large
        that rounding errors would exceed about 1e-6.

    See Also
    --------
    harmonic_extension : the smoothest cochain through given values, which does not keep lengths.

    Examples
    --------
    In a cycle whose last edge turns by half a radian, each vertex is reached by the shorter way:

    >>> import sheafcoarsen as sc
    >>> F = sc.gallery.cycle(5, holonomy=0.5)
    >>> sc.transport(F, 0, [2.0, 0.0], t=1e-4).reshape(-1, 2).round(3) + 0.0
    array([[2.   , 0.   ],
           [2.   , 0.   ],
           [2.   , 0.   ],
           [1.755, 0.959],
           [1.755, 0.959]])
    """
    check_sheaf(sheaf)
    several = isinstance(vertex, list | np.ndarray)
    names: Any = vertex if several else [vertex]
    at = labels.vertex_indices("vertex", names, sheaf, once=True)
    n, d = sheaf.n_vertices, int(sheaf.vertex_dims[:1].sum())
    value = checks.scalar_array("value", value)
    shape = (len(at), d) if several else (d,)
    if d == 1 and value.shape == shape[:-1]:  # numbers at stalks of dimension 1
        value = value.reshape(shape)
    if value.shape != shape:
        raise ValueError(
            f"`value` must have shape {shape}, got {value.shape} (a vector a in space has the "
            f"coordinates frames[v].T @ a)"
        )
    given = given_values(sheaf, at, value if several else [value], "value")
    masses, mass_unit = unit_mass(sheaf, mass)
    masses = np.ones(n) if masses is None else masses
    unit, scale = unit_sheaf(sheaf)
    weights = relative_strengths(unit) * unit.largest_entry**2 / math.sqrt(max(d, 1))
    scalar = laplacian(CellularSheaf.constant(sheaf.edges, weight=weights, n_vertices=n))
    L = laplacian(unit)
    _check_connection(sheaf, L, scalar.diagonal())
    ends = sheaf.edges.T.astype(np.int32)  # scipy before 1.15 needs int32
    graph = coo_array((weights, tuple(ends)), (n, n)).tocsr()
    graph.eliminate_zeros()
    hops = dijkstra(graph, directed=False, indices=at, unweighted=True, min_only=True)
    reached = np.isfinite(hops)
    mean = float(weights[weights > 0].mean()) if weights.any() else 1.0
    if t is None:
        farthest = hops[reached].max(initial=0.0)
        shift = mean / masses.mean() / max(1.0, farthest / 300) ** 2
    else:
        t = checks.real_number("t", t)
        shift = 1 / t / scale / scale * mass_unit if t > 0 else 0.0
        if not 0 < shift < np.inf:
            raise ValueError(f"`t` must be positive and in units of M / L, got {t:g}")
    b = np.zeros((n, d), np.result_type(L.dtype, given))
    largest = power_of_two(float(np.abs(given).max(initial=0.0)))
    b[at] = given.reshape(len(at), d) / largest
    sources = np.zeros((n, 2))
    sources[at] = np.stack([np.linalg.norm(b[at], axis=1), np.ones(len(at))], axis=1)
    # below this M / t, rounding errors of L change y by more than 1e-6
    least = 1e-10 * float(scalar.diagonal().mean()) / masses.mean() if n else 0.0
    if t is not None and shift < least:
        raise ValueError(
            f"`t` = {t:g} is so large that rounding errors would exceed about 1e-6: pass at most "
            f"{0.95 * t * shift / least:.2g}"
        )
    while True:
        M = shift * masses
        u, p = Factors(csr_array(scalar + diags_array(M)), 0.0).solve(sources).T
        far = checks.first_true(reached & (p < np.finfo(float).tiny))
        if far is None:
            break
        name = vertex_at(sheaf, far * d)
        if t is not None:
            raise ValueError(
                f"`t` = {t:g} is so small that heat does not reach vertex {name}: increase `t`"
            )
        if shift < least:
            raise ValueError(
                f"heat reaches vertex {name} for no t that rounding permits, because the weights "
                f"of edges differ too much"
            )
        shift /= 16  # edges of very different weights need more than their number suggests
    y = Factors(csr_array(L + diags_array(np.repeat(M, d))), 0.0).solve(b.reshape(-1))
    y = y.reshape(n, d)
    sizes = np.abs(y).max(axis=1, initial=0.0)
    some = reached & (sizes > 0)
    x = np.zeros_like(y)
    x[some] = y[some] / sizes[some, None]
    x[some] *= (u[some] / p[some] * largest / np.linalg.norm(x[some], axis=1))[:, None]
    return x.reshape(-1).astype(np.result_type(sheaf.dtype, given))


def _check_connection(sheaf: CellularSheaf, L: csr_array, degrees: np.ndarray) -> None:
    """Reject stalks of different dimensions, and diagonal blocks of L other than degree * I."""
    d = int(sheaf.vertex_dims[:1].sum())
    holds = bool((sheaf.vertex_dims == d).all())
    if holds and d:
        blocks = L.tobsr((d, d))
        inside = blocks.indices == np.repeat(np.arange(len(degrees)), np.diff(blocks.indptr))
        error = np.abs(blocks.data[inside] - degrees[:, None, None] * np.eye(d)).max(axis=(1, 2))
        size = linalg.RESIDUAL_LIMIT * linalg.eps_of(sheaf.dtype) * d * (np.diff(blocks.indptr) + 1)
        holds = bool((error <= size * degrees).all())
    if not holds:
        raise ValueError(
            "`sheaf` must be a connection, sqrt(w) times orthogonal matrices of one size at both "
            "ends of an edge, the same one at both ends of a loop: construct one with "
            "CellularSheaf.connection"
        )


def transported_frames(sheaf: CellularSheaf) -> np.ndarray:
    """Return frames: the identity at one vertex per component, transported along a spanning tree.

    Along an edge e = (v, w) of a breadth-first tree, a frame X_v becomes X_w = F_{w->e}^+ F_{v->e}
    X_v. Without holonomy the columns span the global sections; with little holonomy they are the
    near-kernel candidates ``B`` that algebraic multigrid (pyamg) needs. If squares of the
    entries in a component would overflow the scalar type, all its frames are scaled down.

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
        if (other := checks.first_true(dims != dims[:1])) is not None:
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
        rank = linalg.zero_level(max(near.shape[1:]), linalg.eps_of(near.dtype), 1.0)
        with threads.single_threaded_blas():
            transports[child] = np.linalg.pinv(near, rcond=rank) @ far
        exponents = np.zeros(n, np.int64)
        kernels.carry_frames(order, parents, transports, frames, exponents)
        largest = np.zeros(component.max() + 1, np.int64)
        np.maximum.at(largest, component, exponents)
        most = np.finfo(frames.dtype).maxexp // 2  # halved: squares of entries must not overflow
        excess = np.maximum(largest - most, 0)[component]
        powers = np.ldexp(1.0, np.maximum(exponents - excess, -2000))  # 2.0**-2000 is 0
        frames *= powers[:, None, None].astype(frames.real.dtype)
    return frames.reshape(n * d, d)
