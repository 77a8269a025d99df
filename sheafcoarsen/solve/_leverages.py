"""Leverages of edges, which generalize effective resistances times weights."""

import functools
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
"""Dimension of C^0 up to which L is decomposed: .5 s at most."""

LOW = 1e-6
"""Eigenvalue relative to the largest at or below which rounding would show in 1e-10."""

PER_COLUMN = 8
"""Columns of a sketch times eps^2: a relative error of sqrt(2 / columns) is eps / 2."""

ENTRIES = 2**24
"""Entries of the random signs that are drawn at once, 128 MB."""

COLUMNS = 64
"""Largest number of right sides that are solved at once."""

EXACT_TOL, SKETCH_TOL = 1e-10, 1e-6
"""Relative residuals of the solves."""


def leverages(
    sheaf: CellularSheaf, *, method: Method = "auto", eps: float = 0.1, seed: Seed = 0
) -> np.ndarray:
    """Return the leverage of every edge: l_e = trace of F_e L^+ F_e*, F_e the rows of delta.

    They are between 0 and d_e, and their sum is the rank of delta, dim C^0 - h^0 (Foster's
    theorem): 0 for zero maps, d_e where the global sections would be more without the edge, in
    every direction of its stalk. For a constant sheaf with stalks of dimension 1, l_e is the weight
    of the edge times the effective resistance between its ends, the probability that a random
    spanning tree has it. :func:`sparsify` samples edges by their leverages.

    Parameters
    ----------
    sheaf : CellularSheaf
    method : {"auto", "exact", "sketch"}
        "exact" solves for each row of delta, or decomposes L where dim C^0 is at most 1000.
        "sketch" solves for 8 / eps^2 random combinations of rows of delta. "auto" takes
        the cheaper one.
    eps : float
        Relative error that nine of ten leverages keep with "sketch", above 0 and below 1.
    seed : None, int or numpy Generator
        Of the sketch.

    Returns
    -------
    ndarray, shape (n_edges,)
        In double precision.

    Raises
    ------
    ValueError, TypeError
        An unknown method; eps outside (0, 1).

    Examples
    --------
    A triangle with a tail, which no spanning tree can do without:

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
    columns = int(np.ceil(PER_COLUMN / eps**2))
    small = F.dim_c0 <= DENSE_BELOW
    with single_threaded_blas():
        if small and (method != "sketch" or not F.dim_c0):
            rows = _by_decomposition(F, delta)
        elif method == "exact" or (method == "auto" and F.dim_c1 <= columns):
            rows = _by_solves(Solver(F), delta)
        else:
            rows = sketched(Solver(F), delta, columns, SKETCH_TOL, rng)
    return by_edge(F, rows)


def by_edge(F: CellularSheaf, rows: np.ndarray) -> np.ndarray:
    """Return the leverages of edges from those of the rows of delta."""
    edge = np.repeat(np.arange(F.n_edges), F.edge_dims)
    return np.bincount(edge, np.clip(rows, 0, 1), F.n_edges).astype(float)  # integers if empty


def own_unit(F: CellularSheaf) -> CellularSheaf:
    """Return the sheaf with maps divided by a power of two, in its own scalar type.

    The type decides what is a section.
    """
    unit = unit_sheaf(F)[0]
    return sheaf_like(F, unit.tail_data.astype(F.dtype), unit.head_data.astype(F.dtype))


def _by_decomposition(F: CellularSheaf, delta: scipy.sparse.csr_array) -> np.ndarray:
    """Return the squared row norms of an orthonormal basis of the range of delta.

    Scaling stalks of vertices does not change the range; its dimension is that of C^0 without the
    global sections, as these are decided elsewhere.
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
    if values[-rank] > LOW * values[-1]:
        return np.concatenate([_row_squares(part @ W) for part in parts])
    # delta W is not orthonormal to 1e-10; that W has a part in ker L does not matter
    factor = scipy.linalg.cholesky(sum((part @ W).conj().T @ (part @ W) for part in parts))
    solve = functools.partial(scipy.linalg.solve_triangular, factor, trans="T", check_finite=False)
    return np.concatenate([_row_squares(solve((part @ W).T).T) for part in parts])


def _by_solves(solve: Solver, delta: scipy.sparse.csr_array) -> np.ndarray:
    """Return the diagonal of delta L^+ delta*, some of its columns at a time.

    With x about L^+ delta* e it is 2 Re <e, delta x> - norm(delta x)^2, whose error is the square
    of that of delta x.
    """
    rows = np.zeros(delta.shape[0])
    for first in range(0, len(rows), COLUMNS):
        part = delta[first : first + COLUMNS]
        chosen = np.arange(part.shape[0])
        Y = delta @ solve_in_range(solve, part.conj().T.toarray(), EXACT_TOL)
        rows[first + chosen] = 2 * Y[first + chosen, chosen].real - _row_squares(Y.T)
    return rows


def sketched(
    solve: Solver,
    delta: scipy.sparse.csr_array,
    columns: int,
    tol: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the squared row norms of delta L^+ delta* Q, Q random signs (Johnson-Lindenstrauss).

    (Spielman and Srivastava, SIAM J. Comput. 40, 2011.)
    """
    rows, delta_adjoint = np.zeros(delta.shape[0]), scipy.sparse.csr_array(delta.conj().T)
    width = min(max(ENTRIES // max(len(rows), 1), 1), COLUMNS)
    for first in range(0, columns, width):
        shape = len(rows), min(width, columns - first)
        signs = 2.0 * rng.integers(0, 2, shape, np.int8) - 1
        rows += _row_squares(delta @ solve_in_range(solve, delta_adjoint @ signs, tol))
    return rows / columns


def _row_squares(A: np.ndarray) -> np.ndarray:
    """Return the squared norms of the rows."""
    return np.einsum("ij,ij->i", A.conj(), A).real
