"""Scaled norms, thresholds in units of rounding, and the ratio that judges every identity."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

RESIDUAL_LIMIT = 30.0
"""An identity holds when ``norm(error) / (n eps product of norms)`` is below this.

LAPACK's own tests judge so.
"""


ZERO_FACTOR = 4.0
"""A quantity is zero to working accuracy at or below this times ``n eps norm``."""


def eps_of(dtype: npt.DTypeLike) -> float:
    """Return the unit roundoff spacing of a real or complex dtype."""
    return float(np.finfo(dtype).eps)


def norm(array: npt.ArrayLike) -> float:
    """Frobenius norm that neither overflows nor vanishes: divides by the largest entry first."""
    moduli = np.abs(array).ravel()  # dividing complex numbers by a subnormal one would overflow
    if moduli.size == 0:
        return 0.0
    largest = float(moduli.max())
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    moduli = moduli / moduli.dtype.type(largest)
    moduli *= moduli
    # numpy sums in one order only; BLAS would split the sum among its threads
    return largest * float(np.sqrt(moduli.sum()))


def inf_norm(A: Any) -> float:
    """Return the largest row sum of absolute values of a sparse or dense matrix."""
    return float(abs(A).sum(axis=1).max(initial=0.0))


def zero_level(n: Any, eps: float, size: Any) -> Any:
    """Return the level below which a number is zero relative to ``size``; arrays broadcast."""
    return ZERO_FACTOR * n * eps * size


def residual_ratio(
    error: npt.ArrayLike, n: npt.ArrayLike, eps: float, *norms: npt.ArrayLike
) -> np.ndarray:
    """Return ``error / (n eps product of norms)``, 0/0 being 0; arguments broadcast."""
    ratio = np.asarray(error, dtype=np.float64) / (np.maximum(n, 1) * eps)
    # below what doubles resolve
    zero = np.asarray(error) <= 64 * np.maximum(n, 1) * np.finfo(np.float64).smallest_subnormal
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for size in norms:
            ratio = ratio / size
    return np.where(zero, 0.0, ratio)


def by_real_columns(function: Callable[[np.ndarray], np.ndarray], X: np.ndarray) -> np.ndarray:
    """Return f(X) for a real linear f: of complex columns, from twice as many real ones."""
    if X.dtype.kind != "c":
        return function(X)
    columns = np.ascontiguousarray(X).reshape(len(X), -1)
    parts = np.ascontiguousarray(function(columns.view(columns.real.dtype)))
    return parts.view(np.result_type(parts, np.complex64)).reshape(len(parts), *X.shape[1:])
