"""Bundles with known sections and spectrum: trivial ones in random bases, and cycles."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import Seed, checks, threads
from sheafcoarsen.sheaf import (
    CellularSheaf,
    GraphLike,
    check_unitary,
    graph_arrays,
    random_orthonormal,
)


@threads.single_threaded_blas()
def bundle(graph: GraphLike, dim: int, noise: float = 0.0, seed: Seed = None) -> CellularSheaf:
    """Return a constant sheaf in random orthogonal bases g_v of the stalks, with optional noise.

    The transports are ``U_e = g_u g_v^T`` for e = (u, v), so that ``x_v = g_v c`` is a section for
    every c: without noise, H^0 has dimension ``dim`` for every component, and the spectrum is that
    of ``CellularSheaf.constant(graph, dim)``. Noise multiplies each transport by a random rotation
    ``exp(noise K)``, so it remains orthogonal.

    Parameters
    ----------
    graph : networkx Graph or MultiGraph, symmetric scipy sparse adjacency, or (m, 2) integer array
        Weights as in :meth:`CellularSheaf.constant`.
    dim : int
        Dimension of every stalk.
    noise : float
        At least 0. K is skew with standard normal entries, so in dimension 2 ``noise`` is the
        standard deviation of the angle; in dimension 1, where no small rotation exists, it has no
        effect.
    seed : None, int or numpy Generator
        For a given seed the bases g_v do not depend on the noise.

    Returns
    -------
    CellularSheaf

    Raises
    ------
    ValueError, TypeError
        If the noise is negative or not finite, or the graph is invalid.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> from sheafcoarsen import gallery
    >>> F = gallery.bundle(nx.cycle_graph(3), 2, seed=5)
    >>> F.edges.tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> around = F.head_map(0) @ F.head_map(2) @ F.head_map(1).T  # 0 from 1 from 2 from 0
    >>> np.allclose(around, np.eye(2))
    True
    """
    dim = checks.whole_number("dim", dim, at_least=0)
    noise = checks.real_number("noise", noise)
    if not 0 <= noise < np.inf:
        raise ValueError(f"`noise` must be finite and at least 0, got {noise}")
    arrays = graph_arrays(graph)
    rng = checks.random_generator("seed", seed)
    count = max(arrays.n_vertices, len(arrays.edges), 1)
    with checks.memory_for_entries("dim", count * dim * dim):
        gauge = random_orthonormal(rng, arrays.n_vertices, dim, dim, np.dtype(float))
        tails, heads = arrays.edges.T
        transports = gauge[tails] @ gauge[heads].swapaxes(1, 2)
        if noise > 0 and transports.size:
            A = rng.standard_normal(transports.shape)
            K = (A - A.swapaxes(1, 2)) / np.sqrt(2)
            # eigenvectors of the Hermitian -iK make exp(noise K) orthogonal to rounding
            w, V = np.linalg.eigh(-1j * K)
            rotations = (V * np.exp(1j * noise * w)[:, None, :]) @ V.conj().swapaxes(1, 2)
            transports = transports @ rotations.real
        return CellularSheaf.connection(graph, transports)


def cycle(n: int, holonomy: npt.ArrayLike) -> CellularSheaf:
    """Return a cycle with identity transports, except for the holonomy on the last edge.

    H^0 consists of the fixed vectors of the holonomy H, so its dimension is dim ker(I - H).

    Parameters
    ----------
    n : int
        Number of vertices and of edges ``0 -> 1 -> ... -> n - 1 -> 0``, at least 1. For n = 1 the
        edge is a loop, for n = 2 the edges are parallel.
    holonomy : float or array_like, shape (d, d)
        The angle of a plane rotation, or an orthogonal or unitary matrix.

    Returns
    -------
    CellularSheaf

    Raises
    ------
    ValueError, TypeError
        If the holonomy is neither a finite angle nor an orthogonal or unitary matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from sheafcoarsen import gallery
    >>> F = gallery.cycle(4, np.pi / 3)
    >>> F.edges.tolist()
    [[0, 1], [1, 2], [2, 3], [3, 0]]
    >>> F.head_map(3).round(4)
    array([[ 0.5  , -0.866],
           [ 0.866,  0.5  ]])
    """
    n = checks.whole_number("n", n, at_least=1)
    checks.vertex_count("n", n)
    H = checks.scalar_array("holonomy", holonomy)
    if H.ndim == 0:
        if H.dtype.kind == "c":
            message = f"`holonomy` must be a real angle or a matrix, got {holonomy!r}"
            raise TypeError(f"{message}; for a phase z pass [[z]]")
        angle = float(checks.finite("`holonomy`", H))
        c, s = np.cos(angle), np.sin(angle)
        H = np.array([[c, -s], [s, c]])
    if H.ndim != 2 or H.shape[0] != H.shape[1]:
        raise ValueError(f"`holonomy` must be an angle or a square matrix, got shape {H.shape}")
    check_unitary(checks.finite("`holonomy`", H)[None], lambda _: "`holonomy`")
    with checks.memory_for_entries("n", n * H.size, H.itemsize):
        vertices = np.arange(n)
        transports = np.tile(np.eye(len(H), dtype=H.dtype), (n, 1, 1))
        transports[-1] = H
        edges = np.stack([vertices, (vertices + 1) % n], axis=1)
        return CellularSheaf.connection(edges, transports)
