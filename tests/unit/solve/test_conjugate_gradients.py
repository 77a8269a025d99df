import numpy as np
import pytest

from sheafcoarsen.solve.conjugate_gradients import RENEW, conjugate_gradients

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("dtype", [float, complex])
def test_columns_end_when_they_are_good_enough(dtype):
    Q = np.linalg.qr(RNG.standard_normal((80, 80)).astype(dtype))[0]
    A = (Q * np.linspace(0.01, 1, 80)) @ Q.conj().T
    b = RNG.standard_normal((80, 3)).astype(dtype)
    b[:, 1] = A @ Q[:, 5]  # an eigenvector: one step
    b[:, 2] = 0
    widths = []

    def apply(X):
        widths.append(X.shape[1])
        return A @ X

    target = 1e-10 * np.linalg.norm(b, axis=0)
    found = conjugate_gradients(apply, lambda R: R, b, np.zeros_like(b), target)
    assert (np.linalg.norm(b - A @ found.x, axis=0) <= 2 * target).all()
    assert widths[1:4] == [2, 1, 1]  # after the first residual
    assert not found.x[:, 2].any()
    assert found.steps > RENEW


def test_a_good_preconditioner_and_a_start():
    A = np.diag(np.linspace(1, 1e6, 50))
    b = RNG.standard_normal((50, 1))
    target = np.full(1, 1e-9)
    zero = np.zeros_like(b)
    one = conjugate_gradients(A.__matmul__, lambda R: R / np.diag(A)[:, None], b, zero, target)
    assert one.steps == 1
    again = conjugate_gradients(A.__matmul__, lambda R: R, b, one.x, target)
    assert again.steps == 0
    assert np.array_equal(again.x, one.x)


def test_renewing_the_residual_does_not_begin_again():
    """A few small eigenvalues beside the others cost a step each, not a multiple of the others."""
    values = np.concatenate([np.geomspace(1e-6, 1e-3, 12), np.linspace(0.1, 1.0, 400)])
    b = np.random.default_rng(3).standard_normal((len(values), 1))
    A = np.diag(values)
    found = conjugate_gradients(
        A.__matmul__, lambda R: R, b, np.zeros_like(b), 1e-9 * np.linalg.norm(b, axis=0)
    )
    assert RENEW < found.steps < 6 * RENEW
    assert found.residuals[0] <= 1e-8 * np.linalg.norm(b)
