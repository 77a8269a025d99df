"""Conjugate gradients on the normal equations."""

import numpy as np
import pytest
import scipy.sparse

from sheafcoarsen.sections import iteration
from tests.support.helpers import assert_residual


def problem(dtype, condition=1e3, seed=0):
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((n, 12)).astype(dtype))[0] for n in (30, 12))
    D = left @ np.diag(np.geomspace(1 / condition, 1, 12)) @ right.conj().T
    r = rng.standard_normal((30, 2)).astype(dtype)
    return D, r


@pytest.mark.parametrize("dtype", [float, complex])
def test_the_answer_is_that_of_least_squares(dtype):
    D, r = problem(dtype)
    sparse = scipy.sparse.csr_array(D)
    adjoint = scipy.sparse.csr_array(D.conj().T)
    y = iteration.conjugate_gradients(sparse, adjoint, r, lambda g: g, np.zeros(2), False)
    assert_residual(y - np.linalg.pinv(D) @ r, r, 1e6, n=12)


def test_a_good_preconditioner_takes_one_step():
    D, r = problem(float)
    inverse = np.linalg.inv(D.T @ D)
    calls = []

    def precondition(g):
        calls.append(g)
        return inverse @ g

    matrices = scipy.sparse.csr_array(D), scipy.sparse.csr_array(D.T)
    y = iteration.conjugate_gradients(*matrices, r, precondition, np.full(2, 1e-18), False)
    assert len(calls) <= 3
    assert_residual(y - np.linalg.pinv(D) @ r, r, 1e6, n=12)


def test_it_ends_where_nothing_is_gained(monkeypatch):
    D, r = problem(float)
    calls = []

    def precondition(g):
        calls.append(g)
        return g

    matrices = scipy.sparse.csr_array(D), scipy.sparse.csr_array(D.T)
    arguments = (*matrices, r, precondition, np.zeros(2), False)
    monkeypatch.setattr(iteration, "PATIENCE", 20)
    best = iteration.conjugate_gradients(*arguments)
    patient = len(calls)
    assert 40 < patient < 400
    calls.clear()
    monkeypatch.setattr(iteration, "MOST_STEPS", 7)
    rough = iteration.conjugate_gradients(*arguments)
    assert len(calls) == 8
    exact = np.linalg.pinv(D) @ r
    assert np.linalg.norm(rough - exact) > 1e3 * np.linalg.norm(best - exact)


def test_a_zero_right_side_needs_no_step():
    D, r = problem(float)
    matrices = scipy.sparse.csr_array(D), scipy.sparse.csr_array(D.T)
    y = iteration.conjugate_gradients(*matrices, 0 * r, lambda g: g, np.zeros(2), False)
    assert not y.any()
