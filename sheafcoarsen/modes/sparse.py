"""Local modes of a cluster too large for a dense matrix: shift-invert Lanczos, then refinement."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from sheafcoarsen._support import blocks, inf_norm
from sheafcoarsen.operators import Factors
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf, trusted_sheaf, unit_sheaf

SPARSE_ABOVE = 800
"""Cluster dimension above which the sparse method is faster for few modes."""


SPARSE_SHARE = 20
"""Least ratio of dimension to wanted modes for which the sparse method is used."""


MOST_ROUNDS = 12
"""Largest number of rounds of inverse iteration before a large residual is an error."""


TOLERANCES = (1e-3, 1e-8, 1e-13)
"""Tolerances of Lanczos, tried in order until the residuals are small.

Inverse iteration corrects a loose one if eigenvalues are separated.
"""


RESTARTS = 300
"""Largest number of restarts of Lanczos; few are needed unless it fails to converge."""


def local_sheaf(sheaf: CellularSheaf, clusters: Clusters, a: int) -> tuple[CellularSheaf, float]:
    """Return the sheaf whose Laplacian is the scaled local operator of cluster a, and the scale.

    The scale is a power of two, see ``unit_sheaf``. Half-edges and loops (with the difference of
    their maps) become edges to an additional vertex with a stalk of dimension 0. In double
    precision.
    """
    members = clusters.members[clusters.member_ptr[a] : clusters.member_ptr[a + 1]]
    inner = clusters.internal_edges[clusters.internal_ptr[a] : clusters.internal_ptr[a + 1]]
    half_edges = clusters.half_edges[clusters.half_ptr[a] : clusters.half_ptr[a + 1]]
    index = np.empty(sheaf.n_vertices, np.int64)
    index[members] = np.arange(len(members))

    def maps(edges: np.ndarray, end: int) -> np.ndarray:
        if end == 0:
            return blocks(sheaf.tail_data, sheaf.tail_offsets, edges)
        return blocks(sheaf.head_data, sheaf.head_offsets, edges)

    at_loop = sheaf.edges[inner, 0] == sheaf.edges[inner, 1]
    loops, inner = inner[at_loop], inner[~at_loop]
    ends, edges, tails = [index[sheaf.edges[inner]]], [inner], [maps(inner, 0)]
    tail_ends, head_ends = (half_edges[(half_edges & 1) == end] >> 1 for end in (0, 1))
    for some, end, data in (
        (loops, 0, maps(loops, 0) - maps(loops, 1)),
        (tail_ends, 0, maps(tail_ends, 0)),
        (head_ends, 1, maps(head_ends, 1)),
    ):
        at = index[sheaf.edges[some, end]]
        ends.append(np.stack([at, np.full_like(at, len(members))], axis=1))
        edges.append(some)
        tails.append(data)
    tail, head = np.concatenate(tails), maps(inner, 1)
    local = trusted_sheaf(
        np.concatenate(ends),
        np.append(sheaf.vertex_dims[members], 0),
        sheaf.edge_dims[np.concatenate(edges)],
        tail,
        head,
    )
    return unit_sheaf(local)


def lowest_sparse(
    A: scipy.sparse.csr_array, count: int, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``count`` lowest eigenpairs of a sparse semidefinite matrix, ascending.

    Lanczos (ARPACK) on (A + s I)^{-1} finds copies of a multiple eigenvalue only by rounding. So it
    is repeated orthogonally to known vectors until no lower value appears, and inverse iteration
    reduces every residual to n eps norm(A).

    Raises
    ------
    numpy.linalg.LinAlgError
        If a residual does not decrease enough.
    """
    n = A.shape[0]
    bound = inf_norm(A)
    # distance below which eigenvalues are equal; a larger shift would merge more of them
    level = n * eps * bound
    solve = Factors(A, level).solve
    for tol in TOLERANCES:
        with contextlib.suppress(np.linalg.LinAlgError):
            return _lowest(A, solve, count, level, tol)
    # eigenvalues barely above the level, such as perturbed zeros, dominate without a larger shift
    solve = Factors(A, 1e-4 * float(A.diagonal().real.mean())).solve
    return _lowest(A, solve, count, level, TOLERANCES[-1])


def _lowest(
    A: scipy.sparse.csr_array, solve: Callable, count: int, level: float, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of ``lowest_sparse`` with Lanczos to ``tol``; zeros are below ``level``."""
    rng = np.random.default_rng(0)
    n = A.shape[0]
    found = np.zeros((n, 0), A.dtype)
    values = np.zeros(0)
    while True:
        fresh = _lanczos(
            solve, found, max(count - len(values), 1 + count // 4), n, A.dtype, rng, tol
        )
        found = scipy.linalg.qr(np.hstack([found, fresh]), mode="economic")[0]
        found, worst = _refined(A, solve, found, count, 2 * level)
        if worst > 2 * level:
            raise np.linalg.LinAlgError(
                f"residual {worst:.3g} after {MOST_ROUNDS} rounds of inverse iteration"
            )
        before = values
        values, rotation = scipy.linalg.eigh(found.conj().T @ (A @ found))
        found = found @ rotation
        # compare all of them: a copy of a multiple eigenvalue may replace another value
        if len(before) >= count and (values[:count] >= before[:count] - level).all():
            return values[:count], np.ascontiguousarray(found[:, :count])


def _lanczos(
    solve: Callable,
    found: np.ndarray,
    count: int,
    n: int,
    dtype: Any,
    rng: np.random.Generator,
    tol: float,
) -> np.ndarray:
    """Return leading eigenvectors of the inverse, orthogonal to ``found``, shape (n, count)."""

    def project(x: np.ndarray) -> np.ndarray:
        return x - found @ (found.conj().T @ x)

    operator = LinearOperator(
        (n, n),
        matvec=lambda x: project(solve(project(np.asarray(x, dtype).reshape(n)))),
        dtype=dtype,
    )
    start = project(rng.standard_normal(n).astype(dtype))
    try:
        return eigsh(
            operator,
            k=count,
            which="LM",
            v0=start,
            ncv=min(n - 1, max(4 * count, 40)),
            maxiter=RESTARTS,
            tol=tol,
        )[1]
    except ArpackNoConvergence as error:
        raise np.linalg.LinAlgError(
            f"Lanczos found {len(error.eigenvalues)} of {count} modes"
        ) from None


def _refined(
    A: scipy.sparse.csr_array, solve: Callable, X: Any, count: int, level: float
) -> tuple[np.ndarray, float]:
    """Return X refined by inverse iteration, and the largest residual of the lowest pairs."""
    worst = np.inf
    for _ in range(MOST_ROUNDS):
        X = scipy.linalg.qr(solve(X), mode="economic")[0]
        Y = A @ X
        values, rotation = scipy.linalg.eigh(X.conj().T @ Y)
        residuals = np.linalg.norm(Y @ rotation - (X @ rotation) * values, axis=0)[:count]
        X, worst = X @ rotation, float(residuals.max())
        if worst <= level:
            break
    return X, worst
