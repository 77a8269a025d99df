"""Leverages of edges, which generalize weight times effective resistance."""

from typing import Literal, get_args

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import (
    EPS,
    Seed,
    choice,
    fraction,
    random_generator,
    single_threaded_blas,
)
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, sheaf_like, unit_sheaf
from sheafcoarsen.solve._solver import Solver, solve_in_range
from sheafcoarsen.solve.block_scaling import in_blocks, unit_roots

Method = Literal["auto", "exact", "sketch"]

DENSE_BELOW = 1000
"""Dimension of C^0 up to which L is decomposed densely. This takes at most 0.5 s."""

ENTRIES = 2**24
"""Maximum number of entries of a dense block; 2**24 entries take 128 MB in double precision."""

COLUMNS = 64
"""Maximum number of right-hand sides that are solved at once."""


def leverages(
    sheaf: CellularSheaf, *, method: Method = "auto", eps: float = 0.1, seed: Seed = 0
) -> np.ndarray:
    """Return the leverage l_e = trace(F_e L^+ F_e*) of every edge e, F_e being its rows of delta.

    Leverages lie between 0 and d_e, and their sum is the rank of delta, dim C^0 - h^0 (Foster's
    theorem). An edge with zero maps has leverage 0; an edge whose removal adds d_e dimensions of
    global sections has leverage d_e. For a constant sheaf with stalks of dimension 1, l_e is the
    weight of the edge times the effective resistance between its ends, which is the probability
    that a random spanning tree contains the edge. :func:`sparsify` samples edges by leverage.

    Parameters
    ----------
    sheaf : CellularSheaf
    method : {"auto", "exact", "sketch"}
        "exact" solves for each row of delta, or decomposes L if dim C^0 is at most 1000.
        "sketch" solves for 8 / eps^2 random combinations of rows of delta. "auto" uses
        the cheaper method.
    eps : float
        Above 0 and below 1: nine out of ten leverages have this relative error with "sketch".
    seed : None, int or numpy Generator
        Seed of the sketch.

    Returns
    -------
    ndarray, shape (n_edges,)
        In double precision.

    Raises
    ------
    ValueError, TypeError
        If the method is unknown or eps is outside (0, 1).

    Examples
    --------
    A triangle with a pendant edge, which every spanning tree contains:

    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 0], [2, 3]])
    >>> sc.leverages(F).round(12)
    array([0.66666667, 0.66666667, 0.66666667, 1.        ])
    """
    check_sheaf(sheaf)
    choice("method", method, get_args(Method))
    eps = fraction("eps", eps)
    rng = random_generator("seed", seed)
    F = own_unit(sheaf)
    delta = coboundary(unit_sheaf(F)[0])
    columns = int(np.ceil(8 / eps**2))  # for a relative error sqrt(2 / columns) of eps / 2
    small = F.dim_c0 <= DENSE_BELOW
    with single_threaded_blas():
        if small and (method != "sketch" or not F.dim_c0):
            rows = _by_decomposition(F, delta)
        elif method == "exact" or (method == "auto" and F.dim_c1 <= columns):
            rows = _by_solves(Solver(F), delta)
        else:
            rows = sketched(Solver(F), delta, columns, 1e-6, rng)
    return by_edge(F, rows)


def by_edge(F: CellularSheaf, rows: np.ndarray) -> np.ndarray:
    """Return the leverage of every edge: the sum of the leverages of its rows of delta."""
    edge = np.repeat(np.arange(F.n_edges), F.edge_dims)
    # astype, because bincount returns integers if there are no edges
    return np.bincount(edge, np.clip(rows, 0, 1), F.n_edges).astype(float)


def own_unit(F: CellularSheaf) -> CellularSheaf:
    """Return the sheaf with maps divided by a power of two, in its own scalar type.

    The scalar type determines which cochains count as sections.
    """
    unit = unit_sheaf(F)[0]
    return sheaf_like(F, unit.tail_data.astype(F.dtype), unit.head_data.astype(F.dtype))


def _by_decomposition(F: CellularSheaf, delta: scipy.sparse.csr_array) -> np.ndarray:
    """Return the squared row norms of an orthonormal basis of the range of delta.

    Scaling vertex stalks does not change the range. Its dimension is dim C^0 - h^0, with the number
    of sections that ``global_sections`` finds.
    """
    rank = F.dim_c0 - global_sections(F).h0
    if not rank:
        return np.zeros(F.dim_c1)
    dims, L = F.vertex_dims, scipy.sparse.csr_array(delta.conj().T @ delta)
    unit = scipy.sparse.csr_array(delta @ unit_roots(in_blocks(L, dims, dims), dims)[0])
    values, X = scipy.linalg.eigh((unit.conj().T @ unit).toarray())
    W = X[:, -rank:] / np.sqrt(np.maximum(values[-rank:], EPS * values[-1]))
    step = max(ENTRIES // rank, 1)
    parts = [unit[first : first + step] for first in range(0, unit.shape[0], step)]
    if values[-rank] > 1e-6 * values[-1]:
        return np.concatenate([_row_squares(part @ W) for part in parts])
    # orthonormalize delta W to reach an error of 1e-10; components of W in ker L do no harm
    R = scipy.linalg.cholesky(sum((part @ W).conj().T @ (part @ W) for part in parts))
    images = (scipy.linalg.solve_triangular(R, (part @ W).T, trans="T") for part in parts)
    return np.concatenate([_row_squares(image.T) for image in images])


def _by_solves(solve: Solver, delta: scipy.sparse.csr_array) -> np.ndarray:
    """Return the diagonal of delta L^+ delta*, computed in blocks of columns.

    The entry of a unit vector e is 2 Re <e, delta x> - norm(delta x)^2 with x near L^+ delta* e,
    and its error is the square of the error of delta x.
    """
    rows = np.zeros(delta.shape[0])
    for first in range(0, len(rows), COLUMNS):
        part = delta[first : first + COLUMNS]
        chosen = np.arange(part.shape[0])
        Y = delta @ solve_in_range(solve, part.conj().T.toarray(), 1e-10)
        rows[first + chosen] = 2 * Y[first + chosen, chosen].real - _row_squares(Y.T)
    return rows


def sketched(
    solve: Solver, delta: scipy.sparse.csr_array, columns: int, tol: float, rng: np.random.Generator
) -> np.ndarray:
    """Return the mean squares of the rows of delta L^+ delta* Q for random signs Q.

    This is a Johnson-Lindenstrauss sketch (Spielman and Srivastava, SIAM J. Comput. 40, 2011).
    """
    rows, delta_adjoint = np.zeros(delta.shape[0]), scipy.sparse.csr_array(delta.conj().T)
    width = min(max(ENTRIES // max(len(rows), 1), 1), COLUMNS)
    for first in range(0, columns, width):
        shape = len(rows), min(width, columns - first)
        signs = 2.0 * rng.integers(0, 2, shape, np.int8) - 1
        rows += _row_squares(delta @ solve_in_range(solve, delta_adjoint @ signs, tol))
    return rows / columns


def _row_squares(A: np.ndarray) -> np.ndarray:
    """Return the squared norms of the rows of A."""
    return np.einsum("ij,ij->i", A.conj(), A).real
