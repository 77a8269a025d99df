"""Our own eigensolver against LAPACK, on eigenvalues apart, close, multiple, graded."""

import networkx as nx
import numpy as np
import pytest
import scipy.linalg

from sheafcoarsen._kernels import hermitian
from sheafcoarsen._kernels.dense import workspace
from sheafcoarsen._kernels.jit import JIT_IS_OFF
from tests.support.helpers import assert_residual, normal
from tests.support.kernels import from_python

DTYPES = [np.float64, np.complex128]
"""Each is compiled for these tests alone; local modes are compared with LAPACK in all types."""


def random_matrix(n, dtype, seed=0):
    B = normal(np.random.default_rng(seed), (n, n), dtype)
    return B @ B.conj().T / n


def laplacian_of(G, d=1):
    return np.kron(nx.laplacian_matrix(G).toarray().astype(float), np.eye(d))


N = 12 if JIT_IS_OFF else 48
GRADES = 10.0 ** -np.linspace(0, 60, N)
MATRICES = {
    "general": random_matrix(N, float),
    "triple": laplacian_of(nx.path_graph(N // 3), 3),
    "multiplicity n - 2": laplacian_of(nx.complete_graph(N // 2), 2),
    "star": laplacian_of(nx.star_graph(N - 1)),
    "identity": np.eye(N),
    "diagonal": np.diag(np.arange(N, dtype=float)),
    "projector": np.diag(np.repeat([0.0, 1.0], N // 2)),
    "Wilkinson": np.diag(-abs(np.arange(N) - N // 2).astype(float))
    + np.eye(N, k=1)
    + np.eye(N, k=-1),
    "graded": random_matrix(N, float) * np.outer(GRADES, GRADES),
    "graded upwards": random_matrix(N, float) * np.outer(GRADES[::-1], GRADES[::-1]),
    "almost fourfold": np.kron(random_matrix(N // 4, float), np.eye(4))
    + 1e-13 * random_matrix(N, float),
    "close": np.kron(random_matrix(N // 4, float), np.eye(4)) + 1e-9 * random_matrix(N, float),
    "one entry": np.diag(np.eye(N)[3]),
    "one edge": laplacian_of(nx.compose(nx.empty_graph(N), nx.Graph([(0, N - 1)]))),
    "negative": -random_matrix(N, float),
}


def lowest(A, wanted):
    """Return what our own solver finds of a matrix scaled to 1, and whether it is sure."""
    n = len(A)
    A = A / A.dtype.type(2.0 ** np.ceil(np.log2(np.abs(A).max())))
    s = workspace(n, wanted, A.dtype, reduction=True)
    a, t, z = s.a.reshape(n, n), s.reduction, np.empty((wanted, n), A.dtype)
    a[:] = np.tril(A)
    with np.errstate(all="ignore"):  # a zero pivot is an infinity in the next step, by intent
        from_python(hermitian.tridiagonalize)(n, a, t.d, t.e, t.tau, t.panel, t.p)
        solve = from_python(hermitian.lowest_of_tridiagonal)
        holds = solve(t, n, wanted)
    z[:] = t.z.reshape(wanted, n)
    from_python(hermitian.reflect)(n, a, t.tau, z, wanted)
    return A, t.w.copy(), z.T, holds


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MATRICES)
def test_lowest_eigenpairs_match_dense_eigenvalues(name, dtype):
    A = MATRICES[name].astype(dtype)
    if A.dtype.kind == "c":  # the same spectrum in another basis
        phases = np.exp(1j * np.arange(N)).astype(dtype)
        A = phases[:, None] * A * phases.conj()
    for wanted in (1, N // 3, N // 2):  # the last in several batches
        A1, w, Z, holds = lowest(A, wanted)
        assert holds
        assert (np.diff(w) >= 0).all()
        assert_residual(w - scipy.linalg.eigh(A1, eigvals_only=True)[:wanted], A1, n=N)
        assert_residual(A1 @ Z - Z * w, A1, n=N)
        assert_residual(Z.conj().T @ Z - np.eye(wanted), 1.0, n=N)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 25])
def test_small_matrices_beside_large_ones_are_reduced_too(n, dtype):
    A, wanted = random_matrix(n, dtype, seed=n), max(n // 3, 1)
    exact = scipy.linalg.eigh(A, eigvals_only=True)
    s = workspace(n, wanted, A.dtype, reduction=True)
    s.a[:] = np.tril(A).ravel()
    assert from_python(hermitian.eigh_lowest)(n, wanted, s, s.reduction) == 0
    Z = s.z.reshape(wanted, n).T
    assert_residual(s.w[:wanted] - exact[:wanted], A, n=n)
    assert_residual(A @ Z - Z * s.w[:wanted], A, n=n)
    assert_residual(Z.conj().T @ Z - np.eye(wanted), 1.0, n=n)
    s.a[:] = np.tril(A).ravel()
    assert from_python(hermitian.eigvalsh)(n, s, s.reduction) == 0
    assert_residual(s.w - exact, A, n=n)


def test_worst_residual_detects_wrong_eigenvectors():
    T = np.array([2.0, 1.0, 3.0]), np.array([0.5, 0.25, 0.0])
    w, z = np.linalg.eigh(np.diag(T[0]) + np.diag(T[1][:2], 1) + np.diag(T[1][:2], -1))
    worst_residual = from_python(hermitian.worst_residual)
    assert worst_residual(3, *T, w, z.T.ravel(), 0, 3) < 1e-15
    assert worst_residual(3, *T, w[::-1].copy(), z.T.ravel(), 0, 3) > 0.1
    assert worst_residual(3, *T, w, z.T.ravel() * np.nan, 0, 3) == np.inf
