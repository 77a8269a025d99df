"""One pass over map data: the first entry that is not finite, and the largest modulus."""

import numpy as np

from sheafcoarsen._kernels.jit import kernel


@kernel
def scan(data):
    """Return (index of the first non-finite entry or -1, largest modulus of the entries before it)."""
    largest = 0.0
    for i in range(data.size):
        size = float(abs(data[i]))
        if not np.isfinite(size):
            return i, largest
        if size > largest:
            largest = size
    return -1, largest
