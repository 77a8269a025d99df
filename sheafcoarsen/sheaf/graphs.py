"""A networkx graph, a scipy adjacency or an edge array, read as ends, node names and values on edges."""

from collections.abc import Callable
from typing import NamedTuple

import networkx as nx
import numpy as np
import scipy.sparse

from sheafcoarsen._support import (
    MAX_VERTICES,
    integer_array,
    scalar_array,
    vertex_count,
    whole_number,
)


class GraphArrays(NamedTuple):
    """A graph as arrays.

    n_vertices : int
    edges : (m, 2) int64, row e = (tail, head), in the graph's own order and orientation
    labels : node names in vertex order, or None
    attribute : name of an edge attribute -> list of its values, None where an edge lacks it; raises
        KeyError for a graph
        that stores no attribute of that name
    """

    n_vertices: int
    edges: np.ndarray
    labels: tuple | None
    attribute: Callable[[str], list | np.ndarray]


def graph_arrays(graph, n_vertices: int | None = None) -> GraphArrays:
    """Read a networkx Graph or MultiGraph, a symmetric scipy sparse adjacency or an (m, 2) integer array.

    Raises
    ------
    TypeError, ValueError
        For anything else, a directed graph, an asymmetric adjacency, or endpoints out of range.
    """
    if isinstance(graph, nx.Graph):
        if n_vertices is not None:
            raise ValueError(
                "`n_vertices` goes with an edge array; a networkx graph knows its nodes"
            )
        return _from_networkx(graph)
    if scipy.sparse.issparse(graph):
        if n_vertices is not None:
            raise ValueError("`n_vertices` goes with an edge array; an adjacency knows its size")
        return _from_adjacency(graph)
    return _from_edges(graph, n_vertices)


def _from_networkx(graph) -> GraphArrays:
    if graph.is_directed():
        raise ValueError(
            "`graph` must be undirected, got a directed networkx graph: pass an (m, 2) array of its edges, with values in the "
            "same order, to keep their orientation; graph.to_undirected() forgets it"
        )
    labels = tuple(graph.nodes)
    number = {label: i for i, label in enumerate(labels)}
    ends = [(number[u], number[v]) for u, v in graph.edges()]
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2)

    def attribute(name: str) -> list:
        values = [data.get(name) for _, _, data in graph.edges(data=True)]
        if values and all(value is None for value in values):
            raise KeyError(name)
        return values

    return GraphArrays(len(labels), edges, labels, attribute)


def _from_adjacency(adjacency) -> GraphArrays:
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"`graph` must be a square adjacency, got shape {adjacency.shape}")
    vertex_count("graph", adjacency.shape[0])
    if adjacency.dtype.kind not in "fiub":
        raise TypeError(f"`graph` must be a real adjacency, got dtype {adjacency.dtype}")
    matrix = scipy.sparse.csr_array(adjacency, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if bad.size:
        i = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise ValueError(
            f"`graph` must be finite, got {matrix.data[bad[0]]} at ({i}, {matrix.indices[bad[0]]})"
        )
    if matrix.dtype.kind in "iub":  # their differences and moduli could wrap around
        matrix = matrix.astype(np.int64)
    difference = scipy.sparse.coo_array(matrix - matrix.T)
    scale = np.abs(matrix.data).max(initial=0)
    allowed = 8 * np.finfo(matrix.dtype).eps * scale if matrix.dtype.kind == "f" else 0
    bad = np.flatnonzero(~(np.abs(difference.data) <= allowed))
    if bad.size:
        i, j = (int(axis[bad[0]]) for axis in difference.coords)
        raise ValueError(
            f"`graph` must be a symmetric adjacency, got {matrix[i, j]} at ({i}, {j}) and {matrix[j, i]} at ({j}, {i})"
        )
    upper = scipy.sparse.triu(matrix, format="csr")
    upper.sort_indices()
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(upper.indptr))
    edges = np.stack([rows, upper.indices], axis=1).astype(np.int64)

    def attribute(name: str) -> np.ndarray:
        if name != "weight":
            raise KeyError(name)
        return upper.data

    return GraphArrays(matrix.shape[0], edges, None, attribute)


def _from_edges(graph, n_vertices: int | None) -> GraphArrays:
    edges = edge_array("graph", graph)
    n = int(edges.max(initial=-1)) + 1
    if n > MAX_VERTICES:
        e = int(np.flatnonzero(edges.max(axis=1) == n - 1)[0])
        raise ValueError(
            f"`graph[{e}]` = {tuple(edges[e].tolist())} has a vertex beyond {MAX_VERTICES - 1}; vertices count from 0 without "
            f"gaps: numpy.unique(edges, return_inverse=True)[1].reshape(-1, 2) renumbers names"
        )
    if n_vertices is not None:
        n_vertices = whole_number("n_vertices", n_vertices, at_least=0)
        vertex_count("n_vertices", n_vertices)
        if n_vertices < n:
            e = int(np.flatnonzero(edges.max(axis=1) >= n_vertices)[0])
            raise ValueError(
                f"`graph[{e}]` = {tuple(edges[e].tolist())} names a vertex beyond `n_vertices` = {n_vertices}"
            )
        n = n_vertices

    def attribute(name: str) -> np.ndarray:
        raise KeyError(name)

    return GraphArrays(n, edges, None, attribute)


def edge_array(name: str, value) -> np.ndarray:
    """Return an (m, 2) int64 array of non-negative endpoints."""
    if isinstance(value, str | bytes) or value is None:
        raise TypeError(
            f"`{name}` must be a networkx graph, a scipy adjacency or an (m, 2) array, got {value!r}"
        )
    if isinstance(value, nx.Graph) or scipy.sparse.issparse(value):
        raise TypeError(
            f"`{name}` must be an (m, 2) array, got {type(value).__name__}: the vertices' numbers, edge by edge"
        )
    if not hasattr(value, "__len__") and not hasattr(value, "__array__"):
        hint = ": it has a sheaf in its attribute `sheaf`" if hasattr(value, "sheaf") else ""
        raise TypeError(
            f"`{name}` must be a networkx graph, a scipy adjacency or an (m, 2) array, got {type(value).__name__}{hint}"
        )
    if getattr(value, "shape", None) != () and len(value) == 0:
        return np.zeros((0, 2), dtype=np.int64)
    given = np.asarray(value) if isinstance(value, np.ndarray) else None
    if given is not None and given.dtype.kind == "f" and given.size:
        raise TypeError(
            f"`{name}` must hold integers, got dtype {given.dtype}: for a dense adjacency write scipy.sparse.csr_array(A), for "
            f"edges .astype(int)"
        )
    edges = integer_array(name, value, ndim=2, names=True)
    if edges.shape[1] != 2:
        hint = (
            ": for a dense adjacency write scipy.sparse.csr_array(A)"
            if edges.shape[0] == edges.shape[1]
            else ""
        )
        hint = hint or (f": transpose it, {name}.T" if edges.shape[0] == 2 else "")
        raise ValueError(f"`{name}` must have shape (m, 2), got {edges.shape}{hint}")
    negative = np.flatnonzero((edges < 0).any(axis=1))
    if negative.size:
        e = int(negative[0])
        raise ValueError(
            f"`{name}[{e}]` = {tuple(edges[e].tolist())} has a negative endpoint; vertices count from 0"
        )
    return edges


def edge_values(
    arrays: GraphArrays, value, name: str, *, shape: tuple[int, ...] = (), missing=None
) -> np.ndarray:
    """Return one scalar or array per edge, given directly or as the name of an edge attribute.

    Parameters
    ----------
    value : str or array_like
        An attribute's name, or the values in edge order.
    shape : tuple of int
        Shape of one edge's value; -1 stands for any size.
    missing : number, optional
        Stands in where the attribute is missing; without it a missing one is an error.
    """
    m = len(arrays.edges)
    if isinstance(value, str):
        try:
            given = arrays.attribute(value)
        except KeyError:
            if (missing is None or (value != "weight" and arrays.labels is None)) and m:
                raise ValueError(
                    f"`{name}` = {value!r} names an edge attribute that no edge of the graph has: pass its name or an array"
                ) from None
            given = np.full(m, missing if missing is not None else 0)
        if isinstance(given, list):
            absent = [e for e, item in enumerate(given) if item is None]
            if absent and missing is None:
                e = absent[0]
                raise ValueError(
                    f"edge {e} {tuple(arrays.edges[e].tolist())} has no attribute {value!r} for `{name}`"
                )
            given = [missing if item is None else item for item in given]
    else:
        given = value
    sizes = ", ".join("d" if s == -1 else str(s) for s in shape)
    wanted = f"an array of shape ({sizes})" if shape else "a number"
    if (
        len(shape)
        and m == 0
        and not (isinstance(given, np.ndarray) and given.ndim == 1 + len(shape))
    ):
        return np.zeros(
            (0, *(max(s, 1) for s in shape))
        )  # an empty list does not say how large a value is
    try:
        array = scalar_array(name, given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error} (each edge needs {wanted})") from None
    found: tuple[int, ...] = array.shape
    fits = len(found) == 1 + len(shape) and all(
        s in (-1, t) for s, t in zip((m, *shape), found, strict=True)
    )
    if not fits:
        raise ValueError(
            f"`{name}` must hold {wanted} for each of the {m} edges, got shape {array.shape}"
        )
    bad = np.flatnonzero([] if m == 0 else ~np.isfinite(array).reshape(m, -1).all(axis=1))
    if bad.size:
        e = int(bad[0])
        raise ValueError(
            f"`{name}` must be finite, got {array[e]} for edge {e} {tuple(arrays.edges[e].tolist())}"
        )
    return array


def edge_weights(arrays: GraphArrays, weight, name: str = "weight") -> np.ndarray:
    """Return real non-negative edge weights, of which a root can be taken; None means 1 everywhere."""
    if weight is None:
        return np.ones(len(arrays.edges))
    values = edge_values(arrays, weight, name, missing=1)
    if values.dtype.kind == "c":
        raise TypeError(f"`{name}` must be real, got dtype {values.dtype}")
    negative = np.flatnonzero(values < 0)
    if negative.size:
        e = int(negative[0])
        raise ValueError(
            f"`{name}` must not be negative, because its root is taken, got {values[e]} for edge {e} "
            f"{tuple(arrays.edges[e].tolist())}; CellularSheaf.signed takes signs"
        )
    return values
