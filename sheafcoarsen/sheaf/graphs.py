"""Graphs as arrays, values on edges, and the comparison of sheaves by graph and stalks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple, TypeAlias

import networkx as nx
import numpy as np
import numpy.typing as npt
import scipy.sparse

from sheafcoarsen._support import checks

GraphLike: TypeAlias = nx.Graph | scipy.sparse.sparray | scipy.sparse.spmatrix | npt.ArrayLike
"""A networkx Graph or MultiGraph, a symmetric scipy adjacency, or an (m, 2) integer array.

A dense array is a list of edges even if it is 2 x 2; an adjacency is a scipy sparse matrix.
"""


class GraphArrays(NamedTuple):
    """A graph as arrays; edges keep the graph's order and orientation."""

    n_vertices: int
    edges: np.ndarray  # (m, 2) int64, row e = (tail, head)
    labels: tuple | None  # node names in vertex order
    has_all_vertices: bool
    """False for an edge array, which does not show isolated vertices after its highest index."""
    attribute: Callable[[str], list | np.ndarray | None]
    """Function from an attribute's name to its values on edges, or None if no edge has one.

    Among the values, None marks a missing one.
    """


def graph_arrays(graph: GraphLike, n_vertices: int | None = None) -> GraphArrays:
    """Convert a graph in any of the forms of `GraphLike` to arrays, after checking it."""
    if isinstance(graph, nx.Graph) or scipy.sparse.issparse(graph):
        if n_vertices is not None:
            raise ValueError(
                "`n_vertices` applies to edge arrays only; a networkx graph has a list of nodes, "
                "and an adjacency has a size"
            )
        return _from_networkx(graph) if isinstance(graph, nx.Graph) else _from_adjacency(graph)
    edges, most = edge_array("graph", graph), checks.MAX_VERTICES
    beyond = (
        f"{most - 1}; vertices are numbered from 0 without gaps: "
        f"numpy.unique(edges, return_inverse=True)[1].reshape(-1, 2) renumbers them"
    )
    if n_vertices is not None:
        most = checks.whole_number("n_vertices", n_vertices, at_least=0)
        checks.vertex_count("n_vertices", most)
        beyond = f"`n_vertices` = {most}"
    if (e := checks.first_true((edges >= most).any(axis=1))) is not None:
        edge = tuple(edges[e].tolist())
        raise ValueError(f"`graph[{e}]` = {edge} has a vertex beyond {beyond}")
    n = int(edges.max(initial=-1)) + 1 if n_vertices is None else most
    checks.vertex_count("graph", n)
    return GraphArrays(n, edges, None, n_vertices is not None, lambda name: None)


def _from_networkx(graph: nx.Graph) -> GraphArrays:
    if graph.is_directed():
        raise ValueError(
            "`graph` must be undirected, got a directed networkx graph: pass an (m, 2) array of "
            "its edges, with values in the same order, to keep their orientation, or "
            "networkx.MultiGraph(list(graph.edges(data=True))) to keep names and attributes; "
            "graph.to_undirected() discards one of two opposite edges"
        )
    labels = tuple(graph.nodes)
    number = {label: i for i, label in enumerate(labels)}
    ends = [(number[u], number[v]) for u, v in graph.edges()]
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2)

    def attribute(name: str) -> list | None:
        values = [value for _, _, value in graph.edges(data=name)]
        return None if values and all(value is None for value in values) else values

    return GraphArrays(len(labels), edges, labels, True, attribute)


def _from_adjacency(adjacency: scipy.sparse.sparray) -> GraphArrays:
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"`graph` must be a square adjacency, got shape {adjacency.shape}")
    checks.vertex_count("graph", adjacency.shape[0])
    if adjacency.dtype.kind not in "fiub":
        raise TypeError(f"`graph` must be a real adjacency, got dtype {adjacency.dtype}")
    matrix = finite_entries("graph", checks.csr_matrix("graph", adjacency))
    if matrix.dtype.kind in "iub":  # differences and absolute values could overflow
        matrix = matrix.astype(np.int64)
    difference = scipy.sparse.coo_array(matrix - matrix.T)
    scale = np.abs(matrix.data).max(initial=0)
    allowed = 8 * np.finfo(matrix.dtype).eps * scale if matrix.dtype.kind == "f" else 0
    if (bad := checks.first_true(~(np.abs(difference.data) <= allowed))) is not None:
        i, j = (int(axis[bad]) for axis in difference.coords)
        raise ValueError(
            f"`graph` must be a symmetric adjacency, got {matrix[i, j]} at ({i}, {j}) and "
            f"{matrix[j, i]} at ({j}, {i})"
        )
    upper = scipy.sparse.triu(matrix, format="csr")
    upper.sort_indices()
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(upper.indptr))
    edges = np.stack([rows, upper.indices], axis=1).astype(np.int64)
    attributes = {"weight": upper.data}
    return GraphArrays(matrix.shape[0], edges, None, True, attributes.get)


def finite_entries(name: str, matrix: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Sum duplicates and drop zeros of an owned matrix in place; check that entries are finite."""
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if (k := checks.first_true(~np.isfinite(matrix.data))) is not None:
        i = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        raise ValueError(
            f"`{name}` must be finite, got {matrix.data[k]} at ({i}, {matrix.indices[k]})"
        )
    return matrix


def edge_array(name: str, value: object) -> np.ndarray:
    """Check that a value is an (m, 2) array of non-negative endpoints; return it as int64."""
    given = type(value).__name__
    if isinstance(value, nx.Graph) or scipy.sparse.issparse(value):
        raise TypeError(f"`{name}` must be an (m, 2) array of vertex indices, got {given}")
    is_array = hasattr(value, "__len__") or hasattr(value, "__array__")
    if isinstance(value, str | bytes) or not is_array:
        hint = ": pass its attribute `sheaf`" if hasattr(value, "sheaf") else ""
        raise TypeError(
            f"`{name}` must be a networkx graph, a scipy adjacency or an (m, 2) array, got "
            f"{given}{hint}"
        )
    if getattr(value, "shape", None) != () and len(value) == 0:  # type: ignore[arg-type]
        return np.zeros((0, 2), dtype=np.int64)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
        raise TypeError(
            f"`{name}` must hold integers, got dtype {value.dtype}: for a dense adjacency write "
            f"scipy.sparse.csr_array(A), for edges .astype(int)"
        )
    numbered = (
        f"numpy.unique({name}, return_inverse=True)[1].reshape(-1, 2) converts names to indices, "
        f"and F.with_labels(numpy.unique({name}).tolist()) names the vertices again"
    )
    if hasattr(value, "columns"):
        numbered = (
            f'networkx.from_pandas_edgelist({name}, "source", "target", "weight"), with the names '
            "of your columns, makes a graph of it (create_using=networkx.MultiGraph keeps all rows)"
        )
    edges = checks.integer_array(name, value, ndim=2, names=numbered)  # type: ignore[arg-type]
    if edges.shape[1] != 2:
        hint = ""
        if edges.shape[0] == edges.shape[1]:
            hint = ": for a dense adjacency write scipy.sparse.csr_array(A)"
        elif edges.shape[0] == 2:
            hint = (
                f": transpose it, {name}.T, and keep one direction of each edge, as in "
                f"{name}.T[u < v] with u, v = {name}"
            )
        raise ValueError(f"`{name}` must have shape (m, 2), got {edges.shape}{hint}")
    if (e := checks.first_true((edges < 0).any(axis=1))) is not None:
        raise ValueError(
            f"`{name}[{e}]` = {tuple(edges[e].tolist())} has a negative endpoint; vertices are "
            f"numbered from 0"
        )
    return edges


def vertex_names(labels: Iterable[Hashable], n: int) -> tuple:
    """Check that labels are n distinct hashable names, and return them as a tuple."""
    names = checks.items("vertex_labels", labels, "names")
    if len(names) != n:
        raise ValueError(
            f"`vertex_labels` must hold one name per vertex, {n} in all, got {len(names)}"
        )
    first: dict[Hashable, int] = {}
    for v, name in enumerate(names):
        if name is None:
            raise ValueError(f"`vertex_labels` must hold names, got None for vertex {v}")
        try:
            u = first.setdefault(name, v)
        except TypeError:
            raise TypeError(
                f"`vertex_labels` must hold hashable names, got {name!r} for vertex {v}: pass "
                f"tuples instead of lists"
            ) from None
        if u != v:
            raise ValueError(
                f"`vertex_labels` must all differ, got {name!r} for the vertices {u} and {v}"
            )
    return names


# ---------------------------------------------------------------- values on edges


EdgeValues: TypeAlias = str | npt.ArrayLike
"""One value per edge in edge order, or the name of an edge attribute."""


def edge_values(
    graph: GraphArrays,
    value: EdgeValues,
    name: str,
    *,
    ndim: int = 0,
    missing: float | None = None,
) -> np.ndarray:
    """Return one scalar or array per edge, given directly or as the name of an edge attribute.

    ``missing`` is the value of edges without the attribute; by default they raise an error.
    """
    m = len(graph.edges)
    given: object = value
    if isinstance(value, str):
        given = graph.attribute(value)
        if given is None:
            if (missing is None or (value != "weight" and graph.labels is None)) and m:
                raise ValueError(
                    f"`{name}` = {value!r} names an edge attribute that no edge of the graph has: "
                    f"pass the name of another attribute, or an array"
                )
            given = np.full(m, missing, np.float64)
        elif isinstance(given, list):
            absent = [e for e, item in enumerate(given) if item is None]
            if absent and missing is None:
                edge = edge_name(graph, absent[0])
                raise ValueError(f"{edge} has no attribute {value!r} for `{name}`")
            given = [missing if item is None else item for item in given]
    # an empty list does not determine the shape of a value
    if ndim and m == 0 and not (isinstance(given, np.ndarray) and given.ndim == 1 + ndim):
        return np.zeros((0,) + (1,) * ndim)
    wanted = f"an array of shape ({', '.join('d' * ndim)})" if ndim else "a number"
    try:
        array = checks.scalar_array(name, given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error} (each edge needs {wanted})") from None
    if array.ndim != 1 + ndim or len(array) != m:
        raise ValueError(
            f"`{name}` must hold {wanted} for each of the {m} edges, got shape {array.shape}"
        )
    finite = np.isfinite(array).all(axis=tuple(range(1, array.ndim)))
    if (e := checks.first_true(~finite)) is not None:
        raise ValueError(f"`{name}` must be finite, got {array[e]} for {edge_name(graph, e)}")
    return array


def edge_name(graph: GraphArrays, e: int) -> str:
    """Return the name of an edge for error messages."""
    u, v = graph.edges[e].tolist()
    return f"edge {e} {(u, v) if graph.labels is None else (graph.labels[u], graph.labels[v])}"


def edge_weights(graph: GraphArrays, weight: EdgeValues | None) -> np.ndarray:
    """Check that weights are real and non-negative, and return them; None means unit weights."""
    if weight is None:
        return np.ones(len(graph.edges))
    values = edge_values(graph, weight, "weight", missing=1)
    if values.dtype.kind == "c":
        raise TypeError(f"`weight` must be real, got dtype {values.dtype}")
    if (e := checks.first_true(values < 0)) is not None:
        raise ValueError(
            f"`weight` must not be negative, got {values[e]} for {edge_name(graph, e)}; "
            f"CellularSheaf.signed reads negative weights if no edge has a `sign`; with signs "
            f"weights must be absolute"
        )
    return values


# ---------------------------------------------------------------- comparison


class Topology(NamedTuple):
    """Edges and stalk dimensions of a sheaf, without its maps."""

    edges: np.ndarray
    vertex_dims: np.ndarray
    edge_dims: np.ndarray


def same_array(mine: np.ndarray, other: np.ndarray) -> bool:
    """Return whether two index arrays are equal; an array is not compared with itself."""
    return mine is other or np.array_equal(mine, other)


def same_topology(F: Any, G: Any) -> bool:
    """Return whether two sheaves have the same edges, in the same order, and the same stalks."""
    return all(same_array(getattr(F, name), getattr(G, name)) for name in Topology._fields)


def check_same_topology(F: Any, sheaf: Any, wanted: str, remedy: str) -> None:
    """Raise an error unless a sheaf has the edges and stalks of F, described by ``wanted``."""
    for name in Topology._fields:
        mine, other = getattr(F, name), getattr(sheaf, name)
        if same_array(mine, other):
            continue
        if len(mine) != len(other):
            what = f"there are {len(other)} of them, not {len(mine)}"
        else:
            i = int(np.argmax((mine != other).reshape(len(mine), -1).any(axis=1)))
            what = f"first at index {i}, with {other[i].tolist()} instead of {mine[i].tolist()}"
        raise ValueError(f"`sheaf` must have {wanted}, but its {name} differ, {what}: {remedy}")
