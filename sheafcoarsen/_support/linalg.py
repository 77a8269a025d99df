"""Scaled norms, thresholds for rounding errors, and relative residuals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support.ragged import offsets

RESIDUAL_LIMIT = 30.0
"""Upper bound on ``norm(error) / (n eps product of norms)`` for identities that hold.

LAPACK's tests use the same bound.
"""


def eps_of(dtype: npt.DTypeLike) -> float:
    """Return the machine epsilon of a real or complex dtype."""
    return float(np.finfo(dtype).eps)


def norm(array: npt.ArrayLike) -> float:
    """Return the Frobenius norm, scaling internally to avoid overflow and underflow."""
    moduli = np.abs(array).ravel()  # dividing complex by subnormal numbers overflows
    largest = float(moduli.max(initial=0))
    if largest == 0.0 or not np.isfinite(largest):
        return largest
    moduli = moduli / moduli.dtype.type(largest)
    moduli *= moduli
    # numpy sums in a fixed order; BLAS would divide the sum among its threads
    return largest * float(np.sqrt(moduli.sum()))


def scaled_norms(moduli: np.ndarray, which: np.ndarray, count: int) -> np.ndarray:
    """Return the norm of each group of entries, scaling to avoid overflow and underflow."""
    moduli = moduli.astype(np.float64, copy=False)
    largest = np.zeros(count)
    np.maximum.at(largest, which, moduli)
    scale = np.where(largest > 0, largest, 1.0)
    return scale * np.sqrt(np.bincount(which, (moduli / scale[which]) ** 2, minlength=count))


def ragged_norms(data: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return the norm of each block of ragged data, without overflow or underflow."""
    count = len(starts) - 1
    return scaled_norms(np.abs(data), np.repeat(np.arange(count), np.diff(starts)), count)


def norms_by(matrix: Any, row_group: np.ndarray, column_group: Any, count: int) -> np.ndarray:
    """Return the Frobenius norms of row groups, or of diagonal blocks if columns are grouped."""
    M = scipy.sparse.csr_array(matrix)
    group = np.repeat(row_group, np.diff(M.indptr))
    moduli = np.abs(M.data)
    if column_group is not None:
        inside = group == column_group[M.indices]
        group, moduli = group[inside], moduli[inside]
    return scaled_norms(moduli, group, count)


def diagonal_blocks(
    matrix: Any, row_part: np.ndarray, column_part: np.ndarray, chosen: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield parts, their columns and dense blocks, (k,), (k, q) and (k, p, q), shape by shape.

    ``row_part`` and ``column_part`` are the parts of rows and columns of a block diagonal matrix;
    parts in the mask ``chosen`` are yielded, blocks of at most about 2e6 entries at a time.
    """
    M = scipy.sparse.csr_array(matrix)
    groups = row_part, column_part
    sizes = [np.bincount(group, minlength=len(chosen))[: len(chosen)] for group in groups]
    rows, columns = (np.argsort(group, kind="stable") for group in groups)
    shapes, (row_starts, starts) = np.stack(sizes, axis=1), map(offsets, sizes)
    position = np.empty(len(columns), np.int64)
    position[columns] = np.arange(len(columns)) - starts[column_part[columns]]
    for p, q in np.unique(shapes[chosen], axis=0).tolist():
        alike = np.flatnonzero(chosen & (shapes == (p, q)).all(axis=1))
        for parts in np.array_split(alike, -(-len(alike) * p * q // 2_000_000) or 1):
            own = M[rows[(row_starts[parts][:, None] + np.arange(p)).ravel()]]
            dense = np.zeros((len(parts) * p, q), M.dtype)
            row = np.repeat(np.arange(len(dense)), np.diff(own.indptr))
            dense[row, position[own.indices]] = own.data
            members = columns[starts[parts][:, None] + np.arange(q)]
            yield parts, members, dense.reshape(len(parts), p, q)


def inf_norm(A: Any) -> float:
    """Return the largest row sum of absolute values of a sparse or dense matrix."""
    return float(abs(A).sum(axis=1).max(initial=0.0))


def eigenvectors(A: np.ndarray, first: int, last: int) -> np.ndarray:
    """Return the eigenvectors ``first`` to ``last`` of a Hermitian matrix, by ascending eigenvalue.

    LAPACK's solver for a subset may fail if many eigenvalues are equal; then all are computed.
    """
    try:
        return scipy.linalg.eigh(A, subset_by_index=[first, last])[1]
    except np.linalg.LinAlgError:
        return scipy.linalg.eigh(A, driver="evd")[1][:, first : last + 1]


def zero_level(n: Any, eps: float, size: Any) -> Any:
    """Return 4 n eps ``size``, the threshold up to which a number counts as zero."""
    return 4.0 * n * eps * size


def zero_energy(n: Any, dtype: npt.DTypeLike, size: Any) -> Any:
    """Return the level up to which eigenvalues of a Laplacian of norm ``size`` count as zero.

    Eigenvalues are computed in double precision. Rounding of maps in single precision changes
    singular values of delta by a few eps norm(delta), independently of n, so that eigenvalues up to
    (4 eps)^2 ``size`` count as zero.
    """
    level = np.maximum(zero_level(n, eps_of(float), 1.0), zero_level(1, eps_of(dtype), 1.0) ** 2)
    return level * np.asarray(size, np.float64)


def residual_ratio(
    error: npt.ArrayLike, n: npt.ArrayLike, eps: float, *norms: npt.ArrayLike
) -> np.ndarray:
    """Return ``error / (n eps product of norms)``, with 0/0 = 0; arguments broadcast."""
    ratio = np.asarray(error, dtype=np.float64) / (np.maximum(n, 1) * eps)
    # a few subnormal units of error count as zero: their ratio to the norms is meaningless
    zero = np.asarray(error) <= 64 * np.maximum(n, 1) * np.finfo(np.float64).smallest_subnormal
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for size in norms:
            ratio = ratio / size
    return np.where(zero, 0.0, ratio)


def by_real_columns(function: Callable[[np.ndarray], np.ndarray], X: np.ndarray) -> np.ndarray:
    """Return f(X) for complex X and a real linear map f, applied to real and imaginary parts."""
    columns = np.ascontiguousarray(X).reshape(len(X), -1)
    parts = np.ascontiguousarray(function(columns.view(columns.real.dtype)))
    return parts.view(np.result_type(parts, np.complex64)).reshape(len(parts), *X.shape[1:])


def normal(rng: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray:
    """Return standard normal numbers; of complex ones, both parts are."""
    X = rng.standard_normal(shape)
    return (X + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else X).astype(dtype)
