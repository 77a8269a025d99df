"""Coarsening of cellular sheaves."""
from sheafcoarsen import ranks
from sheafcoarsen.sheaf import CellularSheaf, disjoint_union, split
from sheafcoarsen.partition import Partition
from sheafcoarsen.operators import *
from sheafcoarsen.modes import LocalModes, local_modes
from sheafcoarsen.coarsening import Coarsening, coarsen
