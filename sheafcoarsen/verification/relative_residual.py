"""Norms of blocks without overflow or underflow, and the largest relative residual."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from sheafcoarsen._support import linalg


def block_norms(
    matrix: csr_array, row_group: np.ndarray, column_group: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the row group, column group and norm of each nonzero block."""
    M = coo_array(matrix)
    row, column = M.coords
    keys, which = np.unique(row_group[row] * width + column_group[column], return_inverse=True)
    return keys // width, keys % width, linalg.scaled_norms(np.abs(M.data), which, len(keys))


class RelativeResidual(NamedTuple):
    """Relative residual: ratio = error / rounding, where rounding = n * eps * prod(norms).

    ``where`` names the block with this ratio, such as "cluster 3"; it is empty if all is one block.
    """

    ratio: float
    error: float
    rounding: float
    where: str = ""


Outcome = tuple[RelativeResidual, str] | str
"""Largest relative residual and method of the check, or reason why the statement does not apply."""

Statement = tuple[str, str, *tuple[Callable[[Any], Any], ...]]
"""Name, label, functions that return a reason if the statement does not apply, and the check."""

ZERO = RelativeResidual(0.0, 0.0, 0.0)
EQUAL = RelativeResidual(0.0, 0.0, 1.0)
FAILED = RelativeResidual(np.inf, np.inf, 0.0)


def relative_residual(
    error: Any, n: Any, eps: float, *norms: Any, blocks: Any = ()
) -> RelativeResidual:
    """Return the largest error relative to ``n * eps * prod(norms)``; NaN counts as inf.

    ``blocks`` says what the rows of ``error`` belong to: "vertex", "cluster" or "edge", and arrays
    of their indices, two for pairs, none if row i belongs to number i; or it names the only block.
    """
    ratios = linalg.residual_ratio(error, n, eps, *norms)
    if ratios.size == 0:
        return ZERO
    ratios = np.where(np.isnan(ratios), np.inf, ratios)
    at = np.unravel_index(np.argmax(ratios), ratios.shape)
    with np.errstate(over="ignore", under="ignore"):
        rounding = np.maximum(n, 1) * eps
        for size in norms:
            rounding = rounding * np.asarray(size, dtype=np.float64)
    error, rounding = (np.broadcast_to(side, ratios.shape)[at] for side in (error, rounding))
    where = blocks if isinstance(blocks, str) else ""
    if blocks and not where:
        kind, *indices = blocks
        which = sorted({int(index[at[0]]) for index in indices} or {int(at[0])})
        where = " and ".join(f"{kind} {i}" for i in which)
    return RelativeResidual(float(ratios[at]), float(error), float(rounding), where)
