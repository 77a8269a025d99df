"""Conversion of sheaves to and from networkx graphs with maps on the edges."""

from collections.abc import Hashable

import networkx as nx
import numpy as np

from sheafcoarsen._support import checks
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf


def to_networkx(sheaf: CellularSheaf) -> nx.MultiDiGraph:
    """Convert a sheaf to a networkx graph with maps on its edges and dimensions on its nodes.

    Nodes are the vertex labels, or 0 .. n-1, in vertex order, each with its dimension as attribute
    ``dim``. The edge tail -> head has the attributes ``tail_map`` and ``head_map``, read-only
    arrays of shape (d_e, d_tail) and (d_e, d_head), and ``index``, its index in the sheaf. The
    graph has the attributes ``dtype`` and ``unlabelled``, which is True if the sheaf has no labels,
    so that nodes are integers.

    Parameters
    ----------
    sheaf : CellularSheaf

    Returns
    -------
    networkx.MultiDiGraph
        :func:`from_networkx` converts it to the same sheaf: same order, orientation, entries,
        scalar type and labels.

    Raises
    ------
    TypeError
        For anything but a sheaf.

    Examples
    --------
    >>> import sheafcoarsen as sc
    >>> G = sc.to_networkx(sc.CellularSheaf([[1, 0]], [[[1.0], [0.0]]], [[[1.0, 0.0], [0.0, 2.0]]]))
    >>> G.nodes(data="dim")
    NodeDataView({0: 2, 1: 1}, data='dim')
    >>> [(u, v, data["tail_map"].tolist()) for u, v, data in G.edges(data=True)]
    [(1, 0, [[1.0], [0.0]])]
    """
    check_sheaf(sheaf)
    labels = range(sheaf.n_vertices) if sheaf.vertex_labels is None else sheaf.vertex_labels
    graph = nx.MultiDiGraph(dtype=sheaf.dtype, unlabelled=sheaf.vertex_labels is None)
    graph.add_nodes_from(
        (label, {"dim": d}) for label, d in zip(labels, sheaf.vertex_dims.tolist(), strict=True)
    )
    for e, (u, v) in enumerate(sheaf.edges.tolist()):
        maps = {"tail_map": sheaf.tail_map(e), "head_map": sheaf.head_map(e)}
        graph.add_edge(labels[u], labels[v], **maps, index=e)
    return graph


def from_networkx(graph: nx.DiGraph) -> CellularSheaf:
    """Convert a directed networkx graph with maps on its edges to a sheaf.

    An edge u -> v is the edge with tail u and head v. Edges are ordered by their attribute
    ``index``, as written by :func:`to_networkx`, or as in ``graph.edges`` if none has one; vertices
    as in ``graph.nodes``.

    Parameters
    ----------
    graph : networkx.DiGraph or MultiDiGraph
        Edge attributes ``tail_map`` and ``head_map``, arrays of shape (d_e, d_u) and (d_e, d_v);
        node attribute ``dim``, required for isolated nodes only.

    Returns
    -------
    CellularSheaf
        ``vertex_labels`` are the nodes, or None if they are 0 .. n-1 and ``unlabelled`` is True.

    Raises
    ------
    TypeError
        For anything but a networkx graph, or maps that are not numbers.
    ValueError
        For an edge without maps, an undirected graph (which end a map belongs to is ambiguous), a
        node of unknown dimension, maps whose shapes disagree, or entries that are not finite.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> G = nx.DiGraph()
    >>> G.add_edge("a", "b", tail_map=[[1, 0]], head_map=[[2]])
    >>> G.add_node("alone", dim=3)
    >>> F = sc.from_networkx(G)
    >>> F, F.vertex_labels
    (CellularSheaf(n_vertices=3, n_edges=1, dim_c0=6, dim_c1=1, dtype=float64), ('a', 'b', 'alone'))
    """
    if not isinstance(graph, nx.Graph):
        raise TypeError(f"`graph` must be a networkx graph, got {type(graph).__name__}")
    labels = tuple(graph.nodes)
    edges = list(graph.edges(data=True))
    if any(data.get("index") is not None for _, _, data in edges):
        numbered: dict = {}
        for edge in edges:
            u, v, data = edge
            index = data.get("index")
            if type(index) is bool or not isinstance(index, int | np.integer) or index in numbered:
                raise ValueError(
                    f"edge {u!r} -> {v!r} has the attribute 'index' = {index!r}: set a different "
                    f"integer on every edge, or on none"
                )
            numbered[index] = edge
        edges = [numbered[index] for index in sorted(numbered)]
    maps = [[_map(u, v, data, name) for name in ("tail_map", "head_map")] for u, v, data in edges]
    if edges and not graph.is_directed():
        raise ValueError(
            "`graph` must be directed, because maps belong to the tail and the head of an edge: "
            "use networkx.MultiDiGraph"
        )
    dims = _dims(graph, edges, maps)
    number = {label: v for v, label in enumerate(labels)}
    ends = np.array([(number[u], number[v]) for u, v, _ in edges], dtype=np.int64).reshape(-1, 2)
    given = np.array([dims[label] for label in labels], np.int64)
    vertex_dims = checks.dimensions("dim", given, len(labels), "node")
    sheaf = CellularSheaf(ends, [tail for tail, _ in maps], [head for _, head in maps], vertex_dims)
    unlabelled = graph.graph.get("unlabelled") is True and labels == tuple(range(len(labels)))
    if not edges:  # without maps, read the scalar type from an attribute
        dtype = checks.scalar_type("graph.graph['dtype']", graph.graph.get("dtype", float))
        sheaf = sheaf.with_maps(np.zeros(0, dtype), np.zeros(0, dtype))
    return sheaf if unlabelled else sheaf.with_labels(labels)


def _map(u: Hashable, v: Hashable, data: dict, name: str) -> np.ndarray:
    """Check that a map of an edge is finite and two-dimensional, and return it."""
    if data.get(name) is None:
        raise ValueError(
            f"edge {u!r} -> {v!r} has no attribute {name!r}, which must be a map; "
            f"CellularSheaf.constant(graph) makes a sheaf of a graph without maps"
        )
    try:
        array = checks.scalar_array(name, data[name])
    except (TypeError, ValueError) as error:
        raise type(error)(f"edge {u!r} -> {v!r}: {error}") from None
    if array.ndim != 2:
        raise ValueError(f"edge {u!r} -> {v!r}: `{name}` must be 2-D, got shape {array.shape}")
    return checks.finite(f"edge {u!r} -> {v!r}: `{name}`", array)


def _dims(graph: nx.DiGraph, edges: list, maps: list) -> dict:
    """Return each node's dimension: its ``dim``, or the number of columns of its first map."""
    dims = dict(graph.nodes(data="dim"))
    for label, d in dims.items():
        if d is None:
            continue
        if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 0:
            raise ValueError(f"node {label!r}: `dim` must be a non-negative integer, got {d!r}")
        if d > checks.MAX_DIMENSION:
            raise ValueError(
                f"node {label!r}: `dim` must be at most {checks.MAX_DIMENSION}, got {d}"
            )
    for (u, v, _), (tail, head) in zip(edges, maps, strict=True):
        if len(tail) != len(head):
            raise ValueError(
                f"edge {u!r} -> {v!r}: `tail_map` has {len(tail)} rows and `head_map` has "
                f"{len(head)}: both numbers of rows must be the dimension of the edge's stalk"
            )
        for name, label, array in (("tail_map", u, tail), ("head_map", v, head)):
            if dims[label] is None:
                dims[label] = array.shape[1]
            elif dims[label] != array.shape[1]:
                raise ValueError(
                    f"edge {u!r} -> {v!r}: `{name}` has {array.shape[1]} columns, but node "
                    f"{label!r} has dimension {dims[label]}"
                )
    for label, d in dims.items():
        if d is None:
            raise ValueError(
                f"node {label!r} has neither an edge nor an attribute 'dim', the dimension of its "
                f"stalk"
            )
    return dims
