import numpy as np
import pytest

from sheafcoarsen.solve.conjugate_gradients import conjugate_gradients

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("dtype", [float, complex])
def test_converged_columns_are_no_longer_iterated(dtype):
    turn = 1j if dtype is complex else 0
    Q = np.linalg.qr(RNG.standard_normal((80, 80)) + turn * RNG.standard_normal((80, 80)))[0]
    A = (Q * np.linspace(0.01, 1, 80)) @ Q.conj().T
    b = RNG.standard_normal((80, 3)) * (1 + turn)
    b[:, 1] = A @ Q[:, 5]  # an eigenvector takes one step
    b[:, 2] = 0
    widths, target = [], 1e-10 * np.linalg.norm(b, axis=0)
    found = conjugate_gradients(
        lambda X: widths.append(X.shape[1]) or A @ X, lambda R: R, b, np.zeros_like(b), target
    )
    assert (np.linalg.norm(b - A @ found.x, axis=0) <= 2 * target).all()
    assert widths[1:4] == [2, 1, 1]  # widths[0] is that of the first residual
    assert not found.x[:, 2].any()


def test_a_few_small_eigenvalues_do_not_stall_the_iteration():
    """After a few small eigenvalues are found, the recursion does not find them again."""
    d = np.append(np.geomspace(1e-6, 1e-3, 12), np.linspace(0.1, 1.0, 400))[:, None]
    b = np.random.default_rng(3).standard_normal((412, 1))
    target = 1e-9 * np.linalg.norm(b, axis=0)
    found = conjugate_gradients(lambda X: d * X, lambda R: R, b, 0 * b, target)
    assert found.steps < 300
    assert found.residuals[0] <= target


@pytest.mark.parametrize("size", [1e8, 1e12])
def test_the_target_is_reached_from_a_distant_start(size):
    """The residual of the recursion then has the rounding errors of the large first residual."""
    d = np.linspace(0.5, 1, 60)[:, None]
    b = RNG.standard_normal((60, 2))
    target = 1e-12 * np.linalg.norm(b, axis=0)
    found = conjugate_gradients(lambda X: d * X, lambda R: R, b, size + b, target)
    assert (np.linalg.norm(b - d * found.x, axis=0) <= target).all()


@pytest.mark.parametrize(("part", "seen"), [(1.0, 1.0), (0.1, 1.0), (0.1, 0.0)])
def test_kernel_components_do_not_grow(part, seen):
    """In the second step, p is in the kernel of A or the preconditioner returns 0."""
    d, b, inverse = np.array([[1.0], [0.0]]), np.array([[1.0], [part]]), np.array([[1.0], [seen]])
    found = conjugate_gradients(lambda X: d * X, lambda R: inverse * R, b, 0 * b, np.zeros(1))
    assert np.array_equal(found.residuals, np.linalg.norm(b - d * found.x, axis=0))
    assert found.steps < 10
    assert abs(found.x).max() <= 2


def test_stagnating_iterations_stop(monkeypatch):
    """The residuals are those of x even if the maximum number of steps is reached."""
    b = RNG.standard_normal((200, 1))
    for least, target, most in ((0.1, 1e-18, 200), (1e-16, 0.0, 10_000)):
        d = np.geomspace(least, 1, 200)[:, None]
        found = conjugate_gradients(lambda X, d=d: d * X, lambda R: R, b, 0 * b, np.array([target]))
        assert found.steps < most
        assert np.array_equal(found.residuals, np.linalg.norm(b - d * found.x, axis=0))
        assert least < 0.1 or found.residuals < 1e-14
    monkeypatch.setattr("sheafcoarsen.solve.conjugate_gradients.MOST_STEPS", 20)
    found = conjugate_gradients(lambda X: X, lambda R: R / (1 + d), b, b + 1e12, np.zeros(1))
    assert found.steps == 20
    assert np.array_equal(found.residuals, np.linalg.norm(b - found.x, axis=0))


def test_the_preconditioner_may_change_between_steps():
    """With the formula for beta of a constant preconditioner, it would take 737 steps."""
    d, turn = np.geomspace(1e-4, 1, 400)[:, None], iter(range(1000))
    b = np.random.default_rng(0).standard_normal((400, 2))

    def changing(R):
        return R / (d * (1 + 0.5 * np.sin(np.arange(400)[:, None] * next(turn))))

    target = 1e-10 * np.linalg.norm(b, axis=0)
    assert conjugate_gradients(lambda X: d * X, changing, b, 0 * b, target).steps < 60


def test_a_residual_orthogonal_to_all_steps_ends_the_iteration():
    """The residual lies in the kernel of A, but the preconditioned residual does not."""
    A, step = np.diag([2.0, 3.0, 0.0]), np.array([[1.0], [0.0], [0.0]])
    b, zero = np.array([[0.0], [0.0], [1.0]]), np.zeros((3, 1))
    found = conjugate_gradients(A.__matmul__, lambda R: step, b, zero, np.array([1e-3]))
    assert (found.x.tolist(), found.residuals.tolist()) == (zero.tolist(), [1.0])
