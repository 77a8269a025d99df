"""Input and output: files, networkx and PyTorch Geometric.

A graph file is read as the constant or a signed sheaf, a pose graph as a connection. ``save``
writes a sheaf, a partition, a hierarchy or one of its levels, and ``load`` reads them. The modules:

``_read_graph``, ``graph_files``
    `read_graph`: GraphML and GML, read by networkx; edge lists, MatrixMarket and METIS.
``_read_g2o``, ``_write_g2o``
    Readers and writers of pose graphs.
``_read_mesh``
    `read_mesh`: surfaces in OFF, OBJ and PLY.
``text``
    Lines and numbers, and errors that begin with ``path:line``.
``_save_load``, ``schema``
    `save` and `load`: ``schema`` converts objects to arrays and consistent arrays to objects,
    for files and for stores.
``_networkx``, ``_from_edge_index``
    Conversion to and from networkx graphs with maps on edges; edges of PyTorch Geometric.
"""

from sheafcoarsen.io._from_edge_index import from_edge_index
from sheafcoarsen.io._networkx import from_networkx, to_networkx
from sheafcoarsen.io._read_g2o import read_g2o
from sheafcoarsen.io._read_graph import read_graph
from sheafcoarsen.io._read_mesh import read_mesh
from sheafcoarsen.io._save_load import load, save
from sheafcoarsen.io._write_g2o import write_g2o
from sheafcoarsen.io.schema import SETTINGS, Level, Saved, read_level
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
