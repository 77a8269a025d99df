"""Files and other libraries."""

from sheafcoarsen.io.edge_index import from_edge_index
from sheafcoarsen.io.g2o import read_g2o
from sheafcoarsen.io.graph_files import read_graph
from sheafcoarsen.io.networkx_graphs import from_networkx, to_networkx
from sheafcoarsen.io.npz import load, save

__all__ = [
    "from_edge_index",
    "from_networkx",
    "load",
    "read_g2o",
    "read_graph",
    "save",
    "to_networkx",
]
