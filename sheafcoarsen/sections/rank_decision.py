"""Step (d): the last sheaf is decomposed densely, and which singular values are zero is decided."""

import numpy as np

from sheafcoarsen._support import EPS, eps_of
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sheaf import CellularSheaf

DENSE_ROWS = 1000
"""Rows of delta that are made dense at a time, at least."""


ZERO_ROUNDING = 10
"""Singular values up to so many n eps / g are zero, g the smallest of what was left out."""


LARGE_ZERO = 100
"""A zero of more than so many eps is worth a warning, unless it is far below the threshold."""


CLEAR = {8: 1e3, 4: 3.0}
"""How far above the threshold a singular value is clearly not zero, by bytes of a real number.

Errors of single precision are in the maps alone, and what they may do is known better.
"""


SMALL_GAP = 1e3
"""How far zeros must stay below the threshold, and the others above zeros."""


def right_singular_vectors(sheaf: CellularSheaf) -> tuple[np.ndarray, np.ndarray]:
    """Return the right singular vectors of delta as columns, and the singular values, ascending."""
    n = sheaf.dim_c0
    delta = coboundary(sheaf)
    rows = max(DENSE_ROWS, 2 * n)  # so that dense rows never take more than a few times n^2
    triangle = np.zeros((0, n), sheaf.dtype)
    for lo in range(0, delta.shape[0], rows):
        triangle = np.concatenate([triangle, delta[lo : lo + rows].toarray()])
        if len(triangle) > n:
            triangle = np.asarray(np.linalg.qr(triangle, mode="r"))
    if n == 0:
        return np.zeros((0, 0), sheaf.dtype), np.zeros(0)
    _, found, vectors = np.linalg.svd(triangle, full_matrices=True)
    sigma = np.zeros(n)
    sigma[: len(found)] = found
    return vectors[::-1].conj().T, sigma[::-1]


def zero_threshold(n: int, eps: float, dropped: float) -> float:
    """Return the singular value up to which a unit cochain is a section, n the last dimension.

    What was left out, of singular values from ``dropped`` on, leaks rounding over that.
    """
    return ZERO_ROUNDING * max(eps, n * EPS) / dropped


def doubt(
    zero: float, nonzero: float, threshold: float, weight: float, dtype: np.dtype
) -> str | None:
    """Return why rounding may have decided what is zero, or None where all is clear.

    Zeros are what errors of rounding size in the maps make, ``weight`` times as large where these
    are ill-conditioned. Where zeros or the others come near the threshold, other such errors might
    have moved them across.
    """
    largest = max(LARGE_ZERO * eps_of(dtype), threshold / SMALL_GAP) * weight
    smallest = max(CLEAR[real_bytes(dtype)] * threshold, SMALL_GAP * zero)
    if zero <= largest and nonzero >= smallest:
        return None
    other = "there is no other" if nonzero == np.inf else f"the smallest other is {nonzero:.2g}"
    return (
        f"the largest singular value taken for zero is {zero:.2g}, {other}; a clear decision has "
        f"none between {largest:.2g} and {smallest:.2g}"
    )


def real_bytes(dtype: np.dtype) -> int:
    """Return the size of a real number, or of the parts of a complex one."""
    return dtype.type(0).real.itemsize
