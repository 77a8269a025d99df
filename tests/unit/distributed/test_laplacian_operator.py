"""The Laplacian of a store, applied part by part."""

import numpy as np
import pytest

import sheafcoarsen as sc
import sheafcoarsen.distributed as dist
from tests.support.helpers import assert_residual
from tests.unit.distributed.cases import grid_sheaf, ragged_sheaf


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_the_operator_is_the_laplacian_of_the_full_sheaf(dtype, memory):
    F = ragged_sheaf(dtype)
    A = dist.laplacian_operator(dist.to_store(memory("src"), F, part_bytes=2000))
    L = sc.laplacian(F).toarray()
    X = np.random.default_rng(0).standard_normal((F.dim_c0, 3)).astype(dtype)
    assert A.dtype == dtype
    assert_residual(A @ X - L @ X, L, X, n=F.dim_c0)
    assert_residual(A @ X[:, 0] - L @ X[:, 0], L, X, n=F.dim_c0)
    assert_residual(A.adjoint() @ X - L @ X, L, X, n=F.dim_c0)
    assert_residual(A @ (1j * X) - L @ (1j * X), L, X, n=F.dim_c0)


def test_rayleigh_quotients_of_lifted_modes_bound_fine_eigenvalues(memory):
    """Lifted coarse modes have Rayleigh quotients above the fine eigenvalues."""
    F = sc.CellularSheaf.constant([[k, k + 1] for k in range(99)])
    P = sc.Partition(np.arange(100) // 5)
    src = dist.to_store(memory("src"), F, part_bytes=200)
    C = dist.coarsen(src, memory("out"), P, 2)
    E = sc.eigenmodes(C.sheaf.load(), 3)
    X = C.lift(E.vectors)
    quotients = np.einsum("ik,ik->k", X, dist.laplacian_operator(src) @ X)
    assert_residual(quotients - E.values, 4.0, n=100)
    exact = 2 - 2 * np.cos(np.pi * np.arange(3) / 100)
    assert (quotients > exact - 1e-13).all()
    assert quotients[1] < 1.5 * exact[1]


@pytest.mark.parametrize("bad", [5, grid_sheaf(4)])
def test_objects_that_are_not_stores_raise_type_error(bad):
    with pytest.raises(TypeError, match=r"`store` must be a SheafStore, got .*open_store\(url\)"):
        dist.laplacian_operator(bad)
