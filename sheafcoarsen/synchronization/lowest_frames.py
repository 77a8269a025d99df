"""The lowest modes of a connection that fills up little: one factorization, then Lanczos."""

from collections.abc import Callable

import numpy as np

from sheafcoarsen._kernels.operators import LANES
from sheafcoarsen.operators import BlockCholesky
from sheafcoarsen.synchronization.connection import Connection
from sheafcoarsen.synchronization.direct import factored_laplacian, largest_degree

SMALLEST = 200
"""Dimension up to which `eigenmodes` decomposes a dense matrix, to rounding."""

SHIFT = 1e-10
"""Added to the Laplacian, times its largest diagonal entry: beyond rounding, below all gaps."""

STEPS = 16
"""Blocks of Lanczos vectors. Pose graphs take 5 to 10; where frames are hardly determined, more."""

FIRST_LOOK = 3
"""Blocks before which it is not asked whether they are enough."""

FRAME_ERROR = 1e-6
"""Sine of the angle between the d modes found and the true ones, by their residuals."""

GAP_ERROR = 2e-3
"""Relative residual of the inverse's next mode: its eigenvalue's error is about the square."""

DOUBT = 1e-3
"""Relative difference of that eigenvalue and its inverse's beyond which the mode is improved."""


def lowest_frames(connection: Connection, seed: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the d + 1 lowest eigenvalues of a connected real connection, and d orthonormal modes.

    By block Lanczos with the inverse of the shifted Laplacian, as far as rotations need it. None
    where that is not the way, or does not get there.
    """
    n, d = connection.n_vertices, connection.dim
    if n * d <= SMALLEST or d >= LANES:
        return None
    edges, transports, weights = connection.edges, connection.transports, connection.weights
    factors = factored_laplacian(n, edges, transports, weights, SHIFT)
    if factors is None:
        return None
    rng = np.random.default_rng(seed)
    if d == 2 and connection.turns_only.all():
        found = _plane_modes(factors, n, rng)
    else:
        found = _lanczos(factors.solve, rng.standard_normal((n * d, LANES)), d + 1)
    if found is None:
        return None
    modes, inverse = found
    tall = _differences(connection, modes)
    values, turn = np.linalg.eigh(tall.T @ tall)
    frames = modes @ turn[:, :d]
    shifted = values[d] + SHIFT * largest_degree(n, edges, weights)
    if abs(shifted - 1 / inverse) > DOUBT * shifted:
        # large eigenvalues, which the inverse hardly shows, may be in the last mode
        last = factors.solve(modes @ turn[:, d : d + 1])
        for _ in range(2):
            last /= np.linalg.norm(last)
            last -= frames @ (frames.T @ last)
        tall = _differences(connection, last / np.linalg.norm(last))
        values[d] = max(min(values[d], float(np.vdot(tall, tall))), values[d - 1])
    return np.maximum(values[: d + 1], 0), frames


def _differences(connection: Connection, columns: np.ndarray) -> np.ndarray:
    """Return delta x of every column."""
    i, j = connection.edges.T
    blocks = columns.reshape(connection.n_vertices, connection.dim, -1)
    differences = blocks[i] - connection.transports @ blocks[j]
    differences *= np.sqrt(connection.weights)[:, None, None]
    return differences.reshape(-1, columns.shape[1])


def _plane_modes(
    factors: BlockCholesky, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, float] | None:
    """Return four modes of turns of the plane, which are complex numbers: two modes and i times."""

    def solve(z: np.ndarray) -> np.ndarray:
        x = factors.solve(np.stack([z.real, z.imag], axis=1).reshape(2 * n, -1))
        return x[::2] + 1j * x[1::2]

    start = rng.standard_normal((2, n, LANES))
    found = _lanczos(solve, start[0] + 1j * start[1], 2)
    if found is None:
        return None
    modes, inverse = found
    both = np.stack([modes, 1j * modes], axis=2).reshape(n, -1)
    return np.stack([both.real, both.imag], axis=1).reshape(2 * n, -1), inverse


def _lanczos(
    solve: Callable[[np.ndarray], np.ndarray], start: np.ndarray, wanted: int
) -> tuple[np.ndarray, float] | None:
    """Return so many modes of the largest eigenvalues of the inverse, and the last of these.

    None if they take too long. The last mode may be rougher than the others.
    """
    size, width = start.shape
    basis = np.empty((size, width * (STEPS + 1)), start.dtype, order="F")
    projected = np.zeros((basis.shape[1],) * 2, start.dtype)
    basis[:, :width] = _orthonormal(start)[0]
    for lo in range(0, width * STEPS, width):
        hi = lo + width
        old, near = basis[:, :hi], slice(max(lo - width, 0), hi)
        new = solve(basis[:, lo:hi])
        inside = _products(basis[:, near], new)  # what is not near is zero but for rounding
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
    """Return basis* columns, without a conjugate of the basis."""
    return (columns.conj().T @ basis).conj().T


def _orthonormal(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Q and R of a tall matrix, by the Cholesky factor of its Gram matrix if it has one."""
    try:
        R = np.linalg.cholesky(columns.conj().T @ columns).conj().T
    except np.linalg.LinAlgError:  # nearly the same column, again and again
        return np.linalg.qr(columns)
    return columns @ np.linalg.inv(R), R
