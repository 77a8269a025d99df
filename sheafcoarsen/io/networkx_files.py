"""The formats that networkx reads: GraphML and GML."""

import re
import zlib
from xml.etree.ElementTree import ParseError

import networkx as nx

from sheafcoarsen.io.text import file_error, opened, read_lines


def read_graphml(path: str, signed: bool = False) -> nx.Graph:
    """Read GraphML; edges may have the attribute "weight", of any sign."""
    with opened(path) as file:
        try:
            graph = nx.read_graphml(file)
        except ParseError as error:
            raise file_error(path, error.position[0], f"not XML: {error}") from None
        except (EOFError, OSError, zlib.error):  # the file cannot be read
            raise
        except Exception as error:  # networkx lets KeyError and others of its own through
            said = str(error) or type(error).__name__
            raise file_error(path, None, f"not a GraphML graph: {said}") from None
    if graph.is_directed():
        message = 'the graph is directed; write it with edgedefault="undirected"'
        raise file_error(path, None, f"{message} (networkx: graph.to_undirected())")
    return graph


def read_gml(path: str, signed: bool = False) -> nx.Graph:
    """Read GML; nodes are named by their labels where each has one of its own, else by id."""
    lines = ["" if line.startswith("#") else line for line in read_lines(path)]  # no comments
    try:
        graph = nx.parse_gml(lines, label=None)
        labels = [label for _, label in graph.nodes(data="label")]
        if None not in labels and len(set(labels)) == len(labels):
            graph = nx.relabel_nodes(graph, dict(zip(graph, labels, strict=True)))
    except Exception as error:  # networkx lets TypeError, RecursionError and others through
        said = str(error) or type(error).__name__
        place = re.search(r" at \((\d+), \d+\)$", said)
        line = int(place[1]) if place else None
        raise file_error(path, line, f"not a GML graph: {said}") from None
    if graph.is_directed():
        message = "the graph is directed; leave out `directed 1`"
        raise file_error(path, None, f"{message} (networkx: graph.to_undirected())")
    return graph
