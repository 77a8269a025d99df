"""Pictures of a coarsening, by matplotlib, which is loaded when the first one is drawn."""

from sheafcoarsen.plot.eigenvalues import quality, spectra
from sheafcoarsen.plot.graphs import partition
from sheafcoarsen.plot.sizes import hierarchy
from sheafcoarsen.plot.waterfall import ledger

__all__ = [
    "hierarchy",
    "ledger",
    "partition",
    "quality",
    "spectra",
]
