"""Pictures of a coarsening, by matplotlib, which is loaded when the first one is drawn."""

from sheafcoarsen.plot.eigenvalues import quality, spectra
from sheafcoarsen.plot.energy import ledger
from sheafcoarsen.plot.graphs import partition
from sheafcoarsen.plot.sizes import hierarchy

__all__ = [
    "hierarchy",
    "ledger",
    "partition",
    "quality",
    "spectra",
]
