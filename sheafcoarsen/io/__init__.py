"""Files: our own, and graphs and pose graphs written by others."""

from sheafcoarsen.io.g2o import read_g2o
from sheafcoarsen.io.graph_files import read_graph
from sheafcoarsen.io.npz import load, save

__all__ = ["load", "read_g2o", "read_graph", "save"]
