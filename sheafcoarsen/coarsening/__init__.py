"""One level of coarsening: a prolongation and a coarse sheaf from a sheaf and a partition.

``_coarsen`` holds :func:`coarsen` and its result, :class:`Coarsening`, whose lift, pool, operators
and quotient graph are in ``views``. ``realization`` constructs the coarse sheaf of a prolongation
R, whose Laplacian is R* L R (``thm:Galerkin_realization``): maps of crossing edges are products of
fine maps with blocks of R, optionally compressed; a loop at each coarse vertex carries the energy
retained in its cluster. ``_energy_ledger`` splits the energy of a cochain into retained, discarded
and coupling terms.

For any R, the crossing rows of the coarse coboundary are rows of the fine one times R, and the
loops contain the remaining energy:

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
    check_topology,
    coarsen,
    growth_of,
    realized,
    refresh_coarsening,
)
from sheafcoarsen.coarsening._energy_ledger import (
    EnergyLedger,
    Ledger,
    check_errors,
    check_isometry,
    energy_ledger,
    isometry_errors,
    ledger_over,
)
from sheafcoarsen.coarsening.realization import (
    SERIAL_BELOW,
    check_pattern,
    coarse_labels,
    realize,
    rounding_noise,
)

__all__ = [
    "SERIAL_BELOW",
    "Coarsening",
    "EnergyLedger",
    "Ledger",
    "check_coarsening",
    "check_errors",
    "check_isometry",
    "check_pattern",
    "check_topology",
    "coarse_labels",
    "coarsen",
    "energy_ledger",
    "growth_of",
    "isometry_errors",
    "ledger_over",
    "realize",
    "realized",
    "refresh_coarsening",
    "rounding_noise",
]
