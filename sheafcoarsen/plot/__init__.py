"""Pictures of a coarsening, by matplotlib, which is loaded when the first one is drawn.

Every function draws into ``ax`` and returns it; without ``ax`` it makes a pyplot figure with one.

>>> import networkx as nx
>>> import sheafcoarsen as sc
>>> from matplotlib.figure import Figure
>>> F = sc.CellularSheaf.constant(nx.karate_club_graph())
>>> C = sc.coarsen(F, sc.select(F, 5), rank=2)
>>> sc.plot.spectra(C, ax=Figure().add_subplot()).get_title()
'local spectra: what is kept, and the gap to what is not'

The files, each one kind of picture:

``_partition``
    `partition`: both graphs, side by side, in places by ``layout``.
``_elimination``
    `elimination`: what goes, and what is left beside it.
``_surface``
    `surface` and `field`: numbers and tangent vectors on a mesh, as seen by ``projection``.
``_spectra``
    `spectra` of every cluster, and `quality`: the low spectra of both sheaves.
``_modes``
    `modes`: the lowest eigenvalues of a whole sheaf, and the fields that have them.
``_poses``
    `poses`: the way that was taken, and what was measured across it.
``_ledger``, ``_hierarchy``
    `ledger`: energy, line by line; `hierarchy`: level after level.
``axes``
    What they share.
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
    """Name the pictures, not the files they are in."""
    return __all__
