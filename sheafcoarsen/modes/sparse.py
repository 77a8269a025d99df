"""Local modes of large clusters by shift-invert Lanczos and inverse iteration."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from sheafcoarsen._kernels.dense import power_of_two
from sheafcoarsen._support import linalg, ragged
from sheafcoarsen.operators import Factors
from sheafcoarsen.partition import Clusters
from sheafcoarsen.sheaf import CellularSheaf

SPARSE_ABOVE = 800
"""Cluster dimension above which the sparse method is faster for few modes."""


SPARSE_SHARE = 20
"""Minimum dimension of a cluster per wanted mode for which the sparse method is used."""


TOLERANCES = (1e-3, 1e-8, 1e-13)
"""Tolerances of Lanczos, tried in order until the residuals are small.

If eigenvalues are well separated, inverse iteration refines the result of a loose tolerance.
"""


def local_coboundary(
    delta: scipy.sparse.csr_array, sheaf: CellularSheaf, clusters: Clusters, a: int
) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return G with G* G the local operator of cluster a, and the cluster's columns of ``delta``.

    ``delta`` is the coboundary of the sheaf, in double precision.
    """
    inner = clusters.internal_edges[clusters.internal_ptr[a] : clusters.internal_ptr[a + 1]]
    half_edges = clusters.half_edges[clusters.half_ptr[a] : clusters.half_ptr[a + 1]]
    members = clusters.members[clusters.member_ptr[a] : clusters.member_ptr[a + 1]]
    rows = ragged.range_of_blocks(sheaf.edge_offsets, np.concatenate([inner, half_edges >> 1]))
    columns = ragged.range_of_blocks(sheaf.vertex_offsets, members)
    return delta[rows][:, columns], columns


def local_operator(
    delta: scipy.sparse.csr_array, sheaf: CellularSheaf, clusters: Clusters, a: int
) -> tuple[scipy.sparse.csr_array, float]:
    """Return the local operator of cluster a, divided by unit^2, and ``unit``, a power of two.

    ``delta`` is the coboundary of the sheaf, in double precision.
    """
    G, _ = local_coboundary(delta, sheaf, clusters, a)
    unit = power_of_two(float(np.abs(G.data).max(initial=0)))
    # divide as reals: numpy's complex division multiplies by a reciprocal, which is less exact
    G.data = (G.data.view(np.float64) / unit).view(G.dtype)
    return G.conj().T.tocsr() @ G, unit


def with_balanced_kernel(
    G: scipy.sparse.csr_array,
    units: np.ndarray,
    A: scipy.sparse.csr_array,
    Z: np.ndarray,
    eps: float,
) -> np.ndarray:
    """Return the lowest modes Z of A, with a kernel accurate relative to the maps of every edge.

    ``units`` times the kernel of G is that of A, and G has maps with entries of about 1. Singular
    values up to max(shape) eps norm(G) count as zero. Z is returned if it is more accurate, as for
    sections that grow at different rates.
    """
    A_G, r = G.conj().T.tocsr() @ G, Z.shape[1]
    level = max(G.shape) * eps * np.sqrt(linalg.inf_norm(A_G))
    K = lowest_sparse(A_G, r + 1, eps)[1]
    _, sigma, V = scipy.linalg.svd(G @ K, full_matrices=False)
    K = (K @ V[sigma <= level].conj().T)[:, :r]
    # eigenvectors have errors of eps norm(A_G) / lambda with the first positive eigenvalue lambda;
    # a step of least squares leaves eps times the root of this ratio
    K -= Factors(A_G, level * np.sqrt(linalg.inf_norm(A_G))).solve(G.conj().T @ (G @ K))
    K *= units[:, None]
    # multiplying by the inverse triangular factor keeps the accuracy of every row of K
    factor = scipy.linalg.qr(K, mode="r")[0][: K.shape[1]]
    K = scipy.linalg.solve_triangular(factor, K.T, trans="T").T
    if np.linalg.norm(A @ K, axis=0).max(initial=0) > 2 * len(K) * eps * linalg.inf_norm(A):
        return Z
    others = scipy.linalg.svd(Z - K @ (K.conj().T @ Z), full_matrices=False)[0]
    others = others[:, : r - K.shape[1]]
    return np.hstack([K, others @ scipy.linalg.eigh(others.conj().T @ (A @ others))[1]])


def lowest_sparse(
    A: scipy.sparse.csr_array, count: int, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ``count`` lowest eigenpairs of a sparse semidefinite matrix, ascending.

    Lanczos (ARPACK) on (A + s I)^{-1} finds the copies of a multiple eigenvalue only because of
    rounding errors. It is therefore repeated in the orthogonal complement of the vectors found so
    far until no lower eigenvalue appears, and inverse iteration reduces every residual to at most
    2 n eps norm(A, inf). LinAlgError is raised if it does not converge.
    """
    n = A.shape[0]
    # eigenvalues closer than this count as equal; as a shift, more would hide larger differences
    level = n * eps * linalg.inf_norm(A)
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
    """Return the lowest eigenpairs by Lanczos with tolerance ``tol``.

    Eigenvalues that differ by at most ``level`` count as equal, and residuals are at most
    2 ``level``.
    """
    rng = np.random.default_rng(0)
    found, values = np.zeros((A.shape[0], 0), A.dtype), np.zeros(0)
    while True:
        fresh = _lanczos(solve, found, max(count - len(values), 1 + count // 4), rng, tol)
        found = scipy.linalg.qr(np.hstack([found, fresh]), mode="economic")[0]
        found = _refined(A, solve, found, count, 2 * level)
        before = values
        values, rotation = scipy.linalg.eigh(found.conj().T @ (A @ found))
        found = found @ rotation
        # compare all values, because a copy of a multiple eigenvalue may displace another one
        if len(before) >= count and (values[:count] >= before[:count] - level).all():
            return values[:count], np.ascontiguousarray(found[:, :count])


def _lanczos(
    solve: Callable, found: np.ndarray, count: int, rng: np.random.Generator, tol: float
) -> np.ndarray:
    """Return leading eigenvectors of the inverse, orthogonal to ``found``, shape (n, count)."""
    n, dtype = len(found), found.dtype

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
            maxiter=300,  # runs that converge need only a few restarts
            tol=tol,
        )[1]
    except ArpackNoConvergence as error:
        raise np.linalg.LinAlgError(
            f"Lanczos found {len(error.eigenvalues)} of {count} modes"
        ) from None


def _refined(
    A: scipy.sparse.csr_array, solve: Callable, X: Any, count: int, level: float
) -> np.ndarray:
    """Refine X by inverse iteration until residuals of the lowest pairs are at most ``level``."""
    rounds = 12
    for _ in range(rounds):
        X = scipy.linalg.qr(solve(X), mode="economic")[0]
        Y = A @ X
        values, rotation = scipy.linalg.eigh(X.conj().T @ Y)
        residuals = np.linalg.norm(Y @ rotation - (X @ rotation) * values, axis=0)[:count]
        X, worst = X @ rotation, float(residuals.max())
        if worst <= level:
            return X
    raise np.linalg.LinAlgError(f"residual {worst:.3g} after {rounds} rounds of inverse iteration")
