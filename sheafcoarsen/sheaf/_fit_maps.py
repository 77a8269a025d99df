"""Sheaves fitted to signals: each edge gets maps of minimum energy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import checks, linalg, ragged, tables, threads, warned
from sheafcoarsen.exceptions import SingularProblemWarning, TiedModesWarning
from sheafcoarsen.sheaf._cellular_sheaf import CellularSheaf, trusted_sheaf
from sheafcoarsen.sheaf.graphs import edge_array
from sheafcoarsen.sheaf.maps import MapsLike, check_endpoints, flat_maps
from sheafcoarsen.sheaf.properties import edge_subset


def fit_connection(X: npt.ArrayLike, edges: npt.ArrayLike) -> CellularSheaf:
    """Return the connection of minimum energy for given signals on given edges.

    The tail map of an edge (u, v) is the orthogonal (unitary) matrix O_e that minimizes
    norm(O X_u - X_v)_F, and the head map is the identity. This is the orthogonal Procrustes
    problem: O_e = U V*, where X_v X_u* = U S V* is a singular value decomposition.

    Parameters
    ----------
    X : array_like, shape (n, d, s)
        s signals on n stalks of dimension d, real or complex, at any scale at each vertex.
    edges : array_like of int, shape (m, 2)
        Without loops. For an unknown graph see the notes of :func:`fit_maps`.

    Returns
    -------
    CellularSheaf
        On the given edges, in the scalar type of X.

    Raises
    ------
    ValueError, TypeError
        Signals of another shape or not finite, vertices out of range, a loop.

    Warns
    -----
    SingularProblemWarning
        X_v X_u* of an edge is singular, as with fewer than d signals or with signals at its
        ends that are uncorrelated in some direction, so O_e is not unique.

    Examples
    --------
    Sections of a bundle, taken as signals, determine its transports:

    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.gallery.bundle(nx.cycle_graph(5), 2, seed=0)
    >>> G = sc.fit_connection(sc.global_sections(F).basis.reshape(5, 2, 2), F.edges)
    >>> bool(abs(G.tail_map(0) - F.head_map(0).T).max() < 1e-14)
    True
    """
    signals, dims, dtype, edges = _signals_and_edges(checks.scalar_array("X", X), edges)
    n, d, s, m = len(dims), int(dims[0]), signals.shape[1], len(edges)
    transports, unique = np.empty((m, d, d), dtype), np.empty(m, bool)
    with threads.single_threaded_blas():
        # signals and matrices of one part fit into the cache
        for part in np.array_split(np.arange(m), 2 * d * max(s, d) * m // 2**18 + 1):
            A, B = (_scaled(signals.reshape(n, d, s)[edges[part, end]])[0] for end in (0, 1))
            U, sigma, V = np.linalg.svd(B @ A.conj().swapaxes(1, 2))
            transports[part] = U @ V
            # all entries of A and B are below 1
            unique[part] = (sigma > linalg.zero_level(d * s, linalg.eps_of(dtype), 1.0)).all(axis=1)
    _warn(
        SingularProblemWarning,
        edges[~unique],
        f"have orthogonal maps that are not unique, because X_v X_u* does not have rank {d}: an "
        f"end has fewer than {d} independent signals, or in some direction signals at the two "
        f"ends are uncorrelated, where any rotation has the same energy",
    )
    heads = np.tile(np.eye(d, dtype=dtype), (m, 1, 1))
    return trusted_sheaf(edges, dims, np.full(m, d), transports.reshape(-1), heads.reshape(-1))


def fit_maps(
    X: MapsLike, edges: npt.ArrayLike, edge_dim: int, n_edges: int | None = None
) -> CellularSheaf:
    """Fit maps of minimum energy to signals, so that each [A | -B] has orthonormal rows.

    Let A be the tail map and B the head map of an edge, such that the ``edge_dim`` rows of
    [A | -B] are orthonormal. The energy norm(A X_u - B X_v)_F^2 is minimal if the rows are the
    lowest eigenvectors of the Gram matrix of the stacked signals [X_u; X_v]. These maps are unique
    up to a rotation of the edge's stalk.

    Parameters
    ----------
    X : array_like, shape (n, d, s), or sequence of n arrays of shape (d_v, s)
        s signals on the stalks of n vertices, real or complex.
    edges : array_like of int, shape (m, 2)
        Candidate edges, without loops.
    edge_dim : int
        Dimension of every edge's stalk, at most d_u + d_v.
    n_edges : int, optional
        Number of edges to keep, by default all. Those of lowest energy are kept, which minimizes
        the total energy.

    Returns
    -------
    CellularSheaf
        In the scalar type of X; kept edges are in the order given.

    Raises
    ------
    ValueError, TypeError
        As in :func:`fit_connection`; more rows than d_u + d_v; more edges to keep than given.

    Warns
    -----
    SingularProblemWarning
        There are too few signals: at a kept edge more than ``edge_dim`` rows have no energy.
    TiedModesWarning
        At a kept edge the last eigenvalue used equals the next one, or a kept edge has the same
        energy as one that is not kept.

    Notes
    -----
    If the graph is unknown and all stalks have the same dimension, nearest neighbours of the
    signals can be the candidates::

        near = scipy.spatial.cKDTree(X.reshape(len(X), -1)).query(X.reshape(len(X), -1), k + 1)[1]
        pairs = np.stack([np.repeat(np.arange(len(X)), k), near[:, 1:].ravel()], axis=1)
        edges = np.unique(np.sort(pairs, axis=1), axis=0)

    This compares coordinates at different vertices. If every stalk has its own frame, compare the
    Gram matrices X_v* X_v, which do not depend on it, or pass all pairs as candidates.

    Examples
    --------
    The edges of a bundle on a cycle, selected among all pairs of vertices:

    >>> import itertools
    >>> import networkx as nx
    >>> import numpy as np
    >>> import sheafcoarsen as sc
    >>> F = sc.gallery.bundle(nx.cycle_graph(6), 2, seed=0)
    >>> signals = sc.diffuse(F, np.random.default_rng(0).standard_normal((12, 50)), 0.5)
    >>> pairs = list(itertools.combinations(range(6), 2))
    >>> sc.fit_maps(signals.reshape(6, 2, 50), pairs, edge_dim=2, n_edges=6).edges.tolist()
    [[0, 1], [0, 5], [1, 2], [2, 3], [3, 4], [4, 5]]
    """
    signals, dims, dtype, edges = _signals_and_edges(X, edges)
    s, eps, first = signals.shape[1], linalg.eps_of(dtype), ragged.offsets(dims)
    rows = checks.whole_number("edge_dim", edge_dim, at_least=1)
    m, ends = len(edges), dims[edges]
    if (e := checks.first_true(ends.sum(axis=1) < rows)) is not None:
        raise ValueError(
            f"`edge_dim` must be at most d_u + d_v for orthonormal rows, got {rows} for "
            f"`edges[{e}]` = {tuple(edges[e].tolist())}, whose stalks have dimensions "
            f"{ends[e, 0]} and {ends[e, 1]}"
        )
    kept = m if n_edges is None else checks.whole_number("n_edges", n_edges, at_least=0)
    if kept > m:
        raise ValueError(f"`n_edges` must be at most the number of `edges`, {m}, got {kept}")
    starts = [ragged.offsets(rows * ends[:, end]) for end in (0, 1)]
    tail, head = (np.empty(int(begins[-1]), dtype) for begins in starts)
    # root of the energy, and its rounding error, in units of 2**exponents
    energy, rounding, exponents = np.empty(m), np.empty(m), np.zeros(m, int)
    few, tied = np.zeros((2, m), bool)
    shapes, shape_of = np.unique(ends, axis=0, return_inverse=True)
    with threads.single_threaded_blas():
        for k, (d, d_head) in enumerate(shapes.tolist()):
            same, N = np.flatnonzero(shape_of.reshape(-1) == k), d + d_head
            # signals and matrices of one part fit into the cache
            for part in np.array_split(same, max(s, N) * N * len(same) // 2**18 + 1):
                stacked = ragged.range_of_blocks(first, edges[part].reshape(-1)).reshape(-1, N)
                Z, exponents[part] = _scaled(signals[stacked])
                values, vectors = np.linalg.eigh(Z @ Z.conj().swapaxes(1, 2))
                C = vectors[:, :, :rows].conj().swapaxes(1, 2)
                tail[ragged.range_of_blocks(starts[0], part)] = C[:, :, :d].reshape(-1)
                head[ragged.range_of_blocks(starts[1], part)] = -C[:, :, d:].reshape(-1)
                # more accurate than the eigenvalues if these are small
                energy[part] = np.linalg.norm(C @ Z, axis=(1, 2))
                rounding[part] = linalg.zero_level(max(N, s), eps, np.linalg.norm(Z, axis=(1, 2)))
                if rows < N:
                    level = linalg.zero_level(max(N, s), eps, values[:, -1])
                    few[part] = values[:, rows] <= level
                    tied[part] = (values[:, rows] - values[:, rows - 1] <= level) & ~few[part]
    exponents -= exponents.max(initial=0)
    energy, rounding = np.ldexp(energy, exponents), np.ldexp(rounding, exponents)
    order = np.argsort(energy, kind="stable")
    chosen = np.sort(order[:kept])
    _warn(
        SingularProblemWarning,
        edges[chosen[few[chosen]]],
        f"have maps that are not unique: with {s} signals, more than {rows} rows of [A | -B] have "
        f"energy 0; pass more signals or a larger `edge_dim`",
    )
    _warn(
        TiedModesWarning,
        edges[chosen[tied[chosen]]],
        f"have maps that are not unique: eigenvalues {rows} and {rows + 1} of the Gram matrix of "
        f"their signals are equal; pass another `edge_dim`",
    )
    last = order[kept - 1 : kept + 1]  # of them, the second is not kept
    if 0 < kept < m and np.diff(energy[last]) <= rounding[last].max():
        _warn(
            TiedModesWarning,
            edges[last],
            f"have the same energy, and only one of them is among the {kept} kept: pass another "
            f"`n_edges`",
        )
    return edge_subset(trusted_sheaf(edges, dims, np.full(m, rows), tail, head), chosen)


def _scaled(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return matrices divided by powers of two, so that entries are below 1, and the exponents."""
    parts = np.ascontiguousarray(Z).view(np.float64)
    exponents = np.frexp(np.abs(parts).max(axis=(1, 2), initial=0))[1]
    return np.ldexp(parts, -exponents[:, None, None]).view(Z.dtype), exponents


def _signals_and_edges(
    X: MapsLike, edges: npt.ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.dtype, np.ndarray]:
    """Return signals in double precision, the d_v, the given dtype, and the edges.

    The signals have shape (sum of d_v, s). Loops are rejected: signals cannot determine their maps.
    """
    data, dims, counts = flat_maps("X", X, None, "(n, d, s)")
    if not len(dims):
        raise ValueError("`X` must hold the signals of at least one vertex, got none")
    if (v := checks.first_true((counts != counts[0]) | (counts == 0))) is not None:
        raise ValueError(
            f"`X[{v}]` must have shape (d_v, s), with the same number s >= 1 of signals at all "
            f"vertices, got shape ({dims[v]}, {counts[v]})"
        )
    signals, first = data.reshape(-1, counts[0]), ragged.offsets(dims)
    if (row := checks.first_true(~np.isfinite(signals).all(axis=1))) is not None:
        v = int(np.searchsorted(first, row, side="right")) - 1
        checks.finite(f"`X[{v}]`", signals[first[v] : first[v + 1]])
    array = edge_array("edges", edges)
    check_endpoints(array, len(dims))
    if (e := checks.first_true(array[:, 0] == array[:, 1])) is not None:
        raise ValueError(
            f"`edges[{e}]` = {tuple(array[e].tolist())} is a loop, whose maps "
            f"signals cannot determine: omit it"
        )
    return signals.astype(np.result_type(data.dtype, np.float64)), dims, data.dtype, array


def _warn(category: type[Warning], edges: np.ndarray, message: str) -> None:
    """Warn about edges, if there are any."""
    if len(edges):
        names = [*(str(tuple(edge)) for edge in edges[:2].tolist()), "..."][: len(edges)]
        listed = f"{tables.counted(len(edges), 'edge')} ({', '.join(names)})"
        warned.warn(f"{listed} {message}", category)
