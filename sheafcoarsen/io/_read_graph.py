"""`read_graph`, which returns the constant or a signed sheaf; readers of GraphML and GML."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx
import numpy as np

from sheafcoarsen._support import PathLike, checks
from sheafcoarsen.io.graph_files import (
    SIGNS,
    EdgeList,
    read_edge_list,
    read_matrix_market,
    read_metis,
)
from sheafcoarsen.io.text import FileError, opened, read_lines, reader_of, reading
from sheafcoarsen.sheaf import CellularSheaf


def read_graphml(path: str, signed: bool = False) -> EdgeList:
    """Read a GraphML file."""
    with opened(path) as file:
        try:
            graph = nx.read_graphml(file)
        except ParseError as error:
            raise FileError(f"not XML: {error}", error.position[0]) from None
        except (EOFError, OSError, zlib.error):  # reading failed, but the GraphML may be valid
            raise
        except Exception as error:  # networkx may raise KeyError and others
            said = str(error) or type(error).__name__
            raise FileError(f"not a GraphML graph: {said}") from None
    return _edge_list(graph, signed, 'write it with edgedefault="undirected"')


def read_gml(path: str, signed: bool = False) -> EdgeList:
    """Read GML; the nodes' names are their labels if these are distinct, otherwise their ids."""
    lines = ["" if line.startswith("#") else line for line in read_lines(path)]
    try:
        graph = nx.parse_gml(lines, label=None)
        labels = [label for _, label in graph.nodes(data="label")]
        if None not in labels and len(set(labels)) == len(labels):
            graph = nx.relabel_nodes(graph, dict(zip(graph, labels, strict=True)))
    except Exception as error:  # networkx may raise TypeError, RecursionError and others
        said = str(error) or type(error).__name__
        place = re.search(r" at \((\d+), \d+\)$", said)
        raise FileError(f"not a GML graph: {said}", int(place[1]) if place else None) from None
    return _edge_list(graph, signed, "remove `directed 1`")


def _edge_list(graph: nx.Graph, signed: bool, remedy: str) -> EdgeList:
    """Return a networkx graph with its weights; an edge attribute "sign" overrides their signs."""
    if graph.is_directed():
        raise FileError(f"the graph is directed; {remedy} (networkx: graph.to_undirected())")
    weights: Any = [weight for _, _, weight in graph.edges(data="weight", default=1)]
    for e, weight in enumerate(weights):  # files may hold other types, which are refused later
        if not signed and isinstance(weight, int | float) and weight < 0:
            ends = tuple(graph.edges())[e]
            message = f"`weight` must not be negative, got {weight} for edge {e} {ends}; {SIGNS}"
            raise FileError(message)
    if signed:
        weights = checks.scalar_array("weight", weights)
        if any("sign" in data for _, _, data in graph.edges(data=True)):
            signs = np.where(CellularSheaf.signed(graph).head_data < 0, -1, 1)
            weights = signs * np.abs(weights)
    return EdgeList(None, graph, weights)


def read_graph(
    path: PathLike, dim: int = 1, signed: bool = False, n_vertices: int | None = None
) -> CellularSheaf:
    r"""Read a weighted graph as the constant sheaf, with maps sqrt(w) I at both ends of an edge.

    With ``signed``, weights may be negative, and the maps are sqrt(abs(w)) I at the tail and
    sign(w) sqrt(abs(w)) I at the head. For ``dim=1`` this is the O(1) sheaf of
    :meth:`CellularSheaf.signed`, whose Laplacian is that of the signed graph.

    The format follows from the file extension, which may be followed by ``.gz``:

    ``.mtx``
        MatrixMarket. Symmetric, or general with symmetric entries; pattern entries have weight 1, a
        diagonal entry is a loop. Edges are the upper triangle row by row.
    ``.graph``
        METIS adjacency: ``n m [fmt [ncon]]``, then a line for each vertex. Vertex sizes and
        weights are ignored. Each edge is stored as (u, v), u < v, in the order of the lines.
    ``.txt .edges .edgelist .el .csv .tsv``
        Edge list: ``u v [weight]`` (default 1), separated by white space or commas; ``#`` and ``%``
        begin a comment. Names that contain blanks or commas are put in double quotes; in ``.csv``
        and ``.tsv`` files, between commas or tabs, names with blanks need none. A first line is
        skipped as headings if no later line names its vertices and one of these holds: its weight
        is no number, as in ``source,target,weight``; it is ``source target`` or ``from to``; it has
        no weight, and the names of all other lines, at least two, are integers. Begin other
        headings with ``#``. Edges stay in the order of the file; repeated ones are parallel, u = v
        is a loop. Non-negative integer names are indices: vertex i is row i of every array, and
        indices that do not occur are isolated vertices. ``3.000e+00`` is 3, as ``numpy.savetxt``
        writes it; if one has leading zeros, as ``01001``, all are names. Other names, and integers
        if one is negative, are numbered in order of occurrence and stored as ``vertex_labels``; so
        are sparse integers, of which the largest is at least four times the number of distinct
        ones.
    ``.graphml``
        As read by networkx, undirected, with the edge attribute "weight" (default 1). With
        ``signed``, signs are those of the edge attribute "sign" if there is one.
    ``.gml``
        As ``.graphml``. Names are the nodes' labels if these are distinct, else their ids.

    Parameters
    ----------
    path : str or path-like
    dim : int
        Dimension of every stalk.
    signed : bool
        Whether weights may be negative, which is an error otherwise. The sign of 0 is 1.
    n_vertices : int, optional
        For an edge list: integer names are indices however sparse, and last vertices may be
        isolated. For a MatrixMarket file: its own number of vertices, required if it exceeds twice
        the number of entries by more than 2**20.

    Returns
    -------
    CellularSheaf
        ``vertex_labels`` are the names, or None if the names are indices.

    Raises
    ------
    FileNotFoundError
    ValueError
        ``path:line: ...`` or ``path: ...`` for a damaged or inconsistent file, weights that are not
        finite, an unknown file extension, or a vertex beyond ``n_vertices``.

    Warns
    -----
    UserWarning
        The integers of an edge list are too sparse for indices, or begin above 0, as in a file that
        numbers vertices from 1: ``F.subsheaf(range(1, F.n_vertices))`` excludes vertex 0, which has
        no edge. ``n_vertices`` disables both warnings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sheafcoarsen.io import read_graph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "triangle.csv"
    ...     _ = path.write_text("# from, to, weight\nb,a,4\na,c\nc,b\n")
    ...     F = read_graph(path, dim=2)
    >>> F.vertex_labels, F.edges.tolist()
    (('b', 'a', 'c'), [[0, 1], [1, 2], [2, 0]])
    >>> F.tail_map(0)
    array([[2., 0.],
           [0., 2.]])

    A signed graph:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "signed.txt"
    ...     _ = path.write_text("0 1\n1 2 -4\n")
    ...     read_graph(path, signed=True).head_data
    array([ 1., -2.])
    """
    path = checks.file_path(path)
    dim = checks.whole_number("dim", dim, at_least=0)
    signed = checks.flag("signed", signed)
    readers: dict[str, Callable] = {
        ".mtx": read_matrix_market,
        ".graph": read_metis,
        **dict.fromkeys((".txt", ".edges", ".edgelist", ".el", ".csv", ".tsv"), read_edge_list),
        ".graphml": read_graphml,
        ".gml": read_gml,
    }
    others = "; read_g2o reads .g2o, read_mesh .off, .obj and .ply, load .npz"
    options: dict = {}
    if n_vertices is not None:
        options["n_vertices"] = checks.whole_number("n_vertices", n_vertices, at_least=0)
        checks.vertex_count("n_vertices", options["n_vertices"])
    with reading(path):
        reader = reader_of(path, readers, "read_graph", others)
        if options and reader not in (read_edge_list, read_matrix_market):
            message = "`n_vertices` is for edge lists; this format states its number of vertices"
            raise FileError(message)
        n, edges, weights, names = reader(path, signed, **options)
        sheaf = CellularSheaf.constant(edges, dim, np.abs(weights) if signed else weights, n)
    if signed:
        signs = np.repeat(np.where(weights < 0, -1.0, 1.0), sheaf.edge_dims**2)
        sheaf = sheaf.with_maps(sheaf.tail_data, sheaf.head_data * signs)
    return sheaf if names is None else sheaf.with_labels(names)
