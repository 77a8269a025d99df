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
"""

from sheafcoarsen.plot._charts import hierarchy, ledger, quality, spectra
from sheafcoarsen.plot._fields import field, modes, surface
from sheafcoarsen.plot._graphs import elimination, partition
from sheafcoarsen.plot._poses import poses

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
