"""Maps of the size of 1: what every computation that squares them starts from."""

import numpy as np

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen.sheaf.container import CellularSheaf
from sheafcoarsen.sheaf.from_sheaves import sheaf_like


def unit_sheaf(F: CellularSheaf) -> tuple[CellularSheaf, float]:
    """Return the sheaf in double precision with maps divided by ``unit``, and ``unit``.

    It is the power of two just above the largest entry (1 where all are zero): entries of the new
    maps are below 1, the largest is at least 1/2, and dividing rounds nothing but what lies 1e-308
    below it. So coboundaries scale by ``unit``, Laplacians and energies by its square.
    """
    unit = power_of_two(F.largest_entry)
    double = np.result_type(F.dtype, np.float64)
    # as reals, because numpy divides complex numbers through a reciprocal
    tail, head = (
        (data.astype(double, copy=False).view(np.float64) / unit).view(double)
        for data in (F.tail_data, F.head_data)
    )
    return sheaf_like(F, tail, head), unit
