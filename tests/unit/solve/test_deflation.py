import numpy as np
import pytest
import scipy.sparse

from sheafcoarsen.solve.conjugate_gradients import (
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


@pytest.mark.parametrize("dtype", [float, complex])
def test_dependent_columns_are_dropped(dtype):
    rng = np.random.default_rng(2)
    X = random_columns(rng, (30, 2), dtype)
    Q = independent(np.hstack([X, X @ random_columns(rng, (2, 3), dtype), 1e-12 * X[::-1]]))
    assert Q.shape == (30, 2)
    assert abs(X - Q @ (Q.conj().T @ X)).max() <= 1e-10
