"""Yardsticks of the benchmark `answers`, well tuned: Lanczos with factors, lobpcg and pyamg."""

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import sheafcoarsen as sc
from benchmarks import peers
from sheafcoarsen.operators import Factors

SMOOTHERS = {
    "Gauss-Seidel": (
        ("block_gauss_seidel", {"sweep": "forward"}),
        ("block_gauss_seidel", {"sweep": "backward"}),
    ),
    "Chebyshev": (("chebyshev", {"degree": 3}),) * 2,
}
IMPROVED = ("block_gauss_seidel", {"sweep": "symmetric", "iterations": 10})


def matrix(F):
    """Return L in the format that pyamg multiplies fastest."""
    d = F.vertex_dims
    if len(d) and d.min() == d.max() and d[0] > 1:
        return scipy.sparse.bsr_matrix(sc.laplacian(F, "bsr"))
    return scipy.sparse.csr_matrix(sc.laplacian(F))


def pyamg_set_ups(F):
    """Return functions that set up pyamg, by name: "kron ..." and "frames ...".

    Their near-kernel candidates are constants on all vertices, with or without improvement by
    pyamg, and frames transported along a tree.
    """
    pyamg = peers.installed("pyamg")
    if pyamg is None or F.map_shape is None:
        return {}
    A, d = matrix(F), F.map_shape[1]
    constants = np.kron(np.ones((F.n_vertices, 1)), np.eye(d))
    found = {}

    def add(name, candidates, improve, before, after):
        def set_up():
            return pyamg.smoothed_aggregation_solver(
                A,
                B=candidates(),
                max_coarse=300,
                presmoother=before,
                postsmoother=after,
                improve_candidates=[improve, None],
                coarse_solver="pinv",
            ).aspreconditioner()

        found[name] = set_up

    for smoother, (before, after) in SMOOTHERS.items():
        add(f"kron, {smoother}", lambda: constants, None, before, after)
        add(f"kron improved, {smoother}", lambda: constants, IMPROVED, before, after)
        if d > 1:
            add(f"frames, {smoother}", lambda: sc.transported_frames(F), None, before, after)
    return found


def by_columns(M):
    """Return a preconditioner that applies M to every column of a matrix."""
    return lambda X: np.stack([M @ x for x in X.T], axis=1)


def lanczos(A, k):
    """Return the k lowest eigenvalues by shift-invert Lanczos with the library's own factors.

    Lanczos finds copies of a multiple eigenvalue only because of rounding errors; with a tolerance
    of 1e-9 it may miss one.
    """
    shift = 1e-7 * abs(A).sum(axis=1).max()
    factors = Factors(A, shift)
    inverse = scipy.sparse.linalg.LinearOperator(
        A.shape, matvec=lambda x: factors.solve(x.reshape(-1)), dtype=A.dtype
    )
    start = np.random.default_rng(0).standard_normal(A.shape[0])
    values = scipy.sparse.linalg.eigsh(
        A, k, sigma=-shift, OPinv=inverse, tol=1e-12, v0=start, return_eigenvectors=False
    )
    return np.sort(values)


def lobpcg(F, k, set_up, tol=1e-8):
    """Return the k lowest eigenvalues by scipy's lobpcg with pyamg and a random start."""
    A, M = matrix(F), by_columns(set_up())
    norm = abs(A).sum(axis=1).max()
    X = np.random.default_rng(0).standard_normal((A.shape[0], k + max(4, k // 5)))
    preconditioner = scipy.sparse.linalg.LinearOperator(
        A.shape, matvec=lambda x: M(x.reshape(-1, 1))[:, 0], matmat=M, dtype=A.dtype
    )
    found = scipy.sparse.linalg.lobpcg(
        A, X, M=preconditioner, largest=False, tol=tol * norm, maxiter=80
    )
    return np.sort(found[0])[:k]
