import itertools

import numpy as np
import pytest

import sheafcoarsen as sc
from sheafcoarsen.solve.block_matrix import (
    adjoint,
    in_blocks,
    largest_eigenvalue,
    scaled,
    unit_roots,
)
from tests.support.helpers import assert_residual
from tests.unit.solve.problems import GRID, SHEAVES


@pytest.mark.parametrize("name", [*SHEAVES, "complex large kernel"])
def test_unit_roots_turn_diagonal_blocks_into_projections(name):
    F = SHEAVES.get(name) or sc.CellularSheaf.random(GRID, 3, 1, seed=8, dtype=complex)
    L = in_blocks(sc.laplacian(F), F.vertex_dims, F.vertex_dims)
    S, T = unit_roots(L, F.vertex_dims)
    A = scaled(S, L, S)
    assert A.format == L.format
    dense, S, T = A.toarray(), S.toarray(), T.toarray()
    assert_residual(dense - S.conj().T @ L.toarray() @ S, S, L.toarray(), S, n=10)
    for a, b in itertools.pairwise(F.vertex_offsets):
        block, left = dense[a:b, a:b], (T @ S)[a:b, a:b]
        for projection in (block, left):  # D is known to sqrt(eps) of its singular values
            assert np.abs(projection @ projection - projection).max(initial=0.0) < 1e-6
        D = L.toarray()[a:b, a:b]
        assert_residual(T[a:b, a:b].conj().T @ block @ T[a:b, a:b] - D, D, n=100)
    assert round(np.trace(dense).real) == sum(
        np.linalg.matrix_rank(L.toarray()[a:b, a:b])
        for a, b in itertools.pairwise(F.vertex_offsets)
        if a < b  # numpy before 2.2 raises for empty matrices
    )


def test_sparse_formats_follow_the_stalk_dimensions():
    F = SHEAVES["consistent bundle"]
    L = in_blocks(sc.laplacian(F), F.vertex_dims, F.vertex_dims)
    assert (L.format, L.blocksize) == ("bsr", (3, 3))
    G = SHEAVES["complex mixed stalks"]
    M = in_blocks(sc.laplacian(G), G.vertex_dims, G.vertex_dims)
    assert M.format == "csr"
    for A in (L, M[:, :7]):
        assert np.array_equal(adjoint(A).toarray(), A.toarray().conj().T)
        assert adjoint(A).format == A.format


def test_the_largest_eigenvalue_is_estimated():
    L = sc.laplacian(SHEAVES["complex connection"])
    top = np.linalg.eigvalsh(L.toarray())[-1]
    assert 0.8 * top <= largest_eigenvalue(L) <= 1.06 * top
    assert largest_eigenvalue(0 * L) == 0
