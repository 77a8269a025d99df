"""Files: sheaves and graphs written by others."""

from sheafcoarsen.io.g2o import read_g2o
from sheafcoarsen.io.graph_files import read_graph

__all__ = ["read_g2o", "read_graph"]
