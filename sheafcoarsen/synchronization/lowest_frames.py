"""Lowest eigenvectors of a connection Laplacian with sparse factors, by block Lanczos."""

from collections.abc import Callable

import numpy as np
import scipy.sparse

from sheafcoarsen._support import EPS, range_of_blocks
from sheafcoarsen.operators import (
    Factors,
    apply_coboundary,
    coboundary,
    elimination_order,
    laplacian,
)
from sheafcoarsen.sheaf import CellularSheaf
from sheafcoarsen.solve import least_squares
from sheafcoarsen.synchronization.connection import Connection, sheaf_of

SMALLEST = 200
"""Dimension up to which `eigenmodes` decomposes a dense matrix, to rounding."""

LARGEST_STALK = 3
"""Largest stalk dimension: blocks of ``WIDTH`` columns hold d + 1 modes."""

WIDTH = 4
"""Columns of a block of Lanczos vectors."""

OPERATIONS = 2e10
"""Operations of a factorization above which `eigenmodes` is used instead."""

SHIFT = 1e-10
"""Shift of the Laplacian, relative to its largest diagonal entry: above rounding, below gaps."""

STEPS = 16
"""Largest number of Lanczos blocks: pose graphs take 5 to 10, ill-determined frames more."""

FIRST_LOOK = 3
"""Blocks before the first test of convergence."""

FRAME_ERROR = 1e-6
"""Bound of the sine of the angle between computed and true modes, by their residuals."""

GAP_ERROR = 2e-3
"""Relative residual of the (d + 1)-th mode; the error of its eigenvalue is about the square."""

DOUBT = 1e-3
"""Relative difference between that eigenvalue and its inverse's above which it is improved."""


def factored(L: scipy.sparse.csr_array, shift: float) -> Factors | None:
    """Return the factors of L + shift I, or None if they are too large."""
    order = elimination_order(L, OPERATIONS)
    return Factors(L, shift, order) if order.operations <= OPERATIONS else None


def least_energy(
    sheaf: CellularSheaf, b: np.ndarray, roots: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return the x, (dim_c0, h), of least norm(delta x - b), given at a root of each component.

    ``values`` have the shape (c, d, h). Normal equations in double precision are factored; if that
    is too expensive, :func:`least_squares` solves them.
    """
    fixed = range_of_blocks(sheaf.vertex_offsets, roots)
    x = np.zeros((sheaf.dim_c0, b.shape[1]), np.result_type(sheaf.dtype, b, values))
    free = np.ones(len(x), bool)
    free[fixed] = False
    x[fixed] = values.reshape(len(fixed), -1)
    if not free.any():
        return x
    L = laplacian(sheaf)[free][:, free]
    factors = factored(L, 0.0) if np.finfo(L.dtype).eps == EPS else None
    if factors is None:
        return least_squares(sheaf, b, vertices=roots, values=values).x
    x[free] = factors.solve((coboundary(sheaf).conj().T @ (b - apply_coboundary(sheaf, x)))[free])
    return x


def lowest_frames(connection: Connection, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the d + 1 lowest eigenvalues of a connected real connection, and d orthonormal modes.

    By block Lanczos with the inverse of the shifted Laplacian, to the accuracy that rotations need.
    None for small or complex connections, for large stalks, if factors are too large, or if it does
    not converge. Rotations of the plane are complex numbers: a mode z gives two, z and i z.
    """
    n, d = connection.n_vertices, connection.dim
    if n * d <= SMALLEST or d > LARGEST_STALK or connection.transports.dtype.kind == "c":
        return None
    if d == 2 and connection.turns_only.all():
        transports = connection.transports
        plane = transports[:, :1, :1] - 1j * transports[:, :1, 1:]
        found = _lowest(connection._replace(transports=plane), seed)
        if found is None:
            return None
        z = found[1]
        modes = np.stack([np.hstack([z.real, -z.imag]), np.hstack([z.imag, z.real])], axis=1)
        return np.repeat(found[0], 2)[:3], modes.reshape(2 * n, 2)
    return _lowest(connection, seed)


def _lowest(connection: Connection, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return d + 1 eigenvalues and d modes, complex ones for the plane."""
    n, d = connection.n_vertices, connection.dim
    sheaf = sheaf_of(connection)
    L = laplacian(sheaf)
    shift = SHIFT * float(L.diagonal().real.max())
    factors = factored(L, shift)
    if factors is None:
        return None
    rng = np.random.default_rng(seed)
    start = rng.standard_normal((n * d, WIDTH)).astype(L.dtype)
    if L.dtype.kind == "c":
        start += 1j * rng.standard_normal(start.shape)
    found = _lanczos(factors.solve, start, d + 1)
    if found is None:
        return None
    modes, inverse = found
    tall = apply_coboundary(sheaf, modes)
    values, turn = np.linalg.eigh(tall.conj().T @ tall)
    frames = modes @ turn[:, :d]
    shifted = values[d] + shift
    if abs(shifted - 1 / inverse) > DOUBT * shifted:
        # the last mode may have components of large eigenvalues, which the inverse damps
        last = factors.solve(modes @ turn[:, d : d + 1])
        for _ in range(2):
            last /= np.linalg.norm(last)
            last -= frames @ (frames.conj().T @ last)
        tall = apply_coboundary(sheaf, last / np.linalg.norm(last))
        values[d] = np.vdot(tall, tall).real
    return np.maximum(values[: d + 1], 0), frames


def _lanczos(
    solve: Callable[[np.ndarray], np.ndarray], start: np.ndarray, wanted: int
) -> tuple[np.ndarray, float] | None:
    """Return the modes of the largest eigenvalues of the inverse, and the last eigenvalue.

    None if they do not converge. The last mode may be less accurate than the others.
    """
    size, width = start.shape
    basis = np.empty((size, width * (STEPS + 1)), start.dtype, order="F")
    projected = np.zeros((basis.shape[1],) * 2, start.dtype)
    basis[:, :width] = _orthonormal(start)[0]
    for lo in range(0, width * STEPS, width):
        hi = lo + width
        old, near = basis[:, :hi], slice(max(lo - width, 0), hi)
        new = solve(basis[:, lo:hi])
        inside = _products(basis[:, near], new)  # zero up to rounding with older blocks
        new, first = _orthonormal(new - basis[:, near] @ inside)
        again = _products(old, new)
        new, second = _orthonormal(new - old @ again)
        projected[:hi, lo:hi] = again @ first
        projected[near, lo:hi] += inside
        link = second @ first
        projected[hi : hi + width, lo:hi] = link
        basis[:, hi : hi + width] = new
        if hi < FIRST_LOOK * width:
            continue
        values, vectors = np.linalg.eigh(projected[:hi, :hi], UPLO="U")
        values, vectors = values[::-1][:wanted], vectors[:, ::-1][:, :wanted]
        residuals = np.linalg.norm(link @ vectors[lo:hi], axis=0)
        gap = values[-2] - values[-1]
        if residuals[:-1].max() <= FRAME_ERROR * gap and residuals[-1] <= GAP_ERROR * values[-1]:
            return old @ vectors, float(values[-1])
    return None


def _products(basis: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return basis* columns without conjugating the large basis."""
    return (columns.conj().T @ basis).conj().T


def _orthonormal(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q and R of a tall matrix, by Cholesky of its Gram matrix if that is definite."""
    try:
        R = np.linalg.cholesky(columns.conj().T @ columns).conj().T
    except np.linalg.LinAlgError:  # nearly dependent columns
        return np.linalg.qr(columns)
    return columns @ np.linalg.inv(R), R
