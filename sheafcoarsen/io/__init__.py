r"""Files and other libraries: sheaves read in, and all that the library makes written out.

A graph file becomes the constant sheaf or a signed one, a pose graph a connection; ``save`` writes
any object of the library, and ``load`` reads it again:

>>> import pathlib, tempfile
>>> import sheafcoarsen as sc
>>> with tempfile.TemporaryDirectory() as folder:
...     path = pathlib.Path(folder)
...     _ = (path / "triangle.csv").write_text("a,b,4\nb,c\nc,a\n")
...     F = sc.read_graph(path / "triangle.csv")
...     sc.save(path / "triangle.npz", F)
...     sc.load(path / "triangle.npz").vertex_labels
('a', 'b', 'c')

The files:

``graph_files``
    `read_graph`: the ending decides which of ``matrix_market``, ``metis``, ``edge_list`` and
    ``networkx_files`` reads.
``g2o``, ``g2o_lines``, ``g2o_write``
    Pose graphs, there and back.
``mesh_files``
    `read_mesh`: surfaces, by ``off_obj`` and ``ply``; ``polygons`` checks their faces.
``text``, ``edges``
    Lines and numbers, with messages that begin ``path:line``; edges as a graph file gives them.
``npz``, ``npz_archive``, ``schema``
    `save` and `load`: ``schema`` makes arrays of objects, and of arrays objects that fit together;
    ``npz_archive`` reads arrays as if a stranger had written them.
``networkx_graphs``, ``edge_index``
    Maps on the edges of a networkx graph, there and back; the edges of PyTorch Geometric.
"""

from sheafcoarsen.io.edge_index import from_edge_index
from sheafcoarsen.io.g2o import read_g2o
from sheafcoarsen.io.g2o_write import write_g2o
from sheafcoarsen.io.graph_files import read_graph
from sheafcoarsen.io.mesh_files import read_mesh
from sheafcoarsen.io.networkx_graphs import from_networkx, to_networkx
from sheafcoarsen.io.npz import load, save

__all__ = [
    "from_edge_index",
    "from_networkx",
    "load",
    "read_g2o",
    "read_graph",
    "read_mesh",
    "save",
    "to_networkx",
    "write_g2o",
]
