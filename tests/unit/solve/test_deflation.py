import numpy as np
import pytest
import scipy.sparse

from sheafcoarsen.solve.block_matrix import complex_columns, real_columns
from sheafcoarsen.solve.deflation import deflated, orthonormal_complement, random_columns

EPS = np.finfo(float).eps


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_columns_orthogonal_to_a_basis(form, dtype):
    rng = np.random.default_rng(0)
    Q = form(np.linalg.qr(random_columns(rng, (40, 3), dtype))[0])
    X = orthonormal_complement(random_columns(rng, (40, 4), dtype), Q)
    assert X.flags.c_contiguous
    assert abs(Q.conj().T @ X).max() <= 30 * EPS
    assert abs(X.conj().T @ X - np.eye(4)).max() <= 30 * EPS
    as_real, back = (real_columns, complex_columns) if dtype is complex else (np.array, np.array)
    Y = as_real(X + Q @ np.ones((3, 4)))
    found = back(deflated(lambda R: 2 * R, Q)(Y))
    assert abs(found - 2 * X).max() <= 300 * EPS


def test_an_empty_basis_changes_nothing():
    none = np.zeros((5, 0))
    X = np.eye(5)[:, :2]
    assert deflated(np.negative, none)(X) is not X
    assert (deflated(np.negative, none)(X) == -X).all()
