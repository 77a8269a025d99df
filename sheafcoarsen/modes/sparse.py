"""Local modes of large clusters by shift-invert Lanczos and inverse iteration."""

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
"""Minimum dimension of a cluster per wanted mode for which the sparse method is used."""


MOST_ROUNDS = 12
"""Maximum number of inverse iterations; a residual that is still large raises an error."""


TOLERANCES = (1e-3, 1e-8, 1e-13)
"""Tolerances of Lanczos, tried in order until the residuals are small.

If eigenvalues are well separated, inverse iteration refines the result of a loose tolerance.
"""


RESTARTS = 300
"""Maximum number of Lanczos restarts; runs that converge need only a few."""


def local_sheaf(sheaf: CellularSheaf, clusters: Clusters, a: int) -> tuple[CellularSheaf, float]:
    """Return a sheaf whose Laplacian is the scaled local operator of cluster a, and the scale.

    The scale is a power of two (``unit_sheaf``), and the maps are in double precision. Half-edges
    and loops become edges to an additional vertex with a stalk of dimension 0; the new edge of a
    loop has the difference of its two maps.
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

    Lanczos (ARPACK) on (A + s I)^{-1} finds the copies of a multiple eigenvalue only because of
    rounding errors. It is therefore repeated in the orthogonal complement of the vectors found so
    far until no lower eigenvalue appears, and inverse iteration reduces every residual to
    n eps norm(A).

    Raises
    ------
    numpy.linalg.LinAlgError
        If a residual stays larger than this.
    """
    n = A.shape[0]
    bound = inf_norm(A)
    # eigenvalues closer than this count as equal; a larger shift would hide larger differences
    level = n * eps * bound
    solve = Factors(A, level).solve
    for tol in TOLERANCES:
        with contextlib.suppress(np.linalg.LinAlgError):
            return _lowest(A, solve, count, level, tol)
    # shift more, because eigenvalues just above the level (perturbed zeros) prevent convergence
    solve = Factors(A, 1e-4 * float(A.diagonal().real.mean())).solve
    return _lowest(A, solve, count, level, TOLERANCES[-1])


def _lowest(
    A: scipy.sparse.csr_array, solve: Callable, count: int, level: float, tol: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest eigenpairs by Lanczos with tolerance ``tol``; zeros are below ``level``."""
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
        # compare all values, because a copy of a multiple eigenvalue may displace another one
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
    """Refine X by inverse iteration; return it with the largest residual of the lowest pairs."""
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
