import itertools

import numpy as np
import pytest
import scipy.linalg

import sheafcoarsen as sc
from sheafcoarsen.solve.stalks import adjoint, in_blocks, inverse_roots, largest_eigenvalue
from tests.support.helpers import assert_residual
from tests.unit.solve.problems import SHEAVES


@pytest.mark.parametrize("name", SHEAVES)
def test_inverse_roots_of_the_diagonal_blocks(name):
    F = SHEAVES[name]
    L, at = sc.laplacian(F), F.vertex_offsets
    S, root = inverse_roots(L, F.vertex_dims), inverse_roots(L, F.vertex_dims, power=0.5)
    blocks = [L[a:b, a:b].toarray() for a, b in itertools.pairwise(at)]
    D = scipy.linalg.block_diag(*blocks)
    assert_residual((root @ root).toarray() - D, D, n=5)
    projection = (S @ root).toarray()
    assert_residual(projection @ D - D, D, n=5)
    assert np.abs(projection @ projection - projection).max() <= 1e-6
    rank = sum(np.linalg.matrix_rank(block) for block in blocks if block.size)
    assert round(np.trace(projection).real) == rank


def test_formats():
    F = SHEAVES["consistent bundle"]
    L = in_blocks(sc.laplacian(F), F.vertex_dims, F.vertex_dims)
    assert (L.format, L.blocksize) == ("bsr", (3, 3))
    G = SHEAVES["complex mixed stalks"]
    M = in_blocks(sc.laplacian(G), G.vertex_dims, G.vertex_dims)
    assert M.format == "csr"
    for A in (L, M[:, :7]):
        assert np.array_equal(adjoint(A).toarray(), A.toarray().conj().T)
        assert adjoint(A).format == A.format


def test_an_estimate_of_the_largest_eigenvalue():
    L = sc.laplacian(SHEAVES["complex connection"])
    top = np.linalg.eigvalsh(L.toarray())[-1]
    assert 0.8 * top <= largest_eigenvalue(L) <= 1.06 * top
    assert largest_eigenvalue(0 * L) == 0
