"""Scaled norms, whole and by group."""

import numpy as np
import scipy.sparse


def scaled_norms(moduli, which, count) -> np.ndarray:
    """Frobenius norms of groups of entries, scaled by the largest of each against over- and underflow."""
    moduli = moduli.astype(np.float64)
    largest = np.zeros(count)
    np.maximum.at(largest, which, moduli)
    scale = np.where(largest > 0, largest, 1.0)
    return scale * np.sqrt(np.bincount(which, (moduli / scale[which]) ** 2, minlength=count))


def norms_by(matrix, row_group, column_group, count) -> np.ndarray:
    """Frobenius norms of the row groups of a sparse matrix, or of its diagonal blocks when columns are grouped too."""
    M = scipy.sparse.coo_array(matrix)
    group = row_group[M.coords[0]]
    moduli = np.abs(M.data)
    if column_group is not None:
        inside = group == column_group[M.coords[1]]
        group, moduli = group[inside], moduli[inside]
    return scaled_norms(moduli, group, count)


def worst(ratios) -> float:
    """Return the largest ratio; NaN counts as infinite."""
    ratios = np.asarray(ratios, dtype=np.float64)
    return float(np.where(np.isnan(ratios), np.inf, ratios).max(initial=0.0))
