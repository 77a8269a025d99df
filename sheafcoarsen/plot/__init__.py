"""Plots with matplotlib, which is imported when the first plot is drawn.

Every function draws into ``ax`` and returns it; without ``ax`` it creates a pyplot figure.
Without matplotlib it raises an ImportError; ``pip install "sheafcoarsen[plot]"`` installs it.
Legends are below the axes if the figure has a layout, as in ``plt.subplots(layout="constrained")``.

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> from matplotlib.figure import Figure
>>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
>>> C = sc.coarsen(F, sc.select(F, 5), rank=2)
>>> sc.plot.spectra(C, ax=Figure().add_subplot()).get_title()
'local spectra: retained eigenvalues and the gap above them'

The modules, one for each kind of plot:

``_graphs``
    `partition`: both graphs, side by side; `elimination`: the fine graph and the remaining one.
``_surface``
    `surface` and `field`: numbers and tangent vectors on a mesh.
``_charts``
    `spectra` of all clusters, `quality`: the low spectra of both sheaves, `ledger`: energy, line by
    line, and `hierarchy`: sizes of all levels.
``_modes``
    `modes`: the lowest eigenvalues of a sheaf, and their eigenvectors.
``_poses``
    `poses`: trajectory, measurements and landmarks.
``positions``, ``draw``
    Common functions: positions in a picture; axes, titles, legends, lines, marks, colours.
"""

from sheafcoarsen.plot._charts import hierarchy, ledger, quality, spectra
from sheafcoarsen.plot._graphs import elimination, partition
from sheafcoarsen.plot._modes import modes
from sheafcoarsen.plot._poses import poses
from sheafcoarsen.plot._surface import field, surface

__all__ = [
    "elimination",
    "field",
    "hierarchy",
    "ledger",
    "modes",
    "partition",
    "poses",
    "quality",
    "spectra",
    "surface",
]


def __dir__() -> list[str]:
    """List the plot functions, not the modules."""
    return __all__
