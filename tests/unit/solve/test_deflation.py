import numpy as np
import pytest
import scipy.sparse

from sheafcoarsen.solve.deflation import (
    deflated,
    independent,
    orthonormal_complement,
    random_columns,
)

EPS = np.finfo(float).eps


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_columns_and_preconditioners_are_projected_onto_the_complement(form, dtype):
    rng = np.random.default_rng(0)
    Q = form(np.linalg.qr(random_columns(rng, (40, 3), dtype))[0])
    X = orthonormal_complement(random_columns(rng, (40, 4), dtype), Q)
    assert X.flags.c_contiguous
    assert abs(Q.conj().T @ X).max() <= 30 * EPS
    assert abs(X.conj().T @ X - np.eye(4)).max() <= 30 * EPS
    found = deflated(lambda R: 2 * R, Q)(X + Q @ np.ones((3, 4)))
    assert abs(found - 2 * X).max() <= 300 * EPS


def test_deflation_by_an_empty_basis_changes_nothing():
    none = np.zeros((5, 0))
    X = np.eye(5)[:, :2]
    assert deflated(np.negative, none)(X) is not X
    assert (deflated(np.negative, none)(X) == -X).all()


@pytest.mark.parametrize("dtype", [float, complex])
def test_preconditioners_are_projected_in_the_inner_product_of_the_mass(dtype):
    """The result is P B P*, where P is the M-orthogonal projection onto the complement of Q."""
    rng = np.random.default_rng(1)
    mass = 10.0 ** rng.uniform(-3, 3, 20)
    Q = orthonormal_complement(random_columns(rng, (20, 3), dtype), mass=mass)
    B = np.diag(rng.uniform(1, 2, 20))
    found = deflated(lambda R: B @ R, Q, mass=mass)(np.eye(20).astype(dtype))
    P = np.eye(20) - Q @ (Q.conj().T * mass)
    assert abs(found - P @ B @ P.conj().T).max() <= 1e3 * EPS * np.linalg.norm(P) ** 2


@pytest.mark.parametrize("dtype", [float, complex])
def test_dependent_columns_are_dropped(dtype):
    rng = np.random.default_rng(2)
    X = random_columns(rng, (30, 2), dtype)
    Q = independent(np.hstack([X, X @ random_columns(rng, (2, 3), dtype), 1e-12 * X[::-1]]))
    assert Q.shape == (30, 2)
    assert abs(X - Q @ (Q.conj().T @ X)).max() <= 1e-10
