"""One number for a rotation's information and one for a translation's."""

import numpy as np
import pytest

from sheafcoarsen.synchronization import concentrations, isotropic_information
from tests.support.helpers import assert_residual


@pytest.mark.parametrize(("dim", "size"), [(2, 3), (3, 6)])
def test_isotropic_matrices_come_back(dim, size):
    kappa, tau = np.array([2.0, 5e9, 1e-9]), np.array([3.0, 1e-6, 1e12])
    matrices = isotropic_information(kappa, tau, dim)
    assert matrices.shape == (3, size, size)
    found = concentrations(matrices, dim)
    assert_residual(found.kappa / kappa - 1, n=size)
    assert_residual(found.tau / tau - 1, n=size)
    assert not found.fails.any()


def test_they_are_the_means_of_se_sync():
    A = np.random.default_rng(5).standard_normal((6, 6))
    omega = A @ A.T + np.eye(6)
    found = concentrations(omega[None], 3)
    assert_residual(found.tau[0] * np.trace(np.linalg.inv(omega[:3, :3])) / 3 - 1, 10.0, n=6)
    assert_residual(found.kappa[0] * np.trace(np.linalg.inv(omega[3:, 3:])) / 1.5 - 1, 10.0, n=6)


@pytest.mark.parametrize("dim", [2, 3])
def test_what_is_not_positive_definite_is_told_block_by_block(dim):
    size = 3 if dim == 2 else 6
    matrices = np.tile(np.eye(size), (4, 1, 1))
    matrices[1, 0, 0] = 0
    matrices[2, -1, -1] = -1
    matrices[3, 0, -1] = matrices[3, -1, 0] = 2  # each block is, the whole is not
    found = concentrations(matrices, dim)
    assert found.rotation_fails.tolist() == [False, False, True, False]
    assert found.fails.tolist() == [False, True, True, False]
    assert found.indefinite.tolist() == [False, False, False, True]
