"""`read_graph`, which returns the constant or a signed sheaf; readers of GraphML and GML."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from xml.etree.ElementTree import ParseError

import networkx as nx
import numpy as np

from sheafcoarsen._support import PathLike, file_path, flag, scalar_array, whole_number
from sheafcoarsen.io.graph_files import EdgeList, read_edge_list, read_matrix_market, read_metis
from sheafcoarsen.io.text import file_error, opened, read_lines, reader_of
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf


def read_graphml(path: str, signed: bool = False) -> nx.Graph:
    """Read GraphML; negative weights are accepted here, whatever ``signed`` is."""
    with opened(path) as file:
        try:
            graph = nx.read_graphml(file)
        except ParseError as error:
            raise file_error(path, error.position[0], f"not XML: {error}") from None
        except (EOFError, OSError, zlib.error):  # reading failed, but the GraphML may be valid
            raise
        except Exception as error:  # networkx may raise KeyError and others
            said = str(error) or type(error).__name__
            raise file_error(path, None, f"not a GraphML graph: {said}") from None
    if graph.is_directed():
        message = 'the graph is directed; write it with edgedefault="undirected"'
        raise file_error(path, None, f"{message} (networkx: graph.to_undirected())")
    return graph


def read_gml(path: str, signed: bool = False) -> nx.Graph:
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
        line = int(place[1]) if place else None
        raise file_error(path, line, f"not a GML graph: {said}") from None
    if graph.is_directed():
        message = "the graph is directed; remove `directed 1`"
        raise file_error(path, None, f"{message} (networkx: graph.to_undirected())")
    return graph


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
        indices that do not occur are isolated vertices. If a file numbers vertices from 1, vertex 0
        is isolated, with a warning.
        ``3.000e+00`` is 3, as ``numpy.savetxt`` writes it; if one has leading zeros, as ``01001``,
        all are names. Other names, and integers if one is negative, are numbered in order of
        occurrence and stored as ``vertex_labels``; so are sparse integers, of which the largest is
        at least four times the number of distinct ones, with a warning.
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
        Whether weights may be negative; otherwise negative weights are an error. The sign of 0 is
        1.
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
        ``path:line: ...`` or ``path: ...`` for a file that is damaged or inconsistent, or has
        weights that are not finite, or negative without ``signed``; for an unknown file extension,
        or a vertex beyond ``n_vertices``.

    Warns
    -----
    UserWarning
        The integers of an edge list are too sparse for indices and therefore become names; or they
        begin above 0, as in a file that numbers vertices from 1: vertex 0 then has no edge, and
        ``F.subsheaf(range(1, F.n_vertices))`` excludes it. ``n_vertices`` disables both warnings.

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

    Integers are indices, so labels and features from another file match the vertices:

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "path.txt"
    ...     _ = path.write_text("3 1\n1 0\n")
    ...     read_graph(path).edges.tolist(), read_graph(path, n_vertices=6)
    ([[3, 1], [1, 0]], CellularSheaf(n_vertices=6, n_edges=2, dim_c0=6, dim_c1=2, dtype=float64))
    """
    path = file_path(path)
    dim = whole_number("dim", dim, at_least=0)
    signed = flag("signed", signed)
    # the second argument of a reader says whether weights may be negative; networkx accepts all
    readers: dict[str, Callable[..., EdgeList | nx.Graph]] = {
        ".mtx": read_matrix_market,
        ".graph": read_metis,
        **dict.fromkeys((".txt", ".edges", ".edgelist", ".el", ".csv", ".tsv"), read_edge_list),
        ".graphml": read_graphml,
        ".gml": read_gml,
    }
    others = "; read_g2o reads .g2o, read_mesh .off, .obj and .ply, load .npz"
    reader = reader_of(path, readers, "read_graph", others)
    options: dict = {}
    if n_vertices is not None:
        options["n_vertices"] = whole_number("n_vertices", n_vertices, at_least=0)
        if reader not in (read_edge_list, read_matrix_market):
            message = "`n_vertices` is for edge lists; this format states its number of vertices"
            raise file_error(path, None, message)
    graph = reader(path, signed, **options)
    try:
        if isinstance(graph, nx.Graph):
            return _signed(graph, dim) if signed else CellularSheaf.constant(graph, dim)
        if signed:
            sheaf = _signed(graph, dim)
        else:
            sheaf = CellularSheaf.constant(graph.edges, dim, graph.weights, graph.n_vertices)
    except (TypeError, ValueError) as error:
        raise file_error(path, None, str(error)) from None
    return sheaf.with_labels(graph.names)


def _signed(graph: nx.Graph | EdgeList, dim: int) -> CellularSheaf:
    """Return the signed sheaf of a graph; its edge attribute "sign" overrides signs of weights."""
    if isinstance(graph, nx.Graph):
        values = [weight for _, _, weight in graph.edges(data="weight", default=1)]
        weights = scalar_array("weight", values) if values else np.ones(0)
        given: nx.Graph | np.ndarray = graph
        n_vertices, negative = None, weights < 0
        if any("sign" in data for _, _, data in graph.edges(data=True)):
            negative = CellularSheaf.signed(graph).head_data < 0
    else:
        given, weights, n_vertices = graph.edges, graph.weights, graph.n_vertices
        negative = weights < 0
    F = CellularSheaf.constant(given, dim, np.abs(weights), n_vertices)
    head = F.head_data * np.repeat(np.where(negative, -1.0, 1.0), F.edge_dims**2)
    return trusted_sheaf(F.edges, F.vertex_dims, F.edge_dims, F.tail_data, head, F.vertex_labels)
