import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from sheafcoarsen.operators import lobpcg, lowest_pairs
from sheafcoarsen.solve.block_matrix import BlockMatrix

RNG = np.random.default_rng(1)


def problem(n=60):
    values = np.concatenate([[0.1, 0.1, 0.2], np.linspace(1, 20, n - 3)])
    Q = scipy.linalg.qr(RNG.standard_normal((n, n)))[0]
    return (Q * values) @ Q.T, values


def same(target):
    return lambda values: np.full(len(values), target)


def test_stagnating_iterations_stop():
    A, _ = problem()
    X = RNG.standard_normal((60, 7))
    found = lowest_pairs(A.__matmul__, lambda R: R, X, 3, same(1e-200), steps=(0, 9))
    assert found.steps == 9
    found = lowest_pairs(A.__matmul__, lambda R: 0 * R, X, 3, same(1e-200), stalled=(4, 0.7))
    assert found.steps <= 6


@pytest.mark.parametrize("lost", [1, 5])
@pytest.mark.parametrize("where", ["measured afresh", "begun afresh"])
def test_the_iteration_continues_after_losing_columns(monkeypatch, where, lost):
    A, values = problem()
    ritz, calls = lobpcg.rayleigh_ritz, []
    # the first call is for the start, and the others for steps, except after ten steps or a loss
    due = {"measured afresh": [lobpcg.FRESH + 2], "begun afresh": [5, 6]}[where]

    def losing(*args):
        calls.append(args)
        found, C = ritz(*args)
        return (found[:-lost], C[:, :-lost]) if len(calls) in due else (found, C)

    monkeypatch.setattr(lobpcg, "rayleigh_ritz", losing)
    X = RNG.standard_normal((60, 7))
    found = lowest_pairs(
        A.__matmul__, lambda R: R, X, 4, same(1e-9), steps=(0, 300), stalled=(50, 0.7)
    )
    left = 7 - lost
    assert found.vectors.shape == (60, left)
    assert found.residuals[:4].max() <= 1e-9
    assert np.abs(found.values[:4] - values[: min(4, left)]).max() <= 1e-13
    assert np.abs(found.vectors.T @ found.vectors - np.eye(left)).max() <= 1e-12


def test_complex_and_real_columns_take_the_same_steps():
    """D A D* with D unitary and diagonal is A in other coordinates."""
    A, _ = problem(n=200)
    A = A + np.diag(np.linspace(0, 20, 200))
    X = RNG.standard_normal((200, 6))
    D = np.exp(2j * np.pi * RNG.random(200))[:, None]
    turned = BlockMatrix(scipy.sparse.csr_array(D * A * D.conj().T)).__matmul__
    one = lowest_pairs(A.__matmul__, lambda R: R, X.copy(), 3, same(1e-9), steps=(0, 300))
    other = lowest_pairs(turned, lambda R: R, D * X, 3, same(1e-9), steps=(0, 300))
    assert one.residuals[:3].max() <= 1e-9
    assert one.steps > 3 * lobpcg.FRESH
    assert abs(one.steps - other.steps) <= 2
    assert np.abs(one.values[:3] - other.values[:3]).max() <= 1e-12


def test_unwanted_columns_get_the_minimum_number_of_steps():
    A, values = problem()
    X = np.hstack([scipy.linalg.eigh(A)[1][:, :2], RNG.standard_normal((60, 1))])
    found = [
        lowest_pairs(A.__matmul__, lambda R: R, X.copy(), 2, same(1e-9), steps=(least, 60))
        for least in (0, 7)
    ]
    assert [each.steps for each in found] == [0, 7]
    assert abs(found[1].values[2] - values[2]) < 0.3 * abs(found[0].values[2] - values[2])


@pytest.mark.parametrize("mass", [None, np.diag(np.linspace(0.5, 2, 60))])
def test_the_best_pairs_are_returned_if_later_steps_do_harm(mass):
    """From the 17th product on, A X is perturbed, as if rounding errors dominated."""
    A, _ = problem()
    calls = [0]

    def apply(X):
        calls[0] += 1
        return A @ X + (calls[0] > 16) * RNG.standard_normal(X.shape)

    X = scipy.linalg.eigh(A, mass)[1][:, :5] + 1e-3 * RNG.standard_normal((60, 5))
    found = lowest_pairs(apply, lambda R: R, X, 3, same(1e-200), mass=mass, steps=(0, 40))
    B = np.eye(60) if mass is None else mass
    residuals = np.linalg.norm(A @ found.vectors - B @ found.vectors * found.values, axis=0)
    assert residuals[:3].max() <= 1e-2
