"""What is kept and lost on the whole way down."""

from dataclasses import dataclass

import numpy as np

from sheafcoarsen.coarsening import EnergyLedger, Ledger


@dataclass(frozen=True, eq=False, repr=False)
class HierarchyLedger(Ledger):
    """The energy of a fine cochain x on its way to the coarsest sheaf.

    :meth:`Hierarchy.ledger` makes it.

    Level i has the cochain x_i = R_{i-1}* ... R_0* x. With loops the energy that it keeps is the
    fine energy of level i + 1, so that all that leaves is discarded or coupling energy; without
    loops the retained internal energy leaves too (realization loss).

    Attributes
    ----------
    levels : tuple of EnergyLedger
        That of each level for its own cochain.
    loops : tuple of bool
        Whether each level has loop-cells.
    coarsest_energy : float or ndarray, shape (h,)
        Energy of the pooled cochain in the coarsest sheaf, computed there.

    Examples
    --------
    >>> import networkx as nx
    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant(nx.path_graph(64))
    >>> H = sc.coarsen_levels(F, factor=4, n_levels=2, rank=3)
    >>> E = H.ledger([0.0, 1.0] * 32)
    >>> len(E.levels), E.loops, bool(E.coarsest_energy <= E.fine_energy)
    (2, (True, True), True)
    """

    levels: tuple[EnergyLedger, ...]
    loops: tuple[bool, ...]
    coarsest_energy: float | np.ndarray

    @property
    def fine_energy(self) -> float | np.ndarray:
        """norm(delta x)^2, computed on its own: the lines add up to it."""
        return self.levels[0].fine_energy if self.levels else self.coarsest_energy

    @property
    def lines(self) -> dict[str, float | np.ndarray]:
        """What leaves at each level, and the coarsest sheaf's energy: in all the fine energy."""
        lines = {}
        for i, (E, loops) in enumerate(zip(self.levels, self.loops, strict=True)):
            kept = ("retained internal", "retained crossing") if loops else ("retained crossing",)
            lines.update(
                {f"level {i}: {name}": value for name, value in E.lines.items() if name not in kept}
            )
        return {**lines, "coarsest energy": self.coarsest_energy}
