"""Norms of groups of entries, without over- or underflow, and the worst of errors."""

import numpy as np
import pytest
import scipy.sparse

from sheafcoarsen.verification.relative_residual import judged, norms_by, scaled_norms


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_norms_of_groups_of_any_size(scale):
    moduli = np.array([3.0, 1.0, 4.0]) * scale
    norms = scaled_norms(moduli, np.array([2, 0, 2]), 4)
    np.testing.assert_allclose(norms, np.array([1.0, 0.0, 5.0, 0.0]) * scale, rtol=1e-15)


def test_groups_of_very_different_size_do_not_hide_each_other():
    norms = scaled_norms(np.array([1e300, 3e-300, 4e-300]), np.array([0, 1, 1]), 2)
    np.testing.assert_allclose(norms, [1e300, 5e-300], rtol=1e-15)


@pytest.mark.parametrize("form", [scipy.sparse.csr_array, scipy.sparse.coo_array])
def test_row_groups_and_diagonal_blocks(form):
    A = np.array([[3.0, 1.0, 0.0], [4.0j, 0.0, 2.0], [0.0, 5.0, 12.0]])
    rows, columns = np.array([0, 0, 1]), np.array([0, 1, 1])
    whole = [np.linalg.norm(A[:2]), np.linalg.norm(A[2:])]
    np.testing.assert_allclose(norms_by(form(A), rows, None, 2), whole)
    np.testing.assert_allclose(norms_by(form(A), rows, columns, 2), [5.0, 13.0])


def test_the_worst_error_hides_no_nan():
    assert judged([], 3, 1.0).ratio == 0.0
    assert judged([1.5, 6.0], 3, 1.0, [1.0, 1.0]) == (2.0, 6.0, 3.0)
    assert judged([1.5, np.nan], 3, 1.0).ratio == np.inf
