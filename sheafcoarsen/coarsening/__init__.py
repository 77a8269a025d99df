"""One level: a sheaf and a partition go in, a prolongation and a coarse sheaf come out.

``_coarsen``
    :func:`coarsen` and its result, :class:`Coarsening`, which knows the way up and down and
    coarsens new maps again;
``realization``
    the coarse sheaf of an R, whose Laplacian is R* L R (``thm:Galerkin_realization``): first the
    maps of crossing edges, fine maps times blocks of R, compressed where asked; then
    ``loops``, a loop at each coarse vertex for the energy kept inside its cluster;
``views``
    what a coarsening shows: the way up and down, operators, the graph of clusters;
``checks``
    whether what a caller brings fits together, and whether a sheaf may take another's place;
``_energy_ledger``
    what the energy of a cochain becomes, line by line, so that the lines add up.

Whatever R is, crossing rows of the coarse coboundary are rows of the fine one, and the loops hold
the rest of the energy:

>>> import networkx as nx
>>> import numpy as np
>>> import sheafcoarsen as sc
>>> F = sc.CellularSheaf.random(nx.grid_2d_graph(6, 6), 2, 3, seed=3)
>>> C = sc.coarsen(F, sc.select(F, 4), 3)
>>> C
Coarsening(internal modes: 36 -> 4 vertices, dim C^0 72 -> 12, 60 -> 4 edges + 4 loops)
>>> delta, crossing = sc.coboundary(C.sheaf), len(C.crossing_rows)
>>> lifted = sc.coboundary(F) @ C.prolongation
>>> bool(abs(delta[:crossing] - lifted[C.crossing_rows]).max() < 1e-14)
True
>>> inside = (delta[crossing:].T @ delta[crossing:]).toarray()
>>> bool(np.abs(inside[:3, :3] - C.internal_operator(0)).max() < 1e-13)
True
"""

from sheafcoarsen.coarsening._coarsen import (
    Coarsening,
    check_coarsening,
    coarsen,
    growth_of,
    realized,
    refresh_coarsening,
)
from sheafcoarsen.coarsening._energy_ledger import (
    EnergyLedger,
    Ledger,
    check_isometry,
    energy_ledger,
    ledger_over,
)
from sheafcoarsen.coarsening.checks import check_pattern, check_topology
from sheafcoarsen.coarsening.realization import SERIAL_BELOW, realize, rounding_of

__all__ = [
    "SERIAL_BELOW",
    "Coarsening",
    "EnergyLedger",
    "Ledger",
    "check_coarsening",
    "check_isometry",
    "check_pattern",
    "check_topology",
    "coarsen",
    "energy_ledger",
    "growth_of",
    "ledger_over",
    "realize",
    "realized",
    "refresh_coarsening",
    "rounding_of",
]
