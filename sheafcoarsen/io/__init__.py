"""Input and output: files, networkx and PyTorch Geometric.

A graph file is read as the constant or a signed sheaf, a pose graph as a connection. ``save``
writes a sheaf, a partition, a hierarchy or one of its levels, and ``load`` reads them.
``graph_files`` reads edge lists, MatrixMarket and METIS for `read_graph`; ``text`` holds lines,
numbers, and errors that begin with ``path:line``.
"""

from sheafcoarsen.io._from_edge_index import from_edge_index
from sheafcoarsen.io._g2o import read_g2o, write_g2o
from sheafcoarsen.io._networkx import from_networkx, to_networkx
from sheafcoarsen.io._read_graph import read_graph
from sheafcoarsen.io._read_mesh import read_mesh
from sheafcoarsen.io._save_load import SETTINGS, Level, Saved, load, read_level, save
from sheafcoarsen.io.text import reading

__all__ = [
    "SETTINGS",
    "Level",
    "Saved",
    "from_edge_index",
    "from_networkx",
    "load",
    "read_g2o",
    "read_graph",
    "read_level",
    "read_mesh",
    "reading",
    "save",
    "to_networkx",
    "write_g2o",
]
