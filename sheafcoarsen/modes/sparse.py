"""Local modes of large clusters by LOBPCG, preconditioned by a sparse factorization."""

import itertools
from functools import partial

import numpy as np
import scipy.linalg
import scipy.sparse

from sheafcoarsen._support import linalg
from sheafcoarsen.operators import Factors, lowest_pairs

SPARSE_ABOVE = 800
"""Cluster dimension above which the sparse method is faster for few modes."""


SPARSE_SHARE = 20
"""Minimum dimension of a cluster per wanted mode for which the sparse method is used."""


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

    LOBPCG is preconditioned by factors of A + s I, and inverse iteration then reduces residuals to
    at most 2 n eps norm(A, inf). Both are repeated with other shifts from the vectors found so far,
    before LinAlgError is raised.
    """
    n, norm = A.shape[0], linalg.inf_norm(A)
    level = n * eps * norm
    X = linalg.normal(np.random.default_rng(0), (n, count + max(8, count // 4)), A.dtype)
    X = scipy.linalg.qr(X, mode="economic")[0]
    # perturbed zeros hide other eigenvalues from a smaller shift, which finds eigenvalues below it
    for shift, target in itertools.product((1e-10 * norm, level), repeat=2):
        solve, X = Factors(A, shift).solve, np.ascontiguousarray(X)
        targets = partial(np.full_like, fill_value=target)
        X = lowest_pairs(A.__matmul__, solve, X, count, targets).vectors
        for _ in range(12):
            X = scipy.linalg.qr(solve(X), mode="economic")[0]
            Y = A @ X
            values, rotation = scipy.linalg.eigh(X.conj().T @ Y)
            X, Y = X @ rotation, Y @ rotation
            worst = float(np.linalg.norm(Y - X * values, axis=0)[:count].max())
            if worst <= 2 * level and len(values) >= count:
                return values[:count], np.ascontiguousarray(X[:, :count])
    raise np.linalg.LinAlgError(f"residual {worst:.3g} after inverse iteration")
