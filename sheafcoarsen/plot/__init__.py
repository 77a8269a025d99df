"""Plots by matplotlib, which is imported when the first plot is drawn.

Every function draws into ``ax`` and returns it; without ``ax`` it creates a pyplot figure.
Legends are below the axes if the figure has a layout, as in ``plt.subplots(layout="constrained")``.

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> from matplotlib.figure import Figure
>>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
>>> C = sc.coarsen(F, sc.select(F, 5), rank=2)
>>> sc.plot.spectra(C, ax=Figure().add_subplot()).get_title()
'local spectra: retained eigenvalues and the gap above them'

The modules, one for each kind of plot:

``_partition``
    `partition`: both graphs, side by side; ``positions`` computes positions.
``_elimination``
    `elimination`: the fine graph and the remaining one.
``_surface``
    `surface` and `field`: numbers and tangent vectors on a mesh.
``_spectra``
    `spectra` of all clusters, and `quality`: the low spectra of both sheaves.
``_modes``
    `modes`: the lowest eigenvalues of a sheaf, and their eigenvectors.
``_poses``
    `poses`: trajectory, measurements and landmarks.
``_ledger``, ``_hierarchy``
    `ledger`: energy, line by line; `hierarchy`: sizes of all levels.
``axes``
    Common functions: axes, titles, scales, lines, legends, colours.
"""

from sheafcoarsen.plot._elimination import elimination
from sheafcoarsen.plot._hierarchy import hierarchy
from sheafcoarsen.plot._ledger import ledger
from sheafcoarsen.plot._modes import modes
from sheafcoarsen.plot._partition import partition
from sheafcoarsen.plot._poses import poses
from sheafcoarsen.plot._spectra import quality, spectra
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
