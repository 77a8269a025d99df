"""One level: a sheaf and a partition go in, a prolongation and a coarse sheaf come out."""

from sheafcoarsen.coarsening.coarsening import (
    Coarsening,
    check_coarsening,
    coarsen,
    refresh_coarsening,
)
from sheafcoarsen.coarsening.crossing import SERIAL_BELOW
from sheafcoarsen.coarsening.growth import laplacian_growth
from sheafcoarsen.coarsening.realization import realize
from sheafcoarsen.coarsening.refresh import check_topology

__all__ = [
    "SERIAL_BELOW",
    "Coarsening",
    "check_coarsening",
    "check_topology",
    "coarsen",
    "laplacian_growth",
    "realize",
    "refresh_coarsening",
]
