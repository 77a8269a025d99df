"""Leverages of edges, which generalize weight times effective resistance."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import Seed, checks, threads
from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import coboundary
from sheafcoarsen.sections import global_sections
from sheafcoarsen.sheaf import CellularSheaf, check_sheaf, sheaf_like, unit_sheaf
from sheafcoarsen.solve._least_squares import NormalEquations
from sheafcoarsen.solve._solver import Solver, solve_in_range
from sheafcoarsen.solve.block_matrix import unit_roots

Method = Literal["auto", "exact", "sketch"]

DENSE_BELOW = 1000
"""Dimension of C^0 up to which L is decomposed densely. This takes about 1 s at most."""

ROWS = 2**14
"""Maximum number of rows of delta that are multiplied by dense matrices at once."""

COLUMNS = 64
"""Maximum number of right-hand sides that are solved at once."""


def leverages(
    sheaf: CellularSheaf, *, method: Method = "auto", eps: float = 0.1, seed: Seed = 0
) -> np.ndarray:
    """Return the leverage l_e = trace(F_e L^+ F_e*) of every edge e, F_e being its rows of delta.

    They are estimates with "sketch", also if "auto" uses it. Each lies between 0 and
    d_e, and their sum is the rank of delta, dim C^0 - h^0 (Foster's theorem). An edge with zero
    maps has leverage 0; an edge whose removal adds d_e dimensions of global sections has leverage
    d_e. For a constant sheaf with stalks of dimension 1, l_e is the weight of the edge times the
    effective resistance between its ends, which is the probability that a random spanning tree
    contains the edge. :func:`sparsify` samples edges by leverage.

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
    NotConverged
        If exact leverages do not sum to the rank within 1e-10, because maps have very different
        norms or are nearly consistent on cycles; ``result`` of the error holds them.

    Warns
    -----
    SingularProblemWarning
        If rounding errors may have determined the number of sections.

    Examples
    --------
    A triangle with a pendant edge, which every spanning tree contains:

    >>> import sheafcoarsen as sc
    >>> F = sc.CellularSheaf.constant([[0, 1], [1, 2], [2, 0], [2, 3]])
    >>> sc.leverages(F).round(12)
    array([0.66666667, 0.66666667, 0.66666667, 1.        ])
    """
    check_sheaf(sheaf)
    checks.choice("method", method, get_args(Method))
    eps = checks.fraction("eps", eps)
    rng = checks.random_generator("seed", seed)
    F = own_unit(sheaf)
    delta = coboundary(unit_sheaf(F)[0])
    # for a relative error sqrt(2 / columns) of eps / 2
    columns = int(np.ceil(min(8 / eps / eps, 2.0**62)))
    small = F.dim_c0 <= DENSE_BELOW
    if method == "sketch" or (method == "auto" and not small and F.dim_c1 > columns):
        return by_edge(F, sketched(Solver(F), delta, columns, 1e-6, rng))
    rank = F.dim_c0 - global_sections(F).h0
    found = by_edge(F, _by_decomposition(F, delta, rank) if small else _by_solves(F, delta, rank))
    error = found.sum() - rank
    if abs(error) > 1e-10:
        raise NotConverged(
            f"the sum of all leverages differs from dim C^0 - h^0 = {rank} by {error:.2g}, because "
            f"some singular values of delta are near rounding: pass maps of more similar norms, or "
            f"use the leverages in `result` of this error if they are accurate enough",
            found,
        )
    return found


def by_edge(F: CellularSheaf, rows: np.ndarray) -> np.ndarray:
    """Return the leverage of every edge: the sum of the leverages of its rows of delta."""
    edge = np.repeat(np.arange(F.n_edges), F.edge_dims)
    # astype, because bincount returns integers if there are no edges
    return np.bincount(edge, np.clip(rows, 0, 1), F.n_edges).astype(float)


def own_unit(F: CellularSheaf) -> CellularSheaf:
    """Return the sheaf with maps divided by a power of two, in its scalar type (for sections)."""
    unit = unit_sheaf(F)[0]
    return sheaf_like(F, unit.tail_data.astype(F.dtype), unit.head_data.astype(F.dtype))


@threads.single_threaded_blas()
def _by_decomposition(F: CellularSheaf, delta: scipy.sparse.csr_array, rank: int) -> np.ndarray:
    """Return the squared row norms of an orthonormal basis of the range of delta.

    The basis is computed from the images of the leading eigenvectors W of L with scaled stalks,
    which does not change the range. Components of W in the kernel do no harm.
    """
    if not rank:
        return np.zeros(F.dim_c1)
    L = scipy.sparse.csr_array(delta.conj().T @ delta)
    unit = scipy.sparse.csr_array(delta @ unit_roots(L, F.vertex_dims)[1])
    W = np.linalg.eigh((unit.conj().T @ unit).toarray())[1][:, F.dim_c0 - rank :]
    parts = [unit[first : first + ROWS] for first in range(0, unit.shape[0], ROWS)]
    gram = sum(image.conj().T @ image for image in (part @ W for part in parts))
    try:
        R = scipy.linalg.cholesky(gram)
    except np.linalg.LinAlgError:
        raise NotConverged(
            f"delta has rank {rank} = dim C^0 - h^0, but some of its singular values are below the "
            f"rounding of L: pass maps of more similar norms"
        ) from None
    images = (scipy.linalg.solve_triangular(R, (part @ W).T, trans="T") for part in parts)
    return np.concatenate([np.einsum("ij,ij->j", Y.conj(), Y).real for Y in images])


@threads.single_threaded_blas()
def _by_solves(F: CellularSheaf, delta: scipy.sparse.csr_array, rank: int) -> np.ndarray:
    """Return the diagonal of delta delta^+, computed in blocks of columns.

    The entry of a unit vector e is 2 Re <e, delta x> - norm(delta x)^2, where x minimizes
    norm(delta x - e), and is too small by the square of the error of delta x. So one solve suffices
    as a rule; if the sum is not the rank, solves are refined.
    """
    rows, problem = np.zeros(delta.shape[0]), NormalEquations(delta, F, method="auto")
    for solve in (lambda E: problem.correction(problem.adjoint @ E), lambda E: problem.solve(E)[0]):
        for first in range(0, len(rows), COLUMNS):
            E = np.eye(len(rows), min(COLUMNS, len(rows) - first), -first)
            Y = delta @ solve(E)
            rows[first : first + COLUMNS] = np.einsum("ij,ij->j", (2 * E - Y).conj(), Y).real
        if abs(np.clip(rows, 0, 1).sum() - rank) <= 1e-10:
            break
    return rows


@threads.single_threaded_blas()
def sketched(
    solve: Solver, delta: scipy.sparse.csr_array, columns: int, tol: float, rng: np.random.Generator
) -> np.ndarray:
    """Return the mean squares of the rows of delta L^+ delta* Q for a random sign matrix Q.

    This is a Johnson-Lindenstrauss sketch (Spielman and Srivastava, SIAM J. Comput. 40, 2011).
    """
    rows, delta_adjoint = np.zeros(delta.shape[0]), scipy.sparse.csr_array(delta.conj().T)
    for first in range(0, columns, COLUMNS):
        shape = len(rows), min(COLUMNS, columns - first)
        signs = 2.0 * rng.integers(0, 2, shape, np.int8) - 1
        Y = delta @ solve_in_range(solve, delta_adjoint @ signs, tol)
        rows += np.einsum("ij,ij->i", Y.conj(), Y).real
    return rows / columns
