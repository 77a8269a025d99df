"""Sheaves fitted to signals: each edge gets maps of minimum energy."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sheafcoarsen._support import (
    eps_of,
    items,
    offsets,
    range_of_blocks,
    scalar_array,
    single_threaded_blas,
    whole_number,
    zero_level,
)
from sheafcoarsen.exceptions import SingularProblemWarning, TiedModesWarning
from sheafcoarsen.sheaf._cellular_sheaf import CellularSheaf, trusted_sheaf
from sheafcoarsen.sheaf.graphs import edge_array
from sheafcoarsen.sheaf.maps import check_endpoints

CHUNK = 2**18
"""Number of signal entries gathered at a time: 2 MB in double precision fit into the cache."""


def fit_connection(X: npt.ArrayLike, edges: npt.ArrayLike) -> CellularSheaf:
    """Return the connection of minimum energy for given signals on given edges.

    The tail map of an edge (u, v) is the orthogonal (unitary) matrix O_e that minimizes
    norm(O X_u - X_v)_F, and the head map is the identity. This is the orthogonal Procrustes
    problem: O_e = U V*, where X_v X_u* = U S V* is a singular value decomposition.

    Parameters
    ----------
    X : array_like, shape (n, d, s)
        s signals on n stalks of dimension d, real or complex. O_e does not depend on the scale of
        the signals at a vertex.
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
        X_v X_u* of an edge is singular, as with fewer than d signals, so O_e is not unique.

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
    array = scalar_array("X", X)
    if array.ndim != 3:
        raise ValueError(
            f"`X` must have shape (n, d, s), s signals on n stalks of dimension d, got shape "
            f"{array.shape}"
        )
    signals = _signals(array)
    edges = _edges_without_loops(edges, len(array))
    m, (n, d, s) = len(edges), array.shape
    transports = np.empty((m, d, d), signals.data.dtype)
    unique = np.ones(m, bool)
    with single_threaded_blas():
        for part in _parts(np.arange(m), 2 * d * s):
            A, B = (_scaled(signals.at(edges[part, end]))[0] for end in (0, 1))
            U, sigma, V = np.linalg.svd(B @ A.conj().swapaxes(1, 2))
            transports[part] = U @ V
            sizes = np.linalg.norm(A, axis=(1, 2)) * np.linalg.norm(B, axis=(1, 2))
            level = zero_level(max(d, s), eps_of(array.dtype), sizes)
            unique[part] = (sigma > level[:, None]).all(axis=1)
    _warn(
        SingularProblemWarning,
        edges[~unique],
        f"have orthogonal maps that are not unique, because X_v X_u* does not have rank {d}; this "
        f"requires at least {d} independent signals",
    )
    heads = np.tile(np.eye(d, dtype=array.dtype), (m, 1, 1))
    dims = np.full(n, d, np.int64), np.full(m, d, np.int64)
    return trusted_sheaf(
        edges, *dims, transports.astype(array.dtype).reshape(-1), heads.reshape(-1)
    )


def fit_maps(
    X: npt.ArrayLike | Sequence[npt.ArrayLike],
    edges: npt.ArrayLike,
    edge_dim: int,
    n_edges: int | None = None,
) -> CellularSheaf:
    """Return the sheaf of minimum energy for given signals, with orthonormal rows [A | -B].

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
        Signals of another shape or not finite, vertices out of range, a loop; more rows than
        d_u + d_v; more edges to be kept than given.

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

    This compares the coordinates of signals at different vertices. If every stalk has its own
    frame, compare quantities that do not depend on it, such as the Gram matrices X_v* X_v, or pass
    all pairs as candidates.

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
    signals = _signals(X)
    dims, s, eps = signals.dims, signals.data.shape[1], eps_of(signals.dtype)
    edges = _edges_without_loops(edges, len(dims))
    rows = whole_number("edge_dim", edge_dim, at_least=1)
    sums = dims[edges].sum(axis=1)
    if (sums < rows).any():
        e = int(np.flatnonzero(sums < rows)[0])
        u, v = edges[e].tolist()
        raise ValueError(
            f"`edge_dim` must be at most d_u + d_v for orthonormal rows, got {rows} for "
            f"`edges[{e}]` = {(u, v)}, whose stalks have dimensions {dims[u]} and {dims[v]}"
        )
    m = len(edges)
    kept = m if n_edges is None else whole_number("n_edges", n_edges, at_least=0)
    if kept > m:
        raise ValueError(f"`n_edges` must be at most the number of `edges`, {m}, got {kept}")
    starts = [offsets(rows * dims[edges[:, end]]) for end in (0, 1)]
    data = [np.empty(int(ends[-1]), signals.data.dtype) for ends in starts]
    # root of the energy, and norm of the signals, in units of 2**exponents
    energy, size, exponents = np.empty(m), np.empty(m), np.zeros(m, int)
    few, tied = np.zeros((2, m), bool)
    shapes, shape_of = np.unique(dims[edges], axis=0, return_inverse=True)
    with single_threaded_blas():
        for k, (d, _) in enumerate(shapes.tolist()):
            for part in _parts(np.flatnonzero(shape_of.reshape(-1) == k), s * int(shapes[k].sum())):
                ends = edges[part]
                Z = np.concatenate([signals.at(ends[:, end]) for end in (0, 1)], axis=1)
                Z, exponents[part] = _scaled(Z)
                values, vectors = np.linalg.eigh(Z @ Z.conj().swapaxes(1, 2))
                C = vectors[:, :, :rows].conj().swapaxes(1, 2)
                for flat, start, block in zip(
                    data, starts, (C[:, :, :d], -C[:, :, d:]), strict=True
                ):
                    flat[range_of_blocks(start, part)] = block.reshape(-1)
                # more accurate than the eigenvalues if these are small
                energy[part] = np.linalg.norm(C @ Z, axis=(1, 2))
                size[part] = np.linalg.norm(Z, axis=(1, 2))
                if rows < values.shape[1]:
                    level = zero_level(max(values.shape[1], s), eps, values[:, -1])
                    few[part] = values[:, rows] <= level
                    tied[part] = (values[:, rows] - values[:, rows - 1] <= level) & ~few[part]
    energy, size = (np.ldexp(x, exponents - exponents.max(initial=0)) for x in (energy, size))
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
    if 0 < kept < m:
        last, following = order[kept - 1 : kept + 1]
        level = zero_level(max(int(sums.max()), s), eps, max(size[last], size[following]))
        if energy[following] - energy[last] <= level:
            _warn(
                TiedModesWarning,
                edges[[last, following]],
                f"have the same energy, and only one of them is among the {kept} kept: pass "
                f"another `n_edges`",
            )
    maps = [
        values[range_of_blocks(begin, chosen)].astype(signals.dtype)
        for values, begin in zip(data, starts, strict=True)
    ]
    return trusted_sheaf(edges[chosen], dims, np.full(kept, rows, np.int64), *maps)


class _Signals(NamedTuple):
    """Signals at all vertices in double precision, with their original scalar type."""

    data: np.ndarray  # (sum of d_v, s)
    dims: np.ndarray  # (n,)
    starts: np.ndarray  # (n + 1,)
    dtype: np.dtype

    def at(self, vertices: np.ndarray) -> np.ndarray:
        """Return the signals at k vertices with stalks of equal dimension, shape (k, d, s)."""
        d = int(self.dims[vertices[0]]) if len(vertices) else 0
        return self.data[self.starts[vertices][:, None] + np.arange(d)]


def _scaled(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scale each matrix of a stack to entries below 1; return it and the exponents of two."""
    parts = np.ascontiguousarray(Z).view(np.float64)
    exponents = np.frexp(np.abs(parts).max(axis=(1, 2), initial=0))[1]
    return np.ldexp(parts, -exponents[:, None, None]).view(Z.dtype), exponents


def _signals(X: Any) -> _Signals:
    """Check the signals at all vertices, and return them in double precision."""
    X = np.asarray(X) if hasattr(X, "__array__") else X
    if isinstance(X, np.ndarray) and X.dtype != object:
        if X.ndim != 3:
            raise ValueError(
                f"`X` must have shape (n, d, s) or be a list of n arrays of shape (d_v, s), got "
                f"shape {X.shape}"
            )
        array = scalar_array("X", X)
        stalks, dims = [array[0]] if len(array) else [], np.full(len(array), array.shape[1])
    else:
        stalks = [
            scalar_array(f"X[{v}]", x) for v, x in enumerate(items("X", X, "arrays (d_v, s)"))
        ]
        array, dims = None, np.array([len(stalk) if stalk.ndim else 0 for stalk in stalks])
    if not stalks:
        raise ValueError("`X` must hold the signals of at least one vertex, got none")
    for v, stalk in enumerate(stalks):
        if stalk.ndim != 2 or stalk.shape[1] != stalks[0].shape[-1] or not stalk.shape[1]:
            raise ValueError(
                f"`X[{v}]` must have shape (d_v, s), with the same number s >= 1 of signals at all "
                f"vertices, got shape {stalk.shape}"
            )
    data = np.concatenate(stalks) if array is None else array.reshape(-1, array.shape[2])
    finite = np.isfinite(data).all(axis=1)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        v = int(np.searchsorted(np.cumsum(dims), row, side="right"))
        at = row - int(dims[:v].sum()), int(np.flatnonzero(~np.isfinite(data[row]))[0])
        raise ValueError(f"`X[{v}]` must be finite, got {data[row, at[1]]} at index {at}")
    in_double = data.astype(np.result_type(data.dtype, np.float64))
    return _Signals(in_double, dims, offsets(dims), data.dtype)


def _edges_without_loops(edges: npt.ArrayLike, n: int) -> np.ndarray:
    """Return edges of n vertices; reject loops, whose maps signals cannot determine."""
    array = edge_array("edges", edges)
    check_endpoints(array, n)
    loops = np.flatnonzero(array[:, 0] == array[:, 1])
    if loops.size:
        e = int(loops[0])
        raise ValueError(
            f"`edges[{e}]` = {tuple(array[e].tolist())} is a loop, whose maps signals cannot "
            f"determine: omit it"
        )
    return array


def _parts(edges: np.ndarray, entries: int) -> Iterator[np.ndarray]:
    """Yield parts of the edges that fit into the cache, with ``entries`` numbers per edge."""
    step = max(CHUNK // max(entries, 1), 1)
    return (edges[first : first + step] for first in range(0, len(edges), step))


def _warn(category: type[Warning], edges: np.ndarray, message: str) -> None:
    """Warn about edges, if there are any."""
    if len(edges):
        first = ", ".join(str(tuple(edge)) for edge in edges[:2].tolist())
        listed = first if len(edges) < 3 else f"{first}, ..."
        count = "1 edge" if len(edges) == 1 else f"{len(edges)} edges"
        warnings.warn(f"{count} ({listed}) {message}", category, stacklevel=3)
